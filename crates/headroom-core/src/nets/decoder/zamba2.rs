//! Zamba 2 (transformers/models/zamba2/modeling_zamba2.py): layers of Mamba 2, before some of which a block of attention and an
//! MLP reads the embeddings again. There are one or two such blocks, which take turns; adapters of low rank tell their uses apart.

use super::super::kv_cache::{Cache, cached};
use super::super::{Cx, ModelError, Net, Output, Region, Sizes, inputs};
use super::families::llama::{LLAMA, NAMES};
use super::family::{Family, Names, Rope};
use super::{Decoder, LayerSet, attention_function, rope};
use crate::tape::Tensor;
use crate::tape::ops::AttentionMask;
use headroom_scenario::Data;

const ZAMBA2: Family = Family {
    names: &Names {
        final_norm: "final_layernorm",
        ..NAMES
    },
    ..LLAMA
};

#[derive(Clone, Copy, Debug)]
struct Zamba2 {
    text: Decoder,
    /// The layers before which a shared block runs.
    hybrid: Option<LayerSet>,
    /// `num_mem_blocks`.
    blocks: u64,
    /// `adapter_rank`, and whether queries, keys and values have adapters too (`use_shared_attention_adapter`).
    rank: u64,
    adapts_attention: bool,
    /// `use_mem_rope`.
    rotates: bool,
}

/// The arguments of a layer besides its hidden states.
#[derive(Clone)]
struct LayerInputs {
    mask: AttentionMask,
    rotary: Option<[Tensor; 2]>,
    padding: Option<Tensor>,
    cache: Cache,
    index: usize,
    /// Of a hybrid layer: the first layer with its block, and which of the hybrid layers it is.
    block: Option<[usize; 2]>,
}

pub(super) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Zamba2 {
        text: Decoder::new(sizes, ZAMBA2)?,
        hybrid: LayerSet::of(sizes, "full"),
        blocks: sizes.or("mem_blocks", 1).max(1),
        rank: sizes.or("adapter_rank", 128),
        adapts_attention: sizes.is_set("attention_adapters"),
        rotates: sizes.is_set("mem_rope"),
    }))
}

impl Net for Zamba2 {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        inputs::token_ids_and_labels(cx, data)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, ..] = batch else {
            return Output::empty(cx);
        };
        let cache = self.text.cache(cx);
        let hidden = cx.module("model", |cx| self.model(cx, ids, batch.get(2), &cache));
        self.text.output(cx, &hidden, labels, cache)
    }
}

impl Zamba2 {
    /// The width of a head: the block reads twice the width of the model.
    fn head_dim(&self) -> u64 {
        2 * self.text.hidden / self.text.heads
    }

    fn is_hybrid(&self, layer: u64) -> bool {
        self.hybrid.is_some_and(|set| set.contains(layer))
    }

    /// Of a hybrid layer: the first layer with the same block, and how many hybrid layers are before it.
    fn block_of(&self, layer: u64) -> Option<[usize; 2]> {
        let before = (0..layer).filter(|i| self.is_hybrid(*i)).count() as u64;
        let mut hybrid = (0..self.text.layers).filter(|i| self.is_hybrid(*i));
        let first = hybrid.nth((before % self.blocks) as usize)?;
        self.is_hybrid(layer)
            .then_some([first as usize, before as usize])
    }

    fn model(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>, cache: &Cache) -> Tensor {
        let text = &self.text;
        let embeddings = text.embeddings(cx, ids);
        let original = embeddings.cloned();
        let positions = inputs::positions(ids);
        let [mask, _] = text.attention_masks(cx, ids, padding, embeddings.dtype());
        let names = ["inv_freq", "original_inv_freq"];
        let rotary = self.rotates.then(|| {
            let dtype = embeddings.dtype();
            rope::tables(cx, &positions, self.head_dim(), dtype, Rope::Full, names)
        });
        let state = (0..text.layers).fold(vec![embeddings.clone()], |mut state, i| {
            let inputs = LayerInputs {
                mask: mask.clone(),
                rotary: rotary.clone(),
                padding: padding.cloned(),
                cache: cache.clone(),
                index: i as usize,
                block: self.block_of(i),
            };
            let this = *self;
            state.truncate(1);
            state.push(original.clone());
            cx.layer("layers", i as usize, state, move |cx, state| match state {
                [hidden, original, ..] => vec![this.layer(cx, hidden, original, &inputs)],
                _ => Vec::new(),
            })
        });
        let normed = state.first().map(|hidden| text.final_norm(cx, hidden));
        drop((original, positions, mask, rotary));
        normed.unwrap_or(embeddings)
    }

    /// `Zamba2HybridLayer.forward`, `Zamba2MambaDecoderLayer.forward`. The latter is checkpointed by itself within the former.
    fn layer(&self, cx: &Cx, input: &Tensor, original: &Tensor, inputs: &LayerInputs) -> Tensor {
        let padding = inputs.padding.clone();
        let Some([first, number]) = inputs.block else {
            return self.mamba(cx, input, None, padding.as_ref());
        };
        let mut added = cx.module("shared_transformer", |cx| {
            let shared = cx
                .root()
                .module("model", |cx| cx.list_item("layers", first, Cx::clone))
                .module("shared_transformer", Cx::clone);
            self.shared(cx, &shared, [input, original], number, inputs)
        });
        added = cx.linear("linear", &added, self.text.hidden, false);
        let this = *self;
        let (kept, region) = (added.clone(), Region::Layer(inputs.index));
        let out = cx.module("mamba_decoder", |cx| {
            cx.block(region, vec![input.clone()], move |cx, state| {
                let run = |input| this.mamba(cx, input, Some(&kept), padding.as_ref());
                state.iter().map(run).collect()
            })
        });
        drop(added);
        out.into_iter().next().unwrap_or_else(|| input.clone())
    }

    fn mamba(
        &self,
        cx: &Cx,
        input: &Tensor,
        added: Option<&Tensor>,
        padding: Option<&Tensor>,
    ) -> Tensor {
        let mut hidden = match added {
            Some(added) => input.add(added),
            None => input.clone(),
        };
        hidden = cx.rms_norm("input_layernorm", &hidden);
        hidden = cx.module("mamba", |cx| self.text.mamba2(cx, &hidden, padding));
        input.add(&hidden)
    }

    /// `Zamba2AttentionDecoderLayer.forward`, with the weights of `shared`.
    fn shared(
        &self,
        cx: &Cx,
        shared: &Cx,
        [hidden, original]: [&Tensor; 2],
        number: usize,
        inputs: &LayerInputs,
    ) -> Tensor {
        let mut hidden = Tensor::cat(hidden, &[original], -1);
        hidden = shared.rms_norm("input_layernorm", &hidden);
        let (attended, weights) = cx.module("self_attn", |cx| {
            let shared = shared.module("self_attn", Cx::clone);
            self.attention(cx, &shared, &hidden, number, inputs)
        });
        hidden = attended;
        hidden = shared.rms_norm("pre_ff_layernorm", &hidden);
        hidden = cx.module("feed_forward", |cx| {
            let shared = shared.module("feed_forward", Cx::clone);
            self.mlp(cx, &shared, &hidden, number)
        });
        drop(weights);
        hidden
    }

    fn attention(
        &self,
        cx: &Cx,
        shared: &Cx,
        x: &Tensor,
        number: usize,
        inputs: &LayerInputs,
    ) -> (Tensor, Option<Tensor>) {
        let (b, s, d) = (x.size(0), x.size(1), self.head_dim());
        let (h, kv) = (self.text.heads, self.text.key_value_heads);
        let project = |name, n: u64| shared_linear(cx, shared, name, x, n * d);
        let mut all = [
            project("q_proj", h),
            project("k_proj", kv),
            project("v_proj", kv),
        ];
        if self.adapts_attention {
            let lists = [
                "linear_q_adapter_list",
                "linear_k_adapter_list",
                "linear_v_adapter_list",
            ];
            for (projected, list) in all.iter_mut().zip(lists) {
                let more = self.adapter(shared, list, x, number, x.size(-1));
                *projected = projected.add(&more);
            }
        }
        let [mut q, mut k, mut v] = all.map(|t| {
            let heads = t.size(-1) / d.max(1);
            t.view(&[b, s, heads, d]).transpose(1, 2)
        });
        if let Some(tables) = &inputs.rotary {
            let tables = tables.each_ref().map(|table| table.unsqueeze(1));
            [q, k] = [&q, &k].map(|t| rope::rotated(t, &tables, rope::rotate_half));
        }
        (k, v) = cached(&inputs.cache, k, v);
        let (mut out, weights) =
            attention_function(cx, [&q, &k, &v], &inputs.mask, h / kv, false, 0.0);
        out = out.reshape(&[b, s, h * d]).contiguous();
        out = shared_linear(cx, shared, "o_proj", &out, self.text.hidden);
        (out, weights)
    }

    fn mlp(&self, cx: &Cx, shared: &Cx, x: &Tensor, number: usize) -> Tensor {
        let width = 2 * self.text.intermediate;
        let mut both = shared_linear(cx, shared, "gate_up_proj", x, width);
        both = {
            let more = self.adapter(shared, "gate_up_proj_adapter_list", x, number, width);
            both.add(&more)
        };
        let halves = both.chunk(2, -1);
        drop(both);
        let [gate, up] = &halves[..] else {
            return x.clone();
        };
        let product = gate.gelu().pipe(|gate| gate.mul(up));
        shared_linear(cx, shared, "down_proj", &product, self.text.hidden)
    }

    /// The two matrices that one use of a block has to itself.
    fn adapter(&self, cx: &Cx, list: &'static str, x: &Tensor, number: usize, out: u64) -> Tensor {
        cx.list_item(list, number, |cx| {
            let narrow = cx.linear("0", x, self.rank, false);
            cx.linear("1", &narrow, out, false)
        })
    }
}

/// A linear layer whose weight is tied to that of the block's first use; its adapters are its own.
fn shared_linear(cx: &Cx, shared: &Cx, name: &'static str, x: &Tensor, out: u64) -> Tensor {
    let weight = shared.module(name, |cx| cx.param("weight", [out, x.size(-1)]).tensor());
    cx.tied_linear(name, x, &weight)
}
