//! Chroma (diffusers/models/transformers/transformer_chroma.py): FLUX's blocks, whose shifts, scales and gates come from one small
//! network for all of them, and a mask over the text's padding.

use super::joint::Joint;
use crate::nets::diffusion::{
    Pixels, double_and_single_blocks, flow_matching, mse_output, scaled_and_shifted, sinusoids,
    timestep_embedding,
};
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct Chroma {
    pixels: Pixels,
    words: u64,
    channels: u64,
    layers: u64,
    single_layers: u64,
    heads: u64,
    head_dim: u64,
    context: u64,
    masked: bool,
}

/// `approximator_num_channels`, its width and its layers.
const WAVES: u64 = 64;
const INNER: u64 = 5120;
const DEPTH: usize = 5;

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Chroma {
        pixels: Pixels::still(16, sizes.or("img", 1024)),
        words: sizes.or("ctx_len", 512),
        channels: sizes.or("channels", 64),
        layers: sizes.need("layers")?,
        single_layers: sizes.need("single_layers")?,
        heads: sizes.need("heads")?.max(1),
        head_dim: sizes.need("head_dim")?,
        context: sizes.or("ctx_dim", 4096),
        masked: sizes.or("masked", 1) != 0,
    }))
}

impl Net for Chroma {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        let pixels = self.pixels.latents(data).count();
        let make = |name, shape: &[u64]| cx.tape.empty(name, shape, cx.env.weights);
        let mut all = vec![
            make("latents", &[n, pixels, self.channels]),
            make("encoder_hidden_states", &[n, self.words, self.context]),
            make("txt_ids", &[self.words, 3]),
            make("img_ids", &[pixels, 3]),
        ];
        if self.masked {
            let shape = [n, self.words.saturating_add(pixels)];
            all.push(cx.tape.empty("attention_mask", shape, DType::Bool));
        }
        all
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [latents, text, text_ids, image_ids, mask @ ..] = batch else {
            return Output::empty(cx);
        };
        let noised = flow_matching(latents);
        let width = self.heads.saturating_mul(self.head_dim);
        let hidden = cx.linear("x_embedder", &noised.input, width, true);
        let timestep = {
            let level = noised.level.to(latents.dtype());
            level.to(hidden.dtype()).mul_scalar()
        };
        let given = self.conditions(cx, &timestep);
        let pooled = cx.module("distilled_guidance_layer", |cx| {
            approximator(cx, &given, width)
        });
        let text = cx.linear("context_embedder", text, width, true);
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
            mask: mask.first().cloned(),
        };
        let [outer, single] = double_and_single_blocks(cx, 0);
        let layers = self.layers;
        let state = outer.periodic_layers(layers, 1, vec![hidden, text], |state, i| {
            // Six parts for the image and six for the text, outside what is checkpointed.
            let own = {
                let parts = [(); 2].map(|()| pooled.narrow(1, 6));
                Tensor::cat(&parts[0], &[&parts[1]], 1)
            };
            let joint = joint.clone();
            outer.of_block(i as u64, layers).layer(
                "transformer_blocks",
                i,
                state,
                move |cx, state| match state {
                    [hidden, text] => joint.block(cx, hidden, text, &own).to_vec(),
                    _ => Vec::new(),
                },
            )
        });
        let Ok([hidden, text]) = <[Tensor; 2]>::try_from(state) else {
            return Output::empty(cx);
        };
        let both = Tensor::cat(&text, &[&hidden], 1);
        drop(hidden);
        // What is checkpointed is not given the mask.
        let checkpoints = cx.recomputes();
        let joint = Joint {
            mask: joint.mask.filter(|_| !checkpoints),
            ..joint
        };
        let layers = self.single_layers;
        let state = single.periodic_layers(layers, 1, vec![both], |state, i| {
            let own = pooled.narrow(1, 3);
            let joint = joint.clone();
            single.of_block(i as u64, layers).layer(
                "single_transformer_blocks",
                i,
                state,
                move |cx, state| state.iter().map(|x| joint.stream(cx, x, &own)).collect(),
            )
        });
        let Some(both) = state.into_iter().next() else {
            return Output::empty(cx);
        };
        let mut hidden = both.narrow(1, latents.size(1));
        drop((both, text));
        let ends = pooled.narrow(1, 2);
        hidden = {
            let ends = ends.reshape(&[ends.size(0), 2 * width]).chunk(2, 1);
            let normed = hidden.layer_norm(None, None);
            match &ends[..] {
                [shift, scale] => {
                    scaled_and_shifted(&normed, &scale.unsqueeze(1), &shift.unsqueeze(1))
                }
                _ => normed,
            }
        };
        let out = cx.linear("proj_out", &hidden, self.channels, true);
        drop(hidden);
        mse_output(cx, out, &noised.target)
    }
}

impl Chroma {
    /// `ChromaCombinedTimestepTextProjEmbeddings`: waves of the time step, of no guidance and of each part's place.
    fn conditions(&self, cx: &Cx, timestep: &Tensor) -> Tensor {
        let places = 3 * self.single_layers + 12 * self.layers + 2;
        let (n, dtype) = (timestep.size(0), timestep.dtype());
        cx.module("time_text_embed", |cx| {
            let table = cx.buffer("mod_proj", [places, WAVES / 2], cx.env.weights);
            let step = sinusoids(timestep, WAVES / 4).to(dtype);
            let guidance = step.constant("to", &[n, WAVES / 4], dtype);
            let table = table.constant("repeat", &[n, places, WAVES / 2], dtype);
            let both = {
                let both = Tensor::cat(&step, &[&guidance], 1);
                both.constant("repeat", &[n, places, WAVES / 2], dtype)
            };
            Tensor::cat(&both, &[&table], -1)
        })
    }
}

/// `ChromaApproximator`.
fn approximator(cx: &Cx, x: &Tensor, width: u64) -> Tensor {
    let mut x = cx.linear("in_proj", x, INNER, true);
    for name in NAMES {
        let normed = cx.module("norms", |cx| cx.fused_rms_norm(name, &x));
        let more = cx.module("layers", |cx| timestep_embedding(cx, name, &normed, INNER));
        drop(normed);
        x = x.add(&more);
    }
    cx.linear("out_proj", &x, width, true)
}

const NAMES: [&str; DEPTH] = ["0", "1", "2", "3", "4"];
