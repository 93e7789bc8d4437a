//! `RTDetrForObjectDetectionLoss` (loss/loss_rt_detr.py): the loss of every decoder layer and of the encoder's best places, whose boxes
//! are matched on the host, and that of the denoising queries, which know theirs.

use super::Found;
use super::d_fine::Local;
use crate::nets::Cx;
use crate::nets::detection::loss::{corners, overlaps};
use crate::tape::{DType, Tensor};

/// A set of queries that is compared with the objects.
struct Set {
    logits: Tensor,
    boxes: Tensor,
    /// How often each object is compared; `None` where it is matched with one query.
    groups: Option<u64>,
    /// Distributions of corners (D-FINE).
    local: Option<Local>,
}

pub(super) fn loss(cx: &Cx, found: &Found, targets: &Tensor, noisy: u64, groups: u64) -> Tensor {
    let (mut layers, all) = (found.logits.size(1), found.logits.size(2));
    let bounded = found.corners.is_some().then(|| found.boxes.clamp_between());
    let boxes_of_all = bounded.as_ref().unwrap_or(&found.boxes);
    let counts = [noisy, all.saturating_sub(noisy)];
    let part = |x: &Tensor, at: usize| {
        let parts = if noisy > 0 {
            x.split(&counts, 2)
        } else {
            vec![x.clone(); 2]
        };
        parts.get(at).map(|part| part.select(1))
    };
    // Distributions begin with the first layer, classes and boxes with what it starts from.
    let local = |at: usize, last: bool| {
        let [corners, starts] = found.corners.as_ref()?;
        Some(Local {
            corners: part(corners, at)?,
            teacher: part(corners, at)?,
            teacher_logits: part(&found.logits, at)?,
            starts: part(starts, at)?,
            last,
        })
    };
    let set = |at, groups, local| {
        let (logits, boxes) = (part(&found.logits, at)?, part(boxes_of_all, at)?);
        Some(Set {
            logits,
            boxes,
            groups,
            local,
        })
    };
    let [logits, boxes] = found.first.clone();
    let of_encoder = Set {
        logits,
        boxes,
        groups: None,
        local: None,
    };
    if found.corners.is_some() {
        layers = layers.saturating_sub(1);
    }
    let layer_sets =
        (0..layers).filter_map(|i| set(1, None, (i > 0).then(|| local(1, false)).flatten()));
    let noisy_sets = (0..layers)
        .filter(|_| noisy > 0)
        .filter_map(|i| set(0, Some(groups), local(0, i + 1 == layers)));
    let sets = layer_sets.chain([of_encoder]).chain(noisy_sets);
    let mut sum: Option<Tensor> = None;
    for set in sets {
        if cx.tape.is_over_budget() {
            break;
        }
        let own = set.loss(cx, targets);
        sum = Some(match sum {
            Some(sum) => sum.add(&own),
            None => own,
        });
    }
    sum.unwrap_or_else(|| cx.tape.empty("loss", [0; 0], DType::F32))
}

impl Set {
    fn loss(&self, cx: &Cx, targets: &Tensor) -> Tensor {
        if self.groups.is_none() {
            cx.tape
                .no_grad(|| match_boxes(&self.logits, &self.boxes, targets));
        }
        let count = targets.size(0).saturating_mul(self.groups.unwrap_or(1));
        let of_classes = self.varifocal(cx, count);
        let rows = self.rows(count);
        let given = targets.constant("cat", &[count, 4], targets.dtype());
        let by_place = rows.sub(&given).mean_all().pipe(Tensor::mul_scalar);
        let by_overlap = {
            let overlaps = overlaps(&corners(&rows), &corners(&given), true);
            let own = overlaps
                .reshape(&[count.saturating_mul(count)])
                .narrow(0, count);
            own.mean_all().pipe(Tensor::mul_scalar)
        };
        let sum = of_classes.add(&by_place).pipe(|sum| sum.add(&by_overlap));
        match &self.local {
            Some(local) => sum.add(&local.loss(cx, &rows, count)),
            None => sum,
        }
    }

    /// The boxes that are compared, one for each object.
    fn rows(&self, count: u64) -> Tensor {
        let index = self.boxes.constant("cat", &[count], DType::I64);
        let flat = [self.boxes.size(0).saturating_mul(self.boxes.size(1)), 4];
        self.boxes.reshape(&flat).rows(&index)
    }

    /// `loss_labels_vfl`.
    fn varifocal(&self, cx: &Cx, count: u64) -> Tensor {
        let (logits, shape) = (&self.logits, *self.logits.shape());
        let rows = self.rows(count);
        let (own, score) = cx.tape.no_grad(|| {
            let found = corners(&rows.detach());
            let fits = overlaps(&found, &found, false);
            drop(fits);
            let [batch, queries, classes] = [0, 1, 2].map(|axis| logits.size(axis));
            let wide = [batch, queries, classes.saturating_add(1)];
            let own = logits.constant("one_hot", &wide, DType::I64);
            let score = logits.constant("mul", &shape, logits.dtype());
            (own, score)
        });
        let weight = cx.tape.no_grad(|| {
            let share = logits.detach().sigmoid();
            let power = share.pow().pipe(Tensor::mul_scalar);
            let other = own.constant("rsub", &shape, DType::I64);
            let product = power.mul(&other);
            drop((power, other));
            product.add(&score).pipe(|sum| sum.to(logits.dtype()))
        });
        let loss = logits.bce_with_logits(&score).keeping(&[weight]);
        drop((own, rows));
        loss.mul_scalar()
    }
}

/// `RTDetrHungarianMatcher.forward`: the costs of each query for each object.
pub(in crate::nets::detection) fn match_boxes(logits: &Tensor, boxes: &Tensor, targets: &Tensor) {
    let rows = logits.size(0).saturating_mul(logits.size(1));
    let index = targets.constant("cat", &[targets.size(0)], DType::I64);
    let boxes = boxes.reshape(&[rows, 4]);
    let shares = {
        let shares = logits.reshape(&[rows, logits.size(2)]).sigmoid();
        shares.columns(&index)
    };
    let side = |first: &Tensor, second: &Tensor| {
        let power = first.pow().pipe(Tensor::mul_scalar);
        let log = second.add_scalar().pipe(Tensor::log).pipe(Tensor::neg);
        power.mul(&log)
    };
    let rest = shares.neg().pipe(Tensor::add_scalar);
    let wrong = side(&shares, &rest);
    let right = side(&rest, &shares);
    drop(rest);
    let by_class = right.sub(&wrong);
    let by_place = by_class.constant("cdist", by_class.shape(), DType::F32);
    let by_overlap = overlaps(&corners(&boxes), &corners(targets), true).pipe(Tensor::neg);
    let cost = {
        let first = by_place.mul_scalar();
        let second = by_class.mul_scalar();
        let sum = first.add(&second);
        drop((first, second));
        let third = by_overlap.mul_scalar();
        sum.add(&third)
    };
    let finite = cost.neg();
    drop((
        finite, cost, by_overlap, by_place, by_class, right, wrong, shares,
    ));
}
