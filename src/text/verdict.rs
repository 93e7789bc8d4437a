//! Texts of the verdict and its accuracy.

use std::num::NonZero;

use super::network::DECLARED;
use headroom_base::units::{Bytes, UnitStyle};
use headroom_scenario::settings;
use headroom_scenario::{Batch, Case, Checkpointing, Objective, Quantization, Runtime, Scenario};

/// The number of things that are not modelled.
pub fn left_out(count: usize) -> String {
    match count {
        1 => "1 thing not modelled".into(),
        _ => format!("{count} things not modelled"),
    }
}

pub const RECORDED_RUNS: &str = "Recorded runs like this one";
pub const TRUST: &str = "How accurate is this?";
pub const TRUST_SAME: &str = "Recorded runs of this model, most similar to yours first: measured memory, and the prediction from the settings alone.";
pub const TRUST_LIKE: &str = "No run of this model was recorded. These are the most similar: measured memory, and the prediction from the settings alone.";
pub const TRUST_ALL: &str = "All recorded runs are in docs/accuracy.md of the source code.";
pub const SKIP: &str = "Skip to the answer";
pub const VERDICT: &str = "Verdict";
pub const RUNS_WHEN_REFUSED: &str =
    "It still runs, slower: the allocator flushes its cache and retries.";
pub const STALE: &str = "(from the last valid input)";
pub const ALLOCATED: &str = "allocated";
pub const RESERVED: &str = "reserved";
pub const DEVICE: &str = "on the GPU";
pub const PARAMETERS: &str = "parameters";
pub const TRAINED: &str = "trained";
pub const WHOLE: &str = "Total on GPU";

/// "batch 1, accumulate 16, 8 GPUs = 128".
pub fn effective(batch: &Batch) -> String {
    let replicas = u32::try_from(batch.replicas).unwrap_or(u32::MAX);
    let Batch {
        micro_batch,
        accumulation,
        ..
    } = batch;
    format!(
        "batch {micro_batch}, accumulate {accumulation}, {} = {}",
        super::gpus(replicas),
        batch.samples()
    )
}

/// What the verdict is about, in the order people say it.
pub fn about(scenario: &Scenario) -> String {
    let (training, case) = (&scenario.training, Case::of(scenario));
    let card = case.gpu.map_or(&*scenario.hardware.gpu, |gpu| gpu.name);
    let cards = match scenario.hardware.gpus {
        1 => card.to_string(),
        many => {
            let strategy = super::short_choice(scenario.parallel.strategy.label());
            format!("{many} × {card}, {strategy}")
        }
    };
    let model = match (&scenario.model.network, case.model) {
        (None, Some(model)) if scenario.model.dims.is_empty() => model.name.into(),
        // A model with changed dimensions is another model.
        (None, Some(model)) => {
            // Depth and width first, as people describe a model; then the others by name.
            let sizes = &scenario.model.dims;
            let first = ["layers", "hidden"].into_iter();
            let first = first.filter_map(|name| Some((name, sizes.get(name)?)));
            let others = sizes.iter().map(|(name, size)| (name.as_str(), size));
            let others = others.filter(|(name, _)| !["layers", "hidden"].contains(name));
            let sizes = first.chain(others);
            let sizes: Vec<String> = sizes.map(|(name, size)| format!("{name} {size}")).collect();
            format!("a model like {} ({})", model.name, sizes.join(", "))
        }
        // A declared network does not have the catalogue's name.
        (Some(_), Some(_)) => DECLARED.into(),
        (_, None) => scenario.model.id.clone(),
    };
    let method = match training.task.objective {
        Objective::Pretraining => super::method(training),
        objective => format!(
            "{}, {}",
            super::short_choice(objective.label()),
            super::method(training)
        ),
    };
    let quantized = match training.quantization {
        Quantization::None => String::new(),
        other => format!(", {}", super::quantization(other)),
    };
    let checkpointing = match training.checkpointing {
        Checkpointing::None => String::new(),
        mode => {
            let label = mode.label().to_lowercase();
            match label.split_once(": ") {
                Some((kind, what)) => format!(", {kind} checkpointing ({what})"),
                None => format!(", checkpointing: {label}"),
            }
        }
    };
    let (batch, length) = (scenario.data.micro_batch, scenario.row_length());
    let pictures = (
        super::frames(scenario),
        super::resolution(scenario),
        settings::takes_length(scenario) && length > 1,
    );
    let batch = match pictures {
        (Some(frames), Some(size), _) => format!("{batch} × {frames} of {size}"),
        (None, Some(size), _) => format!("{batch} × {size}"),
        (_, None, true) => format!("{batch} × {length} tokens"),
        (_, None, false) => format!("batch of {batch}"),
    };
    let batch = match training.accumulation {
        1 => batch,
        times => format!("{times} × ({batch})"),
    };
    let (precision, optimizer) = (training.precision.label(), training.optimizer.label());
    format!(
        "{model}, {method}{quantized}, {precision}, {optimizer}{checkpointing}, {batch} on {cards}"
    )
}

/// The title of a timeline whose largest value this is.
pub fn axis(units: UnitStyle, largest: Bytes) -> String {
    format!(
        "Allocated {} (x: allocation events)",
        units.scale(largest).1
    )
}

/// Equal micro-batches that the timeline leaves out.
pub fn passes_drawn(drawn: usize, all: u64) -> String {
    format!(". {drawn} of {all} micro-batches are drawn; the others repeat them")
}

pub const DEPTH: &str = "More about this answer";
pub const NOT_MODELLED: &str = "Not modelled";

/// The measured correction, if any.
pub fn corrected(runtime: &Runtime, units: UnitStyle) -> Option<String> {
    let part =
        |mib: u64, what: &str| (mib > 0).then(|| format!("{} {what}", Bytes::mib(mib).show(units)));
    let parts = [
        part(
            runtime.outside_mib.map_or(0, NonZero::get),
            "outside PyTorch",
        ),
        part(runtime.kept_mib, "kept beyond the prediction"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let said = parts.join(", ");
    (!said.is_empty()).then(|| format!("Includes measured memory: {said}. "))
}
