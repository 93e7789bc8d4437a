//! T5 and its relatives: an encoder and a decoder with relative position biases (transformers/models/t5/modeling_t5.py).

mod attention;
mod config;
mod stack;

use super::kv_cache::cache;
use super::losses::class_loss;
use super::seq2seq::shift_tokens_right;
use super::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::DType;
use crate::tape::Tensor;
pub(super) use attention::relative_position_bucket;
use config::T5;
use headroom_scenario::Data;
use stack::Stack;

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let (layers, heads, hidden) = (
        sizes.need("layers")?,
        sizes.need("heads")?.max(1),
        sizes.need("hidden")?,
    );
    Ok(Box::new(T5 {
        layers,
        decoder_layers: sizes.or("decoder_layers", layers),
        hidden,
        heads,
        head_dim: sizes.or("head_dim", hidden / heads),
        ffn: sizes.or("ffn", 4 * hidden),
        vocab: sizes.need("vocab")?,
        buckets: sizes.or("buckets", 32),
        gated: sizes.is_set("gated"),
        tied: sizes.or("tied", 1) != 0,
    }))
}

impl Net for T5 {
    /// Targets have a quarter of the input's length.
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let ids = [data.micro_batch, data.sequence];
        let labels = [data.micro_batch, data.sequence / 4];
        vec![
            cx.tape.empty("input_ids", ids, DType::I64),
            cx.tape.empty("labels", labels, DType::I64),
        ]
    }

    /// `T5ForConditionalGeneration.forward`; without a decoder `T5EncoderModel.forward`.
    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels] = batch else {
            return Output::empty(cx);
        };
        cx.module("shared", |cx| cx.param("weight", [self.vocab, self.hidden]));
        let stack = |is_decoder| Stack {
            model: *self,
            is_decoder,
        };
        // The constructor gives each stack and the head an embedding of its own; they are tied when all exist.
        let own_weight = |cx: &Cx| cx.weight_until_tied([self.vocab, self.hidden]);
        let of_encoder = cx.module("encoder", |cx| cx.module("embed_tokens", own_weight));
        let encoded = cx.module("encoder", |inner| {
            stack(false).forward([cx, inner], ids, None, &None)
        });
        if self.decoder_layers == 0 {
            let loss = encoded.mean_all();
            return Output {
                loss,
                held: vec![encoded],
            };
        }
        let decoder_ids = shift_tokens_right(labels);
        let of_decoder = cx.module("decoder", |cx| cx.module("embed_tokens", own_weight));
        let cache = cache(cx);
        let decoded = cx.module("decoder", |inner| {
            stack(true).forward([cx, inner], &decoder_ids, Some(&encoded), &cache)
        });
        let (logits, _scaled) = if self.tied {
            let scaled = decoded.mul_scalar();
            let of_head = cx.module("lm_head", own_weight);
            let logits = cx.tied_linear("lm_head", &scaled, &self.shared_weight(cx));
            drop(of_head);
            (logits, Some(scaled))
        } else {
            (cx.linear("lm_head", &decoded, self.vocab, false), None)
        };
        drop((of_encoder, of_decoder));
        let loss = class_loss(cx, &logits, labels);
        let mut held = vec![logits, encoded];
        held.extend(cache.map(|cache| cache.take()).unwrap_or_default());
        Output { loss, held }
    }
}

impl T5 {
    /// The embeddings that encoder and decoder share.
    fn shared_weight(&self, cx: &Cx) -> Tensor {
        cx.embedding_weight(&["shared"], self.vocab, self.hidden)
    }
}
