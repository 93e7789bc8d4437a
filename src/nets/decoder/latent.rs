//! Multi-head latent attention (transformers/models/deepseek_{v2,v3}/modeling_*.py).

use super::super::{Cx, Sizes};
use super::traits::Positions;
use super::{Decoder, Shared, attention, cached, rope};
use crate::tape::Tensor;

/// What keys and values are made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Latent {
    /// The width queries are pressed to; zero where they are not.
    query: u64,
    /// The width keys and values are pressed to.
    pair: u64,
    /// How much of a head is not turned, and how much is.
    still: u64,
    pub turned: u64,
    value: u64,
}

impl Latent {
    pub fn of(sizes: &Sizes) -> Option<Self> {
        Some(Self {
            query: sizes.or("q_rank", 0),
            pair: sizes.get("kv_rank")?,
            still: sizes.or("nope_dim", 128),
            turned: sizes.or("rope_dim", 64),
            value: sizes.or("v_dim", 128),
        })
    }
}

impl Decoder {
    pub(super) fn latent_attention(
        &self,
        cx: &Cx,
        x: &Tensor,
        shared: &Shared,
        of: Latent,
    ) -> (Tensor, Option<Tensor>) {
        let (b, s, h) = (x.size(0), x.size(1), self.heads);
        let whole = of.still + of.turned;
        let mut all = if of.query == 0 {
            cx.linear("q_proj", x, h * whole, false)
        } else {
            let pressed = cx.linear("q_a_proj", x, of.query, false);
            pressed
                .then(|pressed| self.norm(cx, "q_a_layernorm", pressed))
                .then(|normed| cx.linear("q_b_proj", normed, h * whole, false))
        };
        all = all.view(&[b, s, h, whole]).transpose(1, 2);
        let [still, mut turning] = two(&all, of.still, of.turned);
        let compressed = cx.linear("kv_a_proj_with_mqa", x, of.pair + of.turned, false);
        let [mut latent, mut key_turning] = two(&compressed, of.pair, of.turned);
        latent = self.norm(cx, "kv_a_layernorm", &latent);
        latent = latent.view(&[b, 1, s, of.pair]);
        key_turning = key_turning.view(&[b, 1, s, of.turned]);
        if let (Some(tables), Positions::Rotary(turn)) = (&shared.rope, self.traits.positions) {
            let both = rope::apply(&turning, &key_turning, tables, turn);
            (turning, key_turning) = (both.0, both.1);
        }
        (latent, key_turning) = cached(&shared.cache, latent, key_turning);
        let query = Tensor::cat(&still, &[&turning], -1);
        let [key, value] = self.expanded(cx, &latent, &key_turning, of);
        let (mut out, weights) =
            attention::between(cx, [&query, &key, &value], &shared.mask, 1, false, 0.0);
        out = out.reshape(&[b, s, h * of.value]).contiguous();
        out = cx.linear("o_proj", &out, self.hidden, false);
        drop((all, compressed, key, value, query));
        (out, weights)
    }

    /// `expand_kv`: keys are written piece by piece into memory of their own.
    fn expanded(&self, cx: &Cx, latent: &Tensor, turned: &Tensor, of: Latent) -> [Tensor; 2] {
        let (b, s, h) = (latent.size(0), latent.size(2), self.heads);
        let width = of.still + of.value;
        let pairs = cx
            .linear("kv_b_proj", latent, h * width, false)
            .view(&[b, s, h, width])
            .transpose(1, 2);
        let [still, value] = two(&pairs, of.still, of.value);
        let wide = turned.expand(&[b, h, s, of.turned]);
        let shape = [b, h, s, of.still + of.turned];
        let mut key = pairs.constant("new_empty", &shape, pairs.dtype());
        key = key.slice_written(&still);
        key = key.slice_written(&wide);
        [key, value]
    }
}

/// `torch.split` along the last dimension in two.
fn two(x: &Tensor, first: u64, second: u64) -> [Tensor; 2] {
    let parts = x.split(&[first, second], -1);
    parts.try_into().unwrap_or_else(|_| [x.clone(), x.clone()])
}
