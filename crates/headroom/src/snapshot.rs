//! The command `snapshot`, for PyTorch's memory snapshots.

use super::answer::{Answer, Refusal};
use super::args::Args;
use super::{doctor, what};
use headroom_base::document::Document;
use headroom_base::units::Bytes;
use headroom_core::estimate::Prediction;
use headroom_io::import::snapshot::{
    Comparison, Device, Holder, Resized, Snapshot, TensorCount, Unplanned,
};
use headroom_io::import::timeline::Timeline;
use headroom_scenario::Problem;

/// The most rows of each list.
const SHOWN: usize = 12;

/// The most frames of a stack.
const FRAMES: usize = 3;

/// Lists the owners of memory in a snapshot; with a scenario, also the differences from its prediction.
pub(super) fn snapshot(args: &Args) -> Result<Answer, Refusal> {
    let name = args.positional(0);
    let bytes = doctor::bytes(name)?;
    if let Some(timeline) = Timeline::read(&String::from_utf8_lossy(&bytes)) {
        return Ok(of_timeline(&timeline));
    }
    let snapshot = Snapshot::read(&bytes).map_err(|error| {
        Problem::new(
            "FILE",
            name,
            format!("a memory snapshot of PyTorch or a memory timeline of its profiler: {error}"),
        )
    })?;
    let prediction = match args.option("scenario") {
        None => None,
        Some(scenario) => Some(Prediction::new(what::named(scenario, args)?)),
    };
    let mut text = String::new();
    let mut devices = Vec::new();
    for device in &snapshot.devices {
        text.push_str(&shown(device));
        let mut document = document(device);
        if let Some(prediction) = &prediction {
            let comparison = Comparison::of(device, prediction)?;
            text.push_str(&compared(&comparison));
            document = document.and(comparison_document(&comparison));
        }
        devices.push(document);
    }
    let document = Document::new().with("devices", Document::List(devices));
    Ok(Answer::new(text, &document))
}

fn of_timeline(timeline: &Timeline) -> Answer {
    let mut text = format!("peak of {} allocated:\n", timeline.peak);
    let mut parts = Document::new();
    for (name, bytes) in &timeline.parts {
        if *bytes > Bytes::ZERO {
            text.push_str(&format!("- {bytes} {name}\n"));
            parts = parts.with(*name, *bytes);
        }
    }
    let document = Document::new().with("peak", timeline.peak);
    Answer::new(text, &document.with("parts", parts))
}

fn compared(comparison: &Comparison) -> String {
    let Comparison {
        planned,
        held,
        matched,
        resized,
        scale,
        unplanned,
        absent,
        ..
    } = comparison;
    let mut text = format!(
        "compared with the scenario: {planned} predicted, {held} in the snapshot, {matched} in both\n"
    );
    if comparison.is_equal() {
        text.push_str("every allocation is predicted, and every predicted tensor is allocated\n");
    }
    if let Some(scale) = scale {
        text.push_str(&format!("{scale:.2} times the predicted size:\n"));
    }
    for Resized {
        planned,
        each,
        stack,
    } in resized.iter().take(SHOWN)
    {
        let TensorCount {
            count,
            each: instead,
            ..
        } = planned;
        let what = planned.kind.to_string();
        let by = by_stack(stack);
        text.push_str(&format!(
            "- {count} × {each} instead of {instead}: {what}, by {by}\n"
        ));
    }
    if !unplanned.is_empty() {
        text.push_str("not predicted:\n");
    }
    for Unplanned { count, each, stack } in unplanned.iter().take(SHOWN) {
        let by = by_stack(stack);
        text.push_str(&format!("- {count} × {each} by {by}\n"));
    }
    if !absent.is_empty() {
        text.push_str("predicted, but not allocated:\n");
    }
    for TensorCount { kind, count, each } in absent.iter().take(SHOWN) {
        text.push_str(&format!("- {count} × {each}: {kind}\n"));
    }
    text
}

fn by_stack(stack: &[String]) -> String {
    match stack {
        [] => by("").into(),
        frames => {
            let shown: Vec<&str> = frames.iter().take(FRAMES).map(String::as_str).collect();
            shown.join(" < ")
        }
    }
}

fn comparison_document(comparison: &Comparison) -> Document {
    let tensors = |planned: &TensorCount| {
        Document::new()
            .with("bytes", planned.each)
            .with("count", planned.count)
            .with("op", planned.kind.op)
            .with("module", planned.kind.module.as_str())
    };
    let unplanned = |unplanned: &Unplanned| {
        Document::new()
            .with("bytes", unplanned.each)
            .with("count", unplanned.count)
            .with("line", unplanned.stack.first().map_or("", String::as_str))
            .with("stack", unplanned.stack.clone())
    };
    let resized = |resized: &Resized| {
        tensors(&resized.planned)
            .with("held", resized.each)
            .with("stack", resized.stack.clone())
    };
    let Comparison {
        planned,
        held,
        matched,
        scale,
        ..
    } = comparison;
    let list = |all: Vec<Document>| Document::List(all);
    Document::new()
        .with("planned", *planned)
        .with("held", *held)
        .with("matched", *matched)
        .with("scale", *scale)
        .with(
            "of_another_size",
            list(comparison.resized.iter().map(resized).collect()),
        )
        .with(
            "not_in_the_plan",
            list(comparison.unplanned.iter().map(unplanned).collect()),
        )
        .with(
            "absent",
            list(comparison.absent.iter().map(tensors).collect()),
        )
}

fn by(line: &str) -> &str {
    if line.is_empty() {
        "no recorded stack"
    } else {
        line
    }
}

fn shown(device: &Device) -> String {
    let Device {
        index,
        segments,
        reserved,
        allocated,
        pending,
        largest_free,
        ..
    } = device;
    let free = *reserved - *allocated - *pending;
    let mut text = format!(
        "GPU {index}: {allocated} allocated of {reserved} reserved in {segments} segments; {free} free, the largest block \
         {largest_free}\n"
    );
    if let Some(peak) = device.peak {
        text.push_str(&format!(
            "peak of {peak} allocated in the recorded history\n"
        ));
    }
    for refused in &device.refused {
        text.push_str(&format!("failed: a request of {refused}\n"));
    }
    for Holder {
        line, count, bytes, ..
    } in device.holders.iter().take(SHOWN)
    {
        text.push_str(&format!("- {bytes} in {count} blocks by {}\n", by(line)));
    }
    text
}

fn document(device: &Device) -> Document {
    let holder = |holder: &Holder| {
        Document::new()
            .with("line", holder.line.as_str())
            .with("blocks", holder.count)
            .with("bytes", holder.bytes)
    };
    Document::new()
        .with("device", u64::try_from(device.index).unwrap_or(0))
        .with("segments", device.segments as u64)
        .with("reserved", device.reserved)
        .with("allocated", device.allocated)
        .with("requested", device.requested)
        .with("pending", device.pending)
        .with("largest_free", device.largest_free)
        .with("peak", device.peak)
        .with(
            "holders",
            Document::List(device.holders.iter().map(holder).collect()),
        )
}
