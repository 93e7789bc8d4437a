//! DreaMS: the guide of a fork that fine-tunes it to fingerprints.

use super::{Claim, Guide, Knob, Verdict, Wiring};

pub(super) const GUIDE: Guide = Guide {
    preset: "dreams",
    document: "MEMORY_OPTIMIZATION_GUIDE.md of maxvdboom/DreaMS at 757a414",
    claims: CLAIMS,
    knobs: KNOBS,
};

const CLAIMS: &[Claim] = &[Claim {
    place: "1. Gradient Accumulation",
    said: "batch 2 to 1 with accumulation: ~50 % less peak memory",
    computed: |lab| lab.change(&[("mb", "2")], &[("mb", "1"), ("accum", "1")]),
    verdict: Verdict::Wrong,
    why: "The peak is the step of Adam over 99.7 M trained weights, which no batch changes; it holds only where activations dominate.",
    source: "dreams/models/heads/heads.py: torch.optim.Adam",
}];

const KNOBS: &[Knob] = &[Knob {
    flag: "--batch_size N",
    wiring: Wiring::Clamped,
    note: "The fork sets the batch to 1 and accumulates over N micro-batches; its scripts pass 1, so that nothing is accumulated.",
    patch: "",
    source: "dreams/training/train.py of the fork",
}];
