//! GPT-2 (transformers/models/gpt2/modeling_gpt2.py).

use super::decoder::{Cache, cache, cached};
use super::losses::{Entropy, causal_lm_loss};
use super::{Cx, ModelError, Net, Output, Sizes};
use crate::scenario::{Attention, Data};
use crate::tape::Tensor;
use crate::tape::ops::AttentionMask;

#[derive(Clone, Copy, Debug)]
struct Gpt2 {
    layers: u64,
    hidden: u64,
    heads: u64,
    ffn: u64,
    vocab: u64,
    positions: u64,
}

pub fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("hidden")?;
    Ok(Box::new(Gpt2 {
        layers: sizes.need("layers")?,
        hidden,
        heads: sizes.need("heads")?.max(1),
        ffn: sizes.or("ffn", 4 * hidden),
        vocab: sizes.need("vocab")?,
        positions: sizes.need("ctx")?,
    }))
}

impl Net for Gpt2 {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        super::inputs::token_ids_and_labels(cx, data)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, ..] = batch else {
            return Output::empty(cx);
        };
        let cache: Cache = cache(cx);
        let hidden = cx.within("transformer", |cx| {
            self.model(cx, ids, batch.get(2), &cache)
        });
        let table = cx.within("transformer", |cx| {
            cx.within("wte", |cx| cx.param("weight", [self.vocab, self.hidden]))
        });
        cx.within("lm_head", |cx| {
            drop(cx.tied_later([self.vocab, self.hidden]));
        });
        let logits = cx.tied_linear("lm_head", &hidden, &table.tensor());
        let [loss, logits] = cx.within("loss", |cx| {
            causal_lm_loss(cx, logits, labels, Entropy::Library)
        });
        Output {
            loss,
            held: std::iter::once(logits)
                .chain(cache.iter().flat_map(|kept| kept.take()))
                .collect(),
        }
    }
}

impl Gpt2 {
    fn model(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>, cache: &Cache) -> Tensor {
        let embeddings = cx.input_embedding("wte", ids, self.vocab, self.hidden);
        let positions = super::inputs::positions(ids);
        let position_embeddings = cx.embedding("wpe", &positions, self.positions, self.hidden);
        let mut hidden = embeddings.add(&position_embeddings);
        let mask = super::inputs::causal_mask(cx, ids, padding, embeddings.dtype());
        hidden = cx.dropout(&hidden, 0.1);
        let (this, cache) = (*self, cache.clone());
        let hidden = cx.equal_layers("h", self.layers, vec![hidden], move |cx, state| {
            vec![this.block(cx, &state[0], &mask, &cache)]
        });
        cx.layer_norm("ln_f", &hidden[0])
    }

    fn block(&self, cx: &Cx, input: &Tensor, mask: &AttentionMask, cache: &Cache) -> Tensor {
        let mut hidden = cx.layer_norm("ln_1", input);
        // Eager attention hands its weights out too, and the block keeps them to its end.
        let (attended, _weights) = cx.within("attn", |cx| self.attention(cx, &hidden, mask, cache));
        hidden = attended.add(input);
        let residual = hidden.clone();
        hidden = cx.layer_norm("ln_2", &hidden);
        let fed = cx.within("mlp", |cx| self.mlp(cx, &hidden));
        residual.add(&fed)
    }

    fn attention(
        &self,
        cx: &Cx,
        x: &Tensor,
        mask: &AttentionMask,
        cache: &Cache,
    ) -> (Tensor, Option<Tensor>) {
        let (b, s, d) = (x.size(0), x.size(1), self.hidden / self.heads);
        let qkv = cx.conv1d("c_attn", x, 3 * self.hidden);
        let parts = qkv.split(&[self.hidden; 3], 2);
        drop(qkv);
        let [q, k, v] =
            [0, 1, 2].map(|i: usize| parts[i].view(&[b, s, self.heads, d]).transpose(1, 2));
        let (k, v) = cached(cache, k, v);
        let (mut out, weights) = match cx.env.training.attention {
            Attention::Sdpa | Attention::Flash2 => (q.attention(&k, &v, mask, cx.rate(0.1)), None),
            Attention::Eager => {
                let (out, weights) = eager(cx, &q, &k, &v, mask);
                (out, Some(weights))
            }
        };
        out = out.transpose(1, 2).reshape(&[b, s, self.hidden]);
        out = cx.conv1d("c_proj", &out, self.hidden);
        (cx.dropout(&out, 0.1), weights)
    }

    fn mlp(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let mut x = cx.conv1d("c_fc", x, self.ffn);
        x = gelu_new(&x);
        x = cx.conv1d("c_proj", &x, self.hidden);
        cx.dropout(&x, 0.1)
    }
}

/// `NewGELUActivation`: `0.5 * x * (1 + tanh(sqrt(2/π) * (x + 0.044715 * x³)))`, an operation at a time.
pub(super) fn gelu_new(x: &Tensor) -> Tensor {
    let half = x.scale();
    let cube = x.pow().then(Tensor::scale);
    let inner = cube.then(|cube| x.add(cube)).then(Tensor::scale);
    inner
        .then(Tensor::tanh)
        .then(Tensor::shift)
        .then(|gate| half.mul(gate))
}

/// `eager_attention_forward` of GPT-2.
fn eager(cx: &Cx, q: &Tensor, k: &Tensor, v: &Tensor, mask: &AttentionMask) -> (Tensor, Tensor) {
    let mut weights = q.matmul(&k.transpose(-1, -2)).then(Tensor::scale);
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
