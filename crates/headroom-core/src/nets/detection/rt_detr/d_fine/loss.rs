//! `DFineLoss.loss_local` (loss/loss_d_fine.py): the distributions of matched queries against the distances of their objects, and those of all
//! queries against the last layer's.

use crate::nets::Cx;
use crate::nets::detection::loss::{corners, overlaps};
use crate::tape::{DType, Tensor};

/// Distributions of one layer, of the last one, and what the boxes are measured from.
pub(in crate::nets::detection::rt_detr) struct Local {
    /// `[B, queries, 4 * bins]`.
    pub(in crate::nets::detection::rt_detr) corners: Tensor,
    pub(in crate::nets::detection::rt_detr) teacher: Tensor,
    pub(in crate::nets::detection::rt_detr) teacher_logits: Tensor,
    pub(in crate::nets::detection::rt_detr) starts: Tensor,
    /// The layer is the last one: it has nothing to learn from itself.
    pub(in crate::nets::detection::rt_detr) last: bool,
}

impl Local {
    /// Of `count` pairs of a query and an object, the queries' boxes being `rows`.
    pub(in crate::nets::detection::rt_detr) fn loss(
        &self,
        cx: &Cx,
        rows: &Tensor,
        count: u64,
    ) -> Tensor {
        let [n, queries, all] = [0, 1, 2].map(|axis| self.corners.size(axis));
        let bins = all / 4;
        let flat = n.saturating_mul(queries);
        let fits = cx.tape.no_grad(|| {
            let found = corners(&rows.detach());
            overlaps(&found, &found, false)
        });
        drop(fits);
        let index = self.corners.constant("cat", &[count], DType::I64);
        let found = self
            .corners
            .reshape(&[flat, all])
            .rows(&index)
            .reshape(&[4 * count, bins]);
        let given = cx.tape.no_grad(|| {
            // Which bin a distance is in.
            let starts = self.starts.constant("index", &[count, 4], DType::F32);
            let distances = starts.constant("sub", &[4 * count, bins], DType::F32);
            let below = starts.constant("le", &[4 * count, bins], DType::Bool);
            drop((distances, below));
            [(); 2].map(|()| starts.constant("zeros_like", &[4 * count], DType::F32))
        });
        let [left, right] = given;
        let places = [(); 2].map(|()| left.constant("long", &[4 * count], DType::I64));
        let [first, second] = [0, 1].map(|i: usize| found.cross_entropy_unreduced(&places[i]));
        let matched = {
            let sum = first.mul(&left).add(&second.mul(&right));
            let weights = left.constant("detach", &[4 * count], DType::F32);
            sum.mul(&weights).mean_all()
        };
        drop((first, second));
        let students = self.corners.reshape(&[flat.saturating_mul(4), bins]);
        let teachers = self
            .teacher
            .detach()
            .reshape(&[flat.saturating_mul(4), bins]);
        let same = students.constant("eq", students.shape(), DType::Bool);
        drop(same);
        if self.last {
            return matched.add(&students.mean_all());
        }
        let weights = cx.tape.no_grad(|| {
            let shares = self.teacher_logits.detach().sigmoid();
            let best = shares.max_values();
            drop(shares);
            best.constant("repeat", &[flat.saturating_mul(4)], best.dtype())
        });
        let wide = students.dtype().promote(DType::F32);
        let logs = students.mul_scalar().pipe(|x| x.log_softmax_in(wide));
        let target = cx
            .tape
            .no_grad(|| teachers.mul_scalar().pipe(|x| x.softmax(Some(wide))));
        let distance = {
            let own = cx
                .tape
                .no_grad(|| target.constant("xlogy", target.shape(), wide));
            let cross = target.mul(&logs);
            own.sub(&cross)
        };
        let sum = distance.sum(&[-1]).squeeze(-1);
        drop(distance);
        let distilled = weights.mul_scalar().mul(&sum).unsqueeze(-1);
        let mask = distilled.constant("repeat", &[flat.saturating_mul(4)], DType::Bool);
        let kept = distilled.rows_where(&mask, 4 * count);
        let others = distilled.rows_where(&mask, flat.saturating_mul(4));
        let both = kept.mean_all().add(&others.mean_all());
        matched.add(&both)
    }
}
