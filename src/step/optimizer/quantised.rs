//! AdamW with states of eight and four bits: bitsandbytes' and torchao's.

use std::rc::Rc;

use super::lists::same;
use crate::scenario::Optimizer;
use crate::tape::{DType, Param, Tape, Tensor};

/// Smaller states are not paged.
const PAGED: u64 = 100_000;

/// `Optimizer2State.init_state` (bitsandbytes/optim/optimizer.py): a byte an element and an fp32 number for each 256 of them;
/// small tensors keep fp32 states. Paged states of 10^5 elements or more live in managed memory, outside the allocator.
pub fn bitsandbytes(kind: Optimizer, tape: &Tape, param: &Param) -> Vec<Tensor> {
    const SMALLEST: u64 = 4096;
    const BLOCK: u64 = 256;
    let n = param.data.numel();
    let eight = matches!(kind, Optimizer::AdamW8bit | Optimizer::PagedAdamW8bit) && n >= SMALLEST;
    let paged = matches!(kind, Optimizer::PagedAdamW | Optimizer::PagedAdamW8bit) && n >= PAGED;
    let dtype = if eight { DType::U8 } else { DType::F32 };
    let mut all = Vec::new();
    if !paged {
        all.extend([(); 2].map(|()| param.data.another("zeros_like", dtype)));
    }
    if eight {
        all.extend([(); 2].map(|()| tape.empty("absmax", [n.div_ceil(BLOCK)], DType::F32)));
    }
    all
}

/// Bytes of one parameter's states on the host: pages that the driver has moved there while the device is full; or, of torchao's
/// `CPUOffloadOptimizer`, a copy of the weight, its gradient and two states.
pub fn on_host(kind: Optimizer, numel: u64, bytes: u64) -> u64 {
    match kind {
        Optimizer::PagedAdamW if numel >= PAGED => numel.saturating_mul(8),
        Optimizer::PagedAdamW8bit if numel >= PAGED => numel.saturating_mul(2),
        Optimizer::AdamWOffload | Optimizer::AdamWOffloadGradients if numel >= 4096 => {
            bytes.saturating_mul(4)
        }
        _ => 0,
    }
}

/// The tables of the 256 values that a byte stands for, one for each moment: made with the first eight-bit state.
pub fn tables(kind: Optimizer, tape: &Tape) -> Vec<Tensor> {
    match kind {
        Optimizer::AdamW8bit | Optimizer::PagedAdamW8bit => [(); 2]
            .map(|()| tape.empty("qmap", [256], DType::F32))
            .to_vec(),
        _ => Vec::new(),
    }
}

/// `_new_buffer` of torchao/optim/adam.py: quantised where the block size divides the tensor, with a table of its own.
pub fn torchao(kind: Optimizer, tape: &Tape, param: &Param) -> Vec<Tensor> {
    let n = param.data.numel();
    let (per_byte, block, table) = match kind {
        Optimizer::AdamW4bitAo => (2, 128, 16),
        Optimizer::AdamWFp8Ao => (1, 256, 0),
        _ => (1, 256, 256),
    };
    if n < 4096 || !n.is_multiple_of(block) {
        return vec![same(param), same(param)];
    }
    let one = || {
        let mut parts = vec![
            tape.empty("codes", [n / per_byte], DType::U8),
            tape.empty("scale", [n / block], DType::F32),
        ];
        if table > 0 {
            parts.push(tape.empty("qmap", [table], DType::F32));
        }
        parts
    };
    let mut all = one();
    all.extend(one());
    all
}

/// What the compiled `single_param_adam` writes between its kernels: nothing for eight bits, which one kernel steps; the new
/// moments in fp32 for fp8, whose scales need them whole; for four bits also their codes as 64-bit indices before they are packed.
pub fn torchao_step(kind: Optimizer, tape: &Tape, params: &[Rc<Param>]) {
    let (codes, block) = match kind {
        Optimizer::AdamW4bitAo => (Some(DType::I64), 128),
        Optimizer::AdamWFp8Ao => (None, 256),
        _ => return,
    };
    tape.each(params, |param| {
        let n = param.data.numel();
        if n < 4096 || !n.is_multiple_of(block) {
            return;
        }
        let moments = [(); 2].map(|()| tape.empty("moment", [n], DType::F32));
        let scales = [(); 2].map(|()| tape.empty("scale", [n / block], DType::F32));
        let codes = codes.map(|dtype| [(); 2].map(|()| tape.empty("codes", [n], dtype)));
        drop((moments, scales, codes));
    });
}
