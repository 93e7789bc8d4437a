//! Sana: linear attention, and feed-forward parts that are convolutions.

use crate::nets::diffusion::{
    Grid, Pixels, ada_norm_single, blocks, caption_projection, flow_matching, mse_output, rms_norm,
    scaled_and_shifted, text_bias, unpatchify,
};
use crate::nets::unet::masked_attention;
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct Sana {
    pixels: Pixels,
    channels: u64,
    layers: u64,
    heads: u64,
    hidden: u64,
    cross_heads: u64,
    words: u64,
    caption: u64,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let heads = sizes.need("heads")?.max(1);
    Ok(Box::new(Sana {
        pixels: Pixels::still(32, sizes.or("img", 1024)),
        channels: sizes.or("channels", 32),
        layers: sizes.need("layers")?,
        heads,
        hidden: heads.saturating_mul(sizes.or("head_dim", 32)),
        cross_heads: sizes.need("cross_heads")?.max(1),
        words: sizes.or("ctx_len", 300),
        caption: sizes.or("caption", 2304),
    }))
}

impl Net for Sana {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        let Grid { height, width, .. } = self.pixels.latents(data);
        let make = |name, shape: &[u64]| cx.tape.empty(name, shape, cx.env.weights);
        vec![
            make("latents", &[n, self.channels, height, width]),
            make("encoder_hidden_states", &[n, self.words, self.caption]),
            make("encoder_attention_mask", &[n, self.words]),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [latents, text, mask] = batch else {
            return Output::empty(cx);
        };
        let noised = flow_matching(latents);
        let timestep = noised.level.mul_scalar();
        let predicted = self.model(cx, &noised.input, &timestep, text, mask);
        drop(timestep);
        mse_output(cx, predicted, &noised.target)
    }
}

impl Sana {
    /// `SanaTransformer2DModel.forward`.
    fn model(
        &self,
        cx: &Cx,
        latents: &Tensor,
        timestep: &Tensor,
        text: &Tensor,
        mask: &Tensor,
    ) -> Tensor {
        let width = self.hidden;
        let mask = text_bias(mask, latents.dtype());
        let grid = Grid {
            frames: 1,
            height: latents.size(2),
            width: latents.size(3),
        };
        let mut hidden = cx.module("patch_embed", |cx| {
            let x = cx.conv2d("proj", latents, width, 1, Conv::stride(1), true);
            x.reshape(&[latents.size(0), width, grid.count()])
                .transpose(1, 2)
        });
        let dtype = hidden.dtype();
        let [parts, embedded] = ada_norm_single(cx, "time_embed", timestep, width, dtype, |_| None);
        let mut context = caption_projection(cx, "caption_projection", text, width);
        context = rms_norm(cx, "caption_norm", &context);
        let this = *self;
        hidden = blocks(cx).equal_stack(
            "transformer_blocks",
            self.layers,
            hidden,
            move |cx, hidden| this.block(cx, hidden, &context, &parts, &mask, grid),
        );
        let table = cx.param("scale_shift_table", [2, width]).tensor();
        hidden = {
            let normed = hidden.layer_norm(None, None);
            let embedded = embedded.unsqueeze(1);
            let ends = table.unsqueeze(0).add(&embedded).chunk(2, 1);
            match &ends[..] {
                [shift, scale] => scaled_and_shifted(&normed, scale, shift),
                _ => normed,
            }
        };
        hidden = cx.linear("proj_out", &hidden, self.channels, true);
        unpatchify(&hidden, grid, 1, self.channels)
    }

    /// `SanaTransformerBlock.forward`.
    fn block(
        &self,
        cx: &Cx,
        hidden: &Tensor,
        context: &Tensor,
        parts: &Tensor,
        mask: &Tensor,
        grid: Grid,
    ) -> Tensor {
        let width = self.hidden;
        let n = hidden.size(0);
        let table = cx.param("scale_shift_table", [6, width]).tensor();
        let parts = {
            let parts = parts.reshape(&[n, 6, width]);
            table.unsqueeze(0).add(&parts).chunk(6, 1)
        };
        let [shift, scale, gate, ff_shift, ff_scale, ff_gate] = &parts[..] else {
            return hidden.clone();
        };
        let mut normed = hidden.layer_norm(None, None);
        normed = scaled_and_shifted(&normed, scale, shift);
        normed = normed.to(hidden.dtype());
        let mut attended = cx.module("attn1", |cx| self.linear_attention(cx, &normed));
        let mut hidden = gate.mul(&attended).pipe(|more| hidden.add(more));
        attended = cx.module("attn2", |cx| {
            masked_attention(cx, &hidden, context, self.cross_heads, mask)
        });
        hidden = attended.add(&hidden);
        normed = hidden.layer_norm(None, None);
        normed = scaled_and_shifted(&normed, ff_scale, ff_shift);
        normed = normed
            .view(&[n, grid.height, grid.width, width])
            .permute(&[0, 3, 1, 2]);
        let mut ff_output = cx.module("ff", |cx| convolutions(cx, &normed));
        ff_output = ff_output
            .reshape(&[n, width, grid.count()])
            .permute(&[0, 2, 1]);
        ff_gate.mul(&ff_output).pipe(|more| hidden.add(more))
    }

    /// `SanaLinearAttnProcessor2_0`: no scores between tokens, and fp32.
    fn linear_attention(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let width = self.hidden;
        let (n, tokens, each) = (x.size(0), x.size(1), width / self.heads);
        let mut query = cx.linear("to_q", x, width, false);
        let mut key = cx.linear("to_k", x, width, false);
        let mut value = cx.linear("to_v", x, width, false);
        let heads = |x: &Tensor| x.transpose(1, 2).reshape(&[n, self.heads, each, tokens]);
        query = heads(&query);
        key = heads(&key).transpose(2, 3);
        value = heads(&value);
        query = query.relu();
        key = key.relu();
        let [query, key, mut value] = [&query, &key, &value].map(|x| x.to(DType::F32));
        value = value.pad_to(&[n, self.heads, each + 1, tokens]);
        let scores = value.matmul(&key);
        let mut hidden = scores.matmul(&query);
        hidden = {
            let rows = hidden.narrow(2, each);
            let last = hidden.narrow(2, 1).add_scalar();
            rows.div(&last)
        };
        hidden = hidden.reshape(&[n, width, tokens]).transpose(1, 2);
        hidden = hidden.to(x.dtype());
        cx.module("to_out", |cx| cx.linear("0", &hidden, width, true))
    }
}

/// `GLUMBConv.forward`, two and a half times as wide inside.
fn convolutions(cx: &Cx, x: &Tensor) -> Tensor {
    let width = x.size(1);
    let inner = width.saturating_mul(5) / 2;
    let mut hidden = cx.conv2d("conv_inverted", x, 2 * inner, 1, Conv::stride(1), true);
    hidden = hidden.silu();
    let conv = Conv::stride(1).padded(1).grouped(2 * inner);
    hidden = cx.conv2d("conv_depth", &hidden, 2 * inner, 3, conv, true);
    let halves = hidden.chunk(2, 1);
    drop(hidden);
    let [rows, gate] = &halves[..] else {
        return x.clone();
    };
    let gated = gate.silu().pipe(|gate| rows.mul(gate));
    cx.conv2d("conv_point", &gated, width, 1, Conv::stride(1), false)
}
