//! The command `guide`: what a system's guide says beside what is computed.

use super::answer::{Answer, Refusal};
use super::args::Args;
use headroom_base::document::Document;
use headroom_io::guide::{self, Claim, Finding, Guide, Knob, Variants};
use headroom_scenario::{Problem, nearest};

pub(super) fn guide(args: &Args) -> Result<Answer, Refusal> {
    let id = args.word(0);
    let found = guide::find(id).and_then(|guide| Some((guide, Variants::of(id)?)));
    let Some((guide, variants)) = found else {
        let ids = guide::all().iter().map(|guide| guide.preset);
        let expected = match nearest(id, ids.clone()) {
            Some(near) => format!("a preset with a guide; did you mean {near}?"),
            None => format!("one of {}", ids.collect::<Vec<_>>().join(", ")),
        };
        return Err(Problem::new("PRESET", id, expected).into());
    };
    let mut text = format!("{}\n\n", guide.document);
    let mut claims = Vec::new();
    for claim in guide.claims {
        let finding = claim.examine(&variants)?;
        text.push_str(&in_words(claim, &finding));
        claims.push(as_document(claim, finding));
    }
    text.push_str("What its knobs do\n\n");
    for knob in guide.knobs {
        text.push_str(&knob_in_words(knob));
    }
    text.push_str("The patch, for git apply at this commit\n\n");
    text.push_str(guide.patch);
    Ok(Answer::new(text, &whole(guide, claims)))
}

fn in_words(claim: &Claim, finding: &Finding) -> String {
    format!(
        "{} [{}]\n  said      {}\n  computed  {}\n  why       {} ({})\n\n",
        claim.section,
        finding.verdict.label(),
        claim.quote,
        finding.computed,
        claim.why,
        claim.source
    )
}

fn knob_in_words(knob: &Knob) -> String {
    let mut text = format!("{} [{}]\n  {}\n", knob.flag, knob.wiring.label(), knob.note);
    if !knob.patched.is_empty() {
        text.push_str(&format!("  with the patch: {}\n", knob.patched));
    }
    text.push('\n');
    text
}

fn whole(guide: &Guide, claims: Vec<Document>) -> Document {
    let knobs = guide.knobs.iter().map(|knob| {
        Document::new()
            .with("flag", knob.flag)
            .with("wiring", knob.wiring.label())
            .with("note", knob.note)
            .with("patched", knob.patched)
            .with("source", knob.source)
    });
    Document::new()
        .with("preset", guide.preset)
        .with("document", guide.document)
        .with("patch", guide.patch)
        .with("claims", Document::List(claims))
        .with("knobs", Document::List(knobs.collect()))
}

fn as_document(claim: &Claim, finding: Finding) -> Document {
    Document::new()
        .with("section", claim.section)
        .with("quote", claim.quote)
        .with("computed", finding.computed)
        .with("verdict", finding.verdict.label())
        .with("why", claim.why)
        .with("source", claim.source)
}
