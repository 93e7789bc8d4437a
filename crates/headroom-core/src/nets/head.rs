//! From the last hidden state of a language model to its loss: all logits, chunks of them, or a fused kernel.

use super::libraries::Logits;
use super::losses::{Entropy, causal_lm_loss, shifted_labels, shifted_loss, without_last};
use super::{Cx, Output, Region};
use crate::tape::{DType, Tensor};
use headroom_scenario::LossKernel;

/// The loss of `hidden` `[B, S, H]` by the kernel in force. `plain_before`: old versions of this model cast nothing up. `project` makes logits; `weight` is the head's matrix.
pub(crate) fn loss(
    cx: &Cx,
    hidden: &Tensor,
    labels: &Tensor,
    plain_before: bool,
    weight: impl Fn() -> Tensor,
    project: impl Fn(&Tensor) -> Tensor,
) -> Output {
    let chunks = cx.env.training.loss_chunks.max(1);
    match cx.env.training.loss {
        LossKernel::Library => {
            over_all(cx, project(hidden), labels, Entropy::Library, plain_before)
        }
        // The library's loss function casts up and shifts before it calls the patched cross-entropy.
        LossKernel::Liger => over_all(cx, project(hidden), labels, Entropy::InPlace, plain_before),
        LossKernel::LigerLinear => cx.module("loss", |cx| {
            let (rows, labels) = if cx.env.libraries.logits == Logits::Upcast {
                let [_padded, labels] = shifted_labels(labels);
                (hidden.clone(), labels)
            } else {
                (without_last(hidden), without_last(labels))
            };
            let n = labels.numel();
            let rows = rows.view(&[n, hidden.size(-1)]);
            let labels = labels.view(&[n]);
            plain(
                cx,
                Some(rows.linear_cross_entropy_liger(
                    &weight(),
                    &labels,
                    cx.env.libraries.linear_loss_upcasts,
                )),
            )
        }),
        LossKernel::CutLinear => cx.module("loss", |cx| {
            // `apply_lce` of cut_cross_entropy/transformers shifts inside of its kernels.
            let n = labels.numel();
            let rows = hidden.view(&[n, hidden.size(-1)]);
            let labels = labels.view(&[n]);
            plain(cx, Some(rows.linear_cross_entropy_cut(&weight(), &labels)))
        }),
        LossKernel::ChunkedLoss => cx.module("loss", |cx| {
            let [rows, labels] = parts(hidden, labels, chunks);
            let logits: Vec<Tensor> = rows
                .iter()
                .map(|rows| rows.linear(&weight(), None))
                .collect();
            let losses = logits.iter().zip(&labels);
            plain(
                cx,
                total(losses.map(|(logits, labels)| {
                    cx.compiled_loss(|| logits.to(DType::F32).cross_entropy(labels))
                })),
            )
        }),
        LossKernel::ChunkedHead => cx.module("loss", |cx| {
            let [rows, labels] = parts(hidden, labels, chunks);
            let losses = rows.iter().zip(&labels);
            plain(
                cx,
                total(losses.map(|(rows, labels)| {
                    let logits = rows
                        .linear(&weight(), None)
                        .pipe(|logits| logits.to(DType::F32));
                    logits.cross_entropy(labels)
                })),
            )
        }),
        LossKernel::ChunkedCheckpoint => cx.module("loss", |cx| {
            let [rows, labels] = parts(hidden, labels, chunks);
            let weight = weight();
            let losses = rows.into_iter().zip(labels).map(|(rows, labels)| {
                let weight = weight.clone();
                let body = move |_: &Cx, inputs: Vec<Tensor>| {
                    let [rows, labels] = &inputs[..] else {
                        return Vec::new();
                    };
                    let logits = rows
                        .linear(&weight, None)
                        .pipe(|logits| logits.to(DType::F32));
                    vec![logits.cross_entropy(labels)]
                };
                let out = cx.block(Region::LossChunk, vec![rows, labels], body);
                out.into_iter().next()
            });
            plain(cx, total(losses.flatten()))
        }),
    }
}

/// The output of a loss over all logits.
fn over_all(
    cx: &Cx,
    logits: Tensor,
    labels: &Tensor,
    entropy: Entropy,
    plain_before: bool,
) -> Output {
    let older = cx.env.libraries.logits != Logits::Upcast;
    let [loss, logits] = cx.module("loss", |cx| {
        if plain_before && older {
            [shifted_loss(&logits, labels, entropy), logits]
        } else {
            causal_lm_loss(cx, logits, labels, entropy)
        }
    });
    Output {
        loss,
        held: vec![logits],
    }
}

/// The output of a loss that leaves no logits behind.
fn plain(cx: &Cx, loss: Option<Tensor>) -> Output {
    match loss {
        Some(loss) => Output {
            loss,
            held: Vec::new(),
        },
        None => Output::empty(cx),
    }
}

/// Rows of the hidden state and of the labels moved by one, in chunks.
fn parts(hidden: &Tensor, labels: &Tensor, chunks: u64) -> [Vec<Tensor>; 2] {
    let [_padded, labels] = shifted_labels(labels);
    let rows = hidden.view(&[labels.numel(), hidden.size(-1)]);
    [rows.chunk(chunks, 0), labels.chunk(chunks, 0)]
}

/// The sum of the chunks' losses, divided by the number of tokens.
fn total(losses: impl Iterator<Item = Tensor>) -> Option<Tensor> {
    let sum = losses.reduce(|sum, loss| sum.add(&loss));
    sum.map(|sum| sum.mul_scalar())
}
