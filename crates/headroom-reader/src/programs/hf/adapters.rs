//! Adapters, by the names that programs on PEFT share.

use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::words::{Adapter, Weights};

/// LoRA, on a base of four bits QLoRA; `weights` must be known by now where the base is quantised.
pub fn lora(keys: &Keys, facts: &mut Facts, rank: &[&str], default: u64, of: &'static str) {
    let four_bits = matches!(
        facts.weights.value(),
        Some(Weights::Nf4 | Weights::Fp4 | Weights::Int4 | Weights::GptqInt4 | Weights::AwqInt4)
    );
    let adapter = if four_bits {
        Adapter::Qlora
    } else {
        Adapter::Lora
    };
    facts.adapter = Fact::follows(Some(adapter), "adapters on the base as it is loaded");
    let given = rank.iter().fold(Fact::Unsaid, |fact: Fact<u64>, key| {
        fact.or(keys.whole(key))
    });
    facts.rank = given.or_default(default, of);
    let targets = [
        "lora_target_modules",
        "target_modules",
        "lora_target",
        "lora_modules",
    ]
    .iter()
    .fold(Fact::Unsaid, |fact: Fact<Vec<String>>, key| {
        fact.or(keys.list(key))
    });
    facts.targets = targets;
}
