//! RandLoRA (peft/tuners/randlora/layer.py): sums of random matrices that all layers share, scaled for each.

use super::{adapter_type, updated, vector};
use crate::nets::Cx;
use crate::tape::{Saved, Tensor, borrowing, grads};
use headroom_scenario::Lora;

pub(crate) fn random(cx: &Cx, x: &Tensor, y: Tensor, lora: &Lora) -> Tensor {
    let (inputs, outputs) = (x.size(-1), y.size(-1));
    let rank = lora.rank.max(1);
    let (least, most) = (inputs.min(outputs), inputs.max(outputs));
    let bases = least.div_ceil(rank);
    let dtype = adapter_type(cx, lora);
    let [widest_out, widest_in] = cx.widest([outputs, inputs]);
    let (all_least, all_most) = (widest_out.min(widest_in), widest_out.max(widest_in));
    let root = cx.root();
    let all_bases = all_least.div_ceil(rank);
    let shared_a = root.buffer("randlora_A", [rank, 1, all_least], dtype);
    let shared_b = root.buffer("randlora_B", [all_most, all_bases, rank], dtype);
    let lambda = vector(cx, "randlora_lambda", &[rank, bases], lora);
    let gamma = vector(cx, "randlora_gamma", &[bases, least], lora);
    let part = shared_b.narrow(0, most).narrow(1, bases);
    let fixed = part.reshape(&[most, bases * rank]);
    let scaled = scaled_bases(&shared_a, &lambda, &gamma).view(&[rank * bases, least]);
    let (first, second) = if least == inputs {
        (scaled, fixed)
    } else {
        (fixed.transpose(0, 1), scaled.transpose(0, 1))
    };
    let given = x.dtype();
    let x = x.to(dtype).dropout(cx.rate(lora.dropout));
    let update = x
        .linear(&first, None)
        .pipe(|low| low.linear(&second, None))
        .pipe(Tensor::mul_scalar);
    drop((x, first, second));
    updated(y, update, given)
}

/// `UniqueBaseGrad`: saves its inputs, not its output.
fn scaled_bases(shared: &Tensor, lambda: &Tensor, gamma: &Tensor) -> Tensor {
    let tape = shared.tape();
    let (rank, bases, least) = (lambda.size(0), lambda.size(1), gamma.size(1));
    let whole = || tape.empty("mul", [rank, bases, least], lambda.dtype());
    let first = whole();
    let out = whole();
    drop(first);
    out.from_op(&[lambda, gamma], |_| {
        let kept = [shared.save(), lambda.save(), gamma.save()];
        let shapes = [*lambda.shape(), *gamma.shape()];
        borrowing(move |g| {
            let [shared, ..] = kept.each_ref().map(Saved::unpack);
            let tape = g.tape();
            // `einsum` multiplies two operands at a time, the first with the large gradient.
            let gradient = |shape| {
                drop(tape.empty("einsum", *g.shape(), g.dtype()));
                tape.empty("einsum", shape, g.dtype())
            };
            let [for_lambda, for_gamma] = shapes.map(gradient);
            drop(shared);
            grads([Some(for_lambda), Some(for_gamma)])
        })
    })
}
