//! The search.

use super::super::answer::{Answer, Refusal, band};
use super::super::args::Args;
use super::super::estimate::verdict;
use super::super::what;
use super::{goal, link, span};
use headroom_advice::{self as strategy, Cost, Search, Tally};
use headroom_base::document::Document;
use headroom_scenario::Problem;
use headroom_scenario::share;

/// The fastest combination of moves that fits, and the front of memory against time.
pub(crate) fn search(args: &Args) -> Result<Answer, Refusal> {
    let scenario = what::scenario(args)?;
    let most = match args.option("cost") {
        None | Some("time") => Cost::Time,
        Some("free") => Cost::Free,
        Some("results") => Cost::Results,
        Some(other) => return Err(Problem::new("--cost", other, "free, time or results").into()),
    };
    let found = Search::new(&scenario, goal(args)?, most)?.finish()?;
    let mut text = match &found.best {
        Some(best) => format!(
            "fastest that fits: {}; a step {} ({} to {}), {}\n#{}\n",
            of_candidate(best),
            best.time.expected,
            best.time.low,
            best.time.high,
            verdict(&best.estimate),
            share::write(&best.scenario)
        ),
        None if most < Cost::Results => {
            "no change that leaves the results as they are makes it fit; \
             --cost results looks at the others too\n"
                .into()
        }
        None => "nothing that Headroom knows makes it fit\n".into(),
    };
    text.push_str("\nless memory for more time:\n");
    let mut rows = Vec::new();
    for candidate in &found.front {
        let fits = if candidate.fits { "" } else { "  does not fit" };
        text.push_str(&format!(
            "{:>10}  {:>8}  {}{fits}\n",
            candidate.estimate.device.expected.to_string(),
            candidate.time.expected.to_string(),
            of_candidate(candidate)
        ));
        let moves: Vec<String> = candidate
            .moves
            .iter()
            .map(|change| change.id.to_string())
            .collect();
        rows.push(
            Document::new()
                .with("moves", moves)
                .with("micro_batch", candidate.scenario.data.micro_batch)
                .with("accumulation", candidate.scenario.training.accumulation)
                .with("device", band(candidate.estimate.device))
                .with("seconds", span(candidate.time))
                .with("fits", candidate.fits)
                .with("link", link(&candidate.scenario)),
        );
    }
    let Tally {
        space,
        estimates,
        sums,
        impossible,
        too_large,
        dominated,
        outdone,
        ..
    } = found.tally;
    text.push_str(&format!(
        "\n{space} combinations: {sums} added up from {estimates} estimates; {impossible} not possible together; {too_large} \
         left out because a smaller micro-batch already needs too much; {dominated} because something found is smaller and faster; \
         {outdone} because they leave out a move that never needs more memory or time\n"
    ));
    let document = Document::new()
        .with(
            "best",
            rows.iter()
                .find(|row| row.get("fits") == Some(&Document::Bool(true)))
                .cloned(),
        )
        .with("front", Document::List(rows.clone()))
        .with("space", space)
        .with("estimates", estimates)
        .with("sums", sums)
        .with("impossible", impossible)
        .with("too_large", too_large)
        .with("dominated", dominated)
        .with("outdone", outdone);
    let mut answer = Answer::new(text, &document);
    answer.fits = found.best.is_some();
    Ok(answer)
}

fn of_candidate(candidate: &strategy::Candidate) -> String {
    let batch = format!(
        "micro-batch {} × {}",
        candidate.scenario.data.micro_batch, candidate.scenario.training.accumulation
    );
    let moves = candidate.moves.iter().map(|change| change.id.to_string());
    std::iter::once(batch)
        .chain(moves)
        .collect::<Vec<_>>()
        .join(", ")
}
