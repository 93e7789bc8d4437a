//! Boxes of many anchors: which of them hold an object, and their losses (mmdet/core/bbox/assigners/max_iou_assigner.py,
//! mmdet/models/dense_heads/anchor_head.py).

use super::Library;
use crate::nets::Cx;
use crate::tape::{DType, Tensor};

/// `bbox_overlaps` of objects with anchors, and what is chosen by it: labels, weights and targets of each anchor.
pub(super) fn assigned(
    cx: &Cx,
    library: Library,
    like: &Tensor,
    [objects, anchors]: [u64; 2],
) -> Tensor {
    cx.tape.no_grad(|| {
        let pairs = |op| like.constant(op, &[objects, anchors], DType::F32);
        let sides = |op| like.constant(op, &[objects, anchors, 2], DType::F32);
        let ious = if library == Library::Detectron2 {
            let inner = {
                let corners = (sides("min"), sides("max"));
                let difference = sides("sub");
                drop(corners);
                difference
            };
            let overlap = pairs("prod");
            drop(inner);
            let (sum, ratio) = (pairs("sub"), pairs("div"));
            let ious = pairs("where");
            drop((sum, ratio, overlap));
            ious
        } else {
            // `lt`, `rb` and `wh` are names of the function: they live to its end.
            let corners = (sides("max"), sides("min"));
            let difference = sides("sub");
            let inner = sides("clamp");
            drop(difference);
            let overlap = pairs("mul");
            let union = {
                let sum = pairs("add");
                let union = pairs("sub");
                drop(sum);
                union
            };
            let (ratio, ious) = (pairs("div"), pairs("where"));
            drop((union, ratio));
            drop((corners, inner, overlap));
            ious
        };
        let best = (
            like.constant("max", &[anchors], DType::F32),
            like.constant("max", &[anchors], DType::I64),
        );
        // A label of eight bytes, its weight, a box and its weights.
        let targets = like.constant("targets", &[anchors, 11], DType::F32);
        drop((ious, best));
        targets
    })
}

/// Losses of whether each anchor holds an object, and of its box, level by level.
pub(super) fn losses(
    cx: &Cx,
    library: Library,
    outputs: &[[Tensor; 2]],
    per_place: u64,
    objects: u64,
) -> Vec<Tensor> {
    let Some([first, _]) = outputs.first() else {
        return Vec::new();
    };
    let n = first.size(0);
    let places = |map: &Tensor| map.size(2).saturating_mul(map.size(3));
    let all = outputs
        .iter()
        .map(|[score, _]| places(score).saturating_mul(per_place))
        .fold(0, u64::saturating_add);
    let anchors = first.constant("grid_anchors", &[all, 4], DType::F32);
    let targets: Vec<Tensor> = (0..n.min(MOST_IMAGES))
        .map(|_| assigned(cx, library, first, [objects, all]))
        .collect();
    // `images_to_levels`.
    let by_level = first.constant("stack", &[n, all, 11], DType::F32);
    drop(targets);
    let mut losses = Vec::new();
    for [score, moved] in outputs {
        let classes = score.size(1) / per_place.max(1);
        let rows = |map: &Tensor, width: u64| {
            let count = map.numel() / width.max(1);
            map.permute(&[0, 2, 3, 1]).reshape(&[count, width])
        };
        let scores = rows(score, classes);
        let labels = scores.constant("labels", &[scores.size(0)], DType::I64);
        let by_class = if classes == 1 {
            let target = scores.constant("float", &[scores.size(0), 1], DType::F32);
            scores.bce_with_logits(&target)
        } else {
            let weights = scores.constant("weights", &[scores.size(0), 1], DType::F32);
            scores
                .focal_loss(&labels)
                .pipe(|each| each.mul(&weights).mean_all())
        };
        drop(scores);
        let boxes = rows(moved, 4);
        let target = boxes.constant("targets", &[boxes.size(0), 4], DType::F32);
        let weights = boxes.constant("weights", &[boxes.size(0), 4], DType::F32);
        let by_place = {
            let difference = boxes.sub(&target).pipe(Tensor::abs);
            difference.mul(&weights).pipe(Tensor::mean_all)
        };
        losses.extend([by_class, by_place]);
    }
    drop((anchors, by_level));
    losses
}

/// Images whose anchors are assigned one after the other; more of them need no more at once.
const MOST_IMAGES: u64 = 64;

/// `RetinaNet.losses` of detectron2: all levels in a row, the valid ones of them, and a focal loss in PyTorch's own operations.
pub(super) fn written(
    cx: &Cx,
    library: Library,
    outputs: &[[Tensor; 2]],
    per_place: u64,
    objects: u64,
) -> Vec<Tensor> {
    let Some([first, _]) = outputs.first() else {
        return Vec::new();
    };
    let n = first.size(0);
    let rows = |at: usize| {
        let flat = outputs.iter().filter_map(|both| {
            let map = both.get(at)?;
            let width = map.size(1) / per_place.max(1);
            let count = map.numel() / width.max(1);
            Some(map.permute(&[0, 2, 3, 1]).reshape(&[count, width]))
        });
        super::super::joined(&flat.collect::<Vec<_>>(), 0, first)
    };
    let all = outputs
        .iter()
        .map(|[_, moved]| moved.numel() / 4 / n.max(1))
        .fold(0, u64::saturating_add);
    let targets: Vec<Tensor> = (0..n.min(MOST_IMAGES))
        .map(|_| assigned(cx, library, first, [objects, all]))
        .collect();
    let (scores, boxes) = (rows(0), rows(1));
    let count = scores.size(0);
    let whole = scores.constant("zeros_like", scores.shape(), DType::F32);
    let by_class = {
        let index = scores.constant("nonzero", &[count], DType::I64);
        let valid = scores.rows(&index);
        let target = valid.constant("index", valid.shape(), DType::F32);
        focal(&valid, &target).pipe(Tensor::mean_all)
    };
    let few = (count / 1000).max(1);
    let index = boxes.constant("nonzero", &[few], DType::I64);
    let own = boxes.rows(&index);
    let target = own.constant("targets", own.shape(), DType::F32);
    let by_place = own.sub(&target).pipe(Tensor::abs).pipe(Tensor::mean_all);
    drop((whole, targets));
    vec![by_class, by_place]
}

/// `sigmoid_focal_loss` of fvcore.
fn focal(scores: &Tensor, target: &Tensor) -> Tensor {
    let constant = |op| scores.constant(op, scores.shape(), DType::F32);
    let shares = scores.sigmoid();
    let entropy = scores.bce_unreduced(target);
    let right = {
        let inside = shares.mul(target);
        let outside = shares
            .neg()
            .add_scalar()
            .pipe(|rest| rest.mul(&constant("rsub")));
        inside.add(&outside)
    };
    drop(shares);
    let modulation = right.neg().add_scalar().pipe(Tensor::pow);
    drop(right);
    let loss = entropy.mul(&modulation);
    drop((entropy, modulation));
    loss.mul(&constant("alpha_t"))
}
