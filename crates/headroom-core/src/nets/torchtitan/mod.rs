//! torchtitan's Llama (torchtitan/models/llama3/model/model.py), which plain PyTorch code for many GPUs is written around.

mod block;
mod rope;

use super::{Cx, ModelError, Net, Output, Plan, Sizes, Split};
use crate::parallel::Role;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

/// `apply_tp` (torchtitan/models/llama3/infra/parallelize.py).
const TENSOR_PLAN: Plan = &[
    ("tok_embeddings", Split::Vocabulary),
    ("attention", Split::GatherSequence),
    ("wq", Split::Columns),
    ("wk", Split::Columns),
    ("wv", Split::Columns),
    ("wo", Split::Rows),
    ("feed_forward", Split::GatherSequence),
    ("w1", Split::Columns),
    ("w2", Split::Rows),
    ("w3", Split::Columns),
    ("output", Split::Head),
];

/// `Transformer`.
#[derive(Clone, Copy, Debug)]
struct Transformer {
    layers: u64,
    dim: u64,
    heads: u64,
    key_value_heads: u64,
    head_dim: u64,
    intermediate: u64,
    vocab: u64,
    max_positions: u64,
    /// RMS norms written out in Python, as before 2024, else `nn.RMSNorm`.
    python_norms: bool,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    const LEAST_POSITIONS: u64 = 8192;
    let dim = sizes.need("hidden")?;
    let heads = sizes.need("heads")?.max(1);
    Ok(Box::new(Transformer {
        layers: sizes.need("layers")?,
        dim,
        heads,
        key_value_heads: sizes.or("kv", heads).clamp(1, heads),
        head_dim: sizes.or("head_dim", dim / heads),
        intermediate: sizes.need("ffn")?,
        vocab: sizes.need("vocab")?,
        max_positions: sizes.or("max_seq_len", LEAST_POSITIONS),
        python_norms: sizes.is_set("python_norms"),
    }))
}

impl Net for Transformer {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        super::inputs::token_ids_and_labels(cx, data)
    }

    fn tensor_plan(&self, _divides_experts: bool) -> Option<Plan> {
        Some(TENSOR_PLAN)
    }

    fn computes_loss_outside(&self) -> bool {
        true
    }

    fn has_stages(&self) -> bool {
        true
    }

    fn supports_context_parallel(&self) -> bool {
        true
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [tokens, labels, ..] = batch else {
            return Output::empty(cx);
        };
        let this = *self;
        let model = |given: Vec<Tensor>| given.iter().map(|x| this.model(cx, x)).collect();
        let outputs = cx.as_model(vec![tokens.clone()], &model);
        let Some(pred) = outputs.into_iter().next() else {
            return Output::empty(cx);
        };
        let loss = cross_entropy_loss(cx, &pred, labels);
        Output {
            loss,
            held: vec![pred],
        }
    }
}

/// `cross_entropy_loss`: `F.cross_entropy(pred.flatten(0, 1).float(), labels.flatten(0, 1))`.
fn cross_entropy_loss(cx: &Cx, pred: &Tensor, labels: &Tensor) -> Tensor {
    cx.module("loss", |_| {
        let count = labels.numel();
        let labels = labels.view(&[count]);
        let rows = pred.view(&[count, pred.size(-1)]);
        let parallel = cx.env.groups.tensor.loss;
        rows.pipe(|rows| rows.to(DType::F32)).pipe(|rows| {
            if parallel {
                rows.cross_entropy_parallel(&labels)
            } else {
                rows.cross_entropy(&labels)
            }
        })
    })
}

impl Transformer {
    fn model(&self, cx: &Cx, tokens: &Tensor) -> Tensor {
        let start = cx.tape.construction_point();
        let positions = self
            .max_positions
            .max(tokens.size(1).saturating_mul(cx.env.groups.context.group));
        let freqs_cis = cx.for_every_stage(|| {
            cx.buffer("freqs_cis", [positions, self.head_dim / 2, 2], DType::F32)
        });
        let registered = cx.tape.construction_point();
        let h = cx.as_role(Role::InputEmbedding, "tok_embeddings", tokens, |tokens| {
            cx.embedding("tok_embeddings", tokens, self.vocab, self.dim)
        });
        let this = *self;
        let state = cx.equal_layers("layers", self.layers, vec![h], move |cx, state| {
            let block = |x| this.block(cx, x, &freqs_cis);
            state.iter().map(block).collect()
        });
        let normed: Option<Tensor> = state
            .first()
            .map(|h| cx.as_role(Role::FinalNorm, "norm", h, |h| self.norm(cx, "norm", h)));
        drop(state);
        let Some(normed) = normed else {
            return tokens.clone();
        };
        let output = cx.as_role(Role::Head, "output", &normed, |normed| {
            cx.linear("output", normed, self.vocab, false)
        });
        // `to_empty` allocates a module's own tensors after those of its children.
        cx.tape.construct_here(start, registered);
        output
    }

    fn norm(&self, cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
        cx.module(name, |cx| {
            let weight = cx.param("weight", [x.size(-1)]).tensor();
            if self.python_norms {
                x.rms_norm_python(&weight)
            } else {
                x.fused_rms_norm(&weight)
            }
        })
    }
}
