//! A list of requests, replayed, and the smallest card on which it runs.

use serde::Serialize;

use super::{Allocator, Card, Counters, Oom, Settings, Stream};
use crate::units::Bytes;

/// One thing a program asks of the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    Malloc {
        handle: u32,
        bytes: Bytes,
        stream: Stream,
    },
    Free {
        handle: u32,
    },
    /// A free of memory that another stream uses: it takes effect at the next request.
    FreeDeferred {
        handle: u32,
    },
    EmptyCache,
    ResetPeaks,
}

/// How a replay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    pub counters: Counters,
    /// The request that failed and its index.
    pub failure: Option<(usize, Oom)>,
}

/// Runs requests on a fresh allocator, up to the first request that fails.
pub fn replay(requests: &[Request], settings: &Settings, card: Card) -> Report {
    let requests = requests.iter().copied();
    run(&mut Allocator::new(settings.clone(), card), requests)
}

/// The smallest card, to the MiB, on which the requests succeed: its free memory before the first request.
/// `None` where they run on none.
///
/// A little more memory may, in principle, lead the allocator into a worse arrangement; the card named is one on which
/// they do succeed, found by bisection between what they allocate and what they would reserve without a limit.
///
/// Of a run of many requests, the card is one that is a little larger; whether they succeed with the room of one's own card
/// is still told exactly.
pub fn smallest_card(
    requests: impl ExactSizeIterator<Item = Request> + Clone,
    settings: &Settings,
    room: Option<Bytes>,
) -> Option<Bytes> {
    let (allocated, reserved) = peak_over_all(requests.clone(), settings)?;
    smallest_card_between(
        requests,
        settings,
        room,
        Bytes::new(allocated),
        Bytes::new(reserved),
    )
}

/// The same, where it is known how much the requests allocate and reserve on a card without a limit.
pub fn smallest_card_between(
    requests: impl ExactSizeIterator<Item = Request> + Clone,
    settings: &Settings,
    room: Option<Bytes>,
    allocated: Bytes,
    reserved: Bytes,
) -> Option<Bytes> {
    let mut cards = Cards {
        allocator: Allocator::new(settings.clone(), Card::UNLIMITED),
        requests,
        left: MOST_REQUESTS,
    };
    let mut low = allocated.get() / MIB;
    let mut high = reserved.get().div_ceil(MIB);
    // With all that they reserve they succeed, unless a memory fraction makes part of the card unusable or segments that grow
    // meet their pages in another order.
    let unsure = settings.memory_fraction.is_some() || settings.expandable_segments;
    while unsure && !cards.run_on(high) {
        high = high.checked_mul(2).filter(|mib| *mib < 1 << 41)?;
    }
    while low < high && cards.left > 0 {
        let middle = low + (high - low) / 2;
        if cards.run_on(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    // Where the search ended early, whether one's own card does is still worth a replay.
    let own = room.map(|room| room.get() / MIB);
    if let Some(own) = own.filter(|own| (low..high).contains(own))
        && cards.run_on(own)
    {
        high = own;
    }
    Some(Bytes::mib(high))
}

const MIB: u64 = 1 << 20;
/// Requests that are replayed to narrow a card down.
const MOST_REQUESTS: usize = 4_000_000;
/// What giving back the whole cache counts for: it looks at every free block.
const RETRY: u64 = 300;

/// Replays of the same requests on different cards.
struct Cards<R> {
    allocator: Allocator,
    requests: R,
    /// How many more requests may be replayed before the search ends.
    left: usize,
}

impl<R: ExactSizeIterator<Item = Request> + Clone> Cards<R> {
    /// Whether the requests succeed on a card of so many MiB.
    fn run_on(&mut self, mib: u64) -> bool {
        self.allocator.set_card(Card::usable(Bytes::mib(mib)));
        self.allocator.reset();
        let report = run(&mut self.allocator, self.requests.clone());
        let replayed = report.failure.map_or(self.requests.len(), |(at, _)| at);
        let retries = report.counters.retries.saturating_mul(RETRY);
        let work = replayed.saturating_add(usize::try_from(retries).unwrap_or(usize::MAX));
        self.left = self.left.saturating_sub(work);
        report.failure.is_none()
    }
}

pub(super) fn run(allocator: &mut Allocator, requests: impl Iterator<Item = Request>) -> Report {
    for (place, request) in requests.enumerate() {
        if let Err(oom) = apply(allocator, request) {
            return Report {
                counters: *allocator.counters(),
                failure: Some((place, oom)),
            };
        }
    }
    Report {
        counters: *allocator.counters(),
        failure: None,
    }
}

#[inline]
fn apply(allocator: &mut Allocator, request: Request) -> Result<(), Oom> {
    match request {
        Request::Malloc {
            handle,
            bytes,
            stream,
        } => return allocator.malloc_on(handle, bytes, stream),
        Request::Free { handle } => allocator.free(handle),
        Request::FreeDeferred { handle } => allocator.free_deferred(handle),
        Request::EmptyCache => allocator.empty_cache(),
        Request::ResetPeaks => allocator.reset_peaks(),
    }
    Ok(())
}

/// Allocated and reserved peaks whatever resets lie between; `None` where a request fails on a card without a limit.
fn peak_over_all(
    requests: impl Iterator<Item = Request>,
    settings: &Settings,
) -> Option<(u64, u64)> {
    let mut allocator = Allocator::new(settings.clone(), Card::UNLIMITED);
    for request in requests.filter(|request| *request != Request::ResetPeaks) {
        apply(&mut allocator, request).ok()?;
    }
    let Counters {
        allocated,
        reserved,
        ..
    } = allocator.counters();
    Some((allocated.peak.get(), reserved.peak.get()))
}
