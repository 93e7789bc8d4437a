//! `torch.amp.GradScaler`.

use crate::tape::{Category, DType, Tape, Tensor};

/// A few scalars on the device.
#[derive(Default)]
pub(crate) struct GradScaler {
    /// The scale and its growth tracker, made when a loss is first scaled.
    state: Option<[Tensor; 2]>,
    found_inf: Option<Tensor>,
}

impl GradScaler {
    /// `scaler.scale(loss)`.
    pub(crate) fn scale(&mut self, tape: &Tape, loss: &Tensor) -> Tensor {
        self.state.get_or_insert_with(|| {
            let made = [
                tape.empty("scale", [0; 0], DType::F32),
                tape.empty("growth_tracker", [0; 0], DType::I32),
            ];
            for scalar in &made {
                scalar.set_category(Category::OptimizerStates);
            }
            made
        });
        loss.mul_scalar()
    }

    /// `scaler.unscale_(optimizer)`: gradients are multiplied in place.
    pub(crate) fn unscale(&mut self, tape: &Tape) {
        tape.workspace("reciprocal", DType::F64.bytes());
        self.found_inf = Some(tape.empty("found_inf", [0; 0], DType::F32));
    }

    pub(crate) fn update(&mut self) {
        self.found_inf = None;
    }
}
