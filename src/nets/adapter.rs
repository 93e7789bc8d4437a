//! Low-rank adapters as PEFT inserts them (peft/tuners/lora/layer.py, `Linear.forward`).

use super::Cx;
use crate::tape::{DType, Tensor};

/// The result of a linear layer `name` with its adapter's share added, where it has one.
pub fn adapted(cx: &Cx, name: &str, x: &Tensor, y: Tensor) -> Tensor {
    let Some(lora) = cx.env.training.lora.as_ref() else {
        return y;
    };
    // A target is the end of a path, such as `q_proj` or `to_out.0`.
    let is_meant = |target: &String| match target.rsplit_once('.') {
        None => target == name,
        Some((_, last)) => {
            last == name && format!(".{}", cx.path()).ends_with(&format!(".{target}"))
        }
    };
    if !lora.targets.iter().any(is_meant) {
        return y;
    }
    if !lora.exclude.is_empty() {
        let path = cx.path();
        if lora.exclude.iter().any(|part| path.contains(part.as_str())) {
            return y;
        }
    }
    let dtype = if lora.fp32_adapters && cx.env.weights.is_half() {
        DType::F32
    } else {
        cx.env.weights
    };
    let a = cx.within("lora_A", |cx| {
        cx.param_as("weight", [lora.rank, x.size(-1)], dtype, |_| true)
    });
    let b = cx.within("lora_B", |cx| {
        cx.param_as("weight", [y.size(-1), lora.rank], dtype, |_| true)
    });
    // Adapters of quantised layers leave casts to autocast where there is one (peft/tuners/lora/bnb.py, gptq.py).
    let cast = if cx.quantised(name) && cx.tape.autocast_dtype().is_some() {
        x.clone()
    } else {
        x.to(dtype)
    };
    let share = cast
        .dropout(lora.dropout)
        .then(|x| x.linear(&a.tensor(), None))
        .then(|low| low.linear(&b.tensor(), None))
        .then(Tensor::scale);
    let dtype = y.dtype();
    let sum = y.then(|y| y.add(&share));
    drop(share);
    sum.to(dtype)
}
