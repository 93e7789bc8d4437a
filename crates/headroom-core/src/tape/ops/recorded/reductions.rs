//! Reductions, whose thread blocks share buffers.

use super::super::super::Tensor;
use super::super::super::kernels::{Accumulator, Reduction, aligned};
use super::RecordedCall;

impl RecordedCall<'_> {
    pub(super) fn reduction(&self) -> Option<Vec<Tensor>> {
        match self.call.name() {
            "sum" | "mean" | "amax" | "amin" | "prod" | "nansum" | "any" | "all" | "var"
            | "std" | "var_mean" | "std_mean" | "norm" | "linalg_vector_norm" => {}
            "mse_loss" | "smooth_l1_loss" => return self.mean_of_pairs(),
            "_thnn_fused_gru_cell_backward" | "_thnn_fused_lstm_cell_backward_impl" => {
                return self.sums_of_gates();
            }
            _ => return None,
        }
        let results = self.plainly();
        let (input, out) = (self.inputs.first()?, self.made.first()?);
        let outputs = out.numel().max(1);
        let dims = &self.call.numbers;
        let whole = dims.is_empty() || outputs == 1;
        let innermost = whole
            || input
                .layout
                .innermost()
                .is_none_or(|last| dims.contains(&(last as u64)));
        self.tape.reduce_workspace(Reduction {
            outputs,
            inputs_per_output: input.numel() / outputs,
            innermost,
            flat: outputs == 1,
            dtype: out.dtype,
            accumulator: match self.call.name() {
                "var" | "std" | "var_mean" | "std_mean" => Accumulator::Moments,
                _ => Accumulator::Value,
            },
            aligned: aligned(&input.layout),
        });
        Some(results)
    }

    /// `mse_loss` and its like: the result is made as large as the inputs and shrunk to a number, which keeps its memory.
    fn mean_of_pairs(&self) -> Option<Vec<Tensor>> {
        let (a, b, out) = (
            self.shadows.first()?,
            self.shadows.get(1)?,
            self.made.first()?,
        );
        if out.numel() > 1 {
            return None;
        }
        let loss = a.zip(b, self.call.name()).resized();
        let difference = a.zip(b, self.call.name());
        self.tape.reduce_workspace(Reduction {
            outputs: 1,
            inputs_per_output: a.numel(),
            innermost: true,
            flat: true,
            dtype: a.dtype(),
            accumulator: Accumulator::Value,
            aligned: 4,
        });
        drop(difference);
        Some(vec![loss])
    }

    /// The backward pass of a recurrent cell: its biases' gradients are `grad_gates.sum(0)`.
    fn sums_of_gates(&self) -> Option<Vec<Tensor>> {
        let gates = self.made.first()?;
        let results = self.plainly();
        for bias in self.made.iter().filter(|out| out.layout.shape.len() == 1) {
            let outputs = bias.numel().max(1);
            self.tape.reduce_workspace(Reduction {
                outputs,
                inputs_per_output: gates.numel() / outputs,
                innermost: false,
                flat: false,
                dtype: bias.dtype,
                accumulator: Accumulator::Value,
                aligned: aligned(&gates.layout),
            });
        }
        Some(results)
    }
}
