//! What the tower of PaddleOCR-VL has of its own: SigLIP's layers with rotation, and a projector that takes picture by picture
//! (`PaddleOCRVisionTransformer`, `PaddleOCRProjector`).

use super::{Batch, MOST_PIECES, VisionTransformer};
use crate::nets::Cx;
use crate::tape::Tensor;
use crate::tape::ops::Conv;

impl VisionTransformer {
    /// A row for each patch, of pictures as they are.
    pub(super) fn flat_patches(&self, cx: &Cx, pixels: &Tensor) -> Tensor {
        let rows = pixels.size(0);
        let planes = pixels.view(&[rows, 3, self.patch, self.patch]);
        let size = Conv::stride(self.patch);
        let found = cx.conv2d(
            "patch_embedding",
            &planes,
            self.hidden,
            self.patch,
            size,
            true,
        );
        found.view(&[rows, self.hidden])
    }

    /// The norm, squares of patches and an MLP for each picture, joined.
    pub(super) fn merged_by_picture(&self, cx: &Cx, x: &Tensor, grids: &Batch) -> Tensor {
        let wide = self.hidden * self.merge * self.merge;
        let project = |rows: &Tensor, [height, width]: [u64; 2]| {
            let (down, across) = (height / self.merge, width / self.merge);
            let normed = cx.layer_norm("pre_norm", rows);
            let shape = [down, self.merge, across, self.merge, self.hidden];
            let mut squares = normed.view(&shape).transpose(1, 2);
            drop(normed);
            squares = squares.reshape(&[down * across, wide]);
            let mut hidden = cx.linear("linear_1", &squares, wide, true);
            hidden = hidden.gelu();
            cx.linear("linear_2", &hidden, self.out, true)
        };
        if grids.count() > MOST_PIECES as u64 {
            // As many pictures as may be, as one of their height.
            return project(x, [self.merge, x.size(0) / self.merge]);
        }
        let sizes: Vec<u64> = grids.iter().map(|[height, width]| height * width).collect();
        let rows = x.split(&sizes, 0);
        let pictures = rows.iter().zip(grids.iter());
        let parts: Vec<Tensor> = pictures.map(|(rows, grid)| project(rows, grid)).collect();
        let rest: Vec<&Tensor> = parts.iter().skip(1).collect();
        match parts.first() {
            // `torch.cat` of one tensor copies it too.
            Some(first) if rest.is_empty() => first.cat_list(),
            Some(first) => Tensor::cat(first, &rest, 0),
            None => project(x, [self.merge; 2]),
        }
    }
}
