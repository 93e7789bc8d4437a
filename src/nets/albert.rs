//! ALBERT (transformers/models/albert/modeling_albert.py): one layer, run again and again.

use super::attention::{Eager, attend, heads};
use super::bidirectional::bidirectional_mask;
use super::gpt2::gelu_new;
use super::inputs::token_ids_and_labels;
use super::{Cx, ModelError, Net, Output, Sizes};
use crate::scenario::Data;
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};

#[derive(Clone, Copy, Debug)]
struct Albert {
    headless: bool,
    layers: u64,
    hidden: u64,
    heads: u64,
    ffn: u64,
    vocab: u64,
    positions: u64,
    types: u64,
    /// The width of the table of tokens.
    embedding: u64,
}

pub fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("hidden")?;
    Ok(Box::new(Albert {
        headless: sizes.is_set("head=none"),
        layers: sizes.need("layers")?,
        hidden,
        heads: sizes.need("heads")?.max(1),
        ffn: sizes.or("ffn", 4 * hidden),
        vocab: sizes.need("vocab")?,
        positions: sizes.or("ctx", 512),
        types: sizes.or("types", 2),
        embedding: sizes.or("embedding", 128),
    }))
}

impl Net for Albert {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        token_ids_and_labels(cx, data)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, ..] = batch else {
            return Output::empty(cx);
        };
        let sequence = cx.within("albert", |cx| self.model(cx, ids, batch.get(2)));
        let logits = if self.headless {
            cx.within("albert", |cx| {
                cx.linear("pooler", &sequence.select(1), self.hidden, true)
                    .then(Tensor::tanh)
            })
        } else {
            self.tokens(cx, &sequence)
        };
        let loss = super::losses::class_loss(cx, &logits, labels);
        Output {
            loss,
            held: vec![logits],
        }
    }
}

impl Albert {
    fn model(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let embedded = cx.within("embeddings", |cx| self.embeddings(cx, ids));
        let mask = bidirectional_mask(cx, ids.size(1), padding, embedded.dtype());
        let last = cx.within("encoder", |cx| {
            let name = "embedding_hidden_mapping_in";
            let mut state = vec![cx.linear(name, &embedded, self.hidden, true)];
            for _ in 0..self.layers {
                let (this, mask) = (*self, mask.clone());
                // Checkpoints are of groups, of which there is one.
                state = cx.layer("albert_layer_groups", 0, state, move |cx, state| {
                    let run =
                        |hidden| cx.nth("albert_layers", 0, |cx| this.layer(cx, hidden, &mask));
                    state.iter().map(run).collect()
                });
            }
            state.pop()
        });
        last.unwrap_or(embedded)
    }

    fn embeddings(&self, cx: &Cx, ids: &Tensor) -> Tensor {
        let (b, s) = (ids.size(0), ids.size(1));
        let table = cx.buffer("position_ids", [1, self.positions], DType::I64);
        cx.buffer("token_type_ids", [1, self.positions], DType::I64);
        let places = table.narrow(1, s);
        let gathered = ids.constant("gather", &[1, s], DType::I64);
        let types = gathered.expand(&[b, s]);
        let width = self.embedding;
        let words = cx.input_embedding("word_embeddings", ids, self.vocab, width);
        cx.within("position_embeddings", |cx| {
            cx.param("weight", [self.positions, width])
        });
        // Rows of an expanded list are read by a copy of it.
        let flat = types.reshape(&[b * s]);
        let of_types = cx.embedding("token_type_embeddings", &types, self.types, width);
        drop(flat);
        let mut all = words.add(&of_types);
        let of_places = cx.embedding("position_embeddings", &places, self.positions, width);
        all = all.add(&of_places);
        all = cx.layer_norm("LayerNorm", &all);
        drop((words, of_types, of_places, gathered));
        all
    }

    fn layer(&self, cx: &Cx, input: &Tensor, mask: &AttentionMask) -> Tensor {
        let (attended, weights) = cx.within("attention", |cx| self.attention(cx, input, mask));
        let fed = {
            let mut x = cx.linear("ffn", &attended, self.ffn, true);
            x = gelu_new(&x);
            cx.linear("ffn_output", &x, self.hidden, true)
        };
        let sum = fed.add(&attended);
        let out = sum.then(|sum| cx.layer_norm("full_layer_layer_norm", sum));
        drop((fed, attended, weights));
        out
    }

    fn attention(&self, cx: &Cx, x: &Tensor, mask: &AttentionMask) -> (Tensor, Option<Tensor>) {
        let [q, k, v] = ["query", "key", "value"]
            .map(|name| heads(&cx.linear(name, x, self.hidden, true), self.heads));
        let (mut out, weights) = attend(cx, [&q, &k, &v], mask, 0.0, Eager::default());
        out = out.reshape(&[x.size(0), x.size(1), self.hidden]);
        out = cx.linear("dense", &out, self.hidden, true);
        let sum = x.add(&out);
        out = sum.then(|sum| cx.layer_norm("LayerNorm", sum));
        (out, weights)
    }

    /// `AlbertMLMHead`: back to the width of the table, which is its weight.
    fn tokens(&self, cx: &Cx, sequence: &Tensor) -> Tensor {
        let table = cx.within("albert", |cx| {
            cx.within("embeddings", |cx| {
                cx.within("word_embeddings", |cx| {
                    cx.param("weight", [self.vocab, self.embedding]).tensor()
                })
            })
        });
        cx.within("predictions", |cx| {
            let bias = cx.param("bias", [self.vocab]).tensor();
            let mut x = cx.linear("dense", sequence, self.embedding, true);
            x = gelu_new(&x);
            x = cx.layer_norm("LayerNorm", &x);
            x.linear(&table, Some(&bias))
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::nets::recorded::{Case, check, training};
    use crate::scenario::{Optimizer, Precision};

    #[test]
    fn one_layer_is_run_again_and_again() {
        let sizes = [
            ("hidden", 768),
            ("layers", 4),
            ("heads", 12),
            ("vocab", 8000),
        ];
        let bf16 = training(Precision::Bf16, Optimizer::Sgd);
        let case = Case::new("albert", &sizes).batch(2, 512).trained(&bf16);
        check(&case, 281_159_168);
    }
}
