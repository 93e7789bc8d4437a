//! Supervised fine-tuning (trl/trainer/sft_trainer.py).

use super::Policy;
use super::rows::{self, Rows};
use crate::nets::{Cx, Net, Output};
use crate::tape::Tensor;
use headroom_scenario::Data;

pub(crate) struct Sft<'a> {
    pub policy: Policy<'a>,
}

impl Net for Sft<'_> {
    fn wraps_models_itself(&self) -> bool {
        true
    }

    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        rows::batch(cx, data, data.micro_batch)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let Some(rows) = Rows::of(batch, self.policy.data) else {
            return Output::empty(cx);
        };
        cx.tape.without_autocast(|| {
            let labelled = rows::labelled(self.policy.task.labelled, rows.ids);
            let log_probs = self.policy.log_probs(cx, rows, labelled);
            let per_token_loss = log_probs.neg();
            Output {
                loss: per_token_loss.mean_all(),
                held: Vec::new(),
            }
        })
    }
}
