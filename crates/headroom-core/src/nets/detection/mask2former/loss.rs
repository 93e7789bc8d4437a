//! `Mask2FormerLoss`: of every layer's masks and classes, at random places where the masks are least certain.

use super::Mask2Former;
use crate::nets::Cx;
use crate::tape::{DType, Tensor};

/// `oversample_ratio`, of which three quarters are kept (`importance_sample_ratio`).
const OVERSAMPLED: u64 = 3;

impl Mask2Former {
    /// The sum of the losses of the last layer and of those before it.
    pub(super) fn loss(
        &self,
        cx: &Cx,
        found: &[Tensor],
        logits: &[Tensor],
        targets: &Tensor,
    ) -> Tensor {
        let pairs = found.iter().zip(logits);
        let mut sum: Option<Tensor> = None;
        for (masks, logits) in pairs.rev() {
            if cx.tape.is_over_budget() {
                break;
            }
            cx.tape.no_grad(|| self.match_masks(masks, targets));
            let of_masks = self.of_masks(cx, masks, targets);
            let classes = logits.constant("full", &[logits.size(0), logits.size(1)], DType::I64);
            let of_classes = logits.transpose(1, 2).contiguous().cross_entropy(&classes);
            let own = of_masks.add(&of_classes);
            sum = Some(match sum {
                Some(sum) => sum.add(&own),
                None => own,
            });
        }
        sum.unwrap_or_else(|| cx.tape.empty("loss", [0; 0], DType::F32))
    }

    /// `Mask2FormerHungarianMatcher.forward` of a picture: every picture needs as much after the other.
    fn match_masks(&self, masks: &Tensor, targets: &Tensor) {
        let (queries, objects, points) = (masks.size(1), self.pictures.objects, self.points);
        let make = |rows: u64| masks.constant("grid_sampler", &[rows, points], DType::F32);
        let side = targets.size(-1);
        let whole = masks.constant("to", &[objects, side, side], masks.dtype());
        let places = masks.constant("repeat", &[queries, points, 2], DType::F32);
        let (labels, own) = (make(objects), make(queries));
        // Each entropy is a product and a logarithm beside what it is of.
        let entropy = || {
            let given = make(queries);
            let parts = (make(queries), make(queries));
            let out = make(queries);
            drop((given, parts));
            out
        };
        let (present, absent) = (entropy(), entropy());
        let scaled = make(queries);
        drop((scaled, absent, present));
        let shares = make(queries);
        // Names of a turn stand until the next.
        drop((shares, own, labels, whole, places));
    }

    fn of_masks(&self, cx: &Cx, masks: &Tensor, targets: &Tensor) -> Tensor {
        let (count, points) = (targets.size(0), self.points);
        let index = masks.constant("cat", &[count], DType::I64);
        let [h, w] = [masks.size(2), masks.size(3)];
        let flat = masks.view(&[masks.size(0).saturating_mul(masks.size(1)), h, w]);
        let own = flat.rows(&index).unsqueeze(1);
        // All targets are copied into one padded tensor, and from it in the order of what they are matched with.
        let padded = targets.constant("zeros", targets.shape(), targets.dtype());
        let side = targets.size(-1);
        let pictures = masks.size(0);
        let padding = targets.constant("ones", &[pictures, side, side], DType::Bool);
        drop(padding);
        let given = targets.constant("index", &[count, 1, side, side], targets.dtype());
        drop(padded);
        let (grid, labels) = cx.tape.no_grad(|| {
            let make = |last: &[u64], dtype: DType| {
                let shape = [&[count][..], last].concat();
                masks.constant("sample", &shape, dtype)
            };
            let many = points.saturating_mul(OVERSAMPLED);
            let places = {
                let random = make(&[many, 2], DType::F32);
                let doubled = make(&[many, 1, 2], DType::F32);
                let wide = own.detach().grid_sample(&doubled);
                drop(doubled);
                let uncertain = make(&[many], DType::F32);
                let kept = points / 4 * 3;
                let best = make(&[kept], DType::I64);
                let chosen = make(&[kept, 2], DType::F32);
                drop((wide, uncertain, best, random));
                let all = make(&[points, 2], DType::F32);
                drop(chosen);
                all
            };
            let grid = || make(&[points, 1, 2], DType::F32);
            let labels = given.to(DType::F32).grid_sample(&grid());
            let grid = grid();
            drop(places);
            (grid, labels.view(&[count, points]))
        });
        let sampled = own.grid_sample(&grid).view(&[count, points]);
        let entropy = sampled.bce_with_logits(&labels);
        let dice = {
            let shares = sampled.sigmoid();
            let both = shares.mul(&labels).pipe(|product| product.sum(&[-1]));
            let either = shares.sum(&[-1]);
            drop(shares);
            both.div(&either).pipe(Tensor::mean_all)
        };
        drop((given, own));
        entropy.add(&dice)
    }
}
