//! Which free block serves a request: the best fit of its pool.

use super::freelist::{Cursor, FreeList};
use super::{Allocator, Pool, SMALL, State, Stream};

impl Allocator {
    /// The number of a stream's pool: even for small blocks, odd for large ones.
    #[inline]
    pub(super) fn pool_for(&mut self, size: u64, stream: Stream) -> u16 {
        // Half the streams a `u16` can name are as many as the numbers of pools can hold.
        let pool = (stream & (u16::MAX >> 1)) * 2 + u16::from(size > SMALL);
        while self.pools.len() <= usize::from(pool) {
            self.pools.push(Pool {
                free: FreeList::new(),
                unmapped: Vec::new(),
            });
        }
        pool
    }

    /// The smallest free block that will do, out of its list.
    #[inline]
    pub(super) fn take_cached(&mut self, pool: u16, size: u64) -> Option<u32> {
        if self.collects {
            self.searches[usize::from(pool & 1)] += 1;
        }
        let list = &mut self.pools[usize::from(pool)].free;
        if !self.settings.expandable_segments && self.settings.max_split_size.is_none() {
            return list.take_at_least(size);
        }
        let mut at = list.at_least(size)?;
        let mut found = list.get(at);
        if self.growth(found.block) > 0 {
            at = self.least_room(pool, size)?;
            found = self.pools[usize::from(pool)].free.get(at);
        }
        if let Some(limit) = self.settings.max_split_size {
            let limit = limit.get();
            // Oversize blocks are kept for oversize requests, and those may not waste much of one.
            let rounding = self
                .settings
                .max_non_split_rounding
                .unwrap_or(self.settings.large_segment)
                .get();
            if (size < limit && found.size >= limit)
                || (size >= limit && found.size >= size.saturating_add(rounding))
            {
                return None;
            }
        }
        self.pools[usize::from(pool)].free.remove_at(at);
        Some(found.block)
    }

    /// What a block at the growing end of its segment can still gain.
    pub(super) fn growth(&self, block: u32) -> u64 {
        let next = self.blocks.get(self.blocks[block as usize].next as usize);
        next.map_or(0, |next| match next.state {
            State::Unmapped => next.size,
            _ => 0,
        })
    }

    /// The smallest of the free blocks that will do, where each counts as large as it can become.
    #[cold]
    fn least_room(&mut self, pool: u16, size: u64) -> Option<Cursor> {
        self.pools[usize::from(pool)].free.settle();
        let list = &self.pools[usize::from(pool)].free;
        let room = |at| {
            let entry = list.get(at);
            entry.size + self.growth(entry.block)
        };
        let mut at = list.at_least(size)?;
        while let Some(next) = list.next(at)
            && room(next) < room(at)
        {
            at = next;
        }
        Some(at)
    }
}
