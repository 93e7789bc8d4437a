//! PixArt-alpha and -Sigma.

use crate::nets::diffusion::{
    Grid, Pixels, ada_norm_single, blocks, caption_projection, feed_forward, mse_output,
    scaled_and_shifted, sinusoids, text_bias, timestep_embedding, unpatchify,
};
use crate::nets::unet::{attention, masked_attention};
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct PixArt {
    pixels: Pixels,
    /// Side of the stored table of positions, in latents.
    side: u64,
    patch: u64,
    channels: u64,
    out_channels: u64,
    layers: u64,
    heads: u64,
    hidden: u64,
    words: u64,
    caption: u64,
    /// Resolution and aspect ratio condition the image too (alpha).
    size_conditions: bool,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let heads = sizes.need("heads")?.max(1);
    let side = sizes.or("img", 128);
    Ok(Box::new(PixArt {
        pixels: Pixels::still(8, side.saturating_mul(8)),
        side,
        patch: sizes.or("patch", 2).max(1),
        channels: sizes.or("channels", 4),
        out_channels: sizes.or("out_channels", 8),
        layers: sizes.need("layers")?,
        heads,
        hidden: heads.saturating_mul(sizes.need("head_dim")?),
        words: sizes.or("ctx_len", 300),
        caption: sizes.or("caption", 4096),
        size_conditions: sizes.is_set("size_conditions"),
    }))
}

impl Net for PixArt {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        let Grid { height, width, .. } = self.pixels.latents(data);
        let make = |name, shape: &[u64]| cx.tape.empty(name, shape, cx.env.weights);
        let mut all = vec![
            make("latents", &[n, self.channels, height, width]),
            make("encoder_hidden_states", &[n, self.words, self.caption]),
            make("encoder_attention_mask", &[n, self.words]),
            cx.tape.empty("timestep", [n], DType::I64),
        ];
        if self.size_conditions {
            all.push(make("resolution", &[n, 2]));
            all.push(make("aspect_ratio", &[n, 1]));
        }
        all
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [latents, text, mask, timestep, sizes @ ..] = batch else {
            return Output::empty(cx);
        };
        let noise = latents.constant("randn_like", latents.shape(), latents.dtype());
        let noisy = latents.constant("add_noise", latents.shape(), latents.dtype());
        let both = self.model(cx, &noisy, timestep, [text, mask], sizes);
        drop(noisy);
        // The other half would be the variance.
        let predicted = both.pipe(|both| both.narrow(1, self.channels));
        mse_output(cx, predicted, &noise)
    }
}

impl PixArt {
    /// `PixArtTransformer2DModel.forward`.
    fn model(
        &self,
        cx: &Cx,
        latents: &Tensor,
        timestep: &Tensor,
        [text, mask]: [&Tensor; 2],
        sizes: &[Tensor],
    ) -> Tensor {
        let width = self.hidden;
        let mask = text_bias(mask, latents.dtype());
        let whole = Grid {
            frames: 1,
            height: latents.size(2),
            width: latents.size(3),
        };
        let grid = whole.patches(1, self.patch);
        let mut hidden = cx.module("pos_embed", |cx| self.patch_embed(cx, latents, grid));
        let dtype = hidden.dtype();
        let [parts, embedded] = ada_norm_single(cx, "adaln_single", timestep, width, dtype, |cx| {
            let [resolution, ratio] = sizes else {
                return None;
            };
            let each = |name, sizes: &Tensor| {
                let flat = sizes.reshape(&[sizes.numel()]);
                let waves = sinusoids(&flat, 256).to(dtype);
                let embedded = timestep_embedding(cx, name, &waves, width / 3);
                embedded.reshape(&[sizes.size(0), sizes.size(1) * (width / 3)])
            };
            let resolution = each("resolution_embedder", resolution);
            let ratio = each("aspect_ratio_embedder", ratio);
            Some(Tensor::cat(&resolution, &[&ratio], 1))
        });
        let context = caption_projection(cx, "caption_projection", text, width);
        let this = *self;
        hidden = blocks(cx).equal_stack(
            "transformer_blocks",
            self.layers,
            hidden,
            move |cx, hidden| this.block(cx, hidden, &context, &parts, &mask),
        );
        let table = cx.param("scale_shift_table", [2, width]).tensor();
        let ends = {
            let embedded = embedded.unsqueeze(1);
            table.unsqueeze(0).add(&embedded).chunk(2, 1)
        };
        hidden = hidden.layer_norm(None, None);
        if let [shift, scale] = &ends[..] {
            hidden = scaled_and_shifted(&hidden, scale, shift);
        }
        let (p, c) = (self.patch, self.out_channels);
        hidden = cx.linear("proj_out", &hidden, p * p * c, true);
        unpatchify(&hidden, grid, p, c)
    }

    /// `PatchEmbed.forward`: another grid than the stored one has positions of its own.
    fn patch_embed(&self, cx: &Cx, latents: &Tensor, grid: Grid) -> Tensor {
        let (width, tokens) = (self.hidden, grid.count());
        let side = self.side / self.patch;
        let stored = cx.buffer("pos_embed", [1, side * side, width], cx.env.weights);
        let conv = Conv::stride(self.patch);
        let mut x = cx.conv2d("proj", latents, width, self.patch, conv, true);
        x = x.reshape(&[latents.size(0), width, tokens]).transpose(1, 2);
        let positions = if grid.height == side && grid.width == side {
            stored
        } else {
            x.constant("float", &[1, tokens, width], DType::F32)
        };
        let dtype = x.dtype();
        x.add(&positions).pipe(|x| x.to(dtype))
    }

    /// `BasicTransformerBlock` with `ada_norm_single`.
    fn block(
        &self,
        cx: &Cx,
        hidden: &Tensor,
        context: &Tensor,
        parts: &Tensor,
        mask: &Tensor,
    ) -> Tensor {
        let width = self.hidden;
        let table = cx.param("scale_shift_table", [6, width]).tensor();
        let parts = {
            let parts = parts.reshape(&[hidden.size(0), 6, width]);
            table.unsqueeze(0).add(&parts).chunk(6, 1)
        };
        let [shift, scale, gate, ff_shift, ff_scale, ff_gate] = &parts[..] else {
            return hidden.clone();
        };
        let mut normed = hidden.layer_norm(None, None);
        normed = scaled_and_shifted(&normed, scale, shift);
        let mut attended = cx.module("attn1", |cx| {
            attention(cx, &normed, &normed, self.heads, true)
        });
        attended = gate.mul(&attended);
        let mut hidden = attended.add(hidden);
        normed = hidden.clone();
        attended = cx.module("attn2", |cx| {
            masked_attention(cx, &normed, context, self.heads, mask)
        });
        hidden = attended.add(&hidden);
        normed = hidden.layer_norm(None, None);
        normed = scaled_and_shifted(&normed, ff_scale, ff_shift);
        let mut ff_output = feed_forward(cx, "ff", &normed);
        ff_output = ff_gate.mul(&ff_output);
        ff_output.add(&hidden)
    }
}
