//! From a scenario's software versions to the rules of those versions.

use crate::nets::{Libraries, Logits};
use crate::parallel::is_accelerate;
use crate::tape::{AdamStep, Torch};
use headroom_catalog as catalog;
use headroom_scenario::{Stack, Trainer};

/// The rules of the scenario's PyTorch version, from the catalogue's table of stacks.
pub fn torch(stack: &Stack) -> Torch {
    if *stack == Stack::default() {
        return Torch::default();
    }
    let value = |key| value("torch", stack.torch, key);
    Torch {
        softmax_keeps_input: value("softmax-saves-input") == "true",
        hardtanh_keeps_result: value("hardtanh-saves-result") == "true",
        keeps_cublas_workspace: value("cublas-workspace-kept") == "true",
        zeroes_gradients: value("training.zero_to_none") == "false",
        adam: match (value("training.optimizer"), value("foreach-temporaries")) {
            ("adamw-loop", _) => AdamStep::Loop,
            (_, "2") => AdamStep::TwoLists,
            _ => AdamStep::OneList,
        },
    }
}

/// The rules of the libraries' versions, from the same table.
pub fn libraries(stack: &Stack) -> Libraries {
    if *stack == Stack::default() {
        return Libraries::NEWEST;
    }
    let transformers = |key| value("transformers", stack.transformers, key);
    let bitsandbytes = |key| value("bitsandbytes", stack.bitsandbytes, key);
    Libraries {
        logits: match transformers("logits") {
            "kept-fp32-shifted" => Logits::KeptShifted,
            "shifted" => Logits::Shifted,
            _ => Logits::Upcast,
        },
        reentrant: transformers("checkpoint-reentrant") == "true",
        fp32_embedding_states: is_accelerate(stack.trainer),
        checkpoint_calls_wrapper: transformers("checkpoint-calls-wrapper") == "true",
        looped_experts: transformers("experts-loop") == "true",
        mistral_repeats_keys: transformers("mistral-repeats-keys") == "true",
        repeats_keys: stack.trainer == Trainer::Torchtune,
        bigcode_keeps_caches: transformers("bigcode-keeps-caches") == "true",
        four_bit_keeps_input: bitsandbytes("four-bit-keeps-input") == "true",
        four_bit_without_groups: false,
        linear_loss_upcasts: value("liger", stack.liger, "linear-loss-upcasts") == "true",
        trains_in_fp32: stack.trainer == Trainer::LlamaFactory,
        moves_adapters: false,
        compiles_loss: stack.trainer == Trainer::Torchtune,
        offloads_activations: false,
        offloads_as_trl: stack.trainer == Trainer::Trl,
    }
}

/// The table's value of a rule in a version; empty if there is none.
fn value(library: &str, version: (u8, u8), key: &str) -> &'static str {
    let fact = catalog::stack(library).and_then(|library| library.fact(key, version));
    fact.map_or("", |fact| fact.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{Phase, estimate};
    use headroom_scenario::{Checkpointing, Precision, Scenario};

    #[track_caller]
    fn check(versions: [(u8, u8); 2], expected: (Torch, Libraries)) {
        let [torch_version, transformers] = versions;
        let stack = Stack {
            torch: torch_version,
            transformers,
            ..Stack::default()
        };
        assert_eq!((torch(&stack), libraries(&stack)), expected);
    }

    #[test]
    fn the_newest_versions_are_the_default_and_older_ones_differ_where_the_table_says() {
        let newest = (Torch::default(), Libraries::NEWEST);
        check([(2, 15), (5, 23)], newest);
        check([(2, 14), (5, 0)], newest);
        let torch = Torch {
            keeps_cublas_workspace: true,
            ..Torch::default()
        };
        let libraries = Libraries {
            logits: Logits::Shifted,
            reentrant: true,
            checkpoint_calls_wrapper: true,
            looped_experts: true,
            bigcode_keeps_caches: true,
            ..Libraries::NEWEST
        };
        check([(2, 4), (4, 48)], (torch, libraries));
        let libraries = Libraries {
            logits: Logits::KeptShifted,
            mistral_repeats_keys: true,
            ..libraries
        };
        check([(2, 4), (4, 45)], (torch, libraries));
        let torch = Torch {
            adam: AdamStep::TwoLists,
            ..torch
        };
        check([(2, 0), (4, 45)], (torch, libraries));
        let torch = Torch {
            adam: AdamStep::Loop,
            zeroes_gradients: true,
            ..torch
        };
        check([(1, 13), (4, 36)], (torch, libraries));
        let torch = Torch {
            softmax_keeps_input: true,
            hardtanh_keeps_result: true,
            ..torch
        };
        check([(1, 10), (4, 36)], (torch, libraries));
    }

    #[test]
    fn four_bit_layers_save_their_input_once() {
        let keeps = |bitsandbytes| {
            let stack = Stack {
                bitsandbytes,
                ..Stack::default()
            };
            libraries(&stack).four_bit_keeps_input
        };
        assert!(keeps((0, 41)) && keeps((0, 42)) && !keeps((0, 43)) && !keeps((0, 50)));
    }

    #[test]
    fn bigcode_keeps_each_layers_fused_projection_when_checkpointed() {
        let forward = |transformers, use_cache| {
            let mut scenario = Scenario::default();
            scenario.model.id = "santacoder".into();
            scenario.model.dims.insert("layers".into(), 6);
            scenario.stack.transformers = transformers;
            scenario.training.precision = Precision::Bf16;
            scenario.training.checkpointing = Checkpointing::Layers;
            scenario.training.use_cache = use_cache;
            // Blocks are as large as asked.
            scenario.runtime.expandable_segments = true;
            let all = estimate(&scenario).unwrap();
            let forward = all.phases.iter().find(|part| part.what == Phase::Forward);
            forward.unwrap().bytes.get()
        };
        // 16 heads of queries and one of keys and values, of 128 each, in 16 bits, for 8 rows of 1024 tokens.
        let product = 8 * 1024 * (16 + 2) * 128 * 2;
        assert_eq!(
            forward((4, 52), true) - forward((4, 52), false),
            6 * product
        );
        assert_eq!(forward((4, 53), true), forward((4, 53), false));
    }
}
