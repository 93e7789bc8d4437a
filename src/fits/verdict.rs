//! The answer in one sentence: needed memory, usable memory, and the margin.

use leptos::prelude::*;

use crate::change::compare::KeepAsA;
use crate::diagnose::measured::Calibrated;
use crate::shared::browser;
use crate::shared::places::PlaceLinks;
use crate::shared::session::{Answer, Session};
use crate::shared::signals::{debounced, memo};
use crate::shared::tone::Tone;
use crate::text;
use headroom_base::units::{Bytes, UnitStyle};
use headroom_core::estimate::{Estimate, Fit};

/// The formatted parts of the sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct Sentence {
    pub tone: Tone,
    /// "17.2 GiB"
    pub needs: String,
    /// "16.8–17.9"
    pub range: String,
    /// "23.6"
    pub usable: Option<String>,
    /// "fits, 6.40 spare"
    pub outcome: String,
}

impl Sentence {
    pub fn of(estimate: &Estimate, units: UnitStyle) -> Self {
        let device = estimate.device;
        let tone = Tone::of(estimate);
        let usable = estimate.usable.unwrap_or_default();
        // The unit is written once; all other numbers use the same one.
        let measure = estimate.usable.unwrap_or(device.expected);
        let (_, unit) = units.scale(measure);
        let number = |bytes: Bytes| bytes.show_in_unit_of(measure, units);
        let needed = device.expected + estimate.growth;
        Self {
            tone,
            needs: format!("{} {unit}", number(device.expected)),
            range: format!("{}–{}", number(device.low), number(device.high)),
            usable: estimate.usable.map(number),
            outcome: match estimate.fit() {
                None => String::new(),
                Some(fit @ (Fit::Fits | Fit::Probably)) => {
                    format!("{}, {} spare", fit.label(), number(usable - needed))
                }
                Some(_) if estimate.full_in_epoch.is_some_and(|epoch| epoch > 1) => format!(
                    "runs out in epoch {}: metrics keep every validation's outputs",
                    estimate.full_in_epoch.unwrap_or_default()
                ),
                Some(fit @ (Fit::ProbablyNot | Fit::No)) => {
                    format!("{}, {} short", fit.label(), number(needed - usable))
                }
            },
        }
    }

    /// The whole sentence, for screen readers and for copying.
    pub fn full_text(&self) -> String {
        let Self { needs, range, .. } = self;
        match &self.usable {
            Some(usable) => format!("Needs {needs} ({range}) of {usable}: {}.", self.outcome),
            None => format!("Needs {needs} ({range})."),
        }
    }
}

impl Sentence {
    /// "14.4 GiB of 23.5: fits", for narrow places.
    pub fn short(&self) -> String {
        let Self {
            needs,
            usable,
            outcome,
            ..
        } = self;
        let outcome = outcome.split(',').next().unwrap_or_default();
        match usable {
            Some(usable) => format!("{needs} of {usable}: {outcome}"),
            None => needs.clone(),
        }
    }
}

/// The subject, the sticky sentence, and the three memory figures.
#[component]
pub fn Verdict() -> impl IntoView {
    let session = Session::current();
    let sentence = memo(move || {
        let units = session.units.get();
        let of = |answer: &Answer| {
            answer
                .estimate
                .as_ref()
                .map(|estimate| Sentence::of(estimate, units))
        };
        session.answer.with(of)
    });
    let tone = move || {
        sentence.with(|sentence| {
            sentence
                .as_ref()
                .map_or("open", |sentence| sentence.tone.id())
        })
    };
    let about = move || session.answer.with(|answer| text::about(&answer.scenario));
    let stale = move || session.stale.get();
    view! {
        <section
            class="verdict contents"
            class:stale=stale
            data-tone=tone
            aria-label=text::VERDICT
            id="the-verdict"
            tabindex="-1"
        >
            <p class="about">
                {about}
                <span class="from" hidden=move || !stale()>
                    {text::STALE}
                </span>
            </p>
            <div class="verdict-bar" data-tone=tone>
                <p class="sentence" id="verdict">
                    {move || sentence.get().map(|sentence| view! { <Emphasized sentence/> })}
                </p>
                <PlaceLinks/>
            </div>
            <div class="findings">
                <Calibrated/>
                <Problems/>
                <Measures/>
            </div>
            <Announcement sentence/>
        </section>
    }
}

/// The sentence with its weights.
#[component]
fn Emphasized(sentence: Sentence) -> impl IntoView {
    let Sentence {
        needs,
        range,
        usable,
        outcome,
        ..
    } = sentence;
    let of = usable.map(|usable| {
        view! {
            {format!(" of {usable}: ")}
            <strong class="outcome">{outcome}</strong>
        }
    });
    view! {
        "Needs "
        <strong>{needs}</strong>
        " "
        <span class="range">{format!("({range})")}</span>
        {of}
        "."
    }
}

/// Errors, likely mistakes, and unknown parts of a link.
#[component]
fn Problems() -> impl IntoView {
    let session = Session::current();
    let problems = Signal::derive(move || session.answer.with(|answer| answer.problems.clone()));
    let warned = Signal::derive(move || session.answer.with(warnings));
    let refused = memo(move || session.answer.with(runs_when_refused));
    let back = move |_| {
        if let Some(link) = session.previous_link.get_untracked() {
            session.previous_link.set(None);
            session.open(&link);
        }
    };
    view! {
        <p class="quiet screen-only" hidden=move || session.previous_link.with(Option::is_none)>
            {text::SHARED}
            <button type="button" class="plain" on:click=back>
                {text::BACK_TO_YOURS}
            </button>
        </p>
        <p class="quiet" data-testid="all-the-same" hidden=move || !refused.get()>
            {text::RUNS_WHEN_REFUSED}
        </p>
        <Lines class="problems" lines=problems/>
        <Lines class="problems link-notes" lines=warned/>
        <Lines class="problems link-notes" lines=session.link_notes.into()/>
    }
}

/// Whether the steps run although the GPU is too small for what they would reserve.
fn runs_when_refused(answer: &Answer) -> bool {
    let prediction = answer.prediction.iter().find(|_| !answer.stale);
    prediction.and_then(|prediction| prediction.runs_when_refused()) == Some(true)
}

/// A live region with a list, empty without lines.
#[component]
fn Lines(class: &'static str, lines: Signal<Vec<String>>) -> impl IntoView {
    let items = move || {
        let lines = lines.get();
        let item = |line: String| view! { <li>{line}</li> };
        (!lines.is_empty()).then(|| {
            view! { <ul class=class>{lines.into_iter().map(item).collect_view()}</ul> }
        })
    };
    view! { <div role="status">{items}</div> }
}

/// Likely mistakes in the estimated scenario.
pub(crate) fn warnings(answer: &Answer) -> Vec<String> {
    let prediction = answer.prediction.iter().filter(|_| !answer.stale);
    let all = prediction.flat_map(|prediction| prediction.warnings());
    all.map(text::problem).collect()
}

/// A size, in no larger unit than the verdict's.
fn shown(bytes: Bytes, estimate: &Estimate, units: UnitStyle) -> String {
    match estimate.usable.filter(|usable| *usable < bytes) {
        Some(usable) => {
            let (_, unit) = units.scale(usable);
            format!("{} {unit}", bytes.show_in_unit_of(usable, units))
        }
        None => bytes.show(units),
    }
}

/// Allocated, reserved and device memory, and the number of parameters.
#[component]
fn Measures() -> impl IntoView {
    let session = Session::current();
    let measure = move |name: &'static str, read: fn(&Answer, &Estimate, UnitStyle) -> String| {
        let value = move || {
            let units = session.units.get();
            let read = |answer: &Answer| Some(read(answer, answer.estimate.as_deref()?, units));
            session.answer.with(read)
        };
        view! {
            <div>
                <dt>{name}</dt>
                <dd>{value}</dd>
            </div>
        }
    };
    let left_out = move || {
        let count = session
            .estimate
            .with(|estimate| Some(estimate.as_ref()?.not_modelled.len()));
        count.unwrap_or_default()
    };
    let allocated = move || {
        session
            .estimate
            .with(|estimate| Some(estimate.as_ref()?.allocated.expected))
    };
    view! {
        <div class="measures">
        <dl class="three">
            <div>
                <dt>{text::ALLOCATED}</dt>
                <dd
                    data-testid="allocated-bytes"
                    data-bytes=move || allocated().map(|bytes| bytes.get().to_string())
                >
                    {move || {
                        let bytes = allocated()?;
                        let units = session.units.get();
                        session.estimate.with(|estimate| Some(shown(bytes, estimate.as_ref()?, units)))
                    }}
                </dd>
            </div>
            {measure(text::RESERVED, |_, estimate, units| shown(estimate.reserved.expected, estimate, units))}
            {measure(text::DEVICE, |_, estimate, units| shown(estimate.device.expected, estimate, units))}
            {measure(text::PARAMETERS, |_, estimate, _| text::count(estimate.parameters))}
            {measure(text::TRAINED, |_, estimate, _| text::count(estimate.trainable))}
            {measure(text::EFFECTIVE, |answer, _, _| text::effective(&answer.scenario.batch()))}
        </dl>
        <p class="further screen-only">
            <KeepAsA/>
            <button type="button" class="plain" on:click=|_| browser::unfold("trust")>
                {text::TRUST}
            </button>
            <button
                type="button"
                class="plain"
                hidden=move || left_out() == 0
                on:click=|_| browser::unfold("not-modelled")
            >
                {move || text::left_out(left_out())}
            </button>
        </p>
        </div>
    }
}

/// Announces the sentence to screen readers, debounced by half a second.
#[component]
fn Announcement(sentence: Memo<Option<Sentence>>) -> impl IntoView {
    let said = RwSignal::new(String::new());
    let spoken = move |sentence: &Option<Sentence>| {
        sentence
            .as_ref()
            .map(Sentence::full_text)
            .unwrap_or_default()
    };
    // The side effect is the screen reader's live region.
    let say = move || said.set(sentence.with_untracked(spoken));
    debounced(500, say, move |_| {
        sentence.with(|_| ());
        true
    });
    view! {
        <p class="aside" role="status" aria-live="polite" id="spoken">
            {move || said.get()}
        </p>
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::sample;
    use headroom_core::estimate::Band;

    #[track_caller]
    fn check(low: f64, expected: f64, high: f64, usable: Option<f64>, spoken: &str) {
        let mut estimate = sample::estimate();
        estimate.device = Band {
            low: Bytes::gib(low),
            expected: Bytes::gib(expected),
            high: Bytes::gib(high),
        };
        estimate.usable = usable.map(Bytes::gib);
        let sentence = Sentence::of(&estimate, UnitStyle::Binary);
        assert_eq!(sentence.full_text(), spoken);
    }

    #[test]
    fn the_sentence_has_needed_memory_and_the_verdict() {
        let check_card =
            |low, expected, high, spoken| check(low, expected, high, Some(23.6), spoken);
        check_card(
            16.8,
            17.2,
            17.9,
            "Needs 17.2 GiB (16.8–17.9) of 23.6: fits, 6.40 spare.",
        );
        check_card(
            0.4,
            0.5,
            0.6,
            "Needs 0.50 GiB (0.40–0.60) of 23.6: fits, 23.1 spare.",
        );
        check_card(
            23.0,
            23.5,
            24.0,
            "Needs 23.5 GiB (23.0–24.0) of 23.6: probably fits, 0.10 spare.",
        );
        check_card(
            23.0,
            24.0,
            25.0,
            "Needs 24.0 GiB (23.0–25.0) of 23.6: probably does not fit, 0.40 short.",
        );
        check_card(
            30.0,
            31.0,
            32.0,
            "Needs 31.0 GiB (30.0–32.0) of 23.6: does not fit, 7.40 short.",
        );
        check(9.0, 9.5, 10.0, None, "Needs 9.50 GiB (9.00–10.0).");
    }
}
