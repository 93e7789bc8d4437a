//! `Trainer.evaluate` of transformers: a forward pass over each batch, and what it keeps for metrics.

use super::Policy;
use super::head::prepared;
use super::reference::without_gradients;
use crate::nets::{Cx, Net, Output};
use crate::tape::{DType, Phase, Tensor};
use headroom_scenario::{Data, EvaluationOutput};

pub(crate) struct Evaluation<'a> {
    pub policy: Policy<'a>,
    pub net: &'a dyn Net,
}

impl Net for Evaluation<'_> {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        self.net.batch(cx, data)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        self.net.forward(cx, batch)
    }

    /// `evaluation_loop`: what is kept of a batch is joined to what was kept of those before it (`nested_concat`).
    fn before_step(&self, cx: &Cx, data: &Data) {
        /// Batches whose joins are run one by one: more show nothing new but the last.
        const RUN: u64 = 4;
        let task = self.policy.task;
        let batches = match task.evaluated {
            EvaluationOutput::Loss => 1,
            _ => task.evaluation_batches.max(1),
        };
        without_gradients(cx, |cx| {
            cx.tape.with_phase(Phase::Evaluation, || {
                let mut kept: Option<Tensor> = None;
                let mut held = 0;
                for round in 0..batches.min(RUN) {
                    let new = self.predictions(cx, data);
                    // The last round represents all that are left.
                    let left = if round + 1 == batches.min(RUN) {
                        batches - round
                    } else {
                        1
                    };
                    let Some(new) = new else { continue };
                    if left > 1 {
                        held += left - 1;
                        kept = Some(joined(&new, held));
                    }
                    held += 1;
                    let all = match &kept {
                        Some(_) => joined(&new, held),
                        None => new.clone(),
                    };
                    drop(kept.replace(all));
                }
            });
        });
    }
}

/// What one of `count` batches keeps.
fn joined(one: &Tensor, batches: u64) -> Tensor {
    let shape = one.shape().with(0, one.size(0).saturating_mul(batches));
    one.tape().empty("cat", shape, one.dtype())
}

impl Evaluation<'_> {
    /// `prediction_step`: what is kept of one batch.
    fn predictions(&self, cx: &Cx, data: &Data) -> Option<Tensor> {
        let batch = self.net.batch(cx, data);
        let Output { loss, held } = prepared(cx, || self.net.forward(cx, &batch));
        let logits = held.first()?.to(DType::F32);
        drop((loss, held));
        let rows = [logits.size(0), logits.size(1)];
        match self.policy.task.evaluated {
            EvaluationOutput::Loss => None,
            EvaluationOutput::Logits => Some(logits),
            EvaluationOutput::Preprocessed => Some(logits.constant("argmax", &rows, DType::I64)),
        }
    }
}
