//! Gated sparse attention, a language model that gathers its keys and values (alfredcs/Gated-Sparse-Attention:
//! `gsa/models/gsa_llama.py`, `gsa/attention/gated_sparse_attention.py`, `gated_indexer.py`, `adaptive_topk.py`).

use headroom_base::DType;
use headroom_core::network::Tensor;
use headroom_core::network::{Cx, ModelError, Net, Output, Sizes};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its configuration"
)]
struct Gsa {
    layers: u64,
    hidden: u64,
    heads: u64,
    kv: u64,
    ffn: u64,
    vocab: u64,
    positions: u64,
    indexer: u64,
    indexer_heads: u64,
    /// Keys of a query: `k_base` where it is fixed. Where it adapts, `k_base` and `k_min` only set masks, and tensors
    /// are made for `k_max`.
    k_base: u64,
    k_max: u64,
    adaptive: bool,
    value_gate: bool,
    output_gate: bool,
    /// The head's weight is the embeddings' (`tie_word_embeddings`).
    tied: bool,
}

pub(super) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    // The guide recommends changing it; it only masks gathered keys and changes no tensor's size.
    sizes.need("k_min")?;
    Ok(Box::new(Gsa {
        layers: sizes.need("layers")?,
        hidden: sizes.need("hidden")?,
        heads: sizes.need("heads")?.max(1),
        kv: sizes.need("kv")?.max(1),
        ffn: sizes.need("ffn")?,
        vocab: sizes.need("vocab")?,
        positions: sizes.need("ctx")?,
        indexer: sizes.need("indexer")?,
        indexer_heads: sizes.need("indexer_heads")?,
        k_base: sizes.need("k_base")?,
        k_max: sizes.need("k_max")?,
        adaptive: sizes.is_set("adaptive"),
        value_gate: sizes.is_set("value_gate"),
        output_gate: sizes.is_set("output_gate"),
        tied: sizes.is_set("tied"),
    }))
}

impl Net for Gsa {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let shape = [data.micro_batch, data.sequence];
        ["input_ids", "labels"]
            .map(|name| cx.tape.empty(name, shape, DType::I64))
            .to_vec()
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels] = batch else {
            return Output::empty(cx);
        };
        let hidden = cx.module("model", |cx| self.model(cx, ids));
        let logits = if self.tied {
            let weight = cx.embedding_weight(&["model", "embed_tokens"], self.vocab, self.hidden);
            // The constructor gives the head a weight of its own before.
            cx.module("lm_head", |cx| {
                drop(cx.weight_until_tied([self.vocab, self.hidden]));
            });
            cx.tied_linear("lm_head", &hidden, &weight)
        } else {
            cx.linear("lm_head", &hidden, self.vocab, false)
        };
        let loss = cx.module("loss", |_| {
            let shorter = logits.size(1).saturating_sub(1);
            let shifted = logits.narrow(1, shorter).contiguous();
            let labels = labels.narrow(1, shorter).contiguous();
            let rows = shifted.view(&[labels.numel(), self.vocab]);
            rows.cross_entropy(&labels.view(&[labels.numel()]))
        });
        Output {
            loss,
            held: vec![logits],
        }
    }
}

impl Gsa {
    fn model(&self, cx: &Cx, ids: &Tensor) -> Tensor {
        let hidden = cx.embedding("embed_tokens", ids, self.vocab, self.hidden);
        let positions = ids.constant("arange", &[ids.size(1)], DType::I64);
        let (this, shape) = (*self, [ids.size(0), ids.size(1)]);
        let positions = positions.unsqueeze(0).expand(&shape);
        let state = cx.equal_layers("layers", self.layers, vec![hidden], move |cx, state| {
            vec![this.layer(cx, &state[0], &positions)]
        });
        rms_norm(cx, "norm", &state[0])
    }

    fn layer(&self, cx: &Cx, x: &Tensor, positions: &Tensor) -> Tensor {
        let residual = x.clone();
        let mut hidden = rms_norm(cx, "input_layernorm", x);
        let attended = cx.module("self_attn", |cx| self.attention(cx, &hidden, positions));
        hidden = residual.add(&attended);
        let residual = hidden.clone();
        hidden = rms_norm(cx, "post_attention_layernorm", &hidden);
        cx.module("mlp", |cx| self.mlp(cx, &hidden))
            .pipe(|mlp_out| residual.add(mlp_out))
    }

    fn mlp(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let gate = cx
            .linear("gate_proj", x, self.ffn, false)
            .pipe(Tensor::silu);
        let up = cx.linear("up_proj", x, self.ffn, false);
        let product = gate.mul(&up);
        drop((gate, up));
        cx.linear("down_proj", &product, self.hidden, false)
    }

    /// `GatedSparseAttention.forward`.
    fn attention(&self, cx: &Cx, x: &Tensor, positions: &Tensor) -> Tensor {
        let (b, s, d) = (x.size(0), x.size(1), self.hidden / self.heads);
        let heads = |name, count: u64| cx.linear(name, x, count * d, false).view(&[b, s, count, d]);
        let mut q = heads("q_proj", self.heads);
        let mut k = heads("k_proj", self.kv);
        let mut v = heads("v_proj", self.kv);
        if self.value_gate {
            v = cx.module("value_gate", |cx| gated(cx, &v, x));
        }
        let tables = cx.module("rotary_emb", |cx| {
            // Casting the model casts its buffers too; in fp32 they would meet values of another type.
            let kept = cx.env.weights;
            cx.buffer("inv_freq", [d / 2], kept);
            ["cos_cached", "sin_cached"].map(|name| {
                cx.buffer(name, [self.positions, d], kept);
                positions.constant("index", &[b, s, d], kept)
            })
        });
        let [cos, sin] = tables.map(|table| table.unsqueeze(2));
        q = rotated(&q, &cos, &sin);
        k = rotated(&k, &cos, &sin);
        let scores = cx.module("indexer", |cx| self.indexer(cx, x));
        let (indices, mask) = self.selected(&scores);
        let (mut out, _weights) = self.sparse(&q, &k, &v, &indices, &mask);
        if self.output_gate {
            out = cx.module("output_gate", |cx| gated(cx, &out, x));
        }
        out = out.reshape(&[b, s, self.hidden]);
        cx.linear("o_proj", &out, self.hidden, false)
    }

    /// `GatedLightningIndexer.forward`. Only the indices of its largest scores are used, so that its graph is dropped when
    /// attention returns, and no gradient reaches it.
    fn indexer(&self, cx: &Cx, x: &Tensor) -> Tensor {
        cx.tape.clone().no_grad(|| {
            let (b, s, h) = (x.size(0), x.size(1), self.indexer_heads);
            let queries = cx.linear("q_proj", x, h * self.indexer, false);
            let keys = cx.linear("k_proj", x, self.indexer, false);
            let queries = queries.view(&[b, s, h, self.indexer]);
            let importance = cx.linear("weight_proj", x, h, true).pipe(Tensor::sigmoid);
            // `einsum('bqhd,bkd->bhqk')`: heads and queries become one dimension.
            let raw = queries
                .transpose(1, 2)
                .reshape(&[b, h * s, self.indexer])
                .pipe(|left| left.bmm(&keys.transpose(1, 2)))
                .pipe(Tensor::mul_scalar)
                .view(&[b, h, s, s]);
            let bias = cx.param("bias", [h]).tensor().view(&[1, h, 1, 1]);
            let gates = raw.add(&bias).pipe(Tensor::sigmoid);
            let weighted = gates.mul(&importance.permute(&[0, 2, 1]).unsqueeze(-1));
            let all = weighted.sum(&[1]).squeeze(1);
            let causal = all.constant("triu", &[s, s], DType::Bool);
            all.masked_fill(&causal.unsqueeze(0))
        })
    }

    /// `AdaptiveTopKSelector.forward`: indices of eight bytes, and which of them count.
    fn selected(&self, scores: &Tensor) -> (Tensor, Tensor) {
        let (b, s, keys) = (scores.size(0), scores.size(1), scores.size(2));
        let k = if self.adaptive {
            self.k_max
        } else {
            self.k_base
        }
        .min(keys);
        if self.adaptive {
            let valid = scores.constant("ne", &[b, s, keys], DType::Bool);
            let inverse = scores.constant("bitwise_not", &[b, s, keys], DType::Bool);
            let masked = scores.constant("masked_fill", &[b, s, keys], scores.dtype());
            drop(inverse);
            let variance = scores.constant("var", &[b, s], scores.dtype());
            drop((valid, masked, variance));
        }
        let counts = scores.constant("k_values", &[b, s], DType::I64);
        let infinite = scores.constant("eq", &[b, s, keys], DType::Bool);
        let finite = scores.constant("masked_fill", &[b, s, keys], scores.dtype());
        let values = scores.constant("topk", &[b, s, k], scores.dtype());
        let indices = scores.constant("topk", &[b, s, k], DType::I64);
        let first = scores.constant("lt", &[b, s, k], DType::Bool);
        let found = scores.constant("gather", &[b, s, k], scores.dtype());
        let valid = scores.constant("ne", &[b, s, k], DType::Bool);
        let mask = scores.constant("bitwise_and", &[b, s, k], DType::Bool);
        drop((valid, found, first, values, finite, infinite, counts));
        (indices, mask)
    }

    /// `_sparse_attention`: a copy of every selected key and value for every query.
    fn sparse(
        &self,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        indices: &Tensor,
        mask: &Tensor,
    ) -> (Tensor, Tensor) {
        let (b, s, h, d) = (q.size(0), q.size(1), self.heads, q.size(-1));
        let selected = indices.size(-1);
        let [k, v] = [k, v].map(|states| self.repeat_kv(states));
        let places = indices
            .unsqueeze(-1)
            .unsqueeze(-1)
            .expand(&[b, s, selected, h, d]);
        let gather = |states: &Tensor| {
            states
                .unsqueeze(1)
                .expand(&[b, s, states.size(1), h, d])
                .gather(&places)
                .permute(&[0, 1, 3, 2, 4])
        };
        let (keys, values) = (gather(&k), gather(&v));
        // `einsum('bqhd,bqhkd->bqhk')`: both sides are cast, then made contiguous.
        let rows = b * s * h;
        let product = |left: &Tensor, right: &Tensor, inner: u64, columns: u64| {
            let (left, right) = (
                left.reshape(&[rows, 1, inner]),
                right.reshape(&[rows, inner, columns]),
            );
            left.bmm(&right).view(&[b, s, h, columns])
        };
        let mut scores = {
            let (left, right) = (q.for_einsum(), keys.for_einsum());
            product(&left, &right.transpose(-2, -1), d, selected)
        };
        scores = scores.mul_scalar();
        let outside = || {
            mask.unsqueeze(2)
                .pipe(|mask| mask.constant("bitwise_not", mask.shape(), DType::Bool))
        };
        scores = outside().pipe(|outside| scores.masked_fill(outside));
        let mut weights = scores.softmax(None);
        weights = outside().pipe(|outside| weights.masked_fill(outside));
        let out = {
            let (left, right) = (weights.for_einsum(), values.for_einsum());
            product(&left, &right, selected, d)
        };
        (out, weights)
    }

    /// `_repeat_kv`.
    fn repeat_kv(&self, x: &Tensor) -> Tensor {
        let (b, s, kv, d) = (x.size(0), x.size(1), x.size(2), x.size(3));
        let times = self.heads / kv.max(1);
        if times <= 1 {
            return x.clone();
        }
        x.unsqueeze(3)
            .expand(&[b, s, kv, times, d])
            .reshape(&[b, s, kv * times, d])
    }
}

/// `ValueGate` and `OutputGate`: a sigmoid of a linear layer times its input.
fn gated(cx: &Cx, x: &Tensor, hidden: &Tensor) -> Tensor {
    let width = x.size(-2) * x.size(-1);
    let gate = cx
        .linear("gate_proj", hidden, width, true)
        .view(x.shape())
        .pipe(Tensor::sigmoid);
    x.mul(&gate)
}

/// `apply_rotary_pos_emb` with tables in fp32, which makes queries and keys fp32 too.
fn rotated(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Tensor {
    let half = x.size(-1) / 2;
    let halves = x.split(&[half, x.size(-1) - half], -1);
    let [first, second] = &halves[..] else {
        return x.clone();
    };
    let rotated_half = second
        .neg()
        .pipe(|second| Tensor::cat(second, &[first], -1));
    let along = x.mul(cos);
    let across = rotated_half.mul(sin);
    along.add(&across)
}

/// `RMSNorm` of the repository: in fp32, the weight last.
fn rms_norm(cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
    cx.module(name, |cx| {
        let weight = cx.param("weight", [x.size(-1)]).tensor();
        let wide = x.to(DType::F32);
        let scale = wide
            .pow()
            .pipe(|squares| squares.mean(&[-1]))
            .pipe(Tensor::add_scalar)
            .pipe(Tensor::rsqrt);
        let normed = scale.pipe(|scale| wide.mul(scale));
        normed.to(x.dtype()).pipe(|normed| normed.mul(&weight))
    })
}
