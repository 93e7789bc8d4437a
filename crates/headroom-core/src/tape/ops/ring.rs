//! Attention of GPUs that share a sequence: keys and values go round (torch/distributed/tensor/experimental/_attention.py),
//! or heads are exchanged for tokens (DeepSpeed-Ulysses).

use super::super::{Category, DType, Layout, Saved, Tensor, borrowing, grads};

impl Tensor {
    /// `_templated_ring_attention` of flash attention over `[B, H, S, D]`, causal, with as many heads of keys as of queries: each GPU
    /// has a part of the tokens, gathers all keys and values, and merges what it finds in each part in fp32. After its own part it
    /// computes with half of its queries, which balances the load.
    pub fn ring_attention(&self, key: &Tensor, value: &Tensor, group: u64) -> Tensor {
        let tape = self.tape();
        let (dtype, wide) = (self.dtype(), DType::F32);
        let (b, h, s, d) = (self.size(0), self.size(1), self.size(2), self.size(3));
        let (all, half) = ([b, h, s, d], [b, h, s.div_ceil(2), d]);
        let pair = key.numel().saturating_add(value.numel());
        let named = "ring_attention";
        let (out, sums) = {
            let own = [key, value].map(|t| tape.empty(named, *t.shape(), dtype));
            let packed = tape.empty(named, [pair], dtype);
            let gathered = tape.empty("all_gather", [pair.saturating_mul(group)], dtype);
            drop(packed);
            let mut part = tape.empty(named, all, dtype);
            let mut sums = tape.empty(named, [b, h, s], wide);
            let mut merged = tape.empty(named, all, wide);
            let mut own = Some(own);
            for _ in 1..group {
                drop(tape.empty(named, [pair], dtype));
                drop(own.take());
                part = tape.empty(named, half, dtype);
                let raised = tape.empty(named, half, wide);
                let difference = tape.empty(named, half, wide);
                let share = tape.empty(named, half, wide);
                drop(difference);
                let scaled = tape.empty(named, half, wide);
                drop(share);
                sums = tape.empty(named, [b, h, s], wide);
                merged = tape.empty(named, all, wide);
                drop((scaled, raised));
            }
            let out = tape.empty(named, all, dtype);
            drop((merged, gathered, own, part));
            (out, sums)
        };
        let flops = 2.0 * b as f64 * h as f64 * s as f64 * s as f64 * d as f64 * group as f64;
        tape.kernel("flash_attention", dtype, flops, 4.0 * self.bytes() as f64);
        let result = out.clone();
        out.from_op(&[self, key, value], move |_| {
            let kept = [self, key, value, &result, &sums].map(Tensor::save);
            borrowing(move |g| {
                let unpacked = kept.each_ref().map(Saved::unpack);
                let [query, key, value, ..] = &unpacked;
                let tape = g.tape();
                let temporary = |shape: [u64; 4], dtype| {
                    let tensor = tape.empty("ring_backward", shape, dtype);
                    tensor.set_category(Category::Workspace);
                    tensor
                };
                let flat = |count: u64, dtype| tape.empty("ring_backward", [count], dtype);
                let mut dq = temporary(all, wide);
                let mut own = Some([key, value].map(|_| temporary(all, wide)));
                let mut copies = Some([key, value].map(|_| temporary(all, dtype)));
                let mut next = flat(pair, dtype);
                let gathered = flat(pair.saturating_mul(group), dtype);
                let mut found = Vec::new();
                let mut packed = None;
                let mut received = None;
                for step in 0..group {
                    let shape = if step == 0 { all } else { half };
                    if step > 0 {
                        next = flat(pair, dtype);
                        drop(copies.take());
                    }
                    let dense = temporary(shape, dtype);
                    let gradients = vec![
                        temporary(shape, dtype),
                        temporary(all, dtype),
                        temporary(all, dtype),
                    ];
                    drop(temporary(shape, wide));
                    drop(dense);
                    found = gradients;
                    if step == 0 {
                        let raised = [(); 2].map(|()| temporary(all, wide));
                        packed = Some(flat(pair, wide));
                        drop(raised);
                    } else {
                        drop(packed.take());
                        drop(own.take());
                        packed = Some(flat(pair, wide));
                    }
                    received = Some(flat(pair, wide));
                    if step > 0 {
                        dq = temporary(all, wide);
                    }
                }
                let for_query = tape.empty_as("to", query.layout().preserved(), dtype);
                drop(dq);
                let both = tape.empty("to", [2, key.numel()], dtype);
                drop((packed, next, found, received, gathered, own, copies));
                let flops = 2.5 * flops;
                tape.kernel("flash_backward", dtype, flops, 8.0 * g.bytes() as f64);
                let part = |of: &Tensor| {
                    let shape: &[u64] = of.shape();
                    both.alias(Layout::contiguous(shape))
                };
                let (for_key, for_value) = (part(key), part(value));
                drop(both);
                grads([Some(for_query), Some(for_key), Some(for_value)])
            })
        })
    }

    /// An all-to-all over `group` GPUs that splits dimension `from` and joins `to`.
    pub fn all_to_all(&self, group: u64, from: isize, to: isize) -> Tensor {
        self.exchanged(group, from, to).from_op(&[self], |_| {
            borrowing(move |g| grads([Some(g.contiguous().exchanged(group, to, from))]))
        })
    }

    fn exchanged(&self, group: u64, from: isize, to: isize) -> Tensor {
        let tape = self.tape();
        let mut shape = *self.shape();
        if let Some(at) = self.dim(from) {
            shape = shape.with(at, self.size(from) / group.max(1));
        }
        if let Some(at) = self.dim(to) {
            shape = shape.with(at, self.size(to).saturating_mul(group));
        }
        let parts = tape.empty("cat", *self.shape(), self.dtype());
        let received = tape.empty("all_to_all", *self.shape(), self.dtype());
        tape.kernel("all_to_all", self.dtype(), 0.0, self.bytes() as f64);
        let joined = tape.empty("cat", shape, self.dtype());
        drop((parts, received));
        joined
    }
}
