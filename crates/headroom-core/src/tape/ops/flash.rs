//! Scratch memory of flash attention (aten/src/ATen/native/transformers/cuda/flash_attn/flash_api.cpp).

use super::super::{Category, DType, Tensor};
use headroom_base::units::RoundUp;

/// Few queries: keys are split between blocks, whose results are joined in fp32.
pub(super) fn flash_splits(query: &Tensor, key: &Tensor, dropout: bool) -> Option<[Tensor; 2]> {
    let tape = query.tape();
    let (b, h, s, d) = (query.size(0), query.size(1), query.size(2), query.size(3));
    let splits = if dropout {
        1
    } else {
        key_splits(
            saturated([b, h, s.div_ceil(64)]),
            key.size(2),
            d,
            tape.machine().multiprocessors,
        )
    };
    (splits > 1).then(|| {
        [
            tape.empty("flash_splits", [splits, b, h, s], DType::F32),
            tape.empty(
                "flash_splits",
                [splits, b, h, s, head_columns(d)],
                DType::F32,
            ),
        ]
    })
}

/// mha_bwd in flash_api.cpp: row sums and an fp32 query gradient, rounded to blocks of 128 rows, heads to 32 columns.
pub(super) fn flash_backward_scratch(query: &Tensor, key: &Tensor) -> Vec<Tensor> {
    let tape = query.tape();
    let (b, h, s, d) = (query.size(0), query.size(1), query.size(2), query.size(3));
    let (kv_heads, t, dtype) = (key.size(1), key.size(2), query.dtype());
    let rows = s.round_up(128);
    let scratch = |shape: [u64; 4], dtype| {
        let t = tape.empty("flash_workspace", shape, dtype);
        t.set_category(Category::Workspace);
        t
    };
    let mut all = vec![
        scratch([b, h, rows, 1], DType::F32),
        scratch([b, rows, h, head_columns(d)], DType::F32),
    ];
    if h != kv_heads {
        all.extend([scratch([b, t, h, d], dtype), scratch([b, t, h, d], dtype)]);
    }
    all
}

/// `head_size_rounded` of flash_api.cpp.
fn head_columns(dim: u64) -> u64 {
    dim.round_up(if dim <= 128 { 32 } else { 64 })
}

/// `num_splits_heuristic` and `set_params_splitkv` of flash_api.cpp: the fewest splits that keep at least 85 % of the best use of
/// the multiprocessors, two blocks on each.
fn key_splits(blocks: u64, keys: u64, dim: u64, multiprocessors: u64) -> u64 {
    const MOST: u64 = 128;
    let places = 2 * multiprocessors;
    if blocks as f32 >= 0.8 * places as f32 {
        return 1;
    }
    let block = match dim {
        0..=64 => 256,
        65..=128 => 128,
        _ => 64,
    };
    let key_blocks = keys.div_ceil(block);
    let most = MOST.min(places).min(key_blocks);
    let differs = |n: u64| n == 1 || key_blocks.div_ceil(n) != key_blocks.div_ceil(n - 1);
    let use_of = |n: u64| {
        let waves = blocks.saturating_mul(n) as f32 / places as f32;
        waves / waves.ceil()
    };
    let best = (1..=most)
        .filter(|&n| differs(n))
        .map(use_of)
        .fold(0.0, f32::max);
    (1..=most)
        .find(|&n| differs(n) && use_of(n) >= 0.85 * best)
        .unwrap_or(1)
}

/// The saturating product of sizes.
pub(super) fn saturated<const N: usize>(sizes: [u64; N]) -> u64 {
    sizes.into_iter().fold(1, u64::saturating_mul)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flash_attention_splits_keys_where_queries_are_few() {
        #[track_caller]
        fn check(blocks: u64, keys: u64, dim: u64, multiprocessors: u64, expected: u64) {
            assert_eq!(key_splits(blocks, keys, dim, multiprocessors), expected);
        }
        // 16 heads of 128 over 512 tokens: read from the allocator of PyTorch 2.15 on sm80 and sm90.
        check(128, 512, 128, 108, 4);
        check(128, 512, 128, 132, 2);
        check(512, 512, 64, 108, 1);
        check(1, 0, 64, 108, 1);
    }
}
