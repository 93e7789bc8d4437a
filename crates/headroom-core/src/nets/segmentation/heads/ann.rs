//! `ANNHead`: places attend to means of parts of a map (asymmetric non-local blocks).

use super::super::backbone::Maps;
use super::super::layers::{flat, joined, point, three};
use super::attention::attended;
use crate::nets::Cx;
use crate::tape::Tensor;

pub(super) fn features(cx: &Cx, maps: &Maps, channels: u64) -> Tensor {
    let (low, high) = (maps.before_last(), maps.last());
    // `project_channels`.
    let inner = channels / 2;
    let wide = high.size(1);
    let fused = cx.module("fusion", |cx| {
        let query = Some("query_project");
        let context = cx.list_item("stages", 0, |cx| {
            block(cx, query, [high, low], [inner, wide])
        });
        let both = joined(&context, std::slice::from_ref(high));
        drop(context);
        cx.conv_and_norm("bottleneck", &both, point(wide))
    });
    let dropped = cx.dropout_2d(&fused, super::DROPOUT);
    drop(fused);
    let x = cx.conv_module("bottleneck", &dropped, three(channels));
    drop(dropped);
    cx.module("context", |cx| {
        let context = cx.list_item("stages", 0, |cx| {
            block(cx, None, [&x, &x], [inner, channels])
        });
        let both = joined(&context, std::slice::from_ref(&x));
        drop(context);
        cx.conv_module("bottleneck", &both, point(channels))
    })
}

/// `SelfAttentionBlock` whose keys and values are `PPMConcat`'s, and the sum of a stack of one. Without a projection for the query that
/// of the key runs twice (`share_key_query`).
fn block(
    cx: &Cx,
    own: Option<&'static str>,
    [high, low]: [&Tensor; 2],
    [inner, out]: [u64; 2],
) -> Tensor {
    let query = cx.conv_module(own.unwrap_or("key_project"), high, point(inner));
    let key = cx
        .conv_module("key_project", low, point(inner))
        .pipe(pooled);
    let value = cx.projection("value_project", low, inner).pipe(pooled);
    let context = attended(&query, &key, &value, true);
    drop((query, key, value));
    let found = cx.projection("out_project", &context, out);
    drop(context);
    let shape = *found.shape();
    let stacked = Tensor::stack(std::slice::from_ref(&found), 0);
    drop(found);
    stacked.map_or_else(|| high.clone(), |all| all.sum(&[0]).view(&shape))
}

/// Means of one, three, six and eight parts a side, in a row.
fn pooled(x: &Tensor) -> Tensor {
    let part = |side| flat(&x.adaptive_avg_pool2d(side));
    let [first, rest @ ..] = [1, 3, 6, 8].map(part);
    Tensor::cat(&first, &rest.iter().collect::<Vec<_>>(), 2)
}
