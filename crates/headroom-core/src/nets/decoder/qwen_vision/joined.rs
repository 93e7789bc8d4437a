//! What the tower of GLM-4.1V has of its own: a table of places that is sampled for each patch, and a convolution that joins
//! squares of patches (`Glm4vVisionModel`).

use super::VisionTransformer;
use crate::nets::Cx;
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};

impl VisionTransformer {
    /// `Glm4vVisionEmbeddings.forward`: the table is sampled in fp32 at the place of each patch.
    pub(super) fn sampled(&self, cx: &Cx, hidden: &Tensor, rows: u64, images: u64) -> Tensor {
        let count = hidden.size(0);
        let numbers = |op, dtype| hidden.constant(op, &[count], dtype);
        let side = rows.isqrt();
        let table = cx.module("embeddings", |cx| {
            cx.module("position_embedding", |cx| {
                cx.param("weight", [rows, self.hidden]).tensor()
            })
        });
        let plane = table
            .narrow(0, side * side)
            .view(&[side, side, self.hidden])
            .permute(&[2, 0, 1])
            .unsqueeze(0)
            .to(DType::F32);
        let order = numbers("arange", DType::I64);
        let picture = {
            let later = hidden.constant("ge", &[images, count], DType::Bool);
            let sum = numbers("sum", DType::I64);
            drop(later);
            sum
        };
        let sides = [(); 2].map(|()| {
            let whole = numbers("index", DType::I64);
            let wide = numbers("to", DType::F32);
            drop(whole);
            wide
        });
        let places = [(); 2].map(|()| numbers("sub", DType::F32));
        let grid = hidden.constant("stack", &[count, 2], DType::F32);
        let sampled = plane.grid_sample(&grid.view(&[1, count, 1, 2]));
        let rows = sampled.squeeze(0).squeeze(-1).permute(&[1, 0]);
        let narrow = rows.to(table.dtype());
        let sum = hidden.add(&narrow);
        drop((order, picture, sides, places, sampled, rows, narrow));
        sum
    }

    /// The norm behind the layers, and the convolution over squares: a row for each.
    pub(super) fn joined(&self, cx: &Cx, states: &Tensor) -> Tensor {
        let merge = self.merge;
        let mut hidden = cx.rms_norm("post_layernorm", states);
        let squares = hidden.size(0) / (merge * merge).max(1);
        hidden = hidden
            .view(&[squares, merge, merge, self.hidden])
            .permute(&[0, 3, 1, 2]);
        let size = Conv::stride(merge);
        let joined = cx.conv2d("downsample", &hidden, self.out, merge, size, true);
        joined.view(&[squares, self.out])
    }

    /// `Glm4vVisionPatchMerger.forward`.
    pub(super) fn merged_gated(&self, cx: &Cx, x: &Tensor, context: u64) -> Tensor {
        let mut hidden = cx.linear("proj", x, self.out, false);
        hidden = cx
            .layer_norm("post_projection_norm", &hidden)
            .pipe(Tensor::gelu);
        let product = {
            let gate = cx
                .linear("gate_proj", &hidden, context, false)
                .pipe(Tensor::silu);
            let up = cx.linear("up_proj", &hidden, context, false);
            gate.mul(&up)
        };
        cx.linear("down_proj", &product, self.out, false)
    }
}
