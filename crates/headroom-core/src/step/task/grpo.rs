//! GRPO and RLOO (trl/trainer/grpo_trainer.py, rloo_trainer.py).

use super::Policy;
use super::rows::{self, Rows};
use super::sampling::sample;
use crate::nets::{Cx, Net, Output};
use crate::tape::{DType, Phase, Tensor};
use headroom_scenario::{Data, LmHead, Objective, Training};

pub(crate) struct Grpo<'a> {
    policy: Policy<'a>,
    /// Micro-batches that a round of sampling is for.
    batches: u64,
    /// The model that sampled is not the one that learns, so that its log-probabilities are taken.
    keeps_old: bool,
}

impl<'a> Grpo<'a> {
    pub(crate) fn new(policy: Policy<'a>, training: &Training) -> Self {
        let task = policy.task;
        let accumulation = training.accumulation.max(1);
        let batches = match task.generation_batches {
            0 => accumulation,
            batches => batches,
        };
        let every = batches.saturating_mul(task.iterations.max(1)).max(1);
        let misaligned = !accumulation.is_multiple_of(every);
        Self {
            keeps_old: misaligned || !policy.samples_itself() || task.objective == Objective::Rloo,
            policy,
            batches,
        }
    }
}

impl Net for Grpo<'_> {
    fn wraps_models_itself(&self) -> bool {
        true
    }

    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        rows::tokens(cx, [data.micro_batch, self.policy.sampled_length()])
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let Some(ids) = batch.first() else {
            return Output::empty(cx);
        };
        cx.tape.without_autocast(|| {
            if cx.tape.declaring() {
                // The reference runs before the step, and is made after the model.
                let log_probs = self.log_probs(cx, ids);
                let _ = self.policy.as_reference(cx, |cx| self.log_probs(cx, ids));
                drop(log_probs);
                return Output::empty(cx);
            }
            if self.policy.task.head == LmHead::Liger {
                return self.policy.liger_rows(cx, Rows::full(ids));
            }
            let log_probs = self.log_probs(cx, ids);
            let ratio = log_probs.sub(&log_probs.detach()).exp();
            drop(log_probs);
            let advantages = ids.constant("advantages", &[ids.size(0), 1], DType::F32);
            let gain = ratio.mul(&advantages);
            let clipped = ratio.clamp_between().mul(&advantages);
            drop(ratio);
            Output {
                loss: gain.add(&clipped).neg().mean_all(),
                held: Vec::new(),
            }
        })
    }

    /// `_generate_and_score_completions`: the completions, then old and reference log-probabilities a micro-batch at a time.
    fn before_step(&self, cx: &Cx, data: &Data) {
        if self.policy.samples_itself() {
            let what = self.policy.sampled(data.micro_batch, self.batches);
            drop(sample(cx, self.policy.model, what));
        } else if cx.env.wrapper.properties().shards_params {
            // vLLM is given the weights, one after the other (`sync_weights`).
            let wrapper = &cx.env.wrapper;
            let merges = cx.env.training.lora.is_some();
            let gather = || wrapper.gather_for_export(merges);
            cx.tape.with_phase(Phase::Generation, gather);
        }
        let scored = match self.policy.task.scored_rows {
            0 => data.micro_batch,
            rows => rows.min(data.micro_batch.saturating_mul(self.batches)),
        };
        let ids = |cx: &Cx| rows::tokens(cx, [scored, self.policy.sampled_length()]);
        let slices = |cx: &Cx| {
            let kept: Vec<Tensor> = (0..self.batches.min(2))
                .filter_map(|_| Some(self.log_probs(cx, ids(cx).first()?)))
                .collect();
            drop(kept);
        };
        cx.tape.without_autocast(|| {
            if self.keeps_old {
                super::reference::in_eval_no_grad(cx, slices);
            }
            let _ = self.policy.as_reference(cx, slices);
        });
    }
}

impl Grpo<'_> {
    fn log_probs(&self, cx: &Cx, ids: &Tensor) -> Tensor {
        let completion = self.policy.task.completion;
        self.policy
            .completion_log_probs(cx, Rows::full(ids), completion)
    }
}
