//! The command `solve`.

use super::super::answer::{Answer, Refusal, band};
use super::super::args::Args;
use super::super::estimate::verdict;
use super::super::what::Given;
use super::{goal, link, number};
use headroom_advice::{self as strategy, Goal, Slope, SolveFor};
use headroom_base::document::Document;
use headroom_catalog as catalog;
use headroom_scenario::share;
use headroom_scenario::{Case, Checkpointing, Problem, Scenario};

/// The largest (or smallest) value that fits.
pub(crate) fn solve(given: &Given, args: &Args) -> Result<Answer, Refusal> {
    let scenario = given.scenario();
    let goal = goal(args)?;
    let name = args.option("for").unwrap_or("data.micro_batch");
    match name {
        "gpu" => return Ok(smallest_gpu(scenario, goal)),
        "gpus" => {
            let found = strategy::fewest_gpus(scenario, goal)?;
            let count = found.as_ref().map(|run| run.hardware.gpus);
            return Ok(run_found(
                "fewest GPUs",
                "gpus",
                count.map(u64::from),
                found,
            ));
        }
        "checkpointing" => {
            let found = strategy::checkpointing(scenario, goal)?;
            let every = found.as_ref().map(|run| match run.training.checkpointing {
                Checkpointing::None => 0,
                _ => run.training.checkpoint_every,
            });
            return Ok(run_found(
                "layers per checkpointed one (0: none)",
                "checkpoint_every",
                every,
                found,
            ));
        }
        _ => {}
    }
    let Some(unknown) = SolveFor::named(name, scenario) else {
        let expected = format!(
            "gpu, gpus, checkpointing, an integer field of the scenario such as data.sequence, or a dimension of the model: {}",
            dimensions(scenario).join(", ")
        );
        return Err(Problem::new("--for", name, expected).into());
    };
    let multiple = number(args, "multiple", 1)?;
    let solved = strategy::solve(scenario, &unknown, goal, multiple)?;
    let needs = verdict(&solved.estimate);
    let which = if solved.slope == Slope::Falling {
        "smallest"
    } else {
        "largest"
    };
    let mut text = match (solved.value, solved.slope) {
        (Some(_), Slope::Level) => format!("memory does not depend on {name}: {needs}\n"),
        (Some(value), _) => format!("{which} {name} {value}: {needs}\n"),
        (None, _) => format!("no {name} fits; at best it {needs}\n"),
    };
    if let Some(value) = solved.value.filter(|_| solved.saturated) {
        text.push_str(&format!(
            "beyond {name} {value} nothing changes: the network does not use more\n"
        ));
    }
    if let Some((value, next)) = &solved.next {
        text.push_str(&format!("{value} {}\n", verdict(next)));
    }
    text.push_str(&format!("#{}\n", share::write(&solved.scenario)));
    let document = Document::new()
        .with("for", name)
        .with("value", solved.value)
        .with("depends", solved.slope != Slope::Level)
        .with("saturated", solved.saturated)
        .with("device", band(solved.estimate.device))
        .with("fits", solved.value.is_some())
        .with("link", link(&solved.scenario));
    let mut answer = Answer::new(text, &document);
    answer.fits = solved.value.is_some();
    Ok(answer)
}

/// The dimensions of the scenario's network.
fn dimensions(scenario: &Scenario) -> Vec<&str> {
    if let Some(network) = &scenario.model.network {
        return network.sizes();
    }
    let sizes = Case::of(scenario).model.map(catalog::ModelEntry::sizes);
    let names = sizes.unwrap_or_default().into_iter();
    names.map(|(name, _)| name).collect()
}

fn smallest_gpu(scenario: &Scenario, goal: Goal) -> Answer {
    let found = strategy::smallest_gpu(scenario, goal);
    let text = match &found {
        Some((gpu, estimate)) => format!(
            "smallest GPU {} ({}): {}\n",
            gpu.id,
            gpu.name,
            verdict(estimate)
        ),
        None => "no GPU in the catalogue fits it\n".into(),
    };
    let document = Document::new()
        .with("for", "gpu")
        .with("value", found.as_ref().map(|(gpu, _)| gpu.id))
        .with(
            "device",
            found.as_ref().map(|(_, estimate)| band(estimate.device)),
        )
        .with("fits", found.is_some());
    let mut answer = Answer::new(text, &document);
    answer.fits = found.is_some();
    answer
}

fn run_found(title: &str, name: &str, value: Option<u64>, found: Option<Scenario>) -> Answer {
    let text = match (value, &found) {
        (Some(value), Some(run)) => format!("{title} {value}\n#{}\n", share::write(run)),
        _ => format!("{title}: nothing fits\n"),
    };
    let document = Document::new()
        .with("for", name)
        .with("value", value)
        .with("fits", found.is_some())
        .with("link", found.as_ref().map(link));
    let mut answer = Answer::new(text, &document);
    answer.fits = found.is_some();
    answer
}
