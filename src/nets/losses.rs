//! Losses as the libraries compute them.

use crate::tape::{DType, Tensor};

/// `ForCausalLMLoss` of transformers: logits in fp32, labels moved by one, mean cross-entropy.
pub fn causal_lm_loss(logits: &Tensor, labels: &Tensor) -> Tensor {
    let vocabulary = logits.size(-1);
    let logits = logits.to(DType::F32);
    let (n, s) = (labels.size(0), labels.size(1));
    let labels = labels.constant("pad", &[n, s + 1], DType::I64);
    let shifted = labels.narrow(1, s).contiguous().view(&[n * s]);
    let rows = logits.view(&[n * s, vocabulary]);
    rows.cross_entropy(&shifted)
}
