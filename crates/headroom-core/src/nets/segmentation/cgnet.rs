//! CGNet (mmseg/models/backbones/cgnet.py): blocks that see near, around and everything.

use super::layers::joined;
use crate::nets::Cx;
use crate::nets::vision::index_name;
use crate::tape::Tensor;
use crate::tape::ops::Conv;

pub(super) fn maps(cx: &Cx, image: &Tensor) -> Vec<Tensor> {
    let halved = |x: &Tensor| x.avg_pool2d(3, Conv::stride(2).padded(1));
    let half = halved(image);
    let quarter = halved(image).pipe(halved);
    let mut x = image.clone();
    for i in 0..3 {
        let stride = if i == 0 { 2 } else { 1 };
        x = cx.list_item("stem", i, |cx| {
            normed(cx, &x, 32, 3, Conv::stride(stride).padded(1))
        });
    }
    x = cx.module("norm_prelu_0", |cx| {
        activated(cx, "0", "1", &joined(&x, &[half]))
    });
    let mut maps = vec![x.clone()];
    for (level, norm, blocks, out, dilation, reduction) in [
        ("level1", "norm_prelu_1", 3, 64, 2, 8),
        ("level2", "norm_prelu_2", 21, 128, 4, 16),
    ] {
        let first = cx.list_item(level, 0, |cx| {
            guided(cx, &x, out, dilation, reduction, true)
        });
        x = (1..blocks).fold(first.clone(), |x, i| {
            cx.module(level, |cx| {
                cx.module(index_name(i), |cx| {
                    guided(cx, &x, out, dilation, reduction, false)
                })
            })
        });
        let all = if level == "level1" {
            joined(&x, &[first, quarter.clone()])
        } else {
            joined(&first, &[x])
        };
        x = cx.module(norm, |cx| activated(cx, "0", "1", &all));
        maps.push(x.clone());
    }
    maps
}

/// `ConvModule` with `PReLU`.
fn normed(cx: &Cx, x: &Tensor, out: u64, kernel: u64, form: Conv) -> Tensor {
    let y = cx.conv2d("conv", x, out, kernel, form, false);
    activated(cx, "bn", "activate", &y)
}

/// A norm and `PReLU` with a slope for each channel.
fn activated(cx: &Cx, norm: &'static str, act: &'static str, x: &Tensor) -> Tensor {
    let y = cx.batch_norm(norm, x);
    cx.module(act, |cx| {
        let slope = cx.param("weight", [y.size(1)]).tensor();
        y.prelu(&slope)
    })
}

/// `ContextGuidedBlock.forward`.
fn guided(
    cx: &Cx,
    input: &Tensor,
    out: u64,
    dilation: u64,
    reduction: u64,
    halves: bool,
) -> Tensor {
    let channels = if halves { out } else { out / 2 };
    let (kernel, form) = if halves {
        (3, Conv::stride(2).padded(1))
    } else {
        (1, Conv::default())
    };
    let x = cx.module("conv1x1", |cx| normed(cx, input, channels, kernel, form));
    let near = Conv::stride(1).padded(1).grouped(channels);
    let around = Conv {
        dilation,
        ..near.padded(dilation)
    };
    let both = {
        let near = cx.conv2d("f_loc", &x, channels, 3, near, false);
        let around = cx.conv2d("f_sur", &x, channels, 3, around, false);
        joined(&near, &[around])
    };
    let mut feature = activated(cx, "bn", "activate", &both);
    drop(both);
    if halves {
        feature = cx.conv2d("bottleneck", &feature, out, 1, Conv::default(), false);
    }
    let weighted = cx.module("f_glo", |cx| {
        let rows = feature.adaptive_avg_pool2d(1).flattened_from_one();
        let weights = cx.module("fc", |cx| {
            let less = cx.linear("0", &rows, out / reduction, true).relu_();
            cx.linear("2", &less, out, true).sigmoid()
        });
        feature.mul(&weights.view(&[feature.size(0), out, 1, 1]))
    });
    if halves {
        weighted
    } else {
        input.add(&weighted)
    }
}
