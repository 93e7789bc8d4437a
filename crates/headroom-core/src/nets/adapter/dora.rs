//! LoRA with a magnitude of each output (peft/tuners/lora/dora.py), and with a diagonal between its matrices
//! (peft/tuners/adalora/layer.py).

use super::{adapter_weight, updated, vector};
use crate::nets::Cx;
use crate::tape::Tensor;
use headroom_scenario::Lora;

/// `DoraLinearLayer.forward`: the norm of base and update together is recomputed in each forward, from full matrices.
pub(crate) fn magnified(cx: &Cx, name: &str, x: &Tensor, y: Tensor, lora: &Lora) -> Tensor {
    let (inputs, outputs) = (x.size(-1), y.size(-1));
    let a = adapter_weight(cx, name, "lora_A", [lora.rank, inputs], lora);
    let b = adapter_weight(cx, name, "lora_B", [outputs, lora.rank], lora);
    let magnitude = vector(cx, "lora_magnitude_vector", &[outputs], lora);
    let (dtype, result) = (a.dtype(), y.dtype());
    let mut x = x.to(dtype);
    let drops = cx.rate(lora.dropout) > 0.0;
    if drops {
        x = x.dropout(lora.dropout);
    }
    let eye = cx.tape.empty("eye", [inputs, inputs], dtype);
    let lora_weight = eye
        .linear(&a.tensor(), None)
        .pipe(|low| low.linear(&b.tensor(), None))
        .pipe(|wide| wide.transpose(0, 1));
    drop(eye);
    let base = cx.param("weight", [outputs, inputs]).data.clone();
    let weight = base.to(dtype);
    let weight_norm = cx.tape.no_grad(|| {
        let scaled = lora_weight.detach().mul_scalar();
        let sum = weight.add(&scaled);
        drop(scaled);
        sum.constant("linalg_norm", &[outputs], dtype)
    });
    let scale = magnitude.div(&weight_norm).view(&[1, outputs]);
    let lora_result = x
        .linear(&a.tensor(), None)
        .pipe(|low| low.linear(&b.tensor(), None));
    // Where dropout changes the input, the base layer's product is taken again.
    let base_result = if drops {
        x.linear(&weight, None)
    } else {
        y.clone()
    };
    let of_base = scale.add_scalar().mul(&base_result);
    let of_update = scale.mul(&lora_result).pipe(Tensor::mul_scalar);
    let update = of_base.add(&of_update);
    drop((
        of_base,
        of_update,
        base_result,
        lora_result,
        weight,
        lora_weight,
    ));
    updated(y, update, result)
}

/// `SVDLinear.forward` of AdaLoRA: the update is added in place.
pub(crate) fn adaptive(cx: &Cx, name: &str, x: &Tensor, y: Tensor, lora: &Lora) -> Tensor {
    let a = adapter_weight(cx, name, "lora_A", [lora.rank, x.size(-1)], lora);
    let e = adapter_weight(cx, name, "lora_E", [lora.rank, 1], lora);
    let b = adapter_weight(cx, name, "lora_B", [y.size(-1), lora.rank], lora);
    let x = x.to(a.dtype()).dropout(cx.rate(lora.dropout));
    let scaled = a.tensor().mul(&e.tensor());
    let low = x.matmul_by(&scaled.transpose(0, 1));
    drop(scaled);
    let wide = low.matmul_by(&b.tensor().transpose(0, 1));
    drop(low);
    // It is made frozen; moving it to the layer's device or type makes it a new parameter, which is trained.
    let rank = vector(cx, "ranknum", &[1], lora).add_scalar();
    let update = wide
        .pipe(Tensor::mul_scalar)
        .pipe(|update| update.div(&rank));
    y.add_(&update)
}
