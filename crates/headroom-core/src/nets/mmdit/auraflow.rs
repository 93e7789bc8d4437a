//! AuraFlow (diffusers/models/transformers/auraflow_transformer_2d.py): a few blocks of image and text, then many of one stream; norms in
//! fp32, no biases, and tokens that belong to no text.

use crate::nets::diffusion::{
    Pixels, double_and_single_blocks, flow_matching, modulate, mse_output, sinusoids,
    timestep_embedding, unpatchify,
};
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct AuraFlow {
    pixels: Pixels,
    channels: u64,
    layers: u64,
    single_layers: u64,
    block: Block,
    words: u64,
    context: u64,
    /// Rows of the table of positions.
    places: u64,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    heads: u64,
    head_dim: u64,
}

/// Latents along the side of a patch, and tokens before the text's.
const PATCH: u64 = 2;
const REGISTERS: u64 = 8;

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(AuraFlow {
        pixels: Pixels::still(8, sizes.or("img", 1024)),
        channels: sizes.or("channels", 4),
        layers: sizes.need("layers")?,
        single_layers: sizes.need("single_layers")?,
        block: Block {
            heads: sizes.need("heads")?.max(1),
            head_dim: sizes.need("head_dim")?,
        },
        words: sizes.or("ctx_len", 256),
        context: sizes.or("ctx_dim", 2048),
        places: sizes.or("pos", 9216),
    }))
}

impl Net for AuraFlow {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        let grid = self.pixels.latents(data);
        let make = |name, shape: &[u64]| cx.tape.empty(name, shape, cx.env.weights);
        vec![
            make("latents", &[n, self.channels, grid.height, grid.width]),
            make("encoder_hidden_states", &[n, self.words, self.context]),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [latents, text] = batch else {
            return Output::empty(cx);
        };
        let noised = flow_matching(latents);
        let predicted = self.model(cx, &noised.input, &noised.level, text);
        mse_output(cx, predicted, &noised.target)
    }
}

impl AuraFlow {
    /// `AuraFlowTransformer2DModel.forward`.
    fn model(&self, cx: &Cx, latents: &Tensor, level: &Tensor, text: &Tensor) -> Tensor {
        let (n, width) = (latents.size(0), self.block.width());
        let registers = cx.param("register_tokens", [1, REGISTERS, width]);
        let mut hidden = cx.module("pos_embed", |cx| self.patches(cx, latents));
        let waves = sinusoids(level, 256).to(cx.env.weights);
        let temb = timestep_embedding(cx, "time_step_proj", &waves, width);
        drop(waves);
        let mut text = cx.linear("context_embedder", text, width, false);
        text = {
            let own = registers.tensor().to(text.dtype()).tiled(n);
            Tensor::cat(&own, &[&text], 1)
        };
        let (block, before) = (self.block, text.size(1));
        let [outer, inner] = double_and_single_blocks(cx, 0);
        let given = temb.clone();
        let state = outer.equal_layers(
            "joint_transformer_blocks",
            self.layers,
            vec![hidden.clone(), text.clone()],
            move |cx, state| match state {
                [hidden, text] => block.joint(cx, [hidden, text], &given).to_vec(),
                _ => Vec::new(),
            },
        );
        let Ok([image, words]) = <[Tensor; 2]>::try_from(state) else {
            return hidden;
        };
        hidden = image;
        text = words;
        let grid = [2, 3].map(|axis| latents.size(axis) / PATCH);
        let own = grid[0].saturating_mul(grid[1]);
        if self.single_layers > 0 {
            let both = Tensor::cat(&text, &[&hidden], 1);
            let given = temb.clone();
            let state = inner.equal_layers(
                "single_transformer_blocks",
                self.single_layers,
                vec![both],
                move |cx, state| state.iter().map(|x| block.single(cx, x, &given)).collect(),
            );
            let Some(joined) = state.into_iter().next() else {
                return hidden;
            };
            hidden = joined.narrow(1, joined.size(1).saturating_sub(before).min(own));
        }
        let parts = cx.module("norm_out", |cx| {
            let given = temb.silu();
            cx.linear("linear", &given, 2 * width, false).chunk(2, 1)
        });
        let [scale, shift] = parts.as_slice() else {
            return hidden;
        };
        let factor = scale.add_scalar();
        hidden = {
            let scaled = hidden.mul(&factor.unsqueeze(1));
            scaled.add(&shift.unsqueeze(1))
        };
        hidden = cx.linear("proj_out", &hidden, PATCH * PATCH * self.channels, false);
        let whole = crate::nets::diffusion::Grid {
            frames: 1,
            height: grid[0],
            width: grid[1],
        };
        unpatchify(&hidden, whole, PATCH, self.channels)
    }

    /// `AuraFlowPatchEmbed.forward`.
    fn patches(&self, cx: &Cx, latents: &Tensor) -> Tensor {
        let (n, c, width) = (latents.size(0), latents.size(1), self.block.width());
        let [down, across] = [2, 3].map(|axis| latents.size(axis) / PATCH);
        let table = cx.param("pos_embed", [1, self.places, width]);
        let rows = latents
            .reshape(&[n, c, down, PATCH, across, PATCH])
            .permute(&[0, 2, 4, 1, 3, 5])
            .reshape(&[n, down * across, c * PATCH * PATCH]);
        let made = cx.linear("proj", &rows, width, true);
        let index = rows.constant("flatten", &[down * across], DType::I64);
        let places = table.tensor().view(&[self.places, width]).rows(&index);
        made.add(&places.unsqueeze(0))
    }
}

/// `FP32LayerNorm` that learns nothing.
fn normed(x: &Tensor) -> Tensor {
    x.to(DType::F32)
        .pipe(|wide| wide.layer_norm(None, None))
        .to(x.dtype())
}

impl Block {
    fn width(self) -> u64 {
        self.heads.saturating_mul(self.head_dim)
    }

    /// `AdaLayerNormZero` without biases: the normed rows, and four of the six parts.
    fn shifted(
        self,
        cx: &Cx,
        name: &'static str,
        x: &Tensor,
        temb: &Tensor,
    ) -> (Tensor, Vec<Tensor>) {
        cx.module(name, |cx| {
            let mut parts = {
                let given = temb.silu();
                cx.linear("linear", &given, 6 * self.width(), false)
                    .chunk(6, 1)
            };
            let rest = parts.split_off(parts.len().min(2));
            let [shift, scale] = parts.as_slice() else {
                return (x.clone(), rest);
            };
            let plain = normed(x);
            (modulate(&plain, scale, shift), rest)
        })
    }

    /// `AuraFlowFeedForward.forward`.
    fn feed_forward(self, cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
        let inner = (self.width().saturating_mul(8) / 3).next_multiple_of(256);
        cx.module(name, |cx| {
            let product = {
                let gate = cx.linear("linear_1", x, inner, false).pipe(Tensor::silu);
                let up = cx.linear("linear_2", x, inner, false);
                gate.mul(&up)
            };
            cx.linear("out_projection", &product, self.width(), false)
        })
    }

    /// What follows attention.
    fn finished(
        self,
        cx: &Cx,
        name: &'static str,
        [residual, attended]: [&Tensor; 2],
        parts: &[Tensor],
    ) -> Tensor {
        let [gate, shift, scale, ff_gate] = parts else {
            return residual.clone();
        };
        let mut hidden = {
            let more = gate.unsqueeze(1).mul(attended);
            residual.add(&more)
        };
        hidden = normed(&hidden);
        hidden = modulate(&hidden, scale, shift);
        let out = self.feed_forward(cx, name, &hidden);
        let more = ff_gate.unsqueeze(1).mul(&out);
        residual.add(&more)
    }

    /// `AuraFlowJointTransformerBlock.forward`.
    fn joint(self, cx: &Cx, [hidden, text]: [&Tensor; 2], temb: &Tensor) -> [Tensor; 2] {
        let (own, parts) = self.shifted(cx, "norm1", hidden, temb);
        let (words, text_parts) = self.shifted(cx, "norm1_context", text, temb);
        let attended = cx.module("attn", |cx| self.attention(cx, &own, Some(&words)));
        let [image, other] = attended.as_slice() else {
            return [hidden.clone(), text.clone()];
        };
        let image = self.finished(cx, "ff", [hidden, image], &parts);
        let other = self.finished(cx, "ff_context", [text, other], &text_parts);
        drop((own, words, attended));
        [image, other]
    }

    /// `AuraFlowSingleTransformerBlock.forward`.
    fn single(self, cx: &Cx, hidden: &Tensor, temb: &Tensor) -> Tensor {
        let (own, parts) = self.shifted(cx, "norm1", hidden, temb);
        let attended = cx.module("attn", |cx| self.attention(cx, &own, None));
        let Some(image) = attended.first() else {
            return hidden.clone();
        };
        let out = self.finished(cx, "ff", [hidden, image], &parts);
        drop((own, attended));
        out
    }

    /// `AuraFlowAttnProcessor2_0`: what the image and the text get.
    fn attention(self, cx: &Cx, x: &Tensor, text: Option<&Tensor>) -> Vec<Tensor> {
        let width = self.width();
        let project = |names: [&'static str; 3], x: &Tensor| {
            names.map(|name| {
                let made = cx.linear(name, x, width, false);
                made.view(&[x.size(0), x.size(1), self.heads, self.head_dim])
            })
        };
        let mut own = project(["to_q", "to_k", "to_v"], x);
        let mut other = text.map(|text| project(["add_q_proj", "add_k_proj", "add_v_proj"], text));
        for parts in [Some(&mut own), other.as_mut()].into_iter().flatten() {
            for part in parts.iter_mut().take(2) {
                *part = normed(part);
            }
        }
        let [q, k, v] = match &other {
            Some(other) => [0, 1, 2].map(|i: usize| Tensor::cat(&other[i], &[&own[i]], 1)),
            None => own.clone(),
        };
        drop((own, other));
        let [q, k, v] = [q, k, v].map(|x| x.transpose(1, 2));
        let mut out = q.attention(&k, &v, &AttentionMask::None, 0.0);
        out = out
            .transpose(1, 2)
            .reshape(&[x.size(0), q.size(2), width])
            .to(q.dtype());
        let linear = |x: &Tensor| cx.module("to_out", |cx| cx.linear("0", x, width, false));
        let Some(text) = text else {
            return vec![linear(&out)];
        };
        let image = linear(&out.narrow(1, x.size(1)));
        let words = cx.linear("to_add_out", &out.narrow(1, text.size(1)), width, false);
        vec![image, words]
    }
}
