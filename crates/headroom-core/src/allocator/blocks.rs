//! Blocks: split when they are handed out, merged with free neighbours when they are freed.

use super::freelist::Entry;
use super::{Allocator, Block, MIN_BLOCK, NONE, SMALL, State};
use headroom_base::list::push;

impl Allocator {
    /// Splits off what is not needed of a block and marks it allocated.
    #[inline]
    pub(super) fn hand_out(&mut self, found: u32, size: u64, requested: u64) -> u32 {
        let block = self.blocks[found as usize];
        let was_split = block.previous != NONE || block.next != NONE;
        let counts_splits = !self.settings.expandable_segments;
        let remaining = block.size - size;
        let split = self.splits(block.pool, size, remaining);
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
                    self.counters.inactive_split.decrease(size);
                } else {
                    self.counters.inactive_split.increase(remaining);
                }
            }
            front
        } else {
            if was_split && counts_splits {
                self.counters.inactive_split.decrease(block.size);
            }
            let whole = &mut self.blocks[found as usize];
            whole.state = State::Allocated;
            whole.requested = requested;
            found
        };
        let size = if split { size } else { block.size };
        self.counters.allocated.increase(size);
        self.counters.active.increase(size);
        self.counters.requested.increase(requested);
        handed_out
    }

    /// `should_split`: whether the rest of a block becomes a block of its own.
    #[inline]
    fn splits(&self, pool: u16, size: u64, remaining: u64) -> bool {
        if pool & 1 == 0 || self.settings.expandable_segments {
            return remaining >= MIN_BLOCK;
        }
        let limit = self.settings.max_split_size;
        remaining > SMALL && limit.is_none_or(|limit| size < limit.get())
    }

    /// The size of the block that serves a request, where allocating and freeing it changes nothing but peaks: where a
    /// cached block serves it.
    pub(super) fn size_if_transient(&mut self, requested: u64) -> Option<u64> {
        let ages = self.collects || !self.pending.is_empty();
        if requested == 0 || ages || self.settings.max_split_size.is_some() {
            return None;
        }
        let size = self.settings.round(requested);
        let pool = self.pool_for(size, 0);
        let list = &self.pools[usize::from(pool)].free;
        let found = list.get(list.at_least(size)?);
        if self.growth(found.block) > 0 {
            return None;
        }
        let remaining = found.size - size;
        if !self.splits(pool, size, remaining) {
            return Some(found.size);
        }
        let block = &self.blocks[found.block as usize];
        if block.previous == NONE && block.next == NONE && !self.settings.expandable_segments {
            self.counters.inactive_split.increase(remaining);
            self.counters.inactive_split.decrease(remaining);
        }
        Some(size)
    }

    /// Returns an allocated or pending block to its pool, merged with its free neighbours.
    #[inline]
    pub(super) fn release_block(&mut self, block: u32) {
        let Some(&Block {
            size,
            requested,
            previous,
            next,
            ..
        }) = self.blocks.get(block as usize)
        else {
            return;
        };
        let mut merged = 0;
        if self.is_free(previous) {
            merged += self.merge(block, previous);
        }
        if self.is_free(next) {
            merged += self.merge(block, next);
        }
        let now = &mut self.blocks[block as usize];
        now.state = State::Free;
        let is_split = now.previous != NONE || now.next != NONE;
        let after = if is_split { now.size } else { 0 };
        self.insert_free(block);
        if !self.settings.expandable_segments {
            if after >= merged {
                self.counters.inactive_split.increase(after - merged);
            } else {
                self.counters.inactive_split.decrease(merged - after);
            }
        }
        self.counters.active.decrease(size);
        self.counters.requested.decrease(requested);
    }

    #[inline]
    fn is_free(&self, block: u32) -> bool {
        let block = self.blocks.get(block as usize);
        block.is_some_and(|block| block.state == State::Free)
    }

    /// Joins `other` to `block` where both are free or both unmapped.
    pub(super) fn merge_alike(&mut self, block: u32, other: u32) {
        let other_state = self.blocks.get(other as usize).map(|block| block.state);
        if other_state == Some(self.blocks[block as usize].state) {
            self.merge(block, other);
        }
    }

    /// Joins `other`, a neighbour in the same state, to `block`, and says how much that added.
    /// `block` is in no list, and `other` leaves its own.
    #[inline(never)]
    fn merge(&mut self, block: u32, other: u32) -> u64 {
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
        self.take_from_list(other, &gone);
        self.discard(other);
        gone.size
    }

    #[inline]
    pub(super) fn insert_free(&mut self, block: u32) {
        let freed = &mut self.blocks[block as usize];
        if self.collects {
            freed.freed_at = self.searches[usize::from(freed.pool & 1)];
        }
        self.pools[usize::from(freed.pool)].free.insert(Entry {
            size: freed.size,
            address: freed.address,
            block,
        });
    }

    #[inline]
    pub(super) fn take_from_list(&mut self, number: u32, block: &Block) {
        let pool = &mut self.pools[usize::from(block.pool)];
        if block.state == State::Unmapped {
            pool.unmapped.retain(|entry| entry.0 != block.address);
        } else {
            pool.free.remove(Entry {
                size: block.size,
                address: block.address,
                block: number,
            });
        }
    }

    /// Its place is free for another block.
    #[inline]
    pub(super) fn discard(&mut self, block: u32) {
        self.blocks[block as usize].state = State::Gone;
        self.unused.push(block);
    }

    #[inline]
    pub(super) fn new_block(&mut self, block: Block) -> u32 {
        if let Some(slot) = self.unused.pop() {
            self.blocks[slot as usize] = block;
            return slot;
        }
        push(&mut self.blocks, block);
        self.blocks.len() as u32 - 1
    }
}
