//! What of a snapshot a plan does not have, and what of the plan the snapshot does not have: allocation by allocation.

use std::cmp::Reverse;

use super::alignment::{by_size, in_order};
use super::{Device, Held, Moment};
use headroom_base::units::Bytes;
use headroom_core::estimate::{AliveTensors, Phase, Prediction, TensorKind, Unsupported};

/// A snapshot's allocations beside those of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The instant of the plan that was compared: its step, from 0, and phase.
    pub when: Option<(u32, Phase)>,
    /// What the plan holds then, and the snapshot.
    pub planned: Bytes,
    pub held: Bytes,
    /// What is in both.
    pub matched: Bytes,
    /// Allocations that the plan has in another size.
    pub resized: Vec<Resized>,
    /// How many times its size each of those is.
    pub scale: Option<f64>,
    /// What the snapshot has and the plan has not.
    pub unplanned: Vec<Unplanned>,
    /// What the plan has and the snapshot has not.
    pub absent: Vec<TensorCount>,
}

/// Tensors of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorCount {
    pub kind: TensorKind,
    pub count: u64,
    /// The size of one, as the allocator rounds it.
    pub each: Bytes,
}

/// Allocations that no plan has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unplanned {
    pub count: u64,
    pub each: Bytes,
    /// `file:line function` of those who asked for them, the innermost first.
    pub stack: Vec<String>,
}

/// Tensors that a plan has in another size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resized {
    pub planned: TensorCount,
    pub each: Bytes,
    pub stack: Vec<String>,
}

impl Comparison {
    /// Compares with the plan where the most is allocated, and where it is most like the snapshot; the nearer tells more.
    pub fn of(device: &Device, prediction: &Prediction) -> Result<Self, Unsupported> {
        let mut sizes: Vec<u64> = device.held.iter().map(rounded).collect();
        sizes.sort_unstable();
        let nearest = Self::with(device, &prediction.alive_nearest(&sizes)?);
        if device.moment == Moment::End && nearest.unexplained() == Bytes::ZERO {
            return Ok(nearest);
        }
        let peak = Self::with(device, &prediction.alive_at_peak()?);
        Ok(if peak.unexplained() <= nearest.unexplained() {
            peak
        } else {
            nearest
        })
    }

    /// Whether the two hold the same.
    pub fn is_equal(&self) -> bool {
        self.resized.is_empty() && self.unplanned.is_empty() && self.absent.is_empty()
    }

    /// Bytes that are only here or only there.
    fn unexplained(&self) -> Bytes {
        let unplanned = self.unplanned.iter().map(|each| each.each * each.count);
        let absent = self.absent.iter().map(|each| each.each * each.count);
        unplanned.chain(absent).sum()
    }

    fn with(device: &Device, alive: &AliveTensors) -> Self {
        let mut matching = Matching::new(&device.held, alive);
        matching.older();
        matching.ordered();
        matching.whatever_order();
        let matched = matching.pairs.iter().map(|(_, held)| bytes(device, *held));
        let matched = matched.sum();
        let (scale, scaled) = matching.scaled();
        let sum = |sizes: &mut dyn Iterator<Item = Bytes>| sizes.sum();
        Self {
            when: alive.when,
            planned: sum(&mut alive.tensors.iter().map(|(bytes, _)| bytes.round_up(512))),
            held: sum(&mut device.held.iter().map(|held| held.bytes.round_up(512))),
            matched,
            resized: resized(device, alive, &scaled),
            scale,
            unplanned: unplanned(device, &matching.left_held()),
            absent: absent(alive, &matching.left_planned()),
        }
    }
}

fn rounded(held: &Held) -> u64 {
    held.bytes.round_up(512).get()
}

fn bytes(device: &Device, held: usize) -> Bytes {
    device
        .held
        .get(held)
        .map_or(Bytes::ZERO, |held| held.bytes.round_up(512))
}

fn stack(device: &Device, held: usize) -> &[String] {
    let number = device.held.get(held).map(|held| held.stack as usize);
    let stack = number.and_then(|number| device.stacks.get(number));
    stack.map_or(&[], Vec::as_slice)
}

/// Which planned tensor is which allocation, as far as is known.
struct Matching<'a> {
    held: &'a [Held],
    planned: Vec<u64>,
    /// What the plan asks for, before the allocator rounds.
    asked: Vec<u64>,
    pairs: Vec<(usize, usize)>,
    planned_is_matched: Vec<bool>,
    held_is_matched: Vec<bool>,
}

impl<'a> Matching<'a> {
    fn new(held: &'a [Held], alive: &AliveTensors) -> Self {
        let sizes = |round: u64| {
            let sizes = alive
                .tensors
                .iter()
                .map(move |(bytes, _)| bytes.round_up(round).get());
            sizes.collect::<Vec<u64>>()
        };
        Self {
            held,
            planned: sizes(512),
            asked: sizes(1),
            pairs: Vec::new(),
            planned_is_matched: vec![false; alive.tensors.len()],
            held_is_matched: vec![false; held.len()],
        }
    }

    fn take(&mut self, pairs: &[(usize, usize)]) {
        for (planned, held) in pairs {
            self.planned_is_matched[*planned] = true;
            self.held_is_matched[*held] = true;
        }
        self.pairs.extend(pairs);
    }

    fn left_planned(&self) -> Vec<(u64, usize)> {
        let all = self.planned.iter().copied().zip(0..);
        all.filter(|(_, at)| !self.planned_is_matched[*at])
            .collect()
    }

    fn left_held(&self) -> Vec<(u64, usize)> {
        let all = self.held.iter().map(rounded).zip(0..);
        all.filter(|(_, at)| !self.held_is_matched[*at]).collect()
    }

    /// What is older than the history has no order; it is the oldest of the plan.
    fn older(&mut self) {
        let mut older = self.left_held();
        older.retain(|(_, at)| !self.held[*at].recorded);
        self.take(&by_size(&self.left_planned(), &older));
    }

    /// What was allocated in the same order.
    fn ordered(&mut self) {
        let planned = self.left_planned();
        let mut held = self.left_held();
        held.retain(|(_, at)| self.held[*at].recorded);
        let sizes = |all: &[(u64, usize)]| all.iter().map(|(size, _)| *size).collect::<Vec<u64>>();
        let pairs = in_order(&sizes(&planned), &sizes(&held));
        let pairs: Vec<_> = pairs
            .into_iter()
            .map(|(a, b)| (planned[a].1, held[b].1))
            .collect();
        self.take(&pairs);
    }

    /// What has the same size and came at another time.
    fn whatever_order(&mut self) {
        self.take(&by_size(&self.left_planned(), &self.left_held()));
    }

    /// What is larger or smaller than planned by one ratio, such as with another batch: the ratio that most of the rest has.
    fn scaled(&mut self) -> (Option<f64>, Vec<(usize, usize)>) {
        const LARGEST: usize = 8;
        /// A larger ratio is chance.
        const MOST: u64 = 64;
        let (planned, held) = (self.left_planned(), self.left_held());
        let largest = |sizes: Vec<u64>| {
            let mut sizes = sizes;
            sizes.sort_unstable();
            sizes.dedup();
            sizes.into_iter().rev().take(LARGEST).collect::<Vec<u64>>()
        };
        let of_plan = largest(planned.iter().map(|(_, at)| self.asked[*at]).collect());
        let of_held = largest(
            held.iter()
                .map(|(_, at)| self.held[*at].bytes.get())
                .collect(),
        );
        let mut best = (0, None, Vec::new());
        for (from, to) in of_plan
            .iter()
            .flat_map(|a| of_held.iter().map(move |b| (*a, *b)))
        {
            if from == 0 || from.max(to) / from.min(to).max(1) >= MOST {
                continue;
            }
            let size = |at: usize| {
                let scaled = u128::from(self.asked[at]) * u128::from(to) / u128::from(from);
                let scaled = u64::try_from(scaled).unwrap_or(u64::MAX);
                Bytes::new(scaled).round_up(512).get()
            };
            let scaled: Vec<_> = planned.iter().map(|(_, at)| (size(*at), *at)).collect();
            let pairs = by_size(&scaled, &held);
            let covered: u64 = pairs
                .iter()
                .fold(0, |all, (at, _)| all.saturating_add(self.planned[*at]));
            if covered > best.0 {
                best = (covered, Some(to as f64 / from as f64), pairs);
            }
        }
        let sum = |all: &mut dyn Iterator<Item = u64>| all.fold(0, u64::saturating_add);
        let (covered, scale, pairs) = best;
        let taken = sum(&mut pairs.iter().map(|(_, at)| rounded(&self.held[*at])));
        let [planned, held] =
            [&planned, &held].map(|left| sum(&mut left.iter().map(|(size, _)| *size)));
        // A ratio that only some share is chance too.
        if covered < planned / 2 || taken < held / 2 || pairs.len() < 3 {
            return (None, Vec::new());
        }
        self.take(&pairs);
        (scale, pairs)
    }
}

/// Allocations that no plan has, by their stack and size; the most memory first.
fn unplanned(device: &Device, left: &[(u64, usize)]) -> Vec<Unplanned> {
    let mut left = left.to_vec();
    let key = |(size, held): &(u64, usize)| (stack(device, *held), *size);
    left.sort_by(|a, b| key(a).cmp(&key(b)));
    let same = left.chunk_by(|a, b| key(a) == key(b));
    let mut all: Vec<Unplanned> = same
        .filter_map(|same| {
            let (size, held) = *same.first()?;
            Some(Unplanned {
                count: same.len() as u64,
                each: Bytes::new(size),
                stack: stack(device, held).to_vec(),
            })
        })
        .collect();
    all.sort_by_key(|found| Reverse(found.each * found.count));
    all
}

/// Tensors of the plan that are not there, by what they are; the most memory first.
fn absent(alive: &AliveTensors, left: &[(u64, usize)]) -> Vec<TensorCount> {
    let kind = |at: usize| alive.tensors.get(at).map_or(0, |(_, kind)| *kind);
    let mut left: Vec<(usize, u64)> = left.iter().map(|(size, at)| (kind(*at), *size)).collect();
    left.sort_unstable();
    let same = left.chunk_by(|a, b| a == b);
    let mut all: Vec<TensorCount> = same
        .filter_map(|same| {
            let (kind, size) = *same.first()?;
            count(alive, kind, size, same.len())
        })
        .collect();
    all.sort_by_key(|found| Reverse(found.each * found.count));
    all
}

fn count(alive: &AliveTensors, kind: usize, size: u64, count: usize) -> Option<TensorCount> {
    Some(TensorCount {
        kind: alive.kinds.get(kind)?.clone(),
        count: count as u64,
        each: Bytes::new(size),
    })
}

/// Tensors of other sizes, by what they are; the most memory first.
fn resized(device: &Device, alive: &AliveTensors, pairs: &[(usize, usize)]) -> Vec<Resized> {
    let key = |(planned, held): &(usize, usize)| {
        let (size, kind) = alive.tensors.get(*planned).copied().unwrap_or_default();
        (kind, size.round_up(512).get(), bytes(device, *held))
    };
    let mut pairs = pairs.to_vec();
    pairs.sort_by_key(key);
    let same = pairs.chunk_by(|a, b| key(a) == key(b));
    let mut all: Vec<Resized> = same
        .filter_map(|same| {
            let first = same.first()?;
            let (kind, size, each) = key(first);
            Some(Resized {
                planned: count(alive, kind, size, same.len())?,
                each,
                stack: stack(device, first.1).to_vec(),
            })
        })
        .collect();
    all.sort_by_key(|found| Reverse(found.each * found.planned.count));
    all
}
