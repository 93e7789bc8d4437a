//! The allocator of one device: its state, requests and frees.

use super::card::{Card, Oom};
use super::counters::Counters;
use super::freelist::FreeList;
use super::settings::Settings;
use super::sizes::ROUND_LARGE;
use headroom_base::units::Bytes;

/// A CUDA stream, numbered from the default one.
pub type Stream = u16;

/// What is no stream: memory that another allocator takes from the driver, after the cache was emptied for it, and gives back as soon
/// as it is freed. Beyond the numbers of streams that a run has.
pub const OUTSIDE: Stream = 120;

/// No block, or no segment.
pub(super) const NONE: u32 = u32::MAX;

/// The allocator of one device.
///
/// Callers identify memory by a handle: a small number they choose, and may use again once the memory is freed.
#[derive(Clone, Debug)]
pub struct Allocator {
    pub(super) settings: Settings,
    pub(super) card: Card,
    pub(super) counters: Counters,
    /// What the driver can give, and what `set_per_process_memory_fraction` permits.
    pub(super) room: u64,
    pub(super) allowed: Option<u64>,
    /// Whether blocks are aged for the garbage collector.
    pub(super) collects: bool,
    pub(super) blocks: Vec<Block>,
    pub(super) unused: Vec<u32>,
    pub(super) pools: Vec<Pool>,
    /// By handle: the block behind it.
    pub(super) handles: Vec<u32>,
    /// Freed blocks that another stream still uses.
    pub(super) pending: Vec<u32>,
    /// How often the small and the large pools were searched: the clock by which free blocks age.
    pub(super) searches: [u64; 2],
    /// Free blocks inspected one by one: work in addition to the requests.
    pub(super) looked_at: usize,
    /// The request that is replayed, by its position.
    pub(super) place: usize,
    /// The cache was emptied for the request under way, which has one attempt left.
    pub(super) emptied: bool,
    /// Where replays on other cards would diverge, if requested.
    pub(super) forks: Option<Box<Forks>>,
    pub(super) next_address: u64,
    pub(super) segments: Vec<Segment>,
    pub(super) calls: Option<Vec<DriverCall>>,
}

/// A piece of a segment, in use or free.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub address: u64,
    pub size: u64,
    pub requested: u64,
    /// The pool's clock when the block became free.
    pub freed_at: u64,
    pub previous: u32,
    pub next: u32,
    pub segment: u32,
    pub pool: u16,
    pub state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Allocated,
    /// Freed, but another stream uses it.
    Pending,
    Free,
    /// Address space of an expandable segment without memory behind it.
    Unmapped,
    /// No block any more: its place is for another.
    Gone,
}

/// The small or the large blocks of one stream.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    pub free: FreeList,
    /// Unmapped blocks of expandable segments, by address.
    pub unmapped: Vec<(u64, u32)>,
}

/// A range of addresses the driver gave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub address: u64,
    pub size: u64,
}

/// Calls to the driver, recorded only if a replay requests it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DriverCall {
    Malloc { segment: u32, bytes: Bytes },
    Free { segment: u32, bytes: Bytes },
    Map { bytes: Bytes },
    Unmap { bytes: Bytes },
}

/// What one replay shows of those on the other cards of a range.
#[derive(Clone, Debug)]
pub(super) struct Forks {
    /// The smallest and the largest card of the range, in bytes.
    pub low: u64,
    pub high: u64,
    /// The most that the driver gave in all, and the least that it refused: on every card between them all is the same.
    pub given: u64,
    pub refused: u64,
    /// The allocator before the first request that a smaller card of the range may refuse, and before the first that a larger
    /// one may give. Until then all of those cards do the same.
    pub smaller: Option<Box<Allocator>>,
    pub larger: Option<Box<Allocator>>,
}

impl Allocator {
    /// An empty allocator: nothing is reserved yet.
    pub fn new(settings: Settings, card: Card) -> Self {
        let mut allocator = Self {
            settings,
            card,
            counters: Counters::default(),
            room: 0,
            allowed: None,
            collects: false,
            blocks: Vec::new(),
            unused: Vec::new(),
            pools: Vec::new(),
            handles: Vec::new(),
            pending: Vec::new(),
            searches: [0; 2],
            looked_at: 0,
            place: 0,
            emptied: false,
            forks: None,
            next_address: ROUND_LARGE,
            segments: Vec::new(),
            calls: None,
        };
        allocator.set_card(card);
        allocator
    }

    /// Forgets everything but the settings and the card, and keeps its lists' capacity.
    pub fn reset(&mut self) {
        self.counters = Counters::default();
        self.blocks.clear();
        self.unused.clear();
        for pool in &mut self.pools {
            pool.free.clear();
            pool.unmapped.clear();
        }
        self.handles.clear();
        self.pending.clear();
        self.searches = [0; 2];
        self.looked_at = 0;
        (self.place, self.emptied, self.forks) = (0, false, None);
        self.next_address = ROUND_LARGE;
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

    /// The counters as they are now.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// As `torch.cuda.reset_peak_memory_stats`.
    pub fn reset_peaks(&mut self) {
        self.counters.reset_peaks();
    }

    /// What the driver can still give.
    pub fn device_free(&self) -> Bytes {
        Bytes::new(self.room) - self.counters.reserved.current
    }

    /// The largest cached block.
    pub fn largest_free_block(&self) -> Bytes {
        let largest = self.pools.iter().filter_map(|pool| pool.free.last());
        Bytes::new(largest.map(|entry| entry.size).max().unwrap_or(0))
    }

    /// How many blocks are cached.
    pub fn free_blocks(&self) -> usize {
        self.pools.iter().map(|pool| pool.free.len()).sum()
    }

    /// Allocates on the default stream.
    #[inline]
    pub fn malloc(&mut self, handle: u32, bytes: Bytes) -> Result<(), Oom> {
        self.malloc_on(handle, bytes, 0)
    }

    /// Allocates; a handle still alive is freed first, and a request for no bytes allocates nothing.
    pub fn malloc_on(&mut self, handle: u32, bytes: Bytes, stream: Stream) -> Result<(), Oom> {
        #[cfg(test)]
        counting::count();
        self.free(handle);
        let requested = bytes.get();
        if requested == 0 {
            return Ok(());
        }
        if !self.pending.is_empty() {
            self.release_pending();
        }
        if stream == OUTSIDE {
            // Trainers call `torch.cuda.empty_cache()` before they wake what samples.
            self.empty_cache();
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

    /// Frees; a handle that is not alive is left alone.
    #[inline]
    pub fn free(&mut self, handle: u32) {
        if let Some(block) = self.take_handle(handle) {
            let pool = self.blocks[block as usize].pool;
            self.release_block(block);
            if pool / 2 == OUTSIDE {
                self.release_pool(pool.into());
            }
        }
    }

    /// Gives the memory behind one handle another handle.
    pub fn rename(&mut self, from: u32, to: u32) {
        let taken = self.handles.get_mut(from as usize);
        let block = taken.map_or(NONE, |slot| std::mem::replace(slot, NONE));
        if block != NONE {
            self.name(to, block);
        }
    }

    /// Allocates and frees at once; returns how much is allocated in between.
    pub fn malloc_and_free(&mut self, handle: u32, bytes: Bytes) -> Result<u64, Oom> {
        if let Some(taken) = self.size_if_transient(bytes.get()) {
            #[cfg(test)]
            counting::count();
            return Ok(self.counters.malloc_and_free(taken, bytes.get()));
        }
        self.malloc(handle, bytes)?;
        let top = self.counters.allocated.current.get();
        self.free(handle);
        Ok(top)
    }

    /// Frees memory that another stream uses (`record_stream`): it stays active until the next request, by which time the
    /// other stream counts as finished.
    pub fn free_deferred(&mut self, handle: u32) {
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
            .decrease(self.blocks[block as usize].size);
        Some(block)
    }
}

/// Counts requests, so that tests can show that work is bounded.
#[cfg(test)]
pub(crate) mod counting {
    use std::cell::Cell;

    thread_local! {
        static COUNT: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn count() {
        COUNT.with(|count| count.set(count.get() + 1));
    }

    /// The requests since the last call.
    pub(crate) fn take_count() -> usize {
        COUNT.with(Cell::take)
    }
}
