//! A base of four bits under adapters that are there already.

use super::{Cost, Group, Move, copies, nvidia, quantisable, with};
use headroom_scenario::{Precision, Quantization};

pub const MOVE: Move = Move {
    id: "four-bit-base",
    title: "load the frozen base in four bits",
    group: Group::Adapters,
    what: "The frozen base is stored in NF4; one matrix at a time is dequantized while it is used.",
    needs: "Adapters over a base that autocast reads in fp16; an NVIDIA GPU.",
    cost: Cost::Results,
    never_worse: false,
    speed: "Slower: every matrix is dequantized in forward and in backward.",
    quality: "A little noise from the base.",
    source: "arXiv 2305.14314; bitsandbytes",
    caveat: "Merged weights are those of the quantized base.",
    code: "BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type=\"nf4\")",
    apply: |run| {
        let training = &run.training;
        let possible = training.quantization == Quantization::None
            && training.lora.is_some()
            && quantisable(run)
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
