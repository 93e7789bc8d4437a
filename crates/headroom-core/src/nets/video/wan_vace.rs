//! VACE: blocks like Wan's that read a control video, whose hints are added behind some of the others
//! (diffusers/models/transformers/transformer_wan_vace.py).

use super::wan::Wan;
use crate::nets::diffusion::blocks;
use crate::nets::{Cx, Sizes};
use crate::tape::Tensor;

#[derive(Clone, Copy, Debug)]
pub(super) struct Control {
    /// Channels of the control video's latents and masks.
    pub(super) channels: u64,
    /// A hint is added behind each block whose number is a multiple of it.
    every: u64,
}

/// What all blocks are given: what is attended to, six parts of the time step, and positions.
#[derive(Clone)]
pub(super) struct Given {
    pub(super) context: Tensor,
    pub(super) parts: Tensor,
    pub(super) rotary: [Tensor; 2],
}

impl Control {
    pub(super) fn of(sizes: &Sizes) -> Option<Self> {
        let every = sizes.get("vace_every").filter(|every| *every > 0)?;
        Some(Self {
            channels: sizes.or("vace_channels", 96),
            every,
        })
    }

    /// The control video as rows of patches, with none to pad them.
    pub(super) fn patches(cx: &Cx, video: &Tensor, width: u64) -> Tensor {
        let grid = cx.patch_convolution("vace_patch_embedding", video, width, &[1, 2, 2], true);
        let count = grid.size(2) * grid.size(3) * grid.size(4);
        let rows = grid.reshape(&[grid.size(0), width, count]).transpose(1, 2);
        let none = rows.constant("new_zeros", &[rows.size(0), 0, width], rows.dtype());
        Tensor::cat(&rows, &[&none], 1)
    }

    /// The control's blocks, then all others.
    pub(super) fn run(
        self,
        cx: &Cx,
        wan: Wan,
        [hidden, control]: [Tensor; 2],
        given: Given,
    ) -> Tensor {
        let count = wan.layers.div_ceil(self.every);
        let scales = hidden.constant("new_ones", &[count], hidden.dtype());
        let mut control = control;
        let mut hints = Vec::new();
        let outer = blocks(cx);
        for i in 0..count as usize {
            if cx.tape.is_over_budget() {
                break;
            }
            let (given, first) = (given.clone(), i == 0);
            let state = vec![hidden.clone(), control.clone()];
            let out = outer.layer("vace_blocks", i, state, move |cx, state| match state {
                [hidden, control] => {
                    let mut control = control.clone();
                    if first {
                        let projected = cx.linear("proj_in", &control, wan.width(), true);
                        control = projected.add(hidden);
                    }
                    let made = wan.block(cx, &control, &given);
                    let hint = cx.linear("proj_out", &made, wan.width(), true);
                    vec![hint, made]
                }
                _ => Vec::new(),
            });
            let Ok([hint, made]) = <[Tensor; 2]>::try_from(out) else {
                break;
            };
            control = made;
            hints.push(hint);
        }
        let mut hidden = hidden;
        let mut hints = hints.into_iter();
        for i in 0..wan.layers as usize {
            if cx.tape.is_over_budget() {
                break;
            }
            let given = given.clone();
            let own = outer.of_block(i as u64, wan.layers);
            let out = own.layer("blocks", i, vec![hidden.clone()], move |cx, state| {
                state.iter().map(|x| wan.block(cx, x, &given)).collect()
            });
            hidden = out.into_iter().next().unwrap_or(hidden.clone());
            if (i as u64).is_multiple_of(self.every)
                && let Some(hint) = hints.next()
            {
                let scale = scales.narrow(0, 1).view(&[]);
                let scaled = hint.mul(&scale);
                drop(hint);
                hidden = hidden.add(&scaled);
            }
        }
        hidden
    }
}
