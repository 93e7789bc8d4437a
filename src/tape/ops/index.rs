//! Look-ups by index tensors.

use super::super::{Grads, Tensor, grads};

impl Tensor {
    /// `self[rows, columns]` with one index each a row: keeps the indices; the gradient is put into zeros of the whole shape.
    pub fn picked(&self, rows: &Tensor, columns: &Tensor) -> Tensor {
        let tape = self.tape();
        let (whole, dtype) = (*self.shape(), self.dtype());
        let width = self.size(-1);
        let out = tape.empty("index", [rows.numel(), width], dtype);
        tape.kernel("index", dtype, 0.0, 2.0 * out.bytes() as f64);
        out.from_op(&[self], |_| {
            let kept = [rows.save(), columns.save()];
            Box::new(move |incoming| {
                let Some(g) = incoming[0].as_ref() else {
                    return Grads::new();
                };
                let _indices = kept.each_ref().map(super::super::Saved::unpack);
                let out = g.tape().empty("index_put", whole, dtype);
                g.tape()
                    .kernel("index_put", dtype, 0.0, 2.0 * g.bytes() as f64);
                grads([Some(out)])
            })
        })
    }
}
