//! Whether the model, its data and its training go together.

use super::model::{lengths, model, pictures};
use super::{Case, Problems};
use crate::{
    Attention, Checkpointing, Compile, Kernels, LossKernel, LowPrecision, Objective, Parallelism,
    Precision, Quantization, Scenario, Trainer, Training,
};
use headroom_catalog::{self as catalog, ModelCategory};

pub(super) fn check(case: &Case, problems: &mut Problems) {
    model(case, problems);
    recomputed(case, problems);
    lengths(case, problems);
    pictures(case, problems);
    at_once(case, problems);
    compiled(case, problems);
    adapters(case, problems);
    software(case, problems);
}

/// Checkpointing modes that are the same in this network.
fn recomputed(case: &Case, problems: &mut Problems) {
    use Checkpointing::{KeepAttention, KeepHalf, KeepMatmuls};
    let mode = case.scenario.training.checkpointing;
    let selective = matches!(mode, KeepAttention | KeepHalf | KeepMatmuls);
    let expected = match case.model.map(|entry| entry.arch) {
        Some("peptrm") if selective => {
            "layers: this network recomputes entire steps, so every mode but none and offload is the same"
        }
        Some("e3-pocket") if selective => {
            "layers or none: its layers have no attention, and their products are what is recomputed"
        }
        Some("mpnet") if mode != Checkpointing::None => {
            "none: transformers has no checkpointing for this network and raises an error"
        }
        _ => return,
    };
    problems.warn("training.checkpointing", expected);
}

/// Whether the model caches where its layers are checkpointed too, as GPT-BigCode did once.
fn caches_anyway(case: &Case) -> bool {
    let fact = catalog::stack("transformers")
        .and_then(|stack| stack.fact("bigcode-keeps-caches", case.scenario.stack.transformers));
    fact.is_some_and(|fact| fact.value == "true")
        && case
            .listed_model()
            .is_some_and(|entry| entry.arch == "gpt_bigcode")
}

/// What the training loop cannot do at once.
fn at_once(case: &Case, problems: &mut Problems) {
    let training = &case.scenario.training;
    if training.use_cache && training.checkpointing != Checkpointing::None && !caches_anyway(case) {
        problems.refuse(
            "training.use_cache",
            "off: the KV cache does not work with activation checkpointing",
        );
    }
    let in_backward = training.optimizer_in_backward || training.optimizer.consumes_gradients();
    if in_backward && training.accumulation > 1 {
        problems.refuse(
            "training.accumulation",
            "1: optimizer-in-backward frees gradients, so they cannot accumulate",
        );
    }
    if training.optimizer_in_backward && training.clip {
        problems.refuse(
            "training.clip",
            "off: optimizer-in-backward cannot wait for the global gradient norm",
        );
    }
    if training.optimizer_in_backward && training.optimizer.consumes_gradients() {
        problems.refuse(
            "training.optimizer_in_backward",
            "off: this optimizer already steps in backward",
        );
    }
    if in_backward && training.precision.scales_gradients() {
        problems.refuse(
            if training.optimizer_in_backward {
                "training.optimizer_in_backward"
            } else {
                "training.optimizer"
            },
            "off, or another optimizer: the gradient scaler looks at all gradients before the step",
        );
    }
    let adapters_in_fp32 = training
        .lora
        .as_ref()
        .is_some_and(|lora| lora.fp32_adapters);
    if training.precision == Precision::AmpFp16OnFp16 && !adapters_in_fp32 {
        problems.refuse(
            "training.precision",
            "amp-fp16: the gradient scaler refuses gradients in fp16, unless adapters in fp32 are all that is trained",
        );
    }
    if training.qat {
        let decodes = case
            .listed_model()
            .is_some_and(|model| model.category == ModelCategory::Decoders);
        let bare = training.lora.is_none()
            && training.quantization == Quantization::None
            && !training.fp8
            && decodes;
        if !bare {
            problems.refuse(
                "training.qat",
                "off, or all weights of a model that continues text, without adapters, fp8 or quantised weights",
            );
        }
        if case.scenario.hardware.gpus > 1 {
            problems.refuse("training.qat", "off: modelled on one GPU only");
        }
    }
    low_precision(case, problems);
    if training.fp8
        && matches!(
            training.precision,
            Precision::Fp16 | Precision::AmpFp16 | Precision::AmpFp16OnFp16
        )
    {
        problems.refuse("training.precision", "bf16, amp-bf16 or fp32 with fp8");
    }
    if training.attention == Attention::Flash2
        && case
            .listed_model()
            .is_some_and(|model| model.traits.contains(&"relative-positions"))
    {
        problems.refuse(
            "training.attention",
            "sdpa or eager: FlashAttention 2 takes no bias, which this model's positions are",
        );
    }
    let decoder = case.listed_model().is_none_or(|model| {
        matches!(
            model.category,
            ModelCategory::Decoders | ModelCategory::VisionLanguage
        )
    });
    if !decoder && training.loss != LossKernel::Library {
        problems.warn(
            "training.loss",
            "library: other loss kernels are not modelled for this architecture",
        );
    }
    if !decoder && training.kernels != Kernels::Library {
        problems.warn(
            "training.kernels",
            "library: these kernels do not support this architecture",
        );
    }
    if training.checkpoint_first > 0 && training.checkpointing == Checkpointing::None {
        problems.warn(
            "training.checkpoint_first",
            "0 (or training.checkpointing on)",
        );
    }
    if training.checkpoint_span > 1 {
        // transformers' trainers have no such setting, and its decoders' layers are checkpointed one by one.
        let one_by_one = decoder && case.scenario.stack.trainer != Trainer::Megatron;
        if one_by_one || training.checkpointing == Checkpointing::None {
            let expected = if one_by_one {
                "1: layers of this architecture are checkpointed one at a time"
            } else {
                "1 (or training.checkpointing on)"
            };
            problems.warn("training.checkpoint_span", expected);
        }
    }
    if training.checkpoint_every > 1 && training.checkpointing == Checkpointing::None {
        problems.warn(
            "training.checkpoint_every",
            "1 (or training.checkpointing on)",
        );
    }
}

/// Models whose compiled graphs were compared with PyTorch's own.
const COMPARED: [&str; 6] = ["bert", "gpt2", "llama", "qwen2", "qwen3", "resnet"];

/// Whether compiled graphs are what they are on one GPU: layers are compiled inside of what `fully_shard`, DDP and pipelines do around
/// them, with the collectives of tensor parallelism as kernels of a library in the graph; a whole model would be cut where these come in.
fn compiles_with_others(scenario: &Scenario) -> bool {
    use Parallelism::{Ddp, Fsdp2, Hsdp};
    let layout = &scenario.parallel;
    let alone = scenario.hardware.gpus < 2 && scenario.hardware.nodes < 2;
    let around = matches!(layout.strategy, Ddp | Fsdp2 | Hsdp);
    let attention_is_whole = [layout.cp, layout.ep].iter().all(|degree| *degree < 2);
    // A pipeline's or divided matrices' GPUs may have no replicas.
    let only_split = layout.strategy == Parallelism::None && layout.tp.max(layout.pp) > 1;
    // `fully_shard` computes adapters in the base's type; what a graph keeps of casts between two types is not known.
    let one_type = scenario.training.lora.is_none() || matches!(layout.strategy, Fsdp2 | Hsdp);
    let by_layers = scenario.training.compile == Compile::Layers;
    alone || by_layers && (around || only_split) && attention_is_whole && one_type
}

/// Whether what is recomputed is known in compiled graphs: selective checkpoints inside of compiled layers, as torchtitan has them.
fn is_recomputed_in_graphs(training: &Training) -> bool {
    use Checkpointing::{KeepAttention, KeepHalf, KeepMatmuls, Layers, None, Offload};
    match training.checkpointing {
        None | Layers => true,
        KeepAttention | KeepHalf | KeepMatmuls => training.compile == Compile::Layers,
        Offload => false,
    }
}

/// What is known of compiled runs, and what is not.
fn compiled(case: &Case, problems: &mut Problems) {
    let scenario = case.scenario;
    let training = &scenario.training;
    if training.compile == Compile::Nothing {
        return;
    }
    let known = case
        .listed_model()
        .is_some_and(|model| COMPARED.contains(&model.arch));
    let arch = case.listed_model().map_or("", |model| model.arch);
    let unknown = [
        (
            !known,
            "nothing: torch.compile is not modelled for this architecture",
        ),
        (
            !compiles_with_others(scenario),
            "layers under fsdp2 or hsdp, or ddp without adapters, also with parallel.tp and parallel.pp, or nothing: torch.compile on several GPUs is modelled for those only",
        ),
        (
            scenario.training.task.objective != Objective::Pretraining,
            "nothing: torch.compile is not modelled for trainers' own losses",
        ),
        (
            training.quantization != Quantization::None || training.qat,
            "nothing: torch.compile with low-precision matmuls is not modelled",
        ),
        (
            training.kernels != Kernels::Library
                || training.loss != LossKernel::Library && training.compile != Compile::Layers,
            "nothing, or library kernels (another loss only with compiled layers, which leave it out): Liger kernels under torch.compile are not modelled",
        ),
        (
            !is_recomputed_in_graphs(training),
            "nothing, or checkpointing of whole layers or none; layers, if operations are kept",
        ),
        (
            !training.budget_is_known(arch),
            "nothing, or training.memory_budget 0 or 1: what is kept between them is known of Llama in bf16",
        ),
        (
            training.memory_budget < 1.0 && training.checkpointing != Checkpointing::None,
            "nothing, or no checkpointing: a memory budget with checkpointing is not modelled",
        ),
        (
            training.keep_outputs,
            "nothing, or training.keep_outputs off: keeping outputs is not modelled under torch.compile",
        ),
    ];
    if let Some((_, expected)) = unknown.into_iter().find(|(is, _)| *is) {
        problems.refuse("training.compile", expected);
    }
}

/// Low-precision recipes that exclude each other, and where they are not modelled.
fn low_precision(case: &Case, problems: &mut Problems) {
    let training = &case.scenario.training;
    let recipe = training.low_precision;
    if recipe == LowPrecision::None {
        return;
    }
    let decodes = case
        .listed_model()
        .is_some_and(|model| model.category == ModelCategory::Decoders);
    let float8 = matches!(recipe, LowPrecision::Rowwise | LowPrecision::RowwiseHigh);
    let wrong = [
        (!decodes, "none: modelled for causal language models only"),
        (
            training.fp8 || training.qat,
            "none, or training.fp8 and training.qat off: a layer multiplies in one way",
        ),
        (
            training.lora.is_some() || training.quantization != Quantization::None,
            "none, or no adapters and no quantised base: the recipes are for weights that train",
        ),
        (
            case.scenario.hardware.gpus > 1 || case.scenario.hardware.nodes > 1,
            "none: modelled on one GPU only",
        ),
        (
            training.compile != Compile::Nothing && !float8,
            "a float8 recipe, or training.compile nothing: other recipes are not modelled under torch.compile",
        ),
        (
            matches!(
                training.precision,
                Precision::Fp16 | Precision::AmpFp16 | Precision::AmpFp16OnFp16 | Precision::Fp64
            ),
            "none, or bf16, amp-bf16 or fp32 as the precision",
        ),
    ];
    if let Some((_, expected)) = wrong.into_iter().find(|(is, _)| *is) {
        problems.refuse("training.low_precision", expected);
    }
    if recipe == LowPrecision::NvFp4 {
        let sequence = case.scenario.data.sequence;
        if !sequence.is_multiple_of(128) {
            problems.refuse(
                "data.sequence",
                "a multiple of 128, which NVFP4's kernels need",
            );
        }
    }
}

fn adapters(case: &Case, problems: &mut Problems) {
    let training = &case.scenario.training;
    let frozen =
        training.lora.is_some() || !training.freeze.is_empty() || !training.train_only.is_empty();
    if training.quantization != Quantization::None && !frozen {
        problems.refuse(
            "training.quantization",
            "none (or training.lora on): quantized weights cannot be trained",
        );
    }
    if training.block_swap > 0 && training.lora.is_none() {
        problems.refuse(
            "training.block_swap",
            "0 (or training.lora on): the weights of swapped blocks are not trained",
        );
    }
    if let Some(lora) = &training.lora {
        if lora.targets.is_empty() {
            problems.refuse("training.lora.targets", "at least one layer's name");
        }
        let smallest = case.size("hidden").filter(|hidden| lora.rank >= *hidden);
        if let Some(hidden) = smallest {
            let expected = format!("a rank below {hidden}, the width of the adapted layers");
            problems.warn("training.lora.rank", expected);
        }
    }
}

/// Versions that Headroom has no facts for.
fn software(case: &Case, problems: &mut Problems) {
    let stack = &case.scenario.stack;
    let Some(trainer) = catalog::stack(stack.trainer.id()) else {
        return;
    };
    let known = trainer.first..=trainer.last;
    let outside = stack
        .trainer_version
        .is_some_and(|version| !known.contains(&version));
    if outside && stack.trainer != Trainer::Torch {
        let (first, last) = (trainer.first, trainer.last);
        let expected = format!(
            "\"{}.{}\" to \"{}.{}\", the versions of {} whose defaults are known; the nearest is taken",
            first.0, first.1, last.0, last.1, trainer.name
        );
        problems.warn("stack.trainer_version", expected);
    }
    if stack.trainer == Trainer::Torch && stack.trainer_version.is_some() {
        problems.warn(
            "stack.trainer_version",
            "\"0.0\": a plain PyTorch loop has no trainer version",
        );
    }
    if stack.trainer == Trainer::Unsloth && case.scenario.hardware.gpus > 1 {
        problems.warn("hardware.gpus", "1: Unsloth supports one GPU");
    }
}
