//! Batches of similar length.

use super::{Cost, Group, Move, Results, reads_sequences, with};
use headroom_scenario::Distribution;

pub const MOVE: Move = Move {
    id: "bucketing",
    title: "batches of similar length",
    group: Group::Padding,
    what: "Samples of similar length share a batch and are padded to the longest of that batch instead of the global maximum.",
    needs: "Padded text sequences with a known mean or 95th percentile.",
    cost: Cost::Results,
    results: Results::SameBatch,
    never_worse: true,
    speed: "Faster: less computation on padding.",
    quality: "Batches are no longer drawn at random: samples in one batch have similar length.",
    source: "transformers TrainingArguments.train_sampling_strategy (group_by_length before 5.0); recorded loops of torch 2.15: reserved memory stays near allocated when the longest batches come first",
    caveat: "The longest batch, and with it the peak, stays; the typical batch shrinks. If batches go from short to long, the allocator reserves many times what it needs.",
    code: "torch.nn.utils.rnn.pad_sequence over batches of sorted lengths",
    apply: |run| {
        let data = &run.data;
        let padded = data.distribution == Distribution::PaddedToMax && data.padding_mask;
        let known = data.mean > 0 && data.max <= data.sequence;
        (padded && known && !data.packing && reads_sequences(run)).then(|| {
            with(run, |changed| {
                changed.data.distribution = Distribution::Varying;
            })
        })
    },
};
