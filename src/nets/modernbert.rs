//! ModernBERT (transformers/models/modernbert/modeling_modernbert.py): windows with a whole view every third layer.

use super::attention::{Eager, attend};
use super::bidirectional::{bidirectional_mask, windowed_mask};
use super::decoder::{plain_tables, wide_turned};
use super::inputs::token_ids_and_labels;
use super::{Cx, ModelError, Net, Output, Sizes};
use crate::scenario::Data;
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};

#[derive(Clone, Copy, Debug)]
struct ModernBert {
    headless: bool,
    layers: u64,
    hidden: u64,
    heads: u64,
    ffn: u64,
    vocab: u64,
    /// How far a windowed layer sees to either side.
    reach: u64,
    /// The first and every n-th layer after it see everything.
    full_every: u64,
}

/// What a layer is given.
#[derive(Clone)]
struct Shared {
    mask: AttentionMask,
    rope: [Tensor; 2],
}

pub fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("hidden")?;
    Ok(Box::new(ModernBert {
        headless: sizes.is_set("head=none"),
        layers: sizes.need("layers")?,
        hidden,
        heads: sizes.need("heads")?.max(1),
        ffn: sizes.need("ffn")?,
        vocab: sizes.need("vocab")?,
        reach: sizes.or("window", 128) / 2,
        full_every: sizes.or("global_every", 3).max(1),
    }))
}

impl Net for ModernBert {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        token_ids_and_labels(cx, data)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, ..] = batch else {
            return Output::empty(cx);
        };
        let sequence = cx.within("model", |cx| self.model(cx, ids, batch.get(2)));
        let logits = if self.headless {
            sequence.clone()
        } else {
            self.tokens(cx, &sequence)
        };
        let loss = cx.within("loss", |_| {
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

/// `nn.LayerNorm` without bias.
fn norm(cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
    cx.within(name, |cx| {
        let weight = cx.param("weight", [x.size(-1)]).tensor();
        x.layer_norm(Some(&weight), None)
    })
}

impl ModernBert {
    fn model(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let positions = ids
            .constant("arange", &[ids.size(1)], DType::I64)
            .unsqueeze(0);
        let embedded = cx.within("embeddings", |cx| {
            cx.input_embedding("tok_embeddings", ids, self.vocab, self.hidden)
                .then(|found| norm(cx, "norm", found))
        });
        let whole = bidirectional_mask(cx, ids.size(1), padding, embedded.dtype());
        let windowed = windowed_mask(cx, ids, padding, embedded.dtype(), self.reach);
        let dim = self.hidden / self.heads;
        let tables = |names| plain_tables(cx, &positions, dim, embedded.dtype(), names);
        let ropes = [
            tables(["full_inv_freq", "full_original_inv_freq"]),
            tables(["sliding_inv_freq", "sliding_original_inv_freq"]),
        ];
        let every = self.full_every;
        let layer = |state, i: usize| {
            let sees_all = (i as u64).is_multiple_of(every);
            let shared = Shared {
                mask: if sees_all { &whole } else { &windowed }.clone(),
                rope: ropes[usize::from(!sees_all)].clone(),
            };
            let this = *self;
            cx.layer("layers", i, state, move |cx, state| {
                let run = |hidden| this.layer(cx, hidden, &shared, i == 0);
                state.iter().map(run).collect()
            })
        };
        // The first layer has no norm before its attention: the rows of equal layers begin after it.
        let state = if self.layers == 0 {
            vec![embedded.clone()]
        } else {
            layer(vec![embedded.clone()], 0)
        };
        let rest = self.layers.saturating_sub(1);
        let last = cx.periodic_layers(rest, every, state, |state, i| layer(state, i + 1));
        let normed = last.first().map(|hidden| norm(cx, "final_norm", hidden));
        drop((whole, windowed, ropes, positions));
        normed.unwrap_or(embedded)
    }

    fn layer(&self, cx: &Cx, input: &Tensor, shared: &Shared, first: bool) -> Tensor {
        let normed = if first {
            input.clone()
        } else {
            norm(cx, "attn_norm", input)
        };
        let (attended, weights) =
            normed.then(|normed| cx.within("attn", |cx| self.attention(cx, normed, shared)));
        let hidden = input.add(&attended);
        let fed = norm(cx, "mlp_norm", &hidden)
            .then(|normed| cx.within("mlp", |cx| self.feed(cx, normed)));
        let out = hidden.add(&fed);
        drop((attended, weights));
        out
    }

    fn attention(&self, cx: &Cx, x: &Tensor, shared: &Shared) -> (Tensor, Option<Tensor>) {
        let (b, s) = (x.size(0), x.size(1));
        let joint = cx.linear("Wqkv", x, 3 * self.hidden, false).view(&[
            b,
            s,
            3,
            self.heads,
            self.hidden / self.heads,
        ]);
        let parts = joint.unbind_at(2);
        let Ok(parts) = <[Tensor; 3]>::try_from(parts) else {
            return (x.clone(), None);
        };
        let [mut q, mut k, v] = parts.map(|part| part.transpose(1, 2));
        let turned = [&q, &k].map(|x| wide_turned(x, &shared.rope));
        let narrow = turned[0].to(q.dtype());
        k = turned[1].to(k.dtype());
        q = narrow;
        drop(turned);
        let eager = Eager { in_fp32: true };
        let (mut out, weights) = attend(cx, [&q, &k, &v], &shared.mask, 0.0, eager);
        out = out.reshape(&[b, s, self.hidden]);
        out = cx.linear("Wo", &out, self.hidden, false);
        drop(joint);
        (out, weights)
    }

    fn feed(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let mut parts = cx.linear("Wi", x, 2 * self.ffn, false).chunk(2, -1);
        let (Some(gate), Some(input)) = (parts.pop(), parts.pop()) else {
            return x.clone();
        };
        let product = input.gelu().then(|input| input.mul(&gate));
        product.then(|product| cx.linear("Wo", product, self.hidden, false))
    }

    /// `ModernBertPredictionHead` and the decoder, whose weight is the table of embeddings.
    fn tokens(&self, cx: &Cx, sequence: &Tensor) -> Tensor {
        let x = cx.within("head", |cx| {
            cx.linear("dense", sequence, self.hidden, false)
                .then(Tensor::gelu)
                .then(|x| norm(cx, "norm", x))
        });
        let table = cx.within("model", |cx| {
            cx.within("embeddings", |cx| {
                cx.within("tok_embeddings", |cx| {
                    cx.param("weight", [self.vocab, self.hidden]).tensor()
                })
            })
        });
        cx.within("decoder", |cx| {
            let bias = cx.param("bias", [self.vocab]).tensor();
            x.linear(&table, Some(&bias))
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::nets::recorded::{Case, check, training};
    use crate::scenario::{Optimizer, Precision};

    #[test]
    fn every_third_layer_attends_globally() {
        let sizes = [
            ("hidden", 768),
            ("layers", 7),
            ("heads", 12),
            ("ffn", 1152),
            ("vocab", 8000),
        ];
        let case = Case::new("modernbert", &sizes).batch(2, 512);
        let bf16 = training(Precision::Bf16, Optimizer::Sgd);
        check(&case.clone().trained(&bf16), 370_984_960);
        let amp = training(Precision::AmpBf16, Optimizer::Sgd);
        let mut padded = case.trained(&amp);
        padded.data.padding_mask = true;
        check(&padded, 566_920_704);
    }
}
