//! The command about PyTorch's memory snapshots.

use super::answer::{Answer, Refusal};
use super::args::Args;
use super::what;
use crate::document::Document;
use crate::estimate::{At, Prediction};
use crate::import::snapshot::{Device, Holder, Snapshot};
use crate::scenario::Problem;
use crate::units::Bytes;

/// Holders that are shown.
const SHOWN: usize = 12;

/// Who holds what in a snapshot; with a scenario, which of it the plan does not have.
pub(super) fn snapshot(args: &Args) -> Result<Answer, Refusal> {
    let name = args.word(0);
    let bytes = std::fs::read(name)
        .map_err(|error| Problem::new("FILE", name, format!("a readable file ({error})")))?;
    let snapshot = Snapshot::read(&bytes).map_err(|error| {
        Problem::new(
            "FILE",
            name,
            format!("a memory snapshot of PyTorch: {error}"),
        )
    })?;
    let planned = match args.option("scenario") {
        None => None,
        Some(scenario) => Some(planned(&Prediction::new(what::named(scenario, args)?))?),
    };
    let mut text = String::new();
    let mut devices = Vec::new();
    for device in &snapshot.devices {
        text.push_str(&shown(device));
        let mut document = document(device);
        if let Some(planned) = &planned {
            let mut beyond = device.beyond(planned);
            beyond.truncate(SHOWN);
            text.push_str(&differences(&beyond));
            let lines = beyond.iter().map(|(size, count, line)| {
                Document::new()
                    .with("bytes", *size)
                    .with("count", *count)
                    .with("line", line.as_str())
            });
            document = document.with("not_in_the_plan", Document::List(lines.collect()));
        }
        devices.push(document);
    }
    let document = Document::new().with("devices", Document::List(devices));
    Ok(Answer::new(text, &document))
}

/// The sizes of the plan's tensors at its peak and how many there are of each, as the allocator rounds them.
fn planned(prediction: &Prediction) -> Result<Vec<(Bytes, u64)>, Refusal> {
    let groups = prediction.tensors(At::Peak)?;
    Ok(groups
        .iter()
        .map(|group| (group.each, group.count))
        .collect())
}

fn differences(beyond: &[(Bytes, u64, String)]) -> String {
    let mut text = String::from("not in the plan:\n");
    for (size, count, line) in beyond {
        text.push_str(&format!("- {count} × {size} by {}\n", by(line)));
    }
    text
}

fn by(line: &str) -> &str {
    if line.is_empty() {
        "a line that was not recorded"
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
        "GPU {index}: {allocated} allocated of {reserved} reserved in {segments} segments; {free} free, the largest piece \
         {largest_free}\n"
    );
    if let Some(peak) = device.peak {
        text.push_str(&format!(
            "at most {peak} allocated in the recorded history\n"
        ));
    }
    for refused in &device.refused {
        text.push_str(&format!("refused: a request of {refused}\n"));
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
