//! Semantic segmentation as MMSegmentation trains it (mmseg/models/segmentors): a backbone's maps, a decode head that scores each
//! place of one of them, and an auxiliary head of convolutions on the map before the last. Any backbone goes with any head.

mod backbone;
mod cgnet;
mod heads;
mod hrnet;
mod layers;
mod mobilenet;
mod named;
mod resnest;
mod torchvision;
mod unet;

use self::backbone::Backbone;
pub(super) use self::heads::context_block;
use self::heads::{Auxiliary, Head};
pub(super) use self::hrnet::HrNet;
use self::layers::Labels;
pub use self::named::named;
use super::net::Build;
use super::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

pub(super) const FAMILIES: &[(&str, Build)] = &[
    ("mmseg_ann", |s| build(s, Head::Ann)),
    ("mmseg_apc", |s| build(s, Head::Apc)),
    ("mmseg_aspp", |s| build(s, Head::Aspp)),
    ("mmseg_cc", |s| build(s, Head::CrissCross)),
    ("mmseg_da", |s| build(s, Head::Dual)),
    ("mmseg_dm", |s| build(s, Head::Dynamic)),
    ("mmseg_dnl", |s| build(s, Head::Disentangled)),
    ("mmseg_ema", |s| build(s, Head::Expectation)),
    ("mmseg_enc", |s| build(s, Head::Encoding)),
    ("mmseg_fcn", |s| build(s, Head::Convolutions)),
    ("mmseg_fpn", |s| build(s, Head::Pyramid)),
    ("mmseg_gc", |s| build(s, Head::GlobalContext)),
    ("mmseg_lraspp", |s| build(s, Head::LiteAspp)),
    ("mmseg_nl", |s| build(s, Head::NonLocal)),
    ("mmseg_ocr", |s| build(s, Head::Object)),
    ("mmseg_point", |s| build(s, Head::Point)),
    ("mmseg_psa", |s| build(s, Head::PointWise)),
    ("mmseg_psp", |s| build(s, Head::Pooling)),
    ("mmseg_sep_aspp", |s| build(s, Head::SeparableAspp)),
    ("mmseg_uper", |s| build(s, Head::Unified)),
    ("tv:deeplabv3", torchvision::deeplab),
    ("tv:fcn", torchvision::fcn),
];

/// `EncoderDecoder` and `CascadeEncoderDecoder`.
#[derive(Clone, Debug)]
struct Segmenter {
    backbone: Backbone,
    head: Head,
    /// `channels` of the decode head.
    channels: u64,
    auxiliary: Option<Auxiliary>,
    classes: u64,
    picture: Picture,
}

/// The side that pictures are cropped to.
#[derive(Clone, Copy, Debug)]
struct Picture {
    height: u64,
    width: u64,
}

impl Picture {
    fn of(sizes: &Sizes, usual: [u64; 2]) -> Self {
        let height = sizes.or("img", usual[0]);
        let square = sizes.get("img").is_some();
        let width = sizes.or("img_w", if square { height } else { usual[1] });
        Self { height, width }
    }

    /// Pixels and the class of each.
    fn batch(self, cx: &Cx, count: u64) -> Vec<Tensor> {
        let Self { height, width } = self;
        let pixels = [count, 3, height, width];
        let mut image = cx.tape.empty("img", pixels, cx.env.weights);
        if cx.env.training.channels_last {
            image = image.to_channels_last();
        }
        let labels = [count, height, width];
        vec![image, cx.tape.empty("gt_seg_map", labels, DType::I64)]
    }
}

fn build(sizes: &Sizes, head: Head) -> Result<Box<dyn Net>, ModelError> {
    let backbone = Backbone::of(sizes)?;
    let channels = sizes.or("channels", 512);
    Ok(Box::new(Segmenter {
        auxiliary: Auxiliary::of(sizes),
        channels,
        head,
        classes: sizes.or("classes", 19),
        picture: Picture::of(sizes, [512, 1024]),
        backbone,
    }))
}

impl Net for Segmenter {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        self.picture.batch(cx, data.micro_batch)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [image, labels] = batch else {
            return Output::empty(cx);
        };
        let labels = Labels {
            cx,
            pixels: labels,
            classes: self.classes,
        };
        let maps = cx.module("backbone", |cx| self.backbone.maps(cx, image));
        let mut losses = self.head.losses(cx, &maps, self.channels, &labels);
        if let Some(auxiliary) = self.auxiliary {
            losses.push(cx.module("auxiliary_head", |cx| {
                labels.loss(&auxiliary.logits(cx, &maps, self.classes))
            }));
        }
        Output {
            loss: layers::total(&losses, || Output::empty(cx).loss),
            held: Vec::new(),
        }
    }
}
