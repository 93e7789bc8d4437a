//! Layers that the image classifiers share.

use crate::nets::{Cx, Region};
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};

/// The name of the module at an index of an `nn.Sequential`, up to the most modules that a model may have.
pub fn index_name(i: usize) -> &'static str {
    let leading_zeros = match i {
        0..10 => 3,
        10..100 => 2,
        100..1_000 => 1,
        _ => 0,
    };
    INDEX_NAMES
        .get(4 * i + leading_zeros..4 * i + 4)
        .unwrap_or("n")
}

/// `000000010002...2047`: four digits for each index.
const INDEX_NAMES: &str = {
    const COUNT: usize = 2_048;
    const DIGITS: [u8; 4 * COUNT] = {
        let mut digits = [0; 4 * COUNT];
        let mut i = 0;
        while i < COUNT {
            let values = [i / 1_000, i / 100 % 10, i / 10 % 10, i % 10];
            let mut place = 0;
            while place < 4 {
                digits[4 * i + place] = b'0' + values[place] as u8;
                place += 1;
            }
            i += 1;
        }
        digits
    };
    match std::str::from_utf8(&DIGITS) {
        Ok(names) => names,
        Err(_) => "",
    }
};

/// The activation after a norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    None,
    Relu,
    Relu6,
    Hardswish,
    Silu,
}

impl Activation {
    /// `inplace=True`.
    pub fn in_place(self, x: &Tensor) -> Tensor {
        match self {
            Self::None => x.clone(),
            Self::Relu => x.relu_(),
            Self::Relu6 => x.relu6_(),
            Self::Hardswish => x.hardswish_(),
            Self::Silu => x.silu_(),
        }
    }
}

impl Cx {
    /// `nn.BatchNorm2d`.
    pub fn batch_norm(&self, name: &'static str, x: &Tensor) -> Tensor {
        self.normed(name, x, Tensor::batch_norm)
    }

    /// `nn.BatchNorm2d` in evaluation mode, its factors trained all the same.
    pub fn running_norm(&self, name: &'static str, x: &Tensor) -> Tensor {
        self.normed(name, x, Tensor::running_batch_norm)
    }

    fn normed(
        &self,
        name: &'static str,
        x: &Tensor,
        norm: fn(&Tensor, &Tensor, &Tensor) -> Tensor,
    ) -> Tensor {
        self.module(name, |cx| {
            let channels = x.size(1);
            let weight = cx.param("weight", [channels]).tensor();
            let bias = cx.param("bias", [channels]).tensor();
            cx.buffer("running_mean", [channels], cx.env.weights);
            cx.buffer("running_var", [channels], cx.env.weights);
            cx.buffer("num_batches_tracked", [0; 0], DType::I64);
            norm(x, &weight, &bias)
        })
    }

    /// `torchvision.ops.Conv2dNormActivation` with batch norm: no bias, padded to the same size.
    pub fn conv_norm_activation(
        &self,
        name: &'static str,
        x: &Tensor,
        out: u64,
        kernel: u64,
        (stride, groups): (u64, u64),
        activation: Activation,
    ) -> Tensor {
        self.module(name, |cx| {
            let conv = Conv::stride(stride).padded(kernel / 2).grouped(groups);
            let mut y = cx.conv2d("0", x, out, kernel, conv, false);
            y = cx.batch_norm("1", &y);
            activation.in_place(&y)
        })
    }

    /// Modules one after the other, each with its own checkpoint where the run requests it.
    pub fn blocks(
        &self,
        count: usize,
        x: &Tensor,
        block: impl Fn(&Self, &Tensor, usize) -> Tensor + Clone + 'static,
    ) -> Tensor {
        let mut x = x.clone();
        for i in 0..count {
            let block = block.clone();
            x = self.module(index_name(i), |cx| {
                cx.unary_block(Region::Convolutions, &x, move |cx, x| block(cx, x, i))
            });
        }
        x
    }
}

impl Tensor {
    /// `torch.flatten(self, 1)`.
    pub fn flattened_from_one(&self) -> Tensor {
        let rows = self.size(0);
        self.reshape(&[rows, self.numel() / rows.max(1)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_has_a_name_of_its_own() {
        for i in 0..2_048 {
            assert_eq!(index_name(i), i.to_string());
        }
    }
}
