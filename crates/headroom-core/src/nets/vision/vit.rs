//! Vision transformers of torchvision (models/vision_transformer.py) and timm (models/vision_transformer.py).

use super::{ImageModel, classifier};
use crate::nets::vit::patches;
use crate::nets::{Cx, ModelError, Net, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::AttentionMask;

/// The sizes that a library's name of a model stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VitConfig {
    hidden: u64,
    layers: u64,
    heads: u64,
    patch: u64,
}

impl VitConfig {
    pub(crate) const TINY: Self = Self::new(192, 12, 3);
    pub(crate) const SMALL: Self = Self::new(384, 12, 6);
    pub(crate) const BASE: Self = Self::new(768, 12, 12);
    pub(crate) const LARGE: Self = Self::new(1024, 24, 16);
    pub(crate) const HUGE: Self = Self::new(1280, 32, 16);

    const fn new(hidden: u64, layers: u64, heads: u64) -> Self {
        Self {
            hidden,
            layers,
            heads,
            patch: 16,
        }
    }

    pub(crate) const fn patch(self, patch: u64) -> Self {
        Self { patch, ..self }
    }
}

#[derive(Clone, Copy, Debug)]
struct VisionTransformer {
    timm: bool,
    config: VitConfig,
    ffn: u64,
    /// `LayerScale` after attention and feed-forward.
    layer_scale: bool,
    /// The feed-forward is SwiGLU, with gate and value in one projection.
    swiglu: bool,
}

pub(crate) fn torchvision(sizes: &Sizes, config: VitConfig) -> Box<dyn Net> {
    of_library(sizes, config, false)
}

pub(crate) fn timm(sizes: &Sizes, config: VitConfig) -> Box<dyn Net> {
    of_library(sizes, config, true)
}

/// DINOv2 as timm has it: with `LayerScale`, and a head only where there are classes.
pub(crate) fn dinov2(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("hidden")?;
    let config = VitConfig {
        hidden,
        layers: sizes.need("layers")?,
        heads: sizes.need("heads")?.max(1),
        patch: sizes.or("patch", 14).max(1),
    };
    let net = VisionTransformer {
        timm: true,
        config,
        ffn: sizes.or("ffn", 4 * hidden),
        layer_scale: sizes.or("layer_scale", 1) != 0,
        swiglu: sizes.is_set("swiglu"),
    };
    Ok(classifier(sizes, net))
}

fn of_library(sizes: &Sizes, config: VitConfig, timm: bool) -> Box<dyn Net> {
    // The library's name fixes the sizes.
    let ffn = 4 * config.hidden;
    classifier(
        sizes,
        VisionTransformer {
            timm,
            config,
            ffn,
            layer_scale: false,
            swiglu: false,
        },
    )
}

impl ImageModel for VisionTransformer {
    fn logits(&self, cx: &Cx, image: &Tensor, classes: u64) -> Tensor {
        if self.timm {
            self.timm_logits(cx, image, classes)
        } else {
            self.torchvision_logits(cx, image, classes)
        }
    }
}

impl VisionTransformer {
    fn tokens(&self, image: &Tensor) -> u64 {
        let VitConfig { patch, .. } = self.config;
        (image.size(2) / patch) * (image.size(3) / patch) + 1
    }

    fn timm_logits(&self, cx: &Cx, image: &Tensor, classes: u64) -> Tensor {
        let VitConfig { hidden, patch, .. } = self.config;
        let token = cx.param("cls_token", [1, 1, hidden]);
        let positions = cx.param("pos_embed", [1, self.tokens(image), hidden]);
        let embedded = cx.module("patch_embed", |cx| {
            patches(cx, "proj", image, hidden, patch)
        });
        let mut x = {
            let tokens = token.tensor().expand(&[image.size(0), 1, hidden]);
            Tensor::cat(&tokens, &[&embedded], 1)
        };
        x = x.add(&positions.tensor());
        // `forward_features` holds the patches until `_pos_embed` returns.
        drop(embedded);
        let this = *self;
        // `x` stays what it was until `self.blocks(x)` returns.
        let outer = cx.checkpointing_in_any_mode();
        let layers = self.config.layers;
        x = outer.equal_stack("blocks", layers, x.clone(), move |cx, x| {
            this.timm_block(cx, x)
        });
        x = cx.layer_norm("norm", &x);
        x = x.select(1);
        if classes == 0 {
            return x;
        }
        cx.linear("head", &x, classes, true)
    }

    /// `LayerScale`, where there is one.
    fn layer_scale(self, cx: &Cx, name: &'static str, x: Tensor) -> Tensor {
        if !self.layer_scale {
            return x;
        }
        cx.module(name, |cx| {
            let gamma = cx.param("gamma", [self.config.hidden]).tensor();
            x.mul(&gamma)
        })
    }

    fn timm_block(self, cx: &Cx, input: &Tensor) -> Tensor {
        let attended = {
            let normed = cx.layer_norm("norm1", input);
            let out = cx.module("attn", |cx| self.timm_attention(cx, &normed));
            self.layer_scale(cx, "ls1", out)
        };
        let x = input.add(&attended);
        drop(attended);
        let mlp_output = {
            let normed = cx.layer_norm("norm2", &x);
            let out = cx.module("mlp", |cx| self.feed_forward(cx, &normed, ["fc1", "fc2"]));
            self.layer_scale(cx, "ls2", out)
        };
        x.add(&mlp_output)
    }

    fn timm_attention(self, cx: &Cx, x: &Tensor) -> Tensor {
        let VitConfig { hidden, heads, .. } = self.config;
        let (b, n, d) = (x.size(0), x.size(1), hidden / heads);
        let qkv = cx
            .linear("qkv", x, 3 * hidden, true)
            .reshape(&[b, n, 3, heads, d])
            .permute(&[2, 0, 3, 1, 4]);
        let parts = qkv.unbind();
        let [q, k, v] = &parts[..] else {
            return x.clone();
        };
        let mut out = q.attention(k, v, &AttentionMask::None, 0.0);
        out = out.transpose(1, 2).reshape(&[b, n, hidden]);
        cx.linear("proj", &out, hidden, true)
    }

    fn feed_forward(self, cx: &Cx, x: &Tensor, [first, second]: [&'static str; 2]) -> Tensor {
        let x = if self.swiglu {
            let both = cx.linear(first, x, 2 * self.ffn, true);
            let parts = both.chunk(2, -1);
            let [gate, value] = &parts[..] else {
                return both;
            };
            let activated = gate.silu();
            activated.mul(value)
        } else {
            let x = cx.linear(first, x, self.ffn, true);
            x.gelu()
        };
        cx.linear(second, &x, self.config.hidden, true)
    }

    fn torchvision_logits(&self, cx: &Cx, image: &Tensor, classes: u64) -> Tensor {
        let VitConfig { hidden, patch, .. } = self.config;
        let token = cx.param("class_token", [1, 1, hidden]);
        let mut x = patches(cx, "conv_proj", image, hidden, patch);
        let tokens = token.tensor().expand(&[image.size(0), 1, hidden]);
        x = Tensor::cat(&tokens, &[&x], 1);
        x = cx.module("encoder", |cx| {
            let positions = cx.param("pos_embedding", [1, self.tokens(image), hidden]);
            let mut state = x.add(&positions.tensor());
            for i in 0..self.config.layers as usize {
                state = cx.list_item("layers.encoder_layer", i, |cx| {
                    self.torchvision_block(cx, &state)
                });
            }
            cx.layer_norm("ln", &state)
        });
        x = x.select(1);
        cx.module("heads", |cx| cx.linear("head", &x, classes, true))
    }

    fn torchvision_block(self, cx: &Cx, input: &Tensor) -> Tensor {
        let mut x = cx.layer_norm("ln_1", input);
        x = cx.module("self_attention", |cx| self.multi_head_attention(cx, &x));
        x = x.add(input);
        let mut y = cx.layer_norm("ln_2", &x);
        y = cx.module("mlp", |cx| self.feed_forward(cx, &y, ["0", "3"]));
        x.add(&y)
    }

    /// `nn.MultiheadAttention(batch_first=True)` with `need_weights=False` (`F.multi_head_attention_forward`).
    fn multi_head_attention(self, cx: &Cx, x: &Tensor) -> Tensor {
        let VitConfig { hidden, heads, .. } = self.config;
        let d = hidden / heads;
        let weight = cx.param("in_proj_weight", [3 * hidden, hidden]).tensor();
        let bias = cx.param("in_proj_bias", [3 * hidden]).tensor();
        let x = x.transpose(1, 0);
        let (s, b) = (x.size(0), x.size(1));
        let mut projected = x.linear(&weight, Some(&bias));
        projected = projected
            .view(&[s, b, 3, hidden])
            .unsqueeze(0)
            .transpose(0, -2)
            .squeeze(-2)
            .contiguous();
        let [q, k, v] = [0, 1, 2].map(|_: u8| {
            let part = projected.select(0);
            part.view(&[s, b * heads, d])
                .transpose(0, 1)
                .view(&[b, heads, s, d])
        });
        drop(projected);
        let mut out = q.attention(&k, &v, &AttentionMask::None, 0.0);
        out = out
            .permute(&[2, 0, 1, 3])
            .contiguous()
            .view(&[b * s, hidden]);
        out = cx.linear("out_proj", &out, hidden, true);
        out.view(&[s, b, hidden]).transpose(1, 0)
    }
}
