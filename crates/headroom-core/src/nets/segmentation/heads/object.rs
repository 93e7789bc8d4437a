//! `OCRHead`: places attend to what a first head says each class looks like.

use super::super::backbone::{Kind, Maps};
use super::super::layers::{Labels, flat, joined, point, three};
use super::DROPOUT;
use super::attention::attended;
use super::convolutions::{resized, single};
use crate::nets::Cx;
use crate::nets::vision::index_name;
use crate::tape::Tensor;

/// `ocr_channels`.
const INNER: u64 = 256;

pub(super) fn losses(cx: &Cx, maps: &Maps, channels: u64, labels: &Labels) -> Vec<Tensor> {
    let classes = labels.classes;
    let parallel = matches!(maps.kind, Kind::Parallel);
    let first = |cx: &Cx| {
        cx.list_item("decode_head", 0, |cx| {
            if parallel {
                resized(cx, maps, classes)
            } else {
                single(cx, maps.before_last(), INNER, classes)
            }
        })
    };
    let loss = labels.loss(&first(cx));
    // `CascadeEncoderDecoder` runs it again for its logits.
    let logits = first(cx);
    let logits = cx.list_item("decode_head", 1, |cx| {
        let x = if parallel {
            maps.concatenated()
        } else {
            maps.last().clone()
        };
        let feature = cx.conv_module("bottleneck", &x, three(channels));
        drop(x);
        let context = gathered(&feature, &logits);
        let out = cx.module("object_context_block", |cx| {
            objects(cx, &feature, &context, channels)
        });
        drop((feature, context));
        cx.classified(&out, classes, if parallel { 0.0 } else { DROPOUT })
    });
    vec![loss, labels.loss(&logits)]
}

/// `SpatialGatherModule.forward`: the mean of the map over each class.
fn gathered(feature: &Tensor, logits: &Tensor) -> Tensor {
    let scaled = flat(logits).mul_scalar();
    let weights = scaled.softmax(None);
    let rows = flat(feature).transpose(1, 2);
    let means = weights.matmul(&rows);
    drop(weights);
    means.transpose(1, 2).contiguous().unsqueeze(3)
}

/// `ObjectAttentionBlock.forward`.
fn objects(cx: &Cx, feature: &Tensor, context: &Tensor, channels: u64) -> Tensor {
    let twice = |name, x: &Tensor| {
        cx.module(name, |cx| {
            (0..2).fold(x.clone(), |x, i| {
                cx.conv_module(index_name(i), &x, point(INNER))
            })
        })
    };
    let query = twice("query_project", feature);
    let key = twice("key_project", context).pipe(flat);
    let value = cx
        .conv_module("value_project", context, point(INNER))
        .pipe(flat);
    let found = attended(&query, &key, &value, true);
    drop((query, key, value));
    let found = found.pipe(|found| cx.conv_module("out_project", found, point(channels)));
    let both = joined(&found, std::slice::from_ref(feature));
    drop(found);
    cx.conv_module("bottleneck", &both, point(channels))
}
