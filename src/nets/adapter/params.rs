//! How an adapter's parameters are made, and its update added.

use std::rc::Rc;

use super::super::Cx;
use crate::scenario::Lora;
use crate::tape::{DType, Dims, Param, Tensor};

/// One of an adapter's two matrices.
pub(super) fn adapter_weight(
    cx: &Cx,
    module: &str,
    name: &'static str,
    shape: [u64; 2],
    lora: &Lora,
) -> Rc<Param> {
    let outer = Trained {
        lora,
        quantised: cx.quantised(module),
        trainable: true,
    };
    cx.module(name, |cx| outer.made(cx, "weight", shape))
}

/// The same, not trained.
pub(super) fn frozen_weight(
    cx: &Cx,
    module: &str,
    name: &'static str,
    shape: [u64; 2],
    lora: &Lora,
) -> Rc<Param> {
    let outer = Trained {
        lora,
        quantised: cx.quantised(module),
        trainable: false,
    };
    cx.module(name, |cx| outer.made(cx, "weight", shape))
}

/// A parameter of an adapter that stands in the layer itself.
pub(super) fn vector(cx: &Cx, name: &'static str, shape: &[u64], lora: &Lora) -> Tensor {
    let outer = Trained {
        lora,
        quantised: false,
        trainable: true,
    };
    outer.made(cx, name, shape).tensor()
}

/// How an adapter's parameters are made.
struct Trained<'a> {
    lora: &'a Lora,
    quantised: bool,
    trainable: bool,
}

impl Trained<'_> {
    fn made(&self, cx: &Cx, name: &'static str, shape: impl Into<Dims>) -> Rc<Param> {
        let dtype = adapter_type(cx, self.lora);
        let trained = self.trainable;
        let param = cx.param_as(name, shape, dtype, |_| trained);
        // It is made in the base layer's type, where that is a floating-point one, and cast once all adapters are made
        // (`_move_adapter_to_device_of_base_layer`, `cast_adapter_dtype`).
        let first = if self.quantised {
            dtype
        } else {
            cx.env.weights
        };
        cx.tape.inject_parameter(&param, first);
        param
    }
}

/// The type in which adapters are kept.
pub(super) fn adapter_type(cx: &Cx, lora: &Lora) -> DType {
    if lora.fp32_adapters && cx.env.weights.is_half() {
        DType::F32
    } else {
        cx.env.weights
    }
}

/// The result with an update added, in the type that the method gives back: its input's (`previous_dtype`) in most, the base
/// layer's (`torch_result_dtype`) in LoRA's family. Under autocast the two differ.
pub(super) fn updated(y: Tensor, update: Tensor, dtype: DType) -> Tensor {
    let sum = y.pipe(|y| y.add(&update));
    drop(update);
    sum.to(dtype)
}
