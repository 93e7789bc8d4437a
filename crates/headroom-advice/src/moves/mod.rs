//! Moves: changes to a run that may save memory.
//!
//! A move describes what it does and costs. Its savings are computed for each run; some moves save nothing or cost memory.
//! Which programs can run the changed scenario is decided by the exports.

mod adafactor;
mod adamw_8bit;
mod adapter_dropout;
mod adapter_targets;
mod adapter_type;
mod adapters_off;
mod amp_bf16;
mod amp_fp16;
mod average_on_host;
mod bf16_base;
mod block_swap;
mod bucket_lengths;
mod bucket_view;
mod cached_encoder;
mod checkpoint_encoder;
mod checkpointing;
mod chunked_head;
mod chunked_loss;
pub(crate) mod conditions;
mod drop_outputs;
mod eval_batch;
mod expandable_segments;
mod fewer_at_once;
mod fewer_bins;
mod fewer_completions;
mod fewer_edges;
mod fewer_keys;
mod fewer_peaks;
mod folklore;
mod four_bit_base;
mod freeze_embeddings;
mod freeze_encoder;
mod fused_adamw;
mod fused_head;
mod half_rank;
mod half_sequence;
mod half_size;
mod liger_kernels;
mod liger_loss;
mod lora;
mod narrower_irreps;
mod no_cache;
mod no_dropout;
mod offload_optimizer;
mod optimizer_in_backward;
mod pack_sequences;
mod paged_adamw;
mod paged_adamw_8bit;
mod precomputed_reference;
mod pure_bf16;
mod qlora;
mod reset_metrics;
mod sampling_offload;
mod sdpa;
mod smaller_images;
mod vllm_share;
mod vllm_sleep;
mod zero_to_none;

pub use folklore::{FOLKLORE, Folklore};

use serde::Serialize;

pub(crate) use crate::planner::Results;
pub(crate) use block_swap::{can_swap, most_swapped};

use conditions::{
    adamw, adapted, attention_layers, autocasts, by_trl, copies, embeddings, encoder, has_bf16,
    has_liger, is_frozen, less, nvidia, own_loss, reads_sequences, scales_logits,
    trainer_can_express, with, writes_text,
};
use headroom_core::estimate::is_replayed;
use headroom_scenario::{Compile, LowPrecision, Scenario, systems};

/// The cost of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cost {
    /// Same results, not slower.
    Free,
    /// Same results up to rounding, but slower.
    Time,
    /// Different results: the trained parameters or the precision change.
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

/// What a move changes; at most one move of each group is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    Length,
    Size,
    Padding,
    Precision,
    Adapters,
    AdapterRank,
    AdapterTargets,
    AdapterType,
    AdapterDropout,
    Encoder,
    Cached,
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
    Swapping,
    Allocator,
}

impl Group {
    /// In the order of application: first what is trained, last the optimizer and the allocator.
    pub const ALL: [Self; 27] = [
        Self::Length,
        Self::Size,
        Self::Padding,
        Self::Precision,
        Self::Adapters,
        Self::AdapterRank,
        Self::AdapterTargets,
        Self::AdapterType,
        Self::AdapterDropout,
        Self::Encoder,
        Self::Cached,
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
        Self::Swapping,
        Self::Allocator,
    ];

    /// Whether moves of this group change only the optimizer step, not the forward and backward passes.
    pub const fn affects_optimizer_only(self) -> bool {
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
    /// Its requirements.
    pub needs: &'static str,
    pub cost: Cost,
    /// What it does to the results.
    pub results: Results,
    /// Whether it never costs memory or time, in combination with any other moves.
    pub never_worse: bool,
    /// Its effect on speed.
    pub speed: &'static str,
    /// Its effect on the quality of the result.
    pub quality: &'static str,
    /// The sources for speed and quality.
    pub source: &'static str,
    /// What to watch out for; may be empty.
    pub caveat: &'static str,
    /// How to write it in code.
    pub code: &'static str,
    /// The changed scenario; `None` if the move is impossible or changes nothing.
    pub apply: fn(&Scenario) -> Option<Scenario>,
}

impl Move {
    /// The changed run; `None` if the move is impossible or changes nothing, or if a system's own program or a task's
    /// trainer does not support it.
    pub fn on(&self, run: &Scenario) -> Option<Scenario> {
        // Moves that are not modelled together with torch.compile are not offered.
        let known = |changed: &Scenario| {
            changed.training.compile == Compile::Nothing
                || changed.check().len() <= run.check().len()
        };
        (self.apply)(run).filter(|changed| {
            known(changed)
                && systems::follows(run, changed)
                && trainer_can_express(run, changed)
                && (is_replayed(changed) || !is_replayed(run))
        })
    }
}

/// All moves, cheapest first. The micro-batch is none of them: it is chosen for each set of moves.
pub const MOVES: &[Move] = &[
    drop_outputs::MOVE,
    no_cache::MOVE,
    zero_to_none::MOVE,
    expandable_segments::MOVE,
    fused_adamw::MOVE,
    bucket_view::MOVE,
    eval_batch::MOVE,
    reset_metrics::MOVE,
    sdpa::MOVE,
    fused_head::MOVE,
    adapters_off::MOVE,
    precomputed_reference::MOVE,
    liger_kernels::MOVE,
    liger_loss::MOVE,
    chunked_loss::MOVE,
    optimizer_in_backward::MOVE,
    checkpointing::KEEP_MATMULS,
    checkpointing::KEEP_HALF,
    checkpointing::EVERY_SECOND_LAYER,
    checkpointing::KEEP_ATTENTION,
    checkpointing::LAYERS,
    checkpoint_encoder::MOVE,
    chunked_head::MOVE,
    average_on_host::MOVE,
    paged_adamw::MOVE,
    checkpointing::OFFLOAD,
    block_swap::MOVE,
    offload_optimizer::MOVE,
    vllm_sleep::MOVE,
    vllm_share::MOVE,
    sampling_offload::MOVE,
    fewer_at_once::MOVE,
    amp_bf16::MOVE,
    amp_fp16::MOVE,
    bf16_base::MOVE,
    adapter_dropout::MOVE,
    adapter_type::MOVE,
    adamw_8bit::MOVE,
    paged_adamw_8bit::MOVE,
    half_rank::MOVE,
    freeze_embeddings::MOVE,
    freeze_encoder::MOVE,
    cached_encoder::MOVE,
    pack_sequences::MOVE,
    bucket_lengths::MOVE,
    no_dropout::MOVE,
    pure_bf16::MOVE,
    adapter_targets::MOVE,
    four_bit_base::MOVE,
    adafactor::MOVE,
    lora::MOVE,
    qlora::MOVE,
    smaller_images::MOVE,
    fewer_peaks::MOVE,
    fewer_bins::MOVE,
    fewer_edges::MOVE,
    fewer_keys::MOVE,
    narrower_irreps::MOVE,
    fewer_completions::MOVE,
    half_size::MOVE,
    half_sequence::MOVE,
];

/// The move with this id.
pub fn find(id: &str) -> Option<&'static Move> {
    MOVES.iter().find(|known| known.id == id)
}

/// Whether the base's weights can be quantized, whatever the adapters.
fn quantizable(run: &Scenario) -> bool {
    let lora = run.training.lora.as_ref();
    run.training.low_precision == LowPrecision::None
        && lora.is_none_or(|lora| lora.method.over_quantised())
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_core::estimate::{estimate, quick_peak};
    use headroom_scenario::sample;
    use headroom_scenario::settings;
    use headroom_testing::Dice;

    /// What can be halved again.
    fn repeats(group: Group) -> bool {
        matches!(group, Group::Length | Group::Size | Group::AdapterRank)
    }

    #[test]
    fn moves_make_valid_scenarios_and_are_listed_cheapest_first() {
        assert!(MOVES.is_sorted_by_key(|mv| mv.cost));
        let mut dice = Dice::new(7);
        for _ in 0..200 {
            let mut scenario = sample::scenario(&mut dice);
            scenario.hardware.gpu = "rtx-4090".into();
            scenario.model.id = "llama-3.2-1b".into();
            // What compiled graphs keep beside a move's kernels or numbers may not be known: such a move is refused, not offered.
            scenario.training.compile = Compile::Nothing;
            let before = scenario.check();
            for mv in MOVES {
                let Some(changed) = (mv.apply)(&scenario) else {
                    continue;
                };
                assert_ne!(changed, scenario, "{}", mv.id);
                let now = changed.check();
                assert!(now.len() <= before.len(), "{} {now:?}", mv.id);
                assert_eq!(changed.effective_batch(), scenario.effective_batch());
                // Taken once, it is not offered again.
                let again = (mv.apply)(&changed);
                assert!(again.is_none() || repeats(mv.group), "{}", mv.id);
            }
        }
    }

    #[test]
    fn every_move_has_one_id_and_a_group() {
        for (at, change) in MOVES.iter().enumerate() {
            assert!(MOVES[at + 1..].iter().all(|other| other.id != change.id));
            assert!(Group::ALL.contains(&change.group));
        }
        assert!(Group::ALL.is_sorted());
        assert!(FOLKLORE.iter().all(|belief| find(belief.id).is_none()));
    }

    /// What the moves make of a run, as settings, and by which part of its peak they make it smaller.
    #[track_caller]
    fn check(run: &str, moves: &[&str], expected: &[(&str, &str)], saved: std::ops::Range<f64>) {
        let mut scenario = Scenario::default();
        for word in run.split_whitespace() {
            let (name, value) = word.split_once('=').unwrap();
            settings::set(&mut scenario, name, value).unwrap();
        }
        let mut changed = scenario.clone();
        for id in moves {
            changed = (find(id).unwrap().apply)(&changed).expect(id);
        }
        assert_eq!(changed.check(), vec![], "{moves:?}");
        let mut wanted = scenario.clone();
        for (name, value) in expected {
            settings::set(&mut wanted, name, value).unwrap();
        }
        assert_eq!(changed, wanted);
        let peak = |scenario: &Scenario| quick_peak(scenario).unwrap().get() as f64;
        let part = 1.0 - peak(&changed) / peak(&scenario);
        assert!(saved.contains(&part), "{moves:?} {part}");
    }

    #[test]
    fn offloaded_tensors_leave_the_gpu() {
        let llava = "model=llava-1.5-7b dims=layers=2 seq=1024 mb=1 gpu=a100-sxm4-80gb lora=on";
        check(
            llava,
            &["freeze-encoder", "cached-features"],
            &[
                ("training.lora.exclude", "vision_tower"),
                ("dims", "layers=2,encoders=0"),
            ],
            0.1..0.9,
        );
        let diffusion = "model=sd-1.5-unet mb=1 seq=77 lora=on lora_targets=to_q precision=fp32";
        let before = format!("{diffusion} dims=encoders=1");
        check(
            &before,
            &["cached-features"],
            &[("dims", "encoders=0")],
            0.1..0.5,
        );
        // The autoencoder's and the text tower's counts are those that diffusers and transformers report.
        let parameters = |dims| {
            let mut run = Scenario::default();
            for (name, value) in [("model", "sd-1.5-unet"), ("seq", "77"), ("dims", dims)] {
                settings::set(&mut run, name, value).unwrap();
            }
            estimate(&run).unwrap().parameters
        };
        let frozen = parameters("encoders=1") - parameters("encoders=0");
        assert_eq!(frozen, 83_653_863 + 123_060_480);
    }

    #[test]
    fn data_moves_pack_sort_and_shrink() {
        let padded = "model=gpt2 mask=on dist=padded-to-max mean=300 p95=900 seq=1024";
        let packed = [("packing", "on"), ("mask", "off")];
        check(padded, &["packing"], &packed, 0.01..0.9);
        // The longest batch is as long as before.
        check(padded, &["bucketing"], &[("dist", "varying")], 0.0..1e-9);
        let adapters = "model=llama-3.2-1b seq=256 mb=1 lora=on gpu=a100-sxm4-80gb";
        check(adapters, &["half-rank"], &[("lora_rank", "8")], 0.0..0.1);
        let grid = "network=sizes,rows=64,hidden=8;input,kind=values,shape=batch:rows:hidden;\
                    part,name=body;linear,out=hidden;tensor,name=spectrum,shape=batch:rows:points,count=2";
        let grid = grid.replace("rows=64", "rows=64,points=20000");
        check(&grid, &["half-size"], &[("dims", "points=10000")], 0.3..0.6);
        let again = [("dims", "points=5000")];
        check(&grid, &["half-size", "half-size"], &again, 0.6..0.9);
    }
}
