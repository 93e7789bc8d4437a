//! Heads for classes and numbers (transformers' modeling_layers.py: `GenericForSequenceClassification`,
//! `GenericForTokenClassification`, `GenericForQuestionAnswering`; encoders have their own), in a plain loop.

use super::states::States;
use crate::nets::{Cx, Net, Output};
use crate::tape::{DType, Tensor};
use headroom_scenario::{Data, Objective, Task};

pub(crate) struct Classification<'a> {
    pub states: States<'a>,
    pub task: &'a Task,
}

impl Net for Classification<'_> {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let tokens = [data.micro_batch, data.sequence];
        let rows = [data.micro_batch];
        let ids = cx.tape.empty("input_ids", tokens, DType::I64);
        let labels = match self.task.objective {
            Objective::TokenClassification => cx.tape.empty("labels", tokens, DType::I64),
            Objective::Regression | Objective::Reranking => {
                cx.tape.empty("labels", rows, DType::F32)
            }
            _ => cx.tape.empty("labels", rows, DType::I64),
        };
        let mut batch = vec![ids, labels];
        if data.padding_mask {
            batch.push(cx.tape.empty("attention_mask", tokens, DType::I64));
        }
        if self.task.objective == Objective::QuestionAnswering {
            batch.push(cx.tape.empty("end_positions", rows, DType::I64));
        }
        batch
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, ..] = batch else {
            return Output::empty(cx);
        };
        let padding = batch.get(2).filter(|mask| mask.shape().len() == 2);
        let hidden = self.states.last(cx, ids, padding);
        let logits = match self.task.objective {
            Objective::TokenClassification => self.tokens(cx, &hidden, self.task.classes),
            Objective::QuestionAnswering => return Self::spans(cx, &hidden, labels),
            Objective::Classification => self.sequences(cx, &hidden, ids, self.task.classes),
            _ => self.sequences(cx, &hidden, ids, 1),
        };
        let loss = cx.module("loss", |_| match self.task.objective {
            Objective::Regression => logits.squeeze(-1).mse_loss(labels),
            Objective::Reranking => logits.squeeze(-1).bce_with_logits(labels),
            _ => cross_entropy(&logits, labels),
        });
        drop(hidden);
        Output {
            loss,
            held: vec![logits],
        }
    }
}

impl Classification<'_> {
    /// Logits of each sequence.
    fn sequences(&self, cx: &Cx, hidden: &Tensor, ids: &Tensor, classes: u64) -> Tensor {
        match self.states {
            States::Encoder(model) => model.sequence_logits(cx, hidden, classes),
            States::Decoder(_) => {
                let logits = score(cx, hidden, classes);
                last_tokens(&logits, ids)
            }
        }
    }

    /// Logits of each token.
    fn tokens(&self, cx: &Cx, hidden: &Tensor, classes: u64) -> Tensor {
        match self.states {
            States::Encoder(model) => model.token_logits(cx, hidden, classes),
            States::Decoder(_) => {
                let dropped = cx.dropout(hidden, 0.1);
                cx.linear("score", &dropped, classes, true)
            }
        }
    }

    /// Logits of an answer's start and end, each with a cross-entropy over the tokens.
    fn spans(cx: &Cx, hidden: &Tensor, starts: &Tensor) -> Output {
        let logits = cx.linear("qa_outputs", hidden, 2, true);
        let parts = logits.split(&[1, 1], -1);
        let each = |part: &Tensor| part.squeeze(-1).contiguous();
        let both: Vec<Tensor> = parts.iter().map(each).collect();
        let loss = cx.module("loss", |_| {
            let losses = both.iter().map(|logits| cross_entropy(logits, starts));
            let sum = losses.reduce(|sum, loss| sum.add(&loss));
            sum.map(|sum| sum.mul_scalar())
        });
        match loss {
            Some(loss) => Output { loss, held: both },
            None => Output::empty(cx),
        }
    }
}

fn cross_entropy(logits: &Tensor, labels: &Tensor) -> Tensor {
    let classes = logits.size(-1);
    let rows = logits.view(&[logits.numel() / classes.max(1), classes]);
    rows.cross_entropy(&labels.view(&[labels.numel()]))
}

/// `self.score(hidden_states)`.
fn score(cx: &Cx, hidden: &Tensor, classes: u64) -> Tensor {
    cx.module("score", |cx| {
        let weight = cx.param("weight", [classes, hidden.size(-1)]).tensor();
        hidden.linear(&weight, None)
    })
}

/// `logits[torch.arange(batch_size), last_non_pad_token]`.
fn last_tokens(logits: &Tensor, ids: &Tensor) -> Tensor {
    let (b, s) = (ids.size(0), ids.size(1));
    let last = {
        let not_pad = ids.constant("ne", &[b, s], DType::Bool);
        let mask = not_pad.constant("to", &[b, s], DType::I32);
        drop(not_pad);
        let places = mask.constant("arange", &[s], DType::I32);
        let product = mask.constant("mul", &[b, s], DType::I32);
        let last = product.constant("argmax", &[b], DType::I64);
        drop((places, product, mask));
        last
    };
    let rows = ids.constant("arange", &[b], DType::I64);
    logits.picked(&rows, &last)
}
