//! Optimizers of bitsandbytes: states of eight bits, and states in pages.

use crate::tape::{DType, Param, Tape, Tensor};

/// How states are kept.
#[derive(Clone, Copy)]
pub(crate) struct Storage {
    eight_bits: bool,
    /// In managed memory, outside of the allocator.
    paged: bool,
}

impl Storage {
    pub(crate) const FULL: Self = Self {
        eight_bits: false,
        paged: false,
    };
    pub(crate) const EIGHT_BITS: Self = Self {
        eight_bits: true,
        paged: false,
    };
    pub(crate) const PAGED: Self = Self {
        eight_bits: false,
        paged: true,
    };
    pub(crate) const PAGED_EIGHT_BITS: Self = Self {
        eight_bits: true,
        paged: true,
    };

    /// Whether a parameter's states are of eight bits: a trainer may ask for fp32 ones of some.
    fn quantises(self, param: &Param) -> bool {
        self.eight_bits && !param.fp32_states.get()
    }

    /// Tensors of fewer than 10^5 elements are not paged.
    const fn pages(self, numel: u64) -> bool {
        self.paged && numel >= 100_000
    }
}

/// `Optimizer2State.init_state`: a byte an element and an fp32 number for each 256 of them; small tensors keep fp32 states.
pub(crate) fn states(tape: &Tape, param: &Param, storage: Storage) -> Vec<Tensor> {
    const SMALLEST: u64 = 4096;
    const BLOCK: u64 = 256;
    let numel = param.data.numel();
    let eight_bits = storage.quantises(param) && numel >= SMALLEST;
    let dtype = if eight_bits { DType::U8 } else { DType::F32 };
    let mut states = Vec::new();
    if !storage.pages(numel) {
        states.extend([(); 2].map(|()| param.data.empty_like("zeros_like", dtype)));
    }
    if eight_bits {
        let scales = || tape.empty("absmax", [numel.div_ceil(BLOCK)], DType::F32);
        states.extend([(); 2].map(|()| scales()));
    }
    states
}

/// `init_state` of AdEMAMix, whose first state holds two moments, and of optimizers with one state, with this many moments.
pub(crate) fn moments(tape: &Tape, param: &Param, storage: Storage, each: &[u64]) -> Vec<Tensor> {
    const SMALLEST: u64 = 4096;
    const BLOCK: u64 = 256;
    let numel = param.data.numel();
    let eight_bits = storage.quantises(param) && numel >= SMALLEST;
    let dtype = if eight_bits { DType::U8 } else { DType::F32 };
    let mut states = Vec::new();
    for moments in each {
        if eight_bits {
            let scales = numel.div_ceil(BLOCK).saturating_mul(*moments);
            states.push(tape.empty("absmax", [scales], DType::F32));
        }
        if !storage.pages(numel) {
            let elements = numel.saturating_mul(*moments);
            states.push(tape.empty("state", [elements], dtype));
        }
    }
    states
}

/// The table of an optimizer with one kind of moment.
pub(crate) fn table(tape: &Tape) -> Vec<Tensor> {
    vec![tape.empty("qmap", [256], DType::F32)]
}

/// The tables of the 256 values of a byte, one for each moment: made with the first eight-bit state.
pub(crate) fn tables(tape: &Tape) -> Vec<Tensor> {
    [(); 2]
        .map(|()| tape.empty("qmap", [256], DType::F32))
        .to_vec()
}

/// Bytes of this many moments of one parameter in pages, which the driver has moved to the host while the device is full.
pub(crate) fn paged(param: &Param, storage: Storage, moments: u64) -> u64 {
    let numel = param.data.numel();
    let each = if storage.quantises(param) { 1 } else { 4 };
    if storage.pages(numel) {
        numel.saturating_mul(each).saturating_mul(moments)
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::Machine;

    /// Bytes of a parameter's states.
    fn held(storage: Storage, in_fp32: bool) -> u64 {
        let tape = Tape::new(Machine::default());
        let param = tape.param("weight", [1024, 1024], DType::BF16, true);
        param.fp32_states.set(in_fp32);
        states(&tape, &param, storage)
            .iter()
            .map(Tensor::bytes)
            .sum()
    }

    #[test]
    fn a_trainer_may_ask_for_states_in_fp32() {
        let numel = 1 << 20;
        assert_eq!(held(Storage::EIGHT_BITS, false), 2 * (numel + numel / 64));
        assert_eq!(held(Storage::EIGHT_BITS, true), 8 * numel);
        assert_eq!(held(Storage::FULL, false), 8 * numel);
    }
}
