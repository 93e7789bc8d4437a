//! The answer in one sentence: what is needed, of how much, with what margin.

use leptos::prelude::*;

use super::effects::once_rested;
use super::part::Part;
use super::session::{Answer, Session};
use super::signals::memo;
use super::tone::Tone;
use super::{markup, text};
use crate::estimate::{Estimate, Fit};
use crate::units::{Bytes, UnitStyle};

/// The sentence's parts, each already in words.
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
        // The unit is named once; every other number stands in the same one.
        let measure = estimate.usable.unwrap_or(device.expected);
        let (_, unit) = units.scale(measure);
        let number = |bytes: Bytes| bytes.beside(measure, units);
        Self {
            tone,
            needs: format!("{} {unit}", number(device.expected)),
            range: format!("{}–{}", number(device.low), number(device.high)),
            usable: estimate.usable.map(number),
            outcome: match estimate.fit() {
                None => String::new(),
                Some(fit @ (Fit::Fits | Fit::Probably)) => {
                    format!(
                        "{}, {} spare",
                        fit.words(),
                        number(usable - device.expected)
                    )
                }
                Some(fit @ (Fit::ProbablyNot | Fit::No)) => {
                    format!(
                        "{}, {} short",
                        fit.words(),
                        number(device.expected - usable)
                    )
                }
            },
        }
    }

    /// The sentence with its weights. Its parts are numbers, units and our own words: nothing in it needs escaping.
    pub fn html(&self) -> String {
        let Self {
            needs,
            range,
            outcome,
            ..
        } = self;
        let of =
            |usable: &String| format!(" of {usable}: <strong class=\"outcome\">{outcome}</strong>");
        let of = self.usable.as_ref().map(of).unwrap_or_default();
        format!("Needs <strong>{needs}</strong> <span class=\"range\">({range})</span>{of}.")
    }

    /// The whole sentence, for ears and for copying.
    pub fn spoken(&self) -> String {
        let Self { needs, range, .. } = self;
        match &self.usable {
            Some(usable) => format!("Needs {needs} ({range}) of {usable}: {}.", self.outcome),
            None => format!("Needs {needs} ({range})."),
        }
    }
}

/// The sentence, what it is about, and the three measures that must not be mixed.
pub fn view(session: Session) -> Part {
    let sentence = memo(move || {
        let units = session.units.get();
        let of = |it: &Answer| it.estimate.as_ref().map(|it| Sentence::of(it, units));
        session.answer.with(of)
    });
    let shown = move || sentence.with(|it| it.as_ref().map(Sentence::html).unwrap_or_default());
    let tone = move || sentence.with(|it| it.as_ref().map_or("open", |it| it.tone.id()).into());
    Part::new(&format!(
        r#"<section class="verdict" aria-label="{}">
            <p class="about"></p>
            <p class="sentence" id="verdict"></p>
            <p class="quiet from" hidden>{}</p>
            <slot name="calibrated"></slot>
            <slot name="problems"></slot>
            <dl class="three"></dl>
        </section>
        <div class="verdict-bar" aria-hidden="true"><p></p></div>
        <p class="aside" role="status" aria-live="polite" id="spoken"></p>"#,
        text::VERDICT,
        text::STALE
    ))
    .class("", "stale", move || session.stale.get())
    .attribute("", "data-tone", tone)
    .text(".about", move || {
        session.answer.with(|it| text::about(&it.scenario))
    })
    .html("#verdict", shown)
    .flag(".from", "hidden", move || !session.stale.get())
    .html(".three", measured(session))
    .attribute(".verdict-bar", "data-tone", tone)
    .html(".verdict-bar p", shown)
    .text("#spoken", announced(sentence))
    .put("calibrated", super::measured::calibrated(session))
    .put("problems", problems(session))
}

/// What cannot be answered, what was likely not meant, and what a link held that is not known.
fn problems(session: Session) -> Part {
    let open = move |_| {
        if let Some(yours) = session.yours.get_untracked() {
            session.yours.set(None);
            session.open(&yours);
        }
    };
    let list = |class: &str, lines: &[String]| match lines {
        [] => String::new(),
        _ => format!(
            "<ul class=\"{class}\" role=\"status\">{}</ul>",
            markup::items(lines)
        ),
    };
    let lists = move || {
        [
            session.answer.with(|it| list("problems", &it.problems)),
            session
                .answer
                .with(|it| list("problems link-notes", &warnings(it))),
            session
                .link_notes
                .with(|it| list("problems link-notes", it)),
        ]
        .concat()
    };
    Part::new(&format!(
        r#"<p class="quiet screen-only yours">{}<button type="button" class="plain">{}</button></p>
        <div class="contents lists"></div>"#,
        text::SHARED,
        text::BACK_TO_YOURS
    ))
    .flag(".yours", "hidden", move || {
        session.yours.with(Option::is_none)
    })
    .on("button", "click", open)
    .html(".lists", lists)
}

/// What the scenario that was estimated most likely does not mean.
pub(super) fn warnings(answer: &Answer) -> Vec<String> {
    let prediction = answer.prediction.iter().filter(|_| !answer.stale);
    let all = prediction.flat_map(|it| it.warnings());
    all.map(ToString::to_string).collect()
}

/// Allocated, reserved and device, each by its name, and how many parameters there are.
fn measured(session: Session) -> impl Fn() -> String {
    move || {
        let batch = session.answer.with(|it| it.scenario.batch().to_string());
        let estimate = session.estimate.get();
        estimate
            .map(|it| measures(&it, session.units.get(), batch))
            .unwrap_or_default()
    }
}

fn measures(estimate: &Estimate, units: UnitStyle, batch: String) -> String {
    let allocated = estimate.allocated.expected;
    let hook = format!(
        " data-testid=\"allocated-bytes\" data-bytes=\"{}\"",
        allocated.get()
    );
    let measure = |name: &str, hook: &str, value: String| {
        format!("<div><dt>{name}</dt><dd{hook}>{value}</dd></div>")
    };
    [
        measure(text::ALLOCATED, &hook, allocated.show(units)),
        measure(text::RESERVED, "", estimate.reserved.expected.show(units)),
        measure(text::DEVICE, "", estimate.device.expected.show(units)),
        measure(text::PARAMETERS, "", text::count(estimate.parameters)),
        measure(text::TRAINED, "", text::count(estimate.trainable)),
        measure(text::EFFECTIVE, "", batch),
    ]
    .concat()
}

/// Says the sentence to screen readers, once it has rested for half a second.
fn announced(sentence: Memo<Option<Sentence>>) -> impl Fn() -> String {
    let said = RwSignal::new(String::new());
    let spoken = move |it: &Option<Sentence>| it.as_ref().map(Sentence::spoken).unwrap_or_default();
    // The outside here is a person's ears.
    let say = move || said.set(sentence.with_untracked(spoken));
    once_rested(500, say, move |_| {
        sentence.with(|_| ());
        true
    });
    move || said.get()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Band;
    use crate::web::sample;

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
        assert_eq!(sentence.spoken(), spoken);
    }

    #[test]
    fn the_sentence_says_what_is_needed_and_whether_it_fits() {
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
