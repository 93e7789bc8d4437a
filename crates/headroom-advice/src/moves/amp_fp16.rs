//! Fp16 autocast with a GradScaler.

use super::{Cost, Group, Move, Results, autocasts, has_bf16, with};
use headroom_scenario::{Precision, Scenario, systems};

pub const MOVE: Move = Move {
    id: "amp-fp16",
    title: "fp16 autocast with a GradScaler",
    group: Group::Precision,
    what: "Runs matrix products in fp16 and saves their inputs in fp16, over fp32 weights, with loss scaling.",
    needs: "fp32 training on a GPU without bf16, or of a program that knows fp16 only.",
    cost: Cost::Results,
    results: Results::SameBatch,
    never_worse: false,
    speed: "Much faster on tensor cores.",
    quality: "Steps that overflow are skipped; some models (T5, some ViTs) overflow on every step.",
    source: "arXiv 1710.03740; torch.amp.GradScaler",
    caveat: "",
    code: "torch.amp.GradScaler(\"cuda\")",
    apply: |run| {
        let fp32 = run.training.precision == Precision::Fp32
            && (!has_bf16(run) || knows_fp16_only(run))
            && autocasts(run);
        fp32.then(|| {
            with(run, |changed| {
                changed.training.precision = Precision::AmpFp16;
            })
        })
    },
};

/// Whether the run's own program has a flag for fp16 autocast and none for bf16.
fn knows_fp16_only(run: &Scenario) -> bool {
    let in_type = |precision| with(run, |changed| changed.training.precision = precision);
    let follows = |precision| systems::follows(run, &in_type(precision));
    !follows(Precision::AmpBf16) && follows(Precision::AmpFp16)
}
