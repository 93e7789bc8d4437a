//! Whisper's encoder as the tower of a language model: windows of one length, however much of it is sound
//! (`Qwen2AudioEncoder`, `VoxtralEncoder`).

use super::layer::Layer;
use crate::nets::{Cx, ModelError, Sizes};
use crate::tape::ops::{AttentionMask, Conv};
use crate::tape::{DType, Tensor};

#[derive(Clone, Copy, Debug)]
pub(super) struct Tower {
    layers: u64,
    layer: Layer,
    mel: u64,
    /// Places of a window (`max_source_positions`), each of two frames.
    places: u64,
    /// Pairs of places are averaged behind the layers (Qwen2-Audio).
    pooled: bool,
}

impl Tower {
    pub(super) fn new(sizes: &Sizes, pooled: bool) -> Result<Self, ModelError> {
        Ok(Self {
            layers: sizes.need("a_layers")?,
            layer: Layer::new(sizes, false)?,
            mel: sizes.or("mel", 128),
            places: sizes.or("audio_ctx", 1500).max(2),
            pooled,
        })
    }

    /// Frames of a window.
    pub(super) fn frames(&self) -> u64 {
        2 * self.places
    }

    pub(super) fn places(&self) -> u64 {
        self.places
    }

    /// The width of its layers' MLP, in rows of which Voxtral reads what the tower returns.
    pub(super) fn ffn(&self) -> u64 {
        self.layer.ffn
    }

    pub(super) fn features(&self, cx: &Cx, windows: u64) -> Tensor {
        let shape = [windows, self.mel, self.frames()];
        cx.tape.empty("input_features", shape, cx.env.weights)
    }

    /// The last hidden states of windows `[B, mel, frames]`.
    pub(super) fn hear(&self, cx: &Cx, features: &Tensor, mask: &AttentionMask) -> Tensor {
        let hidden = self.layer.hidden;
        let conv = |stride| Conv::stride(stride).padded(1);
        let mut embedded = cx
            .convolution("conv1", features, hidden, &[3], conv(1), true)
            .pipe(|x| cx.asks_for_gradient(x.clone()))
            .pipe(Tensor::gelu);
        embedded = cx
            .convolution("conv2", &embedded, hidden, &[3], conv(2), true)
            .pipe(Tensor::gelu);
        embedded = embedded.permute(&[0, 2, 1]);
        let places = cx.module("embed_positions", |cx| {
            let shape = [self.places, hidden];
            cx.param_as("weight", shape, cx.env.weights, |_| false)
                .tensor()
        });
        let first = embedded.add(&places);
        let (layer, mask) = (self.layer, mask.clone());
        let mut last = cx.equal_stack("layers", self.layers, first, move |cx, hidden| {
            layer.run(cx, hidden, |cx, x| layer.over_windows(cx, x, &mask))
        });
        if self.pooled {
            last = last
                .permute(&[0, 2, 1])
                .unsqueeze(2)
                .avg_pool2d_to(1, self.places / 2)
                .squeeze(2)
                .permute(&[0, 2, 1]);
        }
        let normed = cx.layer_norm("layer_norm", &last);
        drop((embedded, places));
        normed
    }
}

/// `feature_attention_mask`: which frames are sound.
pub(super) fn frame_mask(cx: &Cx, windows: u64, frames: u64) -> Tensor {
    cx.tape
        .empty("feature_attention_mask", [windows, frames], DType::I64)
}
