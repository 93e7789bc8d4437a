//! The CUDA caching allocator of PyTorch 2.15, replayed to the byte.
//!
//! Allocated memory is what tensors need; reserved memory is what the process holds, and a finite card refuses the
//! latter. What lies between follows from the order of requests, so it is replayed, not estimated: the rules are those
//! of `c10/cuda/CUDACachingAllocator.cpp` (pools, best fit, splitting, merging, what is given back and when), checked
//! against the real library. A request costs tens of nanoseconds.
//!
//! Addresses are handed out upwards, segment after segment; the real driver may reuse an address, which matters only
//! where two free blocks have the same size. CUDA graphs' private pools and `backend:cudaMallocAsync` are not modelled.

mod blocks;
mod card;
mod counters;
mod expandable;
#[cfg(feature = "cli")]
pub mod file;
mod freelist;
mod release;
mod replay;
mod settings;
#[cfg(test)]
mod tests;

pub use card::{Card, Oom};
pub use counters::{Counters, Stat};
pub use replay::{Event, Report, replay, smallest_card};
pub use settings::{Divisions, Settings, SettingsProblem};

use freelist::{ADDRESS_LIMIT, Cursor, FreeList, SIZE_LIMIT};

use crate::units::Bytes;

/// A CUDA stream, numbered from the default one.
pub type Stream = u16;

/// All blocks are multiples of this.
const MIN_BLOCK: u64 = 512;
/// The largest request served by the pool of small blocks.
const SMALL: u64 = 1 << 20;
/// Small requests are packed in segments of this size.
const SMALL_SEGMENT: u64 = 2 << 20;
/// From this size on a segment is made to measure.
const MADE_TO_MEASURE: u64 = 10 << 20;
/// Segments made to measure are multiples of this.
const LARGE_ROUNDING: u64 = 2 << 20;
/// No block, no segment.
const NONE: u32 = u32::MAX;

/// The allocator of one device.
///
/// Callers name a piece of memory by a small number of their own choosing, its handle, which they may use again once
/// it is freed.
#[derive(Clone, Debug)]
pub struct Allocator {
    settings: Settings,
    card: Card,
    counters: Counters,
    /// What the card can give, and what `set_per_process_memory_fraction` permits.
    room: u64,
    allowed: Option<u64>,
    /// Whether blocks are aged for the garbage collector.
    collects: bool,
    blocks: Vec<Block>,
    spare: Vec<u32>,
    pools: Vec<Pool>,
    /// By handle: the block behind it.
    handles: Vec<u32>,
    /// Freed blocks that another stream still uses.
    pending: Vec<u32>,
    /// Searches of the small and the large pools, the clock by which free blocks age.
    searches: [u64; 2],
    next_address: u64,
    segments: Vec<Segment>,
    calls: Option<Vec<DriverCall>>,
}

/// A piece of a segment, in use or free.
#[derive(Clone, Copy, Debug)]
struct Block {
    address: u64,
    size: u64,
    requested: u64,
    /// The pool's clock when the block became free.
    freed_at: u64,
    previous: u32,
    next: u32,
    segment: u32,
    pool: u16,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Allocated,
    /// Freed, but another stream uses it.
    Pending,
    Free,
    /// Address space of an expandable segment without memory behind it.
    Unmapped,
}

/// The small or the large blocks of one stream.
#[derive(Clone, Debug)]
struct Pool {
    free: FreeList,
    /// Unmapped blocks of expandable segments, by address.
    unmapped: Vec<(u64, u32)>,
}

/// A range of addresses the driver gave.
#[derive(Clone, Copy, Debug)]
struct Segment {
    address: u64,
    size: u64,
}

/// What the allocator did to the driver, kept only where a replay asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverCall {
    Malloc { segment: u32, bytes: Bytes },
    Free { segment: u32, bytes: Bytes },
    Map { bytes: Bytes },
    Unmap { bytes: Bytes },
}

impl Allocator {
    pub fn new(settings: Settings, card: Card) -> Self {
        let mut it = Self {
            settings,
            card,
            counters: Counters::default(),
            room: 0,
            allowed: None,
            collects: false,
            blocks: Vec::new(),
            spare: Vec::new(),
            pools: Vec::new(),
            handles: Vec::new(),
            pending: Vec::new(),
            searches: [0; 2],
            next_address: LARGE_ROUNDING,
            segments: Vec::new(),
            calls: None,
        };
        it.set_card(card);
        it
    }

    /// Forgets everything but the settings and the card, and keeps the room it has grown.
    pub fn reset(&mut self) {
        self.counters = Counters::default();
        self.blocks.clear();
        self.spare.clear();
        for pool in &mut self.pools {
            pool.free.clear();
            pool.unmapped.clear();
        }
        self.handles.clear();
        self.pending.clear();
        self.searches = [0; 2];
        self.next_address = LARGE_ROUNDING;
        self.segments.clear();
        if let Some(calls) = &mut self.calls {
            calls.clear();
        }
    }

    /// Changes what the driver can give from now on, as when another process comes or goes.
    pub fn set_card(&mut self, card: Card) {
        self.card = card;
        self.room = card.room();
        self.allowed = self
            .settings
            .memory_fraction
            .map(|fraction| (fraction * card.total_bytes() as f64) as u64);
        self.collects =
            self.allowed.is_some() && self.settings.garbage_collection_threshold.is_some();
    }

    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// As `torch.cuda.reset_peak_memory_stats`.
    pub fn reset_peaks(&mut self) {
        self.counters.reset_peaks();
    }

    /// What the driver could still give.
    pub fn device_free(&self) -> Bytes {
        Bytes::new(self.room) - self.counters.reserved.current
    }

    /// The largest cached block.
    pub fn largest_free_block(&self) -> Bytes {
        let largest = self.pools.iter().filter_map(|it| it.free.last());
        Bytes::new(largest.map(|it| it.size).max().unwrap_or(0))
    }

    /// How many blocks are cached.
    pub fn free_blocks(&self) -> usize {
        self.pools.iter().map(|it| it.free.len()).sum()
    }

    /// Hands out memory on the default stream.
    #[inline]
    pub fn malloc(&mut self, handle: u32, bytes: Bytes) -> Result<(), Oom> {
        self.malloc_on(handle, bytes, 0)
    }

    /// Hands out memory; a handle still alive is freed first, and a request for nothing takes nothing.
    pub fn malloc_on(&mut self, handle: u32, bytes: Bytes, stream: Stream) -> Result<(), Oom> {
        self.free(handle);
        let requested = bytes.get();
        if requested == 0 {
            return Ok(());
        }
        if !self.pending.is_empty() {
            self.release_pending();
        }
        let size = self.settings.round(requested);
        let pool = self.pool_for(size, stream);
        let block = match self.take_cached(pool, size) {
            Some(block) => block,
            None => self.take_new(pool, size)?,
        };
        let block = self.hand_out(block, size, requested);
        self.name(handle, block);
        Ok(())
    }

    #[inline]
    fn name(&mut self, handle: u32, block: u32) {
        let slot = handle as usize;
        if slot >= self.handles.len() {
            self.handles.resize(slot + 1, NONE);
        }
        self.handles[slot] = block;
    }

    /// Takes memory back; a handle that is not alive is left alone.
    #[inline]
    pub fn free(&mut self, handle: u32) {
        if let Some(block) = self.take_handle(handle) {
            self.release_block(block);
        }
    }

    /// What had one name has another from now on.
    pub fn rename(&mut self, from: u32, to: u32) {
        let taken = self.handles.get_mut(from as usize);
        let block = taken.map_or(NONE, |slot| std::mem::replace(slot, NONE));
        if block != NONE {
            self.name(to, block);
        }
    }

    /// Hands out memory and takes it back at once, and says how much is allocated in between.
    pub fn pass(&mut self, handle: u32, bytes: Bytes) -> Result<u64, Oom> {
        if let Some(taken) = self.taken_for_a_moment(bytes.get()) {
            return Ok(self.counters.pass(taken, bytes.get()));
        }
        self.malloc(handle, bytes)?;
        let top = self.counters.allocated.current.get();
        self.free(handle);
        Ok(top)
    }

    /// Takes memory back that another stream was told of (`record_stream`): it is active until the next request,
    /// by which time the other stream is taken to have finished.
    pub fn free_later(&mut self, handle: u32) {
        if let Some(block) = self.take_handle(handle) {
            self.blocks[block as usize].state = State::Pending;
            self.pending.push(block);
        }
    }

    fn take_handle(&mut self, handle: u32) -> Option<u32> {
        let slot = self.handles.get_mut(handle as usize)?;
        let block = std::mem::replace(slot, NONE);
        if block == NONE {
            return None;
        }
        self.counters
            .allocated
            .take(self.blocks[block as usize].size);
        Some(block)
    }

    /// The smallest free block that will do, out of its list.
    #[inline]
    fn take_cached(&mut self, pool: u16, size: u64) -> Option<u32> {
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
    fn growth(&self, block: u32) -> u64 {
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

    /// A block from the driver, giving back cached memory where that helps.
    #[cold]
    fn take_new(&mut self, pool: u16, size: u64) -> Result<u32, Oom> {
        if self.collects {
            self.collect_garbage();
        }
        let segment = self.settings.segment_size(size);
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
        if let Some(block) = self.ask_driver(pool, size, segment) {
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
        if wanted > self.room {
            return None;
        }
        let number = self.reserve_addresses(segment)?;
        self.counters.reserved.add(segment);
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
    fn reserve_addresses(&mut self, size: u64) -> Option<u32> {
        let address = self.next_address;
        self.next_address = address
            .checked_add(size)?
            .checked_next_multiple_of(LARGE_ROUNDING)
            .filter(|it| *it <= ADDRESS_LIMIT)?;
        self.segments.push(Segment { address, size });
        Some(self.segments.len() as u32 - 1)
    }

    /// The number of a stream's pool: even for small blocks, odd for large ones.
    #[inline]
    fn pool_for(&mut self, size: u64, stream: Stream) -> u16 {
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
}
