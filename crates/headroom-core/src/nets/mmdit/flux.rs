//! FLUX.1, and LongCat-Image, whose blocks are the same and which is conditioned on the time step alone.

use super::conditioning;
use super::joint::{Joint, last_norm};
use crate::nets::diffusion::{
    Pixels, double_and_single_blocks, flow_matching, mse_output, sinusoids, timestep_embedding,
};
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct Flux {
    pixels: Pixels,
    /// Pictures as large as the one that is made, which stand beside it (Kontext).
    references: u64,
    words: u64,
    channels: u64,
    layers: u64,
    single_layers: u64,
    heads: u64,
    head_dim: u64,
    context: u64,
    /// Width of the pooled text; 0 without one.
    pooled: u64,
    guidance: bool,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Flux {
        // Eight-fold reduced by the encoder and packed two by two.
        pixels: Pixels::still(16, sizes.or("img", 1024)),
        references: sizes.or("references", 0),
        words: sizes.or("ctx_len", 512),
        channels: sizes.or("channels", 64),
        layers: sizes.need("layers")?,
        single_layers: sizes.need("single_layers")?,
        heads: sizes.need("heads")?.max(1),
        head_dim: sizes.need("head_dim")?,
        context: sizes.need("ctx_dim")?,
        pooled: sizes.need("pooled")?,
        guidance: sizes.is_set("guidance"),
    }))
}

impl Net for Flux {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        let pixels = self.pixels.latents(data).count();
        let shown = pixels.saturating_mul(self.references);
        let make = |name, shape: &[u64]| cx.tape.empty(name, shape, cx.env.weights);
        vec![
            make("latents", &[n, pixels, self.channels]),
            make("reference", &[n, shown, self.channels]),
            make("encoder_hidden_states", &[n, self.words, self.context]),
            make("pooled_projections", &[n, self.pooled]),
            make("guidance", &[if self.guidance { n } else { 0 }]),
            make("txt_ids", &[self.words, 3]),
            make("img_ids", &[pixels.saturating_add(shown), 3]),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [
            latents,
            reference,
            text,
            pooled,
            guidance,
            text_ids,
            image_ids,
        ] = batch
        else {
            return Output::empty(cx);
        };
        let noised = flow_matching(latents);
        let width = self.heads.saturating_mul(self.head_dim);
        let shown = match self.references {
            0 => noised.input.clone(),
            _ => Tensor::cat(&noised.input, &[reference], 1),
        };
        let mut hidden = cx.linear("x_embedder", &shown, width, true);
        let timestep = noised.level.to(latents.dtype());
        let timestep = timestep.to(hidden.dtype()).mul_scalar();
        let mut steps = vec![("timestep_embedder", &timestep)];
        let guidance = guidance.to(hidden.dtype()).mul_scalar();
        if self.guidance {
            steps.push(("guidance_embedder", &guidance));
        }
        let emb = if self.pooled > 0 {
            conditioning(cx, &steps, pooled, width)
        } else {
            cx.module("time_embed", |cx| {
                let waves = sinusoids(&timestep, 256).to(hidden.dtype());
                timestep_embedding(cx, "timestep_embedder", &waves, width)
            })
        };
        let mut text = cx.linear("context_embedder", text, width, true);
        let ids = Tensor::cat(text_ids, &[image_ids], 0);
        let rows = [1, ids.size(0), 1, self.head_dim];
        let rotary = [(); 2].map(|()| ids.constant("rope", &rows, DType::F32));
        let joint = Joint {
            heads: self.heads,
            head_dim: self.head_dim,
            norms: true,
            rotary: Some(rotary),
            pre_only: false,
            dual: false,
            mask: None,
        };
        let mut state = vec![hidden, text];
        let [double, single] = double_and_single_blocks(cx, 0);
        for (outer, name, count, single) in [
            (double, "transformer_blocks", self.layers, false),
            (
                single,
                "single_transformer_blocks",
                self.single_layers,
                true,
            ),
        ] {
            let (joint, emb) = (joint.clone(), emb.clone());
            state = outer.equal_layers(name, count, state, move |cx, state| match state {
                [hidden, text] if single => joint.single(cx, hidden, text, &emb).to_vec(),
                [hidden, text] => joint.block(cx, hidden, text, &emb).to_vec(),
                _ => Vec::new(),
            });
        }
        let Ok([image, words]) = <[Tensor; 2]>::try_from(state) else {
            return Output::empty(cx);
        };
        hidden = last_norm(cx, &image, &emb);
        text = words;
        let out = cx.linear("proj_out", &hidden, self.channels, true);
        drop((hidden, text, image, shown));
        let out = match self.references {
            0 => out,
            _ => out.pipe(|out| out.narrow(1, latents.size(1))),
        };
        mse_output(cx, out, &noised.target)
    }
}
