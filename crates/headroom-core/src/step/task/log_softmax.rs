//! Preferences over the logarithm of a softmax of all logits (LLaMA-Factory, train/dpo/trainer.py and train/kto/trainer.py).

use super::Policy;
use super::head::fp32_logits;
use super::preference::{Preference, preferred};
use super::rows::Rows;
use crate::nets::{Cx, Net, Output};
use crate::tape::ops::log_softmax;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

pub(crate) struct LogSoftmax<'a> {
    pub policy: Policy<'a>,
}

/// The log-probability of each row, and the logits that names hold on to until the loss is known.
struct Pass {
    log_probs: Tensor,
    logits: Tensor,
}

impl Net for LogSoftmax<'_> {
    fn wraps_models_itself(&self) -> bool {
        true
    }

    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let policy = self.policy;
        Preference { policy }.batch(cx, data)
    }

    /// `get_batch_loss_metrics`: the policy's logits outlive the reference's pass, since metrics are made of them.
    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        cx.tape.without_autocast(|| {
            let Some(Pass { log_probs, logits }) = self.concatenated_forward(cx, batch) else {
                return Output::empty(cx);
            };
            let reference = if self.policy.task.objective.refers() {
                let judged = |cx: &Cx| Some(self.concatenated_forward(cx, batch)?.log_probs);
                self.policy.as_reference(cx, judged).flatten()
            } else {
                None
            };
            let output = preferred(cx, log_probs, reference);
            drop(logits);
            output
        })
    }
}

impl LogSoftmax<'_> {
    /// KTO's also passes the rows that do not match, and copies the logits of good and of bad answers.
    fn concatenated_forward(&self, cx: &Cx, batch: &[Tensor]) -> Option<Pass> {
        let pass = self.pass(cx, Rows::of(batch, self.policy.data)?);
        let mismatched = batch.get(3..);
        let mismatched = mismatched.and_then(|rest| Rows::of(rest, self.policy.data));
        let Some(rows) = mismatched else {
            return Some(pass);
        };
        cx.tape.no_grad(|| drop(self.pass(cx, rows)));
        let copies = (pass.logits).constant("index", pass.logits.shape(), DType::F32);
        Some(Pass {
            logits: copies,
            ..pass
        })
    }

    /// `get_batch_logps`.
    fn pass(&self, cx: &Cx, rows: Rows) -> Pass {
        let logits = fp32_logits(cx, self.policy.model, rows);
        let next = logits.narrow(1, logits.size(1).saturating_sub(1));
        let index = rows.ids.narrow(1, next.size(1)).unsqueeze(-1);
        let all = log_softmax(&next);
        let per_token = all.gather(&index).pipe(|chosen| chosen.squeeze(-1));
        drop((next, all));
        Pass {
            log_probs: per_token.sum(&[1]),
            logits,
        }
    }
}
