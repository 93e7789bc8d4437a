//! Table look-ups.

use super::super::{DType, Dims, Tape, Tensor, borrowing, grads};

impl Tensor {
    /// `F.embedding(indices, self)`: saves the indices; the gradient is a full table.
    pub fn embedding(&self, indices: &Tensor) -> Tensor {
        self.embedding_of(indices, self.size(0))
    }

    /// The indices counted from this GPU's first row, and whether each is one of another GPU's rows.
    pub(super) fn masked_indices(indices: &Tensor) -> [Tensor; 2] {
        let of_indices = |op: &'static str, dtype| indices.constant(op, indices.shape(), dtype);
        let below_and_above = ["mask"; 2].map(|op| of_indices(op, DType::Bool));
        let outside = of_indices("mask", DType::Bool);
        drop(below_and_above);
        let copied = of_indices("clone", DType::I64);
        let own = of_indices("sub", DType::I64);
        drop(copied);
        [own, outside]
    }

    /// The same with a gradient of this many rows.
    pub(super) fn embedding_of(&self, indices: &Tensor, rows: u64) -> Tensor {
        let tape = self.tape();
        let table = self.shape().with(0, rows);
        let dtype = self.dtype();
        let shape = [indices.shape(), &[self.size(-1)][..]].concat();
        let out = tape.empty("embedding", &shape[..], dtype);
        tape.kernel("embedding", dtype, 0.0, 2.0 * out.bytes() as f64);
        out.from_op(&[self], |_| {
            let kept = indices.save();
            let count = indices.numel();
            let compiles = indices.tape().compiles();
            borrowing(move |g| {
                let _indices = kept.unpack();
                let tape = g.tape();
                if compiles && dtype.is_half() {
                    return grads([Some(summed_in_fp32(&tape, table, dtype))]);
                }
                let g = g.contiguous();
                let out = sorted_gradient(&g, count, table, dtype);
                tape.kernel(
                    "embedding_backward",
                    dtype,
                    0.0,
                    g.bytes() as f64 + out.bytes() as f64,
                );
                grads([Some(out)])
            })
        })
    }
}

/// The gradient table of a compiled graph, added up in fp32 whatever its type (`embedding_dense_backward` in
/// torch/_decomp/decompositions.py).
fn summed_in_fp32(tape: &Tape, table: Dims, dtype: DType) -> Tensor {
    tape.apart(|| {
        let sums = tape.empty("index_put", table, DType::F32);
        let cast = tape.empty("embedding_backward", table, dtype);
        drop(sums);
        cast
    })
}

/// The gradient table. Above 3072 indices they are sorted and summed in segments of at most ten rows
/// (`embedding_dense_backward_cuda` in Embedding.cu, `embedding_backward_cuda_kernel` in EmbeddingBackwardKernel.cu).
pub(super) fn sorted_gradient(gradient: &Tensor, count: u64, table: Dims, dtype: DType) -> Tensor {
    const UNSORTED: u64 = 3072;
    let tape = gradient.tape();
    let make = || tape.empty("embedding_backward", table, dtype);
    if count <= UNSORTED {
        return make();
    }
    let index = |n: u64| tape.empty("embedding_sort", [n], DType::I64);
    let sorted = index(count);
    let original = index(count);
    let range = index(count);
    tape.workspace(
        "embedding_sort",
        radix_sort_workspace(count, table.first().copied().unwrap_or(0)),
    );
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
    // Few long segments: a block sums each at once, in fp32, into a table where the gradient has another type.
    let few = segments < 4 * tape.machine().multiprocessors && count >= 32 * segments;
    let partial_ids = few.then(|| index(partial_segments));
    let rows = if !few {
        partial_segments
    } else if dtype.is_half() {
        segments
    } else {
        0
    };
    let sums = tape.empty("embedding_segments", [rows, width], dtype.accumulate());
    drop((
        sums,
        partial_ids,
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

/// Scratch memory of cub's one-sweep radix sort of 64-bit keys and values (`DispatchRadixSort::InvokeOnesweep`): histograms of
/// 256 digits for each pass over eight bits, a look-back word for each digit of each tile, and second buffers from two passes on.
pub(super) fn radix_sort_workspace(count: u64, rows: u64) -> u64 {
    const TILE: u64 = 3840;
    let bits = u64::from(rows.max(1).ilog2()) + 1;
    let passes = bits.div_ceil(8);
    let aligned = |bytes: u64| bytes.div_ceil(256).saturating_mul(256);
    let buffers = if passes > 1 {
        aligned(count.saturating_mul(8)).saturating_mul(2)
    } else {
        0
    };
    let tiles = count.div_ceil(TILE).saturating_mul(1024);
    buffers
        .saturating_add(tiles)
        .saturating_add(passes * 2048 + 256 + 255)
}

#[cfg(test)]
mod tests {
    use super::radix_sort_workspace;

    #[test]
    fn sorting_allocates_as_cub_does() {
        #[track_caller]
        fn check(count: u64, rows: u64, expected: u64) {
            assert_eq!(radix_sort_workspace(count, rows), expected);
        }
        // Read from the allocator of PyTorch 2.15.
        check(4096, 50_257, 72_191);
        check(16_384, 128_256, 273_919);
        check(16_384, 300, 271_871);
        check(16_384, 32, 7_679);
        check(262_144, 32, 73_215);
        check(3_841, 50_257, 68_607);
        check(1_000_000, 50_257, 16_271_871);
    }
}
