//! LitGPT's decoder with its own adapters (lit_gpt/model.py, lora.py, adapter.py and adapter_v2.py of Lightning-AI/litgpt).

use super::{Cx, ModelError, Net, Output, Sizes};
use crate::scenario::Data;
use crate::tape::ops::{AttentionMask, Conv};
use crate::tape::{DType, Tensor};

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
    groups: u64,
    head_dim: u64,
    ffn: u64,
    vocab: u64,
    /// How many numbers of a head are turned.
    rope: u64,
    bias: bool,
    head_bias: bool,
    /// `LayerNorm`, else `RMSNorm`.
    layer_norm: bool,
    /// Its RMS norm applies the weight in fp32 (2023), else in the type it is given.
    wide_weight: bool,
    /// Attention and feed-forward read the same input.
    parallel: bool,
    /// And the same norm's result.
    shared_norm: bool,
    norms_after: bool,
    /// `GptNeoxMLP`, else a gated one.
    plain_mlp: bool,
    gelu: bool,
    soft_caps: bool,
    /// `zero_pad` copies its zeros (before 2024), else writes into them.
    copies_padding: bool,
    /// LLaMA-Adapter: learned prompts of attention, from the third layer on.
    prompts: bool,
    /// Adapter v2: a scale and a bias after each linear layer besides.
    scales: bool,
}

pub fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("hidden")?;
    let heads = sizes.need("heads")?.max(1);
    let head_dim = sizes.or("head_dim", hidden / heads);
    Ok(Box::new(LitGpt {
        layers: sizes.need("layers")?,
        hidden,
        heads,
        groups: sizes.or("kv", heads).clamp(1, heads),
        head_dim,
        ffn: sizes.need("ffn")?,
        vocab: sizes.need("vocab")?,
        rope: sizes.or("rope", head_dim),
        bias: sizes.is_set("bias"),
        head_bias: sizes.is_set("head_bias"),
        layer_norm: sizes.is_set("layer_norm"),
        wide_weight: sizes.is_set("wide_weight"),
        parallel: sizes.is_set("parallel"),
        shared_norm: sizes.is_set("shared_norm"),
        norms_after: sizes.is_set("norms_after"),
        plain_mlp: sizes.is_set("plain_mlp"),
        gelu: sizes.is_set("gelu"),
        soft_caps: sizes.is_set("soft_caps"),
        copies_padding: sizes.is_set("copies_padding"),
        prompts: sizes.is_set("prompts"),
        scales: sizes.is_set("scales"),
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
        if self.soft_caps {
            let capped = |part: &Tensor| part.scale().then(Tensor::tanh).then(Tensor::scale);
            logits = logits.iter().map(capped).collect();
        }
        // Fabric hands outputs over in fp32 (`convert_output` of its precision plugins). The loop then binds `logits`.
        logits = logits.iter().map(|part| part.to(DType::F32)).collect();
        drop(cx.env.named.replace(Vec::new()));
        if let Some(last) = logits.pop() {
            logits.push(last.narrow(1, last.size(1).saturating_sub(1)));
        }
        cx.env.named.replace(logits.clone());
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
                .no_grad(|| ids.constant("rope", &[ids.size(1), self.rope], DType::F32))
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

    fn block(&self, cx: &Cx, x: &Tensor, tables: &[Tensor; 2], layer: u64) -> Tensor {
        let first = self.norm(cx, "norm_1", x);
        let mut attended = cx.within("attn", |cx| self.attention(cx, &first, tables, layer));
        if self.norms_after {
            attended = self.norm(cx, "post_attention_norm", &attended);
        }
        if self.parallel {
            let second = if self.shared_norm {
                first.clone()
            } else {
                self.norm(cx, "norm_2", x)
            };
            return cx
                .within("mlp", |cx| self.mlp(cx, &second))
                .then(|fed| fed.add(&attended))
                .then(|sum| sum.add(x));
        }
        let x = attended.add(x);
        let second = self.norm(cx, "norm_2", &x);
        let mut fed = cx.within("mlp", |cx| self.mlp(cx, &second));
        drop(second);
        if self.norms_after {
            fed = self.norm(cx, "post_mlp_norm", &fed);
        }
        let out = fed.add(&x);
        drop(attended);
        out
    }

    fn norm(&self, cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
        if self.layer_norm {
            return cx.layer_norm(name, x);
        }
        cx.within(name, |cx| {
            let weight = cx.param("weight", [x.size(-1)]).tensor();
            let dtype = x.dtype();
            let x = x.to(DType::F32);
            let scale = x
                .mul(&x)
                .then(|squares| squares.mean(&[-1]))
                .then(Tensor::shift)
                .then(Tensor::rsqrt);
            let normed = x.mul(&scale);
            if self.wide_weight {
                weight.mul(&normed).then(|product| product.to(dtype))
            } else {
                normed.then(|normed| normed.to(dtype)).mul(&weight)
            }
        })
    }

    fn attention(&self, cx: &Cx, x: &Tensor, tables: &[Tensor; 2], layer: u64) -> Tensor {
        let (b, t, d) = (x.size(0), x.size(1), self.head_dim);
        let each = self.heads / self.groups;
        let mut qkv = self.joint_projection(cx, x);
        qkv = qkv
            .view(&[b, t, self.groups, each + 2, d])
            .permute(&[0, 2, 3, 1, 4]);
        let mut parts = qkv.split(&[each, 1, 1], 2).into_iter();
        let (Some(mut q), Some(mut k), Some(mut v)) = (parts.next(), parts.next(), parts.next())
        else {
            return x.clone();
        };
        if self.groups != self.heads {
            let shape = [b, self.groups, each, t, d];
            k = k.expand(&shape);
            v = v.expand(&shape);
        }
        let heads = [b, self.heads, t, d];
        q = q.reshape(&heads);
        k = k.reshape(&heads);
        v = v.reshape(&heads);
        let turned = [&q, &k].map(|x| turned(&x.narrow(-1, self.rope), tables));
        let rest = |x: &Tensor| x.narrow(-1, d.saturating_sub(self.rope));
        let [q_turned, k_turned] = &turned;
        if self.rope < d {
            q = Tensor::cat(q_turned, &[&rest(&q)], -1);
            k = Tensor::cat(k_turned, &[&rest(&k)], -1);
        } else {
            // Joined with nothing, which copies.
            q = Tensor::cat(q_turned, &[], -1);
            k = Tensor::cat(k_turned, &[], -1);
        }
        let mut y = self.attend(&q, &k, &v).transpose(1, 2);
        if self.prompts && layer >= 2 {
            y = self.with_prompts(cx, &q, y);
        }
        y = y.reshape(&[b, t, self.heads * d]);
        let out = self.linear(cx, "proj", &y, self.hidden, self.bias);
        drop((qkv, turned));
        out
    }

    fn attend(&self, q: &Tensor, k: &Tensor, v: &Tensor) -> Tensor {
        if !self.soft_caps {
            return q.attention(k, v, &AttentionMask::Causal, 0.0);
        }
        let (b, h, t) = (q.size(0), q.size(1), q.size(2));
        let mut scores = q.matmul(&k.transpose(2, 3)).then(Tensor::scale);
        scores = scores
            .then(Tensor::scale)
            .then(Tensor::tanh)
            .then(Tensor::scale);
        let mask = q.constant("triu", &[t, t], q.dtype());
        scores = scores.add(&mask);
        scores = scores
            .softmax(Some(DType::F32))
            .then(|scores| scores.to(q.dtype()));
        scores.matmul(v).view(&[b, h, t, v.size(-1)])
    }

    /// Attention over ten learned tokens, added behind a gate.
    fn with_prompts(&self, cx: &Cx, q: &Tensor, y: Tensor) -> Tensor {
        const PROMPTS: u64 = 10;
        let (t, d) = (q.size(2), self.head_dim);
        let each = self.heads / self.groups;
        let prefix = cx.within("adapter_wte", |cx| {
            cx.param("weight", [PROMPTS, self.hidden])
                .tensor()
                .view(&[1, PROMPTS, self.hidden])
        });
        let joint = self
            .joint_projection(cx, &prefix)
            .view(&[1, PROMPTS, self.groups, each + 2, d])
            .permute(&[0, 2, 3, 1, 4]);
        let mut parts = joint.split(&[each, 1, 1], 2).into_iter().skip(1);
        let (Some(keys), Some(values)) = (parts.next(), parts.next()) else {
            return y;
        };
        let shape = [1, self.groups, each, PROMPTS, d];
        let whole = [1, self.heads, PROMPTS, d];
        let keys = keys.expand(&shape).reshape(&whole);
        let values = values.expand(&shape).reshape(&whole);
        let mask = AttentionMask::Given(q.constant("ones", &[1, 1, t, PROMPTS], DType::Bool));
        let batch = [q.size(0), self.heads, PROMPTS, d];
        let over = q
            .attention(&keys.expand(&batch), &values.expand(&batch), &mask, 0.0)
            .transpose(1, 2);
        let gate = cx.param("gating_factor", [1, 1, self.heads, 1]).tensor();
        let share = gate.mul(&over);
        y.add(&share)
    }

    /// `LoRAQKVLinear.forward`: one projection for queries, keys and values, and one adapter for those that have one.
    fn joint_projection(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let d = self.head_dim;
        let width = (self.heads + 2 * self.groups) * d;
        let plain = self.scaled_linear(cx, "attn", x, width, self.bias);
        let Some(lora) = cx.env.training.lora.clone() else {
            return plain;
        };
        let all = [
            ("q_proj", self.heads * d),
            ("k_proj", self.groups * d),
            ("v_proj", self.groups * d),
        ];
        let chosen: Vec<u64> = all
            .iter()
            .filter(|(name, _)| lora.targets.iter().any(|it| it == name))
            .map(|(_, width)| *width)
            .collect();
        let (n, sum) = (chosen.len() as u64, chosen.iter().sum::<u64>());
        if n == 0 {
            return plain;
        }
        cx.within("attn", |cx| {
            let a = cx.param_as(
                "lora_A",
                [lora.rank * n, x.size(-1)],
                cx.env.weights,
                |_| true,
            );
            let b = cx.param_as("lora_B", [sum, lora.rank], cx.env.weights, |_| true);
            let low = x
                .dropout(lora.dropout)
                .then(|x| x.linear(&a.tensor(), None))
                .transpose(1, 2);
            let b = b.tensor().unsqueeze(-1);
            let high = if self.heads == self.groups {
                let conv = Conv::default().grouped(n);
                low.convolution(&b, None, conv)
            } else {
                let lows = low.chunk(n, 1);
                let weights = b.split(&chosen, 0);
                let parts: Vec<Tensor> = lows
                    .iter()
                    .zip(&weights)
                    .map(|(low, weight)| low.convolution(weight, None, Conv::default()))
                    .collect();
                match parts.split_first() {
                    Some((first, rest)) => Tensor::cat(first, &rest.iter().collect::<Vec<_>>(), 1),
                    None => low.clone(),
                }
            };
            let high = high.transpose(1, 2);
            let padded = if sum == width {
                high
            } else {
                high.in_zeros(width, self.copies_padding)
            };
            let share = padded.then(Tensor::scale);
            plain.add(&share)
        })
    }

    fn mlp(&self, cx: &Cx, x: &Tensor) -> Tensor {
        if self.plain_mlp {
            let mut x = self.linear(cx, "fc", x, self.ffn, self.bias);
            x = x.gelu();
            return self.linear(cx, "proj", &x, self.hidden, self.bias);
        }
        let gate = self.linear(cx, "fc_1", x, self.ffn, self.bias);
        let up = self.linear(cx, "fc_2", x, self.ffn, self.bias);
        let product = if self.gelu { gate.gelu() } else { gate.silu() }.then(|gate| gate.mul(&up));
        self.linear(cx, "proj", &product, self.hidden, self.bias)
    }

    /// `LoRALinear.forward`; which adapters there are is said in the names that transformers uses.
    fn linear(&self, cx: &Cx, name: &'static str, x: &Tensor, out: u64, bias: bool) -> Tensor {
        let plain = self.scaled_linear(cx, name, x, out, bias);
        let Some(lora) = cx.env.training.lora.clone() else {
            return plain;
        };
        let target = match name {
            "head" => "lm_head",
            "fc" | "fc_1" | "fc_2" => "up_proj",
            _ if cx.path().ends_with("mlp") => "down_proj",
            _ => "o_proj",
        };
        if !lora.targets.iter().any(|it| it == target) {
            return plain;
        }
        cx.within(name, |cx| {
            let a = cx.param_as("lora_A", [lora.rank, x.size(-1)], cx.env.weights, |_| true);
            let b = cx.param_as("lora_B", [out, lora.rank], cx.env.weights, |_| true);
            let share = x
                .dropout(lora.dropout)
                .then(|x| x.linear(&a.tensor(), None))
                .then(|low| low.linear(&b.tensor(), None))
                .then(Tensor::scale);
            plain.add(&share)
        })
    }

    /// The layer without a low-rank adapter: `AdapterV2Linear.forward` where the run asks for it.
    fn scaled_linear(
        &self,
        cx: &Cx,
        name: &'static str,
        x: &Tensor,
        out: u64,
        bias: bool,
    ) -> Tensor {
        let plain = cx.plain_linear(name, x, out, bias);
        if !self.scales {
            return plain;
        }
        cx.within(name, |cx| {
            let bias = cx.param("adapter_bias", [out]).tensor();
            let scale = cx.param("adapter_scale", [out]).tensor();
            plain
                .then(|plain| plain.add(&bias))
                .then(|sum| scale.mul(sum))
        })
    }
}

/// `apply_rope`: the tables are fp32, and so is the sum until it is cast back.
fn turned(x: &Tensor, [cos, sin]: &[Tensor; 2]) -> Tensor {
    let half = x.size(-1) / 2;
    let parts = [x.narrow(-1, half), x.narrow(-1, x.size(-1) - half)];
    let rotated = {
        let negative = parts[1].neg();
        Tensor::cat(&negative, &[&parts[0]], -1)
    };
    let straight = x.mul(cos);
    let crossed = rotated.mul(sin);
    let sum = straight.add(&crossed);
    drop((straight, crossed));
    let out = sum.to(x.dtype());
    drop(rotated);
    out
}
