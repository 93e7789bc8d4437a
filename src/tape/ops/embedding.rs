//! Table look-ups.

use super::super::{DType, Dims, Grads, Tensor, grads};

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
                let out = sorted_gradient(&g, count, table, dtype);
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

/// The gradient table. Above 3072 indices they are sorted and summed in segments of at most ten rows
/// (`embedding_dense_backward_cuda` in Embedding.cu, `embedding_backward_cuda_kernel` in EmbeddingBackwardKernel.cu).
fn sorted_gradient(gradient: &Tensor, count: u64, table: Dims, dtype: DType) -> Tensor {
    const UNSORTED: u64 = 3072;
    let tape = gradient.tape();
    let make = || tape.empty("embedding_backward", table, dtype);
    if count <= UNSORTED {
        return make();
    }
    let index = |n: u64| tape.empty("embedding_sort", [n], DType::I64);
    let sorted = index(count);
    let original = index(count);
    // cub's radix sort: a second buffer for keys and values, and histograms.
    let range = index(count);
    tape.workspace("embedding_sort", 16 * count + count / 4 + 5888);
    drop(range);
    let out = make();
    let segments = count.min(table.first().copied().unwrap_or(0));
    let scan = || tape.workspace("embedding_sort", 1280);
    let duplicates = index(count);
    let found = index(1);
    let lengths = index(count);
    scan();
    drop(lengths);
    let offsets = index(segments);
    let partials = index(segments);
    scan();
    let total = index(1);
    let partial_segments = count / 10 + segments;
    let partial_offsets = index(partial_segments);
    let width = gradient.size(-1);
    let sums = tape.empty(
        "embedding_segments",
        [partial_segments, width],
        dtype.accumulate(),
    );
    drop((
        sums,
        partial_offsets,
        total,
        partials,
        offsets,
        found,
        duplicates,
        original,
        sorted,
    ));
    out
}
