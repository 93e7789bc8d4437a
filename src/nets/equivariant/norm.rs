//! `EquivariantLayerNorm` as that repository writes it: the scalars together, every other feature by itself.

use crate::nets::Cx;
use crate::scenario::Irreps;
use crate::tape::Tensor;

pub fn forward(cx: &Cx, x: &Tensor, irreps: &Irreps) -> Tensor {
    let scalars = irreps.scalars();
    let weight = cx.param("weight", [scalars]).tensor();
    let bias = cx.param("bias", [scalars]).tensor();
    let mut output = x.cloned();
    let joined = x.narrow(1, scalars).cloned();
    let mut normed = centred(&joined);
    normed = normed.mul(&weight).then(|scaled| scaled.add(&bias));
    output = output.put(&normed);
    for (count, kind) in irreps.parts().iter().filter(|(_, kind)| kind.l > 0) {
        for _ in 0..*count {
            let feature = x.narrow(1, kind.dim());
            let normed = centred(&feature);
            output = output.put(&normed);
        }
    }
    drop((normed, joined));
    output
}

/// `(x - x.mean()) / sqrt(x.var() + eps)` over the last dimension.
fn centred(x: &Tensor) -> Tensor {
    let mean = x.mean(&[-1]);
    let variance = x.variance();
    let apart = x.sub(&mean);
    let deviation = variance.shift().then(Tensor::sqrt);
    apart.div(&deviation)
}
