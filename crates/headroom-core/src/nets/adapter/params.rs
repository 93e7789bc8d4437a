//! How an adapter's parameters are made, and its update added.

use std::rc::Rc;

use super::super::Cx;
use crate::tape::{DType, Dims, Param, Tensor};
use headroom_scenario::Lora;

/// One of an adapter's two matrices.
pub(super) fn adapter_weight(
    cx: &Cx,
    module: &str,
    name: &'static str,
    shape: [u64; 2],
    lora: &Lora,
) -> Rc<Param> {
    matrix(cx, module, name, shape, lora, true)
}

/// One matrix, trained or frozen.
pub(super) fn matrix(
    cx: &Cx,
    module: &str,
    name: &'static str,
    shape: [u64; 2],
    lora: &Lora,
    trains: bool,
) -> Rc<Param> {
    let is_quantised = cx.quantised(module);
    cx.module(name, |cx| {
        made(cx, "weight", shape.into(), lora, [trains, is_quantised])
    })
}

/// A parameter of an adapter in the layer itself.
pub(super) fn vector(cx: &Cx, name: &'static str, shape: &[u64], lora: &Lora) -> Tensor {
    made(cx, name, shape.into(), lora, [true, false]).tensor()
}

fn made(
    cx: &Cx,
    name: &'static str,
    shape: Dims,
    lora: &Lora,
    [trains, is_quantised]: [bool; 2],
) -> Rc<Param> {
    let dtype = adapter_type(cx, lora);
    let param = cx.param_as(name, shape, dtype, |_| trains);
    // It is made in the base layer's dtype, if that is a floating-point one, and cast once all adapters are made
    // (`_move_adapter_to_device_of_base_layer`, `cast_adapter_dtype`).
    let first = if is_quantised { dtype } else { cx.env.weights };
    cx.tape.inject_parameter(&param, first);
    param
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
