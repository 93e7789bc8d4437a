//! CogVideoX: text and patches in one attention, each with shifts, scales and gates of its own.

use crate::nets::diffusion::{
    Grid, Pixels, apply_rotary_emb, blocks, feed_forward, sinusoids, timestep_embedding,
};
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::{AttentionMask, Conv};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct CogVideoX {
    pixels: Pixels,
    channels: u64,
    /// Channels that are given beside the learned ones (image to video).
    condition: u64,
    layers: u64,
    heads: u64,
    head_dim: u64,
    words: u64,
    context: u64,
    /// Rotary positions instead of a table of sines.
    rotary: bool,
    /// The grid that the stored table is of, if there is one.
    table: Option<Grid>,
}

const TIME: u64 = 512;
const PATCH: u64 = 2;

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let rotary = sizes.is_set("rotary");
    let sizes = &sizes.with_defaults([("height", 480), ("width", 720), ("frames", 49)]);
    let pixels = Pixels::moving(sizes, 8, 4);
    Ok(Box::new(CogVideoX {
        pixels,
        channels: sizes.or("channels", 16),
        condition: sizes.or("condition", 0),
        layers: sizes.need("layers")?,
        heads: sizes.need("heads")?.max(1),
        head_dim: sizes.or("head_dim", 64),
        words: sizes.or("ctx_len", 226),
        context: sizes.or("ctx_dim", 4096),
        rotary,
        table: (!rotary).then_some(Grid {
            frames: 13,
            height: 60,
            width: 90,
        }),
    }))
}

impl Net for CogVideoX {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        let Grid {
            frames,
            height,
            width,
        } = self.pixels.latents(data);
        let make = |name, shape: &[u64]| cx.tape.empty(name, shape, cx.env.weights);
        vec![
            make("latents", &[n, frames, self.channels, height, width]),
            make("condition", &[n, frames, self.condition, height, width]),
            make("encoder_hidden_states", &[n, self.words, self.context]),
            cx.tape.empty("timestep", [n], DType::I64),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [latents, condition, text, timestep] = batch else {
            return Output::empty(cx);
        };
        let ones = [latents.size(0), 1, 1, 1, 1];
        let alpha = {
            let drawn = latents.constant("rand", &ones, DType::F32);
            drawn.to(latents.dtype())
        };
        let noisy = {
            let noise = latents.constant("randn_like", latents.shape(), latents.dtype());
            let kept = alpha.sqrt().pipe(|root| root.mul(latents));
            let added = alpha.add_scalar().sqrt().pipe(|root| root.mul(&noise));
            kept.add(&added)
        };
        let shown = match self.condition {
            0 => noisy.clone(),
            _ => Tensor::cat(&noisy, &[condition], 2),
        };
        let velocity = self.model(cx, &shown, timestep, text);
        drop(shown);
        // The clean latents that the velocity implies are compared, weighted by the noise.
        let loss = cx.module("loss", |_| {
            let clean = {
                let kept = alpha.sqrt().pipe(|root| root.mul(&noisy));
                let taken = alpha.add_scalar().sqrt().pipe(|root| root.mul(&velocity));
                kept.sub(&taken)
            };
            let squares = clean
                .sub(latents)
                .pipe(|x| x.to(DType::F32))
                .pipe(Tensor::pow);
            let weight = alpha.to(DType::F32).add_scalar().add_scalar();
            let weighted = squares.div(&weight);
            drop((squares, weight));
            let n = latents.size(0);
            let rows = [n, latents.numel() / n.max(1)];
            weighted
                .pipe(|all| all.reshape(&rows))
                .mean(&[1])
                .mean_all()
        });
        Output {
            loss,
            held: vec![velocity],
        }
    }
}

impl CogVideoX {
    const fn width(&self) -> u64 {
        self.heads.saturating_mul(self.head_dim)
    }

    /// `CogVideoXTransformer3DModel.forward`.
    fn model(&self, cx: &Cx, latents: &Tensor, timestep: &Tensor, text: &Tensor) -> Tensor {
        let width = self.width();
        let grid = Grid {
            frames: latents.size(1),
            height: latents.size(3),
            width: latents.size(4),
        };
        let patches = grid.patches(1, PATCH);
        let (n, tokens, words) = (latents.size(0), patches.count(), text.size(1));
        let rotary = self.rotary.then(|| {
            [(); 2].map(|()| latents.constant("rope", &[1, 1, tokens, self.head_dim], DType::F32))
        });
        let waves = sinusoids(timestep, width).to(latents.dtype());
        let emb = timestep_embedding(cx, "time_embedding", &waves, TIME);
        let joined = cx.module("patch_embed", |cx| {
            self.patch_embed(cx, latents, text, grid)
        });
        let (context, hidden) = (joined.narrow(1, words), joined.narrow(1, tokens));
        drop(joined);
        let (this, passed) = (*self, emb.clone());
        let state = blocks(cx).equal_layers(
            "transformer_blocks",
            self.layers,
            vec![hidden, context],
            move |cx, state| match state {
                [hidden, context] => this
                    .block(cx, hidden, context, &passed, rotary.as_ref())
                    .to_vec(),
                _ => Vec::new(),
            },
        );
        let Ok([mut hidden, _context]) = <[Tensor; 2]>::try_from(state) else {
            return latents.clone();
        };
        hidden = cx.layer_norm("norm_final", &hidden);
        hidden = cx.module("norm_out", |cx| {
            let parts = emb
                .silu()
                .pipe(|x| cx.linear("linear", x, 2 * width, true))
                .chunk(2, 1);
            let normed = cx.layer_norm("norm", &hidden);
            match &parts[..] {
                [shift, scale] => {
                    let factor = scale.unsqueeze(1).add_scalar();
                    let scaled = normed.mul(&factor);
                    drop((normed, factor));
                    scaled.add(&shift.unsqueeze(1))
                }
                _ => normed,
            }
        });
        hidden = cx.linear("proj_out", &hidden, PATCH * PATCH * self.channels, true);
        let Grid {
            frames,
            height,
            width,
        } = patches;
        let each = [n, frames, height, width, self.channels, PATCH, PATCH];
        let video = hidden.reshape(&each).permute(&[0, 1, 4, 2, 5, 3, 6]);
        video.reshape(&[n, frames, self.channels, height * PATCH, width * PATCH])
    }

    /// `CogVideoXPatchEmbed.forward`: text, then patches, with sines added to them where positions are not rotary.
    fn patch_embed(&self, cx: &Cx, latents: &Tensor, text: &Tensor, grid: Grid) -> Tensor {
        let width = self.width();
        let patches = grid.patches(1, PATCH);
        let (n, tokens, words) = (latents.size(0), patches.count(), text.size(1));
        let stored = self.table.map(|table| {
            let rows = table.patches(1, PATCH).count() + words;
            cx.buffer("pos_embedding", [1, rows, width], cx.env.weights)
        });
        let text = cx.linear("text_proj", text, width, true);
        let mut image = {
            let each = [n * grid.frames, latents.size(2), grid.height, grid.width];
            let pictures = latents.reshape(&each);
            cx.conv2d("proj", &pictures, width, PATCH, Conv::stride(PATCH), true)
        };
        let picture = patches.height * patches.width;
        image = image
            .view(&[n, grid.frames, width, picture])
            .transpose(2, 3);
        image = image.reshape(&[n, tokens, width]);
        let embeds = Tensor::cat(&text, &[&image], 1);
        let Some(stored) = stored else {
            return embeds;
        };
        let positions = if self.table == Some(grid) {
            stored.to(embeds.dtype())
        } else {
            // `_get_positional_embeddings` makes them in fp32 and copies them behind zeros for the text.
            let sines = embeds.constant("concat", &[tokens, width], DType::F32);
            let joint = embeds.constant("new_zeros", &[1, words + tokens, width], DType::F32);
            drop(sines);
            joint.to(embeds.dtype())
        };
        embeds.add(&positions)
    }

    /// `CogVideoXBlock.forward`.
    fn block(
        &self,
        cx: &Cx,
        hidden: &Tensor,
        context: &Tensor,
        emb: &Tensor,
        rotary: Option<&[Tensor; 2]>,
    ) -> [Tensor; 2] {
        let words = context.size(1);
        let both = || [hidden.clone(), context.clone()];
        let Some((mut normed, mut normed_context, gate, context_gate)) =
            cx.module("norm1", |cx| norm_zero(cx, hidden, context, emb))
        else {
            return both();
        };
        let [attended, attended_context] = cx.module("attn1", |cx| {
            self.attention(cx, &normed, &normed_context, rotary)
        });
        let mut hidden = gate.mul(&attended).pipe(|more| hidden.add(more));
        let mut context = context_gate
            .mul(&attended_context)
            .pipe(|more| context.add(more));
        let Some(parts) = cx.module("norm2", |cx| norm_zero(cx, &hidden, &context, emb)) else {
            return [hidden, context];
        };
        let (gate, context_gate);
        (normed, normed_context, gate, context_gate) = parts;
        normed = Tensor::cat(&normed_context, &[&normed], 1);
        let ff_output = feed_forward(cx, "ff", &normed);
        let rest = ff_output.size(1).saturating_sub(words);
        hidden = gate
            .mul(&ff_output.narrow(1, rest))
            .pipe(|more| hidden.add(more));
        context = context_gate
            .mul(&ff_output.narrow(1, words))
            .pipe(|more| context.add(more));
        [hidden, context]
    }

    /// `CogVideoXAttnProcessor2_0`.
    fn attention(
        &self,
        cx: &Cx,
        x: &Tensor,
        context: &Tensor,
        rotary: Option<&[Tensor; 2]>,
    ) -> [Tensor; 2] {
        let width = self.width();
        let (words, tokens) = (context.size(1), x.size(1));
        let mut hidden = Tensor::cat(context, &[x], 1);
        let mut query = cx.linear("to_q", &hidden, width, true);
        let mut key = cx.linear("to_k", &hidden, width, true);
        let mut value = cx.linear("to_v", &hidden, width, true);
        let rows = |x: &Tensor| {
            let rows = x.view(&[x.size(0), x.size(1), self.heads, self.head_dim]);
            rows.transpose(1, 2)
        };
        query = rows(&query);
        key = rows(&key);
        value = rows(&value);
        query = cx.layer_norm("norm_q", &query);
        key = cx.layer_norm("norm_k", &key);
        if let Some([cosines, sines]) = rotary {
            // Only what stands behind the text, in place.
            let turned = |x: &Tensor| {
                let turned = apply_rotary_emb(&x.narrow(2, tokens), cosines, sines);
                x.copy_into_slice_(&turned)
            };
            query = turned(&query);
            key = turned(&key);
        }
        hidden = query.attention(&key, &value, &AttentionMask::None, 0.0);
        hidden = hidden.transpose(1, 2);
        hidden = hidden.reshape(&[hidden.size(0), hidden.size(1), width]);
        hidden = cx.module("to_out", |cx| cx.linear("0", &hidden, width, true));
        match &hidden.split(&[words, tokens], 1)[..] {
            [context, hidden] => [hidden.clone(), context.clone()],
            _ => [hidden.clone(), hidden],
        }
    }
}

/// `CogVideoXLayerNormZero`: both normed and modulated, and their gates.
fn norm_zero(
    cx: &Cx,
    hidden: &Tensor,
    context: &Tensor,
    emb: &Tensor,
) -> Option<(Tensor, Tensor, Tensor, Tensor)> {
    let width = hidden.size(-1);
    let parts = emb
        .silu()
        .pipe(|x| cx.linear("linear", x, 6 * width, true))
        .chunk(6, 1);
    let [shift, scale, gate, text_shift, text_scale, text_gate] = &parts[..] else {
        return None;
    };
    let modulated = |x: &Tensor, scale: &Tensor, shift: &Tensor| {
        let normed = cx.layer_norm("norm", x);
        let factor = scale.add_scalar().unsqueeze(1);
        let scaled = normed.mul(&factor);
        drop((normed, factor));
        scaled.add(&shift.unsqueeze(1))
    };
    let normed = modulated(hidden, scale, shift);
    let normed_context = modulated(context, text_scale, text_shift);
    let gates = [gate, text_gate].map(|gate| gate.unsqueeze(1));
    let [gate, text_gate] = gates;
    Some((normed, normed_context, gate, text_gate))
}
