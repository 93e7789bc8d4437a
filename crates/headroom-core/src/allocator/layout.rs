//! The allocator state that determines its future behaviour: blocks and their order. A run of requests that leaves this layout
//! unchanged does the same each time, so its repeats need no replay.

use std::ops::Range;
use std::rc::Rc;

use super::{Allocator, NONE, State};

/// With equal layouts, settings and cards, allocators serve equal requests equally. Addresses do not matter, only their order: of
/// blocks of one size the lowest is taken, and a new segment is above all others.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Layout {
    /// In the order of their addresses; shared, as replays that part keep the same.
    blocks: Rc<[Place]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    size: u64,
    pool: u16,
    state: State,
    /// It begins a segment.
    first: bool,
}

impl Allocator {
    /// The layout; `None` if comparing this many blocks would cost too much, or if more than the blocks matters.
    fn layout(&self) -> Option<Layout> {
        const MOST: usize = 1 << 16;
        if self.collects || !self.pending.is_empty() || self.blocks.len() > MOST {
            return None;
        }
        let mut firsts: Vec<(u64, u32)> = (0..)
            .zip(&self.blocks)
            .filter(|(_, block)| block.state != State::Gone && block.previous == NONE)
            .map(|(number, block)| (block.address, number))
            .collect();
        firsts.sort_unstable();
        let mut blocks = Vec::with_capacity(self.blocks.len() - self.unused.len());
        for (_, first) in firsts {
            let mut at = first;
            while let Some(block) = self.blocks.get(at as usize) {
                blocks.push(Place {
                    size: block.size,
                    pool: block.pool,
                    state: block.state,
                    first: at == first,
                });
                at = block.next;
            }
        }
        let blocks = blocks.into();
        Some(Layout { blocks })
    }
}

/// Ranges of a replay, by the positions of its requests (or another count), that repeat the range just before
/// them and is as long: each frees exactly what it allocates. In the order in which they begin; of those that begin together the
/// longest first.
#[derive(Clone, Debug)]
pub(crate) struct Repeats<'a> {
    stretches: &'a [Range<usize>],
    /// Layouts at the beginnings of what is repeated.
    before: Vec<(usize, Layout)>,
    /// The layout at the end of what was left out.
    known: Option<(usize, Layout)>,
}

fn original(stretch: &Range<usize>) -> usize {
    stretch.start.saturating_sub(stretch.len())
}

impl<'a> Repeats<'a> {
    pub(crate) const fn new(stretches: &'a [Range<usize>]) -> Self {
        Self {
            stretches,
            before: Vec::new(),
            known: None,
        }
    }

    /// Where the replay may continue from this position, if what follows would leave everything unchanged.
    pub(crate) fn skip(&mut self, at: usize, allocator: &Allocator) -> Option<usize> {
        let originates = self.stretches.iter().any(|stretch| original(stretch) == at);
        let begins = self.stretches.iter().any(|stretch| stretch.start == at);
        if !originates && !begins {
            return None;
        }
        let known = self.known.take().filter(|(place, _)| *place == at);
        let now = match known {
            Some((_, now)) => now,
            None => allocator.layout()?,
        };
        let mut repeated = self.stretches.iter().filter(|stretch| stretch.start == at);
        let to = repeated.find(|stretch| {
            let was = self
                .before
                .iter()
                .find(|(place, _)| *place == original(stretch));
            was.is_some_and(|(_, layout)| *layout == now)
        });
        let to = to.map(|stretch| stretch.end);
        let stretches = self.stretches;
        self.before.retain(|(place, _)| {
            let mut later = stretches.iter().filter(|stretch| stretch.start > at);
            later.any(|stretch| original(stretch) == *place)
        });
        if let Some(to) = to {
            self.known = Some((to, now.clone()));
        }
        if originates {
            self.before.push((at, now));
        }
        to
    }

    /// The next position at which to ask.
    pub(crate) fn next_border(&self, after: usize) -> usize {
        let borders = self
            .stretches
            .iter()
            .flat_map(|stretch| [original(stretch), stretch.start]);
        let later = borders.filter(|border| *border > after);
        later.min().unwrap_or(usize::MAX)
    }
}
