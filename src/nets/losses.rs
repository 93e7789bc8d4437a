//! Losses as the libraries compute them.

use crate::tape::{DType, Tensor};

/// `ForCausalLMLoss` of transformers: logits in fp32, labels moved by one, mean cross-entropy.
pub fn causal_lm_loss(logits: &Tensor, labels: &Tensor) -> Tensor {
    let vocabulary = logits.size(-1);
    let logits = logits.to(DType::F32);
    let [_padded, shifted] = shifted_labels(labels);
    let rows = logits.view(&[shifted.numel(), vocabulary]);
    rows.cross_entropy(&shifted)
}

/// Labels `[B, S]` with one more at the end, and moved by one in one dimension: both names live to the end of a loss.
pub fn shifted_labels(labels: &Tensor) -> [Tensor; 2] {
    let (n, s) = (labels.size(0), labels.size(1));
    let padded = labels.constant("pad", &[n, s + 1], DType::I64);
    let shifted = padded.narrow(1, s).contiguous().view(&[n * s]);
    [padded, shifted]
}
