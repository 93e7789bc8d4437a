//! `scaled_dot_product_attention` with PyTorch's own choice of kernel.

use super::super::core::SelectableOp;
use super::super::{Category, Core, DType, Grads, Layout, Saved, Tape, Tensor, borrowing, grads};
use super::flash::{flash_backward_scratch, flash_splits, saturated};
use headroom_base::units::RoundUp;

/// The attention mask.
#[derive(Clone, Debug)]
pub enum AttentionMask {
    None,
    /// `is_causal=True`: no memory.
    Causal,
    /// A bias or Boolean mask `[B, 1 or H, S, T]`.
    Given(Tensor),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kernel {
    Flash,
    Efficient,
    Math,
}

impl Tensor {
    /// `F.scaled_dot_product_attention(self, key, value, mask, dropout, enable_gqa=True)` on `[B, H, S, D]`.
    pub fn attention(
        &self,
        key: &Tensor,
        value: &Tensor,
        mask: &AttentionMask,
        dropout: f64,
    ) -> Tensor {
        let mask = match mask {
            AttentionMask::Given(bias) if bias.dtype().is_floating() => {
                AttentionMask::Given(bias.autocast())
            }
            other => other.clone(),
        };
        let value = value.autocast();
        let key = key.autocast();
        let query = self.autocast();
        match choose(&query, &value, &mask) {
            Kernel::Flash => flash(&query, &key, &value, &mask, dropout),
            Kernel::Efficient => efficient(&query, &key, &value, &mask, dropout),
            Kernel::Math => math(&query, &key, &value, &mask, dropout),
        }
    }
}

/// `_fused_sdp_choice_cuda` in aten/src/ATen/native/transformers/cuda/sdp_utils.cpp: flash, else memory-efficient, else plain products.
fn choose(query: &Tensor, value: &Tensor, mask: &AttentionMask) -> Kernel {
    let machine = query.tape().machine();
    let dim = query.size(-1);
    let masked = matches!(mask, AttentionMask::Given(_));
    let even = dim == value.size(-1);
    if machine.capability >= (8, 0) && query.dtype().is_half() && !masked && even && dim <= 256 {
        return Kernel::Flash;
    }
    let known = match query.dtype() {
        DType::BF16 => machine.capability >= (8, 0),
        DType::F16 | DType::F32 => machine.capability >= (5, 0),
        _ => false,
    };
    let aligned = dim.is_multiple_of(if query.dtype() == DType::F32 { 4 } else { 8 });
    if known && aligned {
        Kernel::Efficient
    } else {
        Kernel::Math
    }
}

/// A result that lies as `[B, S, H, D]`, whatever the query's layout (`_efficient_attention_forward`).
fn heads_inside(
    tape: &Tape,
    op: &'static str,
    b: u64,
    h: u64,
    s: u64,
    d: u64,
    dtype: DType,
) -> Tensor {
    tape.empty_as(op, Layout::contiguous([b, s, h, d]).transposed(1, 2), dtype)
}

fn attention_flops(query: &Tensor, key: &Tensor, mask: &AttentionMask) -> f64 {
    let (b, h, s, d, t) = (
        query.size(0),
        query.size(1),
        query.size(2),
        query.size(3),
        key.size(2),
    );
    let all = 4.0 * b as f64 * h as f64 * s as f64 * t as f64 * d as f64;
    if matches!(mask, AttentionMask::Causal) {
        all / 2.0
    } else {
        all
    }
}

impl Core {
    /// `torch.utils.flop_counter` counts what a causal mask leaves out.
    fn counts_full_matrix(&self, mask: &AttentionMask, flops: f64) {
        if matches!(mask, AttentionMask::Causal) {
            self.add_flops(flops);
        }
    }
}

fn flash(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    mask: &AttentionMask,
    dropout: f64,
) -> Tensor {
    let d = query.size(-1);
    if !d.is_multiple_of(8) {
        // Heads are padded to a multiple of eight and the result is cut back.
        let wide = |t: &Tensor| t.pad_to(&[t.size(0), t.size(1), t.size(2), d.round_up(8)]);
        return flash(&wide(query), &wide(key), &wide(value), mask, dropout).narrow(-1, d);
    }
    let tape = query.tape();
    let (b, h, s) = (query.size(0), query.size(1), query.size(2));
    let flops = attention_flops(query, key, mask);
    Tensor::materialize(&[query, key, value]);
    let [out, sums, seed, offset] = query.core().selective(SelectableOp::Attention, || {
        tape.kernel(
            "flash_attention",
            query.dtype(),
            flops,
            2.0 * query.bytes() as f64 + key.bytes() as f64 + value.bytes() as f64,
        );
        query.core().counts_full_matrix(mask, flops);
        // `empty_like` of the query: the result's heads lie as the query's do (mha_fwd in flash_api.cpp).
        let layout = query.layout().preserved();
        let out = tape.empty_as("flash_attention", layout, query.dtype());
        let sums = tape.empty("flash_attention", [b, h, s], DType::F32);
        let parts = flash_splits(query, key, dropout > 0.0);
        let seed = tape.empty("flash_attention", [2], DType::U64);
        let offset = tape.empty("flash_attention", [0; 0], DType::U64);
        drop(parts);
        if dropout > 0.0 {
            // The debug mask's place-holder.
            tape.workspace("flash_attention", 2);
        }
        [out, sums, seed, offset]
    });
    let result = out.clone();
    out.from_op(&[query, key, value], move |_| {
        let dtype = query.dtype();
        let kept = [query, key, value, &result, &sums, &seed, &offset].map(Tensor::save);
        borrowing(move |g| {
            let tape = g.tape();
            let unpacked = kept.each_ref().map(Saved::unpack);
            let [query, key, value, result, ..] = &unpacked;
            // The kernel takes gradient and result with the heads inside: where they lie otherwise they are copied.
            let inside = |t: &Tensor| {
                let layout = t.layout().transposed(1, 2);
                let copies = !layout.is_contiguous();
                copies.then(|| tape.empty("contiguous", layout.shape, dtype))
            };
            let copies = (inside(g), inside(result));
            let [dq, dk, dv] = [query, key, value]
                .map(|t| tape.empty_as("flash_backward", t.layout().preserved(), dtype));
            let scratch = flash_backward_scratch(query, key);
            tape.kernel("flash_backward", dtype, 2.5 * flops, 4.0 * g.bytes() as f64);
            drop((scratch, copies, unpacked));
            grads([Some(dq), Some(dk), Some(dv)])
        })
    })
}

fn efficient(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    mask: &AttentionMask,
    dropout: f64,
) -> Tensor {
    let tape = query.tape();
    let (b, h, s, d, t) = (
        query.size(0),
        query.size(1),
        query.size(2),
        query.size(3),
        key.size(2),
    );
    let (dtype, kv_heads, value_dim) = (query.dtype(), key.size(1), value.size(-1));
    // A Boolean mask becomes a bias in the query's type; a bias whose rows are not aligned to sixteen bytes is padded.
    let bias = match mask {
        AttentionMask::Given(bias) => {
            Some(bias_of(bias, dtype, t).pipe(|bias| bias.expand(&[b, h, s, t])))
        }
        _ => None,
    };
    // With dropout the generator's state is kept on the host.
    let state = || (dropout <= 0.0).then(|| tape.empty("efficient_attention", [0; 0], DType::I64));
    let (seed, offset) = (state(), state());
    let flops = attention_flops(query, key, mask);
    // `should_compute_logsumexp` in sdp_utils_cpp.h: the sums are computed only if a gradient is required.
    let asked = [query, key, value]
        .iter()
        .any(|input| input.requires_grad());
    let asked = asked && query.core().ambient.mode.get().grad;
    Tensor::materialize(&[query, key, value]);
    let [out, sums] = query.core().selective(SelectableOp::Attention, || {
        tape.kernel(
            "efficient_attention",
            dtype,
            flops,
            2.0 * query.bytes() as f64 + key.bytes() as f64 + value.bytes() as f64,
        );
        query.core().counts_full_matrix(mask, flops);
        let out = heads_inside(&tape, "efficient_attention", b, h, s, value_dim, dtype);
        let rows = if asked { s.round_up(32) } else { 0 };
        let sums = tape.empty("efficient_attention", [b, h, rows], DType::F32);
        efficient_forward_scratch(query, value);
        [out, sums]
    });
    let result = out.clone();
    let mut inputs = vec![query, key, value];
    inputs.extend(bias.as_ref());
    let bias_grad = bias.as_ref().is_some_and(Tensor::requires_grad);
    out.from_op(&inputs, |_| {
        let kept: Vec<_> = [query, key, value, &result, &sums]
            .into_iter()
            .chain(&seed)
            .chain(&offset)
            .chain(&bias)
            .map(Tensor::save)
            .collect();
        borrowing(move |g| {
            let tape = g.tape();
            let unpacked: Vec<Tensor> = kept.iter().map(Saved::unpack).collect();
            let [query, key, value, ..] = &unpacked[..] else {
                return Grads::new();
            };
            let [dq, dk, dv] = [(h, s, d), (kv_heads, t, d), (kv_heads, t, value_dim)]
                .map(|(h, n, d)| heads_inside(&tape, "efficient_backward", b, h, n, d, dtype));
            // Its rows are aligned to sixteen elements.
            let for_bias = bias_grad.then(|| {
                let shape = [b, h, s, t.round_up(16)];
                let whole = tape.empty("efficient_backward", shape, dtype);
                if whole.size(-1) == t {
                    whole
                } else {
                    whole.narrow(-1, t)
                }
            });
            let scratch = backward_scratch(query, key, value);
            tape.kernel(
                "efficient_backward",
                dtype,
                2.5 * flops,
                4.0 * g.bytes() as f64,
            );
            drop((scratch, unpacked));
            grads([Some(dq), Some(dk), Some(dv), for_bias])
        })
    })
}

/// `kNeedsOutputAccumulatorBuffer` in mem_eff_attention/kernel_forward.h, by the wider of the two: one kernel serves both.
pub(super) fn efficient_forward_scratch(query: &Tensor, value: &Tensor) {
    let widest = query.size(-1).max(value.size(-1));
    if query.dtype().is_half() && widest > 128 {
        let rows = query.numel() / query.size(-1).max(1);
        let numel = rows.saturating_mul(value.size(-1));
        query
            .tape()
            .workspace("efficient_attention", numel.saturating_mul(4));
    }
}

/// What the backward of memory-efficient attention takes besides its gradients.
pub(super) fn backward_scratch(query: &Tensor, key: &Tensor, value: &Tensor) -> Vec<Tensor> {
    let tape = query.tape();
    let (b, h, s, d) = (query.size(0), query.size(1), query.size(2), query.size(3));
    let (kv_heads, t, value_dim) = (key.size(1), key.size(2), value.size(-1));
    let dtype = query.dtype();
    let scratch = |bytes: u64| {
        let t = tape.empty("efficient_workspace", [bytes], DType::U8);
        t.set_category(Category::Workspace);
        t
    };
    let mut all = Vec::new();
    if h != kv_heads {
        all.extend([(); 2].map(|()| scratch(saturated([b, t, h, d, dtype.bytes()]))));
    }
    // Row sums, which the kernels of 16-bit types take themselves (`kKernelComputesDelta`).
    all.push(if dtype.is_half() {
        scratch(saturated([b, h, s, 4]))
    } else {
        let product = scratch(saturated([b, h, s, value_dim, 4]));
        let sums = scratch(saturated([b, h, s, 4]));
        let transposed = scratch(saturated([b, h, s, 4]));
        drop((sums, product));
        transposed
    });
    all.push(scratch(backward_workspace(
        dtype,
        [b, h, s, t, d],
        value_dim,
    )));
    all
}

/// `workspace_size` of mem_eff_attention/kernel_backward.h: tiles in which the query gradient is summed in fp32, with a lock each,
/// and for wide heads of 16-bit types the same for keys and values. Block sizes as in its generate_kernels.py for sm80.
fn backward_workspace(dtype: DType, [b, h, s, t, d]: [u64; 5], value_dim: u64) -> u64 {
    let widest = d.max(value_dim);
    let in_registers = dtype.is_half() && widest <= 128;
    let rows = if widest <= 64 { 64 } else { 128 };
    let columns = if in_registers { rows } else { 64 };
    let tile = rows * columns * 4 + 16;
    let queries = saturated([s.div_ceil(rows), d.div_ceil(columns), tile]);
    let others = if dtype.is_half() && !in_registers {
        let mut splits = t.div_ceil(64);
        if b.saturating_mul(h) >= 256 && t <= 2 * 64 {
            splits = 1;
        }
        splits = splits.min(200 / b.saturating_mul(h).max(1)).max(1);
        let widths = [d, value_dim].map(|width| width.saturating_add(rows - 1) / rows * rows);
        saturated([splits, 64, widths[0].saturating_add(widths[1]), 4])
    } else {
        0
    };
    saturated([b, h, queries.saturating_add(others)])
}

/// `preprocess_mask` and `convert_boolean_attn_mask` in attention.cpp.
fn bias_of(mask: &Tensor, dtype: DType, keys: u64) -> Tensor {
    let bias = if mask.dtype() == DType::Bool {
        let tape = mask.tape();
        let scalars = (
            tape.empty("scalar_tensor", [0; 0], dtype),
            tape.empty("scalar_tensor", [0; 0], dtype),
        );
        let out = mask.map_to("where", dtype);
        drop(scalars);
        out
    } else {
        mask.to(dtype)
    };
    let aligned = keys.round_up(8);
    if keys == aligned {
        return bias;
    }
    let mut shape = bias.shape().to_vec();
    if let Some(last) = shape.last_mut() {
        *last = aligned;
    }
    bias.pad_to(&shape).narrow(-1, keys)
}

/// `_scaled_dot_product_attention_math`: query and key are scaled, scores and probabilities exist.
fn math(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    mask: &AttentionMask,
    dropout: f64,
) -> Tensor {
    let groups = query.size(1) / key.size(1).max(1);
    let (key, value) = if groups > 1 {
        (repeat_heads(key, groups), repeat_heads(value, groups))
    } else {
        (key.clone(), value.clone())
    };
    let scores = query
        .mul_scalar()
        .matmul(&key.transpose(-2, -1).mul_scalar());
    let scores = match mask {
        AttentionMask::None => scores,
        AttentionMask::Causal => {
            let shape = [query.size(2), key.size(2)];
            let allowed = query.constant("tril", &shape, DType::Bool);
            let bias = bias_of(&allowed, query.dtype(), key.size(2));
            scores.add_(&bias)
        }
        AttentionMask::Given(bias) => scores.add_(&bias_of(bias, query.dtype(), key.size(2))),
    };
    scores.softmax(None).dropout(dropout).matmul(&value)
}

/// `repeat_kv` of transformers: `[B, K, S, D]` to `[B, K × groups, S, D]` by a copy.
pub(crate) fn repeat_heads(t: &Tensor, groups: u64) -> Tensor {
    if groups <= 1 {
        return t.clone();
    }
    let (b, k, s, d) = (t.size(0), t.size(1), t.size(2), t.size(3));
    t.unsqueeze(2)
        .expand(&[b, k, groups, s, d])
        .reshape(&[b, k * groups, s, d])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backward_of_efficient_attention_allocates_as_the_kernel_does() {
        #[track_caller]
        fn check(dtype: DType, sizes: [u64; 5], expected: u64) {
            assert_eq!(backward_workspace(dtype, sizes, sizes[4]), expected);
        }
        // Read from the allocator of PyTorch 2.15 on sm80.
        check(DType::BF16, [2, 3, 500, 500, 64], 787_200);
        check(DType::F16, [2, 3, 500, 300, 80], 1_573_248);
        check(DType::BF16, [2, 3, 500, 500, 160], 8_651_904);
        check(DType::BF16, [2, 3, 500, 700, 256], 11_798_016);
        check(DType::BF16, [20, 20, 500, 100, 256], 262_246_400);
        check(DType::F32, [2, 3, 500, 500, 64], 787_200);
        check(DType::F32, [2, 3, 500, 300, 80], 1_573_632);
        check(DType::F32, [2, 3, 500, 700, 256], 3_147_264);
    }
}
