//! PPO with a policy, a value model, a reference and a reward model (`PPOTrainer` of TRL before 1.0).

use super::Policy;
use super::head::selective_log_softmax;
use super::reference::{frozen, in_eval_no_grad};
use super::reward::scores;
use super::rows::{self, Rows};
use super::sampling::{Sample, sample};
use crate::nets::{Cx, Net, Output};
use crate::tape::{DType, Tensor};
use headroom_scenario::{Data, ReferenceDtype};

pub(crate) struct Ppo<'a> {
    pub policy: Policy<'a>,
}

impl Net for Ppo<'_> {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        rows::tokens(cx, [data.micro_batch, self.policy.sampled_length()])
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let Some(ids) = batch.first() else {
            return Output::empty(cx);
        };
        cx.tape.without_autocast(|| {
            cx.autocast(|| {
                let rows = Rows::full(ids);
                let logits = self.logits(cx, rows);
                let values = cx.module("value_model", |cx| scores(cx, self.policy.model, rows));
                if cx.tape.declaring() {
                    self.judge(cx, rows);
                }
                let wide = self.policy.returned(cx, logits.clone());
                let completion = self.policy.task.completion;
                let scaled = wide.narrow(1, completion).mul_scalar();
                drop(wide);
                let index = ids.narrow(1, completion);
                let log_probs = selective_log_softmax(&scaled, &index);
                let value = values.narrow(1, completion);
                let ratio = log_probs.exp();
                let gain = ratio.neg().add(&ratio.clamp_between()).mean_all();
                let squares = value.reshape(&[ids.size(0), completion]).pow().mean_all();
                let loss = gain.add(&squares);
                // Names of the loop, which live until backward is over.
                for name in [logits, values, scaled, log_probs, value, ratio] {
                    cx.tape.keep_with_graph(&name);
                }
                Output {
                    loss,
                    held: Vec::new(),
                }
            })
        })
    }

    /// The rollout: completions with the logits of every step, and then what reference, value and reward model say of them.
    fn before_step(&self, cx: &Cx, data: &Data) {
        let what = Sample {
            keeps_scores: true,
            prepared: false,
            ..self
                .policy
                .sampled(data.micro_batch, self.policy.task.generation_batches.max(1))
        };
        let (ids, scores_of_all) = sample(cx, self.policy.model, what);
        // `torch.stack(generation.logits, 1)`.
        let logits = scores_of_all.first().map(|one| {
            let shape = [one.size(0), self.policy.task.completion, one.size(1)];
            one.tape().empty("stack", shape, DType::F32)
        });
        drop(scores_of_all);
        in_eval_no_grad(cx, |cx| {
            cx.tape.without_autocast(|| {
                cx.autocast(|| {
                    if let Some(logits) = &logits {
                        let index = ids.narrow(1, logits.size(1));
                        drop(selective_log_softmax(logits, &index));
                    }
                    self.judge(cx, Rows::full(&ids));
                });
            });
        });
        drop(logits);
    }
}

impl Ppo<'_> {
    fn logits(&self, cx: &Cx, rows: Rows) -> Tensor {
        let hidden = self.policy.model.hidden(cx, rows.ids, rows.mask, None);
        self.policy.model.logits(cx, &hidden)
    }

    /// The passes of the models that are not the policy.
    fn judge(&self, cx: &Cx, rows: Rows) {
        let completion = self.policy.task.completion;
        let model = self.policy.model;
        cx.tape.no_grad(|| {
            let _ = self.policy.as_reference(cx, |cx| {
                let logits = self.logits(cx, rows);
                let wide = self.policy.returned(cx, logits.clone());
                let scaled = wide.narrow(1, completion).mul_scalar();
                drop(wide);
                let index = rows.ids.narrow(1, completion);
                drop(selective_log_softmax(&scaled, &index));
                drop(logits);
            });
            if !cx.tape.declaring() {
                cx.module("value_model", |cx| drop(scores(cx, model, rows)));
            }
            frozen(cx, "reward_model", ReferenceDtype::Same, |cx| {
                drop(scores(cx, model, rows));
            });
        });
    }
}
