//! Checks the task, its reference or teacher model, and their settings against each other.

use super::{Case, Problems};
use crate::{
    AdapterMethod, Checkpointing, LmHead, LossKernel, Objective, Parallelism, Quantization,
    Reference, Sampler, Trainer,
};
use headroom_catalog::{self as catalog, ModelCategory};

/// Tasks whose models wrappers divide as their trainers have them do.
const DIVIDED: [Objective; 8] = [
    Objective::Sft,
    Objective::Dpo,
    Objective::Kto,
    Objective::Orpo,
    Objective::Cpo,
    Objective::SimPo,
    Objective::Reward,
    Objective::Grpo,
];

pub(super) fn check(case: &Case, problems: &mut Problems) {
    adapters(case, problems);
    let objective = case.scenario.training.task.objective;
    if objective == Objective::Pretraining {
        return;
    }
    trained(case, problems);
    reference_model(case, problems);
    sampled(case, problems);
}

/// Adapters that need more than LoRA does.
fn adapters(case: &Case, problems: &mut Problems) {
    let training = &case.scenario.training;
    let method = training.lora.as_ref().map(|lora| lora.method);
    if method == Some(AdapterMethod::Prefix) && training.checkpointing == Checkpointing::Layers {
        problems.refuse(
            "training.checkpointing",
            "none: PEFT refuses prefix tuning with checkpointing",
        );
    }
    let quantised = training.quantization != Quantization::None;
    if quantised && method.is_some_and(|method| !method.over_quantised()) {
        problems.refuse(
            "training.lora.method",
            "another method: this one over quantised weights is not modelled",
        );
    }
    let in_blocks = [AdapterMethod::Boft, AdapterMethod::C3a];
    if let Some(lora) = training
        .lora
        .as_ref()
        .filter(|lora| in_blocks.contains(&lora.method))
    {
        let block = lora.block();
        let expected = "a size that divides this model's widths";
        let divided = |name| {
            case.size(name)
                .is_none_or(|size: u64| size.is_multiple_of(block))
        };
        if !(divided("hidden") && divided("ffn")) {
            problems.refuse("training.lora.block", expected);
        }
    }
    let elsewhere = [AdapterMethod::Prefix, AdapterMethod::TrainedTokens];
    let decodes = case
        .listed_model()
        .is_some_and(|model| model.category == ModelCategory::Decoders);
    if method.is_some_and(|method| elsewhere.contains(&method)) && !decodes {
        problems.refuse(
            "training.lora.method",
            "another method: this one is modelled for causal language models only",
        );
    }
}

/// The loss and how the GPUs share the work.
fn trained(case: &Case, problems: &mut Problems) {
    let training = &case.scenario.training;
    let task = &training.task;
    if training.loss != LossKernel::Library {
        problems.refuse("training.loss", "library: the task has its own loss");
    }
    let chunked = matches!(
        task.objective,
        Objective::Dpo | Objective::Orpo | Objective::Cpo | Objective::SimPo | Objective::Grpo
    );
    if task.head == LmHead::Liger && !chunked {
        problems.refuse(
            "task.head",
            "fused or logits: Liger's chunked losses are of DPO, ORPO, CPO, SimPO and GRPO",
        );
    }
    let compared = matches!(
        task.objective,
        Objective::Dpo | Objective::Kto | Objective::Orpo | Objective::SimPo
    );
    let sampled = matches!(task.objective, Objective::Grpo | Objective::Rloo);
    if task.head == LmHead::InPlace && !sampled {
        problems.refuse(
            "task.objective",
            "grpo or rloo: of verl's PPO the policy's update is estimated, which is that of GRPO",
        );
        return;
    }
    if task.head == LmHead::LogSoftmax && !compared {
        problems.refuse(
            "task.head",
            "fused or logits: losses over a log-softmax are of DPO, KTO, ORPO and SimPO",
        );
    }
    divided(case, problems);
    for (path, ways) in case.within_a_model() {
        if ways > 1 {
            problems.refuse(path, "1: how a task's models are divided is not modelled");
        }
    }
    if case.scenario.data.packing && task.objective != Objective::Sft {
        problems.refuse(
            "data.packing",
            "off: only supervised fine-tuning packs samples",
        );
    }
    let labels = !task.objective.samples()
        && !task.objective.trains_head()
        && task.objective != Objective::Reward;
    if labels && task.objective.trains() && task.labelled <= 0.0 {
        problems.refuse("task.labelled", "more than 0: a loss over no tokens is NaN");
    }
    // LLaMA-Factory and Megatron have KTO trainers of their own, which take one.
    let own = matches!(
        case.scenario.stack.trainer,
        Trainer::LlamaFactory | Trainer::Megatron
    );
    if task.objective == Objective::Kto && case.scenario.data.micro_batch < 2 && !own {
        problems.refuse(
            "data.micro_batch",
            "2 or more: KTO takes its answers that do not match from the same micro-batch",
        );
    }
    if training.prompt_tokens > 0 && task.objective.refers() {
        problems.refuse(
            "training.prompt_tokens",
            "0: a learned prompt with a reference model is not modelled",
        );
    }
}

/// A task's models under the wrappers that divide them.
fn divided(case: &Case, problems: &mut Problems) {
    use Parallelism::{Ddp, Fsdp2, Hsdp, None, Zero0, Zero1, Zero2, Zero3};
    let task = &case.scenario.training.task;
    let strategy = case.scenario.parallel.strategy;
    if matches!(strategy, None | Ddp) || case.scenario.hardware.gpus < 2 {
        return;
    }
    let samples = task.objective == Objective::Grpo;
    if samples && matches!(strategy, Fsdp2 | Hsdp | Zero0 | Zero1 | Zero2 | Zero3) {
        sampled_apart(case, problems);
    }
    let expected = match (strategy, task.objective) {
        (Fsdp2 | Hsdp | Zero0 | Zero1 | Zero2 | Zero3, _) if task.head == LmHead::Liger => {
            "none or ddp: how Liger's loss takes the weight of a divided head is not modelled"
        }
        (Fsdp2 | Hsdp | Zero0 | Zero1 | Zero2 | Zero3, objective)
            if DIVIDED.contains(&objective) =>
        {
            return;
        }
        (Fsdp2 | Hsdp | Zero0 | Zero1 | Zero2 | Zero3, _) => {
            "none or ddp: how this task's models are divided among GPUs is not modelled"
        }
        _ => {
            "fsdp2, zero0, zero1, zero2, zero3, ddp or none: other strategies are not modelled for this task"
        }
    };
    problems.refuse("parallel.strategy", expected);
}

/// Completions for a model that is divided: what samples them is vLLM, which is given its weights.
fn sampled_apart(case: &Case, problems: &mut Problems) {
    let task = &case.scenario.training.task;
    if !matches!(task.sampler, Sampler::Vllm | Sampler::VllmElsewhere) {
        problems.refuse(
            "task.sampler",
            "vllm or vllm-server: how a divided model samples is not modelled",
        );
    }
}

/// References and teachers.
fn reference_model(case: &Case, problems: &mut Problems) {
    let training = &case.scenario.training;
    let task = &training.task;
    if task.objective.refers() {
        if task.reference == Reference::AdaptersOff && training.lora.is_none() {
            problems.refuse(
                "task.reference",
                "copy, or adapters (training.lora) that can be switched off",
            );
        }
        let before = matches!(task.objective, Objective::Dpo | Objective::Kto);
        let precomputed = [Reference::Precomputed, Reference::ByItself];
        if precomputed.contains(&task.reference) && !before {
            problems.refuse(
                "task.reference",
                "a reference model that runs in the step: sampled completions cannot be scored in advance",
            );
        }
        if task.reference == Reference::None && before {
            problems.refuse(
                "task.reference",
                "a reference, which this loss compares with",
            );
        }
    }
    if task.objective.has_teacher() {
        let teacher = catalog::model(&task.teacher);
        match teacher.filter(|model| model.category == ModelCategory::Decoders && model.runs) {
            None => problems.refuse(
                "task.teacher",
                "a model of the catalogue that continues text",
            ),
            Some(teacher) if teacher.size("vocab") != case.size("vocab") => problems.refuse(
                "task.teacher",
                "a model with the trained model's vocabulary",
            ),
            Some(_) => {}
        }
    }
}

/// Completions and what samples them.
fn sampled(case: &Case, problems: &mut Problems) {
    let scenario = case.scenario;
    let task = &scenario.training.task;
    let groups = matches!(task.objective, Objective::Grpo | Objective::Rloo);
    if groups {
        let batches = match task.generation_batches {
            0 => scenario.training.accumulation,
            batches => batches,
        };
        let rows = scenario
            .data
            .micro_batch
            .saturating_mul(batches)
            .saturating_mul(scenario.hardware.gpus.into());
        if !rows.is_multiple_of(task.generations.max(1)) {
            let expected = format!("a divisor of the {rows} rows that are sampled at once");
            problems.refuse("task.generations", expected);
        }
    }
    let by_vllm = matches!(task.sampler, Sampler::Vllm | Sampler::VllmElsewhere);
    if by_vllm
        && !matches!(
            task.objective,
            Objective::Grpo | Objective::Rloo | Objective::Distillation
        )
    {
        problems.refuse(
            "task.sampler",
            "generate or generate-static: this task samples with the model itself",
        );
    }
    // verl turns them off while vLLM takes its memory.
    let sleeps =
        task.sampler == Sampler::Vllm && task.vllm_sleep && scenario.stack.trainer != Trainer::Verl;
    if groups && sleeps && scenario.runtime.expandable_segments {
        problems.warn(
            "runtime.expandable_segments",
            "off, unless vLLM is newer than April 2026: before, its sleep mode did not start with expandable segments",
        );
    }
    if task.objective.samples() && scenario.data.padding_mask {
        problems.warn(
            "data.padding_mask",
            "off: completions are taken to be as long as they may be",
        );
    }
}
