//! Learning from a teacher's distribution: GKD over all logits (trl/experimental/gkd), distillation in tiles
//! (trl/trainer/distillation_trainer.py).

use super::Policy;
use super::head::{fp32_logits, prepared};
use super::reference::{frozen, in_eval_no_grad};
use super::rows::{self, Rows};
use super::sampling::sample;
use crate::nets::{Cx, KvCache, LanguageModel, Net, Output};
use crate::tape::{DType, Tensor};
use headroom_scenario::{Data, Objective};

pub(crate) struct Distillation<'a> {
    pub policy: Policy<'a>,
    pub teacher: Option<Box<dyn Net>>,
}

impl Net for Distillation<'_> {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        if self.samples() {
            rows::tokens(cx, [data.micro_batch, self.policy.sampled_length()])
        } else {
            rows::batch(cx, data, data.micro_batch)
        }
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let data = self.policy.data;
        let rows = match batch.first() {
            Some(ids) if self.samples() => Some(Rows::full(ids)),
            _ => Rows::of(batch, data),
        };
        let Some(rows) = rows else {
            return Output::empty(cx);
        };
        cx.tape
            .without_autocast(|| match self.policy.task.objective {
                Objective::Gkd => self.over_logits(cx, rows),
                _ => self.in_tiles(cx, rows),
            })
    }

    fn before_step(&self, cx: &Cx, data: &Data) {
        if self.samples() && self.policy.samples_itself() {
            let batches = cx.env.training.accumulation.max(1);
            let what = self.policy.sampled(data.micro_batch, batches);
            drop(sample(cx, self.policy.model, what));
        }
    }
}

impl Distillation<'_> {
    /// Whether the student's own completions are learned from.
    fn samples(&self) -> bool {
        self.policy.task.objective != Objective::Gkd || self.policy.task.on_policy
    }

    fn labelled(&self, rows: Rows) -> u64 {
        if self.samples() {
            let completion = self.policy.task.completion;
            rows.ids.size(0).saturating_mul(completion).max(1)
        } else {
            rows::labelled(self.policy.task.labelled, rows.ids)
        }
    }

    fn as_teacher<T>(&self, cx: &Cx, body: impl FnOnce(&Cx, &dyn LanguageModel) -> T) -> T {
        let net = self.teacher.as_deref().and_then(Net::language_model);
        let model = net.unwrap_or(self.policy.model);
        in_eval_no_grad(cx, |cx| {
            frozen(cx, "teacher_model", self.policy.task.reference_type, |cx| {
                body(cx, model)
            })
        })
    }

    /// `generalized_jsd_loss`.
    fn over_logits(&self, cx: &Cx, rows: Rows) -> Output {
        let student = fp32_logits(cx, self.policy.model, rows);
        // The teacher's forward fills a cache, which its output holds.
        let (teacher, cache) = self.as_teacher(cx, |cx, model| {
            let cache = KvCache::default();
            let logits = prepared(cx, || {
                let hidden = model.hidden(cx, rows.ids, rows.mask, Some(&cache));
                model.logits(cx, &hidden)
            });
            (logits.pipe(|logits| logits.to(DType::F32)), cache)
        });
        let length = rows.ids.size(1).saturating_sub(1);
        let loss = {
            let scaled = [&student, &teacher].map(|logits| logits.narrow(1, length).mul_scalar());
            let student_log = crate::tape::ops::log_softmax(&scaled[0]);
            let teacher_log = crate::tape::ops::log_softmax(&scaled[1]);
            let mixture = {
                let both = [student_log.add_scalar(), teacher_log.add_scalar()];
                let stacked = Tensor::stack(&both, 0);
                drop(both);
                match stacked {
                    Some(stacked) => stacked.logsumexp_over(0),
                    None => return Output::empty(cx),
                }
            };
            let beta = student.constant("tensor", &[0; 0], DType::F32);
            let kl_teacher = mixture.kl_divergence(&teacher_log);
            let kl_student = mixture.kl_divergence(&student_log);
            let mut divergence = {
                let first = kl_teacher.mul(&beta);
                let second = kl_student.mul(&beta);
                first.add(&second)
            };
            let mask = rows
                .ids
                .constant("ne", &[rows.ids.size(0), length], DType::Bool);
            divergence = divergence.rows_where(&mask, self.labelled(rows));
            divergence.mean_all()
        };
        drop((student, teacher));
        drop(cache.take());
        Output {
            loss,
            held: Vec::new(),
        }
    }

    /// `_chunked_divergence_loss`.
    fn in_tiles(&self, cx: &Cx, rows: Rows) -> Output {
        let completion = self.policy.task.completion;
        let n = rows.ids.size(0).saturating_mul(completion).max(1);
        let last_hidden_states = |cx: &Cx, model: &dyn LanguageModel| {
            let hidden = prepared(cx, || model.hidden(cx, rows.ids, rows.mask, None));
            // `[:, -logits_to_keep - 1 : -1]`.
            let length = completion.min(hidden.size(1).saturating_sub(1));
            (hidden.narrow(1, length), model.head_weight(cx))
        };
        prepared(cx, || {
            let (student, weight) = last_hidden_states(cx, self.policy.model);
            let (teacher, teacher_weight) = self.as_teacher(cx, last_hidden_states);
            let flat = |hidden: &Tensor| hidden.reshape(&[n, hidden.size(-1)]);
            let mask = rows.ids.constant("ne", &[n], DType::Bool);
            let chosen = [&student, &teacher].map(|hidden| flat(hidden).rows_where(&mask, n));
            let divergence = chosen[0].linear_divergence(&weight, [&chosen[1], &teacher_weight]);
            Output {
                loss: divergence.mean_all(),
                held: Vec::new(),
            }
        })
    }
}
