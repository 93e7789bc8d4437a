//! Make batches of samples of like length.

use super::{Cost, Group, Move, reads_sequences, with};
use crate::scenario::Distribution;

pub const MOVE: Move = Move {
    id: "bucketing",
    title: "batches of samples of like length",
    group: Group::Padding,
    what: "Batches are made of samples of like length and padded to their own longest, not to the longest of all.",
    needs: "Padded sequences of text whose mean or 95th percentile is known.",
    cost: Cost::Results,
    never_worse: true,
    speed: "Faster: padding that nobody reads is not computed.",
    quality: "Batches are no longer drawn at random: the samples of one are alike in length.",
    source: "transformers TrainingArguments.train_sampling_strategy (group_by_length before 5.0); recorded loops of torch 2.15: reserved memory stays near what is allocated where the longest come first",
    caveat: "The longest batch stays as it is, and with it the peak: what falls is the typical batch. Sorted from short to long, the allocator reserves many times what it needs.",
    code: "torch.nn.utils.rnn.pad_sequence over batches of sorted lengths",
    apply: |s| {
        let data = &s.data;
        let padded = data.distribution == Distribution::PaddedToMax && data.padding_mask;
        let known = data.mean > 0 && data.max <= data.sequence;
        (padded && known && !data.packing && reads_sequences(s))
            .then(|| with(s, |it| it.data.distribution = Distribution::Varying))
    },
};
