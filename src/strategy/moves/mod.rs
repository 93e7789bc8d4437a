//! Moves: changes to a run that may save memory, one file each.
//!
//! A move says what it does and what it costs; what it saves is computed for the run at hand, never assumed, and may be nothing
//! or less than nothing.

mod adafactor;
mod adamw_8bit;
mod adapter_dropout;
mod adapter_targets;
mod adapter_type;
mod amp_bf16;
mod amp_fp16;
mod average_on_host;
mod bucket_view;
mod checkpoint_attention;
mod checkpoint_half;
mod checkpoint_layers;
mod checkpoint_matmuls;
mod checkpoint_products;
mod chunked_head;
mod chunked_loss;
mod drop_outputs;
mod eval_batch;
mod expandable_segments;
mod fewer_bins;
mod fewer_edges;
mod fewer_peaks;
mod folklore;
mod freeze_embeddings;
mod fused_adamw;
mod half_sequence;
mod liger_kernels;
mod liger_loss;
mod lora;
mod no_cache;
mod no_dropout;
mod offload_activations;
mod offload_optimizer;
mod optimizer_in_backward;
mod paged_adamw;
mod paged_adamw_8bit;
mod pure_bf16;
mod qlora;
mod sdpa;
mod smaller_images;
mod zero_to_none;

pub use folklore::{FOLKLORE, Folklore};

use serde::Serialize;

use crate::catalog::{self, Category, Vendor};
use crate::scenario::{Lora, Optimizer, Parallelism, Precision, Scenario};

/// What a move costs beside what it saves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cost {
    /// The same results, not slower.
    Free,
    /// The same results up to rounding, slower.
    Time,
    /// Other results: what is trained, or how exactly, changes.
    Results,
}

impl Cost {
    pub const fn id(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Time => "time",
            Self::Results => "results",
        }
    }
}

/// What a move changes. Of the moves of one group at most one is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    Length,
    Size,
    Precision,
    Adapters,
    AdapterTargets,
    AdapterType,
    AdapterDropout,
    Frozen,
    Dropout,
    Average,
    Attention,
    Kernels,
    Loss,
    Outputs,
    Cache,
    Checkpointing,
    Optimizer,
    Stepping,
    Zeroing,
    Buckets,
    Evaluation,
    Allocator,
}

impl Group {
    /// In the order in which moves are applied: what is trained first, how it is stepped and held last.
    pub const ALL: [Self; 22] = [
        Self::Length,
        Self::Size,
        Self::Precision,
        Self::Adapters,
        Self::AdapterTargets,
        Self::AdapterType,
        Self::AdapterDropout,
        Self::Frozen,
        Self::Dropout,
        Self::Average,
        Self::Attention,
        Self::Kernels,
        Self::Loss,
        Self::Outputs,
        Self::Cache,
        Self::Checkpointing,
        Self::Optimizer,
        Self::Stepping,
        Self::Zeroing,
        Self::Buckets,
        Self::Evaluation,
        Self::Allocator,
    ];

    /// Whether a move of this group leaves the passes through the network as they are: the optimizer's turn alone changes.
    pub const fn is_of_the_turn(self) -> bool {
        matches!(self, Self::Average | Self::Optimizer)
    }
}

/// One change.
#[derive(Debug)]
pub struct Move {
    pub id: &'static str,
    pub title: &'static str,
    pub group: Group,
    /// What it does.
    pub what: &'static str,
    /// What a run must be for it to be possible.
    pub needs: &'static str,
    pub cost: Cost,
    /// What it does to speed.
    pub speed: &'static str,
    /// What it does to what is learnt.
    pub quality: &'static str,
    /// Where speed and quality were read.
    pub source: &'static str,
    /// In what the run is no longer the same; empty where it is.
    pub caveat: &'static str,
    /// What it takes in code.
    pub code: &'static str,
    /// How programs switch it on, by export target.
    pub switches: &'static [(&'static str, &'static str)],
    /// The changed scenario, where the move is possible and changes anything.
    pub apply: fn(&Scenario) -> Option<Scenario>,
}

impl Move {
    /// How an export target switches it on.
    pub fn switch(&self, target: &str) -> Option<&'static str> {
        let found = self.switches.iter().find(|(id, _)| *id == target);
        found.map(|(_, how)| *how)
    }
}

/// All moves but the micro-batch, which is chosen for each set of them; cheapest first.
pub const MOVES: &[Move] = &[
    drop_outputs::MOVE,
    no_cache::MOVE,
    zero_to_none::MOVE,
    expandable_segments::MOVE,
    fused_adamw::MOVE,
    bucket_view::MOVE,
    eval_batch::MOVE,
    sdpa::MOVE,
    liger_kernels::MOVE,
    liger_loss::MOVE,
    chunked_loss::MOVE,
    optimizer_in_backward::MOVE,
    checkpoint_matmuls::MOVE,
    checkpoint_products::MOVE,
    checkpoint_half::MOVE,
    checkpoint_attention::MOVE,
    checkpoint_layers::MOVE,
    chunked_head::MOVE,
    average_on_host::MOVE,
    paged_adamw::MOVE,
    offload_activations::MOVE,
    offload_optimizer::MOVE,
    amp_bf16::MOVE,
    amp_fp16::MOVE,
    adapter_dropout::MOVE,
    adapter_type::MOVE,
    adamw_8bit::MOVE,
    paged_adamw_8bit::MOVE,
    freeze_embeddings::MOVE,
    no_dropout::MOVE,
    pure_bf16::MOVE,
    adapter_targets::MOVE,
    adafactor::MOVE,
    lora::MOVE,
    qlora::MOVE,
    smaller_images::MOVE,
    fewer_peaks::MOVE,
    fewer_bins::MOVE,
    fewer_edges::MOVE,
    half_sequence::MOVE,
];

/// The move with this id.
pub fn find(id: &str) -> Option<&'static Move> {
    MOVES.iter().find(|it| it.id == id)
}

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

/// The usual adapters over a frozen base in bf16.
fn adapted(scenario: &mut Scenario, targets: Vec<String>) {
    scenario.training.lora = Some(Lora {
        targets,
        ..Lora::default()
    });
    scenario.training.precision = Precision::AmpBf16OnBf16;
}

/// What the embeddings are called.
fn embeddings(scenario: &Scenario) -> Option<Vec<String>> {
    let names: &[&str] = match catalog::model(&scenario.model.id)?.arch {
        "gpt2" => &["wte", "wpe"],
        _ if language_model(scenario) => &["embed_tokens"],
        _ => return None,
    };
    Some(names.iter().map(|name| (*name).to_string()).collect())
}

fn language_model(scenario: &Scenario) -> bool {
    catalog::model(&scenario.model.id).is_some_and(|it| it.category == Category::Decoders)
}

fn reads_sequences(scenario: &Scenario) -> bool {
    catalog::model(&scenario.model.id).is_some_and(|it| {
        matches!(
            it.category,
            Category::Decoders
                | Category::EncoderDecoders
                | Category::Encoders
                | Category::Proteins
                | Category::StateSpace
        )
    })
}

/// The run with a part of one of the model's dimensions, rounded down to a multiple; not below `least`.
fn less(
    scenario: &Scenario,
    dim: &str,
    part: (u64, u64),
    multiple: u64,
    least: u64,
) -> Option<Scenario> {
    let changed = scenario.model.dims.get(dim).copied();
    let now = changed.or_else(|| catalog::model(&scenario.model.id)?.size(dim))?;
    let smaller = now.saturating_mul(part.0) / part.1 / multiple * multiple;
    let makes_sense = smaller >= least && smaller < now;
    makes_sense.then(|| {
        with(scenario, |it| {
            it.model.dims.insert(dim.into(), smaller);
        })
    })
}

fn has_bf16(scenario: &Scenario) -> bool {
    match scenario.hardware.capability {
        (0, 0) => catalog::gpu(&scenario.hardware.gpu).is_none_or(|gpu| gpu.bf16),
        has => has >= (8, 0),
    }
}

fn nvidia(scenario: &Scenario) -> bool {
    catalog::gpu(&scenario.hardware.gpu).is_none_or(|gpu| gpu.vendor == Vendor::Nvidia)
}

/// AdamW with full states on the card, in one process or DDP: where states are divided, others may not replace it.
fn adamw(scenario: &Scenario) -> bool {
    let whole = matches!(
        scenario.parallel.strategy,
        Parallelism::None | Parallelism::Ddp
    );
    whole
        && matches!(
            scenario.training.optimizer,
            Optimizer::AdamW
                | Optimizer::AdamWTwoLists
                | Optimizer::AdamWFused
                | Optimizer::AdamWLoop
        )
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
                let now = changed.check();
                assert!(now.len() <= before.len(), "{} {now:?}", it.id);
                assert_eq!(changed.effective_batch(), scenario.effective_batch());
                // Taken once, it is not offered again, but for what can be halved again.
                let again = (it.apply)(&changed);
                assert!(again.is_none() || it.group <= Group::Size, "{}", it.id);
            }
        }
    }

    #[test]
    fn every_move_says_all_that_a_person_needs() {
        for (at, it) in MOVES.iter().enumerate() {
            for text in [it.what, it.needs, it.speed, it.quality] {
                assert!(text.ends_with('.'), "{}: {text}", it.id);
            }
            assert!(!it.source.is_empty() && !it.code.is_empty(), "{}", it.id);
            assert!(MOVES[at + 1..].iter().all(|other| other.id != it.id));
            assert!(Group::ALL.contains(&it.group));
            assert!(it.switches.iter().all(|(_, how)| !how.is_empty()));
        }
        assert!(Group::ALL.is_sorted());
        for it in FOLKLORE {
            assert!(find(it.id).is_none(), "{}", it.id);
            assert!(it.claim.ends_with('.') && it.truth.ends_with('.') && !it.source.is_empty());
        }
    }
}
