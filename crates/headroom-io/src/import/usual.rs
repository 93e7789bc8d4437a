//! What a person means who does not say it: a sentence is not a file, whose silence is its program's default.

use headroom_scenario::resolve::{Origin, resolve};
use headroom_scenario::settings::{self, Value};
use headroom_scenario::{Case, Draft, Precision};

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
