//! Mixtures of experts (transformers/integrations/moe.py: `grouped_mm_experts_forward`, `batched_mm_experts_forward`).

use super::super::Cx;
use super::Decoder;
use super::family::{Experts, MlpForm, Router, SharedExpert};
use crate::tape::{DType, Tensor};

impl Decoder {
    /// `MixtralSparseMoeBlock.forward` and its relatives.
    pub(super) fn sparse_moe(&self, cx: &Cx, x: &Tensor, experts: Experts) -> Tensor {
        if experts.router == Router::EveryExpert {
            return self.repeated_moe(cx, x);
        }
        let mut hidden = x.view(&[x.numel() / self.hidden.max(1), self.hidden]);
        let shared_name = match experts.shared {
            SharedExpert::Gated => Some("shared_expert"),
            SharedExpert::BeforeExperts(name) if self.shared_intermediate > 0 => Some(name),
            _ => None,
        };
        let mut shared = shared_name.map(|name| {
            cx.module(name, |cx| {
                self.gated_mlp(cx, &hidden, self.shared_intermediate)
            })
        });
        let router = match experts.router {
            Router::SoftmaxOfChosen
            | Router::SoftmaxOfChosenFp32
            | Router::SparseMixer
            | Router::SigmoidOfBlock => "router",
            _ if self.family.names.mlp == Some("feed_forward") => "router",
            _ => "gate",
        };
        let (logits, weights, chosen) = cx.module(router, |cx| self.route(cx, &hidden, experts));
        if experts.shared == SharedExpert::BehindRouter {
            let own = |cx: &Cx| self.gated_mlp(cx, &hidden, self.shared_intermediate);
            shared = Some(cx.module("shared_experts", own));
        }
        if experts.shared == SharedExpert::AfterExperts {
            // DeepSeek's router and its block take a view each, one after the other.
            hidden = x.view(hidden.shape());
        }
        let mut out = if self.latent > 0 {
            let bias = self.family.mlp.bias;
            hidden = cx.linear("fc1_latent_proj", &hidden, self.latent, bias);
            let latent = Self {
                hidden: self.latent,
                ..*self
            };
            hidden = latent.routed(cx, [&hidden, &weights, &chosen], experts.bias);
            cx.linear("fc2_latent_proj", &hidden, self.hidden, bias)
        } else {
            self.routed(cx, [&hidden, &weights, &chosen], experts.bias)
        };
        if let Some(mut shared) = shared {
            if experts.shared == SharedExpert::Gated {
                shared = cx
                    .linear("shared_expert_gate", &hidden, 1, false)
                    .pipe(Tensor::sigmoid)
                    .pipe(|gate| gate.mul(&shared));
            }
            out = out.add(&shared);
        }
        out = out.reshape(x.shape());
        if experts.shared == SharedExpert::AfterExperts {
            let common = cx.module("shared_experts", |cx| match self.family.mlp.form {
                MlpForm::Plain => self.plain_mlp(cx, x, self.shared_intermediate),
                _ => self.gated_mlp(cx, x, self.shared_intermediate),
            });
            out = out.add(&common);
        }
        drop((logits, weights, chosen));
        out
    }

    /// The module of all experts, by the implementation in force.
    pub(super) fn routed(
        &self,
        cx: &Cx,
        [hidden, weights, chosen]: [&Tensor; 3],
        bias: bool,
    ) -> Tensor {
        cx.module("experts", |cx| {
            if cx.env.groups.experts > 1 && !bias {
                return self.dispatched_experts(cx, [hidden, weights, chosen]);
            }
            if cx.env.libraries.looped_experts && !bias {
                return self.looped_experts(cx, hidden, chosen, weights);
            }
            if self.batched_experts && !bias {
                return self.batched_experts(cx, hidden, chosen, weights);
            }
            self.grouped_experts(cx, hidden, chosen, weights, bias)
        })
    }

    /// The experts that this GPU has.
    fn own_experts(&self, cx: &Cx) -> u64 {
        let divided = cx.env.shared.divides_experts.get();
        let groups = if divided { cx.env.groups.experts } else { 1 };
        self.experts.div_ceil(groups.max(1))
    }

    /// Each token and choice is sent to the GPU that has the expert, and the result back (`AllToAllEP` of
    /// transformers/distributed/expert_parallel.py), with as many to each GPU.
    fn dispatched_experts(&self, cx: &Cx, given: [&Tensor; 3]) -> Tensor {
        let run = |given: Vec<Tensor>| match &given[..] {
            [hidden, weights, chosen] => vec![self.dispatched(cx, [hidden, weights, chosen])],
            _ => given,
        };
        let given = given.map(Tensor::clone).to_vec();
        let outputs = cx.as_experts(given, &run);
        match outputs.into_iter().next() {
            Some(out) => out,
            None => cx.tape.empty("experts", [0; 0], DType::F32),
        }
    }

    fn dispatched(&self, cx: &Cx, given: [&Tensor; 3]) -> Tensor {
        // GPUs that share the matrices have the same tokens: each sends a part of them, and gathers what the others got back.
        let group = cx.env.groups.tensor.group;
        let [hidden, weights, chosen] = given;
        let own = |x: &Tensor| {
            if group > 1 {
                x.own_rows(group)
            } else {
                x.clone()
            }
        };
        let (hidden, chosen) = (own(hidden), own(chosen));
        let weights = own(weights);
        let sum = self.sent_and_returned(cx, [&hidden, &weights, &chosen]);
        if group > 1 {
            sum.pipe(|sum| sum.all_gather_replicated(group, 0))
        } else {
            sum
        }
    }

    fn sent_and_returned(&self, cx: &Cx, [hidden, weights, chosen]: [&Tensor; 3]) -> Tensor {
        let (tokens, k) = (hidden.size(0), chosen.size(-1));
        let pairs = tokens * k;
        let index = |op, n: u64| hidden.constant(op, &[n], DType::I64);
        let numbers = chosen.view(&[pairs]);
        let (sorted, order) = numbers.sorted();
        drop(sorted);
        let sent = index("floor_divide", pairs).pipe(|places| hidden.rows_at(places));
        let counts = index("zeros", self.experts);
        drop(index("ones_like", pairs));
        let received_counts = index("empty_like", self.experts);
        let received = sent.pipe(Tensor::exchanged_rows);
        let own_numbers = index("repeat_interleave", pairs).view(&[pairs, 1]);
        let ones = hidden.constant("ones_like", &[pairs, 1], received.dtype());
        let found = self.grouped_experts(cx, &received, &own_numbers, &ones, false);
        drop((received, own_numbers, ones, counts, received_counts));
        let returned = found.pipe(Tensor::exchanged_rows);
        let placed = returned.pipe(|rows| rows.put_at(&order));
        drop(order);
        let weighted = {
            let by_choice = placed.view(&[tokens, k, self.hidden]);
            drop(placed);
            weights.unsqueeze(-1).pipe(|weights| by_choice.mul(weights))
        };
        weighted
            .pipe(|parts| parts.sum(&[1]))
            .pipe(|sum| sum.to(hidden.dtype()))
    }

    /// The experts' matrices: up and gate together, and down.
    fn expert_weights(&self, cx: &Cx) -> [Tensor; 2] {
        let (own, inner) = (self.own_experts(cx), self.moe_intermediate);
        let (name, up) = match self.family.mlp.form {
            MlpForm::Plain => ("up_proj", inner),
            _ => ("gate_up_proj", 2 * inner),
        };
        [
            (name, [own, up, self.hidden]),
            ("down_proj", [own, self.hidden, inner]),
        ]
        .map(|(name, shape)| cx.param(name, shape).tensor())
    }

    /// The same, transposed to `[in, out]`, each with its bias.
    fn biased_weights(&self, cx: &Cx) -> [Tensor; 4] {
        let (e, h, f) = (self.experts, self.hidden, self.moe_intermediate);
        let shapes: [(&'static str, &[u64]); 4] = [
            ("gate_up_proj", &[e, h, 2 * f]),
            ("gate_up_proj_bias", &[e, 2 * f]),
            ("down_proj", &[e, f, h]),
            ("down_proj_bias", &[e, h]),
        ];
        shapes.map(|(name, shape)| cx.param(name, shape).tensor())
    }

    fn gated_halves(&self, both: &Tensor) -> Tensor {
        if self.family.mlp.form == MlpForm::Plain {
            return self.activation(both);
        }
        let mut halves = both.chunk(2, -1);
        match (halves.pop(), halves.pop()) {
            (Some(up), Some(gate)) => self.activation(&gate).pipe(|gate| gate.mul(&up)),
            _ => both.clone(),
        }
    }

    /// One expert after the other, as modules of their own, each with an equal share of the tokens
    /// (`MixtralSparseMoeBlock.forward` before transformers 5).
    fn looped_experts(
        &self,
        cx: &Cx,
        hidden: &Tensor,
        chosen: &Tensor,
        weights: &Tensor,
    ) -> Tensor {
        let (tokens, k) = (hidden.size(0), chosen.size(-1));
        let weights = weights.to(hidden.dtype());
        let share = (tokens * k).div_ceil(self.experts);
        let mut sum = hidden.constant("zeros", &[tokens, self.hidden], hidden.dtype());
        let mask = hidden.constant("one_hot", &[tokens, k, self.experts], DType::I64);
        let flat = weights.view(&[tokens * k]);
        for i in 0..self.experts {
            let index = || hidden.constant("where", &[share], DType::I64);
            let (places, choices) = (index(), index());
            let state = hidden.rows(&places);
            let out = cx.list_item("experts", i as usize, |cx| {
                let gate = cx.linear("w1", &state, self.moe_intermediate, false);
                let product = self.activation(&gate).pipe(|gate| {
                    let up = cx.linear("w3", &state, self.moe_intermediate, false);
                    gate.mul(&up)
                });
                drop(gate);
                cx.linear("w2", &product, self.hidden, false)
            });
            let factor = flat.rows(&choices).unsqueeze(-1);
            let weighted = out.mul(&factor).pipe(|rows| rows.to(hidden.dtype()));
            drop(out);
            sum = sum.index_add_(&weighted, &places);
        }
        drop(mask);
        sum
    }

    /// A copy of its expert's matrices for each token and choice.
    fn batched_experts(
        &self,
        cx: &Cx,
        hidden: &Tensor,
        chosen: &Tensor,
        weights: &Tensor,
    ) -> Tensor {
        let (tokens, k) = (hidden.size(0), chosen.size(-1));
        let pairs = tokens * k;
        let rows = hidden
            .unsqueeze(1)
            .expand(&[tokens, k, self.hidden])
            .contiguous()
            .view(&[pairs, self.hidden]);
        let sample_weights = weights.view(&[pairs]);
        let numbers = chosen.view(&[pairs]);
        let [up_and_gate, down] = self.expert_weights(cx);
        let by_pair = |matrices: &Tensor, rows: &Tensor| {
            let column = rows.unsqueeze(-1);
            matrices.bmm(&column).pipe(|product| product.squeeze(-1))
        };
        let mut selected = up_and_gate.rows_at(&numbers);
        let mut out = by_pair(&selected, &rows);
        out = self.gated_halves(&out);
        selected = down.rows_at(&numbers);
        out = by_pair(&selected, &out);
        let weighted = sample_weights
            .unsqueeze(-1)
            .pipe(|weights| out.mul(weights));
        let sum = weighted
            .view(&[tokens, k, self.hidden])
            .pipe(|parts| parts.sum(&[1]))
            .view(&[tokens, self.hidden]);
        let result = sum.to(hidden.dtype());
        drop((selected, rows, out, weighted));
        result
    }

    fn grouped_experts(
        &self,
        cx: &Cx,
        hidden: &Tensor,
        chosen: &Tensor,
        weights: &Tensor,
        bias: bool,
    ) -> Tensor {
        let (tokens, k) = (hidden.size(0), chosen.size(-1));
        let pairs = tokens * k;
        let index = |op, n: u64| hidden.constant(op, &[n], DType::I64);
        let weights = weights.view(&[pairs]);
        let numbers = chosen.view(&[pairs]);
        let (sorted, order) = numbers.sorted();
        let rows = index("floor_divide", pairs).pipe(|places| hidden.rows_at(places));
        let row_weights = weights.rows_at(&order);
        let small = hidden.constant("to", &[pairs], DType::I32);
        let own = self.own_experts(cx);
        let counts = hidden.constant("histc", &[own], DType::I32);
        let offsets = hidden.constant("cumsum", &[own], DType::I32);
        cx.tape.workspace("cumsum", 1024);
        let mut biases = None;
        let mut out;
        if bias {
            let [up_and_gate, first, down, second] = self.biased_weights(cx);
            biases = Some(first.rows_at(&sorted));
            out = added(
                rows.grouped_product(&up_and_gate, &offsets, false),
                biases.as_ref(),
            );
            out = clamped_halves(&out);
            biases = Some(second.rows_at(&sorted));
            out = added(out.grouped_product(&down, &offsets, false), biases.as_ref());
        } else {
            let [up_and_gate, down] = self.expert_weights(cx);
            out = rows.grouped_product(&up_and_gate, &offsets, true);
            out = self.gated_halves(&out);
            out = out.grouped_product(&down, &offsets, true);
        }
        let mut weighted = row_weights.unsqueeze(-1).pipe(|weights| out.mul(weights));
        let inverse = index("empty_like", pairs);
        drop(index("arange", pairs));
        weighted = weighted.rows_at(&inverse);
        let sum = weighted
            .view(&[tokens, k, self.hidden])
            .pipe(|parts| parts.sum(&[1]))
            .view(&[tokens, self.hidden]);
        let result = sum.to(hidden.dtype());
        drop((sorted, order, small, counts, row_weights, rows, biases));
        result
    }
}

/// `out.add_(bias)`.
fn added(out: Tensor, biases: Option<&Tensor>) -> Tensor {
    match biases {
        Some(biases) => out.pipe(|out| out.add_(biases)),
        None => out,
    }
}

/// `GptOssExperts._apply_gate`.
fn clamped_halves(both: &Tensor) -> Tensor {
    let [mut gate, mut up] = [0; 2].map(|_| both.every_other());
    gate = gate.clamp();
    up = up.clamp_between();
    let glu = {
        let open = gate.mul_scalar().pipe(Tensor::sigmoid);
        gate.mul(&open)
    };
    up.add_scalar().pipe(|up| up.mul(&glu))
}
