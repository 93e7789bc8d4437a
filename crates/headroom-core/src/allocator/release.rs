//! How cached memory returns to the driver: `empty_cache`, the garbage collector, oversize blocks, late frees.

use super::{Allocator, Block, DriverCall, NONE};
use headroom_base::units::Bytes;

impl Allocator {
    /// As `torch.cuda.empty_cache`: every segment without a block in use is freed, and every whole page of an
    /// expandable segment.
    pub fn empty_cache(&mut self) {
        self.release_pending();
        for parity in [1, 0] {
            for pool in (parity..self.pools.len()).step_by(2) {
                self.release_pool(pool);
            }
        }
    }

    /// The blocks other streams held are free now.
    pub(super) fn release_pending(&mut self) {
        while let Some(block) = self.pending.pop() {
            self.release_block(block);
        }
    }

    pub(super) fn release_pool(&mut self, pool: usize) {
        let free: Vec<u32> = self.pools[pool]
            .free
            .iter()
            .map(|entry| entry.block)
            .collect();
        self.looked_at += free.len();
        for block in free {
            if self.settings.expandable_segments {
                self.unmap(block);
            } else if is_whole(&self.blocks[block as usize]) {
                self.release_segment(block);
            }
        }
    }

    /// Gives back the segments that have lain free for longer than average, until enough is reclaimed.
    pub(super) fn collect_garbage(&mut self) {
        let (Some(allowed), Some(threshold)) =
            (self.allowed, self.settings.garbage_collection_threshold)
        else {
            return;
        };
        let held = self.counters.reserved.current.get();
        let Some(target) = held
            .checked_sub((threshold * allowed as f64) as u64)
            .filter(|bytes| *bytes > 0)
        else {
            return;
        };
        let clock = self.searches[1];
        let large = self.pools.iter_mut().skip(1).step_by(2);
        let free = large.flat_map(|pool| pool.free.iter());
        let free: Vec<u32> = free.map(|entry| entry.block).collect();
        self.looked_at += free.len();
        let mut candidates: Vec<(u32, u64)> = free
            .into_iter()
            .filter(|block| is_whole(&self.blocks[*block as usize]))
            .map(|block| (block, clock - self.blocks[block as usize].freed_at))
            .collect();
        let mut total_age: u64 = candidates.iter().map(|candidate| candidate.1).sum();
        let mut reclaimed = 0;
        let mut freed_one = true;
        while reclaimed < target && freed_one && !candidates.is_empty() {
            let average = total_age as f64 / candidates.len() as f64;
            freed_one = false;
            self.looked_at += candidates.len();
            for (block, age) in std::mem::take(&mut candidates) {
                if age as f64 >= average {
                    freed_one = true;
                    reclaimed += self.blocks[block as usize].size;
                    total_age -= age;
                    self.release_segment(block);
                } else {
                    candidates.push((block, age));
                }
            }
        }
    }

    /// With a limit on splitting, first gives back just enough oversize blocks; says whether that may do.
    pub(super) fn release_oversize(&mut self, pool: u16, size: u64) -> bool {
        let Some(limit) = self.settings.max_split_size.map(Bytes::get) else {
            return false;
        };
        if self.settings.expandable_segments {
            return false;
        }
        let enough = size.max(limit);
        let list = &self.pools[usize::from(pool)].free;
        if let Some(at) = list.at_least(enough) {
            let block = list.get(at).block;
            self.release_segment(block);
            return true;
        }
        let mut released = 0;
        while released < enough
            && let Some(largest) = self.pools[usize::from(pool)].free.last()
            && largest.size >= limit
        {
            released += largest.size;
            self.release_segment(largest.block);
        }
        released >= enough
    }

    /// `cudaFree`.
    fn release_segment(&mut self, block: u32) {
        let gone = self.blocks[block as usize];
        self.take_from_list(block, &gone);
        self.discard(block);
        self.counters.reserved.decrease(gone.size);
        self.counters.segments = self.counters.segments.saturating_sub(1);
        if let Some(calls) = &mut self.calls {
            calls.push(DriverCall::Free {
                segment: gone.segment,
                bytes: Bytes::new(gone.size),
            });
        }
    }
}

fn is_whole(block: &Block) -> bool {
    block.previous == NONE && block.next == NONE
}
