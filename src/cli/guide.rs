//! The command `guide`: what a system's guide says beside what is computed.

use super::answer::{Answer, Refusal};
use super::args::Args;
use crate::document::Document;
use crate::guide::{self, Claim, Guide, Knob, Lab};
use crate::scenario::{Problem, nearest};

pub(super) fn guide(args: &Args) -> Result<Answer, Refusal> {
    let id = args.word(0);
    let found = guide::find(id).and_then(|guide| Some((guide, Lab::new(id)?)));
    let Some((guide, lab)) = found else {
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
        let computed = (claim.computed)(&lab)?;
        text.push_str(&in_words(claim, &computed));
        claims.push(as_document(claim, computed));
    }
    text.push_str("What its knobs do\n\n");
    for knob in guide.knobs {
        text.push_str(&knob_in_words(knob));
    }
    Ok(Answer::new(text, &whole(guide, claims)))
}

fn in_words(claim: &Claim, computed: &str) -> String {
    format!(
        "{} [{}]\n  said      {}\n  computed  {computed}\n  why       {} ({})\n\n",
        claim.place,
        claim.verdict.label(),
        claim.said,
        claim.why,
        claim.source
    )
}

fn knob_in_words(knob: &Knob) -> String {
    let mut text = format!("{} [{}]\n  {}\n", knob.flag, knob.wiring.label(), knob.note);
    for line in knob.patch.lines() {
        text.push_str(&format!("    {line}\n"));
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
            .with("patch", knob.patch)
            .with("source", knob.source)
    });
    Document::new()
        .with("preset", guide.preset)
        .with("document", guide.document)
        .with("claims", Document::List(claims))
        .with("knobs", Document::List(knobs.collect()))
}

fn as_document(claim: &Claim, computed: String) -> Document {
    Document::new()
        .with("place", claim.place)
        .with("said", claim.said)
        .with("computed", computed)
        .with("verdict", claim.verdict.label())
        .with("why", claim.why)
        .with("source", claim.source)
}
