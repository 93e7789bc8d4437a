//! The default precision of LoRA on a language model: a bf16 base.
//!
//! It is a default of forms and flags, not of the format: a link or a file without a precision means what the format's version
//! meant by that.

use super::{Origin, Values};
use crate::settings::{self, SettingId, Value};
use crate::{Case, Precision, Scenario, Trainer};
use headroom_catalog::ModelCategory;

/// A default of the training method.
#[derive(Clone, Debug)]
pub struct MethodDefault {
    pub setting: SettingId,
    pub value: Value,
    pub why: &'static str,
    pub source: &'static str,
    pub in_effect: bool,
}

pub(super) fn apply(scenario: &Scenario, adapted: bool, values: &mut Values) {
    if let Some(default) = default_of(scenario, adapted || scenario.training.lora.is_some()) {
        let MethodDefault {
            setting,
            value,
            why,
            source,
            ..
        } = default;
        values.insert(setting, (value, Origin::Method { why, source }));
    }
}

/// The default for adapters on a language model, in a plain PyTorch loop, on a GPU with bf16. Trainers have their own.
pub fn method_default(scenario: &Scenario) -> Option<MethodDefault> {
    default_of(scenario, scenario.training.lora.is_some())
}

fn default_of(scenario: &Scenario, adapted: bool) -> Option<MethodDefault> {
    let case = Case::of(scenario);
    let decoder = case
        .listed_model()
        .is_some_and(|model| model.category == ModelCategory::Decoders);
    let has_bf16 = case.has((8, 0), |gpu| gpu.bf16);
    let adapted = adapted && scenario.stack.trainer == Trainer::Torch;
    let setting =
        settings::find("training.precision").filter(|_| adapted && decoder && has_bf16)?;
    Some(MethodDefault {
        setting,
        value: Value::Text(Precision::AmpBf16OnBf16.id().into()),
        why: "LoRA on a language model: the frozen base is loaded in bf16, as Axolotl, Unsloth and LLaMA-Factory do, \
              and TRL with `--dtype bfloat16`",
        source: "axolotl `bf16: auto`; unsloth `dtype = None`; LLaMA-Factory `bf16: true`; trl sft `--dtype`",
        in_effect: scenario.training.precision == Precision::AmpBf16OnBf16,
    })
}
