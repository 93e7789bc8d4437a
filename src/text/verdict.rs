//! The verdict and how far to trust it.

use super::network::DECLARED;
use headroom_base::units::{Bytes, UnitStyle};
use headroom_scenario::{Case, Checkpointing, Runtime, Scenario};

/// How many things the numbers leave out.
pub fn left_out(count: usize) -> String {
    match count {
        1 => "1 thing is not modelled".into(),
        _ => format!("{count} things are not modelled"),
    }
}

pub const RECORDED_RUNS: &str = "Recorded runs like this one";
pub const TRUST: &str = "How far to trust this";
pub const TRUST_SAME: &str = "Recorded runs of this model, those most like yours first: what each needed, and what is predicted from its settings alone.";
pub const TRUST_LIKE: &str = "No run of this model was recorded. These are the most similar: what each needed, and what is predicted from its settings alone.";
pub const TRUST_ALL: &str = "All recorded runs are in docs/accuracy.md of the source code.";
pub const SKIP: &str = "Skip to the answer";
pub const VERDICT: &str = "Verdict";
pub const RUNS_WHEN_REFUSED: &str = "The steps run on this card all the same: the allocator, refused, gives back what it does not use and asks again, which stops the card each time.";
pub const STALE: &str = "(from the last valid input)";
pub const ALLOCATED: &str = "allocated";
pub const RESERVED: &str = "reserved";
pub const DEVICE: &str = "on the device";
pub const PARAMETERS: &str = "parameters";
pub const TRAINED: &str = "trained";
pub const WHOLE: &str = "On the device";

/// What the verdict is about, in the order people say it.
pub fn about(scenario: &Scenario) -> String {
    let (training, case) = (&scenario.training, Case::of(scenario));
    let card = case.gpu.map_or(&*scenario.hardware.gpu, |gpu| gpu.name);
    let cards = match scenario.hardware.gpus {
        1 => card.to_string(),
        many => format!("{many} × {card}"),
    };
    let model = match (&scenario.model.network, case.model) {
        (None, Some(model)) if scenario.model.dims.is_empty() => model.name.into(),
        // A model in other sizes is another model.
        (None, Some(model)) => {
            let sizes = scenario.model.dims.iter();
            let sizes: Vec<String> = sizes.map(|(name, size)| format!("{name} {size}")).collect();
            format!("a model like {} ({})", model.name, sizes.join(", "))
        }
        // What stands in the catalogue is not the name of what was declared.
        (Some(_), Some(_)) => DECLARED.into(),
        (_, None) => scenario.model.id.clone(),
    };
    let method = match &training.lora {
        Some(lora) => format!("LoRA rank {}", lora.rank),
        None => "full training".into(),
    };
    let checkpointing = match training.checkpointing {
        Checkpointing::None => String::new(),
        mode => format!(", checkpointing: {}", mode.label().to_lowercase()),
    };
    let (batch, length) = (scenario.data.micro_batch, scenario.data.sequence);
    let batch = match length {
        1 => format!("batch of {batch}"),
        _ => format!("{batch} × {length} tokens"),
    };
    let batch = match training.accumulation {
        1 => batch,
        times => format!("{times} × ({batch})"),
    };
    let (precision, optimizer) = (training.precision.label(), training.optimizer.label());
    format!("{model}, {method}, {precision}, {optimizer}{checkpointing}, {batch} on {cards}")
}

/// What an axis of bytes shows, for a chart whose largest value this is.
pub fn axis(units: UnitStyle, largest: Bytes) -> String {
    format!(
        "{} over the step, in order of allocation",
        units.scale(largest).1
    )
}

pub const NOT_MODELLED: &str = "Not modelled";

/// What was measured and is counted in, where anything is.
pub fn corrected(runtime: &Runtime, units: UnitStyle) -> Option<String> {
    let part =
        |mib: u64, what: &str| (mib > 0).then(|| format!("{} {what}", Bytes::mib(mib).show(units)));
    let parts = [
        part(runtime.outside_mib, "outside PyTorch"),
        part(runtime.kept_mib, "kept beyond the prediction"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let said = parts.join(", ");
    (!said.is_empty()).then(|| format!("Corrected by what was measured: {said}. "))
}
