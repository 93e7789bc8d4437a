//! Table look-ups.

use super::super::{DType, Grads, Tensor, grads};

impl Tensor {
    /// `F.embedding(indices, self)`: keeps the indices; the gradient is a whole table.
    pub fn embedding(&self, indices: &Tensor) -> Tensor {
        let tape = self.tape();
        let table = *self.shape();
        let dtype = self.dtype();
        let shape = [indices.shape(), &[self.size(-1)][..]].concat();
        let out = tape.empty("embedding", &shape[..], dtype);
        tape.kernel("embedding", dtype, 0.0, 2.0 * out.bytes() as f64);
        out.from_op(&[self], |_| {
            let kept = indices.save();
            let count = indices.numel();
            Box::new(move |incoming| {
                let Some(g) = incoming[0].as_ref() else {
                    return Grads::new();
                };
                let _indices = kept.unpack();
                let tape = g.tape();
                let g = g.contiguous();
                let out = tape.empty("embedding_backward", table, dtype);
                sort_workspace(&g, count);
                tape.kernel(
                    "embedding_backward",
                    dtype,
                    0.0,
                    (g.bytes() + out.bytes()) as f64,
                );
                grads([Some(out)])
            })
        })
    }
}

/// Above 3072 indices they are sorted and summed in segments (aten/src/ATen/native/cuda/Embedding.cu, EmbeddingBackwardKernel.cu).
fn sort_workspace(gradient: &Tensor, count: u64) {
    const UNSORTED: u64 = 3072;
    if count <= UNSORTED {
        return;
    }
    let tape = gradient.tape();
    let index = |n| tape.empty("embedding_sort", [n], DType::I64);
    let sorted = index(count);
    let original = index(count);
    // Radix sort of pairs: a second buffer for keys and values.
    let range = index(count);
    drop((index(count), index(count)));
    drop(range);
    // Partial segments of at most ten rows, summed in fp32.
    let segments = (index(count), index(count), index(count));
    let rows = count
        .div_ceil(10)
        .saturating_add(count.min(gradient.numel() / gradient.size(-1).max(1)) / 10);
    let partial = tape.empty(
        "embedding_segments",
        [rows.min(count), gradient.size(-1)],
        gradient.dtype().accumulate(),
    );
    drop((partial, segments, sorted, original));
}
