//! The stages of the U-Net (diffusers/models/unets/unet_2d_blocks.py) and `ResnetBlock2D`.

use super::attention::{Transformer, self_attention, transformer};
use super::layers::GROUPS;
use crate::nets::vision::index_name;
use crate::nets::{Cx, Region};
use crate::tape::Tensor;
use crate::tape::ops::Conv;

/// One stage of the U-Net: residual blocks at one width, with attention after each in some stages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stage {
    pub width: u64,
    pub attention: Option<Transformer>,
    /// Padding of the convolution that halves the image; with 0, one row and one column are padded before it.
    pub padding: u64,
}

impl Stage {
    /// `CrossAttnDownBlock2D`, `AttnDownBlock2D` or `DownBlock2D`.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn down(
        self,
        cx: &Cx,
        hidden: &Tensor,
        embedding: &Tensor,
        context: Option<&Tensor>,
        layers: u64,
        downsample: bool,
        skips: &mut Vec<Tensor>,
    ) -> Tensor {
        let mut hidden = hidden.clone();
        for i in 0..layers as usize {
            hidden = self.resnet(cx, i, &hidden, embedding);
            hidden = self.attend(cx, i, &hidden, context);
            skips.push(hidden.clone());
        }
        if downsample {
            hidden = cx.module("downsamplers", |cx| {
                cx.module("0", |cx| {
                    let conv = Conv::stride(2).padded(self.padding);
                    if self.padding == 0 {
                        let [n, c, h, w] = [0, 1, 2, 3].map(|i| hidden.size(i));
                        hidden = hidden.pad_to(&[n, c, h + 1, w + 1]);
                    }
                    cx.conv2d("conv", &hidden, self.width, 3, conv, true)
                })
            });
            skips.push(hidden.clone());
        }
        hidden
    }

    /// `UNetMidBlock2DCrossAttn` or `UNetMidBlock2D`; its first residual block is never checkpointed.
    pub(crate) fn middle(
        self,
        cx: &Cx,
        hidden: &Tensor,
        embedding: &Tensor,
        context: Option<&Tensor>,
    ) -> Tensor {
        let mut hidden = cx.module("resnets", |cx| {
            cx.module("0", |cx| {
                residual_block(cx, hidden, Some(embedding), self.width)
            })
        });
        hidden = self.attend(cx, 0, &hidden, context);
        self.resnet(cx, 1, &hidden, embedding)
    }

    /// `CrossAttnUpBlock2D`, `AttnUpBlock2D` or `UpBlock2D`.
    pub(crate) fn up(
        self,
        cx: &Cx,
        hidden: &Tensor,
        embedding: &Tensor,
        context: Option<&Tensor>,
        skips: &[Tensor],
        upsample: Option<[u64; 2]>,
    ) -> Tensor {
        let mut hidden = hidden.clone();
        for (i, skip) in skips.iter().rev().enumerate() {
            hidden = Tensor::cat(&hidden, &[skip], 1);
            hidden = self.resnet(cx, i, &hidden, embedding);
            hidden = self.attend(cx, i, &hidden, context);
        }
        if let Some([height, width]) = upsample {
            hidden = cx.module("upsamplers", |cx| {
                cx.module("0", |cx| {
                    let wide = hidden.interpolate(height, width);
                    cx.conv2d(
                        "conv",
                        &wide,
                        self.width,
                        3,
                        Conv::stride(1).padded(1),
                        true,
                    )
                })
            });
        }
        hidden
    }

    fn attend(self, cx: &Cx, i: usize, hidden: &Tensor, context: Option<&Tensor>) -> Tensor {
        let Some(attention) = self.attention else {
            return hidden.clone();
        };
        cx.module("attentions", |cx| {
            cx.module(index_name(i), |cx| match context {
                Some(context) => transformer(cx, hidden, context, attention),
                None => self_attention(cx, hidden, attention.heads),
            })
        })
    }

    fn resnet(self, cx: &Cx, i: usize, hidden: &Tensor, embedding: &Tensor) -> Tensor {
        let width = self.width;
        cx.module("resnets", |cx| {
            cx.module(index_name(i), |cx| {
                let inputs = vec![hidden.clone(), embedding.clone()];
                let outputs = cx.block(Region::Convolutions, inputs, move |cx, inputs| {
                    let [hidden, embedding] = &inputs[..] else {
                        return Vec::new();
                    };
                    vec![residual_block(cx, hidden, Some(embedding), width)]
                });
                outputs.into_iter().next().unwrap_or_else(|| hidden.clone())
            })
        })
    }
}

/// `ResnetBlock2D`, with an embedding of the time step or without.
pub(crate) fn residual_block(
    cx: &Cx,
    input: &Tensor,
    embedding: Option<&Tensor>,
    width: u64,
) -> Tensor {
    let conv = Conv::stride(1).padded(1);
    let mut hidden = cx.group_norm("norm1", input, GROUPS);
    hidden = hidden.silu();
    hidden = cx.conv2d("conv1", &hidden, width, 3, conv, true);
    // `temb` lives to the end.
    let shift = embedding.map(|embedding| {
        let mut shift = embedding.silu();
        shift = cx.linear("time_emb_proj", &shift, width, true);
        shift.unsqueeze(-1).unsqueeze(-1)
    });
    if let Some(shift) = &shift {
        hidden = hidden.add(shift);
    }
    hidden = cx.group_norm("norm2", &hidden, GROUPS);
    hidden = hidden.silu();
    hidden = cx.conv2d("conv2", &hidden, width, 3, conv, true);
    let mut input = input.clone();
    if input.size(1) != width {
        input = input.contiguous();
        input = cx.conv2d("conv_shortcut", &input, width, 1, Conv::default(), true);
    }
    input.add(&hidden).pipe(Tensor::mul_scalar)
}
