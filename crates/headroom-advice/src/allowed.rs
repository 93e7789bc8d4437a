//! Which moves may be taken: not those that change what a person wants to keep, nor those that a program cannot express.

use super::moves::{MOVES, Move};

/// A set of moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed(u64);

const _: () = assert!(MOVES.len() <= 64, "a move for each bit");

impl Allowed {
    pub const ALL: Self = Self(u64::MAX);

    /// The moves for which this holds.
    pub fn only(holds: impl Fn(&Move) -> bool) -> Self {
        let bit = |(at, known): (usize, &Move)| u64::from(holds(known)) << at;
        Self(MOVES.iter().enumerate().map(bit).sum())
    }

    pub fn has(self, wanted: &Move) -> bool {
        let place = MOVES.iter().position(|known| known.id == wanted.id);
        place.is_some_and(|at| self.0 >> at & 1 == 1)
    }
}

impl Default for Allowed {
    fn default() -> Self {
        Self::ALL
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cost, Goal, Group, Search, ladder};
    use super::*;
    use headroom_scenario::{Scenario, settings};

    #[test]
    fn a_ladder_and_a_search_take_only_what_is_allowed() {
        let mut scenario = Scenario::default();
        for (name, value) in [
            ("dims", "layers=2,hidden=128,heads=2,vocab=8000"),
            ("mb", "1"),
            ("mem", "500"),
        ] {
            settings::set(&mut scenario, name, value).unwrap();
        }
        let no_results = Allowed::only(|known| known.cost < Cost::Results);
        let no_checkpoints = Allowed::only(|known| known.group != Group::Checkpointing);
        for allowed in [Allowed::ALL, no_results, no_checkpoints] {
            let goal = Goal::default().within(allowed);
            let taken = ladder(&scenario, goal).unwrap();
            let ids = taken.steps.iter().map(|step| step.id);
            let known = ids.filter_map(super::super::find_move);
            assert!(known.clone().all(|known| allowed.has(known)));
            assert!(known.count() > 0);
        }
        scenario.hardware.memory_mib = 0;
        let mut search =
            Search::new(&scenario, Goal::default().within(no_results), Cost::Results).unwrap();
        while !search.step(1000).unwrap().done {}
        let found = search.finish().unwrap();
        assert!(!found.front.is_empty());
        let mut moves = found.front.iter().flat_map(|point| &point.moves);
        assert!(moves.all(|known| no_results.has(known)));
    }
}
