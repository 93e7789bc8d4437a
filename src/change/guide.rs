//! A system's memory guide: its claims, the computed values, why they differ, and the effect of its flags.

use leptos::prelude::*;

use crate::shared::browser;
use crate::shared::session::Session;
use crate::shared::signals::{memo, track_open, whenever};
use crate::shared::worker::{Helper, JobKind, Work};
use crate::text;
use headroom_scenario::Scenario;
use headroom_scenario::presets::{self, Preset};
use headroom_systems::guide::{self, Guide, Variants};

/// The worker's job: computes a guide's claims one by one.
pub const KIND: JobKind = JobKind {
    id: "guide",
    start: |scenario, _| {
        Box::new(Claims {
            of: of(scenario).and_then(|guide| Some((guide, guide.variants()?))),
            computed: Vec::new(),
        })
    },
};

/// The guide of a scenario's system, whatever its settings.
fn of(scenario: &Scenario) -> Option<&'static Guide> {
    let same = |guide: &&Guide| {
        presets::find(guide.preset).and_then(Preset::model) == Some(&*scenario.model.id)
    };
    guide::all().iter().find(same)
}

struct Claims {
    of: Option<(&'static Guide, Variants)>,
    computed: Vec<String>,
}

impl Work for Claims {
    fn is_done(&self) -> bool {
        let all = self
            .of
            .as_ref()
            .map_or(0, |(guide, _)| guide.claims().len());
        self.computed.len() >= all
    }

    fn step(&mut self) {
        let next = self.computed.len();
        let claim = self
            .of
            .as_ref()
            .and_then(|(guide, variants)| Some((guide.claims().get(next)?, variants)));
        if let Some((claim, variants)) = claim {
            let line = match claim.check(variants) {
                Ok(finding) => format!("{}\t{}", finding.verdict.label(), finding.computed),
                Err(problem) => format!("\t{problem}"),
            };
            self.computed.push(line.replace('\n', " "));
        }
    }

    fn lines(&self) -> Vec<String> {
        self.computed.clone()
    }
}

/// A claim's verdict and computed value; empty until known.
fn found(computed: &[String], at: usize) -> (String, String) {
    let line = computed.get(at).map_or("\t…", |line| line);
    let (verdict, found) = line.split_once('\t').unwrap_or(("", line));
    (verdict.into(), found.into())
}

/// The guide's claims next to computed values, and the effect of its flags.
#[component]
pub fn GuideSays() -> impl IntoView {
    let session = Session::current();
    let helper = Helper::new(KIND.id);
    let preset = memo(move || {
        session
            .scenario
            .with(|scenario| of(scenario).map(|guide| guide.preset))
    });
    let guide = move || preset.get().and_then(guide::find);
    let open = RwSignal::new(false);
    // The side effect is a request to the worker.
    whenever(move |_| {
        let preset = preset.get().and_then(presets::find);
        match preset.filter(|_| open.get()) {
            Some(preset) => helper.ask(preset.scenario()),
            None => helper.stop(),
        }
    });
    let claims = move || {
        let guide = guide().filter(|_| open.get())?;
        Some(
            guide
                .claims()
                .iter()
                .enumerate()
                .map(|(at, claim)| view! { <OneClaim claim helper at/> })
                .collect_view(),
        )
    };
    let knobs = move || {
        let guide = guide().filter(|_| open.get())?;
        Some(
            guide
                .knobs()
                .iter()
                .map(|knob| view! { <OneKnob knob/> })
                .collect_view(),
        )
    };
    view! {
        <section class="panel" id="guide" aria-labelledby="guide-title" data-testid="guide" hidden=move || preset.get().is_none()>
            <details class="more" id="guide-details" on:toggle=move |event| track_open(&event, open)>
                <summary><h3 id="guide-title">{text::GUIDE}</h3></summary>
                <p class="quiet">{move || guide().map(|guide| guide.document)}</p>
                <div class="scroller" tabindex="0" role="group" aria-label=text::GUIDE_TABLE>
                    <table class="plain-table guide">
                        <thead>
                            <tr>
                                <th scope="col">{text::SAID}</th>
                                <th scope="col">{text::COMPUTED}</th>
                                <th scope="col">{text::VERDICT}</th>
                                <th scope="col">{text::WHY}</th>
                            </tr>
                        </thead>
                        <tbody>{claims}</tbody>
                    </table>
                </div>
                <h4>{text::KNOBS}</h4>
                <dl class="knobs">{knobs}</dl>
            </details>
        </section>
    }
}

#[component]
fn OneClaim(claim: &'static guide::Claim, helper: Helper, at: usize) -> impl IntoView {
    let found = memo(move || helper.reply.with(|reply| found(&reply.lines, at)));
    let verdict = move || {
        let verdict = found.get().0;
        (!verdict.is_empty()).then(|| view! { <strong class="badge">{verdict}</strong> })
    };
    view! {
        <tr>
            <th scope="row">{text::without_marks(&claim.quote)}<span class="quiet">" "{&*claim.section}</span></th>
            <td>{move || found.get().1}</td>
            <td>{verdict}</td>
            <td>{text::without_marks(&claim.why)}<span class="quiet">" "{&*claim.source}</span></td>
        </tr>
    }
}

#[component]
fn OneKnob(knob: &'static guide::Knob) -> impl IntoView {
    let patch = (!knob.patched.is_empty())
        .then(|| view! { <br/>"With the patch: "<code>{&*knob.patched}</code> });
    view! {
        <dt><code>{&*knob.flag}</code>" "<strong class="badge">{knob.wiring.label()}</strong></dt>
        <dd>{text::without_marks(&knob.note)}<span class="quiet">" "{&*knob.source}</span>{patch}</dd>
    }
}

/// One line below the verdict if the current system has a guide.
#[component]
pub fn GuideBanner() -> impl IntoView {
    let session = Session::current();
    let guide = memo(move || {
        session
            .scenario
            .with(|scenario| of(scenario).map(|guide| guide.claims().len()))
    });
    move || {
        guide.get().map(|count| {
            let go = move |_| browser::unfold("guide-details");
            view! {
                <p class="banner">
                    {text::guide_banner(count)}" "
                    <button type="button" class="plain" on:click=go>{text::SEE_GUIDE}</button>
                </p>
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_claim_has_its_row_and_fills_in() {
        headroom_systems::install();
        for guide in guide::all() {
            let preset = presets::find(guide.preset).unwrap().scenario();
            assert_eq!(of(&preset).map(|guide| guide.preset), Some(guide.preset));
            let mut work = (KIND.start)(&preset, "");
            work.step();
            let lines = work.lines();
            let (verdict, computed) = found(&lines, 0);
            assert!(!verdict.is_empty() && !computed.is_empty(), "{lines:?}");
            assert_eq!(found(&lines, 1), (String::new(), "…".into()));
        }
        assert!(of(&Scenario::default()).is_none());
    }
}
