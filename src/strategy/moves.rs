//! Moves: changes to a run that may save memory. What each saves is computed for the run at hand, never assumed.

use crate::catalog;
use crate::scenario::{Attention, Checkpointing, Lora, Optimizer, Precision, Scenario};

/// What a move costs beside what it saves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cost {
    /// The same results, not slower.
    Free,
    /// The same results up to rounding, slower.
    Time,
    /// Other results: what is trained, or how exactly, changes.
    Results,
}

/// One change.
#[derive(Debug)]
pub struct Move {
    pub id: &'static str,
    pub title: &'static str,
    pub cost: Cost,
    /// What it costs, in a sentence.
    pub price: &'static str,
    /// The changed scenario, where the move is possible and changes anything.
    pub apply: fn(&Scenario) -> Option<Scenario>,
}

/// All moves but the micro-batch, which is chosen for each set of them; cheapest first.
pub const MOVES: &[Move] = &[
    Move {
        id: "drop-outputs",
        title: "drop the model's output before backward",
        cost: Cost::Free,
        price: "`loss = model(**batch).loss` keeps nothing else.",
        apply: |s| {
            s.training
                .keep_outputs
                .then(|| with(s, |it| it.training.keep_outputs = false))
        },
    },
    Move {
        id: "no-cache",
        title: "turn the key-value cache off",
        cost: Cost::Free,
        price: "Training has no use for it.",
        apply: |s| {
            s.training
                .use_cache
                .then(|| with(s, |it| it.training.use_cache = false))
        },
    },
    Move {
        id: "zero-to-none",
        title: "zero gradients to None",
        cost: Cost::Free,
        price: "PyTorch's default since 2.0; code that reads `.grad` after zeroing finds None.",
        apply: |s| {
            (!s.training.zero_to_none).then(|| with(s, |it| it.training.zero_to_none = true))
        },
    },
    Move {
        id: "fused-adamw",
        title: "fused AdamW",
        cost: Cost::Free,
        price: "The same update in one kernel, without parameter-sized temporaries.",
        apply: |s| {
            let foreach = s.training.optimizer == Optimizer::AdamW;
            foreach.then(|| with(s, |it| it.training.optimizer = Optimizer::AdamWFused))
        },
    },
    Move {
        id: "expandable-segments",
        title: "expandable segments",
        cost: Cost::Free,
        price: "An option of the allocator; tensors cannot be shared between processes.",
        apply: |s| {
            let off = !s.runtime.expandable_segments;
            off.then(|| with(s, |it| it.runtime.expandable_segments = true))
        },
    },
    Move {
        id: "sdpa",
        title: "fused attention (SDPA)",
        cost: Cost::Free,
        price: "Equal up to rounding, and faster.",
        apply: |s| {
            let eager = s.training.attention == Attention::Eager;
            eager.then(|| with(s, |it| it.training.attention = Attention::Sdpa))
        },
    },
    Move {
        id: "checkpointing",
        title: "checkpoint every layer",
        cost: Cost::Time,
        price: "Each layer's forward runs twice.",
        apply: |s| {
            let none = s.training.checkpointing == Checkpointing::None && !s.training.use_cache;
            none.then(|| with(s, |it| it.training.checkpointing = Checkpointing::Layers))
        },
    },
    Move {
        id: "amp-bf16",
        title: "bf16 autocast",
        cost: Cost::Results,
        price: "Matrix products in bf16 over fp32 weights: the usual recipe, and much faster.",
        apply: |s| {
            let fp32 = s.training.precision == Precision::Fp32 && has_bf16(s);
            fp32.then(|| with(s, |it| it.training.precision = Precision::AmpBf16))
        },
    },
    Move {
        id: "no-ema",
        title: "no moving average of the weights",
        cost: Cost::Results,
        price: "The averaged weights are not there to be used; they could be kept in host memory.",
        apply: |s| {
            s.training
                .ema
                .then(|| with(s, |it| it.training.ema = false))
        },
    },
    Move {
        id: "bf16",
        title: "weights, gradients and states in bf16",
        cost: Cost::Results,
        price: "Small updates are lost to rounding: fine-tuning mostly bears it, long pre-training does not.",
        apply: |s| {
            let wider = matches!(s.training.precision, Precision::Fp32 | Precision::AmpBf16);
            (wider && s.training.lora.is_none() && has_bf16(s))
                .then(|| with(s, |it| it.training.precision = Precision::Bf16))
        },
    },
    Move {
        id: "adafactor",
        title: "Adafactor in place of Adam",
        cost: Cost::Results,
        price: "Another optimizer: its learning rate must be found anew.",
        apply: |s| {
            let adam = matches!(
                s.training.optimizer,
                Optimizer::AdamW | Optimizer::AdamWFused | Optimizer::AdamWLoop
            );
            adam.then(|| with(s, |it| it.training.optimizer = Optimizer::AdafactorHf))
        },
    },
    Move {
        id: "lora",
        title: "LoRA on the attention layers, over a frozen bf16 base",
        cost: Cost::Results,
        price: "Only adapters are trained: often enough for fine-tuning, never for pre-training.",
        apply: |s| {
            let targets = attention_layers(s)?;
            (s.training.lora.is_none() && has_bf16(s)).then(|| {
                with(s, |it| {
                    it.training.lora = Some(Lora {
                        targets,
                        ..Lora::default()
                    });
                    it.training.precision = Precision::AmpBf16OnBf16;
                })
            })
        },
    },
    Move {
        id: "half-sequence",
        title: "sequences of half the length",
        cost: Cost::Results,
        price: "Longer texts are cut or split: the model sees less at once.",
        apply: |s| {
            // Context parallelism deals a sequence out in twice as many pieces as it has ranks.
            let pieces = u64::from(s.parallel.cp).max(1) * 2;
            let half = s.data.sequence / 2 / pieces * pieces;
            (half >= 128).then(|| with(s, |it| it.data.sequence = half))
        },
    },
];

fn with(scenario: &Scenario, change: impl FnOnce(&mut Scenario)) -> Scenario {
    let mut changed = scenario.clone();
    change(&mut changed);
    changed
}

/// What the layers of a decoder's attention are called, where adapters on them are usual.
fn attention_layers(scenario: &Scenario) -> Option<Vec<String>> {
    match catalog::model(&scenario.model.id)?.arch {
        "gpt2" => Some(vec!["c_attn".into()]),
        "llama" | "mistral" | "mixtral" | "qwen2" | "qwen3" | "gemma" | "gemma2" => {
            Some(Lora::default().targets)
        }
        _ => None,
    }
}

fn has_bf16(scenario: &Scenario) -> bool {
    catalog::gpu(&scenario.hardware.gpu).is_none_or(|gpu| gpu.bf16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::sample::{self, Dice};

    #[test]
    fn moves_make_valid_scenarios_and_are_listed_cheapest_first() {
        assert!(MOVES.is_sorted_by_key(|it| it.cost));
        let mut dice = Dice::new(7);
        for _ in 0..200 {
            let mut scenario = sample::scenario(&mut dice);
            scenario.hardware.gpu = "rtx-4090".into();
            scenario.model.id = "llama-3.2-1b".into();
            let before = scenario.check();
            for it in MOVES {
                let Some(changed) = (it.apply)(&scenario) else {
                    continue;
                };
                assert_ne!(changed, scenario, "{}", it.id);
                assert!(changed.check().len() <= before.len(), "{}", it.id);
                assert_eq!(changed.effective_batch(), scenario.effective_batch());
            }
        }
    }
}
