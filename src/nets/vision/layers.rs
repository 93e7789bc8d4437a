//! Layers that the image classifiers share.

use crate::nets::{Cx, Region};
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};

/// The name of the module at an index of an `nn.Sequential`.
pub fn index_name(i: usize) -> &'static str {
    const NAMES: [&str; 64] = [
        "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16",
        "17", "18", "19", "20", "21", "22", "23", "24", "25", "26", "27", "28", "29", "30", "31",
        "32", "33", "34", "35", "36", "37", "38", "39", "40", "41", "42", "43", "44", "45", "46",
        "47", "48", "49", "50", "51", "52", "53", "54", "55", "56", "57", "58", "59", "60", "61",
        "62", "63",
    ];
    NAMES.get(i).copied().unwrap_or("n")
}

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
    /// `inplace=True`. `hardtanh_`, which cuts at six, keeps its result as `relu_` does.
    pub fn in_place(self, x: &Tensor) -> Tensor {
        match self {
            Self::None => x.clone(),
            Self::Relu | Self::Relu6 => x.relu_(),
            Self::Hardswish => x.hardswish_(),
            Self::Silu => x.silu_(),
        }
    }
}

impl Cx {
    /// `nn.BatchNorm2d`.
    pub fn batch_norm(&self, name: &'static str, x: &Tensor) -> Tensor {
        self.within(name, |cx| {
            let channels = x.size(1);
            let weight = cx.param("weight", [channels]).tensor();
            let bias = cx.param("bias", [channels]).tensor();
            cx.buffer("running_mean", [channels], cx.env.weights);
            cx.buffer("running_var", [channels], cx.env.weights);
            cx.buffer("num_batches_tracked", [0; 0], DType::I64);
            x.batch_norm(&weight, &bias)
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
        self.within(name, |cx| {
            let conv = Conv::stride(stride).padded(kernel / 2).grouped(groups);
            let mut y = cx.conv2d("0", x, out, kernel, conv, false);
            y = cx.batch_norm("1", &y);
            activation.in_place(&y)
        })
    }

    /// Modules one after the other, each with its own checkpoint where the run asks for it.
    pub fn blocks(
        &self,
        count: usize,
        x: &Tensor,
        block: impl Fn(&Self, &Tensor, usize) -> Tensor + Clone + 'static,
    ) -> Tensor {
        let mut x = x.clone();
        for i in 0..count {
            let block = block.clone();
            x = self.within(index_name(i), |cx| {
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
