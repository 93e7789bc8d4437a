//! What people mean by LoRA on a language model: the frozen base is loaded in bf16.
//!
//! It is a default of forms and flags, not of the format: a link or a file says its precision, or means what the format's
//! version meant without it.

use super::settings::{self, Setting};
use super::{Case, Precision, Scenario, Trainer};
use headroom_catalog::ModelCategory;

/// A default that the method brings to a setting.
#[derive(Clone, Copy, Debug)]
pub struct Usual {
    pub setting: &'static Setting,
    /// As text that the setting reads.
    pub value: &'static str,
    pub why: &'static str,
    pub source: &'static str,
    /// Whether the scenario has this value; else somebody chose another.
    pub holds: bool,
}

/// The default that adapters bring, where the scenario has them on a language model, in a loop of one's own, on a GPU with bf16.
/// A trainer that is named brings its own.
pub fn usual(scenario: &Scenario) -> Option<Usual> {
    let case = Case::of(scenario);
    let decoder = scenario.model.network.is_none()
        && case
            .model
            .is_some_and(|model| model.category == ModelCategory::Decoders);
    let has_bf16 = match scenario.hardware.capability {
        (0, 0) => case.gpu.is_none_or(|gpu| gpu.bf16),
        has => has >= (8, 0),
    };
    let adapted = scenario.training.lora.is_some() && scenario.stack.trainer == Trainer::Torch;
    let setting =
        settings::find("training.precision").filter(|_| adapted && decoder && has_bf16)?;
    Some(Usual {
        setting,
        value: Precision::AmpBf16OnBf16.id(),
        why: "LoRA on a language model: the frozen base is loaded in bf16, as Axolotl, Unsloth and LLaMA-Factory do, \
              and TRL with `--dtype bfloat16`",
        source: "axolotl `bf16: auto`; unsloth `dtype = None`; LLaMA-Factory `bf16: true`; trl sft `--dtype`",
        holds: scenario.training.precision == Precision::AmpBf16OnBf16,
    })
}
