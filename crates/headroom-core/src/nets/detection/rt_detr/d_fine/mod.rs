//! D-FINE: HGNetV2 instead of a ResNet, fusion blocks of several branches, and a decoder that refines a distribution of each corner
//! (transformers/models/d_fine/modeling_d_fine.py).

mod backbone;
mod decoder;
mod loss;

use self::backbone::HgNet;
use self::decoder::FineDecoder;
pub(super) use self::loss::Local;
use super::hybrid::{Hybrid, conv_norm};
use super::{Parts, of_parts};
use crate::nets::vision::index_name;
use crate::nets::{Cx, ModelError, Net, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::Conv;

pub(in crate::nets::detection) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let fine = Fine {
        blocks: sizes.or("fusion_blocks", 3),
    };
    let parts = Parts {
        backbone: Box::new(HgNet::new(sizes)?),
        hybrid: Box::new(Hybrid::new(sizes, Some(fine))?),
        decoder: Box::new(FineDecoder::new(sizes)?),
        projects: false,
    };
    of_parts(sizes, parts)
}

/// What the hybrid encoder of D-FINE is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fine {
    /// Blocks of each branch (`round(3 * depth_mult)`).
    blocks: u64,
}

/// `DFineConvNormLayer` with SiLU.
fn activated(
    cx: &Cx,
    name: &'static str,
    x: &Tensor,
    out: u64,
    [kernel, stride]: [u64; 2],
) -> Tensor {
    cx.module(name, |cx| {
        conv_norm(cx, x, out, kernel, stride).pipe(Tensor::silu)
    })
}

impl Fine {
    /// `DFineRepNCSPELAN4.forward`: two branches behind one another, all joined.
    pub(super) fn fused(self, cx: &Cx, x: &Tensor, hidden: u64, inner: u64) -> Tensor {
        let inner = inner / 2;
        let wide = activated(cx, "conv1", x, 2 * hidden, [1, 1]);
        let mut all = wide.split(&[hidden, hidden], 1);
        drop(wide);
        let Some(last) = all.last().cloned() else {
            return x.clone();
        };
        let mut first = cx.module("csp_rep1", |cx| self.branch(cx, &last, inner));
        first = activated(cx, "conv2", &first, inner, [3, 1]);
        let mut second = cx.module("csp_rep2", |cx| self.branch(cx, &first, inner));
        second = activated(cx, "conv3", &second, inner, [3, 1]);
        all.extend([first, second]);
        let merged = super::joined(&all, 1, x);
        activated(cx, "conv4", &merged, hidden, [1, 1])
    }

    /// `DFineCSPRepLayer.forward`, as wide inside as outside.
    fn branch(self, cx: &Cx, x: &Tensor, width: u64) -> Tensor {
        let mut first = activated(cx, "conv1", x, width, [1, 1]);
        first = cx.module("bottlenecks", |cx| {
            (0..self.blocks as usize).fold(first, |x, i| {
                cx.module(index_name(i), |cx| {
                    let wide = cx.module("conv1", |cx| conv_norm(cx, &x, width, 3, 1));
                    let point = cx.module("conv2", |cx| conv_norm(cx, &x, width, 1, 1));
                    let sum = wide.add(&point);
                    drop((wide, point));
                    sum.silu()
                })
            })
        });
        let second = activated(cx, "conv2", x, width, [1, 1]);
        first.add(&second)
    }

    /// `DFineSCDown.forward`.
    pub(super) fn halved(cx: &Cx, x: &Tensor) -> Tensor {
        let width = x.size(1);
        let x = cx.module("conv1", |cx| conv_norm(cx, x, width, 1, 1));
        cx.module("conv2", |cx| {
            let form = Conv::stride(2).padded(1).grouped(width);
            let x = cx.conv2d("conv", &x, width, 3, form, false);
            cx.batch_norm("norm", &x)
        })
    }
}
