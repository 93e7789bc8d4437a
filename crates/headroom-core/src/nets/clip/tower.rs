//! The transformer of CLIP's and SigLIP's encoders (`CLIPEncoder`): a stack of layers with their norms first.

use crate::nets::attention::{Eager, attend, heads};
use crate::nets::{Cx, ModelError, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::AttentionMask;

/// The width, layers and activation of one encoder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tower {
    pub layers: u64,
    pub hidden: u64,
    pub heads: u64,
    pub ffn: u64,
    /// `quick_gelu` of OpenAI's models; those of LAION and SigLIP use `gelu`.
    pub quick_gelu: bool,
}

impl Tower {
    /// The sizes under these names: width, layers, heads and feed-forward.
    pub(crate) fn new(sizes: &Sizes, names: [&str; 4]) -> Result<Self, ModelError> {
        let [hidden, layers, heads, ffn] = names;
        let hidden = sizes.need(hidden)?;
        Ok(Self {
            layers: sizes.need(layers)?,
            hidden,
            heads: sizes.need(heads)?.max(1),
            ffn: sizes.or(ffn, 4 * hidden),
            quick_gelu: !sizes.is_set("gelu"),
        })
    }

    /// The sizes of the image's encoder where a model has two.
    pub(crate) fn of_images(sizes: &Sizes) -> Result<Self, ModelError> {
        Self::new(sizes, ["v_hidden", "v_layers", "v_heads", "v_ffn"])
    }

    /// The sizes of the text's encoder where a model has two.
    pub(crate) fn of_texts(sizes: &Sizes) -> Result<Self, ModelError> {
        Self::new(sizes, ["t_hidden", "t_layers", "t_heads", "t_ffn"])
    }

    /// `CLIPEncoder.forward`.
    pub(crate) fn encode(self, cx: &Cx, input: &Tensor, mask: &AttentionMask) -> Tensor {
        let mask = mask.clone();
        cx.module("encoder", |cx| {
            let layers = self.layers;
            cx.equal_stack("layers", layers, input.clone(), move |cx, hidden| {
                self.layer(cx, hidden, &mask)
            })
        })
    }

    /// `CLIPEncoderLayer.forward`.
    pub(crate) fn layer(self, cx: &Cx, input: &Tensor, mask: &AttentionMask) -> Tensor {
        // The constructor makes each norm after what follows it, and queries after keys and values.
        let start = cx.tape.construction_point();
        let mut hidden = cx.layer_norm("layer_norm1", input);
        let normed = cx.tape.construction_point();
        let (attended, _weights) = cx.module("self_attn", |cx| self.attention(cx, &hidden, mask));
        cx.tape.construct_here(start, normed);
        hidden = attended;
        hidden = input.add(&hidden);
        let residual = hidden.clone();
        let start = cx.tape.construction_point();
        hidden = cx.layer_norm("layer_norm2", &hidden);
        let normed = cx.tape.construction_point();
        hidden = cx.module("mlp", |cx| {
            let mut x = cx.linear("fc1", &hidden, self.ffn, true);
            x = if self.quick_gelu {
                quick_gelu(&x)
            } else {
                x.gelu()
            };
            cx.linear("fc2", &x, self.hidden, true)
        });
        cx.tape.construct_here(start, normed);
        residual.add(&hidden)
    }

    fn attention(self, cx: &Cx, x: &Tensor, mask: &AttentionMask) -> (Tensor, Option<Tensor>) {
        let project = |name| cx.linear(name, x, self.hidden, true);
        let start = cx.tape.construction_point();
        let q = project("q_proj");
        let made = cx.tape.construction_point();
        let (k, v) = (project("k_proj"), project("v_proj"));
        cx.tape.construct_here(start, made);
        let [q, k, v] = [q, k, v].map(|rows| heads(&rows, self.heads));
        let eager = Eager { in_fp32: true };
        let (mut out, weights) = attend(cx, [&q, &k, &v], mask, 0.0, eager);
        out = out.reshape(&[x.size(0), x.size(1), self.hidden]);
        (cx.linear("out_proj", &out, self.hidden, true), weights)
    }
}

/// `QuickGELUActivation`: `x * sigmoid(1.702 x)`.
pub(crate) fn quick_gelu(x: &Tensor) -> Tensor {
    let gate = x.mul_scalar().pipe(Tensor::sigmoid);
    x.mul(&gate)
}
