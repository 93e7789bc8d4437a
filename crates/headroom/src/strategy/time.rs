//! The commands `gpus` and `time`.

use super::super::answer::{Answer, Refusal, band};
use super::super::args::Args;
use super::super::what::Given;
use super::{of_step, span};
use headroom_advice::{self as strategy, SortBy};
use headroom_base::document::Document;
use headroom_core::estimate::Prediction;
use headroom_core::estimate::time::Range;
use headroom_scenario::Problem;

/// Every GPU of the catalogue.
pub(crate) fn gpus(given: &Given, args: &Args) -> Result<Answer, Refusal> {
    let by = args.option("by").unwrap_or("memory");
    let Some(by) = SortBy::from_id(by) else {
        let all: Vec<&str> = SortBy::ALL.iter().map(|(_, id)| *id).collect();
        return Err(Problem::unknown_choice("--by", by, &all).into());
    };
    let table = strategy::sort_gpus(strategy::gpus(given.scenario()), by);
    let mut text = format!(
        "{:<28} {:>10} {:>10}  {:<7} {:>11} {:>10}\n",
        "GPU", "usable", "needed", "fits", "micro-batch", "step"
    );
    let shown = |cell: Option<String>| cell.unwrap_or("?".into());
    let mut rows = Vec::new();
    for row in table {
        text.push_str(&format!(
            "{:<28} {:>10} {:>10}  {:<7} {:>11} {:>10}  {}\n",
            row.gpu.id,
            shown(row.usable.map(|bytes| bytes.to_string())),
            shown(row.device.map(|band| band.expected.to_string())),
            row.verdict.id(),
            row.micro_batch.map_or("-".into(), |size| size.to_string()),
            row.time
                .map_or("-".into(), |time| time.expected.to_string()),
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

/// The duration of a step.
pub(crate) fn time(given: &Given, _: &Args) -> Result<Answer, Refusal> {
    let time = Prediction::new(given.scenario().clone()).step_time()?;
    let mut text = format!("a step {}\n", of_step(&time));
    for (label, part) in [
        ("forward", time.forward),
        ("backward", time.backward),
        ("optimizer", time.optimizer),
        ("communication", time.communication),
        ("bubble", time.bubble),
    ] {
        if part.high.get() <= 0.0 && label == "bubble" {
            continue;
        }
        text.push_str(&format!(
            "  {label:<14} {:>9}  {} to {}\n",
            part.expected.to_string(),
            part.low,
            part.high
        ));
    }
    if let Some(sampling) = time.sampling {
        text.push_str(&format!(
            "vLLM's sampling, beside the step: at least {} ({} to {})\n",
            sampling.expected, sampling.low, sampling.high
        ));
    } else if given.scenario().training.task.objective.samples() {
        text.push_str("sampling the completions is not counted\n");
    }
    let rate = |label: &str, range: Range, text: &mut String| {
        text.push_str(&format!(
            "{label:<16} {:>9.1}  {:.1} to {:.1}\n",
            range.expected, range.low, range.high
        ));
    };
    rate("samples/s", time.samples_per_second, &mut text);
    if let Some(tokens) = time.tokens_per_second {
        rate("tokens/s", tokens, &mut text);
    }
    let percent = |share: f64| 100.0 * share;
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
                "  {label:<20} {:>5.1} % of the GPU's busy time\n",
                percent(share)
            ));
        }
    }
    if time.waiting > 0.0005 {
        text.push_str(&format!(
            "  the GPU waits {:.1} % of the step for kernel launches\n",
            percent(time.waiting)
        ));
    }
    let range = |range: Range| {
        Document::new()
            .with("low", range.low)
            .with("expected", range.expected)
            .with("high", range.high)
    };
    let document = Document::new()
        .with("seconds", span(time.step))
        .with("forward", span(time.forward))
        .with("backward", span(time.backward))
        .with("optimizer", span(time.optimizer))
        .with("communication", span(time.communication))
        .with("bubble", span(time.bubble))
        .with("sampling", time.sampling.map(span))
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
