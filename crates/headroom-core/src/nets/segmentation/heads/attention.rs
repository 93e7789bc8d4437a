//! Attention over places, in the forms of `SelfAttentionBlock`, `NonLocal2d`, `ContextBlock` and `CrissCrossAttention`.

use super::super::layers::{Labels, flat, plane, point, three};
use super::DROPOUT;
use crate::nets::Cx;
use crate::tape::{DType, Tensor};

/// `CrissCrossAttention.forward` of mmcv, twice: each place attends to its row and its column.
pub(super) fn criss_cross(cx: &Cx, x: &Tensor) -> Tensor {
    (0..2).fold(x.clone(), |x, _| cx.module("cca", |cx| crossed(cx, &x)))
}

fn crossed(cx: &Cx, x: &Tensor) -> Tensor {
    let channels = x.size(1);
    let [height, _] = plane(x);
    let query = cx.projection("query_conv", x, channels / 8);
    let key = cx.projection("key_conv", x, channels / 8);
    let value = cx.projection("value_conv", x, channels);
    let diagonal = x.constant("diag", &[height, height], DType::F32);
    let down = query.einsum("bchw", &key, "bciw", "bwhi");
    let down = down.pipe(|energy| energy.add(&diagonal)).transpose(1, 2);
    let across = query.einsum("bchw", &key, "bchj", "bhwj");
    let weights = Tensor::cat(&down, &[&across], -1).softmax(None);
    drop((down, across, query, key, diagonal));
    let parts = weights.split(&[height, weights.size(-1).saturating_sub(height)], -1);
    let [first, second] = &parts[..] else {
        return x.clone();
    };
    let mut out = value.einsum("bciw", first, "bhwi", "bchw");
    out = value
        .einsum("bchj", second, "bhwj", "bchw")
        .pipe(|across| out.add_(across));
    out = scaled(cx, &out);
    out.add(x).contiguous()
}

/// `Scale`: a factor that is trained.
fn scaled(cx: &Cx, x: &Tensor) -> Tensor {
    let factor = cx.module("gamma", |cx| cx.param("scale", [0; 0]).tensor());
    x.mul(&factor)
}

/// `ContextBlock.forward` of mmcv with `pooling_type='att'`.
pub(super) fn global_context(cx: &Cx, x: &Tensor) -> Tensor {
    cx.module("gc_block", |cx| context_block(cx, x, 4))
}

/// The same where channels are divided by `ratio` inside.
pub(in crate::nets) fn context_block(cx: &Cx, x: &Tensor, ratio: u64) -> Tensor {
    let (n, channels) = (x.size(0), x.size(1));
    {
        let values = flat(x).unsqueeze(1);
        let mask = cx.projection("conv_mask", x, 1).pipe(flat);
        let mask = mask.pipe(|mask| mask.softmax(None)).unsqueeze(-1);
        let context = values.matmul(&mask).view(&[n, channels, 1, 1]);
        let term = cx.module("channel_add_conv", |cx| {
            let less = channels / ratio.max(1);
            let y = cx.projection("0", &context, less);
            let rows = cx.layer_norm("1", &y.view(&[n, less]));
            let y = rows.view(&[n, less, 1, 1]).relu_();
            cx.projection("3", &y, channels)
        });
        x.add(&term)
    }
}

/// `NonLocal2d.forward` of mmcv.
pub(super) fn non_local(cx: &Cx, x: &Tensor) -> Tensor {
    cx.module("nl_block", |cx| {
        let [g, theta, phi] = embedded(cx, x);
        let mut weights = theta.matmul(&phi).div_scalar_();
        drop((theta, phi));
        weights = weights.softmax(None);
        let y = weights.matmul(&g);
        drop((weights, g));
        let y = y.pipe(|y| as_map(y, x));
        x.add(&cx.conv_and_norm("conv_out", &y, point(x.size(1))))
    })
}

/// `g`, `theta` and `phi` as rows of places, but `phi`, whose places are its columns.
fn embedded(cx: &Cx, x: &Tensor) -> [Tensor; 3] {
    let inner = x.size(1) / 2;
    let [g, theta, phi] = ["g", "theta", "phi"].map(|name| {
        cx.module(name, |cx| cx.projection("conv", x, inner))
            .pipe(flat)
    });
    [g.transpose(1, 2), theta.transpose(1, 2), phi]
}

/// Rows of places back as a map of the plane of `like`.
fn as_map(rows: &Tensor, like: &Tensor) -> Tensor {
    let [height, width] = plane(like);
    let columns = rows.transpose(1, 2).contiguous();
    let (n, channels) = (columns.size(0), columns.size(1));
    columns.reshape(&[n, channels, height, width])
}

/// `DisentangledNonLocal2d.forward`.
pub(super) fn disentangled(cx: &Cx, x: &Tensor) -> Tensor {
    let n = x.size(0);
    cx.module("dnl_block", |cx| {
        let [g, theta, phi] = embedded(cx, x);
        let centred = |rows: &Tensor, dim: isize| rows.sub_(&rows.mean(&[dim]));
        let theta = theta.pipe(|theta| centred(theta, -2));
        let phi = phi.pipe(|phi| centred(phi, -1));
        let mut weights = theta.matmul(&phi).div_scalar_().div_scalar_();
        drop((theta, phi));
        weights = weights.softmax(None);
        let y = weights.matmul(&g).pipe(|y| as_map(y, x));
        drop(weights);
        let mask = cx.projection("conv_mask", x, 1).pipe(flat);
        let mask = mask.pipe(|mask| mask.softmax(None));
        let unary = mask.matmul(&g).transpose(1, 2).contiguous();
        let unary = unary.reshape(&[n, y.size(1), 1, 1]);
        let sum = y.add(&unary);
        drop((y, g, mask, unary));
        x.add(&cx.conv_and_norm("conv_out", &sum, point(x.size(1))))
    })
}

/// What `SelfAttentionBlock.forward` computes of a query `[n, c, h, w]`, a key and a value `[n, c, places]`.
pub(super) fn attended(query: &Tensor, key: &Tensor, value: &Tensor, scales: bool) -> Tensor {
    let rows = |x: &Tensor| x.transpose(1, 2).contiguous();
    let (queries, values) = (rows(&flat(query)), rows(value));
    let mut weights = queries.matmul(key);
    drop(queries);
    if scales {
        weights = weights.mul_scalar();
    }
    weights = weights.softmax(None);
    let context = weights.matmul(&values);
    drop((weights, values));
    context.pipe(|context| as_map(context, query))
}

/// `DAHead`: attention over places and over channels, each classified, and their sum.
pub(super) fn dual(cx: &Cx, x: &Tensor, channels: u64, labels: &Labels) -> Vec<Tensor> {
    let classes = labels.classes;
    cx.module("decode_head", |cx| {
        let module = |name, x: &Tensor| cx.conv_module(name, x, three(channels));
        let mut places = module("pam_in_conv", x);
        places = cx.module("pam", |cx| {
            let query = cx.projection("query_project", &places, 64);
            let key = cx.projection("key_project", &places, 64).pipe(flat);
            let value = cx.projection("value_project", &places, channels).pipe(flat);
            let out = attended(&query, &key, &value, false);
            drop((query, key, value));
            scaled(cx, &out).add(&places)
        });
        places = module("pam_out_conv", &places);
        let by_places = cx.classified_as("pam_conv_seg", &places, classes, DROPOUT);
        let mut kinds = module("cam_in_conv", x);
        kinds = cx.module("cam", |cx| {
            let rows = flat(&kinds);
            let energy = rows.matmul(&rows.transpose(1, 2));
            let (highest, _) = energy.topk(1);
            let difference = highest.expand(energy.shape()).sub(&energy);
            let weights = difference.softmax(None);
            drop((energy, highest, difference));
            let out = weights.matmul(&rows).reshape(kinds.shape());
            scaled(cx, &out).add(&kinds)
        });
        kinds = module("cam_out_conv", &kinds);
        let by_kinds = cx.classified_as("cam_conv_seg", &kinds, classes, DROPOUT);
        let sum = places.add(&kinds);
        let both = cx.classified(&sum, classes, DROPOUT);
        drop((sum, places, kinds));
        [both, by_places, by_kinds]
            .iter()
            .map(|logits| labels.loss(logits))
            .collect()
    })
}
