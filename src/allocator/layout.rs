//! What of an allocator decides all that it will do: its blocks and where they lie. A stretch of requests that leaves the layout
//! as it found it does the same each time, so its repeats need no replay.

use std::ops::Range;

use super::{Allocator, NONE, State};

/// Allocators of one card and with the same settings do the same with the same requests where their layouts are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// In the order of their addresses.
    blocks: Vec<Place>,
    next_address: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    address: u64,
    size: u64,
    pool: u16,
    state: State,
    /// It begins a segment.
    first: bool,
}

impl Allocator {
    /// The layout; none of so many blocks that comparing them is work too, and none where more than blocks decides.
    fn layout(&self) -> Option<Layout> {
        const MOST: usize = 1 << 16;
        if self.collects || !self.pending.is_empty() || self.blocks.len() > MOST {
            return None;
        }
        let there = self
            .blocks
            .iter()
            .filter(|block| block.state != State::Gone);
        let mut blocks: Vec<Place> = there
            .map(|block| Place {
                address: block.address,
                size: block.size,
                pool: block.pool,
                state: block.state,
                first: block.previous == NONE,
            })
            .collect();
        blocks.sort_unstable();
        Some(Layout {
            blocks,
            next_address: self.next_address,
        })
    }
}

/// Stretches of a replay, by the positions of its requests or of whatever else it counts in, that repeat what lies just before
/// them and is as long: each frees exactly what it allocates. In the order in which they begin; of those that begin together the
/// longest first.
#[derive(Debug)]
pub struct Repeats<'a> {
    stretches: &'a [Range<usize>],
    /// Layouts at the beginnings of what is repeated.
    before: Vec<(usize, Layout)>,
}

fn original(stretch: &Range<usize>) -> usize {
    stretch.start.saturating_sub(stretch.len())
}

impl<'a> Repeats<'a> {
    pub const fn new(stretches: &'a [Range<usize>]) -> Self {
        Self {
            stretches,
            before: Vec::new(),
        }
    }

    /// The replay has come to this position: where it may go on, if what follows would leave everything as it is.
    pub fn skip(&mut self, at: usize, allocator: &Allocator) -> Option<usize> {
        let originates = self.stretches.iter().any(|stretch| original(stretch) == at);
        let begins = self.stretches.iter().any(|stretch| stretch.start == at);
        if !originates && !begins {
            return None;
        }
        let now = allocator.layout()?;
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
        if originates {
            self.before.push((at, now));
        }
        to
    }

    /// The next position at which to ask.
    pub fn next_border(&self, after: usize) -> usize {
        let borders = self
            .stretches
            .iter()
            .flat_map(|stretch| [original(stretch), stretch.start]);
        let later = borders.filter(|border| *border > after);
        later.min().unwrap_or(usize::MAX)
    }
}
