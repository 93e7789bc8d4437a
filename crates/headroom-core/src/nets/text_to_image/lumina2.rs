//! Lumina-Image 2.0: text and image are refined by themselves, then one stream.

use crate::nets::diffusion::{
    Grid, Pixels, blocks, flow_matching, mse_output, rms_norm, rotate_complex, sinusoids,
    timestep_embedding,
};
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct Lumina2 {
    pixels: Pixels,
    channels: u64,
    hidden: u64,
    layers: u64,
    refiner_layers: u64,
    heads: u64,
    kv: u64,
    words: u64,
    context: u64,
}

const PATCH: u64 = 2;
/// The embedding of the time step is no wider.
const TIME: u64 = 1024;
/// Rows of the feed-forward part are a multiple of this.
const MULTIPLE: u64 = 256;
/// The most samples that are joined and cut one by one.
const MOST_SAMPLES: u64 = 1024;

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Lumina2 {
        pixels: Pixels::still(8, sizes.or("img", 1024)),
        channels: sizes.or("channels", 16),
        hidden: sizes.need("hidden")?.max(1),
        layers: sizes.need("layers")?,
        refiner_layers: sizes.or("refiner_layers", 2),
        heads: sizes.need("heads")?.max(1),
        kv: sizes.or("kv", 8).max(1),
        words: sizes.or("ctx_len", 256),
        context: sizes.or("ctx_dim", 2304),
    }))
}

impl Net for Lumina2 {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        let Grid { height, width, .. } = self.pixels.latents(data);
        let make = |name, shape: &[u64]| cx.tape.empty(name, shape, cx.env.weights);
        vec![
            make("latents", &[n, self.channels, height, width]),
            make("encoder_hidden_states", &[n, self.words, self.context]),
            cx.tape
                .empty("encoder_attention_mask", [n, self.words], DType::I64),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [latents, text, mask] = batch else {
            return Output::empty(cx);
        };
        let noised = flow_matching(latents);
        let predicted = self.model(cx, &noised.input, &noised.level, text, mask);
        mse_output(cx, predicted, &noised.target)
    }
}

impl Lumina2 {
    /// `Lumina2Transformer2DModel.forward` for texts of one length.
    fn model(
        &self,
        cx: &Cx,
        latents: &Tensor,
        level: &Tensor,
        text: &Tensor,
        mask: &Tensor,
    ) -> Tensor {
        let width = self.hidden;
        let grid = Grid {
            frames: 1,
            height: latents.size(2),
            width: latents.size(3),
        };
        let grid = grid.patches(1, PATCH);
        let (n, pixels, words) = (latents.size(0), grid.count(), text.size(1));
        let timestep = level.add_scalar();
        let (temb, mut text) = cx.module("time_caption_embed", |cx| {
            let waves = sinusoids(&timestep, 256).to(latents.dtype());
            let time = timestep_embedding(cx, "timestep_embedder", &waves, width.min(TIME));
            let text = cx.module("caption_embedder", |cx| {
                let normed = rms_norm(cx, "0", text);
                cx.linear("1", &normed, width, true)
            });
            (time, text)
        });
        // Complex numbers of 128 bits.
        let pairs = width / self.heads / 2;
        let table = |rows: u64| latents.constant("freqs_cis", &[n, rows, 1, pairs, 2], DType::F64);
        let (all, of_text, of_image) = (table(pixels + words), table(words), table(pixels));
        let mut hidden = {
            let each = [n, self.channels, grid.height, PATCH, grid.width, PATCH];
            let patches = latents.reshape(&each).permute(&[0, 2, 4, 3, 5, 1]);
            patches.reshape(&[n, pixels, PATCH * PATCH * self.channels])
        };
        hidden = cx.linear("x_embedder", &hidden, width, true);
        // The refiners are never checkpointed.
        for i in 0..self.refiner_layers as usize {
            text = cx.list_item("context_refiner", i, |cx| {
                self.block(cx, &text, &of_text, None, Some(mask))
            });
        }
        for i in 0..self.refiner_layers as usize {
            hidden = cx.list_item("noise_refiner", i, |cx| {
                self.block(cx, &hidden, &of_image, Some(&temb), None)
            });
        }
        hidden = {
            let zeros = cx
                .tape
                .empty("new_zeros", [n, words + pixels, width], hidden.dtype());
            (0..n.min(MOST_SAMPLES)).fold(zeros, |joint, _| {
                let joint = joint.copy_into_slice_(&text.select(0));
                joint.copy_into_slice_(&hidden.select(0))
            })
        };
        let (this, passed) = (*self, temb.clone());
        hidden = blocks(cx).equal_stack("layers", self.layers, hidden, move |cx, x| {
            this.block(cx, x, &all, Some(&passed), None)
        });
        let channels = self.channels;
        hidden = cx.module("norm_out", |cx| {
            let scale = temb.silu().pipe(|x| cx.linear("linear_1", x, width, true));
            let normed = hidden.layer_norm(None, None);
            let factor = scale.add_scalar().unsqueeze(1);
            let scaled = normed.mul(&factor);
            drop((normed, factor));
            cx.linear("linear_2", &scaled, PATCH * PATCH * channels, true)
        });
        let images: Vec<Tensor> = (0..n.min(MOST_SAMPLES))
            .map(|_| {
                let rows = hidden.select(0).narrow(0, pixels);
                let each = [grid.height, grid.width, PATCH, PATCH, channels];
                let image = rows.view(&each).permute(&[4, 0, 2, 1, 3]);
                image.reshape(&[channels, grid.height * PATCH, grid.width * PATCH])
            })
            .collect();
        Tensor::stack(&images, 0).unwrap_or(hidden)
    }

    /// `Lumina2TransformerBlock.forward`.
    fn block(
        &self,
        cx: &Cx,
        x: &Tensor,
        freqs: &Tensor,
        temb: Option<&Tensor>,
        mask: Option<&Tensor>,
    ) -> Tensor {
        let width = self.hidden;
        let (normed, parts) = match temb {
            None => (rms_norm(cx, "norm1", x), Vec::new()),
            Some(temb) => cx.module("norm1", |cx| {
                let parts = temb
                    .silu()
                    .pipe(|x| cx.linear("linear", x, 4 * width, true))
                    .chunk(4, 1);
                let normed = rms_norm(cx, "norm", x);
                let normed = match &parts[..] {
                    [scale, ..] => {
                        let factor = scale.unsqueeze(1).add_scalar();
                        normed.mul(&factor)
                    }
                    _ => normed,
                };
                (normed, parts)
            }),
        };
        let gated = |gate: Option<&Tensor>, normed: Tensor| match gate {
            Some(gate) => gate.unsqueeze(1).tanh().pipe(|gate| gate.mul(&normed)),
            None => normed,
        };
        let attended = cx.module("attn", |cx| self.attention(cx, &normed, freqs, mask));
        let more = gated(parts.get(1), rms_norm(cx, "norm2", &attended));
        let x = x.add(&more);
        drop(more);
        let out = {
            let normed = rms_norm(cx, "ffn_norm1", &x);
            let normed = match parts.get(2) {
                Some(scale) => {
                    let factor = scale.unsqueeze(1).add_scalar();
                    normed.mul(&factor)
                }
                None => normed,
            };
            cx.module("feed_forward", |cx| {
                let inner = width.saturating_mul(4).next_multiple_of(MULTIPLE);
                // `FP32SiLU`.
                let gate = cx.linear("linear_1", &normed, inner, false);
                let dtype = gate.dtype();
                let gate = gate.to(DType::F32).pipe(Tensor::silu).to(dtype);
                let up = cx.linear("linear_3", &normed, inner, false);
                let both = gate.mul(&up);
                drop((gate, up));
                cx.linear("linear_2", &both, width, false)
            })
        };
        let more = gated(parts.get(3), rms_norm(cx, "ffn_norm2", &out));
        x.add(&more)
    }

    /// `Lumina2AttnProcessor2_0`: keys and values are repeated for the heads that share them.
    fn attention(&self, cx: &Cx, x: &Tensor, freqs: &Tensor, mask: Option<&Tensor>) -> Tensor {
        let width = self.hidden;
        let (n, tokens, each) = (x.size(0), x.size(1), width / self.heads);
        let narrow = self.kv.saturating_mul(each);
        let rows = |x: &Tensor, heads| x.view(&[n, tokens, heads, each]);
        let mut query = cx.linear("to_q", x, width, false);
        let mut key = cx.linear("to_k", x, narrow, false);
        let mut value = cx.linear("to_v", x, narrow, false);
        let dtype = query.dtype();
        query = rows(&query, self.heads);
        key = rows(&key, self.kv);
        value = rows(&value, self.kv);
        query = rms_norm(cx, "norm_q", &query);
        key = rms_norm(cx, "norm_k", &key);
        query = rotate_complex(&query, freqs);
        key = rotate_complex(&key, freqs);
        query = query.to(dtype);
        key = key.to(dtype);
        let times = self.heads / self.kv;
        let repeated = |x: &Tensor| {
            let wide = x.unsqueeze(3).repeated(&[n, tokens, self.kv, times, each]);
            wide.reshape(&[n, tokens, self.heads, each])
        };
        key = repeated(&key);
        value = repeated(&value);
        let mask = mask.map_or(AttentionMask::None, |mask| {
            let bools = mask.constant("bool", &[n, 1, 1, tokens], DType::Bool);
            AttentionMask::Given(bools)
        });
        query = query.transpose(1, 2);
        key = key.transpose(1, 2);
        value = value.transpose(1, 2);
        let mut hidden = query.attention(&key, &value, &mask, 0.0);
        hidden = hidden.transpose(1, 2).reshape(&[n, tokens, width]);
        hidden = hidden.to(query.dtype());
        cx.module("to_out", |cx| cx.linear("0", &hidden, width, false))
    }
}
