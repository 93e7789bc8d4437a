//! DPO and KTO: losses over the policy's and a reference's log-probabilities (trl/trainer/dpo_trainer.py, kto_trainer.py).

use super::Policy;
use super::head::Scored;
use super::rows::{self, Rows};
use crate::nets::{Cx, Net, Output};
use crate::tape::Tensor;
use headroom_scenario::{Data, LmHead, Objective};

pub(crate) struct Preference<'a> {
    pub policy: Policy<'a>,
}

impl Net for Preference<'_> {
    fn wraps_models_itself(&self) -> bool {
        true
    }

    /// DPO's batch holds what was chosen and then what was rejected; KTO's its own rows and others that do not match.
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let mut all = rows::batch(cx, data, self.rows(data.micro_batch));
        if self.policy.task.objective == Objective::Kto {
            all.extend(rows::batch(cx, data, data.micro_batch));
        }
        all
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let Some(rows) = Rows::of(batch, self.policy.data) else {
            return Output::empty(cx);
        };
        if self.policy.task.head == LmHead::Liger {
            return self.policy.liger_pairs(cx, rows);
        }
        self.policy.loss(cx, || {
            let mismatched = batch
                .get(3..)
                .and_then(|rest| Rows::of(rest, self.policy.data));
            if let Some(rows) = mismatched {
                cx.tape.no_grad(|| drop(self.sums(cx, rows)));
            }
            let judge = || {
                self.policy.as_reference(cx, |cx| {
                    if let Some(rows) = mismatched {
                        drop(self.sums(cx, rows));
                    }
                    self.sums(cx, rows)
                })
            };
            // The reference is made after the model that is trained, whichever runs first.
            let first = self.policy.task.reference_first && !cx.tape.declaring();
            let judged = first.then(judge);
            let Scored { log_probs, logits } = self.scored(cx, rows);
            let policy = log_probs.pipe(|log_probs| log_probs.sum(&[1]));
            let reference = judged.unwrap_or_else(judge);
            if let Some(logits) = logits.filter(|_| self.policy.task.keeps_logits) {
                cx.tape.keep_with_graph(&logits);
            }
            preferred(cx, policy, reference)
        })
    }
}

impl Preference<'_> {
    fn rows(&self, micro_batch: u64) -> u64 {
        if self.policy.task.objective.pairs() {
            micro_batch.saturating_mul(2)
        } else {
            micro_batch
        }
    }

    /// The log-probability of each row.
    fn sums(&self, cx: &Cx, rows: Rows) -> Tensor {
        self.scored(cx, rows)
            .log_probs
            .pipe(|log_probs| log_probs.sum(&[1]))
    }

    fn scored(&self, cx: &Cx, rows: Rows) -> Scored {
        let labelled = rows::labelled(self.policy.task.labelled, rows.ids);
        self.policy.scored(cx, rows, labelled)
    }
}

/// The loss of log-probabilities against a reference's: of pairs, the chosen minus the rejected.
pub(crate) fn preferred(cx: &Cx, policy: Tensor, reference: Option<Tensor>) -> Output {
    let ratio = match &reference {
        Some(reference) => policy.sub(reference),
        None => policy.add_scalar(),
    };
    let scores = ratio.chunk(2, 0);
    drop((policy, reference, ratio));
    let margin = match &scores[..] {
        [chosen, rejected] => chosen.sub(rejected),
        [all, ..] => all.add_scalar(),
        [] => return Output::empty(cx),
    };
    Output {
        loss: margin.mul_scalar().log_sigmoid().mean_all().neg(),
        held: Vec::new(),
    }
}
