//! FLUX.2 (diffusers/models/transformers/transformer_flux2.py): no biases, gated feed-forward parts, and shifts, scales and gates
//! that all blocks of a kind share.

use crate::nets::diffusion::{
    Pixels, apply_rotary_emb, double_and_single_blocks, flow_matching, modulated_norm, mse_output,
    scaled_and_shifted, sinusoids,
};
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct Flux2 {
    pixels: Pixels,
    /// Pictures as large as the one that is made, which stand beside it.
    references: u64,
    words: u64,
    channels: u64,
    layers: u64,
    single_layers: u64,
    heads: u64,
    head_dim: u64,
    /// The feed-forward width over the hidden one.
    ratio: u64,
    context: u64,
    guidance: bool,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Flux2 {
        // Eight-fold reduced by the encoder and packed two by two.
        pixels: Pixels::still(16, sizes.or("img", 1024)),
        references: sizes.or("references", 0),
        words: sizes.or("ctx_len", 512),
        channels: sizes.or("channels", 128),
        layers: sizes.need("layers")?,
        single_layers: sizes.need("single_layers")?,
        heads: sizes.need("heads")?.max(1),
        head_dim: sizes.need("head_dim")?,
        ratio: sizes.or("mlp_ratio", 3),
        context: sizes.need("ctx_dim")?,
        guidance: sizes.is_set("guidance"),
    }))
}

impl Net for Flux2 {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        let pixels = self.pixels.latents(data).count();
        let shown = pixels.saturating_mul(self.references);
        let make = |name, shape: &[u64]| cx.tape.empty(name, shape, cx.env.weights);
        let mut all = vec![
            make("latents", &[n, pixels, self.channels]),
            make("reference", &[n, shown, self.channels]),
            make("encoder_hidden_states", &[n, self.words, self.context]),
            make("txt_ids", &[self.words, 4]),
            make("img_ids", &[pixels.saturating_add(shown), 4]),
        ];
        if self.guidance {
            all.push(make("guidance", &[n]));
        }
        all
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [latents, reference, text, text_ids, image_ids, guidance @ ..] = batch else {
            return Output::empty(cx);
        };
        let noised = flow_matching(latents);
        let timestep = noised.level.to(latents.dtype()).mul_scalar();
        let shown = match self.references {
            0 => noised.input.clone(),
            _ => Tensor::cat(&noised.input, &[reference], 1),
        };
        let width = self.width();
        let inner = self.ratio.saturating_mul(width);
        cx.env.shared.widest.set([3 * width + 2 * inner, inner]);
        let emb = self.conditioning(cx, &timestep, guidance.first());
        let image_parts = modulation(cx, "double_stream_modulation_img", &emb, 6);
        let text_parts = modulation(cx, "double_stream_modulation_txt", &emb, 6);
        let single_parts = modulation(cx, "single_stream_modulation", &emb, 3);
        let hidden = cx.linear("x_embedder", &shown, width, false);
        let text = cx.linear("context_embedder", text, width, false);
        let rows = [1, text_ids.size(0) + image_ids.size(0), 1, self.head_dim];
        let rotary = [(); 2].map(|()| image_ids.constant("rope", &rows, DType::F32));
        let (this, places) = (*self, rotary.clone());
        let [double, single] = double_and_single_blocks(cx, 0);
        let state = double.equal_layers(
            "transformer_blocks",
            self.layers,
            vec![hidden, text],
            move |cx, state| match state {
                [hidden, text] => this
                    .block(cx, [hidden, text], [&image_parts, &text_parts], &places)
                    .to_vec(),
                _ => Vec::new(),
            },
        );
        let Ok([image, words]) = <[Tensor; 2]>::try_from(state) else {
            return Output::empty(cx);
        };
        let both = Tensor::cat(&words, &[&image], 1);
        drop((image, words));
        let this = *self;
        let state = single.equal_layers(
            "single_transformer_blocks",
            self.single_layers,
            vec![both],
            move |cx, state| {
                let block = |x| this.single(cx, x, &single_parts, &rotary);
                state.iter().map(block).collect()
            },
        );
        let Some(both) = state.into_iter().next() else {
            return Output::empty(cx);
        };
        let hidden = both.narrow(1, shown.size(1));
        drop(both);
        let hidden = last_norm(cx, &hidden, &emb);
        let out = cx.linear("proj_out", &hidden, self.channels, false);
        drop(hidden);
        let out = match self.references {
            0 => out,
            _ => out.pipe(|out| out.narrow(1, latents.size(1))),
        };
        mse_output(cx, out, &noised.target)
    }
}

impl Flux2 {
    const fn width(&self) -> u64 {
        self.heads.saturating_mul(self.head_dim)
    }

    /// `Flux2TimestepGuidanceEmbeddings`.
    fn conditioning(&self, cx: &Cx, timestep: &Tensor, guidance: Option<&Tensor>) -> Tensor {
        cx.module("time_guidance_embed", |cx| {
            let embedded = |name, step: &Tensor| {
                let waves = sinusoids(step, 256).to(step.dtype());
                cx.module(name, |cx| {
                    let mut x = cx.linear("linear_1", &waves, self.width(), false);
                    x = x.silu();
                    cx.linear("linear_2", &x, self.width(), false)
                })
            };
            let time = embedded("timestep_embedder", timestep);
            match guidance {
                Some(guidance) => time.add(&embedded("guidance_embedder", guidance)),
                None => time,
            }
        })
    }

    /// `Flux2TransformerBlock`: image and text in, image and text out.
    fn block(
        &self,
        cx: &Cx,
        [hidden, text]: [&Tensor; 2],
        [image_parts, text_parts]: [&[Tensor]; 2],
        rotary: &[Tensor; 2],
    ) -> [Tensor; 2] {
        let (
            [shift, scale, gate, shift_mlp, scale_mlp, gate_mlp],
            [
                text_shift,
                text_scale,
                text_gate,
                text_shift_mlp,
                text_scale_mlp,
                text_gate_mlp,
            ],
        ) = (image_parts, text_parts)
        else {
            return [hidden.clone(), text.clone()];
        };
        let mut normed = modulated(hidden, scale, shift);
        let mut normed_text = modulated(text, text_scale, text_shift);
        let [mut attended, mut attended_text] = cx.module("attn", |cx| {
            self.attention(cx, &normed, &normed_text, rotary)
        });
        let feed_forward = |name, x: &Tensor| {
            cx.module(name, |cx| {
                let inner = self.ratio * x.size(-1);
                let mut y = cx.linear("linear_in", x, 2 * inner, false);
                y = swiglu(&y);
                cx.linear("linear_out", &y, x.size(-1), false)
            })
        };
        // `attention_outputs` holds both to the end.
        let _outputs = (attended.clone(), attended_text.clone());
        attended = gate.mul(&attended);
        let mut hidden = hidden.add(&attended);
        normed = hidden.layer_norm(None, None);
        normed = scaled_and_shifted(&normed, scale_mlp, shift_mlp);
        let ff_output = feed_forward("ff", &normed);
        hidden = gate_mlp.mul(&ff_output).pipe(|more| hidden.add(more));
        attended_text = text_gate.mul(&attended_text);
        let mut text = text.add(&attended_text);
        normed_text = text.layer_norm(None, None);
        normed_text = scaled_and_shifted(&normed_text, text_scale_mlp, text_shift_mlp);
        let text_ff_output = feed_forward("ff_context", &normed_text);
        text = text_gate_mlp
            .mul(&text_ff_output)
            .pipe(|more| text.add(more));
        [hidden, text]
    }

    /// `Flux2AttnProcessor`.
    fn attention(&self, cx: &Cx, x: &Tensor, text: &Tensor, rotary: &[Tensor; 2]) -> [Tensor; 2] {
        let project = |names: [&'static str; 3], x: &Tensor| {
            names.map(|name| self.heads_of(&cx.linear(name, x, self.width(), false)))
        };
        let [mut query, mut key, mut value] = project(["to_q", "to_k", "to_v"], x);
        let [mut text_query, mut text_key, text_value] =
            project(["add_q_proj", "add_k_proj", "add_v_proj"], text);
        query = cx.fused_rms_norm("norm_q", &query);
        key = cx.fused_rms_norm("norm_k", &key);
        text_query = cx.fused_rms_norm("norm_added_q", &text_query);
        text_key = cx.fused_rms_norm("norm_added_k", &text_key);
        query = Tensor::cat(&text_query, &[&query], 1);
        key = Tensor::cat(&text_key, &[&key], 1);
        value = Tensor::cat(&text_value, &[&value], 1);
        let (out, _names) = self.attended([query, key, value], rotary);
        let parts = out.split(&[text.size(1), x.size(1)], 1);
        let [text, image] = &parts[..] else {
            return [out.clone(), out];
        };
        let width = self.width();
        let text = cx.linear("to_add_out", text, width, false);
        let image = cx.module("to_out", |cx| cx.linear("0", image, width, false));
        [image, text]
    }

    /// `Flux2SingleTransformerBlock`: attention and feed-forward side by side, between one product and another.
    fn single(&self, cx: &Cx, x: &Tensor, parts: &[Tensor], rotary: &[Tensor; 2]) -> Tensor {
        let [shift, scale, gate] = parts else {
            return x.clone();
        };
        let width = self.width();
        let normed = modulated(x, scale, shift);
        let attended = cx.module("attn", |cx| {
            let inner = self.ratio * width;
            let projected = cx.linear("to_qkv_mlp_proj", &normed, 3 * width + 2 * inner, false);
            let parts = projected.split(&[3 * width, 2 * inner], -1);
            let [qkv, mlp] = &parts[..] else {
                return projected;
            };
            let parts = qkv.chunk(3, -1);
            let [query, key, value] = &parts[..] else {
                return projected;
            };
            let mut query = self.heads_of(query);
            let mut key = self.heads_of(key);
            let value = self.heads_of(value);
            query = cx.fused_rms_norm("norm_q", &query);
            key = cx.fused_rms_norm("norm_k", &key);
            let (mut out, _names) = self.attended([query, key, value], rotary);
            let gated = swiglu(mlp);
            out = Tensor::cat(&out, &[&gated], -1);
            cx.linear("to_out", &out, width, false)
        });
        gate.mul(&attended).pipe(|more| x.add(more))
    }

    fn heads_of(&self, x: &Tensor) -> Tensor {
        x.view(&[x.size(0), x.size(1), self.heads, self.head_dim])
    }

    /// Positions, and attention of every token to every other; and the tensors that the processor's names hold to its end.
    fn attended(
        &self,
        [mut query, mut key, value]: [Tensor; 3],
        rotary: &[Tensor; 2],
    ) -> (Tensor, [Tensor; 3]) {
        let [cosines, sines] = rotary;
        query = apply_rotary_emb(&query, cosines, sines);
        key = apply_rotary_emb(&key, cosines, sines);
        let [q, k, v] = [&query, &key, &value].map(|x| x.transpose(1, 2));
        let mut out = q.attention(&k, &v, &AttentionMask::None, 0.0);
        out = out.transpose(1, 2);
        out = out.reshape(&[out.size(0), out.size(1), self.width()]);
        out = out.to(query.dtype());
        (out, [query, key, value])
    }
}

/// `Flux2Modulation`: shifts, scales and gates with a place for the tokens.
fn modulation(cx: &Cx, name: &'static str, emb: &Tensor, parts: u64) -> Vec<Tensor> {
    cx.module(name, |cx| {
        let mut x = emb.silu();
        x = cx.linear("linear", &x, parts * emb.size(-1), false);
        x.unsqueeze(1).chunk(parts, -1)
    })
}

/// `AdaLayerNormContinuous` without a bias.
fn last_norm(cx: &Cx, x: &Tensor, emb: &Tensor) -> Tensor {
    cx.module("norm_out", |cx| {
        let parts = emb
            .silu()
            .pipe(|emb| cx.linear("linear", emb, 2 * emb.size(-1), false))
            .chunk(2, 1);
        match &parts[..] {
            [scale, shift] => modulated_norm(x, scale, shift),
            _ => x.clone(),
        }
    })
}

/// `(1 + scale) * norm(x) + shift`, with a norm that learns nothing.
fn modulated(x: &Tensor, scale: &Tensor, shift: &Tensor) -> Tensor {
    let normed = x.layer_norm(None, None);
    let scaled = scale.add_scalar().pipe(|factor| factor.mul(&normed));
    scaled.add(shift)
}

/// `Flux2SwiGLU`: the first half gates the second.
fn swiglu(x: &Tensor) -> Tensor {
    match &x.chunk(2, -1)[..] {
        [gate, up] => gate.silu().pipe(|gate| gate.mul(up)),
        _ => x.clone(),
    }
}
