//! `check`: one line of verdict for continuous integration.

use super::answer::{Answer, Refusal, band};
use super::args::Args;
use super::drawing::Drawing;
use super::estimate::verdict;
use super::{input, terminal, what};
use headroom_base::document::Document;
use headroom_core::estimate::{Estimate, Prediction};
use headroom_scenario::{resolve, share};

/// Exits with 0 where the run fits, 1 where it does not, 2 where that cannot be said.
pub(super) fn check(args: &Args) -> Result<Answer, Refusal> {
    if args.has("each") {
        return Ok(each(args));
    }
    let Checked {
        text,
        document,
        estimate,
    } = run(&args.words, args)?;
    let mut answer = Answer::new(text, &document);
    answer.fits = estimate.fits != Some(false);
    answer.drawing = Some(Drawing::of(&estimate));
    Ok(answer)
}

/// Every file by itself, for a hook that is given whatever was changed.
fn each(args: &Args) -> Answer {
    let mut text = String::new();
    let mut rows = Vec::new();
    let mut notes = Vec::new();
    let (mut fits, mut undecided) = (true, false);
    for word in &args.words {
        let words = std::slice::from_ref(word);
        if says_nothing(words) {
            notes.push(format!("{word}: left out: it says nothing about training"));
            continue;
        }
        let row = Document::new().with("file", word.as_str());
        match run(words, args) {
            Ok(checked) => {
                fits &= checked.estimate.fits != Some(false);
                text.push_str(&checked.text);
                rows.push(row.and(checked.document));
            }
            Err(Refusal(lines)) => {
                undecided = true;
                let said = lines.iter().map(|line| terminal::line(line));
                let said = said.collect::<Vec<_>>().join("; ");
                text.push_str(&format!("{}: cannot say: {said}\n", terminal::line(word)));
                let lines = lines.iter().map(|line| Document::from(line.as_str()));
                rows.push(row.with("errors", Document::List(lines.collect())));
            }
        }
    }
    let mut answer = Answer::new(text, &Document::new().with("runs", Document::List(rows)));
    answer.notes = notes;
    answer.fits = fits;
    answer.undecided = undecided;
    answer
}

fn says_nothing(words: &[String]) -> bool {
    input::load(words).is_ok_and(|input| {
        let blank = |facts: &headroom_reader::facts::Facts| !facts.says_something();
        input.refused.is_some() || input.facts.as_ref().is_some_and(blank)
    })
}

struct Checked {
    text: String,
    document: Document,
    estimate: Estimate,
}

fn run(words: &[String], args: &Args) -> Result<Checked, Refusal> {
    let given = what::of(words, args)?;
    let prediction = Prediction::new(given.resolved.scenario.clone());
    let estimate = prediction.estimate()?;
    if estimate.fits.is_none() {
        let why = "cannot say: the GPU's memory is unknown; give --gpu or --memory";
        return Err(Refusal(vec![why.into()]));
    }
    let said = verdict(estimate);
    let mut text = format!("{}: {said}\n", terminal::line(&words.join(" ")));
    text.push_str(&given.said());
    let document = Document::new()
        .with("fits", estimate.fits)
        .with("verdict", said)
        .with("link", format!("#{}", share::write(prediction.scenario())))
        .with("device", band(estimate.device))
        .with("usable", estimate.usable)
        .with("assumed", resolve::in_words(&given.resolved))
        .with("notes", given.notes)
        .with("not_modelled", given.not_modelled)
        .with("unread", given.unread);
    Ok(Checked {
        text,
        document,
        estimate: estimate.clone(),
    })
}
