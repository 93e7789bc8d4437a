//! Settings and the catalogue speak of the same things.

use headroom_catalog::{MethodKind, method, stacks};
use headroom_scenario::{Attention, Optimizer, Precision, Scenario, settings};

/// Keys that are no scenario setting.
const BEHAVIOURS: &[&str] = &[
    "allgather-bucket",
    "allocator-variable",
    "bigcode-keeps-caches",
    "checkpoint-calls-wrapper",
    "checkpoint-reentrant",
    "cublas-workspace-kept",
    "ddp-bucket-mb",
    "expandable-segments",
    "experts-loop",
    "four-bit-keeps-input",
    "mistral-repeats-keys",
    "foreach-temporaries",
    "fsdp-version",
    "fused-lora-kernels",
    "hardtanh-saves-result",
    "linear-loss-upcasts",
    "logits",
    "max-live",
    "max-reuse",
    "norms-fp32-in-4bit",
    "offloaded-checkpoints",
    "packing",
    "persistence-threshold",
    "prefetch-bucket",
    "reduce-bucket",
    "softmax-saves-input",
    "trainable-fp32",
];

#[test]
fn every_choice_of_a_scenario_is_listed() {
    let choices = [
        (MethodKind::Optimizer, Optimizer::CHOICES),
        (MethodKind::Precision, Precision::CHOICES),
        (MethodKind::Attention, Attention::CHOICES),
    ];
    for (kind, choices) in choices {
        for choice in choices {
            assert!(method(kind, choice.id).is_some(), "{}", choice.id);
        }
    }
}

#[test]
fn a_key_is_a_setting_that_takes_the_value_or_a_known_behaviour() {
    for stack in stacks() {
        for fact in stack.facts {
            match settings::find(fact.key) {
                Some(setting) => {
                    let set = setting.set(&mut Scenario::default(), fact.value);
                    assert!(set.is_ok(), "{} {} {}", stack.id, fact.key, fact.value);
                }
                None => assert!(BEHAVIOURS.contains(&fact.key), "{}", fact.key),
            }
        }
    }
}
