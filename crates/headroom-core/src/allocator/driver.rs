//! Memory from the driver, where no cached block serves a request.

use super::freelist::{ADDRESS_LIMIT, SIZE_LIMIT};
use super::sizes::ROUND_LARGE;
use super::{Allocator, Block, DriverCall, NONE, Oom, Segment, State};
use headroom_base::units::Bytes;

impl Allocator {
    /// A block from the driver, giving back cached memory where that helps.
    #[cold]
    pub(super) fn take_new(&mut self, pool: u16, size: u64) -> Result<u32, Oom> {
        if self.collects {
            self.collect_garbage();
        }
        let segment = self.settings.segment_size(size);
        // A replay that is taken up in between has done this already.
        if !std::mem::take(&mut self.emptied) {
            if let Some(block) = self.ask_driver(pool, size, segment) {
                return Ok(block);
            }
            if self.release_oversize(pool, size)
                && let Some(block) = self.ask_driver(pool, size, segment)
            {
                return Ok(block);
            }
            self.empty_cache();
            self.counters.retries += 1;
        }
        self.emptied = true;
        let block = self.ask_driver(pool, size, segment);
        self.emptied = false;
        if let Some(block) = block {
            return Ok(block);
        }
        self.counters.ooms += 1;
        Err(Oom {
            tried: Bytes::new(segment),
            rounded: Bytes::new(size),
            card: self.card,
            free: self.device_free(),
            allowed: self.allowed.map(Bytes::new),
            allocated: self.counters.allocated.current,
            reserved: self.counters.reserved.current,
        })
    }

    /// One attempt to get a block from the driver; it is in no list.
    fn ask_driver(&mut self, pool: u16, size: u64, segment: u64) -> Option<u32> {
        let wanted = self.counters.reserved.current.get().saturating_add(segment);
        if size >= SIZE_LIMIT || self.allowed.is_some_and(|allowed| wanted > allowed) {
            return None;
        }
        if self.settings.expandable_segments {
            return self.expand(pool, size);
        }
        let gives = wanted <= self.room;
        if self.forks.is_some() {
            self.note_fork(wanted, gives);
        }
        if !gives {
            return None;
        }
        let number = self.reserve_addresses(segment)?;
        self.counters.reserved.increase(segment);
        self.counters.segments += 1;
        if let Some(calls) = &mut self.calls {
            calls.push(DriverCall::Malloc {
                segment: number,
                bytes: Bytes::new(segment),
            });
        }
        Some(self.new_block(Block {
            address: self.segments[number as usize].address,
            size: segment,
            requested: 0,
            freed_at: 0,
            previous: NONE,
            next: NONE,
            segment: number,
            pool,
            state: State::Free,
        }))
    }

    /// A fresh range of addresses above all others.
    pub(super) fn reserve_addresses(&mut self, size: u64) -> Option<u32> {
        let address = self.next_address;
        self.next_address = address
            .checked_add(size)?
            .checked_next_multiple_of(ROUND_LARGE)
            .filter(|end| *end <= ADDRESS_LIMIT)?;
        self.segments.push(Segment { address, size });
        Some(self.segments.len() as u32 - 1)
    }
}
