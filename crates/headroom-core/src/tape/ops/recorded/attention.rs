//! Fused attention: what its kernels take while they run.

use super::super::super::Tensor;
use super::super::attention::{backward_scratch, efficient_forward_scratch};
use super::super::flash::{flash_backward_scratch, flash_splits};
use super::RecordedCall;

impl RecordedCall<'_> {
    pub(super) fn attention(&self) -> Option<Vec<Tensor>> {
        match self.call.name() {
            "_scaled_dot_product_flash_attention" => {
                let [query, key] = [self.shadows.first()?, self.shadows.get(1)?];
                let mut made = self.plainly();
                let rest = made.split_off(2.min(made.len()));
                let splits = flash_splits(query, key, self.call.word);
                drop(splits);
                made.extend(rest);
                Some(made)
            }
            "_scaled_dot_product_flash_attention_backward" => {
                let (gradient, out) = (self.shadows.first()?, self.shadows.get(4)?);
                let [query, key] = [self.shadows.get(1)?, self.shadows.get(2)?];
                let inside = |t: &Tensor| {
                    let layout = t.layout().transposed(1, 2);
                    (!layout.is_contiguous())
                        .then(|| self.tape.empty("contiguous", layout.shape, t.dtype()))
                };
                let copies = (inside(gradient), inside(out));
                let made = self.plainly();
                drop(flash_backward_scratch(query, key));
                drop(copies);
                Some(made)
            }
            "_scaled_dot_product_efficient_attention" => {
                let [query, value] = [self.shadows.first()?, self.shadows.get(2)?];
                let made = self.plainly();
                efficient_forward_scratch(query, value);
                Some(made)
            }
            "_scaled_dot_product_efficient_attention_backward" => {
                let [query, key, value] = [
                    self.shadows.get(1)?,
                    self.shadows.get(2)?,
                    self.shadows.get(3)?,
                ];
                let made = self.plainly();
                drop(backward_scratch(query, key, value));
                Some(made)
            }
            _ => None,
        }
    }
}
