//! SHiRA (peft/tuners/shira/layer.py): sparse updates of some entries of a weight are learned, and the layer runs with the sum.

use super::vector;
use crate::nets::Cx;
use crate::tape::{DType, Tensor, borrowing, grads};
use headroom_scenario::Lora;

/// `Linear.forward`: the layer's own product is not taken, so `y` is what comes in its place.
pub(crate) fn entries(cx: &Cx, x: &Tensor, y: Tensor, lora: &Lora) -> Tensor {
    let (inputs, outputs) = (x.size(-1), y.size(-1));
    let count = lora.rank.saturating_mul(inputs.saturating_add(outputs));
    let values = vector(cx, "shira_weight", &[count], lora);
    // The first forward moves them to the device.
    cx.buffer("shira_indices", [2, count], DType::I32);
    let base = cx.param("weight", [outputs, inputs]).data.clone();
    let weight = with_entries(&base, &values.mul_scalar());
    drop(y);
    x.linear(&weight, None)
}

/// `weight.clone() + torch.sparse_coo_tensor(indices, values)`: the gradient of the values is picked out of the full weight's.
fn with_entries(base: &Tensor, values: &Tensor) -> Tensor {
    let tape = base.tape();
    let sum = tape.no_grad(|| base.cloned());
    // A sparse tensor has its indices in 64 bits.
    let indices = tape.empty("to", [2, values.numel()], DType::I64);
    drop(indices);
    sum.from_op(&[values], |_| {
        let (count, dtype) = (values.numel(), values.dtype());
        borrowing(move |g| grads([Some(g.tape().empty("sparse_mask", [count], dtype))]))
    })
}
