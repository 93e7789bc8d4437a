//! Graph networks whose features turn with the molecule (e3nn): the pocket encoder of RNA-3E-FFI.
//!
//! Architecture: github.com/SleepingLei/RNA-3E-FFI at 6ccd5a7, `models/e3_gnn_encoder_v2.py`.

mod message;
mod norm;
mod product;

use super::{Build, Cx, ModelError, Net, Output, Region, Sizes};
use crate::nets::error::at_most;
use crate::nets::vision::index_name;
use crate::tape::{DType, Tensor};
use headroom_scenario::{Data, Irreps};
use message::{Edges, Layer, Paths};

pub(super) const FAMILIES: &[(&str, Build)] = &[("e3-pocket", build)];

/// A network over molecules: bonds and near pairs pass messages, angles and dihedrals add to them.
#[derive(Clone, Debug)]
struct Pocket {
    layers: u64,
    hidden: Irreps,
    harmonics: Irreps,
    atom_types: u64,
    residues: u64,
    /// Bessel functions of a distance, and the width of the network that makes weights of them.
    basis: u64,
    radial: u64,
    out: u64,
    norm: bool,
    /// Gradients are summed into new tensors, as FakeTensors' are.
    sums_apart: bool,
    graph: Graph,
}

/// The graph of one sample.
#[derive(Clone, Copy, Debug)]
struct Graph {
    nodes: u64,
    bonded: u64,
    /// Pairs closer than the cut-off, counted in both directions; none without non-bonded messages.
    nonbonded: u64,
    /// Paths of two and three bonds; none without multi-hop messages.
    angles: u64,
    dihedrals: u64,
}

fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let hidden = Irreps::of_sizes(sizes.all());
    if hidden.scalars() == 0 {
        return Err(ModelError::NoScalars);
    }
    at_most("layers", sizes.need("layers")?, 1000)?;
    at_most("the number of features", hidden.dim(), 100_000)?;
    at_most(
        "the number of features above scalars",
        hidden.gated(),
        10_000,
    )?;
    let multi_hop = sizes.or("multi_hop", 1).min(1);
    Ok(Box::new(Pocket {
        layers: sizes.need("layers")?,
        hidden,
        harmonics: Irreps::harmonics(sizes.or("harmonics", 2)),
        atom_types: sizes.or("atom_types", 70),
        residues: sizes.or("residues", 43),
        basis: sizes.or("bessel", 8),
        radial: sizes.or("radial", 64),
        out: sizes.need("out")?,
        norm: sizes.or("layer_norm", 1) != 0,
        sums_apart: sizes.is_set("sums_apart"),
        graph: Graph {
            nodes: sizes.need("nodes")?,
            bonded: sizes.need("bonded")?,
            nonbonded: sizes.or("nonbonded", 0),
            angles: sizes.or("angles", 0) * multi_hop,
            dihedrals: sizes.or("dihedrals", 0) * multi_hop,
        },
    }))
}

impl Net for Pocket {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let all = |n: u64| n.saturating_mul(data.micro_batch);
        let graph = &self.graph;
        let numbers =
            |name, rows: u64, width: u64| cx.tape.empty(name, [all(rows), width], cx.env.weights);
        let indices =
            |name, ends: u64, count: u64| cx.tape.empty(name, [ends, all(count)], DType::I64);
        vec![
            numbers("target", 1, self.out),
            numbers("x", graph.nodes, 4),
            numbers("pos", graph.nodes, 3),
            cx.tape.empty("batch", [all(graph.nodes)], DType::I64),
            indices("edge_index", 2, graph.bonded),
            numbers("edge_attr", graph.bonded, 2),
            indices("triple_index", 3, graph.angles),
            numbers("triple_attr", graph.angles, 2),
            indices("quadra_index", 4, graph.dihedrals),
            numbers("quadra_attr", graph.dihedrals, 3),
            indices("nonbonded_edge_index", 2, graph.nonbonded),
            numbers("nonbonded_edge_attr", graph.nonbonded, 3),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [target, x, pos, owner, rest @ ..] = batch else {
            return Output::empty(cx);
        };
        let [bonds, bond, triples, triple, quads, quad, pairs, pair] = rest else {
            return Output::empty(cx);
        };
        if self.sums_apart {
            cx.tape.accumulate_out_of_place();
        }
        let edges = |index: &Tensor, attributes: &Tensor| Edges {
            index: index.clone(),
            attributes: attributes.clone(),
            count: index.size(1),
        };
        let bonds = edges(bonds, bond);
        let [triples, quads] = [edges(triples, triple), edges(quads, quad)];
        let pairs = edges(pairs, pair);
        let mut hidden = cx.module("input_embedding", |cx| self.embedding(cx, x));
        let paths = |name| Paths {
            name,
            hidden: &self.hidden,
        };
        for i in 0..self.layers as usize {
            let mut new = cx.list_item("bonded_mp_layers", i, |cx| {
                self.message_layer(cx, i, true, &hidden, pos, &bonds)
            });
            for (name, mlp, weight, hops) in [
                ("angle_mp_layers", "angle_mlp", "angle_weight", &triples),
                (
                    "dihedral_mp_layers",
                    "dihedral_mlp",
                    "dihedral_weight",
                    &quads,
                ),
            ] {
                if hops.count > 0 {
                    let message = cx.list_item(name, i, |cx| paths(mlp).forward(cx, &hidden, hops));
                    new = add_weighted(cx, weight, &new, &message);
                }
            }
            if pairs.count > 0 {
                let message = cx.list_item("nonbonded_mp_layers", i, |cx| {
                    self.message_layer(cx, i, false, &hidden, pos, &pairs)
                });
                new = add_weighted(cx, "nonbonded_weight", &new, &message);
            }
            hidden = new;
            hidden = self.scalar_dropout(cx, hidden);
        }
        let graphs = target.size(0);
        let pooled = self.pooled(cx, &hidden, owner, graphs);
        let out = cx.module("output_projection", |cx| {
            let wide = cx.linear("0", &pooled, self.out, true);
            cx.layer_norm("1", &wide)
        });
        drop((hidden, pooled));
        let loss = cx.module("loss", |_| out.mse_loss(target));
        Output {
            loss,
            held: vec![out],
        }
    }
}

/// `new + weight * message`, with a learned weight.
fn add_weighted(cx: &Cx, weight: &'static str, new: &Tensor, message: &Tensor) -> Tensor {
    let weight = cx.param(weight, [0; 0]).tensor();
    weight.mul(message).pipe(|message| new.add(message))
}

impl Pocket {
    /// One layer of messages along edges, which a run can compute again in backward.
    fn message_layer(
        &self,
        cx: &Cx,
        index: usize,
        self_connection: bool,
        hidden: &Tensor,
        pos: &Tensor,
        edges: &Edges,
    ) -> Tensor {
        let this = self.clone();
        let body = move |cx: &Cx, inputs: Vec<Tensor>| {
            let [hidden, pos, index, attributes] = &inputs[..] else {
                return inputs;
            };
            let layer = Layer {
                hidden: &this.hidden,
                harmonics: &this.harmonics,
                basis: this.basis,
                radial: this.radial,
                norm: this.norm,
                self_connection,
            };
            let edges = Edges {
                index: index.clone(),
                attributes: attributes.clone(),
                count: index.size(1),
            };
            vec![layer.forward(cx, hidden, pos, &edges)]
        };
        let inputs = [hidden, pos, &edges.index, &edges.attributes].map(Tensor::clone);
        let outputs = cx.block(Region::Layer(index), inputs.to_vec(), body);
        outputs.into_iter().next().unwrap_or_else(|| hidden.clone())
    }

    /// `AMBERFeatureEmbedding`: atom type, residue, charge and number to scalars, then to all irreps.
    fn embedding(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let rows = x.size(0);
        let scalars = self.hidden.scalars();
        let index = || x.constant("to", &[rows], DType::I64);
        let (types, residues) = (index(), index());
        let atoms = cx.embedding("atom_type_embedding", &types, self.atom_types, 32);
        let residues = cx.embedding("residue_embedding", &residues, self.residues, 16);
        let numbers = x.constant("cat", &[rows, 2], x.dtype());
        let numbers = cx.module("continuous_projection", |cx| {
            let inner = cx.linear("0", &numbers, 16, true);
            inner
                .pipe(Tensor::silu)
                .pipe(|inner| cx.linear("2", inner, 16, true))
        });
        let fused = Tensor::cat(&atoms, &[&residues, &numbers], 1);
        let scalar = cx.module("feature_fusion", |cx| {
            let wide = cx.linear("0", &fused, 2 * scalars, true);
            let active = wide.pipe(Tensor::silu);
            let normed = active.pipe(|active| cx.layer_norm("2", active));
            normed.pipe(|normed| cx.linear("3", normed, scalars, true))
        });
        let from = Irreps::harmonics(0).times(scalars);
        product::linear(cx, "irreps_projection", &scalar, &from, &self.hidden)
    }

    /// Dropout on the scalars alone: they are selected by a mask and written back into a copy.
    fn scalar_dropout(&self, cx: &Cx, hidden: Tensor) -> Tensor {
        let rate = cx.rate(0.05);
        if rate <= 0.0 {
            return hidden;
        }
        let indices = hidden.constant("nonzero", &[self.hidden.scalars()], DType::I64);
        let copy = hidden.cloned();
        let scalars = hidden.narrow(1, self.hidden.scalars()).cloned();
        let dropped = scalars.pipe(|scalars| scalars.dropout(rate));
        drop(indices);
        copy.put(&dropped)
    }

    /// Attention over the nodes of each graph.
    fn pooled(&self, cx: &Cx, hidden: &Tensor, owner: &Tensor, graphs: u64) -> Tensor {
        const WIDTH: u64 = 128;
        let rate = cx.rate(0.05);
        let nodes = hidden.size(0);
        let scalars = hidden.narrow(1, self.hidden.scalars());
        let logits = cx.module("pooling_mlp", |cx| {
            let mut x = scalars.clone();
            for first in [0, 3] {
                x = cx.linear(index_name(first), &x, WIDTH, true);
                x = x.silu();
                x = x.dropout(rate);
            }
            cx.linear("6", &x, 1, true)
        });
        let largest = logits.scatter_max(graphs);
        let mut weights = largest
            .index_select(owner, nodes)
            .pipe(|largest| logits.sub(largest));
        weights = weights.exp();
        let sums = weights
            .scatter_add(owner, graphs)
            .pipe(Tensor::add_scalar)
            .pipe(|sums| sums.index_select(owner, nodes));
        weights = weights.div(&sums);
        drop(sums);
        let weighted = scalars.mul(&weights);
        weighted.scatter_add(owner, graphs)
    }
}

#[cfg(test)]
mod tests;
