//! Messages along edges, and along paths of two and three bonds.

use super::norm;
use super::product::{Product, gate, linear};
use crate::nets::Cx;
use crate::tape::{DType, Tensor};
use headroom_scenario::Irreps;

/// Index pairs (or longer paths) with the attributes of each.
#[derive(Debug)]
pub(crate) struct Edges {
    pub index: Tensor,
    pub attributes: Tensor,
    pub count: u64,
}

/// `E3GNNMessagePassingLayer`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layer<'a> {
    pub hidden: &'a Irreps,
    pub harmonics: &'a Irreps,
    pub basis: u64,
    pub radial: u64,
    pub norm: bool,
    /// `self_connection`: a node's own features are added, through a linear layer and as a residual.
    pub self_connection: bool,
}

impl Layer<'_> {
    pub(crate) fn forward(&self, cx: &Cx, input: &Tensor, pos: &Tensor, edges: &Edges) -> Tensor {
        let before_gate = self.hidden.before_gate();
        let residual = self.self_connection.then(|| input.cloned());
        let own = self
            .self_connection
            .then(|| linear(cx, "self_connection", input, self.hidden, &before_gate));
        let mut x = linear(cx, "linear_in", input, self.hidden, self.hidden);
        let product = Product {
            input: self.hidden.clone(),
            harmonics: self.harmonics.clone(),
            output: before_gate,
        };
        let messages = {
            let sent = x.index_select(&edges.index, edges.count);
            self.messages(cx, &product, &sent, pos, edges)
        };
        let arrived = messages.pipe(|messages| messages.scatter_add(&edges.index, x.size(0)));
        x = match own {
            Some(own) => own.add(&arrived),
            None => arrived.clone(),
        };
        x = gate(&x, self.hidden);
        if let Some(residual) = residual {
            x = residual.add(&x);
        }
        if self.norm {
            x = cx.module("layer_norm", |cx| norm::forward(cx, &x, self.hidden));
        }
        drop(arrived);
        x
    }

    /// A message for each edge, whose weights are computed from its length and its attributes.
    fn messages(
        &self,
        cx: &Cx,
        product: &Product,
        sent: &Tensor,
        pos: &Tensor,
        edges: &Edges,
    ) -> Tensor {
        let count = edges.count;
        let [source, target] = [(), ()].map(|()| pos.index_select(&edges.index, count));
        let edge_vec = source.sub(&target);
        let distance = edge_vec.length();
        let direction = edge_vec.div(&distance);
        let harmonics = pos.constant("stack", &[count, self.harmonics.dim()], pos.dtype());
        let basis = pos.constant("mul", &[count, self.basis], pos.dtype());
        let attributes = edges.attributes.size(1);
        let radial = pos.constant("cat", &[count, self.basis + attributes], pos.dtype());
        cx.module("bessel_basis", |cx| {
            cx.buffer("frequencies", [self.basis], DType::F32);
        });
        let numel = product
            .input
            .weight_numel(&product.harmonics, &product.output);
        let weights = cx.module("radial_mlp", |cx| {
            let mut x = cx.linear("0", &radial, self.radial, true);
            x = x.silu();
            x = cx.linear("2", &x, self.radial, true);
            x = x.silu();
            cx.linear("4", &x, numel, true)
        });
        let out = cx.module("tp", |cx| product.forward(cx, sent, &harmonics, &weights));
        drop((direction, distance, edge_vec, source, target, basis, radial));
        out
    }
}

/// `AngleMessagePassing` and `DihedralMessagePassing`: from the ends of a path to an atom between them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paths<'a> {
    pub name: &'static str,
    pub hidden: &'a Irreps,
}

impl Paths<'_> {
    pub(crate) fn forward(&self, cx: &Cx, x: &Tensor, paths: &Edges) -> Tensor {
        const WIDTH: u64 = 64;
        let (rows, scalars) = (x.size(0), self.hidden.scalars());
        let scalar = x.narrow(1, scalars);
        let index = || paths.index.constant("view", &[0], DType::I64);
        let end = || scalar.index_select(&index(), paths.count);
        let [first, last] = [end(), end()];
        let joined = Tensor::cat(&first, &[&last, &paths.attributes], 1);
        let messages = cx.module(self.name, |cx| {
            let mut x = cx.linear("0", &joined, WIDTH, true);
            x = x.silu();
            x = cx.linear("2", &x, WIDTH, true);
            x = x.silu();
            cx.linear("4", &x, scalars, true)
        });
        let mean = || {
            let counts = x.constant("scatter_add_", &[rows, 1], x.dtype());
            let sums = messages.scatter_add(&paths.index, rows);
            let mean = sums.div(&counts);
            drop(sums);
            mean
        };
        let gathered = if self.name == "dihedral_mlp" {
            // To both middle atoms, halved.
            let both = mean().add(&mean());
            both.pipe(Tensor::mul_scalar)
        } else {
            mean()
        };
        let from = Irreps::harmonics(0).times(scalars);
        linear(cx, "output_projection", &gathered, &from, self.hidden)
    }
}
