//! `check`: one line of verdict for continuous integration.

use super::answer::{Answer, Refusal};
use super::args::Args;
use super::estimate::verdict;
use super::what;
use headroom_base::document::Document;
use headroom_core::estimate::Prediction;
use headroom_scenario::resolve;

/// Exits with 0 where the run fits, 1 where it does not, 2 where that cannot be said.
pub(super) fn check(args: &Args) -> Result<Answer, Refusal> {
    let given = what::resolved(args)?;
    let prediction = Prediction::new(given.resolved.scenario.clone());
    let estimate = prediction.estimate()?;
    if estimate.fits.is_none() {
        let why =
            "cannot say: the GPU's memory is unknown; give --gpu, or --set hardware.memory_mib=…";
        return Err(Refusal(vec![why.into()]));
    }
    let mut text = format!("{}: {}\n", args.words.join(" "), verdict(estimate));
    let assumed = resolve::in_words(&given.resolved);
    if let Some(assumed) = &assumed {
        text.push_str(&format!("assuming {assumed}\n"));
    }
    for line in &given.not_modelled {
        text.push_str(&format!("not modelled: {line}\n"));
    }
    if !given.unread.is_empty() {
        text.push_str(&format!("not read: {}\n", given.unread.join(", ")));
    }
    let document = Document::new()
        .with("fits", estimate.fits)
        .with("device", super::answer::band(estimate.device))
        .with("usable", estimate.usable)
        .with("assumed", assumed)
        .with("not_modelled", given.not_modelled)
        .with("unread", given.unread);
    let mut answer = Answer::new(text, &document);
    answer.fits = estimate.fits != Some(false);
    Ok(answer)
}
