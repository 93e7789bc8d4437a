//! Layers that the heads share (mmcv/cnn/bricks), and the loss of a map of logits.

use crate::nets::Cx;
use crate::nets::vision::index_name;
use crate::tape::Tensor;
use crate::tape::ops::Conv;

/// The size of `ConvModule`'s convolution: channels, kernel, dilation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub out: u64,
    pub kernel: u64,
    pub dilation: u64,
}

/// A convolution of one place.
pub(super) const fn point(out: u64) -> Window {
    window(out, 1, 1)
}

/// A convolution of three by three.
pub(super) const fn three(out: u64) -> Window {
    window(out, 3, 1)
}

pub(super) const fn window(out: u64, kernel: u64, dilation: u64) -> Window {
    Window {
        out,
        kernel,
        dilation,
    }
}

impl Window {
    /// Padded so that the map keeps its size.
    pub(super) fn form(self) -> Conv {
        Conv {
            dilation: self.dilation,
            ..Conv::stride(1).padded(self.dilation.saturating_mul(self.kernel / 2))
        }
    }
}

impl Cx {
    /// `ConvModule`: convolution, norm, ReLU in place.
    pub(super) fn conv_module(&self, name: &'static str, x: &Tensor, window: Window) -> Tensor {
        let y = self.conv_and_norm(name, x, window);
        y.relu_()
    }

    /// An item of a list of them with `inplace=False`.
    pub(super) fn unnamed_conv_module(&self, x: &Tensor, window: Window) -> Tensor {
        let y = self.conv2d("conv", x, window.out, window.kernel, window.form(), false);
        self.batch_norm("bn", &y).pipe(Tensor::relu)
    }

    /// The same with `act_cfg=None`.
    pub(super) fn conv_and_norm(&self, name: &'static str, x: &Tensor, window: Window) -> Tensor {
        self.formed_conv_and_norm(name, x, window, window.form())
    }

    /// The same with a form of its own.
    pub(super) fn formed_conv_and_norm(
        &self,
        name: &'static str,
        x: &Tensor,
        window: Window,
        form: Conv,
    ) -> Tensor {
        self.module(name, |cx| {
            let y = cx.conv2d("conv", x, window.out, window.kernel, form, false);
            cx.batch_norm("bn", &y)
        })
    }

    /// `DepthwiseSeparableConvModule`.
    pub(super) fn separable(&self, name: &'static str, x: &Tensor, window: Window) -> Tensor {
        self.module(name, |cx| {
            let channels = x.size(1);
            let deep = Window {
                out: channels,
                ..window
            };
            let form = deep.form().grouped(channels);
            let y = cx
                .formed_conv_and_norm("depthwise_conv", x, deep, form)
                .pipe(Tensor::relu_);
            cx.conv_module("pointwise_conv", &y, point(window.out))
        })
    }

    /// `nn.Conv2d(…, 1)` with a bias.
    pub(super) fn projection(&self, name: &'static str, x: &Tensor, out: u64) -> Tensor {
        self.conv2d(name, x, out, 1, Conv::default(), true)
    }

    /// `BaseDecodeHead.cls_seg`.
    pub(super) fn classified(&self, x: &Tensor, classes: u64, dropout: f64) -> Tensor {
        self.classified_as("conv_seg", x, classes, dropout)
    }

    pub(super) fn classified_as(
        &self,
        name: &'static str,
        x: &Tensor,
        classes: u64,
        dropout: f64,
    ) -> Tensor {
        let x = self.dropout_2d(x, dropout);
        self.projection(name, &x, classes)
    }

    /// `nn.Dropout2d`: the product with a number for each channel (`feature_dropout` in Dropout.cpp).
    pub(super) fn dropout_2d(&self, x: &Tensor, p: f64) -> Tensor {
        if self.rate(p) <= 0.0 || self.tape.evaluating() {
            return x.clone();
        }
        let noise = x.constant("bernoulli", &[x.size(0), x.size(1), 1, 1], x.dtype());
        x.mul(&noise)
    }

    /// `PPM`: the map as means of one, two, three and six parts a side, each back at its size.
    pub(super) fn pooling_pyramid(&self, x: &Tensor, channels: u64) -> Vec<Tensor> {
        let [height, width] = plane(x);
        self.module("psp_modules", |cx| {
            let scaled = |(i, side): (usize, u64)| {
                let pooled = x.adaptive_avg_pool2d(side);
                let pooled = cx.module(index_name(i), |cx| {
                    cx.conv_module("1", &pooled, point(channels))
                });
                pooled.interpolate(height, width)
            };
            [1, 2, 3, 6].into_iter().enumerate().map(scaled).collect()
        })
    }
}

/// Height and width.
pub(super) fn plane(x: &Tensor) -> [u64; 2] {
    [x.size(2), x.size(3)]
}

/// `x.view(n, c, h * w)`.
pub(super) fn flat(x: &Tensor) -> Tensor {
    let places = x.size(2).saturating_mul(x.size(3));
    x.reshape(&[x.size(0), x.size(1), places])
}

/// `torch.cat` over channels.
pub(super) fn joined(first: &Tensor, rest: &[Tensor]) -> Tensor {
    Tensor::cat(first, &rest.iter().collect::<Vec<_>>(), 1)
}

/// The classes of a batch's pixels.
pub(super) struct Labels<'a> {
    pub cx: &'a Cx,
    pub pixels: &'a Tensor,
    pub classes: u64,
}

impl Labels<'_> {
    /// `BaseDecodeHead.loss_by_feat`: logits at the labels' size, and their cross-entropy with labels that each head stacks anew.
    pub(super) fn loss(&self, logits: &Tensor) -> Tensor {
        let labels = self.pixels;
        let stacked = labels.constant("stack", labels.shape(), labels.dtype());
        let at_size = logits.interpolate(labels.size(1), labels.size(2));
        self.of_places(&at_size, &stacked)
    }

    /// The cross-entropy of logits with labels of as many places.
    pub(super) fn of_places(&self, logits: &Tensor, labels: &Tensor) -> Tensor {
        self.cx.module("loss_decode", |_| {
            let all = logits.cross_entropy_unreduced(labels);
            // `loss.sum() / avg_factor`.
            all.sum(&[0, 1, 2]).view(&[]).mul_scalar()
        })
    }
}

/// The sum of losses.
pub(super) fn total(losses: &[Tensor], none: impl FnOnce() -> Tensor) -> Tensor {
    let mut all = losses.iter();
    match all.next() {
        Some(first) => all.fold(first.clone(), |sum, loss| sum.add(loss)),
        None => none(),
    }
}
