//! The command `guide`: the claims of a system's guide, compared with computed values.

use super::answer::{Answer, Refusal};
use super::args::Args;
use headroom_base::document::Document;
use headroom_scenario::{NameKind, Problem};
use headroom_systems::guide::{self, Claim, Finding, Guide, Knob};

pub(super) fn guide(args: &Args) -> Result<Answer, Refusal> {
    let id = args.positional(0);
    let found = guide::find(id).and_then(|guide| Some((guide, guide.variants()?)));
    let Some((guide, variants)) = found else {
        let ids = guide::all().iter().map(|guide| guide.preset);
        return Err(Problem::unknown_name(NameKind::Guide, "PRESET", id, ids).into());
    };
    let mut text = format!("{}\n\n", guide.document);
    let mut claims = Vec::new();
    for claim in guide.claims() {
        let finding = claim.check(&variants)?;
        text.push_str(&claim_text(claim, &finding));
        claims.push(as_document(claim, finding));
    }
    text.push_str("Effect of its settings\n\n");
    for knob in guide.knobs() {
        text.push_str(&knob_text(knob));
    }
    text.push_str("The patch, for git apply at this commit\n\n");
    text.push_str(guide.patch);
    Ok(Answer::new(text, &document(guide, claims)))
}

fn claim_text(claim: &Claim, finding: &Finding) -> String {
    format!(
        "{} [{}]\n  claimed   {}\n  computed  {}\n  why       {} ({})\n\n",
        claim.section,
        finding.verdict.label(),
        claim.quote,
        finding.computed,
        claim.why,
        claim.source
    )
}

fn knob_text(knob: &Knob) -> String {
    let mut text = format!("{} [{}]\n  {}\n", knob.flag, knob.wiring.label(), knob.note);
    if !knob.patched.is_empty() {
        text.push_str(&format!("  with the patch: {}\n", knob.patched));
    }
    text.push('\n');
    text
}

fn document(guide: &Guide, claims: Vec<Document>) -> Document {
    let knobs = guide.knobs().iter().map(|knob| {
        Document::new()
            .with("flag", knob.flag.as_str())
            .with("wiring", knob.wiring.label())
            .with("note", knob.note.as_str())
            .with("patched", knob.patched.as_str())
            .with("source", knob.source.as_str())
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
        .with("section", claim.section.as_str())
        .with("quote", claim.quote.as_str())
        .with("computed", finding.computed)
        .with("verdict", finding.verdict.label())
        .with("why", claim.why.as_str())
        .with("source", claim.source.as_str())
}
