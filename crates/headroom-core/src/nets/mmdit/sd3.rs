//! Stable Diffusion 3 and 3.5.

use super::conditioning;
use super::joint::{Joint, last_norm};
use crate::nets::diffusion::{Grid, Pixels, blocks, flow_matching, unpatchify, weighted_output};
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::Conv;
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct Sd3 {
    pixels: Pixels,
    patch: u64,
    channels: u64,
    layers: u64,
    heads: u64,
    head_dim: u64,
    words: u64,
    context: u64,
    pooled: u64,
    /// Side of the grid of positions that is stored.
    positions: u64,
    norms: bool,
    /// How many of the first blocks have a second attention.
    dual: u64,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Sd3 {
        pixels: Pixels::still(8, sizes.or("img", 128).saturating_mul(8)),
        patch: sizes.or("patch", 2).max(1),
        channels: sizes.or("channels", 16),
        layers: sizes.need("layers")?,
        heads: sizes.need("heads")?.max(1),
        head_dim: sizes.need("head_dim")?,
        // 77 tokens of CLIP and 256 of T5.
        words: sizes.or("ctx_len", 333),
        context: sizes.need("ctx_dim")?,
        pooled: sizes.need("pooled")?,
        positions: sizes.or("pos", 96),
        norms: sizes.is_set("qk_norm"),
        dual: sizes.or("dual_layers", 0),
    }))
}

impl Net for Sd3 {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        let make = |name, shape: &[u64]| cx.tape.empty(name, shape, cx.env.weights);
        let Grid { height, width, .. } = self.pixels.latents(data);
        vec![
            make("latents", &[n, self.channels, height, width]),
            make("encoder_hidden_states", &[n, self.words, self.context]),
            make("pooled_projections", &[n, self.pooled]),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [latents, text, pooled] = batch else {
            return Output::empty(cx);
        };
        let noised = flow_matching(latents);
        let timestep = noised.level.mul_scalar();
        let width = self.heads.saturating_mul(self.head_dim);
        let grid = Grid {
            frames: 1,
            height: latents.size(2),
            width: latents.size(3),
        };
        let grid = grid.patches(1, self.patch);
        let (n, tokens) = (latents.size(0), grid.count());
        let hidden = cx.module("pos_embed", |cx| {
            let grid = self.positions.saturating_mul(self.positions);
            let dtype = cx.env.weights;
            cx.buffer("pos_embed", [1, grid, width], dtype);
            let conv = Conv::stride(self.patch);
            let mut x = cx.conv2d("proj", &noised.input, width, self.patch, conv, true);
            x = x.reshape(&[n, width, tokens]).transpose(1, 2);
            let cropped = x.constant("crop", &[1, tokens, width], dtype);
            let dtype = x.dtype();
            x.add(&cropped).pipe(|x| x.to(dtype))
        });
        let emb = conditioning(cx, &[("timestep_embedder", &timestep)], pooled, width);
        let text = cx.linear("context_embedder", text, width, true);
        let this = *self;
        let passed = emb.clone();
        let state = blocks(cx).layers(
            "transformer_blocks",
            self.layers,
            vec![hidden, text],
            move |cx, state, i| {
                let joint = Joint {
                    heads: this.heads,
                    head_dim: this.head_dim,
                    norms: this.norms,
                    rotary: None,
                    pre_only: i as u64 + 1 == this.layers,
                    dual: (i as u64) < this.dual,
                    mask: None,
                };
                match state {
                    [hidden, text] => joint.block(cx, hidden, text, &passed).to_vec(),
                    _ => Vec::new(),
                }
            },
        );
        let Some(mut hidden) = state.into_iter().next() else {
            return Output::empty(cx);
        };
        hidden = last_norm(cx, &hidden, &emb);
        let (p, c) = (self.patch, self.channels);
        hidden = cx.linear("proj_out", &hidden, p * p * c, true);
        hidden = unpatchify(&hidden, grid, p, c);
        weighted_output(cx, hidden, &noised)
    }
}
