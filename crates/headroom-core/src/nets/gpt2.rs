//! GPT-2 (transformers/models/gpt2/modeling_gpt2.py).

use super::activations::gelu_new;
use super::encoder::Config;
use super::inputs::{causal_mask, positions, token_ids_and_labels};
use super::kv_cache::{Cache, KvCache, cache, cached};
use super::language_model::{LanguageModel, TokenMask};
use super::losses::{Entropy, causal_lm_loss};
use super::{Cx, ModelError, Net, Output, Sizes};
use crate::parallel::Role;
use crate::tape::Tensor;
use crate::tape::ops::AttentionMask;
use headroom_scenario::{Attention, Data};

#[derive(Clone, Copy, Debug)]
struct Gpt2 {
    config: Config,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let config = Config::new(sizes)?;
    sizes.need("ctx")?;
    Ok(Box::new(Gpt2 { config }))
}

impl Net for Gpt2 {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        token_ids_and_labels(cx, data)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, ..] = batch else {
            return Output::empty(cx);
        };
        let cache: Cache = cache(cx);
        let sequence = cx.module("transformer", |cx| {
            self.model(cx, ids, batch.get(2), &cache)
        });
        let Config { vocab, hidden, .. } = self.config;
        let weight = cx.embedding_weight(&["transformer", "wte"], vocab, hidden);
        cx.module("lm_head", |cx| drop(cx.weight_until_tied([vocab, hidden])));
        let logits = cx.as_role(Role::Head, "lm_head", &sequence, |sequence| {
            cx.tied_linear("lm_head", sequence, &weight)
        });
        let [loss, logits] = cx.module("loss", |cx| {
            // transformers knows no loss by the name of `GPT2LMHeadModel` and says so, which Dynamo cannot trace.
            let logits = logits.pipe(|logits| cx.tape.break_graph(logits));
            causal_lm_loss(cx, logits, labels, Entropy::Library)
        });
        Output {
            loss,
            held: std::iter::once(logits)
                .chain(cache.iter().flat_map(KvCache::take))
                .collect(),
        }
    }

    fn language_model(&self) -> Option<&dyn LanguageModel> {
        Some(self)
    }
}

impl LanguageModel for Gpt2 {
    fn hidden(&self, cx: &Cx, ids: &Tensor, mask: TokenMask, cache: Option<&KvCache>) -> Tensor {
        let padding = match mask {
            TokenMask::Padded(padding) => Some(padding),
            TokenMask::Full | TokenMask::Packed(_) => None,
        };
        let cache = cache.cloned();
        cx.module("transformer", |cx| self.model(cx, ids, padding, &cache))
    }

    fn logits(&self, cx: &Cx, hidden: &Tensor) -> Tensor {
        let weight = self.head_weight(cx);
        cx.tied_linear("lm_head", hidden, &weight)
    }

    fn head_weight(&self, cx: &Cx) -> Tensor {
        let Config { vocab, hidden, .. } = self.config;
        cx.module("lm_head", |cx| drop(cx.weight_until_tied([vocab, hidden])));
        cx.embedding_weight(&["transformer", "wte"], vocab, hidden)
    }

    fn vocabulary(&self) -> u64 {
        self.config.vocab
    }
}

impl Gpt2 {
    fn model(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>, cache: &Cache) -> Tensor {
        let Config { layers, hidden, .. } = self.config;
        let embeddings = cx.input_embedding("wte", ids, self.config.vocab, hidden);
        let position_ids = positions(ids);
        let position_embeddings = cx.embedding("wpe", &position_ids, self.config.positions, hidden);
        let mut states = embeddings.add(&position_embeddings);
        let mask = causal_mask(cx, ids, padding, embeddings.dtype());
        states = cx.dropout(&states, 0.1);
        let (this, cache) = (*self, cache.clone());
        let last = cx.equal_stack("h", layers, states, move |cx, hidden| {
            this.block(cx, hidden, &mask, &cache)
        });
        cx.as_role(Role::FinalNorm, "ln_f", &last, |last| {
            cx.layer_norm("ln_f", last)
        })
    }

    fn block(&self, cx: &Cx, input: &Tensor, mask: &AttentionMask, cache: &Cache) -> Tensor {
        let mut hidden = cx.layer_norm("ln_1", input);
        // Eager attention returns its weights too, and the block holds them to its end.
        let (attended, _weights) = cx.module("attn", |cx| self.attention(cx, &hidden, mask, cache));
        hidden = attended.add(input);
        let residual = hidden.clone();
        hidden = cx.layer_norm("ln_2", &hidden);
        let mlp_output = cx.module("mlp", |cx| self.mlp(cx, &hidden));
        residual.add(&mlp_output)
    }

    fn attention(
        &self,
        cx: &Cx,
        x: &Tensor,
        mask: &AttentionMask,
        cache: &Cache,
    ) -> (Tensor, Option<Tensor>) {
        let Config { hidden, heads, .. } = self.config;
        let (b, s, d) = (x.size(0), x.size(1), hidden / heads);
        let qkv = cx.conv1d("c_attn", x, 3 * hidden);
        let Ok(parts) = <[Tensor; 3]>::try_from(qkv.split(&[hidden; 3], 2)) else {
            return (qkv, None);
        };
        drop(qkv);
        let [q, k, v] = parts
            .each_ref()
            .map(|part| part.view(&[b, s, heads, d]).transpose(1, 2));
        let (k, v) = cached(cache, k, v);
        let (mut out, weights) = match cx.env.training.attention {
            Attention::Sdpa | Attention::Flash2 => (q.attention(&k, &v, mask, cx.rate(0.1)), None),
            Attention::Eager => {
                let (out, weights) = eager(cx, &q, &k, &v, mask);
                (out, Some(weights))
            }
        };
        out = out.transpose(1, 2).reshape(&[b, s, hidden]);
        out = cx.conv1d("c_proj", &out, hidden);
        (cx.dropout(&out, 0.1), weights)
    }

    fn mlp(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let mut x = cx.conv1d("c_fc", x, self.config.ffn);
        x = gelu_new(&x);
        x = cx.conv1d("c_proj", &x, self.config.hidden);
        cx.dropout(&x, 0.1)
    }
}

/// `eager_attention_forward` of GPT-2.
fn eager(cx: &Cx, q: &Tensor, k: &Tensor, v: &Tensor, mask: &AttentionMask) -> (Tensor, Tensor) {
    let mut weights = q.matmul(&k.transpose(-1, -2)).pipe(Tensor::mul_scalar);
    if let AttentionMask::Given(bias) = mask {
        weights = weights.add(bias);
    }
    weights = weights.softmax(None);
    weights = weights.to(v.dtype());
    weights = cx.dropout(&weights, 0.1);
    (weights.matmul(v), weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_are_missing_are_named() {
        let problem = build(&Sizes::from([("hidden", 8)])).err();
        let problem = problem.map(|error| error.to_string());
        assert_eq!(problem.as_deref(), Some("the model needs `layers`"));
    }
}
