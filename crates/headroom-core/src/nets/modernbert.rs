//! ModernBERT (transformers/models/modernbert/modeling_modernbert.py): local attention, with global attention in every third layer.

use super::attention::{Eager, attend};
use super::decoder::{full_tables, rotated_in_fp32};
use super::encoder::Config;
use super::inputs::token_ids_and_labels;
use super::masks::{bidirectional_mask, sliding_window_mask};
use super::{Cx, ModelError, Net, Output, Sizes, TextEncoder};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct ModernBert {
    config: Config,
    /// Tokens that a layer with local attention sees to either side.
    reach: u64,
    /// The first and every n-th layer after it attend globally (`global_attn_every_n_layers`).
    global_every: u64,
    headless: bool,
}

/// The arguments of a layer besides its hidden states.
#[derive(Clone)]
struct LayerInputs {
    mask: AttentionMask,
    rotary: [Tensor; 2],
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    sizes.need("ffn")?;
    Ok(Box::new(ModernBert {
        config: Config::new(sizes)?,
        reach: sizes.or("window", 128) / 2,
        global_every: sizes.or("global_every", 3).max(1),
        headless: sizes.is_set("head=none"),
    }))
}

impl Net for ModernBert {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        token_ids_and_labels(cx, data)
    }

    fn text_encoder(&self) -> Option<&dyn TextEncoder> {
        Some(self)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, ..] = batch else {
            return Output::empty(cx);
        };
        let sequence = cx.module("model", |cx| self.model(cx, ids, batch.get(2)));
        let logits = if self.headless {
            sequence.clone()
        } else {
            self.mlm_head(cx, &sequence)
        };
        let loss = cx.module("loss", |_| {
            let classes = logits.size(-1);
            let wide = logits.to(DType::F32);
            let rows = wide.view(&[wide.numel() / classes.max(1), classes]);
            rows.cross_entropy(&labels.view(&[labels.numel()]))
        });
        Output {
            loss,
            held: vec![logits],
        }
    }
}

impl TextEncoder for ModernBert {
    fn encode(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        cx.module("model", |cx| self.model(cx, ids, padding))
    }

    fn sequence_logits(&self, cx: &Cx, hidden: &Tensor, classes: u64) -> Tensor {
        self.token_logits(cx, &hidden.select(1), classes)
    }

    fn token_logits(&self, cx: &Cx, hidden: &Tensor, classes: u64) -> Tensor {
        let head = self.prediction_head(cx, hidden);
        cx.linear("classifier", &head, classes, true)
    }
}

/// `nn.LayerNorm` without bias.
fn norm(cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
    cx.module(name, |cx| {
        let weight = cx.param("weight", [x.size(-1)]).tensor();
        x.layer_norm(Some(&weight), None)
    })
}

impl ModernBert {
    fn model(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let Config {
            layers,
            hidden,
            heads,
            vocab,
            ..
        } = self.config;
        let positions = ids
            .constant("arange", &[ids.size(1)], DType::I64)
            .unsqueeze(0);
        let embedded = cx.module("embeddings", |cx| {
            cx.input_embedding("tok_embeddings", ids, vocab, hidden)
                .pipe(|words| norm(cx, "norm", words))
        });
        let dtype = embedded.dtype();
        let tables = |names| full_tables(cx, &positions, hidden / heads, dtype, names);
        let global_mask = bidirectional_mask(cx, ids.size(1), padding, dtype);
        let local_mask = sliding_window_mask(cx, ids, padding, dtype, self.reach);
        let global = LayerInputs {
            mask: global_mask,
            rotary: tables(["full_inv_freq", "full_original_inv_freq"]),
        };
        let local = LayerInputs {
            mask: local_mask,
            rotary: tables(["sliding_inv_freq", "sliding_original_inv_freq"]),
        };
        let every = self.global_every;
        let layer = |state, i: usize| {
            let inputs = if (i as u64).is_multiple_of(every) {
                global.clone()
            } else {
                local.clone()
            };
            let this = *self;
            cx.layer("layers", i, state, move |cx, state| {
                let run = |hidden| this.layer(cx, hidden, &inputs, i == 0);
                state.iter().map(run).collect()
            })
        };
        // The first layer has no norm before its attention: the periods of equal layers begin after it.
        let first = layers.min(1);
        let state = (0..first as usize).fold(vec![embedded.clone()], layer);
        let last = cx.periodic_layers(layers - first, every, state, |state, i| layer(state, i + 1));
        let normed = last.first().map(|hidden| norm(cx, "final_norm", hidden));
        drop((global, local, positions));
        normed.unwrap_or(embedded)
    }

    /// `ModernBertEncoderLayer.forward`.
    fn layer(&self, cx: &Cx, input: &Tensor, inputs: &LayerInputs, first: bool) -> Tensor {
        let normed = if first {
            input.clone()
        } else {
            norm(cx, "attn_norm", input)
        };
        let (attended, weights) =
            normed.pipe(|normed| cx.module("attn", |cx| self.attention(cx, normed, inputs)));
        let hidden = input.add(&attended);
        let mlp_output = norm(cx, "mlp_norm", &hidden)
            .pipe(|normed| cx.module("mlp", |cx| self.mlp(cx, normed)));
        let out = hidden.add(&mlp_output);
        drop((attended, weights));
        out
    }

    fn attention(&self, cx: &Cx, x: &Tensor, inputs: &LayerInputs) -> (Tensor, Option<Tensor>) {
        let Config { hidden, heads, .. } = self.config;
        let (b, s) = (x.size(0), x.size(1));
        let qkv = cx
            .linear("Wqkv", x, 3 * hidden, false)
            .view(&[b, s, 3, heads, hidden / heads]);
        let Ok(parts) = <[Tensor; 3]>::try_from(qkv.unbind_at(2)) else {
            return (x.clone(), None);
        };
        let [mut q, mut k, v] = parts.map(|part| part.transpose(1, 2));
        let [rotated_q, rotated_k] = [&q, &k].map(|x| rotated_in_fp32(x, &inputs.rotary));
        let narrow_q = rotated_q.to(q.dtype());
        k = rotated_k.to(k.dtype());
        q = narrow_q;
        drop([rotated_q, rotated_k]);
        let eager = Eager { in_fp32: true };
        let (mut out, weights) = attend(cx, [&q, &k, &v], &inputs.mask, 0.0, eager);
        out = out.reshape(&[b, s, hidden]);
        out = cx.linear("Wo", &out, hidden, false);
        drop(qkv);
        (out, weights)
    }

    fn mlp(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let mut parts = cx.linear("Wi", x, 2 * self.config.ffn, false).chunk(2, -1);
        let (Some(gate), Some(input)) = (parts.pop(), parts.pop()) else {
            return x.clone();
        };
        let product = input.gelu().pipe(|input| input.mul(&gate));
        product.pipe(|product| cx.linear("Wo", product, self.config.hidden, false))
    }

    fn prediction_head(&self, cx: &Cx, x: &Tensor) -> Tensor {
        cx.module("head", |cx| {
            cx.linear("dense", x, self.config.hidden, false)
                .pipe(Tensor::gelu)
                .pipe(|x| norm(cx, "norm", x))
        })
    }

    /// `ModernBertPredictionHead` and the decoder, which is tied to the token embeddings.
    fn mlm_head(&self, cx: &Cx, sequence: &Tensor) -> Tensor {
        let Config { hidden, vocab, .. } = self.config;
        let x = self.prediction_head(cx, sequence);
        let path = ["model", "embeddings", "tok_embeddings"];
        let weight = cx.embedding_weight(&path, vocab, hidden);
        cx.module("decoder", |cx| {
            let bias = cx.param("bias", [vocab]).tensor();
            x.linear(&weight, Some(&bias))
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::nets::recorded::{Case, check, sizes, training};
    use headroom_scenario::{Optimizer, Precision};

    #[test]
    fn every_third_layer_attends_globally() {
        let sizes = sizes("hidden=768 layers=7 heads=12 ffn=1152 vocab=8000");
        let case = Case::new("modernbert", &sizes).batch(2, 512);
        let bf16 = training(Precision::Bf16, Optimizer::Sgd);
        check(&case.clone().trained(&bf16), 370_984_960);
        let amp = training(Precision::AmpBf16, Optimizer::Sgd);
        let mut padded = case.trained(&amp);
        padded.data.padding_mask = true;
        check(&padded, 566_920_704);
    }
}
