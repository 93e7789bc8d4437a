//! `XIELUActivation` (transformers/activations.py), in plain PyTorch: without the kernel of a separate package.

use super::super::Cx;
use crate::tape::{DType, Tensor};

/// `_xielu_python`, in the module of the activation: a parabola above zero, a curve that grows like an exponential below.
pub(super) fn xielu(cx: &Cx, x: &Tensor) -> Tensor {
    let [above, below] = ["alpha_p", "alpha_n"].map(|name| cx.param(name, [1]).tensor());
    let [beta, least] = ["beta", "eps"].map(|name| cx.buffer(name, [0; 0], cx.env.weights));
    let above = above.softplus();
    let below = below.softplus().pipe(|below| beta.add(below));
    let positive = x.constant("gt", x.shape(), DType::Bool);
    let parabola = {
        let square = above.mul(x).pipe(|scaled| scaled.mul(x));
        let line = beta.mul(x);
        square.add(&line)
    };
    let curve = {
        let curved = x
            .extreme(&least)
            .pipe(Tensor::expm1)
            .pipe(|root| root.sub(x))
            .pipe(|difference| difference.mul(&below));
        let line = beta.mul(x);
        curved.add(&line)
    };
    positive.choose(&parabola, &curve)
}
