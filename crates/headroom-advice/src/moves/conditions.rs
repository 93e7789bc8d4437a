//! Conditions and changes that several moves share.

use headroom_catalog::{self as catalog, ModelCategory, Vendor};
use headroom_core::estimate::attention_projections;
use headroom_scenario::{
    Case, Checkpointing, LmHead, Lora, LossKernel, Objective, Optimizer, Parallelism, Precision,
    Quantization, Reference, Scenario, Trainer, Training,
};

pub(crate) fn with(scenario: &Scenario, change: impl FnOnce(&mut Scenario)) -> Scenario {
    let mut changed = scenario.clone();
    change(&mut changed);
    changed
}

/// The attention layers that adapters usually target, as the network names them.
pub(crate) fn attention_layers(scenario: &Scenario) -> Option<Vec<String>> {
    let found = attention_projections(&Case::of(scenario)).ok()?;
    (!found.is_empty()).then_some(found)
}

/// The default adapters on a frozen bf16 base.
pub(crate) fn adapted(scenario: &mut Scenario, targets: Vec<String>) {
    scenario.training.lora = Some(Lora {
        targets,
        ..Lora::default()
    });
    scenario.training.precision = Precision::AmpBf16OnBf16;
    if scenario.training.task.reference == Reference::Copy {
        scenario.training.task.reference = Reference::AdaptersOff;
    }
}

/// The names of the embeddings.
pub(crate) fn embeddings(scenario: &Scenario) -> Option<Vec<String>> {
    let names: &[&str] = match Case::of(scenario).model?.arch {
        "gpt2" => &["wte", "wpe"],
        _ if language_model(scenario) => &["embed_tokens"],
        _ => return None,
    };
    Some(names.iter().map(|name| (*name).to_string()).collect())
}

pub(crate) fn language_model(scenario: &Scenario) -> bool {
    Case::of(scenario)
        .model
        .is_some_and(|model| model.category == ModelCategory::Decoders)
}

/// Whether the model writes text, with a head over a vocabulary whose loss can be computed in several ways.
pub(crate) fn writes_text(scenario: &Scenario) -> bool {
    Case::of(scenario).model.is_some_and(|model| {
        matches!(
            model.category,
            ModelCategory::Decoders | ModelCategory::VisionLanguage
        )
    })
}

/// Whether Liger has kernels for the model.
pub(crate) fn has_liger(scenario: &Scenario) -> bool {
    Case::of(scenario)
        .model
        .is_some_and(|model| catalog::has_liger(model.arch))
}

/// Whether the model scales or caps its logits after the head.
pub(crate) fn scales_logits(scenario: &Scenario) -> bool {
    Case::of(scenario)
        .model
        .is_some_and(|model| catalog::scales_logits(model.arch))
}

/// Whether the trainers of a run's task can express a change: they checkpoint every layer or none, and step on the GPU
/// after backward.
pub(crate) fn trainer_can_express(run: &Scenario, changed: &Scenario) -> bool {
    let (before, after) = (&run.training, &changed.training);
    let checkpoints = |training: &Training| (training.checkpointing, training.checkpoint_every);
    let plain = matches!(
        after.checkpointing,
        Checkpointing::None | Checkpointing::Layers
    ) && after.checkpoint_every <= 1;
    if run.stack.trainer == Trainer::Verl && !verl_can_express(changed) {
        return false;
    }
    own_loss(run)
        || (plain || checkpoints(before) == checkpoints(after))
            && (after.optimizer == before.optimizer || after.optimizer != Optimizer::AdamWOffload)
            && after.optimizer_in_backward == before.optimizer_in_backward
            && after.ema_on_host == before.ema_on_host
}

/// Whether verl can express a run: it computes under autocast, and loads no quantised base.
fn verl_can_express(changed: &Scenario) -> bool {
    let training = &changed.training;
    let autocast = [Precision::AmpBf16, Precision::AmpBf16OnBf16];
    autocast.contains(&training.precision)
        && training.quantization == Quantization::None
        && training.loss == LossKernel::Library
}

/// Whether the task is run by TRL itself, not by another tool.
pub(crate) fn by_trl(scenario: &Scenario) -> bool {
    let task = &scenario.training.task;
    let others = [Objective::Orpo, Objective::Cpo, Objective::SimPo];
    task.head == LmHead::Fused && !others.contains(&task.objective)
}

/// Whether the model's own loss is trained, which other kernels can compute.
pub(crate) fn own_loss(scenario: &Scenario) -> bool {
    scenario.training.task.objective == Objective::Pretraining
}

pub(crate) fn reads_sequences(scenario: &Scenario) -> bool {
    Case::of(scenario).model.is_some_and(|model| {
        matches!(
            model.category,
            ModelCategory::Decoders
                | ModelCategory::EncoderDecoders
                | ModelCategory::Encoders
                | ModelCategory::Proteins
                | ModelCategory::StateSpace
        )
    })
}

/// The run with a dimension of the model scaled down, rounded to a multiple; `None` below `least`.
pub(crate) fn less(
    scenario: &Scenario,
    dim: &str,
    part: (u64, u64),
    multiple: u64,
    least: u64,
) -> Option<Scenario> {
    let now = scenario.model.dim(dim)?;
    let smaller = now.saturating_mul(part.0) / part.1 / multiple * multiple;
    let makes_sense = smaller >= least && smaller < now;
    makes_sense.then(|| {
        with(scenario, |changed| {
            changed.model.dims.insert(dim.into(), smaller);
        })
    })
}

pub(crate) fn has_bf16(scenario: &Scenario) -> bool {
    Case::of(scenario).has((8, 0), |gpu| gpu.bf16)
}

pub(crate) fn nvidia(scenario: &Scenario) -> bool {
    Case::of(scenario)
        .gpu
        .is_none_or(|gpu| gpu.vendor == Vendor::Nvidia)
}

/// Whether this is AdamW with full states on the GPU, in one process or DDP: sharded states cannot be replaced.
pub(crate) fn adamw(scenario: &Scenario) -> bool {
    let whole = matches!(
        scenario.parallel.strategy,
        Parallelism::None | Parallelism::Ddp | Parallelism::DataParallel
    );
    whole
        && matches!(
            scenario.training.optimizer,
            Optimizer::AdamW
                | Optimizer::AdamWTwoLists
                | Optimizer::AdamWFused
                | Optimizer::AdamWLoop
        )
}

/// Whether one process copies the model to several GPUs, which not every model and mode allows.
pub(crate) fn copies(scenario: &Scenario) -> bool {
    scenario.parallel.strategy == Parallelism::DataParallel && scenario.hardware.gpus > 1
}

/// Whether the trainer enables autocast: transformers' Trainer does not under `DataParallel`.
pub(crate) fn autocasts(scenario: &Scenario) -> bool {
    !copies(scenario) || scenario.stack.trainer == Trainer::Torch
}

/// The name of the image or spectrum encoder, if a run may freeze it.
pub(crate) fn encoder(scenario: &Scenario) -> Option<&'static str> {
    if scenario.model.network.is_some() {
        return None;
    }
    match Case::of(scenario).model?.arch {
        "llava" | "gemma3" | "paligemma" => Some("vision_tower"),
        "qwen2_vl" | "qwen2_5_vl" => Some("visual"),
        "dreams" if scenario.model.dim("fingerprint") > Some(0) => Some("backbone"),
        _ => None,
    }
}

/// Whether that encoder is frozen.
pub(crate) fn is_frozen(scenario: &Scenario, part: &str) -> bool {
    let training = &scenario.training;
    match &training.lora {
        Some(lora) => lora.exclude.iter().any(|name| name == part),
        None => training.freeze.iter().any(|name| name == part),
    }
}
