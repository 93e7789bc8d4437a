//! Adapters whose update is a matrix as large as the layer's, made in each forward: LoHa and LoKr (peft/tuners/loha, lokr).

use super::{updated, vector};
use crate::nets::Cx;
use crate::tape::{Saved, Tensor, borrowing};
use headroom_scenario::Lora;

/// `HadaWeight`: the element-wise product of two products, whose matrices alone are saved.
pub(crate) fn hadamard(cx: &Cx, x: &Tensor, y: Tensor, lora: &Lora) -> Tensor {
    let (inputs, outputs) = (x.size(-1), y.size(-1));
    let factor = |name, shape: [u64; 2]| vector(cx, name, &shape, lora);
    let factors = [
        factor("hada_w1_a", [outputs, lora.rank]),
        factor("hada_w1_b", [lora.rank, inputs]),
        factor("hada_w2_a", [outputs, lora.rank]),
        factor("hada_w2_b", [lora.rank, inputs]),
    ];
    let delta = hada_weight(&factors);
    activated(x, y, &delta)
}

fn hada_weight(factors: &[Tensor; 4]) -> Tensor {
    let [a, b, c, d] = factors;
    let tape = a.tape();
    let whole = || {
        let product = tape.empty("matmul", [a.size(0), b.size(1)], a.dtype());
        tape.cublas_workspace();
        product
    };
    let product = tape.no_grad(|| {
        let (first, second) = (whole(), whole());
        let product = first.detach().mul(&second);
        drop((first, second));
        product.pipe(Tensor::mul_scalar)
    });
    product.from_op(&[a, b, c, d], |_| {
        let kept = [a, b, c, d].map(Tensor::save);
        let shapes = [a, b, c, d].map(|factor| *factor.shape());
        borrowing(move |g| {
            let unpacked = kept.each_ref().map(Saved::unpack);
            let tape = g.tape();
            let scaled = g.mul_scalar();
            let mut all = Vec::new();
            let mut temporary: Option<Tensor> = None;
            for pair in shapes.chunks(2) {
                let other = tape.empty("matmul", *g.shape(), g.dtype());
                tape.cublas_workspace();
                let product = scaled.mul(&other);
                drop(other);
                drop(temporary.replace(product));
                for shape in pair {
                    all.push(Some(tape.empty("matmul", *shape, g.dtype())));
                    tape.cublas_workspace();
                }
            }
            drop((temporary, scaled, unpacked));
            all.into_iter().collect()
        })
    })
}

/// `make_kron` of a small matrix and a larger one, or of the latter's two factors.
pub(crate) fn kronecker(cx: &Cx, x: &Tensor, y: Tensor, lora: &Lora) -> Tensor {
    let (inputs, outputs) = (x.size(-1), y.size(-1));
    let [(m, n), (l, k)] = [factors(inputs), factors(outputs)];
    let w1 = vector(cx, "lokr_w1", &[l, m], lora);
    let w2 = if 2 * lora.rank < k.max(n) {
        let a = vector(cx, "lokr_w2_a", &[k, lora.rank], lora);
        let b = vector(cx, "lokr_w2_b", &[lora.rank, n], lora);
        a.matmul_by(&b)
    } else {
        vector(cx, "lokr_w2", &[k, n], lora)
    };
    let rebuilt = w1
        .view(&[l, 1, m, 1])
        .mul(&w2.view(&[1, k, 1, n]))
        .reshape(&[outputs, inputs]);
    let delta = rebuilt.pipe(Tensor::mul_scalar);
    activated(x, y, &delta)
}

/// `factorization(dimension, factor=-1)`: the two factors nearest to each other.
fn factors(dimension: u64) -> (u64, u64) {
    let mut best = (1, dimension);
    let mut candidate = 2;
    while candidate <= dimension / candidate.max(1) {
        if dimension.is_multiple_of(candidate) {
            best = (candidate, dimension / candidate);
        }
        candidate += 1;
    }
    best
}

/// `F.linear(input, delta_weight)`, added to the layer's result.
fn activated(x: &Tensor, y: Tensor, delta: &Tensor) -> Tensor {
    let wide = x.to(delta.dtype());
    let update = wide.linear(delta, None);
    drop(wide);
    updated(y, update, x.dtype())
}

#[cfg(test)]
mod tests {
    use super::factors;

    #[track_caller]
    fn check(dimension: u64, expected: (u64, u64)) {
        assert_eq!(factors(dimension), expected);
    }

    #[test]
    fn a_dimension_is_split_near_its_root() {
        check(256, (16, 16));
        check(128, (8, 16));
        check(127, (1, 127));
        check(2, (1, 2));
    }
}
