//! ALBERT (transformers/models/albert/modeling_albert.py): one layer, run again and again.

use super::activations::gelu_new;
use super::attention::{Eager, attend, heads};
use super::encoder::{self, Config};
use super::inputs::token_ids_and_labels;
use super::masks::bidirectional_mask;
use super::{Cx, ModelError, Net, Output, Sizes, TextEncoder};
use crate::tape::ops::AttentionMask;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct Albert {
    config: Config,
    types: u64,
    /// Width of the embeddings.
    embedding: u64,
    /// `AlbertModel` by itself, which ends in its pooler.
    headless: bool,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Albert {
        config: Config::new(sizes)?,
        types: sizes.or("types", 2),
        embedding: sizes.or("embedding", 128),
        headless: sizes.is_set("head=none"),
    }))
}

impl Net for Albert {
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
        let sequence = cx.module("albert", |cx| self.model(cx, ids, batch.get(2)));
        let logits = if self.headless {
            cx.module("albert", |cx| encoder::pooler(cx, "pooler", &sequence))
        } else {
            self.mlm_head(cx, &sequence)
        };
        encoder::output(cx, logits, labels)
    }
}

impl TextEncoder for Albert {
    fn encode(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        cx.module("albert", |cx| self.model(cx, ids, padding))
    }

    fn unread(&self, cx: &Cx) {
        cx.module("albert", |cx| {
            encoder::unread_dense(cx, "pooler", self.config.hidden);
        });
    }

    fn sequence_logits(&self, cx: &Cx, hidden: &Tensor, classes: u64) -> Tensor {
        let pooled = cx.module("albert", |cx| encoder::pooler(cx, "pooler", hidden));
        let dropped = cx.dropout(&pooled, 0.1);
        cx.linear("classifier", &dropped, classes, true)
    }
}

impl Albert {
    fn model(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let embedded = cx.module("embeddings", |cx| self.embeddings(cx, ids));
        let mask = bidirectional_mask(cx, ids.size(1), padding, embedded.dtype());
        let last = cx.module("encoder", |cx| {
            let name = "embedding_hidden_mapping_in";
            let mut state = vec![cx.linear(name, &embedded, self.config.hidden, true)];
            for _ in 0..self.config.layers {
                let (this, mask) = (*self, mask.clone());
                // Groups of layers are checkpointed; there is one group.
                state = cx.layer("albert_layer_groups", 0, state, move |cx, state| {
                    let layer = |hidden| {
                        cx.list_item("albert_layers", 0, |cx| this.layer(cx, hidden, &mask))
                    };
                    state.iter().map(layer).collect()
                });
            }
            state.pop()
        });
        last.unwrap_or(embedded)
    }

    fn embeddings(&self, cx: &Cx, ids: &Tensor) -> Tensor {
        let (b, s) = (ids.size(0), ids.size(1));
        let Config {
            vocab, positions, ..
        } = self.config;
        let width = self.embedding;
        let position_ids = cx.buffer("position_ids", [1, positions], DType::I64);
        cx.buffer("token_type_ids", [1, positions], DType::I64);
        let position_ids = position_ids.narrow(1, s);
        let gathered = ids.constant("gather", &[1, s], DType::I64);
        let token_types = gathered.expand(&[b, s]);
        let word_embeddings = cx.input_embedding("word_embeddings", ids, vocab, width);
        cx.module("position_embeddings", |cx| {
            cx.param("weight", [positions, width])
        });
        // An embedding of expanded indices makes them contiguous first.
        let contiguous = token_types.reshape(&[b * s]);
        let type_embeddings =
            cx.embedding("token_type_embeddings", &token_types, self.types, width);
        drop(contiguous);
        let mut embeddings = word_embeddings.add(&type_embeddings);
        let position_embeddings =
            cx.embedding("position_embeddings", &position_ids, positions, width);
        embeddings = embeddings.add(&position_embeddings);
        embeddings = cx.layer_norm("LayerNorm", &embeddings);
        drop((
            word_embeddings,
            type_embeddings,
            position_embeddings,
            gathered,
        ));
        embeddings
    }

    /// `AlbertLayer.forward`.
    fn layer(&self, cx: &Cx, input: &Tensor, mask: &AttentionMask) -> Tensor {
        let Config { hidden, ffn, .. } = self.config;
        let (attended, weights) = cx.module("attention", |cx| self.attention(cx, input, mask));
        let ffn_output = {
            let mut x = cx.linear("ffn", &attended, ffn, true);
            x = gelu_new(&x);
            cx.linear("ffn_output", &x, hidden, true)
        };
        let sum = ffn_output.add(&attended);
        let out = sum.pipe(|sum| cx.layer_norm("full_layer_layer_norm", sum));
        drop((ffn_output, attended, weights));
        out
    }

    fn attention(&self, cx: &Cx, x: &Tensor, mask: &AttentionMask) -> (Tensor, Option<Tensor>) {
        let hidden = self.config.hidden;
        let [q, k, v] = ["query", "key", "value"]
            .map(|name| heads(&cx.linear(name, x, hidden, true), self.config.heads));
        let (mut out, weights) = attend(cx, [&q, &k, &v], mask, 0.0, Eager::default());
        out = out.reshape(&[x.size(0), x.size(1), hidden]);
        out = cx.linear("dense", &out, hidden, true);
        let sum = x.add(&out);
        out = sum.pipe(|sum| cx.layer_norm("LayerNorm", sum));
        (out, weights)
    }

    /// `AlbertMLMHead`, whose decoder is tied to the word embeddings.
    fn mlm_head(&self, cx: &Cx, sequence: &Tensor) -> Tensor {
        let path = ["albert", "embeddings", "word_embeddings"];
        let weight = cx.embedding_weight(&path, self.config.vocab, self.embedding);
        cx.module("predictions", |cx| {
            let bias = cx.param("bias", [self.config.vocab]).tensor();
            let mut x = cx.linear("dense", sequence, self.embedding, true);
            x = gelu_new(&x);
            x = cx.layer_norm("LayerNorm", &x);
            x.linear(&weight, Some(&bias))
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::nets::recorded::{Case, check, sizes, training};
    use headroom_scenario::{Optimizer, Precision};

    #[test]
    fn one_layer_is_run_again_and_again() {
        let sizes = sizes("hidden=768 layers=4 heads=12 vocab=8000");
        let bf16 = training(Precision::Bf16, Optimizer::Sgd);
        let case = Case::new("albert", &sizes).batch(2, 512).trained(&bf16);
        check(&case, 281_159_168);
    }
}
