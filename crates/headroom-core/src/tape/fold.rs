//! Folding: equal layers in a row are run once, and the trace records how many times their events happen.
//!
//! A storage that a repeat leaves allocated has one copy per repeat; what a repeat passes on to the next (the residual
//! stream, in backward its gradient) exists once. The first layer of a row is run separately, because its input is held
//! elsewhere too; so is the last if its incoming gradient differs from the one it passes on. If a group does not come
//! out even, the trace is marked broken and the run is repeated with less folding.

use std::num::NonZeroU32;
use std::rc::Rc;

use smallvec::SmallVec;

use super::core::Node;
pub(crate) use super::row::Fold;
use super::row::{Open, Position};
use super::trace::Group;
use super::{Tape, Tensor};

/// The border between a folded row and its neighbours, as the engine sees it.
#[derive(Default)]
pub(in crate::tape) struct Border {
    /// Nodes outside the row that its gradients flow to.
    pub touched: Vec<Rc<Node>>,
    /// The gradients that had arrived when the row was entered.
    arrived: SmallVec<[Flowing; 2]>,
}

/// What decides whether a gradient is accumulated in place or out of place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Flowing {
    bytes: u64,
    alone: bool,
}

impl Flowing {
    fn at(node: &Node) -> SmallVec<[(u32, Self); 2]> {
        let of = |tensor: &Tensor| {
            let alone = tensor.is_sole_owner() && tensor.is_dense();
            let bytes = tensor.bytes();
            tensor.storage_id().map(|id| (id, Self { bytes, alone }))
        };
        node.buffer
            .borrow()
            .iter()
            .flatten()
            .filter_map(of)
            .collect()
    }
}

impl Tape {
    /// Runs `body` once for `times` equal layers (or periods of layers), each of which takes the state its predecessor returned.
    pub fn folded(
        &self,
        times: u32,
        period: u32,
        state: Vec<Tensor>,
        body: impl FnOnce(Vec<Tensor>) -> Vec<Tensor>,
    ) -> Vec<Tensor> {
        let ids = |state: &[Tensor]| -> Vec<Option<u32>> {
            state.iter().map(Tensor::storage_id).collect()
        };
        let id = NonZeroU32::MIN.saturating_add(self.0.trace.borrow().storages.len() as u32);
        self.open(Fold { id, times, period });
        let before = ids(&state);
        let state = body(state);
        let after = ids(&state);
        let passed: Vec<(u32, u32)> = before
            .iter()
            .zip(&after)
            .filter_map(|(a, b)| Some((*a.as_ref()?, *b.as_ref()?)))
            .filter(|(a, b)| a != b)
            .collect();
        self.close(
            passed.iter().map(|(_, out)| *out).collect(),
            Some(passed),
            false,
        );
        state
    }

    /// Runs `body` for each of what layers have; what those of one folded row have forms a group. `reversed` says that the last
    /// layer comes first.
    pub fn in_rows<T>(
        &self,
        items: impl IntoIterator<Item = T>,
        row: impl Fn(&T) -> Option<Fold>,
        reversed: bool,
        mut body: impl FnMut(T),
    ) {
        for item in items {
            let row = row(&item);
            if self.fold() != row {
                self.leave_row(reversed);
                if let Some(row) = row {
                    self.open(row);
                }
            }
            body(item);
        }
        self.leave_row(reversed);
    }

    fn leave_row(&self, reversed: bool) {
        if self.fold().is_some() {
            self.close(Vec::new(), None, reversed);
        }
    }

    /// The row of equal layers that is being recorded, if any.
    pub fn fold(&self) -> Option<Fold> {
        self.0.open.get().fold()
    }

    /// The engine enters a node: groups open and close with the row the node belongs to.
    pub(in crate::tape) fn enter_fold(&self, node: &Node, border: &mut Border) {
        if self.0.open.get().fold() == node.fold {
            return;
        }
        self.leave_fold(border);
        if let Some(fold) = node.fold {
            border.arrived = Flowing::at(node)
                .into_iter()
                .map(|(_, gradient)| gradient)
                .collect();
            self.open(fold);
        }
    }

    /// The engine leaves a row, if it is in one: the gradients waiting beyond its border are what it passes on.
    pub(in crate::tape) fn leave_fold(&self, border: &mut Border) {
        if self.0.open.get().fold().is_none() {
            return;
        }
        let flowing: SmallVec<[(u32, Flowing); 4]> = border
            .touched
            .drain(..)
            .flat_map(|node| Flowing::at(&node))
            .collect();
        // If a repeat receives something other than what it passes on, the repeats are not equal.
        let alike = border
            .arrived
            .drain(..)
            .all(|arrived| flowing.iter().any(|(_, passed)| *passed == arrived));
        if !alike {
            self.break_folds();
        }
        self.close(flowing.into_iter().map(|(id, _)| id).collect(), None, true);
    }

    /// Marks the trace as broken: repeats turned out not to be equal.
    pub fn break_folds(&self) {
        self.0.trace.borrow_mut().broken = true;
    }

    pub(in crate::tape) fn open(&self, fold: Fold) {
        self.0.note_relays();
        let trace = self.0.trace.borrow();
        let mark = Position {
            fold,
            event: trace.events.len(),
            setup: trace.setup.len(),
            storage: trace.storages.len(),
            scope: trace.scopes.len(),
        };
        self.0.open.set(Open(Some(mark)));
    }

    /// Closes the group: what it allocated and left alive exists `times` times, except for what it passes on.
    pub(in crate::tape) fn close(
        &self,
        passed_on: Vec<u32>,
        carries: Option<Vec<(u32, u32)>>,
        reversed: bool,
    ) {
        let Some(mark) = self.0.open.replace(Open::default()).0 else {
            return;
        };
        let times = mark.fold.times;
        let relayed = self.0.relayed();
        let mut trace = self.0.trace.borrow_mut();
        let trace = &mut *trace;
        let setup_end = trace.setup.len();
        if setup_end > mark.setup {
            trace.setup_groups.push(Group {
                start: mark.setup,
                end: setup_end,
                times,
                carries: Vec::new(),
                reversed: false,
            });
        }
        let end = trace.events.len();
        let made = trace.storages.len().saturating_sub(mark.storage);
        let mut alive = vec![false; made];
        let mut received: Vec<u32> = Vec::new();
        for event in trace
            .setup
            .iter()
            .skip(mark.setup)
            .chain(trace.events.iter().skip(mark.event))
        {
            match (event.storage() as usize).checked_sub(mark.storage) {
                Some(place) if place < made => alive[place] = !event.is_free(),
                _ => received.push(event.storage()),
            }
        }
        // Freed storages from outside the group that have a single copy were passed in by the neighbour.
        received.retain(|storage| {
            trace
                .storages
                .get(*storage as usize)
                .is_some_and(|storage| storage.copies == 1)
        });
        trace.broken |= relayed.is_none();
        let relayed = relayed.unwrap_or_default();
        received.retain(|storage| relayed.iter().all(|(before, _)| before != storage));
        let mut passed_on: Vec<u32> = passed_on
            .into_iter()
            .filter(|storage| *storage as usize >= mark.storage)
            .collect();
        passed_on.dedup();
        let mut carries = match carries {
            Some(carries) => {
                for (storage, _) in &carries {
                    // Held by every repeat, unless it was freed.
                    if let Some(entry) = trace
                        .storages
                        .get_mut(*storage as usize)
                        .filter(|_| !received.contains(storage))
                    {
                        entry.copies = times;
                        entry.carried = true;
                    }
                }
                received.retain(|storage| !carries.iter().any(|(carried, _)| carried == storage));
                carries
            }
            None => {
                // Its partner: for a gradient the one that flows on, for a loop variable the last of its kind still alive.
                let kind = |storage: u32| {
                    trace
                        .storages
                        .get(storage as usize)
                        .map(|entry| (entry.bytes, trace.source(entry).op))
                };
                let size = |storage: u32| kind(storage).map(|(bytes, _)| bytes);
                let mut carries: Vec<(u32, u32)> = Vec::new();
                received.retain(|&storage| {
                    let flowing = passed_on.iter().position(|&out| size(out) == size(storage));
                    let partner = flowing.map(|at| passed_on.remove(at)).or_else(|| {
                        let mut made = (0..made)
                            .rev()
                            .filter(|&i| !reversed && alive[i])
                            .map(|i| (mark.storage + i) as u32);
                        made.find(|&out| {
                            kind(out) == kind(storage)
                                && relayed.iter().all(|(_, taken)| *taken != out)
                                && carries.iter().all(|(_, taken)| *taken != out)
                        })
                    });
                    carries.extend(partner.map(|out| (storage, out)));
                    partner.is_none()
                });
                trace.broken |= !passed_on.is_empty();
                carries
            }
        };
        trace.broken |= !received.is_empty();
        carries.extend(relayed);
        for (place, alive) in alive.into_iter().enumerate() {
            let storage = (mark.storage + place) as u32;
            if alive
                && !carries.iter().any(|(_, out)| *out == storage)
                && let Some(entry) = trace.storages.get_mut(storage as usize)
            {
                entry.copies = times;
            }
        }
        if end > mark.event {
            trace.groups.push(Group {
                start: mark.event,
                end,
                times,
                carries,
                reversed,
            });
        }
    }
}
