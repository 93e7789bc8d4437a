//! Softmax and its logarithm: both save their result, before torch 1.11 their input too.

use super::super::{DType, Saved, Tensor, borrowing, grads};

impl Tensor {
    /// `F.softmax(self, -1, dtype)`; autocast runs it in fp32.
    pub fn softmax(&self, dtype: Option<DType>) -> Tensor {
        // Autocast makes the result fp32 unless a dtype is given (`fp32_set_opt_dtype`).
        let raises = self.core().ambient.mode.get().autocast.is_some() && self.dtype().is_half();
        let dtype = dtype.or(raises.then_some(DType::F32));
        self.normalised("softmax", "softmax_backward", dtype)
    }

    /// `F.log_softmax(self, -1, dtype)`: a given type keeps autocast out.
    pub fn log_softmax_in(&self, dtype: DType) -> Tensor {
        self.normalised("log_softmax", "log_softmax_backward", Some(dtype))
    }

    /// `log_softmax(-1, self.dtype)`, as `cross_entropy_loss` calls it: a given type keeps autocast out.
    pub(super) fn log_softmax_as_is(&self) -> Tensor {
        self.normalised("log_softmax", "log_softmax_backward", None)
    }

    fn normalised(&self, op: &'static str, backward: &'static str, dtype: Option<DType>) -> Tensor {
        let with_product = op == "softmax";
        let dtype = dtype.unwrap_or(self.dtype());
        // The kernel converts while it reads only from fp16 to fp32 (`half_to_float` in SoftMax.cpp).
        let input = if self.dtype() == DType::F16 && dtype == DType::F32 {
            self.clone()
        } else {
            self.to(dtype)
        };
        let from = input.dtype();
        let out = input.contiguous().map_to(op, dtype);
        let result = out.clone();
        let older = input.tape().machine().torch.softmax_keeps_input;
        let kept_input = older.then(|| input.clone());
        out.from_op(&[&input], move |_| {
            let kept = result.save();
            let input = kept_input.as_ref().map(Tensor::save);
            borrowing(move |g| {
                let result = kept.unpack();
                let input = input.as_ref().map(Saved::unpack);
                let out = g.map_to(backward, from);
                if with_product {
                    // `softmax_backward_cuda_out` multiplies the gradient with the result first.
                    drop(g.zip(&result, backward));
                }
                drop(input);
                grads([Some(out)])
            })
        })
    }
}

/// `F.log_softmax(input, -1)`.
pub(crate) fn log_softmax(input: &Tensor) -> Tensor {
    input
        .autocast_to_fp32()
        .normalised("log_softmax", "log_softmax_backward", None)
}
