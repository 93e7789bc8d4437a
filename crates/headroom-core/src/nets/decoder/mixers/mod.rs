//! What mixes tokens in layers without attention, as the libraries write it in plain PyTorch: without the kernels of separate
//! packages (causal-conv1d, mamba-ssm, flash-linear-attention).

mod delta;
mod kda;
mod mamba2;
mod short_conv;

pub(super) use delta::GatedDelta;
pub(super) use kda::KimiDelta;
pub(super) use mamba2::Mamba2;

use super::super::Cx;
use super::family::Placement;
use super::{Decoder, LayerInputs};
use crate::nets::Sizes;
use crate::nets::mamba::Mamba;
use crate::tape::Tensor;
use crate::tape::ops::Conv;

/// The widths of mixers, as configurations name them.
#[derive(Clone, Copy, Debug)]
pub(super) struct MixerSizes {
    pub delta: GatedDelta,
    pub kimi: KimiDelta,
    pub mamba: Mamba2,
    /// Mamba as Jamba has it.
    pub first_mamba: Mamba,
    /// `conv_L_cache` of LFM2.
    pub short_kernel: u64,
    pub short_bias: bool,
}

impl MixerSizes {
    pub(super) fn of(sizes: &Sizes) -> Self {
        Self {
            delta: GatedDelta::of(sizes),
            kimi: KimiDelta::of(sizes),
            mamba: Mamba2::of(sizes),
            first_mamba: Mamba::of_jamba(sizes),
            short_kernel: sizes.or("conv", 3).max(1),
            short_bias: sizes.is_set("conv_bias"),
        }
    }
}

/// What layers have in place of attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mixer {
    /// The gated delta rule (Qwen3.5, Qwen3-Next).
    GatedDelta,
    /// The delta rule with a decay for each channel (Kimi Linear).
    KimiDelta,
    /// Mamba (Jamba).
    Mamba,
    /// Mamba 2 (Granite 4).
    Mamba2,
    /// A short gated convolution (LFM2).
    ShortConv,
    /// No mixing: an MLP by itself (Nemotron-H).
    Mlp,
    /// A mixture of experts by itself.
    Experts,
}

impl Decoder {
    /// The output of a layer's mixer.
    pub(super) fn mix(&self, cx: &Cx, mixer: Mixer, x: &Tensor, inputs: &LayerInputs) -> Tensor {
        let padding = inputs.padding.as_ref();
        let name = match mixer {
            _ if self.family.norms.placement == Placement::Single => self.family.names.attention,
            Mixer::GatedDelta => "linear_attn",
            Mixer::KimiDelta => self.family.names.attention,
            Mixer::Mamba | Mixer::Mamba2 => "mamba",
            Mixer::ShortConv => "conv",
            Mixer::Mlp | Mixer::Experts => "mlp",
        };
        cx.module(name, |cx| match mixer {
            Mixer::GatedDelta => self.gated_delta(cx, x, padding),
            Mixer::KimiDelta => self.kimi_delta(cx, x, padding),
            Mixer::Mamba => self.mixers.first_mamba.mixer(cx, x),
            Mixer::Mamba2 => self.mamba2(cx, x, padding),
            Mixer::ShortConv => self.short_conv(cx, x, padding),
            Mixer::Mlp => self.plain_mlp(cx, x, self.intermediate),
            Mixer::Experts => match self.family.mlp.experts {
                Some(experts) => self.sparse_moe(cx, x, experts),
                None => x.clone(),
            },
        })
    }
}

/// `apply_mask_to_padding_states`.
fn without_padding(x: &Tensor, padding: Option<&Tensor>) -> Tensor {
    match padding {
        Some(padding) => x
            .mul(&padding.unsqueeze(-1))
            .pipe(|masked| masked.to(x.dtype())),
        None => x.clone(),
    }
}

/// `causal_conv1d_fn` over `[B, C, S]`: a depthwise convolution, cut to the sequence. Its weight comes as a view, of which
/// autocast keeps no copy.
fn causal_conv(
    cx: &Cx,
    name: &'static str,
    x: &Tensor,
    kernel: u64,
    bias: bool,
    silu: bool,
) -> Tensor {
    let (width, steps) = (x.size(1), x.size(2));
    cx.module(name, |cx| {
        let weight = cx.param("weight", [width, 1, kernel]).tensor();
        let bias = bias.then(|| cx.param("bias", [width]).tensor());
        let weight = weight.squeeze(1).unsqueeze(1);
        let conv = Conv {
            padding: kernel - 1,
            groups: width,
            ..Conv::default()
        };
        let mut out = x
            .to(weight.dtype())
            .pipe(|x| x.convolution(&weight, bias.as_ref(), conv))
            .narrow(2, steps);
        if silu {
            out = out.silu();
        }
        out.to(x.dtype())
    })
}

#[cfg(test)]
mod tests;
