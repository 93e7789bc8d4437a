//! Expandable segments: one range of addresses a pool, with memory mapped behind it page by page.

use super::{Allocator, Block, DriverCall, NONE, SMALL_SEGMENT, State};
use headroom_base::units::Bytes;

impl Allocator {
    /// A block of at least `size` made by mapping memory behind free addresses; it is in no list.
    /// A refusal half way leaves what was mapped as a free block.
    pub(super) fn expand(&mut self, pool: u16, size: u64) -> Option<u32> {
        let mut block = self.growing_block(pool, size)?;
        if self.blocks[block as usize].state == State::Unmapped {
            let first = self.blocks[block as usize].size.min(size);
            self.map(block, first)?;
        }
        while self.blocks[block as usize].size < size {
            let Block {
                size: has, next, ..
            } = self.blocks[block as usize];
            let more = (size - has).min(self.blocks.get(next as usize)?.size);
            self.map(next, more)?;
            block = next;
        }
        let found = self.blocks[block as usize];
        self.take_from_list(block, &found);
        Some(block)
    }

    /// The lowest unmapped addresses, with the free block before them, where there is room for `size`;
    /// else a new segment.
    fn growing_block(&mut self, pool: u16, size: u64) -> Option<u32> {
        let mut looked_at = 0;
        let mut usable = |block: u32| {
            looked_at += 1;
            self.blocks
                .get(block as usize)
                .filter(|block| matches!(block.state, State::Free | State::Unmapped))
        };
        let found = self.pools[usize::from(pool)]
            .unmapped
            .iter()
            .find_map(|&(_, unmapped)| {
                let before = self.blocks[unmapped as usize].previous;
                let start = usable(before).map_or(unmapped, |_| before);
                let mut room = 0;
                let mut at = start;
                while room < size
                    && let Some(block) = usable(at)
                {
                    room += block.size;
                    at = block.next;
                }
                (room >= size).then_some(start)
            });
        self.looked_at += looked_at;
        if found.is_some() {
            return found;
        }
        let page = self.page(pool);
        let total = self.card.total_bytes();
        let whole = total.saturating_add(total / 8);
        let whole = whole.checked_next_multiple_of(page)?.max(page);
        let number = self.reserve_addresses(whole)?;
        let segment = self.segments[number as usize];
        let block = self.new_block(Block {
            address: segment.address,
            size: segment.size,
            requested: 0,
            freed_at: 0,
            previous: NONE,
            next: NONE,
            segment: number,
            pool,
            state: State::Unmapped,
        });
        self.insert_unmapped(block);
        Some(block)
    }

    /// Maps whole pages behind the start of an unmapped block, which becomes free; `None` where memory ran out.
    fn map(&mut self, block: u32, size: u64) -> Option<()> {
        let before = self.blocks[block as usize];
        let mapped = size.next_multiple_of(self.page(before.pool));
        // The driver gives page after page; all of them or none are kept.
        if self.counters.reserved.current.get().saturating_add(mapped) > self.room {
            return None;
        }
        self.take_from_list(block, &before);
        if mapped < before.size {
            let rest = self.new_block(Block {
                address: before.address + mapped,
                size: before.size - mapped,
                previous: block,
                ..before
            });
            if before.next != NONE {
                self.blocks[before.next as usize].previous = rest;
            }
            self.blocks[block as usize].next = rest;
            self.insert_unmapped(rest);
        }
        let now = &mut self.blocks[block as usize];
        now.size = mapped;
        now.state = State::Free;
        let (previous, next) = (now.previous, now.next);
        self.merge_alike(block, previous);
        self.merge_alike(block, next);
        self.insert_free(block);
        self.counters.reserved.increase(mapped);
        if let Some(calls) = &mut self.calls {
            calls.push(DriverCall::Map {
                bytes: Bytes::new(mapped),
            });
        }
        Some(())
    }

    /// Unmaps the whole pages inside a free block; what is left of it at either end stays free.
    pub(super) fn unmap(&mut self, block: u32) {
        let before = self.blocks[block as usize];
        let page = self.page(before.pool);
        let base = self.segments[before.segment as usize].address;
        let start = base + (before.address - base).next_multiple_of(page);
        let end = base + (before.address + before.size - base) / page * page;
        if start >= end {
            return;
        }
        self.take_from_list(block, &before);
        let now = &mut self.blocks[block as usize];
        now.address = start;
        now.size = end - start;
        now.state = State::Unmapped;
        if start > before.address {
            let head = self.new_block(Block {
                size: start - before.address,
                next: block,
                ..before
            });
            if before.previous != NONE {
                self.blocks[before.previous as usize].next = head;
            }
            self.blocks[block as usize].previous = head;
            self.insert_free(head);
        }
        let tail_size = before.address + before.size - end;
        if tail_size > 0 {
            let tail = self.new_block(Block {
                address: end,
                size: tail_size,
                previous: block,
                ..before
            });
            if before.next != NONE {
                self.blocks[before.next as usize].previous = tail;
            }
            self.blocks[block as usize].next = tail;
            self.insert_free(tail);
        }
        let Block { previous, next, .. } = self.blocks[block as usize];
        self.merge_alike(block, previous);
        self.merge_alike(block, next);
        self.counters.reserved.decrease(end - start);
        if let Some(calls) = &mut self.calls {
            calls.push(DriverCall::Unmap {
                bytes: Bytes::new(end - start),
            });
        }
        let Block { previous, next, .. } = self.blocks[block as usize];
        if previous == NONE && next == NONE {
            // Nothing of the segment is mapped: its addresses go back too.
            self.discard(block);
        } else {
            self.insert_unmapped(block);
        }
    }

    fn insert_unmapped(&mut self, block: u32) {
        let Block { address, pool, .. } = self.blocks[block as usize];
        let list = &mut self.pools[usize::from(pool)].unmapped;
        let at = list.partition_point(|entry| entry.0 < address);
        list.insert(at, (address, block));
    }

    fn page(&self, pool: u16) -> u64 {
        if pool & 1 == 0 {
            SMALL_SEGMENT
        } else {
            self.settings.large_segment.get()
        }
    }
}
