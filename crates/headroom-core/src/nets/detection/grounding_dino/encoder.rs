//! `GroundingDinoEncoder`: in each layer maps and words read each other, words read the words beside them, and places look around.

use super::GroundingDino;
use super::decoder::eager;
use crate::nets::Cx;
use crate::nets::detection::deformable::{Maps, Sampling};
use crate::nets::drop_path::drop_path;
use crate::tape::{DType, Tensor};

impl GroundingDino {
    /// The states of places and of words.
    pub(super) fn encoder(
        &self,
        cx: &Cx,
        [words, among]: [&Tensor; 2],
        maps: &Maps,
        placed: &Tensor,
    ) -> [Tensor; 2] {
        let x = &maps.features;
        let levels = maps.grids.len() as u64;
        let reference = x.constant("mul", &[x.size(0), x.size(1), levels, 2], x.dtype());
        let state = vec![x.clone(), words.clone()];
        let (this, placed, maps, among) =
            (self.clone(), placed.clone(), maps.clone(), among.clone());
        let outputs = cx.equal_layers("layers", self.layers, state, move |cx, state| {
            let [x, words] = state else {
                return Vec::new();
            };
            let [x, words] = cx.module("fusion_layer", |cx| this.fused(cx, x, words, &maps));
            let words = cx.module("text_enhancer_layer", |cx| {
                this.enhanced(cx, &words, &among)
            });
            let x = cx.module("deformable_layer", |cx| {
                this.looked_around(cx, &x, [&placed, &reference], &maps)
            });
            vec![x, words]
        });
        let mut outputs = outputs.into_iter();
        let last = outputs.next().unwrap_or_else(|| x.clone());
        [last, outputs.next().unwrap_or_else(|| words.clone())]
    }

    /// `GroundingDinoFusionLayer.forward`.
    fn fused(&self, cx: &Cx, x: &Tensor, words: &Tensor, maps: &Maps) -> [Tensor; 2] {
        let x = cx.layer_norm("layer_norm_vision", x);
        let words = cx.layer_norm("layer_norm_text", words);
        let [to_places, to_words] = cx.module("attn", |cx| self.both_ways(cx, &x, &words, maps));
        let scaled = |name, before: &Tensor, read: &Tensor| {
            let scale = cx.param(name, [self.hidden]).tensor();
            let own = scale.mul(read);
            before.add(&drop_path(&own, self.drops))
        };
        [
            scaled("vision_param", &x, &to_places),
            scaled("text_param", &words, &to_words),
        ]
    }

    /// `GroundingDinoBiMultiHeadAttention.forward`.
    fn both_ways(&self, cx: &Cx, x: &Tensor, words: &Tensor, maps: &Maps) -> [Tensor; 2] {
        let (wide, heads) = (self.ffn / 2, self.heads / 2);
        let n = x.size(0);
        let width = wide / heads;
        let rows = n.saturating_mul(heads);
        let split = |x: &Tensor| {
            let count = x.size(1);
            x.view(&[n, count, heads, width])
                .transpose(1, 2)
                .contiguous()
                .view(&[rows, count, width])
        };
        let project = |name, x: &Tensor| cx.linear(name, x, wide, true);
        let query = {
            let scaled = project("vision_proj", x).mul_scalar();
            split(&scaled)
        };
        let key = split(&project("text_proj", words));
        let place_values = split(&project("values_vision_proj", x));
        let word_values = split(&project("values_text_proj", words));
        let scores = {
            let raw = query.bmm(&key.transpose(1, 2));
            // The largest of all is taken off; its gradient needs all of them.
            let largest = raw.constant("max", &[0; 0], raw.dtype());
            let lowered = raw.sub(&largest).keeping(std::slice::from_ref(&raw));
            drop(raw);
            lowered.clamp_between()
        };
        let turned = scores.transpose(1, 2);
        let by_word = {
            let largest = turned.max_values().unsqueeze(-1);
            let lowered = turned.sub(&largest);
            lowered.clamp_between()
        };
        let hidden_places = maps
            .mask
            .as_ref()
            .map(|mask| mask.constant("repeat", &[rows, 1, x.size(1)], DType::Bool));
        let fill = |scores: Tensor, mask: &Option<Tensor>| match mask {
            Some(mask) => scores.masked_fill_(mask),
            None => scores,
        };
        let by_word = fill(by_word, &hidden_places).pipe(|own| own.softmax(None));
        let hidden_words = Some(words.constant("repeat", &[rows, 1, words.size(1)], DType::Bool));
        let by_place = fill(scores, &hidden_words).pipe(|own| own.softmax(None));
        let to_places = by_place.bmm(&word_values);
        let to_words = by_word.bmm(&place_values);
        let merge = |read: &Tensor| {
            let count = read.size(1);
            read.view(&[n, heads, count, width])
                .transpose(1, 2)
                .reshape(&[n, count, wide])
        };
        let (to_places, to_words) = (merge(&to_places), merge(&to_words));
        [
            cx.linear("out_vision_proj", &to_places, self.hidden, true),
            cx.linear("out_text_proj", &to_words, self.hidden, true),
        ]
    }

    /// `GroundingDinoTextEnhancerLayer.forward`.
    fn enhanced(&self, cx: &Cx, words: &Tensor, among: &Tensor) -> Tensor {
        let heads = self.heads / 2;
        let [n, s] = [words.size(0), words.size(1)];
        let mask = among.constant("mul", &[n, heads, s, s], words.dtype());
        let places = words.constant("cat", words.shape(), words.dtype());
        let read = cx.module("self_attn", |cx| {
            let placed = words.add(&places);
            eager(cx, [&placed, &placed, words], heads, Some(&mask))
        });
        let mut hidden = words.add(&read);
        hidden = cx.layer_norm("layer_norm_before", &hidden);
        let out = {
            let x = cx
                .linear("fc1", &hidden, self.ffn / 2, true)
                .pipe(Tensor::relu);
            cx.linear("fc2", &x, self.hidden, true)
        };
        let sum = out.add(&hidden);
        cx.layer_norm("layer_norm_after", &sum)
    }

    /// `GroundingDinoDeformableLayer.forward`.
    fn looked_around(
        &self,
        cx: &Cx,
        input: &Tensor,
        [places, reference]: [&Tensor; 2],
        maps: &Maps,
    ) -> Tensor {
        let sampling = Sampling {
            heads: self.heads,
            points: self.points,
            one_copy: false,
        };
        let sampled = cx.module("self_attn", |cx| {
            let placed = input.add(places);
            let maps = Maps {
                features: input.clone(),
                ..maps.clone()
            };
            sampling.run(cx, &placed, reference, &maps)
        });
        let dropped = cx.dropout(&sampled, 0.1);
        drop(sampled);
        let mut hidden = input.add(&dropped);
        drop(dropped);
        hidden = cx.layer_norm("self_attn_layer_norm", &hidden);
        hidden = self.fed(cx, &hidden, self.ffn);
        let size = hidden.constant("abs", hidden.shape(), hidden.dtype());
        let finite = hidden.constant("ne", hidden.shape(), DType::Bool);
        drop((size, finite));
        hidden
    }

    /// The two layers of a block, its residual and its last norm.
    pub(super) fn fed(&self, cx: &Cx, hidden: &Tensor, width: u64) -> Tensor {
        let out = {
            let x = cx.linear("fc1", hidden, width, true).pipe(Tensor::relu);
            cx.linear("fc2", &x, self.hidden, true)
        };
        let dropped = cx.dropout(&out, 0.1);
        drop(out);
        let sum = hidden.add(&dropped);
        drop(dropped);
        cx.layer_norm("final_layer_norm", &sum)
    }
}
