//! U-Nets of diffusion: of latents with a text (diffusers/models/unets/unet_2d_condition.py), Stable Diffusion 1.5 and XL, and
//! of pixels without.

mod attention;
mod blocks;
mod encoders;
mod time;
mod unconditional;

pub(super) use attention::attention;
pub(super) use time::sinusoids;

use super::vision::place;
use super::{Build, Cx, ModelError, Net, Output, Sizes};
use crate::scenario::Data;
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};

pub(super) const FAMILIES: &[(&str, Build)] = &[
    ("unet", build),
    ("UNet2DConditionModel", build),
    ("unet2d", unconditional::build),
];

const GROUPS: u64 = 32;

#[derive(Clone, Debug)]
struct UNet {
    image: u64,
    channels: u64,
    context_length: u64,
    context: u64,
    widths: Vec<u64>,
    layers: u64,
    heads: Vec<u64>,
    /// Transformer blocks in each attention of a stage; none where a stage has no attention.
    depths: Vec<u64>,
    /// Projections around attention are linear layers, not convolutions.
    linear: bool,
    /// Transformer blocks in the middle.
    middle: u64,
    /// Width of the pooled text embedding, and of the waves of each of six numbers on sizes beside it (XL).
    added: Option<(u64, u64)>,
    /// What makes latents and states in each step, where they are not read from disk.
    encoders: Option<encoders::Encoders>,
}

fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let widths = sizes.list("block_out")?.to_vec();
    let per_stage = |name: &str, default: Vec<u64>| match sizes.list(name) {
        Ok([one]) => vec![*one; widths.len()],
        Ok(list) => list.to_vec(),
        Err(_) => default,
    };
    let mut plain = vec![1; widths.len()];
    if let Some(last) = plain.last_mut() {
        *last = 0;
    }
    let attends = per_stage("cross", plain);
    let deep = per_stage("depth", vec![1; widths.len()]);
    let middle = deep.last().copied().unwrap_or(1);
    let depths = deep
        .iter()
        .zip(&attends)
        .map(|(depth, attends)| depth * attends.min(&1))
        .collect();
    Ok(Box::new(UNet {
        image: sizes.need("img")?,
        channels: sizes.or("channels", 4),
        context_length: sizes.or("ctx_len", 77),
        context: sizes.need("ctx_dim")?,
        layers: sizes.or("layers_per_block", 2),
        heads: per_stage("heads", vec![8; widths.len()]),
        depths,
        linear: sizes.is_set("linear"),
        added: sizes.get("add_embed").map(|width| {
            let each = sizes.or("time_ids", 256);
            (width.saturating_sub(6 * each), each)
        }),
        middle,
        widths,
        encoders: encoders::Encoders::asked(sizes)?,
    }))
}

impl Net for UNet {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let samples = data.micro_batch;
        let weights = cx.env.weights;
        let shape = [samples, self.channels, self.image, self.image];
        let make = |name, shape: &[u64], dtype| cx.tape.empty(name, shape, dtype);
        let mut all = match &self.encoders {
            Some(encoders) => encoders.batch(cx, samples, self.image, self.context_length),
            None => {
                vec![
                    make("sample", &shape, weights),
                    make("target", &shape, weights),
                ]
            }
        };
        all.push(make("timestep", &[samples], DType::I64));
        if self.encoders.is_none() {
            let states = [samples, self.context_length, self.context];
            all.push(make("encoder_hidden_states", &states, weights));
        }
        if let Some((pooled, _)) = self.added {
            all.push(make("text_embeds", &[samples, pooled], weights));
            all.push(make("time_ids", &[samples, 6], weights));
        }
        all
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let Some(([sample, target, context], timestep, added)) = self.read(cx, batch) else {
            return Output::empty(cx);
        };
        let predicted = fix_order(cx, |cx| self.model(cx, &sample, timestep, &context, added));
        let loss = cx.within("loss", |_| {
            let target = target.to(DType::F32);
            predicted
                .to(DType::F32)
                .then(|predicted| predicted.mse_loss(&target))
        });
        Output {
            loss,
            held: vec![predicted],
        }
    }
}

/// The model's own part of forward, which gives its parameters the order of `parameters()` where it makes them.
fn fix_order(cx: &Cx, model: impl FnOnce(&Cx) -> Tensor) -> Tensor {
    let known = cx.tape.declared();
    let predicted = model(&cx.checkpointing_in_any_mode());
    if cx.tape.declared() > known {
        cx.tape.arrange_params(place_in_model);
    }
    predicted
}

impl UNet {
    /// Noisy latents, the noise that is in them and the text's states; the time step, and what is added to it.
    fn read<'a>(
        &self,
        cx: &Cx,
        batch: &'a [Tensor],
    ) -> Option<([Tensor; 3], &'a Tensor, &'a [Tensor])> {
        let Some(encoders) = &self.encoders else {
            let [sample, target, timestep, context, added @ ..] = batch else {
                return None;
            };
            let all = [sample, target, context].map(Clone::clone);
            return Some((all, timestep, added));
        };
        let rest = 1 + if self.added.is_some() { 2 } else { 0 };
        let (given, rest) = batch.split_at(batch.len().saturating_sub(rest));
        let (timestep, added) = rest.split_first()?;
        let (latents, context) = encoders.encode(cx, given)?;
        let drawn = |name| latents.constant(name, latents.shape(), latents.dtype());
        Some((
            [drawn("add_noise"), drawn("randn"), context],
            timestep,
            added,
        ))
    }

    /// How one stage is made.
    fn stage(&self, i: usize) -> blocks::Stage {
        let at = |list: &[u64], default| list.get(i).copied().unwrap_or(default);
        blocks::Stage {
            width: at(&self.widths, 32).max(1),
            heads: at(&self.heads, 8).max(1),
            depth: at(&self.depths, 0),
            linear: self.linear,
            padding: 1,
        }
    }

    fn model(
        &self,
        cx: &Cx,
        image: &Tensor,
        timestep: &Tensor,
        context: &Tensor,
        added: &[Tensor],
    ) -> Tensor {
        let first = self.widths.first().copied().unwrap_or(32);
        let waves = self.added.map_or(256, |(_, waves)| waves);
        let [embedding, _waves] = time::embed(cx, timestep, first, added, waves, image.dtype());
        let mut sample = cx.conv2d("conv_in", image, first, 3, Conv::stride(1).padded(1), true);
        let mut skipped = vec![sample.clone()];
        let stages = self.widths.len();
        for i in 0..stages {
            let down = i + 1 < stages;
            sample = cx.within("down_blocks", |cx| {
                cx.within(place(i), |cx| {
                    let stage = self.stage(i);
                    stage.down(
                        cx,
                        &sample,
                        &embedding,
                        Some(context),
                        self.layers,
                        down,
                        &mut skipped,
                    )
                })
            });
        }
        sample = cx.within("mid_block", |cx| {
            let mut middle = self.stage(stages.saturating_sub(1));
            middle.depth = self.middle;
            middle.middle(cx, &sample, &embedding, Some(context))
        });
        // What the last stage took is held to the end, as the loop's variable holds it.
        let mut taken = Vec::new();
        for i in 0..stages {
            let up = i + 1 < stages;
            let kept = skipped.len().saturating_sub(self.layers as usize + 1);
            let before = std::mem::replace(&mut taken, skipped.split_off(kept));
            drop(before);
            sample = cx.within("up_blocks", |cx| {
                cx.within(place(i), |cx| {
                    let stage = self.stage(stages - 1 - i);
                    stage.up(cx, &sample, &embedding, Some(context), &taken, up)
                })
            });
        }
        sample = cx.group_norm("conv_norm_out", &sample, GROUPS);
        sample = sample.silu();
        sample = cx.conv2d(
            "conv_out",
            &sample,
            self.channels,
            3,
            Conv::stride(1).padded(1),
            true,
        );
        drop(taken);
        sample
    }
}

/// Where `parameters()` lists a module: what goes up before the middle, attention before what it follows.
fn place_in_model(path: &str) -> (usize, usize, usize) {
    let at = |names: &[&str], name: &str| {
        let found = names.iter().position(|it| *it == name);
        found.unwrap_or(names.len())
    };
    let mut parts = path.split('.');
    let mut next = || parts.next().unwrap_or_default();
    let first = next();
    let section = at(
        &[
            "conv_in",
            "time_embedding",
            "add_embedding",
            "down_blocks",
            "up_blocks",
            "mid_block",
            "conv_norm_out",
        ],
        first,
    );
    let index = if first == "mid_block" {
        0
    } else {
        next().parse().unwrap_or(0)
    };
    (section, index, at(&["attentions", "resnets"], next()))
}

impl Cx {
    /// `nn.GroupNorm`.
    pub fn group_norm(&self, name: &'static str, x: &Tensor, groups: u64) -> Tensor {
        self.within(name, |cx| {
            let weight = cx.param("weight", [x.size(1)]).tensor();
            let bias = cx.param("bias", [x.size(1)]).tensor();
            x.group_norm(groups, &weight, &bias)
        })
    }
}
