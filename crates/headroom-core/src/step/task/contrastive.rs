//! Embeddings of queries and passages compared with each other (InfoNCE), in a plain loop: queries first, then each one's
//! passage and hard negatives; every other passage of the batch is a negative too.

use super::states::States;
use crate::nets::{Cx, Net, Output};
use crate::tape::{DType, Tensor};
use headroom_scenario::{Data, Task};

pub(crate) struct Contrastive<'a> {
    pub states: States<'a>,
    pub task: &'a Task,
    pub data: &'a Data,
}

impl Net for Contrastive<'_> {
    fn computes_loss_outside(&self) -> bool {
        true
    }

    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let tokens = match self.task.query {
            0 => data.sequence,
            tokens => tokens,
        };
        let passages = data
            .micro_batch
            .saturating_mul(self.task.negatives.saturating_add(1));
        let mut batch = Vec::new();
        for (rows, length) in [(data.micro_batch, tokens), (passages, data.sequence)] {
            batch.push(cx.tape.empty("input_ids", [rows, length], DType::I64));
            batch.push(cx.tape.empty("attention_mask", [rows, length], DType::I64));
        }
        batch
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [queries, query_mask, passages, passage_mask] = batch else {
            return Output::empty(cx);
        };
        let mask = |mask| Some(mask).filter(|_| self.data.padding_mask);
        let queries = self.embedded(cx, queries, mask(query_mask));
        let passages = self.embedded(cx, passages, mask(passage_mask));
        cx.module("loss", |_| {
            let mut scores = queries.linear(&passages, None);
            scores = scores.pipe(Tensor::mul_scalar);
            let labels = {
                let numbers = scores.constant("arange", &[scores.size(0)], DType::I64);
                numbers.constant("mul", numbers.shape(), DType::I64)
            };
            let loss = scores.cross_entropy(&labels);
            drop((labels, scores));
            Output {
                loss,
                held: Vec::new(),
            }
        })
    }
}

impl Contrastive<'_> {
    /// The last token's state of a decoder, or the first one's of an encoder, in fp32 and of unit length.
    fn embedded(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let pooled = {
            let call = |given: Vec<Tensor>| match &given[..] {
                [ids, ..] => vec![self.states.last(cx, ids, padding)],
                [] => Vec::new(),
            };
            let states = cx.as_model(vec![ids.clone()], &call).into_iter().next();
            match states {
                Some(states) => {
                    self.states.unread(cx);
                    states.select(1).to(DType::F32)
                }
                None => return ids.clone(),
            }
        };
        // `F.normalize`.
        let length = pooled.vector_length();
        let bounded = length.clamp();
        drop(length);
        pooled.div(&bounded.expand(pooled.shape()))
    }
}
