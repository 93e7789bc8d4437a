//! What a search looks through: moves along axes, micro-batches, and the optimizer's turns.

use super::super::allowed::Allowed;
use super::super::micro::{all, with_batch};
use super::super::moves::{Cost, Group, MOVES, Move};
use headroom_catalog::Os;
use headroom_scenario::Scenario;

/// A combination: a place in each axis, 0 being "as it is", and a micro-batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub network: Vec<usize>,
    pub micro_batch: u64,
    pub turn: usize,
    pub in_backward: bool,
}

/// The combinations there are.
#[derive(Debug)]
pub struct Space {
    pub base: Scenario,
    /// From the largest to the smallest.
    pub batches: Vec<u64>,
    /// What changes the passes through the network.
    pub axes: Vec<Vec<&'static Move>>,
    /// Sets of moves that change the optimizer's turn alone; the first is empty.
    pub turns: Vec<Vec<&'static Move>>,
    /// The move that steps each parameter inside backward, where it may be taken.
    pub in_backward: Option<&'static Move>,
}

impl Space {
    pub fn new(scenario: &Scenario, most: Cost, allowed: Allowed) -> Self {
        let mut base = scenario.clone();
        // An option like others.
        base.training.optimizer_in_backward = false;
        // Its effect is on what is reserved, which a search over peaks cannot tell: it costs nothing, so it is on.
        base.runtime.expandable_segments |= base.hardware.os == Os::Linux;
        let batches = all(&base);
        let largest = batches
            .first()
            .map_or(base.clone(), |size| with_batch(&base, *size));
        let affordable: Vec<&'static Move> = MOVES
            .iter()
            .filter(|mv| mv.cost <= most && mv.group != Group::Allocator && allowed.has(mv))
            .collect();
        let mut starts = vec![base.clone(), largest];
        starts.extend(affordable.iter().filter_map(|mv| mv.on(&base)));
        let possible = |mv: &&&Move| starts.iter().any(|start| mv.on(start).is_some());
        let of = |group: Group| -> Vec<&'static Move> {
            let of_group = affordable.iter().filter(|mv| mv.group == group);
            of_group.filter(|mv| possible(mv)).copied().collect()
        };
        let mut axes = Vec::new();
        let mut turns: Vec<Vec<&'static Move>> = vec![Vec::new()];
        for group in Group::ALL {
            let moves = of(group);
            if group == Group::Stepping || moves.is_empty() {
                continue;
            }
            if group.is_of_the_turn() {
                let with: Vec<_> = turns
                    .iter()
                    .flat_map(|set| moves.iter().map(move |mv| [&set[..], &[*mv]].concat()))
                    .collect();
                turns.extend(with);
            } else {
                axes.push(moves);
            }
        }
        Self {
            base,
            batches,
            axes,
            turns,
            in_backward: of(Group::Stepping).first().copied(),
        }
    }

    pub fn size(&self) -> u64 {
        self.below(0)
    }

    pub fn of_a_network(&self) -> u64 {
        self.of_a_batch().saturating_mul(self.batches.len() as u64)
    }

    pub fn of_a_batch(&self) -> u64 {
        self.turns.len() as u64 * (1 + u64::from(self.in_backward.is_some()))
    }

    /// Combinations that share their choices along this many axes.
    pub fn below(&self, axes: usize) -> u64 {
        let rest = self.axes.iter().skip(axes);
        rest.fold(self.of_a_network(), |all, axis| {
            all.saturating_mul(axis.len() as u64 + 1)
        })
    }

    /// The network with the batch at this place; `None` where its moves are not possible together.
    pub fn network(&self, network: &[usize], batch: usize) -> Option<Scenario> {
        let start = with_batch(&self.base, *self.batches.get(batch)?);
        self.moves(network)
            .try_fold(start, |now, change| change.on(&now))
    }

    fn moves<'a>(&'a self, network: &'a [usize]) -> impl Iterator<Item = &'static Move> + 'a {
        let chosen = network.iter().zip(&self.axes);
        chosen.filter_map(|(place, axis)| axis.get(place.checked_sub(1)?).copied())
    }

    /// A combination's scenario and its moves.
    pub fn scenario(&self, choice: &Choice) -> Option<(Scenario, Vec<&'static Move>)> {
        let mut moves: Vec<&'static Move> = self.moves(&choice.network).collect();
        moves.extend(self.turns.get(choice.turn)?);
        moves.extend(self.in_backward.filter(|_| choice.in_backward));
        let start = with_batch(&self.base, choice.micro_batch);
        let scenario = moves
            .iter()
            .try_fold(start, |now, change| change.on(&now))?;
        Some((scenario, moves))
    }
}
