//! Pieces of segments: cut to measure when they are handed out, merged with free neighbours when they come back.

use super::freelist::Entry;
use super::{Allocator, Block, MIN_BLOCK, NONE, SMALL, State};

impl Allocator {
    /// Cuts what is not needed off the block and marks it allocated.
    #[inline]
    pub(super) fn hand_out(&mut self, found: u32, size: u64, requested: u64) -> u32 {
        let block = self.blocks[found as usize];
        let was_split = block.previous != NONE || block.next != NONE;
        let counts_splits = !self.settings.expandable_segments;
        let remaining = block.size - size;
        let split = if block.pool & 1 == 0 || self.settings.expandable_segments {
            remaining >= MIN_BLOCK
        } else {
            let splittable = self
                .settings
                .max_split_size
                .is_none_or(|limit| size < limit.get());
            splittable && remaining > SMALL
        };
        let handed_out = if split {
            let front = self.new_block(Block {
                size,
                requested,
                next: found,
                state: State::Allocated,
                ..block
            });
            if block.previous != NONE {
                self.blocks[block.previous as usize].next = front;
            }
            let rest = &mut self.blocks[found as usize];
            rest.previous = front;
            rest.address += size;
            rest.size = remaining;
            rest.state = State::Free;
            self.insert_free(found);
            if counts_splits {
                if was_split {
                    self.counters.inactive_split.take(size);
                } else {
                    self.counters.inactive_split.add(remaining);
                }
            }
            front
        } else {
            if was_split && counts_splits {
                self.counters.inactive_split.take(block.size);
            }
            let whole = &mut self.blocks[found as usize];
            whole.state = State::Allocated;
            whole.requested = requested;
            found
        };
        let size = if split { size } else { block.size };
        self.counters.allocated.add(size);
        self.counters.active.add(size);
        self.counters.requested.add(requested);
        handed_out
    }

    /// Returns an allocated or pending block to its pool, merged with its free neighbours.
    #[inline]
    pub(super) fn release_block(&mut self, block: u32) {
        let Block {
            size,
            requested,
            previous,
            next,
            ..
        } = self.blocks[block as usize];
        self.blocks[block as usize].state = State::Free;
        let merged = self.merge(block, previous) + self.merge(block, next);
        self.insert_free(block);
        if !self.settings.expandable_segments {
            let now = &self.blocks[block as usize];
            let is_split = now.previous != NONE || now.next != NONE;
            let after = if is_split { now.size } else { 0 };
            if after >= merged {
                self.counters.inactive_split.add(after - merged);
            } else {
                self.counters.inactive_split.take(merged - after);
            }
        }
        self.counters.active.take(size);
        self.counters.requested.take(requested);
    }

    /// Joins `other`, a neighbour, to `block` where both are free or both unmapped, and says how much that added.
    /// `block` is in no list, and `other` leaves its own.
    #[inline]
    pub(super) fn merge(&mut self, block: u32, other: u32) -> u64 {
        if other == NONE {
            return 0;
        }
        // Most neighbours are in use: those are left without a copy.
        if self.blocks[other as usize].state != self.blocks[block as usize].state {
            return 0;
        }
        let gone = self.blocks[other as usize];
        let into = &mut self.blocks[block as usize];
        into.size += gone.size;
        if into.previous == other {
            into.address = gone.address;
            into.previous = gone.previous;
            if gone.previous != NONE {
                self.blocks[gone.previous as usize].next = block;
            }
        } else {
            into.next = gone.next;
            if gone.next != NONE {
                self.blocks[gone.next as usize].previous = block;
            }
        }
        self.take_from_list(&gone);
        self.spare.push(other);
        gone.size
    }

    pub(super) fn insert_free(&mut self, block: u32) {
        let it = &mut self.blocks[block as usize];
        it.freed_at = self.searches[usize::from(it.pool & 1)];
        self.pools[usize::from(it.pool)].free.insert(Entry {
            size: it.size,
            address: it.address,
            block,
        });
    }

    pub(super) fn take_from_list(&mut self, block: &Block) {
        let pool = &mut self.pools[usize::from(block.pool)];
        if block.state == State::Unmapped {
            pool.unmapped.retain(|it| it.0 != block.address);
        } else {
            pool.free.remove(block.size, block.address);
        }
    }

    #[inline]
    pub(super) fn new_block(&mut self, block: Block) -> u32 {
        if let Some(slot) = self.spare.pop() {
            self.blocks[slot as usize] = block;
            return slot;
        }
        self.blocks.push(block);
        self.blocks.len() as u32 - 1
    }
}
