//! Calls of a recorded graph: the kernels behind ATen's operations, and what each allocates besides its results.
//!
//! A recording on the meta device shows results and their lifetimes, and nothing of what CUDA's kernels take while they run.

mod attention;
mod convolution;
mod name;
mod normalisation;
mod products;
mod reductions;
mod sorted;

use super::super::{Category, DType, Layout, Tape, Tensor};
pub(crate) use name::Call;

/// What a recorded tensor looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    pub layout: Layout,
    pub dtype: DType,
    /// Of the memory it lies in, which may be larger than itself.
    pub bytes: u64,
}

impl Operand {
    /// A tensor like this one that has no memory: for rules that ask how their inputs lie.
    fn shadow(&self, tape: &Tape) -> Tensor {
        let (layout, dtype) = (self.layout, self.dtype);
        tape.0
            .tensor("recorded", 0, layout, dtype, Category::Activations)
    }

    fn allocated(&self, tape: &Tape, op: &'static str) -> Tensor {
        let category = tape.0.natural_category();
        tape.0
            .tensor(op, self.bytes, self.layout, self.dtype, category)
    }

    fn size(&self, dim: usize) -> u64 {
        self.layout.shape.get(dim).copied().unwrap_or(1)
    }

    fn numel(&self) -> u64 {
        self.layout.numel()
    }
}

impl Tape {
    /// Runs a recorded call: allocates its results, those alone that have memory of their own, and what its kernels take.
    pub fn recorded(&self, call: &Call, inputs: &[Operand], made: &[Operand]) -> Vec<Tensor> {
        let shadows: Vec<Tensor> = inputs.iter().map(|operand| operand.shadow(self)).collect();
        let recorded = RecordedCall {
            tape: self,
            call,
            inputs,
            made,
            shadows: &shadows,
        };
        let results = recorded.by_rule().unwrap_or_else(|| recorded.plainly());
        let bytes = |all: &[Operand]| {
            all.iter()
                .map(|operand| operand.numel() as f64 * operand.dtype.bytes() as f64)
                .sum::<f64>()
        };
        let dtype = made
            .first()
            .or(inputs.first())
            .map_or(DType::F32, |operand| operand.dtype);
        if !call.is_view() {
            self.kernel(
                call.name(),
                dtype,
                recorded.flops(),
                bytes(inputs) + bytes(made),
            );
        }
        results
    }
}

/// One call as it runs.
struct RecordedCall<'a> {
    tape: &'a Tape,
    call: &'a Call,
    inputs: &'a [Operand],
    made: &'a [Operand],
    /// What is given, without memory.
    shadows: &'a [Tensor],
}

impl RecordedCall<'_> {
    /// The results in order, and nothing else.
    fn plainly(&self) -> Vec<Tensor> {
        let name = self.call.name();
        self.made
            .iter()
            .map(|operand| operand.allocated(self.tape, name))
            .collect()
    }

    fn by_rule(&self) -> Option<Vec<Tensor>> {
        self.product()
            .or_else(|| self.convolution())
            .or_else(|| self.normalisation())
            .or_else(|| self.attention())
            .or_else(|| self.reduction())
            .or_else(|| self.by_index())
    }

    fn flops(&self) -> f64 {
        match self.call.name() {
            "mm" | "bmm" | "addmm" | "baddbmm" => {
                let first = usize::from(matches!(self.call.name(), "addmm" | "baddbmm"));
                let inner = self
                    .inputs
                    .get(first)
                    .and_then(|operand| operand.layout.shape.last().copied());
                let rows = self.made.first().map_or(0, Operand::numel);
                2.0 * rows as f64 * inner.unwrap_or(1) as f64
            }
            _ => self.made.iter().map(|operand| operand.numel() as f64).sum(),
        }
    }

    /// A copy in row-major order where a kernel wants its input so, for as long as the kernel runs.
    fn dense(&self, at: usize) -> Option<Tensor> {
        self.shadows
            .get(at)
            .filter(|inputs| !inputs.is_contiguous())
            .map(Tensor::contiguous)
    }
}
