//! RWKV-4 (transformers/models/rwkv/modeling_rwkv.py) without its kernel: `rwkv_linear_attention_cpu`, step by step.

use super::{Cx, ModelError, Net, Output, Sizes, head, inputs};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct Rwkv {
    layers: u64,
    hidden: u64,
    /// `attention_hidden_size`.
    inner: u64,
    ffn: u64,
    vocab: u64,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("hidden")?;
    Ok(Box::new(Rwkv {
        layers: sizes.need("layers")?,
        hidden,
        inner: sizes.or("inner", hidden),
        ffn: sizes.or("ffn", hidden.saturating_mul(4)),
        vocab: sizes.need("vocab")?,
    }))
}

impl Net for Rwkv {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        inputs::token_ids_and_labels(cx, data)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, ..] = batch else {
            return Output::empty(cx);
        };
        let hidden = cx.module("rwkv", |cx| self.model(cx, ids));
        let weight = || cx.embedding_weight(&["head"], self.vocab, self.hidden);
        head::loss(cx, &hidden, labels, false, weight, |hidden| {
            hidden.linear(&weight(), None)
        })
    }
}

impl Rwkv {
    fn model(&self, cx: &Cx, ids: &Tensor) -> Tensor {
        let mut hidden = cx.input_embedding("embeddings", ids, self.vocab, self.hidden);
        let this = *self;
        // Only the first block has a norm before it.
        hidden = cx.stack("blocks", self.layers, hidden, move |cx, hidden, at| {
            if at == 0 {
                this.block(cx, &cx.layer_norm("pre_ln", hidden))
            } else {
                this.block(cx, hidden)
            }
        });
        cx.layer_norm("ln_out", &hidden)
    }

    fn block(self, cx: &Cx, hidden: &Tensor) -> Tensor {
        let normed = cx.layer_norm("ln1", hidden);
        let attended = cx.module("attention", |cx| normed.pipe(|x| self.attention(cx, x)));
        let hidden = hidden.add(&attended);
        let normed = cx.layer_norm("ln2", &hidden);
        let fed = cx.module("feed_forward", |cx| {
            normed.pipe(|x| self.feed_forward(cx, x))
        });
        hidden.add(&fed)
    }

    /// `hidden * mix + shifted * (1 - mix)`.
    fn mixed(cx: &Cx, name: &'static str, x: &Tensor, shifted: &Tensor) -> Tensor {
        let mix = cx.param(name, [1, 1, x.size(-1)]).tensor();
        let own = x.mul(&mix);
        let rest = mix.add_scalar();
        let other = shifted.mul(&rest);
        drop(rest);
        own.add(&other)
    }

    fn attention(self, cx: &Cx, x: &Tensor) -> Tensor {
        let shifted = shift(x);
        let names = ["time_mix_key", "time_mix_value", "time_mix_receptance"];
        let [key, value, receptance] = names.map(|name| Self::mixed(cx, name, x, &shifted));
        let key = cx.linear("key", &key, self.inner, false);
        let value = cx.linear("value", &value, self.inner, false);
        let receptance = cx
            .linear("receptance", &receptance, self.inner, false)
            .pipe(Tensor::sigmoid);
        let [decay, first] =
            ["time_decay", "time_first"].map(|name| cx.param(name, [self.inner]).tensor());
        let read = steps([&key, &value], &decay, &first);
        let gated = receptance.mul(&read);
        let out = cx.linear("output", &gated, self.hidden, false);
        drop((shifted, key, value, receptance, read));
        out
    }

    fn feed_forward(self, cx: &Cx, x: &Tensor) -> Tensor {
        let shifted = shift(x);
        let names = ["time_mix_key", "time_mix_receptance"];
        let [key, receptance] = names.map(|name| Self::mixed(cx, name, x, &shifted));
        let key = cx
            .linear("key", &key, self.ffn, false)
            .pipe(Tensor::relu)
            .pipe(Tensor::pow);
        let value = cx.linear("value", &key, self.hidden, false);
        let receptance = cx
            .linear("receptance", &receptance, self.hidden, false)
            .pipe(Tensor::sigmoid);
        drop((shifted, key));
        receptance.mul(&value)
    }
}

/// `nn.ZeroPad2d((0, 0, 1, -1))`: each step reads the one before it.
fn shift(x: &Tensor) -> Tensor {
    let before = x.narrow(1, x.size(1).saturating_sub(1));
    before.pad_to(x.shape())
}

/// `rwkv_linear_attention_cpu`.
fn steps([key, value]: [&Tensor; 2], decay: &Tensor, first: &Tensor) -> Tensor {
    // `torch.maximum` keeps both of what it compares, as a product does.
    let larger = Tensor::mul;
    let shape = [key.size(0), key.size(2)];
    let mut output = key.constant("zeros_like", key.shape(), key.dtype());
    let [mut sum, mut count, mut most] =
        ["zeros_like"; 3].map(|op| key.constant(op, &shape, DType::F32));
    let decay = decay.exp().pipe(Tensor::neg);
    for _ in 0..key.size(1) {
        let k = key.select(1).to(DType::F32);
        let v = value.select(1);
        let last = most.clone();
        let highest = k.add(first).pipe(|k| larger(&last, k));
        let kept = last.sub(&highest).pipe(Tensor::exp);
        let new = k.add(first).pipe(|k| k.sub(&highest)).pipe(Tensor::exp);
        let above = kept.mul(&sum).pipe(|kept| kept.add(&new.mul(&v)));
        let below = kept.mul(&count).pipe(|kept| kept.add(&new));
        let read = above.div(&below).pipe(|read| read.to(key.dtype()));
        output = output.copy_into_slice_(&read.unsqueeze(1));
        let highest = last.add(&decay).pipe(|last| larger(last, &k));
        let kept = last
            .add(&decay)
            .pipe(|last| last.sub(&highest))
            .pipe(Tensor::exp);
        let new = k.sub(&highest).pipe(Tensor::exp);
        sum = kept.mul(&sum).pipe(|kept| kept.add(&new.mul(&v)));
        count = kept.mul(&count).pipe(|kept| kept.add(&new));
        most = highest;
    }
    output
}
