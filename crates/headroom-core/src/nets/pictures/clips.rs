//! Clips as models of videos read them: frames of square pictures and one label each.

use crate::nets::{Cx, ModelError, Sizes};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
pub(super) struct Clips {
    pub(super) frames: u64,
    pub(super) side: u64,
    /// Frames and pixels along the sides of a patch.
    pub(super) tubelet: u64,
    pub(super) patch: u64,
}

impl Clips {
    /// By sizes, else so many frames of pictures of such a side.
    pub(super) fn of(sizes: &Sizes, [frames, side]: [u64; 2]) -> Result<Self, ModelError> {
        let clips = Self {
            frames: sizes.or("frames", frames),
            side: sizes.or("img", side),
            tubelet: sizes.or("tubelet", 2).max(1),
            patch: sizes.or("patch", 16).max(1),
        };
        for (name, value, of) in [
            ("frames", clips.frames, clips.tubelet),
            ("img", clips.side, clips.patch),
        ] {
            if value == 0 || !value.is_multiple_of(of) {
                return Err(ModelError::NoMultiple { name, value, of });
            }
        }
        Ok(clips)
    }

    pub(super) fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let shape = [data.micro_batch, self.frames, 3, self.side, self.side];
        vec![
            cx.tape.empty("pixel_values", shape, cx.env.weights),
            cx.tape.empty("labels", [data.micro_batch], DType::I64),
        ]
    }
}

/// Clips as sequences of patches `[B, N, C]`.
pub(super) fn patches_of(
    cx: &Cx,
    name: &'static str,
    clips: &Tensor,
    width: u64,
    form: Clips,
) -> Tensor {
    let channels_first = clips.permute(&[0, 2, 1, 3, 4]);
    let patch = [form.tubelet, form.patch, form.patch];
    let grid = cx.patch_convolution(name, &channels_first, width, &patch, true);
    let count = grid.size(2) * grid.size(3) * grid.size(4);
    grid.reshape(&[grid.size(0), width, count]).transpose(1, 2)
}
