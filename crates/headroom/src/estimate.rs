//! Commands that predict: `estimate` and `fit`.

use std::num::NonZero;

use super::answer::{Answer, Refusal, band, name};
use super::args::Args;
use super::drawing::Drawing;
use super::what::Given;
use super::{ranks, what};
use headroom_advice as strategy;
use headroom_base::document::Document;
use headroom_base::units::Bytes;
use headroom_core::estimate::{Band, Disk, Doubt, Estimate, Fit, Host, Prediction, SmallestCard};
use headroom_scenario::resolve::{self, Assumption, StackDefault};
use headroom_scenario::{Resolved, Scenario, share};

pub(super) fn estimate(args: &Args) -> Result<Answer, Refusal> {
    let given = what::resolved(args)?;
    let resolved = &given.resolved;
    let prediction = Prediction::new(resolved.scenario.clone());
    let scenario = prediction.scenario();
    let estimate = prediction.estimate()?;
    let card = prediction.smallest_card()?;
    let warnings = what::warnings(&prediction);
    let document = document(estimate, &given.not_modelled)
        .with("model", scenario.model.id.as_str())
        .with("gpu", scenario.hardware.gpu.as_str())
        .with("gpus", u64::from(scenario.hardware.gpus))
        .with("verdict", estimate.fit().map(Fit::label))
        .with("link", format!("#{}", share::write(scenario)))
        .with("smallest_card", card.as_ref().map(of_card))
        .with("host", of_host(&estimate.host))
        .with("disk", of_disk(&estimate.disk))
        .with("batch", batch(scenario))
        .with("assumptions", assumptions(resolved))
        .with("defaults", defaults(scenario))
        .with("unread", given.unread.clone())
        .with("notes", given.notes.clone())
        .with("warnings", warnings.clone());
    let ranks = prediction.ranks()?;
    let document = ranks::in_document(document, scenario, ranks);
    let mut text = text(resolved, estimate, card.as_ref());
    text.push_str(&ranks::table(scenario, ranks));
    let typical = prediction.typical()?;
    if let Some(typical) = typical {
        text.push_str(&format!(
            "samples vary: the figures above are for the largest batch, which decides; a typical one {}\n",
            verdict(typical)
        ));
    }
    text.push_str(&grows(estimate));
    text.push_str(&given.left_out());
    let document = document.with("typical", typical.map(|typical| band(typical.device)));
    let mut answer = Answer::new(text, &document);
    answer.fits = estimate.fits != Some(false);
    answer.drawing = Some(Drawing::of(estimate));
    answer.notes = warnings;
    Ok(answer)
}

pub(super) fn fit(given: &Given, _: &Args) -> Result<Answer, Refusal> {
    let fit = strategy::largest_batch(given.scenario())?;
    let micro_batch = fit
        .scenario
        .as_ref()
        .map(|fitting| fitting.data.micro_batch);
    let needs = verdict(&fit.estimate);
    let mut text = match micro_batch {
        Some(size) => format!("largest micro-batch {size}: {needs}\n"),
        None => format!("no micro-batch fits; one sample {needs}\n"),
    };
    if let Some(next) = &fit.next {
        text.push_str(&format!("with one more sample it {}\n", verdict(next)));
    }
    let document = Document::new()
        .with("micro_batch", micro_batch)
        .with("estimate", document(&fit.estimate, &[]))
        .with("next", fit.next.as_ref().map(|next| document(next, &[])));
    let mut answer = Answer::new(text, &document);
    answer.fits = micro_batch.is_some();
    answer.drawing = Some(Drawing::of(&fit.estimate));
    Ok(answer)
}

/// The estimate as documented JSON; bytes are integers.
fn document(estimate: &Estimate, not_modelled: &[String]) -> Document {
    let not_modelled: Vec<String> = estimate
        .not_modelled
        .iter()
        .map(ToString::to_string)
        .chain(not_modelled.iter().cloned())
        .collect();
    let breakdown = estimate
        .breakdown
        .iter()
        .map(|part| (name(part.what), part.bytes.into()));
    let phases = estimate
        .phases
        .iter()
        .map(|part| (name(part.what), part.bytes.into()));
    let modules = estimate
        .modules
        .iter()
        .map(|part| (part.what.clone(), part.bytes.into()));
    Document::new()
        .with("allocated", band(estimate.allocated))
        .with("reserved", band(estimate.reserved))
        .with("device", band(estimate.device))
        .with("phase", name(estimate.phase))
        .with("phases", phases.collect::<Document>())
        .with("breakdown", breakdown.collect::<Document>())
        .with("modules", modules.collect::<Document>())
        .with("static", estimate.between_steps)
        .with("forward_end", estimate.forward_end)
        .with("parameters", estimate.parameters)
        .with("trainable", estimate.trainable)
        .with("flops", estimate.flops.get())
        .with("usable", estimate.usable)
        .with("fits", estimate.fits)
        .with("growth", estimate.growth)
        .with("full_in_epoch", estimate.full_in_epoch)
        .with(
            "doubts",
            Document::List(estimate.doubts.iter().map(of_doubt).collect()),
        )
        .with("not_modelled", not_modelled)
}

fn of_card(card: &SmallestCard) -> Document {
    Document::new()
        .with("allocator", card.allocator)
        .with("usable", card.usable)
        .with("runs", card.runs)
}

fn of_host(host: &Host) -> Document {
    let part = |part: &headroom_core::estimate::HostPart| {
        let (_, why, source) = part.what.describe();
        band(part.bytes)
            .with("what", name(part.what))
            .with("why", why)
            .with("source", source)
    };
    Document::new()
        .with("processes", host.processes)
        .with("total", band(host.total))
        .with(
            "parts",
            Document::List(host.parts.iter().map(part).collect()),
        )
}

fn of_disk(disk: &Disk) -> Document {
    let parts = disk.parts.iter();
    let parts = parts.map(|part| (name(part.what), part.bytes.into()));
    Document::new()
        .with("checkpoint", disk.checkpoint)
        .with("parts", parts.collect::<Document>())
        .with("count", disk.count)
        .with("total", disk.total)
}

/// The factors of the effective batch, and its difference from the wanted one.
fn batch(scenario: &Scenario) -> Document {
    let batch = scenario.batch();
    Document::new()
        .with("micro_batch", batch.micro_batch)
        .with("accumulation", batch.accumulation)
        .with("replicas", batch.replicas)
        .with("effective", batch.samples())
        .with("wanted", batch.wanted)
        .with("difference", batch.difference())
        .with("nearest_accumulation", batch.nearest_accumulation())
}

/// One source of uncertainty.
fn of_doubt(doubt: &Doubt) -> Document {
    Document::new()
        .with("about", doubt.about)
        .with("below", doubt.below)
        .with("above", doubt.above)
        .with("settled_by", doubt.settled_by)
}

/// The values that nobody gave, and their sources.
fn assumptions(resolved: &Resolved) -> Document {
    let row = |assumption: Assumption| {
        Document::new()
            .with("setting", assumption.setting.path)
            .with("value", assumption.value.to_string())
            .with("origin", assumption.origin.to_string())
    };
    let all = resolve::assumptions(resolved).into_iter();
    Document::List(all.map(row).collect())
}

/// Defaults of the software stack, in effect or not.
fn defaults(scenario: &Scenario) -> Document {
    let row = |default: &StackDefault| {
        let sources: Vec<String> = default.fact.sources().map(String::from).collect();
        Document::new()
            .with("field", default.setting.path)
            .with("value", default.value.to_string())
            .with("from", default.library.to_string())
            .with("holds", default.in_effect)
            .with("sources", sources)
            .with("note", default.fact.note)
    };
    let all = resolve::stack_defaults(scenario);
    Document::List(all.iter().map(row).collect())
}

fn text(resolved: &Resolved, estimate: &Estimate, card: Option<&SmallestCard>) -> String {
    let scenario = &resolved.scenario;
    let Scenario {
        hardware, model, ..
    } = scenario;
    let mut text = format!(
        "{} on {} × {}: {}\n",
        model.id,
        hardware.gpus,
        hardware.gpu,
        verdict(estimate)
    );
    if let Some(assumed) = resolve::in_words(resolved) {
        text.push_str(&format!("assuming {assumed}\n"));
    }
    text.push('\n');
    let rows = [
        (
            "allocated",
            estimate.allocated,
            "torch.cuda.max_memory_allocated",
        ),
        (
            "reserved",
            estimate.reserved,
            "torch.cuda.max_memory_reserved",
        ),
        ("device", estimate.device, "nvidia-smi"),
    ];
    for (label, band, meaning) in rows {
        let shown = band.expected.to_string();
        let around = format!("{} to {}", band.low, band.high);
        text.push_str(&format!(
            "{label:<10} {shown:>10}  {around:<24} {meaning}\n"
        ));
    }
    if let Some(card) = card {
        text.push_str(&format!(
            "{:<10} {:>10}  {:<24} usable memory of the smallest GPU on which the steps run\n",
            "card",
            card.usable.to_string(),
            format!("{} for torch", card.allocator)
        ));
        // Growth does not show in the first steps.
        let grows = estimate.growth > Bytes::ZERO;
        if card.runs == Some(true) && estimate.fits == Some(false) && !grows {
            text.push_str(
                "the steps still run on this GPU: when cudaMalloc fails, the allocator frees its cache and retries, which \
                 stops the card each time\n",
            );
        }
    }
    text.push_str(&corrected(scenario));
    let phases: Vec<String> = estimate
        .phases
        .iter()
        .map(|part| format!("{} {}", name(part.what), part.bytes))
        .collect();
    text.push_str(&format!(
        "\nthe peak is in {}; between steps {}\npeaks: {}\n",
        name(estimate.phase),
        estimate.between_steps,
        phases.join(", ")
    ));
    for part in &estimate.breakdown {
        let share =
            100.0 * part.bytes.get() as f64 / estimate.allocated.expected.get().max(1) as f64;
        let label = name(part.what).replace('-', " ");
        let shown = part.bytes.to_string();
        text.push_str(&format!("  {label:<24} {shown:>10}  {share:>5.1} %\n"));
    }
    text.push_str(&format!(
        "\neffective batch (micro-batch × accumulation × replicas): {}\n",
        scenario.batch()
    ));
    text.push_str(&host_and_disk(scenario, estimate));
    if let Some(usable) = estimate
        .usable
        .filter(|usable| estimate.device.low <= *usable && *usable < estimate.device.high)
    {
        text.push_str(&format!(
            "\nthe range extends beyond the GPU's {usable}; sources of uncertainty:\n"
        ));
    } else if !estimate.doubts.is_empty() {
        text.push_str("\nsources of uncertainty:\n");
    }
    for doubt in &estimate.doubts {
        let Doubt {
            about,
            below,
            above,
            settled_by,
        } = doubt;
        text.push_str(&format!(
            "  -{below} +{above}  {about}; to narrow: {settled_by}\n"
        ));
    }
    for missing in &estimate.not_modelled {
        text.push_str(&format!("not modelled: {missing}\n"));
    }
    text
}

/// Measured corrections that are included.
fn corrected(scenario: &Scenario) -> String {
    let runtime = &scenario.runtime;
    let parts = [
        (
            "outside",
            runtime.outside_mib.map_or(0, NonZero::get),
            "outside PyTorch",
        ),
        ("kept", runtime.kept_mib, "kept beyond the prediction"),
    ];
    let set = parts.iter().filter(|(_, mib, _)| *mib > 0);
    let (mut said, mut back) = (Vec::new(), Vec::new());
    for (key, mib, what) in set {
        said.push(format!("{} {what}", Bytes::mib(*mib)));
        back.push(format!("--set {key}=0"));
    }
    if said.is_empty() {
        return String::new();
    }
    let (said, back) = (said.join(", "), back.join(" "));
    format!("includes measured memory: {said} (to remove: {back})\n")
}

/// Memory that evaluations leave behind, and the epoch in which that fills the GPU.
pub(super) fn grows(estimate: &Estimate) -> String {
    match estimate.full_in_epoch {
        Some(epoch) => format!(
            "metrics that are never reset keep part of every evaluation: the GPU is full in epoch {epoch}\n"
        ),
        None if estimate.growth > Bytes::ZERO => format!(
            "metrics that are never reset keep {} by the end of the run\n",
            estimate.growth
        ),
        None => String::new(),
    }
}

/// Host memory and disk.
fn host_and_disk(scenario: &Scenario, estimate: &Estimate) -> String {
    let Host {
        processes,
        parts,
        total,
    } = &estimate.host;
    let of = match processes {
        1 => String::new(),
        many => format!(" ({many} processes per machine)"),
    };
    let mut text = format!(
        "\nhost memory, without Python itself{of}: {} ({} to {})\n",
        total.expected, total.low, total.high
    );
    for part in parts {
        let (label, why, source) = part.what.describe();
        let shown = part.bytes.expected.to_string();
        text.push_str(&format!("  {label:<24} {shown:>10}  {why} [{source}]\n"));
    }
    let disk = &estimate.disk;
    if disk.checkpoint == Bytes::ZERO {
        return text;
    }
    let parts: Vec<String> = disk
        .parts
        .iter()
        .map(|part| format!("{} {}", name(part.what).replace('-', " "), part.bytes))
        .collect();
    text.push_str(&format!(
        "disk: {} per checkpoint ({}), {}\n",
        disk.checkpoint,
        parts.join(", "),
        Disk::format(scenario.stack.trainer, scenario.training.lora.is_some())
    ));
    text.push_str(&match (disk.count, disk.total) {
        (Some(count), Some(total)) if scenario.runtime.save_keep.is_some() => {
            format!("disk: {count} at once while the next is written: {total}\n")
        }
        (Some(count), Some(total)) => {
            format!("disk: all checkpoints are kept, {count} per epoch: {total}\n")
        }
        _ => "disk: all checkpoints are kept; set data.samples to get their number per epoch\n"
            .into(),
    });
    text
}

/// "needs 10.2 GiB (9.9 GiB to 10.6 GiB) of 23.5 GiB: fits, 13.3 GiB spare".
pub(super) fn verdict(estimate: &Estimate) -> String {
    let Band {
        low,
        expected,
        high,
    } = estimate.device;
    let mut needs = format!("needs {expected} ({low} to {high})");
    if estimate.growth > Bytes::ZERO {
        let end = expected + estimate.growth;
        needs.push_str(&format!(" at first and {end} by the end,"));
    }
    let expected = expected + estimate.growth;
    let (Some(usable), Some(fit)) = (estimate.usable, estimate.fit()) else {
        return format!("{needs}; the GPU's memory is unknown");
    };
    let words = fit.label();
    match fit {
        Fit::Fits | Fit::Probably => {
            format!("{needs} of {usable}: {words}, {} spare", usable - expected)
        }
        Fit::ProbablyNot | Fit::No => format!(
            "{needs} of {usable}: {words}, {} missing",
            expected - usable
        ),
    }
}
