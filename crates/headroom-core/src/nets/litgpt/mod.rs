//! LitGPT's decoder with its own adapters (lit_gpt/model.py, lora.py, adapter.py and adapter_v2.py of Lightning-AI/litgpt).

mod adapters;
mod attention;
mod block;

use super::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

/// One model of its `config.py`.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a yes or no about a published model"
)]
struct LitGpt {
    layers: u64,
    hidden: u64,
    heads: u64,
    query_groups: u64,
    head_dim: u64,
    intermediate: u64,
    vocab: u64,
    /// How many elements of a head are rotated.
    rope_n_elem: u64,
    bias: bool,
    head_bias: bool,
    /// `LayerNorm`, else `RMSNorm`.
    layer_norm: bool,
    /// `RMSNorm` multiplies by its weight in fp32 (2023), else in the input's type.
    fp32_norm_weight: bool,
    /// `parallel_residual`: attention and MLP read the same input.
    parallel: bool,
    /// `shared_attention_norm`: and the same norm's output.
    shared_norm: bool,
    post_norms: bool,
    /// `GptNeoxMLP`, else a gated one.
    gpt_neox_mlp: bool,
    gelu: bool,
    softcaps: bool,
    /// `zero_pad` copies its zeros (before 2024), else writes into them.
    copies_padding: bool,
    /// LLaMA-Adapter: attention to learned prompts, from the third layer on.
    adapter_prompts: bool,
    /// Adapter v2: also a scale and a bias after each linear layer.
    adapter_v2: bool,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("hidden")?;
    let heads = sizes.need("heads")?.max(1);
    let head_dim = sizes.or("head_dim", hidden / heads);
    Ok(Box::new(LitGpt {
        layers: sizes.need("layers")?,
        hidden,
        heads,
        query_groups: sizes.or("kv", heads).clamp(1, heads),
        head_dim,
        intermediate: sizes.need("ffn")?,
        vocab: sizes.need("vocab")?,
        rope_n_elem: sizes.or("rope", head_dim),
        bias: sizes.is_set("bias"),
        head_bias: sizes.is_set("head_bias"),
        layer_norm: sizes.is_set("layer_norm"),
        fp32_norm_weight: sizes.is_set("wide_weight"),
        parallel: sizes.is_set("parallel"),
        shared_norm: sizes.is_set("shared_norm"),
        post_norms: sizes.is_set("norms_after"),
        gpt_neox_mlp: sizes.is_set("plain_mlp"),
        gelu: sizes.is_set("gelu"),
        softcaps: sizes.is_set("soft_caps"),
        copies_padding: sizes.is_set("copies_padding"),
        adapter_prompts: sizes.is_set("prompts"),
        adapter_v2: sizes.is_set("scales"),
    }))
}

impl Net for LitGpt {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        super::inputs::token_ids_and_labels(cx, data)
    }

    /// The head makes logits for 128 tokens of each sample at a time; their losses are taken one by one.
    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        const CHUNK: u64 = 128;
        let [ids, labels, ..] = batch else {
            return Output::empty(cx);
        };
        let hidden = self.model(cx, ids);
        let tokens = hidden.size(1);
        let sizes: Vec<u64> = (0..tokens.div_ceil(CHUNK))
            .map(|i| CHUNK.min(tokens - i * CHUNK))
            .collect();
        let mut logits: Vec<Tensor> = hidden
            .split(&sizes, 1)
            .iter()
            .map(|part| self.linear(cx, "head", part, self.vocab, self.head_bias))
            .collect();
        drop(hidden);
        if self.softcaps {
            let capped = |part: &Tensor| {
                part.mul_scalar()
                    .pipe(Tensor::tanh)
                    .pipe(Tensor::mul_scalar)
            };
            logits = logits.iter().map(capped).collect();
        }
        // Fabric hands outputs over in fp32 (`convert_output` of its precision plugins). The loop then binds `logits`.
        logits = logits.iter().map(|part| part.to(DType::F32)).collect();
        drop(cx.env.shared.loop_variables.replace(Vec::new()));
        if let Some(last) = logits.pop() {
            logits.push(last.narrow(1, last.size(1).saturating_sub(1)));
        }
        cx.env.shared.loop_variables.replace(logits.clone());
        let loss = {
            let rows: Vec<Tensor> = logits
                .iter()
                .map(|part| part.reshape(&[part.size(0) * part.size(1), self.vocab]))
                .collect();
            let losses: Vec<Tensor> = rows
                .iter()
                .map(|rows| {
                    let targets = labels.constant("split", &[rows.size(0)], DType::I64);
                    rows.cross_entropy(&targets)
                })
                .collect();
            losses.into_iter().reduce(|sum, loss| sum.add(&loss))
        };
        match loss {
            Some(loss) => Output {
                loss,
                held: Vec::new(),
            },
            None => Output::empty(cx),
        }
    }
}

impl LitGpt {
    fn model(&self, cx: &Cx, ids: &Tensor) -> Tensor {
        let tables = [(); 2].map(|()| {
            cx.tape
                .no_grad(|| ids.constant("rope", &[ids.size(1), self.rope_n_elem], DType::F32))
        });
        let x = cx.embedding("wte", ids, self.vocab, self.hidden);
        let this = *self;
        let state = cx.layers("h", self.layers, vec![x], move |cx, state, i| {
            state
                .iter()
                .map(|x| this.block(cx, x, &tables, i as u64))
                .collect()
        });
        match state.first() {
            Some(x) => self.norm(cx, "ln_f", x),
            None => cx.embedding("wte", ids, self.vocab, self.hidden),
        }
    }
}
