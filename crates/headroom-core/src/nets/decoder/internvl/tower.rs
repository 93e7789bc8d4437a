//! `InternVLVisionModel`: a ViT whose sublayers are scaled by learned vectors.

use crate::nets::attention::{Eager, attend, heads};
use crate::nets::{Cx, ModelError, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::{AttentionMask, Conv};

#[derive(Clone, Copy, Debug)]
pub(super) struct Tower {
    hidden: u64,
    layers: u64,
    heads: u64,
    ffn: u64,
    /// The side of a tile in pixels.
    pub image: u64,
    patch: u64,
    /// Norms of queries and keys: the tower of 6 billion parameters.
    normed: bool,
    /// All norms are RMS norms, as in that tower.
    rms: bool,
    /// Queries, keys and values have biases.
    biased: bool,
}

impl Tower {
    pub(super) fn new(sizes: &Sizes) -> Result<Self, ModelError> {
        let hidden = sizes.need("v_hidden")?;
        let normed = sizes.is_set("v_qk_norm");
        Ok(Self {
            hidden,
            layers: sizes.need("v_layers")?,
            heads: sizes.need("v_heads")?.max(1),
            ffn: sizes.or("v_ffn", 4 * hidden),
            image: sizes.or("img", 448),
            patch: sizes.need("patch")?.max(1),
            normed,
            rms: normed && !sizes.is_set("v_layer_norms"),
            biased: sizes.or("v_qkv_bias", u64::from(!normed)) != 0,
        })
    }

    pub(super) fn states(&self, cx: &Cx, pixels: &Tensor) -> Tensor {
        let embedded = cx.module("embeddings", |cx| self.embeddings(cx, pixels));
        let tower = *self;
        let layer = move |cx: &Cx, x: &Tensor| tower.layer(cx, x);
        cx.module("encoder", |cx| {
            cx.equal_stack("layer", self.layers, embedded, layer)
        })
    }

    fn embeddings(&self, cx: &Cx, pixels: &Tensor) -> Tensor {
        let (n, hidden) = (pixels.size(0), self.hidden);
        let class = cx.param("cls_token", [1, 1, hidden]).tensor();
        let patches = cx.module("patch_embeddings", |cx| {
            let conv = Conv::stride(self.patch);
            let grid = cx.conv2d("projection", pixels, hidden, self.patch, conv, true);
            let count = grid.size(2) * grid.size(3);
            grid.reshape(&[n, hidden, count]).transpose(1, 2)
        });
        let patches = cx.asks_for_gradient(patches);
        let embedded = Tensor::cat(&class.expand(&[n, 1, hidden]), &[&patches], 1);
        let places = [1, embedded.size(1), hidden];
        let positions = cx.param("position_embeddings", places).tensor();
        embedded.add(&positions)
    }

    fn norm(&self, cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
        if self.rms {
            cx.rms_norm(name, x)
        } else {
            cx.layer_norm(name, x)
        }
    }

    fn layer(&self, cx: &Cx, input: &Tensor) -> Tensor {
        let scaled = |name, x: &Tensor| cx.param(name, [self.hidden]).tensor().mul(x);
        let normed = self.norm(cx, "layernorm_before", input);
        let mut attended = cx.module("attention", |cx| {
            normed.pipe(|normed| self.attention(cx, normed))
        });
        attended = scaled("lambda_1", &attended);
        let hidden = attended.add(input);
        let mut output = self.norm(cx, "layernorm_after", &hidden);
        output = cx.module("mlp", |cx| {
            let inner = cx.linear("fc1", &output, self.ffn, true).pipe(Tensor::gelu);
            cx.linear("fc2", &inner, self.hidden, true)
        });
        output = scaled("lambda_2", &output);
        output.add(&hidden)
    }

    fn attention(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let project = |name| cx.linear(name, x, self.hidden, self.biased);
        let [mut q, mut k, v] = ["q_proj", "k_proj", "v_proj"].map(project);
        if self.normed {
            q = cx.rms_norm("q_norm", &q);
            k = cx.rms_norm("k_norm", &k);
        }
        let [q, k, v] = [q, k, v].map(|rows| heads(&rows, self.heads));
        let form = Eager { in_fp32: false };
        let (mut out, _) = attend(cx, [&q, &k, &v], &AttentionMask::None, 0.0, form);
        out = out.reshape(&[x.size(0), x.size(1), self.hidden]);
        cx.linear("projection_layer", &out, self.hidden, true)
    }
}
