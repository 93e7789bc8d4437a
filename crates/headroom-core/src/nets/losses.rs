//! Losses as the libraries compute them.

use super::cx::Cx;
use super::libraries::Logits;
use crate::tape::{DType, Tensor};

/// How a loss goes over all logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entropy {
    /// `F.cross_entropy`.
    Library,
    /// A kernel that writes the gradient over its logits.
    InPlace,
}

impl Entropy {
    fn of(self, rows: &Tensor, labels: &Tensor) -> Tensor {
        match self {
            Self::Library => rows.cross_entropy(labels),
            Self::InPlace => rows.cross_entropy_liger(labels),
        }
    }
}

/// `CrossEntropyLoss()(logits.view(-1, classes), labels.view(-1))`, as encoders' heads compute it.
pub(crate) fn class_loss(cx: &Cx, logits: &Tensor, labels: &Tensor) -> Tensor {
    cx.module("loss", |_| {
        let classes = logits.size(-1);
        let rows = logits.view(&[logits.numel() / classes.max(1), classes]);
        rows.cross_entropy(&labels.view(&[labels.numel()]))
    })
}

/// `ForCausalLMLoss` of transformers: cross-entropy of fp32 logits with the next token, with the copies that the version in
/// use makes. Gives the loss and the logits as the model returns them.
pub(crate) fn causal_lm_loss(
    cx: &Cx,
    logits: Tensor,
    labels: &Tensor,
    entropy: Entropy,
) -> [Tensor; 2] {
    match cx.env.libraries.logits {
        Logits::Upcast => {
            let wide = logits.to(DType::F32);
            let [_padded, shifted] = shifted_labels(labels);
            let rows = wide.view(&[shifted.numel(), wide.size(-1)]);
            [cx.compiled_loss(|| entropy.of(&rows, &shifted)), logits]
        }
        Logits::Shifted => {
            let wide = logits.to(DType::F32);
            [shifted_loss(&wide, labels, entropy), logits]
        }
        Logits::KeptShifted => {
            let logits = logits.pipe(|logits| logits.to(DType::F32));
            [shifted_loss(&logits, labels, entropy), logits]
        }
    }
}

/// Logits `[B, S, V]` without the last of each sample, against labels without the first: both are copies.
pub(crate) fn shifted_loss(logits: &Tensor, labels: &Tensor, entropy: Entropy) -> Tensor {
    let mut rows = without_last(logits);
    let labels = without_last(labels);
    let (n, vocabulary) = (labels.numel(), rows.size(-1));
    rows = rows.view(&[n, vocabulary]);
    entropy.of(&rows, &labels.view(&[n]))
}

/// `[:, :-1].contiguous()`; which end is cut makes no difference to memory.
pub(crate) fn without_last(x: &Tensor) -> Tensor {
    x.narrow(1, x.size(1).saturating_sub(1)).contiguous()
}

/// Labels `[B, S]` with one more at the end, and moved by one in one dimension: both names live to the end of a loss.
pub(crate) fn shifted_labels(labels: &Tensor) -> [Tensor; 2] {
    let (n, s) = (labels.size(0), labels.size(1));
    let padded = labels.constant("pad", &[n, s + 1], DType::I64);
    let shifted = padded.narrow(1, s).contiguous().view(&[n * s]);
    [padded, shifted]
}
