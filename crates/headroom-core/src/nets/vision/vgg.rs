//! VGG (torchvision/models/vgg.py).

use super::layers::index_name;
use super::{ImageModel, classifier};
use crate::nets::{Cx, ModelError, Net, Sizes};
use crate::tape::Tensor;
use crate::tape::ops::Conv;

/// Convolutions in each of the five stages (`cfgs`).
pub(crate) type StageConvs = [u64; 5];

pub(crate) const A: StageConvs = [1, 1, 2, 2, 2];
pub(crate) const B: StageConvs = [2, 2, 2, 2, 2];
pub(crate) const D: StageConvs = [2, 2, 3, 3, 3];
pub(crate) const E: StageConvs = [2, 2, 4, 4, 4];

struct Vgg {
    stages: StageConvs,
    norm: bool,
    /// timm writes the hidden layers of the classifier as convolutions and drops nothing.
    timm: bool,
}

// Like the other networks' builders, so that one table can list them all.
#[allow(clippy::unnecessary_wraps)]
pub(crate) fn build(
    sizes: &Sizes,
    stages: StageConvs,
    norm: bool,
) -> Result<Box<dyn Net>, ModelError> {
    Ok(classifier(
        sizes,
        Vgg {
            stages,
            norm,
            timm: false,
        },
    ))
}

/// A network of the catalogue, as timm runs it.
pub(crate) fn from_sizes(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let depths = sizes.list("depths")?;
    let mut stages = [0; 5];
    for (stage, depth) in stages.iter_mut().zip(depths) {
        *stage = *depth;
    }
    let body = Vgg {
        stages,
        norm: false,
        timm: true,
    };
    Ok(classifier(sizes, body))
}

impl ImageModel for Vgg {
    fn logits(&self, cx: &Cx, image: &Tensor, classes: u64) -> Tensor {
        let mut x = cx.module("features", |cx| {
            let mut x = image.clone();
            let mut at = 0;
            for (convs, channels) in self.stages.into_iter().zip([64, 128, 256, 512, 512]) {
                for _ in 0..convs {
                    let conv = Conv::stride(1).padded(1);
                    x = cx.conv2d(index_name(at), &x, channels, 3, conv, true);
                    at += 1;
                    if self.norm {
                        x = cx.batch_norm(index_name(at), &x);
                        at += 1;
                    }
                    x = x.relu_();
                    at += 1;
                }
                x = x.max_pool2d(2, Conv::stride(2));
                at += 1;
            }
            x
        });
        if self.timm {
            x = cx.module("pre_logits", |cx| {
                let mut x = cx.conv2d("fc1", &x, 4096, 7, Conv::default(), true);
                x = x.relu_();
                x = cx.conv2d("fc2", &x, 4096, 1, Conv::default(), true);
                x.relu_()
            });
            x = x.adaptive_avg_pool2d(1);
            x = x.flattened_from_one();
            return cx.module("head", |cx| cx.linear("fc", &x, classes, true));
        }
        x = x.adaptive_avg_pool2d(7);
        x = x.flattened_from_one();
        cx.module("classifier", |cx| {
            let mut x = x.clone();
            for name in ["0", "3"] {
                x = cx.linear(name, &x, 4096, true);
                x = x.relu_();
                x = x.dropout(0.5);
            }
            cx.linear("6", &x, classes, true)
        })
    }
}
