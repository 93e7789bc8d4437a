//! Whether the model, its data and its training go together.

use super::{Case, Problems};
use crate::problem::{nearest, one_of};
use crate::{
    Attention, Checkpointing, Compile, Distribution, Kernels, LossKernel, LowPrecision, Objective,
    Precision, Quantization, Trainer,
};
use crate::{Problem, network};
use headroom_catalog::{self as catalog, ModelCategory};

pub(super) fn check(case: &Case, problems: &mut Problems) {
    model(case, problems);
    recomputed(case, problems);
    lengths(case, problems);
    at_once(case, problems);
    compiled(case, problems);
    adapters(case, problems);
    software(case, problems);
}

/// Modes of checkpointing that come to one and the same in this network.
fn recomputed(case: &Case, problems: &mut Problems) {
    use Checkpointing::{KeepAttention, KeepHalf, KeepMatmuls, Layers};
    let mode = case.scenario.training.checkpointing;
    let selective = matches!(mode, KeepAttention | KeepHalf | KeepMatmuls);
    let expected = match case.model.map(|entry| entry.arch) {
        Some("peptrm") if selective => {
            "layers: this network recomputes whole steps, so that every mode but none and offload is the same"
        }
        Some("e3-pocket") if selective || mode == Layers => {
            "none: nothing in this network is recomputed, so that this mode changes nothing"
        }
        Some("mpnet") if mode != Checkpointing::None => {
            "none: transformers has no checkpointing for this network, and stops where it is asked for"
        }
        _ => return,
    };
    problems.warn("training.checkpointing", expected);
}

fn model(case: &Case, problems: &mut Problems) {
    let id = &case.scenario.model.id;
    if let Some(network) = &case.scenario.model.network {
        let (model, data) = (&case.scenario.model, &case.scenario.data);
        if network.recording().is_some() {
            return;
        }
        if let Err(problem) = network.plan(&model.dims, data.micro_batch, data.sequence) {
            // Said of the field that the form has.
            let path = problem
                .field
                .strip_prefix(network::FIELD)
                .unwrap_or_default();
            let value = format!("{}={}", path.trim_start_matches('.'), problem.value);
            let problem = Problem::new(network::FIELD, value, problem.expected);
            problems.refused.push(problem);
        }
        let known = network.sizes();
        if let Some(name) = model
            .dims
            .keys()
            .find(|name| !known.contains(&name.as_str()))
        {
            let expected = format!("sizes that the network names, which {name} is not");
            problems.warn("model.dims", expected);
        }
        return;
    }
    match case.listed_model() {
        None => {
            let expected = match one_of(&catalog::models_near(id)) {
                Some(near) => format!("a known model; did you mean {near}?"),
                None => "a model of `headroom catalog`".into(),
            };
            problems.refuse("model.id", expected);
        }
        Some(entry) if !entry.runs => {
            let expected = format!(
                "a model with a forward function (`headroom catalog models`): `{}` has none here",
                entry.arch
            );
            problems.refuse("model.id", expected);
        }
        Some(entry) => {
            let dims = &case.scenario.model.dims;
            if !entry.graph.is_empty() && dims.keys().any(|name| name != entry.graph) {
                let expected = match entry.graph {
                    "sequence" => "none: this model runs as it was recorded".to_string(),
                    size => format!("{size} alone: this model runs as it was recorded"),
                };
                problems.refuse("model.dims", expected);
                return;
            }
            let known: Vec<&str> = entry.sizes().iter().map(|(name, _)| *name).collect();
            let encodes = matches!(entry.arch, "dreams" | "llava" | "unet");
            let option = |name: &str| is_option(name) || encodes && name == "encoders";
            let strange = |name: &&String| !known.contains(&name.as_str()) && !option(name);
            if let Some(name) = case.scenario.model.dims.keys().find(strange) {
                let near = nearest(name, known.iter().copied());
                let near = near.map_or_else(
                    || known.join(", "),
                    |known| format!("{known} where it says {name}"),
                );
                problems.warn("model.dims", format!("dimensions of this model: {near}"));
            }
        }
    }
}

/// Dimensions that a forward function reads and that are in no entry's list.
fn is_option(name: &str) -> bool {
    matches!(
        name,
        "drop" | "edges" | "feat" | "labels" | "nodes" | "sliding_window"
    )
}

/// Sequences, their distribution and their padding.
fn lengths(case: &Case, problems: &mut Problems) {
    let data = &case.scenario.data;
    let sequence = data.sequence;
    if let Some(entry) = case.listed_model()
        && let Some(places) = case
            .size("ctx")
            .filter(|places| *places > 0 && sequence > *places)
        && is_text(case)
    {
        if entry.traits.contains(&"learned-positions") {
            let expected = format!("at most {places}: the model has learned that many positions");
            problems.refuse("data.sequence", expected);
        } else {
            let expected = format!("at most {places}, the longest the model was trained for");
            problems.warn("data.sequence", expected);
        }
    }
    let given: Vec<(&str, u64)> = [
        ("data.mean", data.mean),
        ("data.p95", data.p95),
        ("data.max", data.max),
    ]
    .into_iter()
    .filter(|(_, amount)| *amount > 0)
    .collect();
    for pair in given.windows(2) {
        if pair[0].1 > pair[1].1 {
            problems.refuse(
                pair[1].0,
                format!("at least {}, which {} is", pair[0].1, pair[0].0),
            );
        }
    }
    match data.distribution {
        Distribution::Varying if given.is_empty() => {
            problems.warn(
                "data.distribution",
                "data.mean, data.p95 or data.max beside it",
            );
        }
        Distribution::Fixed if !given.is_empty() => {
            problems.warn(
                "data.distribution",
                "varying or padded-to-max, where lengths are given",
            );
        }
        _ => {}
    }
    if data.distribution == Distribution::Varying
        && data.max > sequence
        && !data.packing
        && is_text(case)
    {
        let expected = format!(
            "at least {}, which data.max is: longer samples would be cut",
            data.max
        );
        problems.warn("data.sequence", expected);
    }
    if data.packing && data.padding_mask {
        problems.refuse(
            "data.padding_mask",
            "off: packed samples leave nothing to pad",
        );
    }
    if data.distribution == Distribution::PaddedToMax
        && !data.padding_mask
        && !data.packing
        && is_text(case)
    {
        problems.warn("data.padding_mask", "on: padded samples need a mask");
    }
}

/// Whether samples are sequences of tokens.
fn is_text(case: &Case) -> bool {
    let of_tokens = |category| {
        matches!(
            category,
            ModelCategory::Decoders
                | ModelCategory::Encoders
                | ModelCategory::EncoderDecoders
                | ModelCategory::VisionLanguage
                | ModelCategory::Proteins
        )
    };
    case.listed_model()
        .is_some_and(|entry| of_tokens(entry.category))
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
            "off: a model that computes layers again cannot fill a cache",
        );
    }
    let in_backward = training.optimizer_in_backward || training.optimizer.uses_gradients_up();
    if in_backward && training.accumulation > 1 {
        problems.refuse(
            "training.accumulation",
            "1: a step in backward leaves no gradients to add to",
        );
    }
    if training.optimizer_in_backward && training.clip {
        problems.refuse(
            "training.clip",
            "off: a step in backward cannot wait for the norm of all gradients",
        );
    }
    if training.optimizer_in_backward && training.optimizer.uses_gradients_up() {
        problems.refuse(
            "training.optimizer_in_backward",
            "off: this optimizer steps in backward by itself",
        );
    }
    if in_backward && training.precision == Precision::AmpFp16 {
        problems.refuse(
            if training.optimizer_in_backward {
                "training.optimizer_in_backward"
            } else {
                "training.optimizer"
            },
            "off, or another optimizer: the gradient scaler looks at all gradients before the step",
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
            problems.refuse("training.qat", "off: it is known on one GPU");
        }
    }
    low_precision(case, problems);
    if training.fp8 && matches!(training.precision, Precision::Fp16 | Precision::AmpFp16) {
        problems.refuse("training.precision", "bf16, amp-bf16 or fp32 beside fp8");
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
            "library: the loss of this model has no other form here",
        );
    }
    if !decoder && training.kernels != Kernels::Library {
        problems.warn(
            "training.kernels",
            "library: there are no such kernels for this model",
        );
    }
    if training.checkpoint_every > 1 && training.checkpointing == Checkpointing::None {
        problems.warn("training.checkpoint_every", "1, or checkpointing beside it");
    }
}

/// Models whose compiled graphs were compared with PyTorch's own.
const COMPARED: [&str; 6] = ["bert", "gpt2", "llama", "qwen2", "qwen3", "resnet"];

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
            "nothing: what compiled graphs of this model keep is not known",
        ),
        (
            scenario.hardware.gpus > 1 || scenario.hardware.nodes > 1,
            "nothing: compiled graphs are known on one GPU",
        ),
        (
            scenario.training.task.objective != Objective::Pretraining,
            "nothing: what trainers compile of their own losses is not known",
        ),
        (
            training.quantization != Quantization::None || training.qat,
            "nothing: compiled products of few bits are not known",
        ),
        (
            training.kernels != Kernels::Library || training.loss != LossKernel::Library,
            "nothing beside kernels of other libraries",
        ),
        (
            !matches!(
                training.checkpointing,
                Checkpointing::None | Checkpointing::Layers
            ),
            "nothing, or checkpointing of whole layers or none beside it",
        ),
        (
            !training.budget_is_known(arch),
            "nothing, or training.memory_budget 0 or 1: what is kept between them is known of Llama in bf16",
        ),
        (
            training.memory_budget < 1.0 && training.checkpointing != Checkpointing::None,
            "nothing, or no checkpointing beside a memory budget: what both keep is not known",
        ),
        (
            training.keep_outputs,
            "nothing, or training.keep_outputs off: a kept output is not known beside it",
        ),
    ];
    if let Some((_, expected)) = unknown.into_iter().find(|(is, _)| *is) {
        problems.refuse("training.compile", expected);
    }
}

/// What linear layers cannot multiply in at once, and where it is not known.
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
        (
            !decodes,
            "none, or a model that continues text: only their layers are known so",
        ),
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
            "none: it is known on one GPU",
        ),
        (
            training.compile != Compile::Nothing && !float8,
            "a float8 recipe, or training.compile nothing: other compiled graphs are not known",
        ),
        (
            matches!(
                training.precision,
                Precision::Fp16 | Precision::AmpFp16 | Precision::Fp64
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
            "none, or training.lora beside it: weights of four bits cannot be trained",
        );
    }
    if let Some(lora) = &training.lora {
        if lora.targets.is_empty() {
            problems.refuse("training.lora.targets", "at least one layer's name");
        }
        let smallest = case.size("hidden").filter(|hidden| lora.rank >= *hidden);
        if let Some(hidden) = smallest {
            let expected =
                format!("a rank below {hidden}, the width of the layers it is to be lower than");
            problems.warn("training.lora.rank", expected);
        }
    }
}

/// Versions that Headroom has no facts for.
fn software(case: &Case, problems: &mut Problems) {
    let stack = &case.scenario.stack;
    let (major, minor) = stack.trainer_version;
    let Some(trainer) = catalog::stack(stack.trainer.id()) else {
        return;
    };
    let outside = !(trainer.first..=trainer.last).contains(&(major, minor));
    if (major, minor) != (0, 0) && outside && stack.trainer != Trainer::Torch {
        let (first, last) = (trainer.first, trainer.last);
        let expected = format!(
            "\"{}.{}\" to \"{}.{}\", the versions of {} whose defaults are known; the nearest is taken",
            first.0, first.1, last.0, last.1, trainer.name
        );
        problems.warn("stack.trainer_version", expected);
    }
    if stack.trainer == Trainer::Torch && (major, minor) != (0, 0) {
        problems.warn(
            "stack.trainer_version",
            "\"0.0\": a loop of one's own has no version but PyTorch's",
        );
    }
    if stack.trainer == Trainer::Unsloth && case.scenario.hardware.gpus > 1 {
        problems.warn(
            "hardware.gpus",
            "1: several GPUs are not what Unsloth is made for",
        );
    }
}
