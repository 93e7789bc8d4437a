//! Rotary position embeddings.

use super::super::Cx;
use super::family::Rope;
use crate::tape::{DType, Tensor};

/// `LlamaRotaryEmbedding.forward`: cosines and sines `[1, S, D]` in `dtype`, from fp32 angles.
pub(crate) fn tables(
    cx: &Cx,
    positions: &Tensor,
    dim: u64,
    dtype: DType,
    rope: Rope,
    buffers: [&'static str; 2],
) -> [Tensor; 2] {
    cx.module("rotary_emb", |cx| {
        cx.tape.no_grad(|| {
            let [frequencies, original] =
                buffers.map(|name| cx.buffer(name, [dim / 2], DType::F32));
            drop(original);
            let angles = positions
                .unsqueeze(-1)
                .to(DType::F32)
                .pipe(|positions| positions.mul(&frequencies));
            if rope == Rope::Complex {
                let ones = angles.constant("ones_like", angles.shape(), DType::F32);
                let pairs = [angles.shape(), &[2][..]].concat();
                let polar = angles.constant("polar", &pairs, DType::F32);
                drop(ones);
                let scaled = polar.mul_scalar();
                return [scaled.clone(), scaled];
            }
            if angles.shape().len() > 3 {
                let cos = angles.cos().pipe(Tensor::mul_scalar);
                let sin = angles.sin().pipe(Tensor::mul_scalar);
                let [cos, sin] = [cos, sin].map(|table| match rope {
                    // Height and width are written over the table for time.
                    Rope::InterleavedSections => {
                        let time = table.select(0);
                        Tensor::cat(&time, &[&time], -1)
                    }
                    Rope::Partial => interleaved_sections(&table),
                    Rope::PartialSectionsInterleaved => repeated(&side_by_side(&table)),
                    _ => mrope_sections(&table),
                });
                return [cos.to(dtype), sin.to(dtype)];
            }
            let both = match rope {
                Rope::HalfTables => angles.clone(),
                Rope::Fp32Interleaved => repeated(&angles),
                _ => Tensor::cat(&angles, &[&angles], -1),
            };
            let cos = both.cos().pipe(Tensor::mul_scalar);
            let sin = both.sin().pipe(Tensor::mul_scalar);
            match rope {
                Rope::Fp32Tables | Rope::InterleavedInFp32 => [cos, sin],
                _ => [cos.to(dtype), sin.to(dtype)],
            }
        })
    })
}

/// `recomposition_frequencies` of Qwen2-VL: the tables side by side and twice.
fn mrope_sections(table: &Tensor) -> Tensor {
    let joined = side_by_side(table);
    Tensor::cat(&joined, &[&joined], -1)
}

/// Of the tables for time, height and width `[3, B, S, D / 2]` a quarter and three eighths each.
fn side_by_side(table: &Tensor) -> Tensor {
    let half = table.size(-1);
    let eighths = half / 8 * 3;
    let parts = table.split(&[half.saturating_sub(2 * eighths), eighths, eighths], -1);
    let parts: Vec<Tensor> = parts.iter().map(|part| part.select(0)).collect();
    let all: Vec<&Tensor> = parts.iter().collect();
    match all.split_first() {
        Some((first, rest)) => Tensor::cat(first, rest, -1),
        None => table.clone(),
    }
}

/// The same of Qwen3.5: of time's table, into which every third column of the others is written, twice.
fn interleaved_sections(table: &Tensor) -> Tensor {
    let first = table.select(0);
    Tensor::cat(&first, &[&first], -1)
}

/// Tables of a full rotation, for models that are no decoders.
pub(in crate::nets) fn full_tables(
    cx: &Cx,
    positions: &Tensor,
    dim: u64,
    dtype: DType,
    buffers: [&'static str; 2],
) -> [Tensor; 2] {
    tables(cx, positions, dim, dtype, Rope::Full, buffers)
}

/// `apply_rotary_pos_emb_vision` of Qwen2-VL: queries and keys `[N, H, D]` by tables `[N, D]`, in fp32.
pub(super) fn rotated_rows([q, k]: [&Tensor; 2], tables: &[Tensor; 2]) -> [Tensor; 2] {
    let (wide_q, wide_k) = (q.to(DType::F32), k.to(DType::F32));
    let tables = tables.each_ref().map(|table| table.unsqueeze(-2));
    let both = [&wide_q, &wide_k].map(|x| rotated(x, &tables, rotate_half));
    let [mut rotated_q, mut rotated_k] = both;
    rotated_q = rotated_q.to(q.dtype());
    rotated_k = rotated_k.to(k.dtype());
    drop((wide_q, wide_k));
    [rotated_q, rotated_k]
}

/// `apply_rotary_pos_emb` of Pixtral: queries and keys `[B, H, N, D]` by tables `[N, D]`.
pub(super) fn rotated_by_tables(both: [&Tensor; 2], tables: &[Tensor; 2]) -> [Tensor; 2] {
    let tables = tables.each_ref().map(|table| table.unsqueeze(0));
    both.map(|x| rotated(x, &tables, rotate_half))
}

/// `(x.float() * cos) + (rotate_half(x.float()) * sin)`.
pub(in crate::nets) fn rotated_in_fp32(x: &Tensor, [cos, sin]: &[Tensor; 2]) -> Tensor {
    let [cos, sin] = [cos.unsqueeze(1), sin.unsqueeze(1)];
    let straight = x.to(DType::F32).pipe(|x| x.mul(&cos));
    let crossed = x
        .to(DType::F32)
        .pipe(rotate_half)
        .pipe(|half| half.mul(&sin));
    straight.add(&crossed)
}

/// `repeat_interleave(2, dim=-1)`: a copy of an expanded view.
pub(super) fn repeated(x: &Tensor) -> Tensor {
    let mut shape = x.shape().to_vec();
    let wide: Vec<u64> = shape.iter().copied().chain([2]).collect();
    if let Some(last) = shape.last_mut() {
        *last *= 2;
    }
    x.unsqueeze(-1).expand(&wide).contiguous().view(&shape)
}

/// `apply_rotary_pos_emb`: rotated queries and keys, and what the caller's variables keep alive.
pub(crate) fn apply(
    q: &Tensor,
    k: &Tensor,
    [cos, sin]: &[Tensor; 2],
    rope: Rope,
) -> (Tensor, Tensor, Vec<Tensor>) {
    let mut tables = [cos.unsqueeze(1), sin.unsqueeze(1)];
    let width = cos.size(-1);
    let part = |x: &Tensor| {
        let rest = x.size(-1).saturating_sub(width);
        [x.narrow(-1, width), x.narrow(-1, rest)]
    };
    match rope {
        Rope::InBlock => (q.clone(), k.clone(), Vec::new()),
        Rope::Full | Rope::InterleavedSections => {
            let q = rotated(q, &tables, rotate_half);
            (q, rotated(k, &tables, rotate_half), Vec::new())
        }
        Rope::Fp32Tables => {
            let (wide_q, wide_k) = (
                rotated(q, &tables, rotate_half),
                rotated(k, &tables, rotate_half),
            );
            let narrow = wide_q.to(q.dtype());
            (narrow, wide_k.to(k.dtype()), Vec::new())
        }
        Rope::InterleavedInFp32 => {
            tables = tables.map(|table| repeated(&table.narrow(-1, width / 2)));
            let wide = |x: &Tensor| {
                let straight = x.to(DType::F32).pipe(|x| x.mul(&tables[0]));
                let crossed = rotate_interleaved(x)
                    .pipe(|half| half.to(DType::F32))
                    .pipe(|half| half.mul(&tables[1]));
                straight.add(&crossed)
            };
            let (wide_q, wide_k) = (wide(q), wide(k));
            let narrow = wide_q.to(q.dtype());
            (narrow, wide_k.to(k.dtype()), Vec::new())
        }
        Rope::Fp32Interleaved => {
            let (wide_q, wide_k) = (q.to(DType::F32), k.to(DType::F32));
            let both = [&wide_q, &wide_k].map(|x| rotated(x, &tables, rotate_interleaved));
            let [rotated_q, rotated_k] = both;
            let narrow = rotated_q.to(q.dtype());
            (narrow, rotated_k.to(k.dtype()), Vec::new())
        }
        Rope::Complex => {
            let (wide_q, wide_k) = (q.to(DType::F32), k.to(DType::F32));
            let rotated_q = wide_q
                .mul_complex(&tables[0])
                .pipe(|turned| turned.to(q.dtype()));
            let rotated_k = wide_k
                .mul_complex(&tables[0])
                .pipe(|turned| turned.to(k.dtype()));
            (rotated_q, rotated_k, Vec::new())
        }
        Rope::Deinterleaved => {
            let half = width / 2;
            let tables = tables.map(|table| table.narrow(-1, half));
            let parts = |x: &Tensor| [x.every_other(), x.every_other()];
            let (q_parts, k_parts) = (parts(q), parts(k));
            let q = interleaved(&q_parts, &tables);
            (q, interleaved(&k_parts, &tables), Vec::new())
        }
        Rope::HalfTables => {
            let both = [q, k].map(|x| {
                let halves: Result<[Tensor; 2], _> = x.chunk(2, -1).try_into();
                halves.map_or_else(|_| x.clone(), |halves| interleaved(&halves, &tables))
            });
            let [q, k] = both;
            (q, k, Vec::new())
        }
        Rope::PartialConcatenated => {
            let (q_parts, k_parts) = (part(q), part(k));
            let join = |[turning, rest]: &[Tensor; 2]| {
                rotated(turning, &tables, rotate_half)
                    .pipe(|turned| Tensor::cat(turned, &[rest], -1))
            };
            let q = join(&q_parts);
            (q, join(&k_parts), Vec::new())
        }
        Rope::Partial
        | Rope::PartialInBlock
        | Rope::PartialInterleaved
        | Rope::PartialSections
        | Rope::PartialSectionsInterleaved => {
            let by_neighbours = matches!(
                rope,
                Rope::PartialInterleaved | Rope::PartialSectionsInterleaved
            );
            if rope == Rope::PartialInterleaved {
                tables = tables.map(|table| repeated(&table.narrow(-1, width / 2)));
            }
            let half = if by_neighbours {
                rotate_interleaved
            } else {
                rotate_half
            };
            let ([q_turning, q_rest], [k_turning, k_rest]) = (part(q), part(k));
            let mut q = rotated(&q_turning, &tables, half);
            let mut k = rotated(&k_turning, &tables, half);
            let mut held = Vec::new();
            if rope == Rope::PartialInBlock {
                held.extend([q.clone(), k.clone(), q_rest.clone(), k_rest.clone()]);
            }
            q = Tensor::cat(&q, &[&q_rest], -1);
            k = Tensor::cat(&k, &[&k_rest], -1);
            (q, k, held)
        }
    }
}

pub(in crate::nets) fn rotated(
    x: &Tensor,
    [cos, sin]: &[Tensor; 2],
    half: fn(&Tensor) -> Tensor,
) -> Tensor {
    let straight = x.mul(cos);
    let crossed = half(x).pipe(|half| half.mul(sin));
    straight.add(&crossed)
}

/// `torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)`.
fn interleaved([a, b]: &[Tensor; 2], [cos, sin]: &[Tensor; 2]) -> Tensor {
    let combined = |first: &Tensor, second: &Tensor, minus: bool| {
        let (straight, crossed) = (first.mul(cos), second.mul(sin));
        if minus {
            straight.sub(&crossed)
        } else {
            straight.add(&crossed)
        }
    };
    let firsts = combined(a, b, true);
    let seconds = combined(b, a, false);
    Tensor::cat(&firsts, &[&seconds], -1)
}

pub(in crate::nets) fn rotate_half(x: &Tensor) -> Tensor {
    let half = x.size(-1) / 2;
    let first = x.narrow(-1, half);
    let second = x.narrow(-1, x.size(-1) - half);
    let negative = second.neg();
    Tensor::cat(&negative, &[&first], -1)
}

/// `torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)`.
pub(super) fn rotate_interleaved(x: &Tensor) -> Tensor {
    let (first, second) = (x.every_other(), x.every_other());
    let negative = second.neg();
    let parts = [negative.unsqueeze(-1), first.unsqueeze(-1)];
    drop(negative);
    Tensor::cat(&parts[0], &[&parts[1]], -1).view(x.shape())
}
