//! A moving average of the weights (`torch.optim.swa_utils.AveragedModel`).

use crate::estimate::Category;
use crate::tape::{Tape, Tensor};

/// A copy of the whole model beside it, made before the first step and updated in place.
#[derive(Default)]
pub struct Average(Option<Vec<Tensor>>);

impl Average {
    pub fn update(&mut self, tape: &Tape) {
        self.0.get_or_insert_with(|| {
            tape.setting_up(|| {
                let mut copies = Vec::new();
                tape.each(&tape.params(), |param| {
                    let copy = tape.empty_as("ema", *param.data.layout(), param.data.dtype());
                    copy.set_category(Category::Ema);
                    copies.push(copy);
                });
                copies
            })
        });
    }
}
