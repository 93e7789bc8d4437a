//! A block of the tower: attention within each picture or window, and an MLP.

use super::{Kind, MOST_PIECES, VisionTransformer};
use crate::nets::Cx;
use crate::nets::attention::{Eager, attend};
use crate::nets::clip::quick_gelu;
use crate::nets::decoder::rope;
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Attention;

/// One block with what it is given.
pub(super) struct VisionBlock {
    pub tower: VisionTransformer,
    pub tables: [Tensor; 2],
    /// How many patches each part has that is attended by itself.
    pub pieces: Vec<u64>,
}

impl VisionBlock {
    pub(super) fn run(&self, cx: &Cx, input: &Tensor) -> Tensor {
        let tower = &self.tower;
        let normed = tower.norm(cx, "norm1", input);
        let start = cx.tape.construction_point();
        let attended = cx.module("attn", |cx| {
            normed.pipe(|normed| self.attention(cx, normed))
        });
        let made = cx.tape.construction_point();
        let hidden = attended.pipe(|attended| input.add(attended));
        let normed = tower.norm(cx, "norm2", &hidden);
        // The constructor makes both norms first.
        cx.tape.construct_here(start, made);
        let fed = cx.module("mlp", |cx| normed.pipe(|normed| self.feed(cx, normed)));
        fed.pipe(|fed| hidden.add(fed))
    }

    /// Whether its matrices have biases.
    fn biased(&self) -> bool {
        !matches!(self.tower.kind, Kind::Joined { .. })
    }

    fn feed(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let VisionTransformer { hidden, ffn, .. } = self.tower;
        match self.tower.kind {
            Kind::Windowed { .. } | Kind::Joined { .. } => {
                let bias = self.biased();
                let product = {
                    let gate = cx.linear("gate_proj", x, ffn, bias).pipe(Tensor::silu);
                    let up = cx.linear("up_proj", x, ffn, bias);
                    gate.mul(&up)
                };
                cx.linear("down_proj", &product, hidden, bias)
            }
            Kind::Plain => {
                let inner = cx.linear("fc1", x, ffn, true).pipe(quick_gelu);
                cx.linear("fc2", &inner, hidden, true)
            }
            Kind::ByPicture { .. } => {
                let inner = cx.linear("fc1", x, ffn, true).pipe(Tensor::gelu);
                cx.linear("fc2", &inner, hidden, true)
            }
            Kind::Stacked { .. } => {
                let inner = cx.linear("linear_fc1", x, ffn, true).pipe(Tensor::gelu);
                cx.linear("linear_fc2", &inner, hidden, true)
            }
        }
    }

    fn attention(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let VisionTransformer { hidden, heads, .. } = self.tower;
        let (rows, d) = (x.size(0), hidden / heads);
        let output = self.tower.products.map_or("proj", |[.., output]| output);
        let shape = [rows, heads, d];
        let [q, k, v] = if let Some([q, k, v, _]) = self.tower.products {
            [q, k, v].map(|name| cx.linear(name, x, hidden, true).view(&shape))
        } else {
            let parts = cx
                .linear("qkv", x, 3 * hidden, self.biased())
                .view(&[rows, 3, heads, d])
                .permute(&[1, 0, 2, 3])
                .unbind();
            match parts.try_into() {
                Ok(parts) => parts,
                Err(_) => return x.clone(),
            }
        };
        let [rotated_q, rotated_k] = rope::rotated_rows([&q, &k], &self.tables);
        drop((q, k));
        let lengths = x.constant("sub", &[self.pieces.len() as u64], DType::I32);
        let all = [rotated_q, rotated_k, v];
        let (mut out, parts) = self.attended(cx, &all);
        out = out.reshape(&[rows, hidden]).contiguous();
        out = cx.linear(output, &out, hidden, self.biased());
        drop((lengths, all, parts));
        out
    }

    /// Queries, keys and values `[N, H, D]`, each part by itself: `[1, N, H, D]`, and what was joined to that.
    fn attended(&self, cx: &Cx, all: &[Tensor; 3]) -> (Tensor, Vec<Tensor>) {
        let form = Eager { in_fp32: true };
        let run =
            |[q, k, v]: [&Tensor; 3]| attend(cx, [q, k, v], &AttentionMask::None, 0.0, form).0;
        let [whole, ..] = all;
        let [rows, heads, d] = [0, 1, 2].map(|at| whole.size(at));
        let first = self.pieces.first().copied().unwrap_or(rows).max(1);
        // Flash attention takes the bounds instead.
        let flash = cx.env.training.attention == Attention::Flash2;
        if flash || self.pieces.len() > MOST_PIECES {
            let piece = if !flash && rows.is_multiple_of(first) {
                first
            } else {
                rows
            };
            let batch = [rows / piece.max(1), piece, heads, d];
            let [q, k, v] = all.each_ref().map(|t| t.view(&batch).transpose(1, 2));
            return (run([&q, &k, &v]), Vec::new());
        }
        let [q, k, v] = all
            .each_ref()
            .map(|t| t.transpose(0, 1).unsqueeze(0).split(&self.pieces, 2));
        let parts = q.iter().zip(&k).zip(&v);
        let parts: Vec<Tensor> = parts.map(|((q, k), v)| run([q, k, v])).collect();
        let joined = match parts.split_first() {
            Some((first, rest)) => {
                let rest: Vec<&Tensor> = rest.iter().collect();
                Tensor::cat(first, &rest, 1)
            }
            None => whole.clone(),
        };
        (joined, parts)
    }
}
