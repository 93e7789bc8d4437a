//! Routers of mixtures: which experts a token passes, and with what weight.

use super::super::Cx;
use super::Decoder;
use super::family::{Experts, Router};
use crate::tape::{DType, Tensor};

impl Decoder {
    /// The router's logits, the chosen experts' weights and their numbers.
    pub(super) fn route(&self, cx: &Cx, x: &Tensor, experts: Experts) -> (Tensor, Tensor, Tensor) {
        match experts.router {
            Router::SoftmaxFp32 | Router::Softmax | Router::EveryExpert => {
                self.softmax_router(cx, x, experts)
            }
            Router::SoftmaxInside => cx.module("wg", |cx| self.softmax_router(cx, x, experts)),
            Router::SoftmaxOfBestGroups => self.best_groups_router(cx, x),
            Router::SoftmaxOfChosen => {
                let weight = self.router_weight(cx);
                let bias = cx.param("bias", [self.experts]).tensor();
                let logits = x.linear(&weight, Some(&bias));
                let (best, chosen) = logits.topk(self.experts_per_token.min(self.experts));
                let weights = best.softmax(Some(best.dtype()));
                (logits, weights, chosen)
            }
            Router::SoftmaxOfChosenFp32 => {
                let narrow = x.linear(&self.router_weight(cx), None);
                let logits = narrow.to(DType::F32);
                drop(narrow);
                let (best, chosen) = logits.topk(self.experts_per_token.min(self.experts));
                let shares = best.softmax(None);
                drop(best);
                (logits, shares.to(x.dtype()), chosen)
            }
            Router::Sigmoid | Router::SigmoidInModelType => self.ungrouped_router(cx, x, experts),
            Router::SigmoidOfBlock => self.block_sigmoid_router(cx, x),
            Router::CorrectedSoftmax => cx.tape.autocast(None, || self.corrected_softmax(cx, x)),
            Router::SoftmaxOfGroups => self.group_router(cx, x),
            Router::SigmoidOfGroups => self.sigmoid_router(cx, x, experts),
            Router::SparseMixer => self.sparse_mixer(cx, x),
        }
    }

    fn router_weight(&self, cx: &Cx) -> Tensor {
        cx.param("weight", [self.experts, self.hidden]).tensor()
    }

    fn softmax_router(&self, cx: &Cx, x: &Tensor, experts: Experts) -> (Tensor, Tensor, Tensor) {
        let logits = x.linear(&self.router_weight(cx), None);
        let fp32 = experts.router == Router::SoftmaxFp32;
        let probabilities = if fp32 {
            logits.to(DType::F32).pipe(|logits| logits.softmax(None))
        } else {
            logits.softmax(Some(DType::F32))
        };
        let (mut weights, chosen) = probabilities.topk(self.experts_per_token.min(self.experts));
        if experts.norm_topk_prob {
            weights = weights.sum(&[-1]).pipe(|sum| weights.div_(sum));
        }
        if !fp32 {
            weights = weights.to(logits.dtype());
        }
        (logits, weights, chosen)
    }

    /// `F.linear(x.type(torch.float32), weight.type(torch.float32))`.
    fn fp32_logits(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let wide = x.to(DType::F32);
        let weight = self.router_weight(cx).to(DType::F32);
        wide.linear(&weight, None)
    }

    /// `MiniMaxM2TopKRouter.forward`, `Lfm2MoeTopKRouter.forward`.
    fn ungrouped_router(&self, cx: &Cx, x: &Tensor, experts: Experts) -> (Tensor, Tensor, Tensor) {
        let logits = x.linear(&self.router_weight(cx), None);
        let wide = experts.router == Router::Sigmoid;
        let shares = if wide {
            logits.to(DType::F32).pipe(Tensor::sigmoid)
        } else {
            logits.sigmoid()
        };
        let dtype = if wide { cx.env.weights } else { DType::F32 };
        let correction = cx.buffer("e_score_correction_bias", [self.experts], dtype);
        let choice = shares.add(&correction);
        let chosen = choice.topk(self.experts_per_token.min(self.experts)).1;
        let mut weights = shares.gathered(&chosen);
        if wide {
            weights = weights.sum(&[-1]).pipe(|sum| weights.div_(sum));
        } else {
            weights = weights.to(logits.dtype());
            let total = weights.sum(&[-1]).pipe(Tensor::add_scalar);
            weights = weights.div(&total);
            drop(total);
            weights = weights.mul_scalar();
        }
        drop((shares, choice));
        (logits, weights, chosen)
    }

    /// `AfmoeTokenChoiceRouter.forward`; the bias is a parameter of its block.
    fn block_sigmoid_router(&self, cx: &Cx, x: &Tensor) -> (Tensor, Tensor, Tensor) {
        let bias = cx.param_as("expert_bias", [self.experts], cx.env.weights, |_| false);
        let logits = cx
            .linear("gate", x, self.experts, false)
            .pipe(|logits| logits.to(DType::F32));
        let scores = logits.sigmoid();
        let (best, chosen) = scores
            .add(&bias.tensor())
            .pipe(|choice| choice.topk(self.experts_per_token.min(self.experts)));
        let mut weights = scores.gathered(&chosen);
        let total = weights.sum(&[-1]).pipe(Tensor::add_scalar);
        weights = weights.div(&total);
        weights = weights.mul_scalar();
        drop((scores, best, total));
        (logits, weights, chosen)
    }

    /// `Ernie4_5_MoeTopKRouter.forward`, under no autocast.
    fn corrected_softmax(&self, cx: &Cx, x: &Tensor) -> (Tensor, Tensor, Tensor) {
        let shape = [self.experts, self.hidden];
        let weight = cx.param_of("weight", shape, DType::F32).tensor();
        let logits = x.to(DType::F32).pipe(|x| x.linear(&weight, None));
        let shares = logits.softmax(Some(DType::F32));
        let chosen = {
            let correction = cx.module("moe_statics", |cx| {
                let shape = [1, self.experts];
                cx.param_as("e_score_correction_bias", shape, DType::F32, |_| false)
            });
            let choice = shares.add(&correction.tensor());
            choice.topk(self.experts_per_token.min(self.experts)).1
        };
        let mut weights = shares.gathered(&chosen);
        weights = {
            let total = weights.sum(&[-1]).pipe(Tensor::clamp);
            weights.div(&total)
        };
        (logits, weights.to(x.dtype()), chosen)
    }

    /// `DeepseekV2TopkRouter.forward`.
    fn group_router(&self, cx: &Cx, x: &Tensor) -> (Tensor, Tensor, Tensor) {
        let logits = self.fp32_logits(cx, x);
        let mut scores = logits.softmax(Some(DType::F32));
        let mut held = Vec::new();
        if self.expert_groups > 1 {
            let by_group = scores.view(&[
                x.size(0),
                self.expert_groups,
                self.experts / self.expert_groups,
            ]);
            let group_scores = by_group.max_values();
            drop(by_group);
            let (mask, tensors) = self.group_mask(&group_scores);
            scores = mask.pipe(|mask| scores.masked_fill(mask));
            held = tensors;
            held.push(group_scores);
        }
        let (mut weights, chosen) = scores.topk(self.experts_per_token.min(self.experts));
        weights = weights.mul_scalar();
        drop(held);
        (logits, weights, chosen)
    }

    /// `Mistral4TopkRouter.forward`.
    fn best_groups_router(&self, cx: &Cx, x: &Tensor) -> (Tensor, Tensor, Tensor) {
        let logits = x.linear(&self.router_weight(cx), None);
        let scores = logits.softmax(None);
        let group_scores = self.scores_of_groups(&scores);
        let (mask, held) = self.group_mask(&group_scores);
        let choice = mask.pipe(|mask| scores.masked_fill(mask));
        let chosen = choice.topk(self.experts_per_token.min(self.experts)).1;
        let mut weights = scores.gathered(&chosen);
        let total = weights.sum(&[-1]).pipe(Tensor::add_scalar);
        weights = weights.div_(&total);
        weights = weights.mul_scalar();
        drop((scores, group_scores, held, choice, total));
        (logits, weights, chosen)
    }

    /// What the two best experts of each group score together.
    fn scores_of_groups(&self, scores: &Tensor) -> Tensor {
        let each = self.experts / self.expert_groups;
        scores
            .view(&[scores.size(0), self.expert_groups, each])
            .pipe(|by_group| by_group.topk(2.min(each)).0)
            .pipe(|best| best.sum(&[-1]).pipe(|sum| sum.squeeze(-1)))
    }

    /// `DeepseekV3TopkRouter.forward`.
    fn sigmoid_router(&self, cx: &Cx, x: &Tensor, experts: Experts) -> (Tensor, Tensor, Tensor) {
        let logits = self.fp32_logits(cx, x);
        let scores = logits.sigmoid();
        let dtype = if experts.fp32_correction {
            DType::F32
        } else {
            cx.env.weights
        };
        let correction = cx.buffer("e_score_correction_bias", [self.experts], dtype);
        let mut choice = scores.add(&correction);
        let group_scores = self.scores_of_groups(&choice);
        let (mask, held) = self.group_mask(&group_scores);
        choice = mask.pipe(|mask| choice.masked_fill(mask));
        let chosen = choice.topk(self.experts_per_token.min(self.experts)).1;
        let mut weights = scores.gathered(&chosen);
        let total = weights.sum(&[-1]).pipe(Tensor::add_scalar);
        weights = weights.div_(&total);
        weights = weights.mul_scalar();
        drop((group_scores, held, choice, total));
        (logits, weights, chosen)
    }

    /// The experts of groups that are not among the best, and what the router's variables keep alive.
    fn group_mask(&self, group_scores: &Tensor) -> (Tensor, Vec<Tensor>) {
        let (tokens, groups) = (group_scores.size(0), self.expert_groups);
        let best = group_scores.topk(self.topk_groups.min(groups)).1;
        let mask = group_scores.constant("zeros_like", &[tokens, groups], DType::F32);
        let scores = mask
            .unsqueeze(-1)
            .expand(&[tokens, groups, self.experts / groups])
            .reshape(&[tokens, self.experts]);
        let good = scores.constant("to", &[tokens, self.experts], DType::Bool);
        let bad = scores.constant("bitwise_not", &[tokens, self.experts], DType::Bool);
        drop(good);
        (bad, vec![best, mask, scores])
    }
}
