//! `TaskAlignedAssigner` (ultralytics/utils/tal.py): which objects the places of the maps are to find, without gradients. What is
//! compared are the pairs of an object and a place in its box, of which there are more the larger the boxes are.

use super::overlap;
use crate::tape::{DType, Tape, Tensor};

/// How many of what is assigned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    pub batch: u64,
    /// Objects in a picture.
    pub objects: u64,
    /// Places of all maps.
    pub places: u64,
    pub classes: u64,
    /// Pairs of an object and a place in its box.
    pub pairs: u64,
    /// Places that may be assigned to an object at first, and at last.
    pub kept: [u64; 2],
}

/// What the losses compare predictions with.
pub(super) struct Assigned {
    /// `[B, places, 4]`
    pub boxes: Tensor,
    /// `[B, places, classes]`
    pub scores: Tensor,
    /// What else is kept until the losses are known: labels, the number of the object, and whether there is one.
    pub _held: [Tensor; 3],
}

/// The predictions as they are compared.
pub(super) struct Predicted<'a> {
    pub scores: &'a Tensor,
    pub boxes: &'a Tensor,
    /// Objects' boxes, `[B, objects, 4]`.
    pub objects: &'a Tensor,
}

impl Counts {
    fn pair_table(&self) -> [u64; 3] {
        [self.batch, self.objects, self.places]
    }

    fn place_table(&self) -> [u64; 2] {
        [self.batch, self.places]
    }

    fn class_table(&self) -> [u64; 3] {
        [self.batch, self.places, self.classes]
    }
}

pub(super) fn assign(tape: &Tape, counts: &Counts, given: &Predicted) -> Assigned {
    let make = |op, shape: &[u64], dtype| given.objects.constant(op, shape, dtype);
    let (all, at) = (counts.pair_table(), counts.place_table());
    let inside = inside(&make, all);
    let [align, overlaps] = metrics(tape, counts, given, &make);
    let mut chosen = {
        let best = best(&make, counts, counts.kept[0]);
        let count = make("zeros", &all, DType::U8);
        drop(make("gt", &all, DType::Bool));
        drop(best);
        count
    };
    drop(inside);
    let (object, is_found) = {
        let number = {
            let number = make("sum", &at, DType::I64);
            // A sum over int8 is one over 64-bit integers, which are made first.
            drop(make("to", &all, DType::I64));
            number
        };
        let several = make("gt", &at, DType::Bool);
        let largest = {
            let values = make("max", &at, DType::F32);
            let places = make("max", &at, DType::I64);
            drop(values);
            places
        };
        let highest = make("zeros", &all, DType::U8);
        let mut selected = make("where", &all, DType::U8);
        if counts.kept[1] != counts.kept[0] {
            let remaining = align.mul(&selected);
            let few = best(&make, counts, counts.kept[1]);
            let mask = make("zeros", &all, DType::U8);
            drop((remaining, few, mask));
        }
        std::mem::swap(&mut chosen, &mut selected);
        let found = make("max", &at, DType::U8);
        let object = make("max", &at, DType::I64);
        drop((number, several, largest, highest, selected));
        (object, found)
    };
    let (labels, boxes, hot) = {
        let place = make("add", &at, DType::I64);
        let labels = make("index", &at, DType::I64);
        let boxes = make("index", &[at[0], at[1], 4], given.objects.dtype());
        let hot = make("zeros", &counts.class_table(), DType::U8);
        let mask = make("gt", &at, DType::Bool);
        let product = make("mul", &counts.class_table(), DType::U8);
        drop((mask, hot, place));
        (labels, boxes, product)
    };
    let strength = make("amax", &at, DType::F32);
    let scores = {
        let weight = strength.unsqueeze(-1);
        hot.mul(&weight)
    };
    drop(hot);
    let mask = make("to", &at, DType::Bool);
    drop((chosen, overlaps, align, is_found, strength));
    Assigned {
        boxes,
        scores,
        _held: [labels, object, mask],
    }
}

/// `select_candidates_in_gts`: the place is right of the left side, below the top, and so on.
fn inside(make: &dyn Fn(&'static str, &[u64], DType) -> Tensor, all: [u64; 3]) -> Tensor {
    let side = || {
        let distance = make("sub", &all, DType::F32);
        let mask = make("gt", &all, DType::Bool);
        drop(distance);
        mask
    };
    let mask = side();
    for _ in 0..3 {
        drop(side());
    }
    mask
}

/// `get_box_metrics`: how well pairs fit, and their overlaps, written into tables of all objects and places.
fn metrics(
    tape: &Tape,
    counts: &Counts,
    given: &Predicted,
    make: &dyn Fn(&'static str, &[u64], DType) -> Tensor,
) -> [Tensor; 2] {
    let all = counts.pair_table();
    let pairs = counts.pairs;
    let as_numbers = make("mul", &all, DType::F32);
    let mask = make("to", &all, DType::Bool);
    let indices = make("nonzero", &[3, pairs], DType::I64);
    let scores = {
        let labels = make("index", &[pairs], DType::F32);
        let labels = labels.pipe(|_| make("to", &[pairs], DType::I64));
        let found = make("index", &[pairs], given.scores.dtype());
        drop(labels);
        found
    };
    let overlap = {
        let own = make("index", &[pairs, 4], given.objects.dtype());
        let found = make("index", &[pairs, 4], given.boxes.dtype());
        overlap::complete(tape, &own, &found)
    };
    let fit = {
        let (share, power) = (scores.pow(), overlap.pow());
        share.unsqueeze(-1).mul(&power)
    };
    let overlaps = make("zeros", &all, DType::F32);
    let align = make("zeros", &all, fit.dtype());
    drop((mask, indices, scores, overlap, fit, as_numbers));
    [align, overlaps]
}

/// `torch.topk` over the places of each object.
fn best(
    make: &dyn Fn(&'static str, &[u64], DType) -> Tensor,
    counts: &Counts,
    kept: u64,
) -> [Tensor; 2] {
    let shape = [counts.batch, counts.objects, kept.min(counts.places)];
    [
        make("topk", &shape, DType::F32),
        make("topk", &shape, DType::I64),
    ]
}
