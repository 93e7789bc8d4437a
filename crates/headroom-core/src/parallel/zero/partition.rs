//! A parameter group laid out flat, and the part of it that this rank steps.

use std::ops::Range;
use std::rc::Rc;

use crate::tape::{Param, Tensor};

/// One of the optimizer's parameter groups (`bit16_groups`).
#[derive(Debug)]
pub(super) struct Flat {
    /// The weights of all its parameters, complete on every rank (`bit16_groups_flat`).
    pub _weights: Tensor,
    pub params: Vec<Rc<Param>>,
    /// Where each parameter begins.
    offsets: Vec<u64>,
    /// Elements of one rank's part.
    pub part: u64,
    rank: u64,
    /// The master weights of this rank's part (`single_partition_of_fp32_groups`).
    pub master: Rc<Param>,
}

impl Flat {
    pub(crate) fn new(
        weights: Tensor,
        params: Vec<Rc<Param>>,
        part: u64,
        rank: u64,
        master: Rc<Param>,
    ) -> Self {
        let mut end: u64 = 0;
        let offsets = params.iter().map(|param| {
            let offset = end;
            end = end.saturating_add(param.data.numel());
            offset
        });
        Self {
            offsets: offsets.collect(),
            _weights: weights,
            params,
            part,
            rank,
            master,
        }
    }

    fn mine(&self) -> Range<u64> {
        let start = self.part.saturating_mul(self.rank);
        start..start.saturating_add(self.part)
    }

    /// The elements of a parameter, by their places in the group.
    fn place(&self, at: usize) -> Range<u64> {
        let start = self.offsets.get(at).copied().unwrap_or(0);
        let numel = self.params.get(at).map_or(0, |param| param.data.numel());
        start..start.saturating_add(numel)
    }

    /// How many elements of a parameter are in this rank's part.
    pub(crate) fn elements_here(&self, at: usize) -> u64 {
        let (mine, place) = (self.mine(), self.place(at));
        let (start, end) = (mine.start.max(place.start), mine.end.min(place.end));
        end.saturating_sub(start)
    }

    /// How its elements are spread over the ranks: their counts in the order of the ranks.
    pub(crate) fn slices(&self, at: usize) -> Vec<(u64, u64)> {
        let place = self.place(at);
        let part = self.part.max(1);
        let mut slices = Vec::new();
        let mut start = place.start;
        while start < place.end {
            let rank = start / part;
            let end = place.end.min((rank + 1).saturating_mul(part));
            slices.push((rank, end - start));
            start = end;
        }
        slices
    }

    /// The places of the parameters that this rank's part touches.
    pub(crate) fn here(&self) -> Vec<usize> {
        (0..self.params.len())
            .filter(|at| self.elements_here(*at) > 0)
            .collect()
    }
}
