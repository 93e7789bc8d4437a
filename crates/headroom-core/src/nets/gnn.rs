//! Graph networks of PyTorch Geometric: graph convolution, graph attention and GraphSAGE over a list of edges.

use super::vision::index_name;
use super::{Build, Cx, ModelError, Net, Output, Sizes};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

pub(super) const FAMILIES: &[(&str, Build)] = &[
    ("gcn", |sizes| build(sizes, Convolution::Gcn)),
    ("gat", |sizes| build(sizes, Convolution::Gat)),
    ("sage", |sizes| build(sizes, Convolution::Sage)),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Convolution {
    Gcn,
    Gat,
    Sage,
}

#[derive(Clone, Copy, Debug)]
struct GraphNet {
    convolution: Convolution,
    /// Nodes and edges of one graph of the batch.
    nodes: u64,
    edges: u64,
    features: u64,
    hidden: u64,
    heads: u64,
    layers: u64,
    classes: u64,
}

fn build(sizes: &Sizes, convolution: Convolution) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(GraphNet {
        convolution,
        nodes: sizes.need("nodes")?,
        edges: sizes.need("edges")?,
        features: sizes.need("feat")?,
        hidden: sizes.need("hidden")?,
        heads: sizes.or("heads", 1).max(1),
        layers: sizes.need("layers")?,
        classes: sizes.need("classes")?,
    }))
}

/// The edges as a layer takes them.
struct Edges<'a> {
    index: &'a Tensor,
    weights: Option<&'a Tensor>,
    count: u64,
}

impl Net for GraphNet {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let times = |n: u64| n.saturating_mul(data.micro_batch);
        let (nodes, edges) = (times(self.nodes), times(self.edges));
        let mut all = vec![
            cx.tape.empty("labels", [nodes], DType::I64),
            cx.tape.empty("x", [nodes, self.features], cx.env.weights),
            cx.tape.empty("edge_index", [2, edges], DType::I64),
        ];
        if self.convolution == Convolution::Gcn {
            all.push(cx.tape.empty("edge_weight", [edges], cx.env.weights));
        }
        all
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [labels, x, index, rest @ ..] = batch else {
            return Output::empty(cx);
        };
        let edges = Edges {
            index,
            weights: rest.first(),
            count: index.size(1),
        };
        let mut x = x.clone();
        for i in 0..self.layers {
            let last = i + 1 == self.layers;
            let width = if last { self.classes } else { self.hidden };
            let heads = if last { 1 } else { self.heads };
            x = cx.module("c", |cx| {
                cx.module(index_name(i as usize), |cx| match self.convolution {
                    Convolution::Gcn => gcn_conv(cx, &x, &edges, width),
                    Convolution::Gat => gat_conv(cx, &x, &edges, width, heads),
                    Convolution::Sage => sage_conv(cx, &x, &edges, width),
                })
            });
            if !last {
                x = x.relu().pipe(|x| cx.dropout(x, 0.5));
            }
        }
        let loss = cx.module("loss", |_| x.cross_entropy(labels));
        Output {
            loss,
            held: vec![x],
        }
    }
}

/// `GCNConv` without normalisation and self-loops (`gcn_conv.py`).
fn gcn_conv(cx: &Cx, x: &Tensor, edges: &Edges, width: u64) -> Tensor {
    let nodes = x.size(0);
    let bias = cx.param("bias", [width]).tensor();
    let x = cx.linear("lin", x, width, false);
    let mut out = {
        let neighbours = x.index_select(edges.index, edges.count);
        let messages = match edges.weights {
            Some(weights) => weights.view(&[edges.count, 1]).mul(&neighbours),
            None => neighbours.clone(),
        };
        messages.scatter_add(edges.index, nodes)
    };
    out = out.add(&bias);
    out
}

/// `SAGEConv`: the mean of a node's neighbours and the node itself, each through a layer of its own (`sage_conv.py`).
fn sage_conv(cx: &Cx, x: &Tensor, edges: &Edges, width: u64) -> Tensor {
    let mut out = {
        let neighbours = x.index_select(edges.index, edges.count);
        neighbours.scatter_mean(edges.index, x.size(0))
    };
    out = cx.linear("lin_l", &out, width, true);
    let own = cx.linear("lin_r", x, width, false);
    let sum = out.add(&own);
    drop(own);
    out = sum;
    out
}

/// `GATConv` without self-loops (`gat_conv.py`).
fn gat_conv(cx: &Cx, x: &Tensor, edges: &Edges, width: u64, heads: u64) -> Tensor {
    let nodes = x.size(0);
    let source_weight = cx.param("att_src", [1, heads, width]).tensor();
    let target_weight = cx.param("att_dst", [1, heads, width]).tensor();
    let bias = cx.param("bias", [heads * width]).tensor();
    let x = cx
        .linear("lin", x, heads * width, false)
        .view(&[nodes, heads, width]);
    let score = |weight: &Tensor| {
        x.mul(weight)
            .pipe(|product| product.sum(&[-1]))
            .view(&[nodes, heads])
    };
    let scores = [score(&source_weight), score(&target_weight)];
    let alpha = {
        let [from, to] = [0, 1].map(|i: usize| scores[i].index_select(edges.index, edges.count));
        let mut alpha = from.add(&to);
        alpha = alpha.leaky_relu();
        edge_softmax(&alpha, edges, nodes)
    };
    let mut out = {
        let neighbours = x.index_select(edges.index, edges.count);
        let messages = alpha.unsqueeze(-1).mul(&neighbours);
        messages.scatter_add(edges.index, nodes)
    };
    out = out.view(&[nodes, heads * width]);
    out = out.add(&bias);
    out
}

/// `torch_geometric.utils.softmax`: over the edges that end in the same node.
fn edge_softmax(scores: &Tensor, edges: &Edges, nodes: u64) -> Tensor {
    let largest = scores.scatter_max(nodes);
    let mut out = largest
        .index_select(edges.index, edges.count)
        .pipe(|largest| scores.sub(largest));
    out = out.exp();
    let mut sums = out.scatter_add(edges.index, nodes).pipe(Tensor::add_scalar);
    sums = sums.index_select(edges.index, edges.count);
    out.div(&sums)
}
