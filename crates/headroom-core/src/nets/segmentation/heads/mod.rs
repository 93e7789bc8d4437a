//! Decode heads (mmseg/models/decode_heads).

mod ann;
mod aspp;
mod attention;
mod convolutions;
mod dynamic;
mod encoding;
mod expectation;
mod object;
mod point;
mod point_wise;
mod pooling;
mod pyramid;

pub(in crate::nets) use attention::context_block;
pub(super) use convolutions::Auxiliary;

use self::convolutions::Between;
use super::backbone::Maps;
use super::layers::Labels;
use crate::nets::Cx;
use crate::tape::Tensor;

#[derive(Clone, Copy, Debug)]
pub(super) enum Head {
    /// `FCNHead`.
    Convolutions,
    /// `CCHead`.
    CrissCross,
    /// `GCHead`.
    GlobalContext,
    /// `NLHead`.
    NonLocal,
    /// `DNLHead`.
    Disentangled,
    /// `PSPHead`.
    Pooling,
    /// `UPerHead`.
    Unified,
    /// `ASPPHead`.
    Aspp,
    /// `DepthwiseSeparableASPPHead`.
    SeparableAspp,
    /// `LRASPPHead`.
    LiteAspp,
    /// `FPNHead` on an `FPN`.
    Pyramid,
    /// `PointHead` over it.
    Point,
    /// `OCRHead` over an FCN.
    Object,
    /// `DAHead`.
    Dual,
    /// `ANNHead`.
    Ann,
    /// `APCHead`.
    Apc,
    /// `DMHead`.
    Dynamic,
    /// `EncHead`.
    Encoding,
    /// `EMAHead`.
    Expectation,
    /// `PSAHead`.
    PointWise,
}

/// `dropout_ratio`.
const DROPOUT: f64 = 0.1;

impl Head {
    /// The losses of this head.
    pub(super) fn losses(
        self,
        cx: &Cx,
        maps: &Maps,
        channels: u64,
        labels: &Labels,
    ) -> Vec<Tensor> {
        let last = maps.last();
        let classes = labels.classes;
        let of_logits = |make: &dyn Fn(&Cx) -> Tensor| {
            cx.module("decode_head", |cx| vec![labels.loss(&make(cx))])
        };
        let of_features = |make: &dyn Fn(&Cx) -> Tensor| {
            of_logits(&|cx| cx.classified(&make(cx), classes, DROPOUT))
        };
        let with =
            |between: Between| of_features(&|cx| convolutions::around(cx, last, channels, between));
        match self {
            Self::Convolutions => {
                of_logits(&|cx| convolutions::logits(cx, maps, channels, classes))
            }
            Self::CrissCross => with(attention::criss_cross),
            Self::GlobalContext => with(attention::global_context),
            Self::NonLocal => with(attention::non_local),
            Self::Disentangled => with(attention::disentangled),
            Self::Pooling => of_features(&|cx| pooling::pooled(cx, last, channels)),
            Self::Unified => of_features(&|cx| pooling::unified(cx, maps, channels)),
            Self::Aspp => of_features(&|cx| aspp::pooled(cx, last, channels)),
            Self::SeparableAspp => of_features(&|cx| aspp::separable(cx, maps, channels)),
            Self::LiteAspp => of_features(&|cx| aspp::lite(cx, maps, channels)),
            Self::Pyramid => pyramid::losses(cx, maps, labels),
            Self::Point => point::losses(cx, maps, labels),
            Self::Object => object::losses(cx, maps, channels, labels),
            Self::Dual => attention::dual(cx, last, channels, labels),
            Self::Ann => of_features(&|cx| ann::features(cx, maps, channels)),
            Self::Apc => of_features(&|cx| dynamic::adaptive(cx, last, channels)),
            Self::Dynamic => of_features(&|cx| dynamic::filtered(cx, last, channels)),
            Self::Encoding => encoding::losses(cx, last, channels, labels),
            Self::Expectation => of_features(&|cx| expectation::features(cx, last, channels)),
            Self::PointWise => of_features(&|cx| point_wise::features(cx, last, channels)),
        }
    }
}
