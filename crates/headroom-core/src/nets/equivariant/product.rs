//! e3nn's layers with weights: `o3.Linear`, `o3.FullyConnectedTensorProduct` and `nn.Gate`, as the code they generate runs.

use crate::nets::Cx;
use crate::tape::{DType, Tensor};
use headroom_scenario::{Irrep, Irreps, Path};

/// A tensor product of edge features with spherical harmonics, whose weights come from outside.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    pub input: Irreps,
    pub harmonics: Irreps,
    pub output: Irreps,
}

impl Product {
    /// `tp(x, sh, weights)` for `[E, ..]` each: paths one after the other, then sums of those with the same output.
    ///
    /// Where einsum has a choice, it contracts in the order opt_einsum finds cheapest. In scripted code the outer
    /// products that no path needs are removed; so they are here.
    pub(crate) fn forward(
        &self,
        cx: &Cx,
        x: &Tensor,
        harmonics: &Tensor,
        weights: &Tensor,
    ) -> Tensor {
        let edges = x.size(0);
        let firsts = parts(x, &self.input);
        let seconds = parts(harmonics, &self.harmonics);
        let paths = self.input.paths(&self.harmonics, &self.output);
        let mut results: Vec<(usize, Tensor)> = Vec::new();
        for path in &paths {
            let (Some(first), Some(second)) = (firsts.get(path.first), seconds.get(path.second))
            else {
                continue;
            };
            let (u, w) = (self.input.part(path.first).0, self.output.part(path.out).0);
            let weight = weights.narrow(1, u * w).view(&[edges, u, w]);
            let result = self.path(cx, *path, first, second, &weight);
            results.push((path.out, result));
        }
        let mut sums = Vec::new();
        for (at, (n, kind)) in self.output.parts().iter().enumerate() {
            let mut sum: Option<Tensor> = None;
            for (_, result) in results.extract_if(.., |(out, _)| *out == at) {
                sum = Some(match sum {
                    Some(sum) => sum.add(&result),
                    None => result,
                });
            }
            sums.push(
                sum.unwrap_or_else(|| x.constant("new_zeros", &[edges, n * kind.dim()], x.dtype())),
            );
        }
        joined(sums).unwrap_or_else(|| x.clone())
    }

    fn path(&self, cx: &Cx, path: Path, x: &Tensor, harmonic: &Tensor, weight: &Tensor) -> Tensor {
        let edges = x.size(0);
        let (u, a) = self.input.part(path.first);
        let (_, b) = self.harmonics.part(path.second);
        let (w, c) = self.output.part(path.out);
        // The path's factor multiplies the smallest operand, which is the harmonics.
        let scaled = || harmonic.mul_scalar();
        let flat = [edges, w * c.dim()];
        match (a.l, b.l, c.l) {
            (0, 0, 0) if u <= w => {
                let row = scaled().mul(&x.view(&[edges, 1, u]));
                row.pipe(|row| row.bmm(weight)).view(&flat)
            }
            (0, _, _) => {
                let mixed = x.view(&[edges, 1, u]).bmm(weight).view(&[edges, w, 1]);
                mixed.mul(&scaled()).view(&flat)
            }
            (_, 0, _) if u <= w => {
                let whole = scaled().mul(x);
                let transposed = whole.transpose(1, 2).bmm(weight).transpose(1, 2);
                drop(whole);
                transposed.contiguous().view(&flat)
            }
            (_, 0, _) => {
                let mixed = x.transpose(1, 2).bmm(weight);
                let transposed = mixed.mul(&scaled()).transpose(1, 2);
                transposed.contiguous().view(&flat)
            }
            (_, _, 0) => {
                let dots = scaled().bmm(&x.transpose(1, 2));
                dots.pipe(|dots| dots.bmm(weight)).view(&flat)
            }
            _ => {
                let (i, k) = (a.dim(), c.dim());
                // `harmonics · w3j` for each edge; it has no gradient.
                let rotation = || {
                    let symbols = cx.buffer(symbols(a.l, b.l, c.l), [i * k, b.dim()], DType::F32);
                    let factor = scaled();
                    let copied = symbols.constant("clone", symbols.shape(), DType::F32);
                    let rotation = factor.view(&[edges, b.dim()]).linear(&symbols, None);
                    drop((copied, factor));
                    rotation.view(&[edges, i, k]).transpose(1, 2)
                };
                let features = x.transpose(1, 2);
                // Multiplications of mixing first, then rotating, against the other order.
                let out = if u * w * i + w * i * k <= u * i * k + u * w * k {
                    let mixed = features.bmm(weight);
                    rotation().bmm(&mixed)
                } else {
                    let rotated = rotation().bmm(&features);
                    rotated.pipe(|rotated| rotated.bmm(weight))
                };
                out.transpose(1, 2).contiguous().view(&flat)
            }
        }
    }
}

/// A name for the symbols of a triple of degrees; beyond the common ones all share a name and so a buffer.
fn symbols(a: u64, b: u64, c: u64) -> &'static str {
    match (a, b, c) {
        (1, 1, 1) => "_w3j_1_1_1",
        (1, 1, 2) => "_w3j_1_1_2",
        (1, 2, 1) => "_w3j_1_2_1",
        (1, 2, 2) => "_w3j_1_2_2",
        (2, 1, 1) => "_w3j_2_1_1",
        (2, 1, 2) => "_w3j_2_1_2",
        (2, 2, 1) => "_w3j_2_2_1",
        (2, 2, 2) => "_w3j_2_2_2",
        _ => "_w3j",
    }
}

/// The features of each kind as `[E, n, 2l + 1]`.
fn parts(x: &Tensor, irreps: &Irreps) -> Vec<Tensor> {
    let rows = x.size(0);
    let part = |(n, kind): &(u64, Irrep)| x.narrow(1, n * kind.dim()).view(&[rows, *n, kind.dim()]);
    irreps.parts().iter().map(part).collect()
}

/// `torch.cat(all, -1)`; one alone as it is.
fn joined(all: Vec<Tensor>) -> Option<Tensor> {
    let (first, rest) = all.split_first()?;
    if rest.is_empty() {
        return Some(first.clone());
    }
    let rest: Vec<&Tensor> = rest.iter().collect();
    Some(Tensor::cat(first, &rest, 1))
}

/// `o3.Linear(irreps_in, irreps_out)(x)`: a matrix for each kind that both have, all in one vector of weights.
pub(crate) fn linear(
    cx: &Cx,
    name: &'static str,
    x: &Tensor,
    from: &Irreps,
    to: &Irreps,
) -> Tensor {
    cx.module(name, |cx| {
        let rows = x.size(0);
        let pairs: Vec<(usize, usize)> = to
            .parts()
            .iter()
            .enumerate()
            .filter_map(|(out, (_, kind))| {
                let here = from.parts().iter().position(|(_, other)| other == kind);
                here.map(|here| (here, out))
            })
            .collect();
        let numel = pairs
            .iter()
            .map(|&(i, o)| from.part(i).0.saturating_mul(to.part(o).0));
        let weights = cx
            .param("weight", [numel.fold(0, u64::saturating_add)])
            .tensor();
        cx.buffer("output_mask", [to.dim()], DType::F32);
        let all = weights.view(&[1, weights.numel()]);
        let inputs = parts(x, from);
        let mut results: Vec<Option<Tensor>> = vec![None; to.parts().len()];
        for (i, o) in pairs {
            let ((u, kind), (w, _)) = (from.part(i), to.part(o));
            let Some(input) = inputs.get(i) else { continue };
            let matrix = all.narrow(1, u * w).view(&[u, w]);
            // The factor multiplies whichever is smaller for the four rows that the code is generated for.
            let lighter = 4 * u * kind.dim() <= u * w;
            let (input, matrix) = if lighter {
                (input.mul_scalar(), matrix)
            } else {
                (input.clone(), matrix.mul_scalar())
            };
            let transposed = input.transpose(1, 2).reshape(&[rows * kind.dim(), u]);
            drop(input);
            let product = transposed.linear(&matrix.transpose(0, 1), None);
            drop(transposed);
            let product = product.view(&[rows, kind.dim(), w]).transpose(1, 2);
            let flat = product.reshape(&[rows, w * kind.dim()]);
            if let Some(slot) = results.get_mut(o) {
                *slot = Some(flat);
            }
        }
        let parts = results.into_iter().zip(to.parts());
        let parts = parts.map(|(result, (n, kind))| {
            result.unwrap_or_else(|| x.constant("new_zeros", &[rows, n * kind.dim()], x.dtype()))
        });
        joined(parts.collect()).unwrap_or_else(|| x.clone())
    })
}

/// `nn.Gate`: SiLU on the scalars, and a sigmoid for each other feature to be multiplied by.
pub(crate) fn gate(x: &Tensor, to: &Irreps) -> Tensor {
    let (rows, scalars, gates) = (x.size(0), to.scalars(), to.gated());
    if gates == 0 {
        return x.clone();
    }
    // `Extract` copies each part into zeros.
    let extracted = |width: u64| x.narrow(1, width).cloned();
    let scalar = extracted(scalars);
    let gate = extracted(gates);
    let gated = extracted(to.dim() - scalars);
    let active = scalar.silu().pipe(Tensor::mul_scalar);
    let kinds = || to.parts().iter().filter(|(_, kind)| kind.l > 0);
    let opened = kinds().map(|(n, _)| {
        let part = gate.narrow(1, *n).sigmoid();
        part.pipe(Tensor::mul_scalar)
    });
    let opened = joined(opened.collect()).unwrap_or_else(|| gate.clone());
    let products = kinds().map(|(n, kind)| {
        let features = gated.narrow(1, n * kind.dim());
        let features = features.view(&[rows, *n, kind.dim()]);
        let gate = opened.narrow(1, *n).view(&[rows, *n, 1]);
        features.mul(&gate).view(&[rows, n * kind.dim()])
    });
    let gated = joined(products.collect()).unwrap_or_else(|| gated.clone());
    Tensor::cat(&active, &[&gated], 1)
}
