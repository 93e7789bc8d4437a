//! `EquivariantLayerNorm` as that repository writes it: the scalars together, every other feature by itself.

use crate::nets::Cx;
use crate::tape::Tensor;
use headroom_scenario::Irreps;

pub(crate) fn forward(cx: &Cx, x: &Tensor, irreps: &Irreps) -> Tensor {
    let scalars = irreps.scalars();
    let weight = cx.param("weight", [scalars]).tensor();
    let bias = cx.param("bias", [scalars]).tensor();
    let mut output = x.cloned();
    let scalar_part = x.narrow(1, scalars).cloned();
    let mut normed = normalized(&scalar_part);
    normed = normed.mul(&weight).pipe(|scaled| scaled.add(&bias));
    output = output.put(&normed);
    for (count, kind) in irreps.parts().iter().filter(|(_, kind)| kind.l > 0) {
        for _ in 0..*count {
            let feature = x.narrow(1, kind.dim());
            let normed = normalized(&feature);
            output = output.put(&normed);
        }
    }
    drop((normed, scalar_part));
    output
}

/// `(x - x.mean()) / sqrt(x.var() + eps)` over the last dimension.
fn normalized(x: &Tensor) -> Tensor {
    let mean = x.mean(&[-1]);
    let variance = x.variance();
    let centered = x.sub(&mean);
    let deviation = variance.add_scalar().pipe(Tensor::sqrt);
    centered.div(&deviation)
}
