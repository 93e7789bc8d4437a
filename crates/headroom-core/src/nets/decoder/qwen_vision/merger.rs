//! What makes tokens of squares of patches.

use super::{Kind, VisionTransformer};
use crate::nets::Cx;
use crate::tape::Tensor;

impl VisionTransformer {
    /// `PatchMerger`: squares of patches become tokens.
    pub(super) fn merged(&self, cx: &Cx, x: &Tensor) -> Tensor {
        match self.kind {
            Kind::Stacked { .. } => return self.merged_stacked(cx, x, false),
            Kind::Joined { context, .. } => return self.merged_gated(cx, x, context),
            Kind::Plain | Kind::Windowed { .. } | Kind::ByPicture { .. } => {}
        }
        let squares = self
            .norm(cx, "ln_q", x)
            .pipe(|normed| normed.view(&self.squares(x)));
        cx.module("mlp", |cx| {
            let mut hidden = cx.linear("0", &squares, self.square_width(), true);
            hidden = hidden.gelu();
            cx.linear("2", &hidden, self.out, true)
        })
    }

    /// `Qwen3VLVisionPatchMerger`: its norm is over patches, or over squares where it merges states of a layer before the last.
    pub(super) fn merged_stacked(&self, cx: &Cx, x: &Tensor, over_squares: bool) -> Tensor {
        let shape = self.squares(x);
        let squares = if over_squares {
            cx.layer_norm("norm", &x.view(&shape))
        } else {
            cx.layer_norm("norm", x).pipe(|normed| normed.view(&shape))
        };
        let mut hidden = cx.linear("linear_fc1", &squares, self.square_width(), true);
        drop(squares);
        hidden = hidden.gelu();
        cx.linear("linear_fc2", &hidden, self.out, true)
    }

    fn square_width(&self) -> u64 {
        self.hidden * self.merge * self.merge
    }

    fn squares(&self, x: &Tensor) -> [u64; 2] {
        let width = self.square_width();
        [x.numel() / width.max(1), width]
    }
}
