//! A moving average of the weights (`torch.optim.swa_utils.AveragedModel`).

use crate::nets::Model;
use crate::tape::{Category, DType, Tensor};

/// A copy of the whole model, made before the first step and updated in place: beside it on the device, or on the host.
pub struct Average {
    on_host: bool,
    copies: Option<Vec<Tensor>>,
}

impl Average {
    pub const fn new(on_host: bool) -> Self {
        Self {
            on_host,
            copies: None,
        }
    }

    pub fn update(&mut self, model: &Model) {
        let tape = &model.tape;
        let bytes: f64 = model
            .state()
            .iter()
            .map(|param| param.data.bytes().saturating_mul(param.copies()) as f64)
            .sum();
        if self.on_host {
            // timm's `ModelEmaV3(device="cpu")` copies each weight over and averages there.
            tape.launches("host_step", DType::F32, [0.0, bytes], 4);
            return;
        }
        // `_foreach_lerp_`: both are read and one is written.
        tape.launches("ema", DType::F32, [0.0, 3.0 * bytes], 4);
        self.copies.get_or_insert_with(|| {
            tape.setting_up(|| {
                let mut copies = Vec::new();
                tape.each(model.state(), |param| {
                    let copy = param.data.another("ema", param.data.dtype());
                    copy.set_category(Category::Ema);
                    copies.push(copy);
                });
                copies
            })
        });
    }
}
