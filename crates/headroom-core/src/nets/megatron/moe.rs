//! `MoELayer` with the all-to-all dispatcher: every expert gets as many tokens as the others, and experts run one after another.

use super::GptModel;
use crate::nets::Cx;
use crate::tape::ops::Tokens;
use crate::tape::{DType, Tensor};

impl GptModel {
    pub(super) fn mixture(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let tokens = x.numel() / self.hidden.max(1);
        let rows = tokens.saturating_mul(self.topk);
        let flat = x.view(&[tokens, self.hidden]);
        let weights = cx.module("router", |cx| self.route(cx, &flat));
        let weights = weights.view(&[rows, 1]);
        let index = |op| cx.tape.empty(op, [rows], DType::I64);
        let order = index("permute");
        let permuted = flat.rows_selected(&order, rows);
        let received = permuted.exchanged_rows();
        let groups = cx.env.groups.experts.max(1);
        cx.env.shared.divides_experts.set(groups > 1);
        let own = self.experts.div_ceil(groups);
        let grouped = |x: &Tensor, [outer, inner]: [u64; 2]| {
            if own <= 1 || groups <= 1 {
                return x.clone();
            }
            let share = rows / (own * groups).max(1);
            x.view(&[outer, inner, share, self.hidden])
                .transpose(0, 1)
                .contiguous()
                .view(&[rows, self.hidden])
        };
        let sorted = grouped(&received, [groups, own]);
        let out = cx.module("experts", |cx| self.experts(cx, &sorted, &weights, own));
        drop(sorted);
        let unsorted = out.pipe(|out| grouped(out, [own, groups]));
        let returned = unsorted.pipe(Tensor::exchanged_rows);
        let sum = returned.pipe(|returned| returned.rows_added_into(&order, tokens));
        drop((permuted, received, weights, order));
        sum.view(x.shape())
    }

    /// `TopKRouter`: probabilities in fp32, of which the chosen ones take the type of the tokens.
    fn route(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let weight = cx.param("weight", [self.experts, self.hidden]).tensor();
        let logits = x.linear(&weight, None);
        let probabilities = logits.pipe(|logits| logits.softmax(Some(DType::F32)));
        let (best, _chosen) = probabilities.topk(self.topk.min(self.experts));
        drop(probabilities);
        best.pipe(|best| best.to(x.dtype()))
    }

    /// `SequentialMLP`.
    fn experts(&self, cx: &Cx, x: &Tensor, weights: &Tensor, own: u64) -> Tensor {
        let share = x.size(0) / own.max(1);
        let sizes = vec![share; usize::try_from(own).unwrap_or(1)];
        let (parts, factors) = (x.split(&sizes, 0), weights.split(&sizes, 0));
        let pairs = parts.iter().zip(&factors).enumerate();
        let outs: Vec<Tensor> = pairs
            .map(|(i, (part, factor))| {
                cx.list_item("local_experts", i, |cx| self.expert(cx, part, factor))
            })
            .collect();
        drop((parts, factors));
        match outs.split_first() {
            Some((first, rest)) => {
                let rest: Vec<&Tensor> = rest.iter().collect();
                Tensor::cat(first, &rest, 0)
            }
            None => x.clone(),
        }
    }

    fn expert(&self, cx: &Cx, x: &Tensor, weights: &Tensor) -> Tensor {
        let linear = |name, x: &Tensor, out: u64| {
            let weight = cx.module(name, |cx| cx.param("weight", [out, x.size(-1)]).tensor());
            x.linear_accumulating(&weight, None, &Tokens::All, &self.layer_gradient())
        };
        let inner = linear("linear_fc1", x, 2 * self.ffn);
        let active = inner.weighted_swiglu_saving_input(weights);
        drop(inner);
        linear("linear_fc2", &active, self.hidden)
    }
}
