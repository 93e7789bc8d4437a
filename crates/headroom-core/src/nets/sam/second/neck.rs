//! `Sam2VisionNeck`: every stage's map in one width, the coarse ones summed, and where their places are.

use crate::nets::Cx;
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};

/// Maps of the first three stages, finest first, and their positions, which the output of the encoder holds.
pub(super) struct Pyramid {
    pub(super) features: [Tensor; 3],
    #[expect(dead_code, reason = "what the encoder's output keeps alive")]
    positions: Vec<Tensor>,
}

pub(super) fn pyramid(cx: &Cx, stages: &[Tensor], width: u64) -> Pyramid {
    let top = stages.len().saturating_sub(1);
    let mut before: Option<Tensor> = None;
    let raises = cx.tape.autocast_dtype().is_some();
    let (mut features, mut positions) = (Vec::new(), Vec::new());
    for (i, stage) in stages.iter().enumerate().rev() {
        let lateral = cx.list_item("convs", top - i, |cx| {
            let weight = cx.param("weight", [width, stage.size(3), 1, 1]).tensor();
            let bias = cx.param("bias", [width]).tensor();
            stage
                .permute(&[0, 3, 1, 2])
                .convolution(&weight, Some(&bias), Conv::default())
        });
        // `fpn_top_down_levels`: the two coarsest.
        let map = match &before {
            Some(coarser) if i + 1 == top => {
                let wide = coarser.to(DType::F32);
                let larger = wide
                    .interpolate(lateral.size(2), lateral.size(3))
                    .to(lateral.dtype());
                drop(wide);
                lateral.add(&larger)
            }
            _ => lateral.clone(),
        };
        drop(lateral);
        // Under autocast the cached table is of fp32, and a copy is what the output holds.
        if i > 0 || raises {
            positions.push(sines(&map));
        }
        before = Some(map.clone());
        features.push(map);
    }
    // The class keeps the last table in a cache.
    if let Some(finest) = features.last() {
        let dtype = if raises { DType::F32 } else { finest.dtype() };
        cx.buffer("position_encoding", *finest.shape(), dtype);
    }
    features.reverse();
    if !positions.is_empty() {
        positions.remove(0);
    }
    let mut features = features.into_iter();
    let mut next = || {
        let empty = || cx.tape.empty("map", [0; 0], cx.env.weights);
        features.next().unwrap_or_else(empty)
    };
    Pyramid {
        features: [next(), next(), next()],
        positions,
    }
}

/// `Sam2SinePositionEmbedding.build_sine_position_embedding`.
fn sines(map: &Tensor) -> Tensor {
    let (n, width, h, w) = (map.size(0), map.size(1), map.size(2), map.size(3));
    let half = width / 2;
    let make = |shape: &[u64]| map.constant("div", shape, map.dtype());
    let angles = [(); 2].map(|()| make(&[n, h, w, half]));
    let turned = |_: &Tensor| {
        let parts = [(); 2].map(|()| make(&[n, h, w, half / 2]));
        let pairs = make(&[n, h, w, half]);
        drop(parts);
        pairs
    };
    let [x, y] = angles;
    let pairs_of_x = turned(&x);
    drop(x);
    let pairs_of_y = turned(&y);
    drop(y);
    let all = make(&[n, h, w, width]);
    drop((pairs_of_x, pairs_of_y));
    all.permute(&[0, 3, 1, 2])
}
