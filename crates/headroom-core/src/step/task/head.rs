//! From a batch to the log-probabilities of its tokens.

use super::Policy;
use super::rows::Rows;
use crate::nets::{Cx, LanguageModel, Output};
use crate::tape::ops::log_softmax;
use crate::tape::{DType, Tensor};
use headroom_scenario::LmHead;

/// A model prepared by accelerate: its forward runs under an autocast of its own, which within another is none.
pub(crate) fn prepared<T>(cx: &Cx, forward: impl FnOnce() -> T) -> T {
    cx.autocast(forward)
}

/// The same for a forward that calls a whole model through its wrapper.
pub(crate) fn called(cx: &Cx, rows: Rows, forward: &dyn Fn() -> Tensor) -> Tensor {
    let run = |given: Vec<Tensor>| {
        drop(given);
        vec![prepared(cx, forward)]
    };
    let outputs = cx.as_model(vec![rows.ids.clone()], &run);
    outputs
        .into_iter()
        .next()
        .unwrap_or_else(|| rows.ids.clone())
}

/// What a prepared model returns: in fp32 where accelerate wraps its forward (`convert_outputs_to_fp32`), which it does not where
/// `fully_shard` or DeepSpeed does the casting.
pub(crate) fn returned(cx: &Cx, output: Tensor) -> Tensor {
    if cx.env.wrapper.properties().shards_params {
        output
    } else {
        output.pipe(|output| output.to(DType::F32))
    }
}

/// Logits of all tokens as a prepared model returns them.
pub(crate) fn fp32_logits(cx: &Cx, model: &dyn LanguageModel, rows: Rows) -> Tensor {
    returned(cx, logits(cx, model, rows))
}

/// Logits of all tokens as the model gives them.
fn logits(cx: &Cx, model: &dyn LanguageModel, rows: Rows) -> Tensor {
    called(cx, rows, &|| {
        let hidden = model.hidden(cx, rows.ids, rows.mask, None);
        model.logits(cx, &hidden)
    })
}

/// `_fused_forward` of TRL (trl/trainer/utils.py): log-probabilities `[B, S - 1]` of the next tokens. Only the `labelled`
/// rows are projected, in tiles.
fn fused(cx: &Cx, model: &dyn LanguageModel, rows: Rows, labelled: u64) -> Tensor {
    called(cx, rows, &|| {
        let last_hidden_state = model.hidden(cx, rows.ids, rows.mask, None);
        let (b, s) = (rows.ids.size(0), rows.ids.size(1).saturating_sub(1));
        let mut hidden = last_hidden_state.narrow(1, s);
        let mask = rows.ids.constant("ne", &[b, s], DType::Bool);
        let weight = model.head_weight(cx);
        let in_fp32 = cx.env.training.task.fp32_head;
        if in_fp32 {
            hidden = hidden.to(DType::F32);
        }
        let project = || {
            let chosen = hidden.rows_where(&mask, labelled);
            let targets = rows.ids.constant("index", &[labelled], DType::I64);
            chosen.linear_log_probs(&weight, &targets)
        };
        let [per_token, entropy] = if in_fp32 {
            cx.tape.without_autocast(project)
        } else {
            project()
        };
        let zeros = || rows.ids.constant("new_zeros", &[b, s], DType::F32);
        let log_probs = zeros().pipe(|zeros| zeros.masked_scatter(&mask, &per_token));
        let entropies = zeros().pipe(|zeros| zeros.masked_scatter(&mask, &entropy));
        drop((per_token, entropy, entropies, hidden, last_hidden_state));
        log_probs
    })
}

/// `selective_log_softmax` before its kernel, a sample at a time: the chosen logits less the logarithm of the sum of each row's
/// exponentials; of 16-bit logits, which that would be inexact for, the chosen ones of a log-softmax.
pub(crate) fn selective_log_softmax(logits: &Tensor, index: &Tensor) -> Tensor {
    if !matches!(logits.dtype(), DType::F32 | DType::F64) {
        return log_softmax_by_row(logits, index);
    }
    let chosen = logits
        .gather(&index.unsqueeze(-1))
        .pipe(|chosen| chosen.squeeze(-1));
    let sums: Vec<Tensor> = logits.unbind().iter().map(Tensor::logsumexp).collect();
    match Tensor::stack(&sums, 0) {
        Some(sums_of_all) => {
            drop(sums);
            chosen.sub(&sums_of_all)
        }
        None => chosen,
    }
}

fn log_softmax_by_row(logits: &Tensor, index: &Tensor) -> Tensor {
    let rows = logits.unbind();
    let chosen: Vec<Tensor> = rows
        .iter()
        .zip(index.unbind())
        .map(|(row, index)| {
            log_softmax(row)
                .pipe(|all| all.gather(&index.unsqueeze(-1)))
                .pipe(|chosen| chosen.squeeze(-1))
        })
        .collect();
    drop(rows);
    Tensor::stack(&chosen, 0).unwrap_or_else(|| index.clone())
}

/// Log-probabilities, and the logits that a caller's name holds on to.
pub(crate) struct Scored {
    pub log_probs: Tensor,
    pub logits: Option<Tensor>,
}

impl Policy<'_> {
    /// Liger's chunked loss of pairs: the reference gives its hidden states first, which stay.
    pub(crate) fn liger_pairs(&self, cx: &Cx, rows: Rows) -> Output {
        let states = |cx: &Cx| {
            let hidden = prepared(cx, || self.model.hidden(cx, rows.ids, rows.mask, None));
            let all = hidden.size(1).saturating_sub(1);
            hidden.narrow(1, all)
        };
        let judged = if self.task.objective.refers() {
            self.as_reference(cx, |cx| {
                drop(cx.tape.declaring().then(|| self.model.head_weight(cx)));
                states(cx)
            })
        } else {
            None
        };
        let hidden = states(cx);
        let weight = self.model.head_weight(cx);
        let refers = judged.is_some();
        let loss = cx.autocast(|| hidden.preference_loss_liger(&weight, refers));
        drop(hidden);
        // The script's name for the reference's hidden states lasts until the next batch.
        if let Some(judged) = judged {
            cx.tape.keep_with_graph(&judged);
        }
        Output {
            loss,
            held: Vec::new(),
        }
    }

    /// The same for completions, each by itself, with the reference's log-probabilities.
    pub(crate) fn liger_rows(&self, cx: &Cx, rows: Rows) -> Output {
        let hidden = prepared(cx, || self.model.hidden(cx, rows.ids, rows.mask, None));
        let completion = self.task.completion.min(hidden.size(1).saturating_sub(1));
        let hidden = hidden.pipe(|all| all.narrow(1, completion));
        let weight = self.model.head_weight(cx);
        let loss = cx.autocast(|| hidden.policy_loss_liger(&weight));
        Output {
            loss,
            held: Vec::new(),
        }
    }

    /// Log-probabilities `[B, S - 1]` of the next tokens by the head in force.
    pub(crate) fn log_probs(&self, cx: &Cx, rows: Rows, labelled: u64) -> Tensor {
        self.scored(cx, rows, labelled).log_probs
    }

    /// The same with the logits that they were taken from, where there are any.
    pub(crate) fn scored(&self, cx: &Cx, rows: Rows, labelled: u64) -> Scored {
        match self.task.head {
            LmHead::Fused | LmHead::Liger => Scored {
                log_probs: fused(cx, self.model, rows, labelled),
                logits: None,
            },
            LmHead::InPlace | LmHead::Logits | LmHead::LogitsByRow | LmHead::LogSoftmax => cx
                .autocast(|| {
                    let logits = self.returned(cx, logits(cx, self.model, rows));
                    let next = logits.narrow(1, logits.size(1).saturating_sub(1));
                    drop(logits);
                    let index = rows.ids.narrow(1, next.size(1));
                    Scored {
                        log_probs: selective_log_softmax(&next, &index),
                        logits: Some(next),
                    }
                }),
        }
    }

    /// Logits as the loop has them: in fp32 where accelerate returns them.
    pub(crate) fn returned(&self, cx: &Cx, logits: Tensor) -> Tensor {
        if self.task.head == LmHead::LogitsByRow {
            logits
        } else {
            returned(cx, logits)
        }
    }

    /// Runs a trainer's loss: outside of autocast, which each model's forward brings along. A loop of one's own over all logits
    /// has all of it in one region.
    pub(crate) fn loss<T>(&self, cx: &Cx, body: impl FnOnce() -> T) -> T {
        if matches!(self.task.head, LmHead::Logits | LmHead::LogitsByRow) {
            body()
        } else {
            cx.tape.without_autocast(body)
        }
    }

    /// The same for the last tokens alone, at a temperature: of completions after a prompt.
    pub(crate) fn completion_log_probs(&self, cx: &Cx, rows: Rows, completion: u64) -> Tensor {
        let tokens = rows.ids.size(1);
        match self.task.head {
            LmHead::Fused | LmHead::Liger => {
                let labelled = rows.ids.size(0).saturating_mul(completion).max(1);
                let all = fused(cx, self.model, rows, labelled);
                all.narrow(1, completion.min(tokens.saturating_sub(1)))
            }
            LmHead::InPlace => {
                // `_forward_micro_batch` of verl/workers/actor/dp_actor.py: the logits of all tokens, since no padding is among them.
                let all = logits(cx, self.model, rows).pipe(Tensor::div_scalar_);
                let log_probs = all.log_probs_in_place(rows.ids);
                log_probs.narrow(1, completion.min(tokens))
            }
            LmHead::Logits | LmHead::LogitsByRow | LmHead::LogSoftmax => cx.autocast(|| {
                // `logits_to_keep` counts the token before the completion; the temperature makes a second copy.
                let logits = called(cx, rows, &|| {
                    let hidden = self.model.hidden(cx, rows.ids, rows.mask, None);
                    let kept = hidden.narrow(1, completion.saturating_add(1).min(tokens));
                    drop(hidden);
                    self.model.logits(cx, &kept)
                });
                let mut logits = self.returned(cx, logits);
                logits = logits.narrow(1, completion.min(tokens));
                logits = logits.mul_scalar();
                let index = rows.ids.narrow(1, logits.size(1));
                selective_log_softmax(&logits, &index)
            }),
        }
    }
}
