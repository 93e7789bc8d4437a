//! Commands that say what to change: `ladder`, `moves`, `tiers`, `solve`, `search`, `gpus`, `time`, `accumulate`.

use super::args::Args;
use super::estimate::{band, verdict};
use super::{Answer, Refusal, what};
use crate::document::Document;
use crate::estimate::estimate as predict;
use crate::estimate::time::{Range, Span, StepTime, step_time};
use crate::scenario::{Problem, Scenario};
use crate::share;
use crate::strategy::{
    self, By, Cost, FOLKLORE, Goal, MOVES, Rule, Search, Slope, Step, Tally, Unknown,
};

/// The ladder: what to change so that it fits.
pub(super) fn ladder(args: &Args) -> Result<Answer, Refusal> {
    let ladder = strategy::ladder(&what::scenario(args)?, goal(args)?)?;
    let mut text = format!("as it is: {}\n", verdict(&ladder.start));
    if let Some(time) = &ladder.start_time {
        text.push_str(&format!("     a step {}\n", of_step(time)));
    }
    for it in &ladder.steps {
        text.push_str(&format!("then {}: {}\n", it.title, verdict(&it.estimate)));
        if let Some(time) = &it.time {
            text.push_str(&format!("     a step {}\n", of_step(time)));
        }
        let cost = it.cost.id();
        text.push_str(&format!(
            "     costs {cost}: speed: {} results: {}\n",
            it.speed, it.quality
        ));
        if !it.caveat.is_empty() {
            text.push_str(&format!("     note: {}\n", it.caveat));
        }
    }
    match ladder.steps.last() {
        _ if !ladder.fits => text.push_str("and nothing more that Headroom knows makes it fit\n"),
        Some(last) => text.push_str(&format!("#{}\n", share::write(&last.scenario))),
        None => {}
    }
    for other in &ladder.alternatives {
        text.push_str(&format!(
            "or: {}, a step {}: #{}\n",
            other.ids.join(", "),
            other.time.expected,
            share::write(&other.scenario)
        ));
    }
    if !ladder.exhaustive {
        text.push_str("(not every set of changes was tried: a shorter way may exist)\n");
    }
    let alternatives = ladder.alternatives.iter().map(|it| {
        let ids = it
            .ids
            .iter()
            .map(|id| (*id).to_string())
            .collect::<Vec<_>>();
        Document::new()
            .with("moves", ids)
            .with("allocated", it.peak)
            .with("seconds", span(it.time))
            .with("link", link(&it.scenario))
    });
    let document = Document::new()
        .with("device", band(ladder.start.device))
        .with(
            "seconds",
            ladder.start_time.as_ref().map(|it| span(it.step)),
        )
        .with(
            "steps",
            Document::List(ladder.steps.iter().map(step).collect()),
        )
        .with("alternatives", Document::List(alternatives.collect()))
        .with("exhaustive", ladder.exhaustive)
        .with("fits", ladder.fits);
    let mut answer = Answer::new(text, &document);
    answer.fits = ladder.fits;
    Ok(answer)
}

fn step(it: &Step) -> Document {
    Document::new()
        .with("id", it.id)
        .with("title", it.title.as_str())
        .with("cost", it.cost.id())
        .with("speed", it.speed)
        .with("quality", it.quality)
        .with("source", it.source)
        .with("caveat", it.caveat)
        .with("device", band(it.estimate.device))
        .with("seconds", it.time.as_ref().map(|it| span(it.step)))
        .with("fits", it.estimate.fits)
        .with("link", link(&it.scenario))
}

/// Every move and what it would do to this run, computed; and folklore.
pub(super) fn moves(args: &Args) -> Result<Answer, Refusal> {
    let scenario = what::scenario(args)?;
    let before = predict(&scenario)?;
    let mut text = format!("as it is: {}\n\n", verdict(&before));
    let mut rows = Vec::new();
    for it in MOVES {
        let mut row = Document::new()
            .with("id", it.id)
            .with("title", it.title)
            .with("what", it.what)
            .with("needs", it.needs)
            .with("cost", it.cost.id())
            .with("speed", it.speed)
            .with("quality", it.quality)
            .with("source", it.source)
            .with("caveat", it.caveat)
            .with("code", it.code)
            .with(
                "switches",
                it.switches
                    .iter()
                    .map(|(target, how)| (*target, (*how).into()))
                    .collect::<Document>(),
            );
        let effect = strategy::effect(&scenario, it)?;
        match &effect {
            Some(effect) => {
                let saved = 100.0 * effect.saved;
                let faster = effect.slower.map_or(String::new(), |slower| {
                    format!(", a step {:+.0} %", 100.0 * slower)
                });
                let word = if effect.saved < 0.0 { "adds" } else { "saves" };
                text.push_str(&format!(
                    "{:<24} {word} {:>5.1} % -> {}{faster}\n",
                    it.id,
                    saved.abs(),
                    effect.estimate.device.expected
                ));
                row = row
                    .with("saved", effect.saved)
                    .with("slower", effect.slower)
                    .with("device", band(effect.estimate.device))
                    .with("fits", effect.estimate.fits)
                    .with("link", link(&effect.scenario));
            }
            None => row = row.with("saved", Document::Null),
        }
        rows.push(row);
    }
    text.push_str("\nnot offered, because it does something else:\n");
    let mut folklore = Vec::new();
    for it in FOLKLORE {
        text.push_str(&format!("{}: {}\n", it.title, it.truth));
        folklore.push(
            Document::new()
                .with("id", it.id)
                .with("title", it.title)
                .with("claim", it.claim)
                .with("truth", it.truth)
                .with("source", it.source),
        );
    }
    let document = Document::new()
        .with("moves", Document::List(rows))
        .with("folklore", Document::List(folklore));
    Ok(Answer::new(text, &document))
}

/// Runs that fill the card to given parts.
pub(super) fn tiers(args: &Args) -> Result<Answer, Refusal> {
    let mut text = String::new();
    let mut rows = Vec::new();
    let mut fits = false;
    for it in strategy::tiers(&what::scenario(args)?)? {
        let id = it.tier.id();
        let target = 100.0 * it.tier.target();
        text.push_str(&format!("{id:<11} up to {target:.0} %: "));
        let moves: Vec<String> = it
            .ladder
            .iter()
            .flat_map(|ladder| &ladder.steps)
            .map(|step| step.id.to_string())
            .collect();
        match &it.scenario {
            Some(run) => {
                fits = true;
                text.push_str(&format!(
                    "micro-batch {} × {} accumulated, {}",
                    run.data.micro_batch,
                    run.training.accumulation,
                    verdict(&it.estimate)
                ));
                if let Some(time) = &it.time {
                    text.push_str(&format!(", a step {}", of_step(time)));
                }
                if !moves.is_empty() {
                    text.push_str(&format!("; with {}", moves.join(", ")));
                }
                text.push_str(&format!("\n            #{}\n", share::write(run)));
            }
            None => text.push_str("nothing that Headroom knows gets there\n"),
        }
        rows.push(
            Document::new()
                .with("tier", id)
                .with("target", it.tier.target())
                .with("about", it.tier.about())
                .with(
                    "micro_batch",
                    it.scenario.as_ref().map(|it| it.data.micro_batch),
                )
                .with(
                    "accumulation",
                    it.scenario.as_ref().map(|it| it.training.accumulation),
                )
                .with("moves", moves)
                .with("device", band(it.estimate.device))
                .with("seconds", it.time.as_ref().map(|it| span(it.step)))
                .with("link", it.scenario.as_ref().map(link)),
        );
    }
    let mut answer = Answer::new(text, &Document::new().with("tiers", Document::List(rows)));
    answer.fits = fits;
    Ok(answer)
}

/// The largest (or smallest) of something that fits.
pub(super) fn solve(args: &Args) -> Result<Answer, Refusal> {
    let scenario = what::scenario(args)?;
    let goal = goal(args)?;
    let name = args.option("for").unwrap_or("data.micro_batch");
    match name {
        "gpu" => return Ok(smallest_gpu(&scenario, goal)),
        "gpus" => {
            let found = strategy::fewest_gpus(&scenario, goal)?;
            let count = found.as_ref().map(|it| it.hardware.gpus);
            return Ok(run_found(
                "fewest GPUs",
                "gpus",
                count.map(u64::from),
                found,
            ));
        }
        "checkpointing" => {
            let found = strategy::checkpointing(&scenario, goal)?;
            let every = found.as_ref().map(|it| match it.training.checkpointing {
                crate::scenario::Checkpointing::None => 0,
                _ => it.training.checkpoint_every,
            });
            return Ok(run_found(
                "layers for each checkpointed one (0: none)",
                "checkpoint_every",
                every,
                found,
            ));
        }
        _ => {}
    }
    let Some(unknown) = Unknown::named(name, &scenario) else {
        let expected = "gpu, gpus, checkpointing, a whole number of the scenario, such as data.sequence, or a dimension of the model";
        return Err(Problem::new("--for", name, expected).into());
    };
    let multiple = number(args, "multiple", 1)?;
    let solved = strategy::solve(&scenario, &unknown, goal, multiple)?;
    let needs = verdict(&solved.estimate);
    let which = if solved.slope == Slope::Falling {
        "smallest"
    } else {
        "largest"
    };
    let mut text = match (solved.value, solved.slope) {
        (Some(_), Slope::Level) => format!("memory does not depend on {name}: {needs}\n"),
        (Some(value), _) => format!("{which} {name} {value}: {needs}\n"),
        (None, _) => format!("no {name} fits; the least {needs}\n"),
    };
    if let Some((value, next)) = &solved.next {
        text.push_str(&format!("{value} {}\n", verdict(next)));
    }
    text.push_str(&format!("#{}\n", share::write(&solved.scenario)));
    let document = Document::new()
        .with("for", name)
        .with("value", solved.value)
        .with("depends", solved.slope != Slope::Level)
        .with("device", band(solved.estimate.device))
        .with("fits", solved.value.is_some())
        .with("link", link(&solved.scenario));
    let mut answer = Answer::new(text, &document);
    answer.fits = solved.value.is_some();
    Ok(answer)
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
        None => "no GPU of the catalogue holds it\n".into(),
    };
    let document = Document::new()
        .with("for", "gpu")
        .with("value", found.as_ref().map(|(gpu, _)| gpu.id))
        .with("device", found.as_ref().map(|(_, it)| band(it.device)))
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

/// The fastest combination of moves that fits, and the front of memory against time.
pub(super) fn search(args: &Args) -> Result<Answer, Refusal> {
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
        None => "nothing that Headroom knows makes it fit\n".into(),
    };
    text.push_str("\nless memory for more time:\n");
    let mut rows = Vec::new();
    for it in &found.front {
        let fits = if it.fits { "" } else { "  does not fit" };
        text.push_str(&format!(
            "{:>10}  {:>8}  {}{fits}\n",
            it.estimate.device.expected.to_string(),
            it.time.expected.to_string(),
            of_candidate(it)
        ));
        let moves: Vec<String> = it.moves.iter().map(|it| it.id.to_string()).collect();
        rows.push(
            Document::new()
                .with("moves", moves)
                .with("micro_batch", it.scenario.data.micro_batch)
                .with("accumulation", it.scenario.training.accumulation)
                .with("device", band(it.estimate.device))
                .with("seconds", span(it.time))
                .with("fits", it.fits)
                .with("link", link(&it.scenario)),
        );
    }
    let Tally {
        space,
        estimates,
        sums,
        impossible,
        too_large,
        dominated,
        ..
    } = found.tally;
    text.push_str(&format!(
        "\n{space} combinations: {sums} added up from {estimates} estimates; {impossible} not possible together; {too_large} \
         left out because a smaller micro-batch already needs too much; {dominated} because something found is smaller and faster\n"
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
        .with("dominated", dominated);
    let mut answer = Answer::new(text, &document);
    answer.fits = found.best.is_some();
    Ok(answer)
}

fn of_candidate(it: &strategy::Candidate) -> String {
    let batch = format!(
        "micro-batch {} × {}",
        it.scenario.data.micro_batch, it.scenario.training.accumulation
    );
    let moves = it.moves.iter().map(|it| it.id.to_string());
    std::iter::once(batch)
        .chain(moves)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Every card of the catalogue.
pub(super) fn gpus(args: &Args) -> Result<Answer, Refusal> {
    let by = args.option("by").unwrap_or("memory");
    let Some(by) = By::from_id(by) else {
        let all: Vec<&str> = By::ALL.iter().map(|(_, id)| *id).collect();
        return Err(Problem::new("--by", by, format!("one of {}", all.join(", "))).into());
    };
    let table = strategy::sort_gpus(strategy::gpus(&what::scenario(args)?), by);
    let mut text = format!(
        "{:<28} {:>10} {:>10}  {:<7} {:>11} {:>10}\n",
        "GPU", "usable", "needed", "fits", "micro-batch", "step"
    );
    let shown = |it: Option<String>| it.unwrap_or("?".into());
    let mut rows = Vec::new();
    for row in table {
        text.push_str(&format!(
            "{:<28} {:>10} {:>10}  {:<7} {:>11} {:>10}  {}\n",
            row.gpu.id,
            shown(row.usable.map(|it| it.to_string())),
            shown(row.device.map(|it| it.expected.to_string())),
            row.verdict.id(),
            row.micro_batch.map_or("-".into(), |it| it.to_string()),
            row.time.map_or("-".into(), |it| it.expected.to_string()),
            row.problem
        ));
        rows.push(
            Document::new()
                .with("gpu", row.gpu.id)
                .with("name", row.gpu.name)
                .with("usable", row.usable)
                .with("device", row.device.map(band))
                .with("verdict", row.verdict.id())
                .with("micro_batch", row.micro_batch)
                .with("seconds", row.time.map(span))
                .with("problem", row.problem),
        );
    }
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let text = lines.join("\n") + "\n";
    Ok(Answer::new(
        text,
        &Document::new().with("gpus", Document::List(rows)),
    ))
}

/// How long a step takes.
pub(super) fn time(args: &Args) -> Result<Answer, Refusal> {
    let time = step_time(&what::scenario(args)?)?;
    let mut text = format!("a step {}\n", of_step(&time));
    for (label, part) in [
        ("forward", time.forward),
        ("backward", time.backward),
        ("optimizer", time.optimizer),
        ("communication", time.communication),
    ] {
        text.push_str(&format!(
            "  {label:<14} {:>9}  {} to {}\n",
            part.expected.to_string(),
            part.low,
            part.high
        ));
    }
    let rate = |label: &str, it: Range, text: &mut String| {
        text.push_str(&format!(
            "{label:<16} {:>9.1}  {:.1} to {:.1}\n",
            it.expected, it.low, it.high
        ));
    };
    rate("samples/s", time.samples_per_second, &mut text);
    if let Some(tokens) = time.tokens_per_second {
        rate("tokens/s", tokens, &mut text);
    }
    let percent = |it: f64| 100.0 * it;
    let mfu = time.utilization;
    text.push_str(&format!(
        "{:<16} {:>7.1} %  {:.1} % to {:.1} % of the data sheet's rate\n",
        "utilization",
        percent(mfu.expected),
        percent(mfu.low),
        percent(mfu.high)
    ));
    let spent = time.spent;
    for (label, share) in [
        ("matrix products", spent.products),
        ("attention", spent.attention),
        ("convolutions", spent.convolutions),
        ("memory traffic", spent.traffic),
        ("the host", spent.host),
    ] {
        if share > 0.0005 {
            text.push_str(&format!(
                "  {label:<20} {:>5.1} % of the card's busy time\n",
                percent(share)
            ));
        }
    }
    if time.waiting > 0.0005 {
        text.push_str(&format!(
            "  the card waits {:.1} % of the step for the program's next launch\n",
            percent(time.waiting)
        ));
    }
    let range = |it: Range| {
        Document::new()
            .with("low", it.low)
            .with("expected", it.expected)
            .with("high", it.high)
    };
    let document = Document::new()
        .with("seconds", span(time.step))
        .with("forward", span(time.forward))
        .with("backward", span(time.backward))
        .with("optimizer", span(time.optimizer))
        .with("communication", span(time.communication))
        .with("samples_per_second", range(time.samples_per_second))
        .with("tokens_per_second", time.tokens_per_second.map(range))
        .with("utilization", range(mfu))
        .with("model_flops", time.model_flops.get())
        .with(
            "spent",
            Document::new()
                .with("products", spent.products)
                .with("attention", spent.attention)
                .with("convolutions", spent.convolutions)
                .with("traffic", spent.traffic)
                .with("host", spent.host),
        )
        .with("waiting", time.waiting);
    Ok(Answer::new(text, &document))
}

/// The micro-batch and accumulation for a wanted batch, whether they train alike, and the learning rate for it.
pub(super) fn accumulate(args: &Args) -> Result<Answer, Refusal> {
    let scenario = what::scenario(args)?;
    let present = scenario.effective_batch();
    let wanted = number(
        args,
        "batch",
        if scenario.data.global_batch > 0 {
            scenario.data.global_batch
        } else {
            present
        },
    )?;
    let found = strategy::accumulate(&scenario, wanted, goal(args)?)?;
    let mut text = match &found.scenario {
        Some(run) => format!(
            "{}{}\n#{}\n",
            run.batch(),
            if found.is_exact() {
                String::new()
            } else {
                format!(", the nearest to {wanted}")
            },
            share::write(run)
        ),
        None => "not one sample fits\n".into(),
    };
    let mut checks = Vec::new();
    if let Some(run) = found
        .scenario
        .as_ref()
        .filter(|it| it.training.accumulation > 1)
    {
        text.push_str("\nagainst one large batch:\n");
        for it in strategy::accumulation(run)? {
            text.push_str(&format!("- {} {}: {}\n", it.id, it.equal.id(), it.says));
            checks.push(
                Document::new()
                    .with("id", it.id)
                    .with("equal", it.equal.id())
                    .with("says", it.says)
                    .with("source", it.source),
            );
        }
    }
    let rule = match args.option("rule") {
        None => None,
        Some(id) => Some(
            Rule::from_id(id).ok_or_else(|| Problem::new("--rule", id, "linear, sqrt or none"))?,
        ),
    };
    let rate = match args.option("rate") {
        None => None,
        Some(text) => Some(
            text.parse::<f64>()
                .ok()
                .filter(|it| it.is_finite() && *it > 0.0)
                .ok_or_else(|| Problem::new("--rate", text, "a learning rate, such as 3e-4"))?,
        ),
    };
    let samples = found.samples.max(1);
    let scaled = rate.map(|rate| {
        strategy::scaled(
            rate,
            [0.9, 0.999],
            (present, samples),
            scenario.training.optimizer,
            rule,
        )
    });
    if let Some(it) = &scaled {
        let (about, source) = it.rule.about();
        text.push_str(&format!(
            "\nlearning rate {:.3e} by the {} rule for {present} -> {samples} samples\n{about} ({source})\n",
            it.rate, it.rule.id()
        ));
        if !it.is_usual {
            text.push_str("This is not the rule for this optimizer.\n");
        }
        if it.far {
            text.push_str("The batch changes by more than eight times: find the rate anew.\n");
        }
        for (program, does, source) in strategy::PROGRAMS {
            text.push_str(&format!("- {program}: {does} ({source})\n"));
        }
    }
    let document = Document::new()
        .with("wanted", wanted)
        .with("samples", found.samples)
        .with("exact", found.is_exact())
        .with(
            "micro_batch",
            found.scenario.as_ref().map(|it| it.data.micro_batch),
        )
        .with(
            "accumulation",
            found.scenario.as_ref().map(|it| it.training.accumulation),
        )
        .with("checks", Document::List(checks))
        .with("rule", scaled.as_ref().map(|it| it.rule.id()))
        .with("rate", scaled.as_ref().map(|it| it.rate))
        .with("link", found.scenario.as_ref().map(link));
    let mut answer = Answer::new(text, &document);
    answer.fits = found.scenario.is_some();
    Ok(answer)
}

/// What must stay free: `--margin 10` is ten percent of the usable memory.
fn goal(args: &Args) -> Result<Goal, Refusal> {
    let Some(text) = args.option("margin") else {
        return Ok(Goal::default());
    };
    let percent = text.trim_end_matches('%').trim().parse::<f64>().ok();
    match percent.filter(|it| (0.0..=95.0).contains(it)) {
        Some(percent) => Ok(Goal::with_margin(percent / 100.0)),
        None => Err(Problem::new("--margin", text, "percent from 0 to 95").into()),
    }
}

fn number(args: &Args, name: &str, default: u64) -> Result<u64, Refusal> {
    let Some(text) = args.option(name) else {
        return Ok(default);
    };
    let value = text
        .parse::<u64>()
        .ok()
        .filter(|it| (1..=1_000_000_000).contains(it));
    value.ok_or_else(|| {
        Problem::new(
            format!("--{name}"),
            text,
            "a whole number from 1 to 1000000000",
        )
        .into()
    })
}

fn link(scenario: &Scenario) -> String {
    format!("#{}", share::write(scenario))
}

fn span(it: Span) -> Document {
    Document::new()
        .with("low", it.low.get())
        .with("expected", it.expected.get())
        .with("high", it.high.get())
}

/// "takes 1.20 s (0.90 s to 2.00 s), 13.7 samples/s".
fn of_step(time: &StepTime) -> String {
    let Span {
        low,
        expected,
        high,
    } = time.step;
    format!(
        "takes {expected} ({low} to {high}), {:.1} samples/s",
        time.samples_per_second.expected
    )
}
