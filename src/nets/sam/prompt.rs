//! `SamPromptEncoder`: places as waves, and what is said of the image besides.

use crate::nets::Cx;
use crate::tape::Tensor;

/// `SamPositionalEmbedding`: coordinates of which each becomes waves.
fn waves(cx: &Cx, coordinates: Tensor, width: u64) -> Tensor {
    cx.within("shared_image_embedding", |cx| {
        let random = cx.param("positional_embedding", [2, width / 2]).tensor();
        let centred = {
            let doubled = coordinates.scale();
            doubled.shift()
        };
        drop(coordinates);
        // The parameter itself is cast, so that the cast is kept for its next use.
        let random = random.lowered().transpose(0, 1);
        let mut angles = centred.linear(&random, None);
        drop((centred, random));
        angles = angles.scale();
        let sines = angles.sin();
        let cosines = angles.cos();
        Tensor::cat(&sines, &[&cosines], -1)
    })
}

/// `get_image_wide_positional_embeddings`: `[1, width, side, side]`.
pub fn grid(cx: &Cx, image: &Tensor, side: u64, width: u64) -> Tensor {
    let dtype = cx.env.weights;
    let make = |op| image.constant(op, &[side, side], dtype);
    let ones = make("ones");
    let line = || make("cumsum").then(|_| make("sub"));
    let mut down = line();
    let mut across = line();
    down = down.then(|_| make("div"));
    across = across.then(|_| make("div"));
    let both = image.constant("stack", &[side, side, 2], dtype);
    let copy = image.constant("clone", &[side, side, 2], dtype);
    let places = waves(cx, copy, width);
    drop((both, across, down, ones));
    places.permute(&[2, 0, 1]).unsqueeze(0)
}

/// `_embed_boxes`, but for what tells one corner from the other: `[B, boxes, 2, width]`.
pub fn corners(cx: &Cx, boxes: &Tensor, width: u64) -> Tensor {
    let moved = boxes.shift();
    let shape = [boxes.size(0), boxes.size(1), 2, 2];
    let copy = moved.constant("clone", &shape, boxes.dtype());
    // Each coordinate is divided by the image's side and put back.
    for _ in 0..2 {
        drop(moved.constant("div", &[boxes.size(0), boxes.size(1), 2], boxes.dtype()));
    }
    let corners = waves(cx, copy, width);
    drop(moved);
    corners
}

/// What stands for a prompt that was not given, and for each corner of a box.
pub struct Embeddings {
    pub mask: Tensor,
    pub corners: Vec<Tensor>,
}

/// The tables of the prompt's encoder, of which a box uses few.
pub fn embeddings(cx: &Cx, [channels, points]: [u64; 2], width: u64) -> Embeddings {
    cx.within("mask_embed", |cx| {
        let first = channels / 4;
        let table = |name: &'static str, shape: &[u64], out: u64| {
            cx.within(name, |cx| {
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
    let mask = cx.within("no_mask_embed", row);
    let all: Vec<Tensor> = (0..points as usize)
        .map(|i| cx.nth("point_embed", i, row))
        .collect();
    cx.within("not_a_point_embed", row);
    Embeddings {
        mask,
        corners: all.into_iter().skip(2).collect(),
    }
}

/// Each corner gets what its kind adds, in place.
pub fn told_apart(corners: &Tensor, kinds: &[Tensor]) -> Tensor {
    kinds
        .iter()
        .fold(corners.clone(), |corners, kind| corners.add_(kind))
}
