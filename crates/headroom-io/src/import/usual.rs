//! What a person means who does not say it: a sentence is not a file, whose silence is its program's default.

use headroom_reader::facts::Facts;
use headroom_scenario::resolve::{Origin, resolve};
use headroom_scenario::settings::{self, Value};
use headroom_scenario::{Case, Draft, Objective, Parallelism, Precision, Sampler};

/// A GPU without bf16 trains in fp16.
pub(super) fn without_bf16(draft: &mut Draft) {
    let Some(precision) = settings::find("training.precision") else {
        return;
    };
    let scenario = resolve(draft).scenario;
    if draft.get(precision).is_some() || Case::of(&scenario).has((8, 0), |gpu| gpu.bf16) {
        return;
    }
    let half = match scenario.training.lora {
        Some(_) => Precision::AmpFp16OnFp16,
        None => Precision::AmpFp16,
    };
    let origin = Origin::Method {
        why: "the GPU has no bf16",
        source: "CUDA C++ Programming Guide, arithmetic instructions by compute capability",
    };
    draft.set_value(precision, Value::Text(half.id().into()), origin);
}

/// What samples, where only the task is said: vLLM if it is named, or if the model is divided, since a divided model is not sampled
/// from itself.
pub(super) fn sampler(facts: Option<&Facts>, draft: &mut Draft) {
    let Some(setting) = settings::find("task.sampler").filter(|one| draft.get(one).is_none())
    else {
        return;
    };
    let scenario = resolve(draft).scenario;
    let task = &scenario.training.task;
    let samples = matches!(task.objective, Objective::Grpo | Objective::Rloo);
    if !samples || task.sampler != Sampler::Generate {
        return;
    }
    let named = facts.is_some_and(|facts| !facts.vllm.is_unsaid());
    let divided = scenario.hardware.gpus > 1
        && !matches!(
            scenario.parallel.strategy,
            Parallelism::None | Parallelism::Ddp | Parallelism::DataParallel
        );
    let why = match (named, divided) {
        (true, _) => "vLLM is named",
        (false, true) => "usual where the model is divided",
        (false, false) => return,
    };
    draft.read(setting, Sampler::Vllm.id(), Origin::Assumed(why.into()));
}
