//! CogView4 (diffusers/models/transformers/transformer_cogview4.py): text and image are joined for attention and share their
//! feed-forward part.

use crate::nets::diffusion::{
    Grid, Pixels, blocks, feed_forward, flow_matching, modulate, mse_output, sinusoids,
    timestep_embedding,
};
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

/// What the three sizes of a picture are embedded in, two numbers each.
const CONDITION: u64 = 256;

#[derive(Clone, Copy, Debug)]
struct CogView4 {
    pixels: Pixels,
    channels: u64,
    patch: u64,
    layers: u64,
    heads: u64,
    head_dim: u64,
    words: u64,
    context: u64,
    /// `time_embed_dim`.
    time: u64,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(CogView4 {
        pixels: Pixels::still(8, sizes.or("img", 1024)),
        channels: sizes.or("channels", 16),
        patch: sizes.or("patch", 2).max(1),
        layers: sizes.need("layers")?,
        heads: sizes.need("heads")?.max(1),
        head_dim: sizes.need("head_dim")?,
        words: sizes.or("ctx_len", 224),
        context: sizes.or("ctx_dim", 4096),
        time: sizes.or("time_dim", 512),
    }))
}

impl Net for CogView4 {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        let Grid { height, width, .. } = self.pixels.latents(data);
        let make = |name, shape: &[u64]| cx.tape.empty(name, shape, cx.env.weights);
        vec![
            make("latents", &[n, self.channels, height, width]),
            make("encoder_hidden_states", &[n, self.words, self.context]),
            make("original_size", &[n, 2]),
            make("crop_coords", &[n, 2]),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [latents, text, size, crop] = batch else {
            return Output::empty(cx);
        };
        let noised = flow_matching(latents);
        let timestep = noised.level.mul_scalar();
        let predicted = self.model(cx, &noised.input, &timestep, text, [size, crop, size]);
        drop(timestep);
        mse_output(cx, predicted, &noised.target)
    }
}

impl CogView4 {
    const fn width(&self) -> u64 {
        self.heads.saturating_mul(self.head_dim)
    }

    /// `CogView4Transformer2DModel.forward`.
    fn model(
        &self,
        cx: &Cx,
        latents: &Tensor,
        timestep: &Tensor,
        text: &Tensor,
        given: [&Tensor; 3],
    ) -> Tensor {
        let (width, p) = (self.width(), self.patch);
        let n = latents.size(0);
        let grid = Grid {
            frames: 1,
            height: latents.size(2),
            width: latents.size(3),
        };
        let grid = grid.patches(1, p);
        let [hidden, text] = cx.module("patch_embed", |cx| {
            let patches = [n, self.channels, grid.height, p, grid.width, p];
            let rows = [n, grid.count(), self.channels * p * p];
            let patches = latents.reshape(&patches).permute(&[0, 2, 4, 1, 3, 5]);
            let hidden = cx.linear("proj", &patches.reshape(&rows), width, true);
            [hidden, cx.linear("text_proj", text, width, true)]
        });
        let mut temb = cx.module("time_condition_embed", |cx| {
            self.conditions(cx, timestep, given, hidden.dtype())
        });
        temb = temb.silu();
        let (this, passed) = (*self, temb.clone());
        let state = blocks(cx).equal_layers(
            "transformer_blocks",
            self.layers,
            vec![hidden, text],
            move |cx, state| match state {
                [hidden, text] => this.block(cx, hidden, text, &passed).to_vec(),
                _ => Vec::new(),
            },
        );
        let Ok([mut hidden, _text]) = <[Tensor; 2]>::try_from(state) else {
            return latents.clone();
        };
        hidden = cx.module("norm_out", |cx| {
            let parts = cx.linear("linear", &temb, 2 * width, true).chunk(2, 1);
            match &parts[..] {
                [scale, shift] => modulate(&hidden.layer_norm(None, None), scale, shift),
                _ => hidden.clone(),
            }
        });
        hidden = cx.linear("proj_out", &hidden, p * p * self.channels, true);
        let each = [n, grid.height, grid.width, self.channels, p, p];
        let picture = hidden.reshape(&each).permute(&[0, 3, 1, 4, 2, 5]);
        picture.reshape(&[n, self.channels, grid.height * p, grid.width * p])
    }

    /// `CogView3CombinedTimestepSizeEmbeddings`.
    fn conditions(&self, cx: &Cx, timestep: &Tensor, given: [&Tensor; 3], dtype: DType) -> Tensor {
        let waves = sinusoids(timestep, self.width());
        let [size, crop, target] = given.map(|pair| {
            let flat = pair.reshape(&[pair.numel()]);
            sinusoids(&flat, CONDITION).view(&[pair.size(0), 2 * CONDITION])
        });
        let all = Tensor::cat(&size, &[&crop, &target], 1);
        let time = timestep_embedding(cx, "timestep_embedder", &waves.to(dtype), self.time);
        let sizes = timestep_embedding(cx, "condition_embedder", &all.to(dtype), self.time);
        time.add(&sizes)
    }

    /// `CogView4TransformerBlock.forward`.
    fn block(&self, cx: &Cx, hidden: &Tensor, text: &Tensor, temb: &Tensor) -> [Tensor; 2] {
        let width = self.width();
        let (parts, mut normed, mut normed_text) = cx.module("norm1", |cx| {
            let [plain, plain_text] =
                [hidden, text].map(|x| x.layer_norm(None, None).to(hidden.dtype()));
            let parts = cx.linear("linear", temb, 12 * width, true).chunk(12, 1);
            let [shift, text_shift, scale, text_scale, ..] = &parts[..] else {
                return (parts, plain, plain_text);
            };
            let normed = modulate(&plain, scale, shift);
            let normed_text = modulate(&plain_text, text_scale, text_shift);
            (parts, normed, normed_text)
        });
        let [
            _,
            _,
            _,
            _,
            gate,
            text_gate,
            shift,
            text_shift,
            scale,
            text_scale,
            last,
            text_last,
        ] = &parts[..]
        else {
            return [hidden.clone(), text.clone()];
        };
        let [attended, attended_text] =
            cx.module("attn1", |cx| self.attention(cx, &normed, &normed_text));
        let added = |to: &Tensor, more: &Tensor, gate: &Tensor| {
            let more = gate.unsqueeze(1).pipe(|gate| more.mul(gate));
            to.add(&more)
        };
        let mut hidden = added(hidden, &attended, gate);
        let mut text = added(text, &attended_text, text_gate);
        normed = modulate(&hidden.layer_norm(None, None), scale, shift);
        normed_text = modulate(&text.layer_norm(None, None), text_scale, text_shift);
        let ff_output = feed_forward(cx, "ff", &normed);
        let text_output = feed_forward(cx, "ff", &normed_text);
        hidden = added(&hidden, &ff_output, last);
        text = added(&text, &text_output, text_last);
        [hidden, text]
    }

    /// `CogView4AttnProcessor`: the image's places are turned within queries and keys.
    fn attention(&self, cx: &Cx, x: &Tensor, text: &Tensor) -> [Tensor; 2] {
        let width = self.width();
        let (pixels, words) = (x.size(1), text.size(1));
        let joined = Tensor::cat(text, &[x], 1);
        let rows = |x: &Tensor| {
            let rows = [x.size(0), x.size(1), self.heads, self.head_dim];
            x.view(&rows).transpose(1, 2)
        };
        let mut query = cx.linear("to_q", &joined, width, true);
        let mut key = cx.linear("to_k", &joined, width, true);
        let mut value = cx.linear("to_v", &joined, width, true);
        query = rows(&query);
        key = rows(&key);
        value = rows(&value);
        query = query.layer_norm(None, None).to(text.dtype());
        key = key.layer_norm(None, None).to(text.dtype());
        let turned = |x: &Tensor| {
            let turned = x.narrow(2, pixels).pipe(rotated);
            x.copy_into_slice_(&turned)
        };
        query = turned(&query);
        key = turned(&key);
        let mut out = query.attention(&key, &value, &AttentionMask::None, 0.0);
        out = out.transpose(1, 2);
        out = out.reshape(&[out.size(0), words + pixels, width]);
        out = cx.module("to_out", |cx| cx.linear("0", &out, width, true));
        let parts = out.split(&[words, pixels], 1);
        match &parts[..] {
            [text, image] => [image.clone(), text.clone()],
            _ => [out.clone(), out],
        }
    }
}

/// `apply_rotary_emb` of halves, with tables that come from the host at each call.
fn rotated(x: &Tensor) -> Tensor {
    let (tokens, width) = (x.size(2), x.size(3));
    let [cosines, sines] = [(); 2].map(|()| x.constant("to", &[1, 1, tokens, width], DType::F32));
    let halves = [x.size(0), x.size(1), tokens, 2, width / 2];
    let halves = x.reshape(&halves).unbind_along(-2);
    let [real, imaginary] = &halves[..] else {
        return x.clone();
    };
    let rotated = imaginary
        .neg()
        .pipe(|negative| Tensor::cat(negative, &[real], -1));
    let by_cos = x.to(DType::F32).pipe(|x| x.mul(&cosines));
    let by_sin = rotated.to(DType::F32).pipe(|x| x.mul(&sines));
    let sum = by_cos.add(&by_sin);
    drop((by_cos, by_sin));
    sum.to(x.dtype())
}
