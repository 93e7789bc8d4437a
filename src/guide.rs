//! What a system's own guide says, what is computed, and why they differ; and which of its knobs do anything.

use leptos::prelude::*;

use super::advice::tell_open;
use super::session::Session;
use super::signals::{memo, whenever};
use super::worker::{Helper, JobKind, Work};
use super::{browser, text};
use headroom_io::guide::{self, Guide, Variants};
use headroom_scenario::Scenario;
use headroom_scenario::presets::{self, Preset};

/// How a worker computes a guide's claims, one after the other.
pub const KIND: JobKind = JobKind {
    id: "guide",
    start: |scenario, _| {
        Box::new(Claims {
            of: of(scenario).and_then(|guide| Some((guide, Variants::of(guide.preset)?))),
            computed: Vec::new(),
        })
    },
};

/// The guide of the system that a scenario runs, whatever its settings.
fn of(scenario: &Scenario) -> Option<&'static Guide> {
    let same = |guide: &&&Guide| {
        presets::find(guide.preset).and_then(Preset::model) == Some(&*scenario.model.id)
    };
    guide::all().iter().find(same).copied()
}

struct Claims {
    of: Option<(&'static Guide, Variants)>,
    computed: Vec<String>,
}

impl Work for Claims {
    fn is_done(&self) -> bool {
        let all = self.of.as_ref().map_or(0, |(guide, _)| guide.claims.len());
        self.computed.len() >= all
    }

    fn step(&mut self) {
        let next = self.computed.len();
        let claim = self
            .of
            .as_ref()
            .and_then(|(guide, variants)| Some((guide.claims.get(next)?, variants)));
        if let Some((claim, variants)) = claim {
            let line = match claim.examine(variants) {
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

/// What is known of a claim: its verdict and what was computed; left open until then.
fn found(computed: &[String], at: usize) -> (String, String) {
    let line = computed.get(at).map_or("\t…", |line| line);
    let (verdict, found) = line.split_once('\t').unwrap_or(("", line));
    (verdict.into(), found.into())
}

/// The system's guide beside what is computed, and which of its flags do anything.
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
    // The outside here is the worker.
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
                .claims
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
                .knobs
                .iter()
                .map(|knob| view! { <OneKnob knob/> })
                .collect_view(),
        )
    };
    view! {
        <section class="panel" id="guide" aria-labelledby="guide-title" data-testid="guide" hidden=move || preset.get().is_none()>
            <details class="more" id="guide-details" on:toggle=move |event| tell_open(&event, open)>
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
            <th scope="row">{claim.quote}<span class="quiet">" "{claim.section}</span></th>
            <td>{move || found.get().1}</td>
            <td>{verdict}</td>
            <td>{claim.why}<span class="quiet">" "{claim.source}</span></td>
        </tr>
    }
}

#[component]
fn OneKnob(knob: &'static guide::Knob) -> impl IntoView {
    let patch = (!knob.patched.is_empty())
        .then(|| view! { <br/>"With the patch: "<code>{knob.patched}</code> });
    view! {
        <dt><code>{knob.flag}</code>" "<strong class="badge">{knob.wiring.label()}</strong></dt>
        <dd>{knob.note}<span class="quiet">" "{knob.source}</span>{patch}</dd>
    }
}

/// One line under the verdict where the system on the screen has a guide.
#[component]
pub fn GuideBanner() -> impl IntoView {
    let session = Session::current();
    let guide = memo(move || {
        session
            .scenario
            .with(|scenario| of(scenario).map(|guide| guide.claims.len()))
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
