//! SegFormer with its decoder of all stages (transformers/models/segformer/modeling_segformer.py).

use crate::nets::attention::{Eager, attend, heads};
use crate::nets::drop_path::drop_path;
use crate::nets::{Cx, ModelError, Net, Output, Region, Sizes};
use crate::tape::ops::{AttentionMask, Conv};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Debug)]
struct Segformer {
    stages: Vec<Stage>,
    /// `decoder_hidden_size`.
    decoder: u64,
    image: u64,
    classes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Stage {
    depth: u64,
    layer: Layer,
    patch: u64,
    stride: u64,
    /// Layers of the stages before.
    before: u64,
}

#[derive(Clone, Copy, Debug)]
struct Layer {
    width: u64,
    heads: u64,
    /// `sr_ratios`: keys and values are of pictures whose sides are divided by this.
    reduction: u64,
    /// `mlp_ratios`.
    ratio: u64,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let lists = ["depths", "dims", "heads", "reductions"];
    let mut all = Vec::new();
    for name in lists {
        all.push(sizes.list(name)?);
    }
    let count = all.first().map_or(0, |list| list.len());
    if count == 0 || all.iter().any(|list| list.len() != count) {
        return Err(ModelError::MismatchedLists {
            names: "`depths`, `dims`, `heads` and `reductions`",
            expected: "one of each for every stage",
        });
    }
    let at = |list: usize, i: usize| all.get(list).and_then(|list| list.get(i)).copied();
    let mut before = 0;
    let stages = (0..count).map(|i| {
        let depth = at(0, i).unwrap_or(1);
        let stage = Stage {
            depth,
            layer: Layer {
                width: at(1, i).unwrap_or(1),
                heads: at(2, i).unwrap_or(1).max(1),
                reduction: at(3, i).unwrap_or(1).max(1),
                ratio: sizes.or("mlp_ratio", 4),
            },
            patch: if i == 0 { 7 } else { 3 },
            stride: if i == 0 { 4 } else { 2 },
            before,
        };
        before += depth;
        stage
    });
    Ok(Box::new(Segformer {
        stages: stages.collect(),
        decoder: sizes.or("decoder", 256),
        image: sizes.or("img", 512),
        classes: sizes.or("classes", 150),
    }))
}

impl Net for Segformer {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let (n, side) = (data.micro_batch, self.image);
        vec![
            cx.tape
                .empty("pixel_values", [n, 3, side, side], cx.env.weights),
            cx.tape.empty("labels", [n, side, side], DType::I64),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [image, labels] = batch else {
            return Output::empty(cx);
        };
        let states = cx.module("segformer", |cx| {
            let mut states: Vec<Tensor> = Vec::new();
            for (i, stage) in self.stages.iter().enumerate() {
                let input = states.last().unwrap_or(image).clone();
                states.push(cx.list_item("stages", i, |cx| stage.forward(cx, &input)));
            }
            states
        });
        let logits = cx.module("decode_head", |cx| self.decode(cx, &states));
        let loss = cx.module("loss", |_| {
            let upsampled = logits.interpolate(self.image, self.image);
            upsampled.cross_entropy(labels)
        });
        Output {
            loss,
            held: vec![logits],
        }
    }
}

impl Segformer {
    /// `SegformerDecodeHead.forward`.
    fn decode(&self, cx: &Cx, states: &[Tensor]) -> Tensor {
        let Some(first) = states.first() else {
            return cx.tape.empty("logits", [0; 0], DType::F32);
        };
        let (down, across) = (first.size(2), first.size(3));
        let mut all = Vec::new();
        for (i, state) in states.iter().enumerate() {
            let projected = cx.list_item("linear_projections", i, |cx| {
                cx.linear("proj", &flattened(state), self.decoder, true)
            });
            let grid = [state.size(0), self.decoder, state.size(2), state.size(3)];
            let grid = projected.transpose(1, 2).reshape(&grid);
            all.insert(0, grid.interpolate(down, across));
        }
        let mut hidden = match all.split_first() {
            Some((first, rest)) => Tensor::cat(first, &rest.iter().collect::<Vec<_>>(), 1),
            None => first.clone(),
        };
        let one = Conv::stride(1);
        hidden = cx.conv2d("linear_fuse", &hidden, self.decoder, 1, one, false);
        hidden = cx.batch_norm("batch_norm", &hidden);
        hidden = hidden.relu();
        hidden = cx.dropout(&hidden, 0.1);
        let logits = cx.conv2d("classifier", &hidden, self.classes, 1, one, true);
        drop(all);
        logits
    }
}

/// `x.flatten(2).transpose(1, 2)`.
fn flattened(x: &Tensor) -> Tensor {
    let (n, c, rest) = (x.size(0), x.size(1), x.size(2) * x.size(3));
    x.reshape(&[n, c, rest]).transpose(1, 2)
}

impl Stage {
    /// `SegformerStage.forward`.
    fn forward(self, cx: &Cx, input: &Tensor) -> Tensor {
        let width = self.layer.width;
        let (mut hidden, side) = cx.module("patch_embeddings", |cx| {
            let conv = Conv::stride(self.stride).padded(self.patch / 2);
            let grid = cx.conv2d("proj", input, width, self.patch, conv, true);
            let side = [grid.size(2), grid.size(3)];
            (cx.layer_norm("layer_norm", &flattened(&grid)), side)
        });
        for i in 0..self.depth as usize {
            let (layer, drops) = (self.layer, self.before + i as u64 > 0);
            hidden = cx.list_item("blocks", i, |cx| {
                cx.unary_block(Region::Layer(i), &hidden, move |cx, x| {
                    layer.forward(cx, x, side, drops)
                })
            });
        }
        hidden = cx.layer_norm("layer_norm", &hidden);
        let [down, across] = side;
        hidden
            .reshape(&[input.size(0), down, across, width])
            .permute(&[0, 3, 1, 2])
            .contiguous()
    }
}

impl Layer {
    /// `SegformerLayer.forward`.
    fn forward(self, cx: &Cx, input: &Tensor, side: [u64; 2], drops: bool) -> Tensor {
        let drops = drops && cx.rate(0.1) > 0.0;
        let mut hidden = cx.layer_norm("layernorm_before", input);
        hidden = cx.module("attention", |cx| self.attention(cx, &hidden, side));
        hidden = drop_path(&hidden, drops).pipe(|kept| kept.add(input));
        let residual = hidden.clone();
        hidden = cx.layer_norm("layernorm_after", &hidden);
        hidden = cx.module("mlp", |cx| {
            let mut x = cx.linear("fc1", &hidden, self.ratio * self.width, true);
            x = cx.module("dwconv", |cx| {
                let grid = as_picture(&x, side);
                let conv = Conv::stride(1).padded(1).grouped(grid.size(1));
                let grid = cx.conv2d("dwconv", &grid, grid.size(1), 3, conv, true);
                flattened(&grid)
            });
            x = x.gelu();
            cx.linear("fc2", &x, self.width, true)
        });
        drop_path(&hidden, drops).pipe(|kept| kept.add(&residual))
    }

    fn attention(self, cx: &Cx, x: &Tensor, side: [u64; 2]) -> Tensor {
        let inner = self.width / self.heads * self.heads;
        let project = |name, x: &Tensor| heads(&cx.linear(name, x, inner, true), self.heads);
        let q = project("q_proj", x);
        let states = if self.reduction > 1 {
            cx.module("sequence_reduction", |cx| {
                let conv = Conv::stride(self.reduction);
                let grid = as_picture(x, side);
                let (name, kernel) = ("sequence_reduction", self.reduction);
                let grid = cx.conv2d(name, &grid, self.width, kernel, conv, true);
                cx.layer_norm("layer_norm", &flattened(&grid))
            })
        } else {
            x.clone()
        };
        let (k, v) = (project("k_proj", &states), project("v_proj", &states));
        let eager = Eager { in_fp32: true };
        let (mut out, weights) = attend(cx, [&q, &k, &v], &AttentionMask::None, 0.0, eager);
        out = out.reshape(&[x.size(0), x.size(1), inner]);
        out = cx.linear("o_proj", &out, self.width, true);
        drop((states, weights));
        out
    }
}

/// `x.transpose(1, 2).reshape(batch, channels, height, width)`.
fn as_picture(x: &Tensor, [height, width]: [u64; 2]) -> Tensor {
    let shape = [x.size(0), x.size(2), height, width];
    x.transpose(1, 2).reshape(&shape)
}
