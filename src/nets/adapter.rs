//! LoRA adapters as PEFT inserts them (peft/tuners/lora/layer.py).

use std::rc::Rc;

use super::Cx;
use crate::scenario::Lora;
use crate::tape::{DType, Param, Tensor};

/// The output `y` of a linear layer `name`, with its adapter's update added where it is a target (`Linear.forward`).
pub fn adapted(cx: &Cx, name: &str, x: &Tensor, y: Tensor) -> Tensor {
    let Some(lora) = target(cx, name) else {
        return y;
    };
    let a = adapter_weight(cx, name, "lora_A", [lora.rank, x.size(-1)], lora);
    let b = adapter_weight(cx, name, "lora_B", [y.size(-1), lora.rank], lora);
    // Adapters of quantised layers leave casts to autocast where there is one (peft/tuners/lora/bnb.py, gptq.py).
    let cast = if cx.quantised(name) && cx.tape.autocast_dtype().is_some() {
        x.clone()
    } else {
        x.to(a.dtype())
    };
    let update = cast
        .dropout(lora.dropout)
        .then(|x| x.linear(&a.tensor(), None))
        .then(|low| low.linear(&b.tensor(), None))
        .then(Tensor::scale);
    let dtype = y.dtype();
    let sum = y.then(|y| y.add(&update));
    drop(update);
    sum.to(dtype)
}

/// The output of an embedding `name` for `ids`, with its adapter's update added where it is a target: rows of the first
/// matrix's transpose, times the second (`Embedding.forward`). The module may itself multiply by a factor.
pub fn adapted_embedding(
    cx: &Cx,
    name: &str,
    [ids, y]: [&Tensor; 2],
    rows: u64,
    factor: Option<&Tensor>,
) -> Tensor {
    let mut result = y.clone();
    let Some(lora) = target(cx, name) else {
        return result;
    };
    let a = adapter_weight(cx, name, "lora_embedding_A", [lora.rank, rows], lora);
    let b = adapter_weight(cx, name, "lora_embedding_B", [y.size(-1), lora.rank], lora);
    // Variables of PEFT's forward, which live to its end.
    let low = a.tensor().transpose(0, 1).embedding(ids);
    let mut update = low.linear(&b.tensor(), None).then(Tensor::scale);
    if let Some(factor) = factor {
        let factor = factor.to(update.dtype());
        update = update.mul(&factor);
    }
    result = result.add(&update);
    result = result.to(y.dtype());
    drop((low, update));
    result
}

/// The run's LoRA configuration, where the layer `name` is one of its targets.
fn target<'a>(cx: &'a Cx, name: &str) -> Option<&'a Lora> {
    let lora = cx.env.training.lora.as_ref()?;
    // A target is the end of a path, such as `q_proj` or `to_out.0`.
    let is_target = |target: &String| match target.rsplit_once('.') {
        None => target == name,
        Some((_, last)) => {
            last == name && format!(".{}", cx.path()).ends_with(&format!(".{target}"))
        }
    };
    if !lora.targets.iter().any(is_target) {
        return None;
    }
    if !lora.exclude.is_empty() {
        let path = cx.path();
        if lora.exclude.iter().any(|part| path.contains(part.as_str())) {
            return None;
        }
    }
    Some(lora)
}

/// One of an adapter's two matrices.
fn adapter_weight(
    cx: &Cx,
    module: &str,
    name: &'static str,
    shape: [u64; 2],
    lora: &Lora,
) -> Rc<Param> {
    let dtype = if lora.fp32_adapters && cx.env.weights.is_half() {
        DType::F32
    } else {
        cx.env.weights
    };
    let param = cx.module(name, |cx| cx.param_as("weight", shape, dtype, |_| true));
    // It is made in the base layer's type, where that is a floating-point one, and cast once all adapters are made
    // (`_move_adapter_to_device_of_base_layer`, `cast_adapter_dtype`).
    let first = if cx.quantised(module) {
        dtype
    } else {
        cx.env.weights
    };
    cx.tape.inject_parameter(&param, first);
    param
}
