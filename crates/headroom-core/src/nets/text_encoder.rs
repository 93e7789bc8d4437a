//! A bidirectional encoder of text in the parts that heads of tasks stand on.

use super::Cx;
use crate::tape::Tensor;

/// An encoder: hidden states of tokens, and the heads of its library.
pub trait TextEncoder {
    /// `last_hidden_state` `[B, S, H]`.
    fn encode(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor;
    /// Modules of the class without a head that embeddings of sentences do not read, such as BERT's pooler.
    fn unread(&self, _cx: &Cx) {}
    /// Logits `[B, C]` of `…ForSequenceClassification`.
    fn sequence_logits(&self, cx: &Cx, hidden: &Tensor, classes: u64) -> Tensor;
    /// Logits `[B, S, C]` of `…ForTokenClassification`: a layer behind a dropout, in most.
    fn token_logits(&self, cx: &Cx, hidden: &Tensor, classes: u64) -> Tensor {
        let dropped = cx.dropout(hidden, 0.1);
        cx.linear("classifier", &dropped, classes, true)
    }
}
