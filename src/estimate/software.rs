//! From the versions a scenario names to the rules that hold in them.

use crate::catalog;
use crate::scenario::Stack;
use crate::tape::{AdamStep, Logits, Software};

/// The rules of these versions, by the catalogue's table of stacks.
pub fn software(stack: &Stack) -> Software {
    let newest = Software::default();
    if *stack == Stack::default() {
        return newest;
    }
    let value = |library: &str, version, key: &str| {
        let fact = catalog::stack(library).and_then(|it| it.fact(key, version));
        fact.map_or("", |fact| fact.value)
    };
    let torch = |key| value("torch", stack.torch, key);
    let transformers = |key| value("transformers", stack.transformers, key);
    Software {
        softmax_keeps_input: torch("softmax-saves-input") == "true",
        keeps_cublas_workspace: torch("cublas-workspace-kept") == "true",
        zeroes_gradients: torch("training.zero_to_none") == "false",
        adam: match (torch("training.optimizer"), torch("foreach-temporaries")) {
            ("adamw-loop", _) => AdamStep::Loop,
            (_, "2") => AdamStep::TwoLists,
            _ => AdamStep::OneList,
        },
        logits: match transformers("logits") {
            "kept-fp32-shifted" => Logits::KeptShifted,
            "shifted" => Logits::Shifted,
            _ => Logits::Upcast,
        },
        reentrant: transformers("checkpoint-reentrant") == "true",
        four_bit_keeps_input: value("bitsandbytes", stack.bitsandbytes, "four-bit-keeps-input")
            == "true",
        linear_loss_upcasts: value("liger", stack.liger, "linear-loss-upcasts") == "true",
        looped_experts: transformers("experts-loop") == "true",
        mistral_repeats_keys: transformers("mistral-repeats-keys") == "true",
        bigcode_keeps_caches: transformers("bigcode-keeps-caches") == "true",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{Phase, estimate};
    use crate::scenario::{Checkpointing, Precision, Scenario};

    #[track_caller]
    fn check(torch: (u8, u8), transformers: (u8, u8), expected: Software) {
        let stack = Stack {
            torch,
            transformers,
            ..Stack::default()
        };
        assert_eq!(software(&stack), expected);
    }

    #[test]
    fn the_newest_versions_are_the_default_and_older_ones_differ_where_the_table_says() {
        let newest = Software::default();
        check((2, 15), (5, 23), newest);
        check((2, 14), (5, 0), newest);
        let older = Software {
            keeps_cublas_workspace: true,
            logits: Logits::Shifted,
            reentrant: true,
            looped_experts: true,
            bigcode_keeps_caches: true,
            ..newest
        };
        check((2, 4), (4, 48), older);
        let older = Software {
            logits: Logits::KeptShifted,
            mistral_repeats_keys: true,
            ..older
        };
        check((2, 4), (4, 45), older);
        let two = AdamStep::TwoLists;
        check((2, 0), (4, 45), Software { adam: two, ..older });
        let older = Software {
            adam: AdamStep::Loop,
            zeroes_gradients: true,
            ..older
        };
        check((1, 13), (4, 36), older);
        let softmax_keeps_input = true;
        check(
            (1, 10),
            (4, 36),
            Software {
                softmax_keeps_input,
                ..older
            },
        );
    }

    #[test]
    fn four_bit_layers_kept_their_input_once() {
        let keeps = |bitsandbytes| {
            let stack = Stack {
                bitsandbytes,
                ..Stack::default()
            };
            software(&stack).four_bit_keeps_input
        };
        assert!(keeps((0, 41)) && keeps((0, 42)) && !keeps((0, 43)) && !keeps((0, 50)));
    }

    #[test]
    fn bigcode_kept_each_layer_s_whole_product_while_it_was_checkpointed() {
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
            let forward = all.phases.iter().find(|it| it.what == Phase::Forward);
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
