//! Conditions on a run that moves share, and helpers that change one.

use headroom_catalog::{self as catalog, ModelCategory, Vendor};
use headroom_scenario::{
    Case, Checkpointing, LmHead, Lora, Objective, Optimizer, Parallelism, Precision, Reference,
    Scenario, Trainer, Training,
};

pub(super) fn with(scenario: &Scenario, change: impl FnOnce(&mut Scenario)) -> Scenario {
    let mut changed = scenario.clone();
    change(&mut changed);
    changed
}

/// The names of a decoder's attention layers that adapters usually target.
pub(super) fn attention_layers(scenario: &Scenario) -> Option<Vec<String>> {
    match Case::of(scenario).model?.arch {
        "gpt2" => Some(vec!["c_attn".into()]),
        "llama" | "mistral" | "mixtral" | "qwen2" | "qwen3" | "gemma" | "gemma2" => {
            Some(Lora::default().targets)
        }
        _ => None,
    }
}

/// The usual adapters over a frozen base in bf16.
pub(super) fn adapted(scenario: &mut Scenario, targets: Vec<String>) {
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
pub(super) fn embeddings(scenario: &Scenario) -> Option<Vec<String>> {
    let names: &[&str] = match Case::of(scenario).model?.arch {
        "gpt2" => &["wte", "wpe"],
        _ if language_model(scenario) => &["embed_tokens"],
        _ => return None,
    };
    Some(names.iter().map(|name| (*name).to_string()).collect())
}

pub(super) fn language_model(scenario: &Scenario) -> bool {
    Case::of(scenario)
        .model
        .is_some_and(|model| model.category == ModelCategory::Decoders)
}

/// Whether Liger has kernels for the model.
pub(super) fn has_liger(scenario: &Scenario) -> bool {
    Case::of(scenario)
        .model
        .is_some_and(|model| catalog::has_liger(model.arch))
}

/// Whether the model changes its logits behind the head.
pub(super) fn scales_logits(scenario: &Scenario) -> bool {
    Case::of(scenario)
        .model
        .is_some_and(|model| catalog::scales_logits(model.arch))
}

/// Whether the trainers of a run's task have words for a change: they checkpoint every layer or none, and step on the card when
/// backward is over.
pub(super) fn has_words(run: &Scenario, changed: &Scenario) -> bool {
    let (before, after) = (&run.training, &changed.training);
    let checkpoints = |training: &Training| (training.checkpointing, training.checkpoint_every);
    let plain = matches!(
        after.checkpointing,
        Checkpointing::None | Checkpointing::Layers
    ) && after.checkpoint_every <= 1;
    own_loss(run)
        || (plain || checkpoints(before) == checkpoints(after))
            && (after.optimizer == before.optimizer || after.optimizer != Optimizer::AdamWOffload)
            && after.optimizer_in_backward == before.optimizer_in_backward
            && after.ema_on_host == before.ema_on_host
}

/// Whether TRL's own trainer does the task, and not another tool's.
pub(super) fn by_trl(scenario: &Scenario) -> bool {
    let task = &scenario.training.task;
    let others = [Objective::Orpo, Objective::Cpo, Objective::SimPo];
    task.head == LmHead::Fused && !others.contains(&task.objective)
}

/// Whether the model's own loss is trained on, which other kernels can compute.
pub(super) fn own_loss(scenario: &Scenario) -> bool {
    scenario.training.task.objective == Objective::Pretraining
}

pub(super) fn reads_sequences(scenario: &Scenario) -> bool {
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

/// The run with one of the model's dimensions scaled down, rounded to a multiple; `None` below `least`.
pub(super) fn less(
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

pub(super) fn has_bf16(scenario: &Scenario) -> bool {
    match scenario.hardware.capability {
        (0, 0) => Case::of(scenario).gpu.is_none_or(|gpu| gpu.bf16),
        has => has >= (8, 0),
    }
}

pub(super) fn nvidia(scenario: &Scenario) -> bool {
    Case::of(scenario)
        .gpu
        .is_none_or(|gpu| gpu.vendor == Vendor::Nvidia)
}

/// Whether this is AdamW with full states on the GPU, in one process or DDP: sharded states cannot be replaced.
pub(super) fn adamw(scenario: &Scenario) -> bool {
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
pub(super) fn copies(scenario: &Scenario) -> bool {
    scenario.parallel.strategy == Parallelism::DataParallel && scenario.hardware.gpus > 1
}

/// Whether the trainer sets autocast: transformers' does on no model of which it makes copies.
pub(super) fn autocasts(scenario: &Scenario) -> bool {
    !copies(scenario) || scenario.stack.trainer == Trainer::Torch
}

/// The name of the part that encodes an image or a spectrum, where a run may freeze it.
pub(super) fn encoder(scenario: &Scenario) -> Option<&'static str> {
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

/// Whether that part is frozen.
pub(super) fn is_frozen(scenario: &Scenario, part: &str) -> bool {
    let training = &scenario.training;
    match &training.lora {
        Some(lora) => lora.exclude.iter().any(|name| name == part),
        None => training.freeze.iter().any(|name| name == part),
    }
}
