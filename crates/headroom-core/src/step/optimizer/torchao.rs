//! AdamW of torchao: states of eight and four bits and in fp8, and states on the host.

use std::rc::Rc;

use super::lists::like;
use crate::tape::{DType, Param, Tape, Tensor};

/// A number format of states.
#[derive(Clone, Copy)]
pub(crate) struct Format {
    /// Elements in a byte.
    per_byte: u64,
    /// Elements that share a scale.
    block: u64,
    /// Values in the table that the codes point into, if any.
    table: u64,
    /// The dtype of codes before packing, if a kernel writes them unpacked.
    unpacked: Option<DType>,
}

impl Format {
    pub(crate) const EIGHT_BITS: Self = Self {
        per_byte: 1,
        block: 256,
        table: 256,
        unpacked: None,
    };
    pub(crate) const FOUR_BITS: Self = Self {
        per_byte: 2,
        block: 128,
        table: 16,
        unpacked: Some(DType::I64),
    };
    pub(crate) const FP8: Self = Self {
        per_byte: 1,
        block: 256,
        table: 0,
        unpacked: None,
    };

    /// `_new_buffer`: small tensors, and those that blocks do not divide, are kept as they are.
    const fn quantises(self, numel: u64) -> bool {
        numel >= 4096 && numel.is_multiple_of(self.block)
    }
}

/// `_new_buffer` of both moments, each with a table of its own.
pub(crate) fn states(tape: &Tape, param: &Param, format: Format) -> Vec<Tensor> {
    let numel = param.data.numel();
    if !format.quantises(numel) {
        return vec![like(param), like(param)];
    }
    let mut states = Vec::new();
    for _ in 0..2 {
        states.push(tape.empty("codes", [numel / format.per_byte], DType::U8));
        states.push(tape.empty("scale", [numel / format.block], DType::F32));
        if format.table > 0 {
            states.push(tape.empty("qmap", [format.table], DType::F32));
        }
    }
    states
}

/// The first GPUs whose Triton kernels convert to fp8 (`e4m3fn`); on others PyTorch's own does, between two compiled ones.
const CONVERTS_FP8: (u8, u8) = (8, 9);

/// What `AdamWFp8` writes between its kernels: where they cannot convert, both moments in fp32, and the codes of one at a time.
pub(crate) fn step_fp8(tape: &Tape, params: &[Rc<Param>]) {
    let format = Format::FP8;
    if tape.machine().capability >= CONVERTS_FP8 {
        return step(tape, params, format);
    }
    tape.each(params, |param| {
        let numel = param.data.numel();
        if !format.quantises(numel) {
            return;
        }
        let moments = [(); 2].map(|()| tape.empty("moment", [numel], DType::F32));
        let scales = [(); 2].map(|()| tape.empty("scale", [numel / format.block], DType::F32));
        for moment in moments {
            let codes = tape.empty("codes", [numel], DType::U8);
            drop(codes);
            drop(moment);
        }
        drop(scales);
    });
}

/// What the compiled `single_param_adam` writes between its kernels: new scales; for four bits also the moments in fp32 and their
/// codes before they are packed.
pub(crate) fn step(tape: &Tape, params: &[Rc<Param>], format: Format) {
    tape.each(params, |param| {
        let numel = param.data.numel();
        if !format.quantises(numel) {
            return;
        }
        let moments = format
            .unpacked
            .map(|_| [(); 2].map(|()| tape.empty("moment", [numel], DType::F32)));
        let scales = [(); 2].map(|()| tape.empty("scale", [numel / format.block], DType::F32));
        let codes = format
            .unpacked
            .map(|dtype| [(); 2].map(|()| tape.empty("codes", [numel], dtype)));
        drop((moments, scales, codes));
    });
}

/// `CPUOffloadOptimizer` leaves tensors of fewer elements on the device.
pub(crate) const KEPT_ON_DEVICE: u64 = 4096;

/// The states that `CPUOffloadOptimizer` keeps on the device.
pub(crate) fn kept_on_device(_tape: &Tape, param: &Param) -> Vec<Tensor> {
    if param.data.numel() < KEPT_ON_DEVICE {
        vec![like(param), like(param)]
    } else {
        Vec::new()
    }
}

/// Bytes that `CPUOffloadOptimizer` keeps on the host: a copy of the weight, its gradient and two states.
pub(crate) fn offloaded(param: &Param) -> u64 {
    if param.data.numel() < KEPT_ON_DEVICE {
        0
    } else {
        param.data.bytes().saturating_mul(4)
    }
}
