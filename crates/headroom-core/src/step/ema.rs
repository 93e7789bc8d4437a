//! A moving average of the weights (`torch.optim.swa_utils.AveragedModel`).

use super::wrapper::Wrapper;
use crate::nets::Model;
use crate::tape::{Category, DType, Tensor};

/// A copy of the model, updated in place after each step, on the device or on the host.
pub(crate) struct Average {
    on_host: bool,
    copies: Vec<Tensor>,
}

impl Average {
    pub(crate) const fn new(on_host: bool) -> Self {
        Self {
            on_host,
            copies: Vec::new(),
        }
    }
}

impl Wrapper for Average {
    fn wrap(&mut self, model: &Model) {
        if self.on_host {
            return;
        }
        let tape = &model.tape;
        tape.setting_up(|| {
            tape.each(model.state(), |param| {
                let copy = param.data.empty_like("ema", param.data.dtype());
                copy.set_category(Category::Ema);
                self.copies.push(copy);
            });
        });
    }

    fn after_step(&mut self, model: &Model) {
        let bytes: f64 = model
            .state()
            .iter()
            .map(|param| param.data.bytes().saturating_mul(param.copies()) as f64)
            .sum();
        if self.on_host {
            // timm's `ModelEmaV3(device="cpu")` copies each weight over and averages there.
            model
                .tape
                .launches("host_step", DType::F32, [0.0, bytes], 4);
        } else {
            // `_foreach_lerp_`: both are read and one is written.
            model
                .tape
                .launches("ema", DType::F32, [0.0, 3.0 * bytes], 4);
        }
    }
}
