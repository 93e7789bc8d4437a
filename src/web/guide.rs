//! What a system's own guide says, what is computed, and why they differ; and which of its knobs do anything.

use leptos::prelude::*;

use super::markup::escape;
use super::part::Part;
use super::session::Session;
use super::signals::{memo, whenever};
use super::text;
use super::worker::{Helper, JobKind, Work};
use crate::guide::{self, Guide, Variants};
use crate::scenario::Scenario;
use crate::scenario::presets::{self, Preset};

/// How a worker computes a guide's claims, one after the other.
pub const KIND: JobKind = JobKind {
    id: "guide",
    start: |scenario| {
        Box::new(Claims {
            of: of(scenario).and_then(|it| Some((it, Variants::of(it.preset)?))),
            computed: Vec::new(),
        })
    },
};

/// The guide of the system that a scenario runs, whatever its settings.
fn of(scenario: &Scenario) -> Option<&'static Guide> {
    let same = |it: &&&Guide| {
        presets::find(it.preset).and_then(Preset::model) == Some(&*scenario.model.id)
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

/// The claims in three columns; what is not computed yet is left open.
fn claims(guide: &Guide, computed: &[String]) -> String {
    let mut html = format!(
        "<table class=\"plain-table guide\"><thead><tr><th scope=\"col\">{}</th><th scope=\"col\">{}</th>\
         <th scope=\"col\">{}</th></tr></thead><tbody>",
        text::SAID,
        text::COMPUTED,
        text::WHY
    );
    for (at, claim) in guide.claims.iter().enumerate() {
        let line = computed.get(at).map_or("\t…", |line| line);
        let (verdict, found) = line.split_once('\t').unwrap_or(("", line));
        let verdict = match verdict {
            "" => String::new(),
            label => format!("<strong>{label}</strong>. "),
        };
        html.push_str(&format!(
            "<tr><th scope=\"row\">{}<span class=\"quiet\"> {}</span></th><td>{}</td>\
             <td>{verdict}{}<span class=\"quiet\"> {}</span></td></tr>",
            escape(claim.quote),
            escape(claim.section),
            escape(found),
            escape(claim.why),
            escape(claim.source),
        ));
    }
    html.push_str("</tbody></table>");
    html
}

fn knobs(guide: &Guide) -> String {
    let mut html = String::new();
    for knob in guide.knobs {
        let patch = match knob.patched {
            "" => String::new(),
            patched => format!("<br>With the patch: <code>{}</code>", escape(patched)),
        };
        html.push_str(&format!(
            "<dt><code>{}</code> <strong>{}</strong></dt><dd>{}<span class=\"quiet\"> {}</span>{patch}</dd>",
            escape(knob.flag),
            knob.wiring.label(),
            escape(knob.note),
            escape(knob.source),
        ));
    }
    html
}

pub fn view(session: Session) -> Part {
    let helper = Helper::new(KIND.id);
    let found = memo(move || session.scenario.with(|it| of(it).map(|it| it.preset)));
    let guide = move || found.get().and_then(guide::find);
    let open = RwSignal::new(false);
    // The outside here is the worker.
    whenever(move |_| {
        let preset = found.get().and_then(presets::find);
        match preset.filter(|_| open.get()) {
            Some(preset) => helper.ask(preset.scenario()),
            None => helper.stop(),
        }
    });
    let document = move || guide().map_or("", |it| it.document).into();
    let told = move || {
        let guide = guide().filter(|_| open.get());
        guide.map(|it| helper.reply.with(|reply| claims(it, &reply.lines)))
    };
    let wired = move || guide().filter(|_| open.get()).map(knobs);
    Part::new(&format!(
        r#"<section class="panel" aria-labelledby="guide-title" data-testid="guide">
            <details class="more">
                <summary><h2 id="guide-title">{}</h2></summary>
                <p class="quiet"></p>
                <div class="scroller" tabindex="0" role="region" aria-labelledby="guide-title"></div>
                <h3>{}</h3>
                <dl class="knobs"></dl>
            </details>
        </section>"#,
        text::GUIDE,
        text::KNOBS
    ))
    .flag("", "hidden", move || found.get().is_none())
    .tells_open("details", open)
    .text("p", document)
    .html(".scroller", move || told().unwrap_or_default())
    .html(".knobs", move || wired().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_claim_has_its_row_and_fills_in() {
        for guide in guide::all() {
            let preset = presets::find(guide.preset).unwrap().scenario();
            assert_eq!(of(&preset).map(|it| it.preset), Some(guide.preset));
            let mut work = (KIND.start)(&preset);
            work.step();
            let html = claims(guide, &work.lines());
            assert_eq!(html.matches("<tr>").count(), guide.claims.len() + 1);
            let lines = work.lines();
            let (verdict, found) = lines[0].split_once('\t').unwrap();
            assert!(html.contains(&format!("<strong>{verdict}</strong>")));
            assert!(html.contains(&escape(found)));
        }
        assert!(of(&Scenario::default()).is_none());
    }
}
