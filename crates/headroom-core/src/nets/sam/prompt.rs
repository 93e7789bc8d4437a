//! `SamPromptEncoder`: positions and boxes as sinusoids, and the embeddings of its prompts.

use crate::nets::Cx;
use crate::tape::Tensor;

/// `SamPositionalEmbedding.forward`: sines and cosines of coordinates.
fn positional_embedding(cx: &Cx, coordinates: Tensor, width: u64) -> Tensor {
    cx.module("shared_image_embedding", |cx| {
        let random = cx.param("positional_embedding", [2, width / 2]).tensor();
        let centered = {
            let doubled = coordinates.mul_scalar();
            doubled.add_scalar()
        };
        drop(coordinates);
        // The parameter itself is cast, so that the cast is kept for its next use.
        let random = random.autocast().transpose(0, 1);
        let mut angles = centered.linear(&random, None);
        drop((centered, random));
        angles = angles.mul_scalar();
        let sines = angles.sin();
        let cosines = angles.cos();
        Tensor::cat(&sines, &[&cosines], -1)
    })
}

/// `get_image_wide_positional_embeddings`: `[1, width, side, side]`.
pub(crate) fn image_wide_positions(cx: &Cx, image: &Tensor, side: u64, width: u64) -> Tensor {
    let dtype = cx.env.weights;
    let make = |op| image.constant(op, &[side, side], dtype);
    let ones = make("ones");
    let line = || make("cumsum").pipe(|_| make("sub"));
    let mut down = line();
    let mut across = line();
    down = down.pipe(|_| make("div"));
    across = across.pipe(|_| make("div"));
    let both = image.constant("stack", &[side, side, 2], dtype);
    let copy = image.constant("clone", &[side, side, 2], dtype);
    let positions = positional_embedding(cx, copy, width);
    drop((both, across, down, ones));
    positions.permute(&[2, 0, 1]).unsqueeze(0)
}

/// `_embed_boxes` before its point embeddings: `[B, boxes, 2, width]`.
pub(crate) fn embed_boxes(cx: &Cx, boxes: &Tensor, width: u64) -> Tensor {
    let moved = boxes.add_scalar();
    let shape = [boxes.size(0), boxes.size(1), 2, 2];
    let copy = moved.constant("clone", &shape, boxes.dtype());
    // Each coordinate is divided by the image's side and put back.
    for _ in 0..2 {
        drop(moved.constant("div", &[boxes.size(0), boxes.size(1), 2], boxes.dtype()));
    }
    let corners = positional_embedding(cx, copy, width);
    drop(moved);
    corners
}

/// The embeddings of a mask prompt that is absent, and of each corner of a box.
pub(crate) struct Embeddings {
    pub no_mask: Tensor,
    pub corners: Vec<Tensor>,
}

/// The parameters of the prompt encoder, of which a box uses few.
pub(crate) fn embeddings(cx: &Cx, [channels, points]: [u64; 2], width: u64) -> Embeddings {
    cx.module("mask_embed", |cx| {
        let first = channels / 4;
        let table = |name: &'static str, shape: &[u64], out: u64| {
            cx.module(name, |cx| {
                cx.param("weight", shape);
                cx.param("bias", [out]);
            });
        };
        table("conv1", &[first, 1, 2, 2], first);
        table("conv2", &[channels, first, 2, 2], channels);
        table("conv3", &[width, channels, 1, 1], width);
        table("layer_norm1", &[first], first);
        table("layer_norm2", &[channels], channels);
    });
    let row = |cx: &Cx| cx.param("weight", [1, width]).tensor();
    let no_mask = cx.module("no_mask_embed", row);
    let all: Vec<Tensor> = (0..points as usize)
        .map(|i| cx.list_item("point_embed", i, row))
        .collect();
    cx.module("not_a_point_embed", row);
    Embeddings {
        no_mask,
        corners: all.into_iter().skip(2).collect(),
    }
}

/// Adds its point embedding to each corner, in place.
pub(crate) fn add_point_embeddings(corners: &Tensor, embeddings: &[Tensor]) -> Tensor {
    embeddings
        .iter()
        .fold(corners.clone(), |corners, embedding| {
            corners.add_(embedding)
        })
}
