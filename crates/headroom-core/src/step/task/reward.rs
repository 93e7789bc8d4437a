//! A reward model (trl/trainer/reward_trainer.py): a number for each row, from a head that replaces the language model's.

use super::Policy;
use super::head::{called, returned};
use super::rows::{self, Rows};
use crate::nets::{Cx, LanguageModel, Net, Output};
use crate::tape::Tensor;
use headroom_scenario::Data;

pub(crate) struct Reward<'a> {
    pub policy: Policy<'a>,
}

impl Net for Reward<'_> {
    fn wraps_models_itself(&self) -> bool {
        true
    }

    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        rows::batch(cx, data, data.micro_batch.saturating_mul(2))
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let Some(rows) = Rows::of(batch, self.policy.data) else {
            return Output::empty(cx);
        };
        cx.tape.without_autocast(|| {
            let rewards = called(cx, rows, &|| {
                let scores = scores(cx, self.policy.model, rows);
                scores.narrow(1, 1)
            });
            let rewards = returned(cx, rewards);
            let rewards = rewards.reshape(&[rewards.size(0)]);
            let parts = rewards.chunk(2, 0);
            let margin = match &parts[..] {
                [chosen, rejected] => chosen.sub(rejected),
                _ => return Output::empty(cx),
            };
            Output {
                loss: margin.log_sigmoid().mean_all().neg(),
                held: Vec::new(),
            }
        })
    }
}

/// `GenericForSequenceClassification.forward`: a number for each token, of which one a row is picked.
pub(crate) fn scores(cx: &Cx, model: &dyn LanguageModel, rows: Rows) -> Tensor {
    let hidden = model.hidden(cx, rows.ids, rows.mask, None);
    cx.module("score", |cx| {
        let weight = cx.param("weight", [1, hidden.size(-1)]);
        hidden.linear(&weight.tensor(), None)
    })
}
