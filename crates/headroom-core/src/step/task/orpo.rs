//! ORPO, CPO and SimPO: losses over all logits of pairs, without a reference (trl/experimental/orpo, trl/experimental/cpo).

use super::Policy;
use super::head::fp32_logits;
use super::rows::{self, Rows};
use crate::nets::{Cx, Net, Output};
use crate::tape::{DType, Tensor};
use headroom_scenario::{Data, LmHead, Objective};

pub(crate) struct Orpo<'a> {
    pub policy: Policy<'a>,
}

impl Net for Orpo<'_> {
    fn wraps_models_itself(&self) -> bool {
        true
    }

    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        rows::batch(cx, data, data.micro_batch.saturating_mul(2))
    }

    /// `concatenated_forward` and `get_batch_logps`.
    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let Some(rows) = Rows::of(batch, self.policy.data) else {
            return Output::empty(cx);
        };
        if self.policy.task.head == LmHead::Liger {
            return self.policy.liger_pairs(cx, rows);
        }
        cx.tape.without_autocast(|| {
            let all_logits = fp32_logits(cx, self.policy.model, rows);
            let (b, s) = (rows.ids.size(0), rows.ids.size(1).saturating_sub(1));
            let chosen = b / 2;
            // SimPO leaves the chosen samples' own loss out (`cpo_alpha=0`).
            let own_loss = (self.policy.task.objective != Objective::SimPo).then(|| {
                let logits = all_logits.narrow(0, chosen).narrow(1, s).contiguous();
                let vocabulary = logits.size(-1);
                let labels = rows.ids.constant("contiguous", &[chosen * s], DType::I64);
                logits.view(&[chosen * s, vocabulary]).pipe(|rows| {
                    drop(logits);
                    rows.cross_entropy(&labels)
                })
            });
            let labels = rows.ids.constant("where", &[b, s], DType::I64);
            let next = all_logits.narrow(1, s);
            let per_token = next.selected_log_probs(&labels);
            drop((next, all_logits));
            let mean = per_token.sum(&[1]).mul_scalar();
            let odds = mean.chunk(2, 0);
            drop((per_token, mean));
            let margin = match &odds[..] {
                [chosen, rejected] => chosen.sub(rejected),
                _ => return Output::empty(cx),
            };
            let ratio = margin.log_sigmoid().mean_all().neg();
            let loss = match &own_loss {
                Some(own_loss) => own_loss.add(&ratio),
                None => ratio,
            };
            Output {
                loss,
                held: Vec::new(),
            }
        })
    }
}
