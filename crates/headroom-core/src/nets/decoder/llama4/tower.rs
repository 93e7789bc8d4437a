//! `Llama4VisionModel`: a ViT with rotary positions, and its adapter, which joins squares of four patches.

use crate::nets::attention::{Eager, attend};
use crate::nets::{Cx, ModelError, Sizes};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};

#[derive(Clone, Copy, Debug)]
pub(super) struct Tower {
    hidden: u64,
    layers: u64,
    heads: u64,
    ffn: u64,
    /// The side of a tile in pixels.
    pub image: u64,
    patch: u64,
    /// `projector_input_dim` and `projector_output_dim`.
    adapter: [u64; 2],
}

impl Tower {
    pub(super) fn new(sizes: &Sizes) -> Result<Self, ModelError> {
        let hidden = sizes.need("v_hidden")?;
        Ok(Self {
            hidden,
            layers: sizes.need("v_layers")?,
            heads: sizes.need("v_heads")?.max(1),
            ffn: sizes.or("v_ffn", 4 * hidden),
            image: sizes.or("img", 336),
            patch: sizes.need("patch")?.max(1),
            adapter: ["proj_in", "proj_out"].map(|name| sizes.or(name, 4096)),
        })
    }

    /// Tokens along a tile's side.
    pub(super) fn side(&self) -> u64 {
        self.image / self.patch / 2
    }

    pub(super) fn states(&self, cx: &Cx, pixels: &Tensor) -> Tensor {
        let (n, hidden) = (pixels.size(0), self.hidden);
        let class = cx.param("class_embedding", [hidden]);
        let patches = self.image / self.patch * (self.image / self.patch);
        let places = cx.param("positional_embedding_vlm", [patches + 1, hidden]);
        let embedded = cx.module("patch_embedding", |cx| {
            let columns = pixels.unfold(self.patch).permute(&[0, 2, 1]);
            cx.linear("linear", &columns, hidden, false)
        });
        let class = class.tensor().expand(&[n, 1, hidden]);
        let joined = Tensor::cat(&embedded, &[&class], 1);
        let mut x = joined.add(&places.tensor());
        drop((embedded, joined));
        x = cx.layer_norm("layernorm_pre", &x);
        let table = cx.module("rotary_embedding", |cx| {
            let shape = [1, patches + 1, 1, hidden / self.heads / 2, 2];
            cx.buffer("freqs_ci", shape, DType::F32)
        });
        let tower = *self;
        x = cx.module("model", |cx| {
            cx.equal_stack("layers", self.layers, x.clone(), move |cx, x| {
                tower.layer(cx, x, &table)
            })
        });
        x = cx.layer_norm("layernorm_post", &x);
        let read = x.narrow(1, patches);
        cx.module("vision_adapter", |cx| self.adapted(cx, &read))
    }

    fn layer(&self, cx: &Cx, input: &Tensor, table: &Tensor) -> Tensor {
        let mut x = cx.layer_norm("input_layernorm", input);
        x = cx.module("self_attn", |cx| self.attention(cx, &x, table));
        x = input.add(&x);
        let residual = x.clone();
        x = cx.layer_norm("post_attention_layernorm", &x);
        x = cx.module("mlp", |cx| {
            let inner = cx.linear("fc1", &x, self.ffn, true).pipe(Tensor::gelu);
            cx.linear("fc2", &inner, self.hidden, true)
        });
        residual.add(&x)
    }

    fn attention(&self, cx: &Cx, x: &Tensor, table: &Tensor) -> Tensor {
        let (n, s, h) = (x.size(0), x.size(1), self.heads);
        let [mut q, mut k, v] = ["q_proj", "k_proj", "v_proj"].map(|name| {
            cx.linear(name, x, self.hidden, true)
                .view(&[n, s, h, self.hidden / h])
        });
        let dtype = q.dtype();
        let wide = [&q, &k].map(|x| x.to(DType::F32));
        [q, k] = wide
            .each_ref()
            .map(|x| x.mul_complex(table))
            .map(|turned| turned.to(dtype));
        drop(wide);
        let [q, k, v] = [q, k, v].map(|x| x.transpose(1, 2));
        let form = Eager { in_fp32: false };
        let (mut out, _) = attend(cx, [&q, &k, &v], &AttentionMask::None, 0.0, form);
        out = out.reshape(x.shape());
        cx.linear("o_proj", &out, self.hidden, true)
    }

    /// `Llama4VisionPixelShuffleMLP.forward`.
    fn adapted(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let (n, width, half) = (x.size(0), x.size(2), self.side());
        let side = self.image / self.patch;
        let mut grid = x.reshape(&[n, side, side, width]);
        grid = grid
            .narrow(2, 2 * half)
            .reshape(&[n, side, half, 2 * width])
            .permute(&[0, 2, 1, 3])
            .contiguous();
        grid = grid
            .narrow(2, 2 * half)
            .reshape(&[n, half, half, 4 * width])
            .permute(&[0, 2, 1, 3])
            .contiguous();
        let joined = grid.view(&[n, half * half, 4 * width]);
        let [first, second] = self.adapter;
        cx.module("mlp", |cx| {
            let inner = cx.linear("fc1", &joined, first, false).pipe(Tensor::gelu);
            cx.linear("fc2", &inner, second, false).pipe(Tensor::gelu)
        })
    }
}
