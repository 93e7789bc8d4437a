//! A 4-bit base under existing adapters.

use super::{Cost, Group, Move, Results, copies, nvidia, quantizable, with};
use headroom_scenario::{Precision, Quantization};

pub const MOVE: Move = Move {
    id: "four-bit-base",
    title: "load the frozen base in 4 bits",
    group: Group::Adapters,
    what: "The frozen base is stored in NF4; matrices are dequantized one at a time, on use.",
    needs: "Adapters on a base under fp16 autocast; an NVIDIA GPU.",
    cost: Cost::Results,
    results: Results::Changes,
    never_worse: false,
    speed: "Slower: every matrix is dequantized in the forward and the backward pass.",
    quality: "A little quantization noise from the base.",
    source: "arXiv 2305.14314; bitsandbytes",
    caveat: "Merged weights are those of the quantized base.",
    code: "BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type=\"nf4\")",
    apply: |run| {
        let training = &run.training;
        let possible = training.quantization == Quantization::None
            && training.lora.is_some()
            && quantizable(run)
            && training.precision == Precision::AmpFp16
            && nvidia(run)
            && !copies(run);
        possible.then(|| {
            with(run, |changed| {
                changed.training.quantization = Quantization::Nf4;
            })
        })
    },
};
