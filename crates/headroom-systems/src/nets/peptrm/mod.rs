//! pepTRM, a tiny recursive model that reads peptides from spectra (jasegehring/pepTRM at 143716f: `src/model/encoder.py`,
//! `decoder.py`, `layers.py`, `src/training/losses_old_gaussian_only.py`).

mod loss;

use headroom_base::DType;
use headroom_core::network::Tensor;
use headroom_core::network::parts::{MOST_RUNS, at_most};
use headroom_core::network::{Cx, ModelError, Net, Output, Region, Sizes};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct PepTrm {
    hidden: u64,
    heads: u64,
    encoder_layers: u64,
    decoder_layers: u64,
    /// Peaks of a spectrum and positions of a peptide: every sample is padded to both.
    peaks: u64,
    places: u64,
    vocab: u64,
    /// Supervision steps, and latent steps in each.
    supervision: u64,
    latent: u64,
    /// How many of the last supervision steps gradients flow through; all where it is zero.
    horizon: u64,
    /// A checkpointed segment is one supervision step instead of one latent step.
    whole_steps: bool,
    /// Peaks that the spectrum loss renders, and bins it renders them on; none without that loss.
    rendered: u64,
    bins: u64,
    precursor: bool,
}

pub(super) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("hidden")?;
    if hidden < 64 {
        return Err(ModelError::TooSmall {
            name: "hidden",
            value: hidden,
            least: 64,
        });
    }
    let places = sizes.need("places")?;
    let (supervision, latent) = (
        sizes.need("supervision_steps")?,
        sizes.need("latent_steps")?,
    );
    let layers = sizes.need("decoder_layers")?;
    let runs = supervision * (latent + 1) * layers;
    at_most(
        "supervision_steps × (latent_steps + 1) × decoder_layers",
        runs,
        MOST_RUNS,
    )?;
    Ok(Box::new(PepTrm {
        hidden,
        heads: sizes.need("heads")?.max(1),
        encoder_layers: sizes.need("encoder_layers")?,
        decoder_layers: layers,
        peaks: sizes.need("peaks")?,
        places,
        vocab: sizes.need("vocab")?,
        supervision,
        latent,
        horizon: sizes.or("horizon", 0),
        whole_steps: sizes.is_set("checkpoint_supervision"),
        // One peak for each cut between residues, of which the first and the last place hold none, and ion type.
        rendered: places.saturating_sub(3) * sizes.or("ion_types", 4),
        bins: sizes.or("bins", 0),
        precursor: sizes.is_set("precursor"),
    }))
}

impl Net for PepTrm {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let (b, float) = (data.micro_batch, cx.env.weights);
        vec![
            cx.tape.empty("spectrum_masses", [b, self.peaks], float),
            cx.tape
                .empty("spectrum_intensities", [b, self.peaks], float),
            cx.tape.empty("spectrum_mask", [b, self.peaks], DType::Bool),
            cx.tape.empty("precursor_mass", [b], float),
            cx.tape.empty("precursor_charge", [b], DType::I64),
            cx.tape.empty("sequence", [b, self.places], DType::I64),
            cx.tape
                .empty("sequence_mask", [b, self.places], DType::Bool),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [masses, intensities, mask, precursor, charge, target, _] = batch else {
            return Output::empty(cx);
        };
        let (encoded, mask) = cx.module("encoder", |cx| {
            self.encode(cx, [masses, intensities], mask, [precursor, charge])
        });
        let (steps, latent) = cx.module("recursive_core", |cx| self.refine(cx, &encoded, &mask));
        let Some((first, rest)) = steps.split_first() else {
            return Output::empty(cx);
        };
        let listed: Vec<Tensor> = steps.iter().map(|logits| logits.unsqueeze(0)).collect();
        let rest_listed: Vec<&Tensor> = listed.iter().skip(1).collect();
        let stacked = Tensor::cat(&first.unsqueeze(0), &rest_listed, 0);
        let count = rest.len() + 1;
        drop(rest_listed);
        drop((listed, steps));
        let loss = cx.module("loss", |cx| {
            self.loss(cx, &stacked, count, [masses, intensities], target)
        });
        Output {
            loss,
            held: vec![stacked, latent],
        }
    }
}

/// The encoder of spectra.
impl PepTrm {
    fn encode(
        &self,
        cx: &Cx,
        [masses, intensities]: [&Tensor; 2],
        mask: &Tensor,
        [precursor, charge]: [&Tensor; 2],
    ) -> (Tensor, Tensor) {
        const INTENSITY: u64 = 32;
        const CHARGE: u64 = 16;
        const CHARGES: u64 = 7;
        let b = masses.size(0);
        let peaks = cx.module("peak_encoder", |cx| {
            let logs = intensities.add_scalar().pipe(Tensor::log).unsqueeze(-1);
            let masses = cx.module("mass_embedding", |cx| {
                sinusoids(cx, masses, self.hidden - INTENSITY)
            });
            let intensities = cx.module("intensity_encoder", |cx| {
                let up = cx.list_item("layers", 0, |cx| {
                    cx.linear("linear", &logs, INTENSITY, true)
                });
                let up = up.pipe(Tensor::relu);
                cx.list_item("layers", 2, |cx| cx.linear("linear", &up, INTENSITY, true))
            });
            Tensor::cat(&masses, &[&intensities], -1)
        });
        let precursor = cx.module("precursor_encoder", |cx| {
            let mass = cx.module("mass_embedding", |cx| {
                sinusoids(cx, precursor, self.hidden - CHARGE)
            });
            let charge = cx.embedding("charge_embedding", charge, CHARGES, CHARGE);
            Tensor::cat(&mass, &[&charge], -1)
        });
        let mut token = cx
            .param("precursor_token", [1, 1, self.hidden])
            .tensor()
            .repeated(&[b, 1, self.hidden]);
        token = token.add(&precursor.unsqueeze(1));
        let mut x = Tensor::cat(&token, &[&peaks], 1);
        drop((token, peaks, precursor));
        let whole = mask.constant("cat", &[b, self.peaks.saturating_add(1)], DType::Bool);
        for i in 0..self.encoder_layers {
            x = cx.list_item("layers", i as usize, |cx| {
                let attended = cx.layer_norm("norm1", &x).pipe(|normed| {
                    cx.module("self_attn", |cx| {
                        self.attention(cx, normed, normed, Some(&whole))
                    })
                });
                let x = x.add(&cx.dropout(&attended, DROPOUT));
                self.feed_forward(cx, "norm2", &x)
            });
        }
        (cx.layer_norm("norm", &x), whole)
    }

    fn feed_forward(&self, cx: &Cx, norm: &'static str, x: &Tensor) -> Tensor {
        let normed = cx.layer_norm(norm, x);
        let mlp_out = cx.module("ff", |cx| {
            let up = cx.list_item("net", 0, |cx| {
                cx.linear("linear", &normed, 4 * self.hidden, true)
            });
            let active = up.gelu();
            let dropped = cx.dropout(&active, DROPOUT);
            let down = cx.list_item("net", 3, |cx| {
                cx.linear("linear", &dropped, self.hidden, true)
            });
            cx.dropout(&down, DROPOUT)
        });
        drop(normed);
        cx.dropout(&mlp_out, DROPOUT).pipe(|dropped| x.add(dropped))
    }

    /// `MultiHeadAttention.forward`: scores, mask, softmax, dropout one by one.
    fn attention(&self, cx: &Cx, q: &Tensor, context: &Tensor, mask: Option<&Tensor>) -> Tensor {
        let (b, n, d) = (q.size(0), q.size(1), self.hidden / self.heads);
        let heads = |name, x: &Tensor| {
            cx.linear(name, x, self.hidden, true)
                .view(&[b, x.size(1), self.heads, d])
                .transpose(1, 2)
        };
        let q = heads("q_proj", q);
        let k = heads("k_proj", context);
        let v = heads("v_proj", context);
        let mut scores = q.matmul(&k.transpose(-2, -1)).pipe(Tensor::mul_scalar);
        if let Some(mask) = mask {
            let outside = mask.constant("bitwise_not", &[b, 1, 1, mask.size(1)], DType::Bool);
            scores = scores.masked_fill(&outside);
        }
        let mut weights = scores.softmax(None);
        weights = cx.dropout(&weights, DROPOUT);
        let mut out = weights.matmul(&v);
        out = out.transpose(1, 2).contiguous().view(&[b, n, self.hidden]);
        cx.linear("out_proj", &out, self.hidden, true)
    }
}

/// The recursive core: a few layers applied again and again.
impl PepTrm {
    /// `RecursiveCore.forward`: the logits of every supervision step, and the last latent state.
    fn refine(&self, cx: &Cx, encoded: &Tensor, mask: &Tensor) -> (Vec<Tensor>, Tensor) {
        let b = encoded.size(0);
        let (mut logits, mut latent) = cx.module("decoder", |cx| {
            // Created by the constructor, unused by every step.
            cx.module("token_embedding", |cx| {
                cx.param("weight", [self.vocab, self.hidden])
            });
            let start = |name, width: u64| {
                cx.param(name, [1, self.places, width])
                    .tensor()
                    .expand(&[b, self.places, width])
                    .cloned()
            };
            let logits = start("initial_logits", self.vocab);
            (logits, start("initial_z", self.hidden))
        });
        let mut all = Vec::new();
        for step in 0..self.supervision {
            let outside = self.horizon > 0 && step + self.horizon < self.supervision;
            let state = vec![logits, latent];
            let state = if outside {
                // The state is detached.
                let state: Vec<Tensor> = state.iter().map(Tensor::detach).collect();
                cx.tape
                    .clone()
                    .no_grad(|| self.supervision_step(cx, state, encoded, mask))
            } else if self.whole_steps {
                let (this, encoded, mask) = (*self, encoded.clone(), mask.clone());
                cx.block(Region::Block, state, move |cx, state| {
                    this.supervision_step(cx, state, &encoded, &mask)
                })
            } else {
                self.supervision_step(cx, state, encoded, mask)
            };
            let mut state = state.into_iter();
            let (Some(next_logits), Some(next_latent)) = (state.next(), state.next()) else {
                return (all, encoded.clone());
            };
            (logits, latent) = (next_logits, next_latent);
            if !outside {
                all.push(logits.clone());
            }
        }
        (all, latent)
    }

    fn supervision_step(
        &self,
        cx: &Cx,
        state: Vec<Tensor>,
        encoded: &Tensor,
        mask: &Tensor,
    ) -> Vec<Tensor> {
        let mut state = state.into_iter();
        let (Some(logits), Some(mut latent)) = (state.next(), state.next()) else {
            return Vec::new();
        };
        let probable = logits.softmax(None);
        drop(logits);
        for _ in 0..self.latent {
            latent = if self.whole_steps {
                self.latent_step(cx, &probable, &latent, encoded, mask)
            } else {
                let (this, encoded, mask) = (*self, encoded.clone(), mask.clone());
                let inputs = vec![probable.clone(), latent];
                let outputs =
                    cx.block(Region::Block, inputs, move |cx, inputs| match &inputs[..] {
                        [probable, latent] => {
                            vec![this.latent_step(cx, probable, latent, &encoded, &mask)]
                        }
                        _ => Vec::new(),
                    });
                let Some(next) = outputs.into_iter().next() else {
                    return Vec::new();
                };
                next
            };
        }
        let logits = cx.module("decoder", |cx| {
            let mut x = self.combined(cx, &probable, &latent);
            for i in 0..self.decoder_layers {
                x = cx.list_item("layers", i as usize, |cx| {
                    self.decoder_layer(cx, &x, &x, None)
                });
            }
            x = cx.layer_norm("norm", &x);
            cx.linear("output_head", &x, self.vocab, true)
        });
        vec![logits, latent]
    }

    fn latent_step(
        &self,
        cx: &Cx,
        probable: &Tensor,
        latent: &Tensor,
        encoded: &Tensor,
        mask: &Tensor,
    ) -> Tensor {
        cx.module("decoder", |cx| {
            let mut x = self.combined(cx, probable, latent);
            for i in 0..self.decoder_layers {
                x = cx.list_item("layers", i as usize, |cx| {
                    self.decoder_layer(cx, &x, encoded, Some(mask))
                });
            }
            cx.layer_norm("norm", &x).pipe(|normed| normed.add(latent))
        })
    }

    /// The input of each step: the soft sequence, the latent state and the positions.
    fn combined(&self, cx: &Cx, probable: &Tensor, latent: &Tensor) -> Tensor {
        let soft = cx.linear("soft_embed_proj", probable, self.hidden, true);
        let positions = latent.constant("arange", &[self.places], DType::I64);
        let places = cx.embedding("position_embedding", &positions, self.places, self.hidden);
        soft.add(latent).pipe(|sum| sum.add(&places))
    }

    fn decoder_layer(
        &self,
        cx: &Cx,
        x: &Tensor,
        context: &Tensor,
        mask: Option<&Tensor>,
    ) -> Tensor {
        let attended = cx
            .layer_norm("norm1", x)
            .pipe(|normed| cx.module("self_attn", |cx| self.attention(cx, normed, normed, None)));
        let mut x = cx
            .dropout(&attended, DROPOUT)
            .pipe(|dropped| x.add(dropped));
        drop(attended);
        let crossed = cx
            .layer_norm("norm2", &x)
            .pipe(|normed| cx.module("cross_attn", |cx| self.attention(cx, normed, context, mask)));
        x = cx.dropout(&crossed, DROPOUT).pipe(|dropped| x.add(dropped));
        drop(crossed);
        self.feed_forward(cx, "norm3", &x)
    }
}

/// `SinusoidalMassEmbedding.forward`.
fn sinusoids(cx: &Cx, masses: &Tensor, width: u64) -> Tensor {
    let frequencies = cx.buffer("freqs", [width / 2], DType::F32);
    let scale = cx.param("scale", [width]).tensor();
    let angles = masses
        .mul_scalar()
        .unsqueeze(-1)
        .pipe(|masses| masses.mul(&frequencies))
        .pipe(Tensor::mul_scalar)
        .pipe(Tensor::mul_scalar);
    let (sines, cosines) = (angles.sin(), angles.cos());
    let both = Tensor::cat(&sines, &[&cosines], -1);
    drop((sines, cosines));
    both.mul(&scale)
}

/// `TRMConfig.dropout`.
const DROPOUT: f64 = 0.1;
