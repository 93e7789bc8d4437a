//! `RetinaHead` and `FCOSHead`: the same convolutions over every map of a pyramid.

use super::pyramid::{Top, WIDE, fpn, hrfpn};
use super::trunk::{Norm, Trunk};
use super::{Detector, Library, anchors};
use crate::nets::Cx;
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};

/// Anchors at each place of RetinaNet.
const ANCHORS: u64 = 9;

impl Detector {
    fn five_maps(&self, cx: &Cx, image: &Tensor, top: Top) -> Vec<Tensor> {
        let maps = cx.module("backbone", |cx| self.trunk.maps(cx, image, 4));
        cx.module("neck", |cx| match &self.trunk {
            Trunk::Parallel(_) => hrfpn(cx, &maps, 2),
            // `start_level=1`.
            Trunk::Residual(_) | Trunk::Regular(_) => {
                fpn(cx, maps.get(1..).unwrap_or_default(), top, None)
            }
        })
    }

    pub(super) fn retina(&self, cx: &Cx, image: &Tensor) -> Vec<Tensor> {
        let maps = self.five_maps(cx, image, Top::OnInput);
        let outputs: Vec<[Tensor; 2]> = cx.module("bbox_head", |cx| {
            let each = |map: &Tensor| {
                let point = |name, x: &Tensor, out| {
                    cx.conv2d(name, x, out, 3, Conv::stride(1).padded(1), true)
                };
                let kinds = tower(cx, "cls_convs", map, None);
                let places = tower(cx, "reg_convs", map, None);
                let classes = ANCHORS.saturating_mul(self.classes);
                [
                    point("retina_cls", &kinds, classes),
                    point("retina_reg", &places, 4 * ANCHORS),
                ]
            };
            maps.iter().map(each).collect()
        });
        cx.module("loss", |cx| {
            let losses = if self.library == Library::MmDetection {
                anchors::losses
            } else {
                anchors::written
            };
            losses(cx, self.library, &outputs, ANCHORS, self.pictures.objects)
        })
    }

    pub(super) fn places(&self, cx: &Cx, image: &Tensor) -> Vec<Tensor> {
        let maps = self.five_maps(cx, image, Top::OnOutput);
        let (mut scores, mut moves, mut centres) = (Vec::new(), Vec::new(), Vec::new());
        cx.module("bbox_head", |cx| {
            for (level, map) in maps.iter().enumerate() {
                let out = |name, x: &Tensor, out| {
                    cx.conv2d(name, x, out, 3, Conv::stride(1).padded(1), true)
                };
                let kinds = tower(cx, "cls_convs", map, Some(Norm::Group));
                let places = tower(cx, "reg_convs", map, Some(Norm::Group));
                scores.push(out("conv_cls", &kinds, self.classes));
                let moved = out("conv_reg", &places, 4);
                centres.push(out("conv_centerness", &kinds, 1));
                let scale = cx.list_item("scales", level, |cx| cx.param("scale", [0; 0]).tensor());
                moves.push(moved.mul(&scale).exp());
            }
        });
        cx.module("loss", |_| {
            let rows = |all: &[Tensor], width: u64| {
                let flat = all.iter().map(|map| {
                    let count = map.numel() / width.max(1);
                    map.permute(&[0, 2, 3, 1]).reshape(&[count, width])
                });
                let flat: Vec<Tensor> = flat.collect();
                super::super::joined(&flat, 0, image)
            };
            let scores = rows(&scores, self.classes);
            let places = scores.size(0);
            // `_get_target_single`, one picture after the other: every place with every object.
            let each = places / image.size(0).max(1);
            let pairs = |width| {
                let shape = [each, self.pictures.objects, width];
                image.constant("targets", &shape, DType::F32)
            };
            drop((pairs(1), pairs(2), pairs(4), pairs(4), pairs(1)));
            let labels = scores.constant("labels", &[places], DType::I64);
            let targets = scores.constant("targets", &[places, 4], DType::F32);
            let by_class = scores.focal_loss(&labels).pipe(Tensor::mean_all);
            let few = (places / 100).max(1);
            let index = scores.constant("nonzero", &[few], DType::I64);
            let chosen = |x: &Tensor| {
                let own = x.rows(&index);
                let target = own.constant("targets", own.shape(), DType::F32);
                own.sub(&target).pipe(Tensor::mean_all)
            };
            let by_place = chosen(&rows(&moves, 4));
            let by_centre = chosen(&rows(&centres, 1));
            drop((labels, targets));
            vec![by_class, by_place, by_centre]
        })
    }
}

/// Four convolutions.
fn tower(cx: &Cx, list: &'static str, map: &Tensor, norm: Option<Norm>) -> Tensor {
    (0..4).fold(map.clone(), |x, i| {
        cx.list_item(list, i, |cx| {
            let form = Conv::stride(1).padded(1);
            let y = cx.conv2d("conv", &x, WIDE, 3, form, norm.is_none());
            match norm {
                Some(norm) => norm.apply(cx, "gn", &y).pipe(Tensor::relu_),
                None => y.relu_(),
            }
        })
    })
}
