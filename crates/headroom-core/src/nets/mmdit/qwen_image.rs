//! Qwen-Image and Qwen-Image-Edit (diffusers/models/transformers/transformer_qwenimage.py): a stream for the image and one for the
//! text, whose positions are turned by complex numbers and whose attention is masked.

use super::joint::last_norm;
use crate::nets::diffusion::{
    Pixels, blocks, feed_forward, flow_matching, mse_output, rms_norm, rotate_complex, sinusoids,
    timestep_embedding,
};
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct QwenImage {
    pixels: Pixels,
    /// Pictures as large as the one that is made, which stand beside it (Edit).
    references: u64,
    words: u64,
    channels: u64,
    layers: u64,
    heads: u64,
    head_dim: u64,
    context: u64,
    /// References are modulated as if they had no noise (`zero_cond_t`).
    clean_references: bool,
}

/// `pos_freqs` and `neg_freqs` have this many places.
const PLACES: u64 = 4096;

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(QwenImage {
        // Eight-fold reduced by the encoder and packed two by two.
        pixels: Pixels::still(16, sizes.or("img", 1024)),
        references: sizes.or("references", 0),
        words: sizes.or("ctx_len", 512),
        channels: sizes.or("channels", 64),
        layers: sizes.need("layers")?,
        heads: sizes.need("heads")?.max(1),
        head_dim: sizes.or("head_dim", 128),
        context: sizes.or("ctx_dim", 3584),
        clean_references: sizes.is_set("zero_cond_t"),
    }))
}

/// What every block is given besides its streams.
#[derive(Clone, Debug)]
struct Shared {
    temb: Tensor,
    /// Complex numbers for each token of the image and of the text.
    freqs: [Tensor; 2],
    /// 0 for tokens of the image that is made, 1 for those of references.
    index: Option<Tensor>,
}

impl Net for QwenImage {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        let pixels = self.pixels.latents(data).count();
        let shown = pixels.saturating_mul(self.references);
        let make = |name, shape: &[u64]| cx.tape.empty(name, shape, cx.env.weights);
        vec![
            make("latents", &[n, pixels, self.channels]),
            make("reference", &[n, shown, self.channels]),
            make("encoder_hidden_states", &[n, self.words, self.context]),
            cx.tape
                .empty("encoder_hidden_states_mask", [n, self.words], DType::I64),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [latents, reference, text, mask] = batch else {
            return Output::empty(cx);
        };
        let noised = flow_matching(latents);
        let shown = match self.references {
            0 => noised.input.clone(),
            _ => Tensor::cat(&noised.input, &[reference], 1),
        };
        let timestep = noised.level.to(latents.dtype());
        let out = self.model(cx, &shown, &timestep, text, mask);
        drop((shown, timestep));
        let out = match self.references {
            0 => out,
            _ => out.pipe(|out| out.narrow(1, latents.size(1))),
        };
        mse_output(cx, out, &noised.target)
    }
}

impl QwenImage {
    const fn width(&self) -> u64 {
        self.heads.saturating_mul(self.head_dim)
    }

    /// `QwenImageTransformer2DModel.forward`.
    fn model(
        &self,
        cx: &Cx,
        image: &Tensor,
        timestep: &Tensor,
        text: &Tensor,
        mask: &Tensor,
    ) -> Tensor {
        let width = self.width();
        let (n, pixels, words) = (image.size(0), image.size(1), text.size(1));
        let hidden = cx.linear("img_in", image, width, true);
        let mut timestep = timestep.to(hidden.dtype());
        let index = self.clean_references.then(|| {
            timestep = Tensor::cat(&timestep, &[&timestep.mul_scalar()], 0);
            timestep.constant("modulate_index", &[n, pixels], DType::I32)
        });
        let mut text = rms_norm(cx, "txt_norm", text);
        text = cx.linear("txt_in", &text, width, true);
        let mask = mask.constant("to", &[n, words], DType::Bool);
        let lengths = Self::lengths(&mask);
        let temb = cx.module("time_text_embed", |cx| {
            let waves = sinusoids(&timestep, 256).to(hidden.dtype());
            timestep_embedding(cx, "timestep_embedder", &waves, width)
        });
        let freqs = cx.module("pos_embed", |cx| self.positions(cx, pixels, words));
        let shared = Shared {
            temb: temb.clone(),
            freqs,
            index,
        };
        let this = *self;
        let state = blocks(cx).equal_layers(
            "transformer_blocks",
            self.layers,
            vec![hidden, text],
            move |cx, state| match state {
                [hidden, text] => this.block(cx, hidden, text, &shared).to_vec(),
                _ => Vec::new(),
            },
        );
        let Ok([mut hidden, _text]) = <[Tensor; 2]>::try_from(state) else {
            return image.clone();
        };
        let temb = if self.clean_references {
            temb.narrow(0, n)
        } else {
            temb
        };
        hidden = last_norm(cx, &hidden, &temb);
        drop((lengths, mask));
        cx.linear("proj_out", &hidden, self.channels, true)
    }

    /// `compute_text_seq_len_from_mask`, whose results nobody frees before `forward` returns.
    fn lengths(mask: &Tensor) -> Tensor {
        let (n, words) = (mask.size(0), mask.size(1));
        let places = mask.constant("arange", &[words], DType::I64);
        let active = mask.constant("where", &[n, words], DType::I64);
        let any = mask.constant("any", &[n], DType::Bool);
        let lengths = mask.constant("where", &[n], DType::I64);
        drop((places, active, any));
        lengths
    }

    /// `QwenEmbedRope`: its tables and those of the last shapes stay on the device from the first step on.
    fn positions(&self, cx: &Cx, pixels: u64, words: u64) -> [Tensor; 2] {
        for name in ["pos_freqs", "neg_freqs"] {
            cx.buffer(name, [PLACES, self.head_dim], DType::F32);
        }
        let kept = cx.buffer("video_freqs", [pixels, self.head_dim], DType::F32);
        let pairs = self.head_dim / 2;
        let image = kept.constant("cat", &[pixels, 1, pairs, 2], DType::F32);
        // A slice of the first table.
        let table = cx.buffer("pos_freqs", [PLACES, self.head_dim], DType::F32);
        let text = table.as_strided(crate::tape::Layout::contiguous([words, 1, pairs, 2]));
        [image, text]
    }

    /// `QwenImageTransformerBlock.forward`, most of whose names hold their tensors to the end.
    fn block(&self, cx: &Cx, hidden: &Tensor, text: &Tensor, shared: &Shared) -> [Tensor; 2] {
        let width = self.width();
        let modulation = |cx: &Cx, name, temb: &Tensor| {
            cx.module(name, |cx| {
                temb.silu().pipe(|x| cx.linear("1", x, 6 * width, true))
            })
        };
        let image_parts = modulation(cx, "img_mod", &shared.temb);
        let temb = match &shared.index {
            Some(_) => shared.temb.narrow(0, shared.temb.size(0) / 2),
            None => shared.temb.clone(),
        };
        let text_parts = modulation(cx, "txt_mod", &temb);
        let both = || [hidden.clone(), text.clone()];
        let (image_mods, text_mods) = (image_parts.chunk(2, -1), text_parts.chunk(2, -1));
        let ([image_mod, image_mod2], [text_mod, text_mod2]) = (&image_mods[..], &text_mods[..])
        else {
            return both();
        };
        let index = shared.index.as_ref();
        let image_normed = hidden.layer_norm(None, None);
        let (image_modulated, image_gate) = modulate(&image_normed, image_mod, index);
        let text_normed = text.layer_norm(None, None);
        let (text_modulated, text_gate) = modulate(&text_normed, text_mod, None);
        let [attended, attended_text] = cx.module("attn", |cx| {
            self.attention(cx, &image_modulated, &text_modulated, shared)
        });
        let mut hidden = image_gate.mul(&attended).pipe(|more| hidden.add(more));
        let mut text = text_gate.mul(&attended_text).pipe(|more| text.add(more));
        let image_normed2 = hidden.layer_norm(None, None);
        let (image_modulated2, gate) = modulate(&image_normed2, image_mod2, index);
        let image_output = feed_forward(cx, "img_mlp", &image_modulated2);
        hidden = gate.mul(&image_output).pipe(|more| hidden.add(more));
        let text_normed2 = text.layer_norm(None, None);
        let (text_modulated2, gate) = modulate(&text_normed2, text_mod2, None);
        let text_output = feed_forward(cx, "txt_mlp", &text_modulated2);
        text = gate.mul(&text_output).pipe(|more| text.add(more));
        [hidden, text]
    }

    /// `QwenDoubleStreamAttnProcessor2_0`.
    fn attention(&self, cx: &Cx, x: &Tensor, text: &Tensor, shared: &Shared) -> [Tensor; 2] {
        let width = self.width();
        let (n, pixels, words) = (x.size(0), x.size(1), text.size(1));
        let ones = x.constant("ones", &[n, pixels], DType::Bool);
        // All masks are in use: samples have texts of different lengths.
        let mask = x.constant("cat", &[n, 1, 1, words + pixels], DType::Bool);
        let rows = |x: &Tensor| x.view(&[x.size(0), x.size(1), self.heads, self.head_dim]);
        let project = |names: [&'static str; 3], x: &Tensor| {
            names.map(|name| rows(&cx.linear(name, x, width, true)))
        };
        let [mut query, mut key, value] = project(["to_q", "to_k", "to_v"], x);
        let names = ["add_q_proj", "add_k_proj", "add_v_proj"];
        let [mut text_query, mut text_key, text_value] = project(names, text);
        query = rms_norm(cx, "norm_q", &query);
        key = rms_norm(cx, "norm_k", &key);
        text_query = rms_norm(cx, "norm_added_q", &text_query);
        text_key = rms_norm(cx, "norm_added_k", &text_key);
        let [image_freqs, text_freqs] = &shared.freqs;
        query = rotate_complex(&query, image_freqs);
        key = rotate_complex(&key, image_freqs);
        text_query = rotate_complex(&text_query, text_freqs);
        text_key = rotate_complex(&text_key, text_freqs);
        let joint_query = Tensor::cat(&text_query, &[&query], 1);
        let joint_key = Tensor::cat(&text_key, &[&key], 1);
        let joint_value = Tensor::cat(&text_value, &[&value], 1);
        let mut joint = {
            let [q, k, v] = [&joint_query, &joint_key, &joint_value].map(|x| x.transpose(1, 2));
            let mask = AttentionMask::Given(mask.clone());
            q.attention(&k, &v, &mask, 0.0).transpose(1, 2)
        };
        joint = joint.reshape(&[n, words + pixels, width]);
        joint = joint.to(joint_query.dtype());
        let (of_text, of_image) = (joint.narrow(1, words), joint.narrow(1, pixels));
        let image = of_image
            .contiguous()
            .pipe(|x| cx.module("to_out", |cx| cx.linear("0", x, width, true)));
        let text = of_text
            .contiguous()
            .pipe(|x| cx.linear("to_add_out", x, width, true));
        drop((ones, mask));
        [image, text]
    }
}

/// `_modulate`: the modulated rows, and the gate. With an index, each token has the shift, scale and gate of its kind.
fn modulate(x: &Tensor, parts: &Tensor, index: Option<&Tensor>) -> (Tensor, Tensor) {
    let parts = parts.chunk(3, -1);
    let [shift, scale, gate] = &parts[..] else {
        return (x.clone(), x.clone());
    };
    let chosen = |part: &Tensor| match index {
        None => part.unsqueeze(1),
        Some(index) => {
            let n = part.size(0) / 2;
            let halves = part.split(&[n, part.size(0) - n], 0);
            let [first, second] = [0, 1].map(|i: usize| halves[i].unsqueeze(1));
            let made = index.constant("eq", &[n, index.size(1), 1], DType::Bool);
            made.choose(&first, &second)
        }
    };
    let [shift, scale, gate] = [shift, scale, gate].map(chosen);
    let factor = scale.add_scalar();
    let scaled = x.mul(&factor);
    drop(factor);
    (scaled.add(&shift), gate)
}
