//! GPT-2 (transformers/models/gpt2/modeling_gpt2.py).

use super::losses::causal_lm_loss;
use super::{Cx, Net, Output, Sizes};
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

pub fn build(sizes: &Sizes) -> Result<Box<dyn Net>, String> {
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
        let (ids, labels) = (&batch[0], &batch[1]);
        let hidden = cx.within("transformer", |cx| self.model(cx, ids, batch.get(2)));
        let table = cx.within("transformer", |cx| {
            cx.within("wte", |cx| cx.param("weight", [self.vocab, self.hidden]))
        });
        let logits = cx.within("lm_head", |_| hidden.linear(&table.tensor(), None));
        let loss = cx.within("loss", |_| causal_lm_loss(&logits, labels));
        Output {
            loss,
            held: vec![logits],
        }
    }
}

impl Gpt2 {
    fn model(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let embeddings = cx.embedding("wte", ids, self.vocab, self.hidden);
        let positions = super::inputs::positions(ids);
        let position_embeddings = cx.embedding("wpe", &positions, self.positions, self.hidden);
        let hidden = embeddings.add(&position_embeddings);
        let mask = super::inputs::causal_mask(cx, ids, padding, embeddings.dtype());
        let hidden = cx.dropout(&hidden, 0.1);
        let this = *self;
        let hidden = cx.layers("h", self.layers, vec![hidden], move |cx, state, _| {
            vec![this.block(cx, &state[0], &mask)]
        });
        cx.layer_norm("ln_f", &hidden[0])
    }

    fn block(&self, cx: &Cx, hidden: &Tensor, mask: &AttentionMask) -> Tensor {
        let normed = cx.layer_norm("ln_1", hidden);
        let attended = cx.within("attn", |cx| self.attention(cx, &normed, mask));
        let hidden = attended.add(hidden);
        let normed = cx.layer_norm("ln_2", &hidden);
        let fed = cx.within("mlp", |cx| self.mlp(cx, &normed));
        hidden.add(&fed)
    }

    fn attention(&self, cx: &Cx, x: &Tensor, mask: &AttentionMask) -> Tensor {
        let (b, s, d) = (x.size(0), x.size(1), self.hidden / self.heads);
        let qkv = cx.linear("c_attn", x, 3 * self.hidden, true);
        let parts = qkv.split(&[self.hidden; 3], 2);
        drop(qkv);
        let [q, k, v] =
            [0, 1, 2].map(|i: usize| parts[i].view(&[b, s, self.heads, d]).transpose(1, 2));
        let out = match cx.env.training.attention {
            Attention::Sdpa => q.attention(&k, &v, mask, cx.rate(0.1)),
            Attention::Eager => eager(cx, &q, &k, &v, mask),
        };
        let out = out.transpose(1, 2).reshape(&[b, s, self.hidden]);
        cx.dropout(&cx.linear("c_proj", &out, self.hidden, true), 0.1)
    }

    fn mlp(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let x = cx.linear("c_fc", x, self.ffn, true);
        let x = gelu_new(&x);
        cx.dropout(&cx.linear("c_proj", &x, self.hidden, true), 0.1)
    }
}

/// `NewGELUActivation`: `0.5 * x * (1 + tanh(sqrt(2/π) * (x + 0.044715 * x³)))`, an operation at a time.
fn gelu_new(x: &Tensor) -> Tensor {
    let half = x.scale();
    half.mul(&x.add(&x.pow().scale()).scale().tanh().shift())
}

/// `eager_attention_forward` of GPT-2.
fn eager(cx: &Cx, q: &Tensor, k: &Tensor, v: &Tensor, mask: &AttentionMask) -> Tensor {
    let scores = q.matmul(&k.transpose(-1, -2)).scale();
    let scores = match mask {
        AttentionMask::Given(bias) => scores.add(bias),
        _ => scores,
    };
    let weights = scores.softmax(None).to(v.dtype());
    cx.dropout(&weights, 0.1)
        .matmul(v)
        .transpose(1, 2)
        .transpose(1, 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_are_missing_are_named() {
        let problem = build(&Sizes::from([("hidden", 8)])).err();
        assert_eq!(problem.as_deref(), Some("the model needs `layers`"));
    }
}
