//! A list of requests, replayed, and the smallest card on which it runs.

use std::ops::Range;

use serde::Serialize;

use super::{Allocator, Card, Counters, Oom, Repeats, Settings, Stream};
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

/// A program's requests, to be replayed again and again.
pub trait Requests {
    fn count(&self) -> usize;
    fn get(&self, at: usize) -> Option<Request>;

    /// Stretches with the same requests as those just before them (see `Repeats`).
    fn repeats(&self) -> &[Range<usize>] {
        &[]
    }
}

impl Requests for [Request] {
    fn count(&self) -> usize {
        self.len()
    }
    fn get(&self, at: usize) -> Option<Request> {
        <[Request]>::get(self, at).copied()
    }
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
    run(&mut Allocator::new(settings.clone(), card), requests).0
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
    requests: &(impl Requests + ?Sized),
    settings: &Settings,
    room: Option<Bytes>,
) -> Option<Bytes> {
    let (allocated, reserved) = peak_over_all(requests, settings)?;
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
    requests: &(impl Requests + ?Sized),
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
const MOST_REQUESTS: usize = 2_500_000;

/// Replays of the same requests on different cards.
struct Cards<'a, R: ?Sized> {
    allocator: Allocator,
    requests: &'a R,
    /// How many more requests may be replayed before the search ends.
    left: usize,
}

impl<R: Requests + ?Sized> Cards<'_, R> {
    /// Whether the requests succeed on a card of so many MiB.
    fn run_on(&mut self, mib: u64) -> bool {
        self.allocator.set_card(Card::usable(Bytes::mib(mib)));
        self.allocator.reset();
        let (report, replayed) = run(&mut self.allocator, self.requests);
        // Giving back the cache looks at every free block.
        let work = replayed.saturating_add(self.allocator.looked_at);
        self.left = self.left.saturating_sub(work);
        report.failure.is_none()
    }
}

/// Replays the requests, up to the first that fails, and says how many were worth it: repeats that change nothing are not.
pub(super) fn run(
    allocator: &mut Allocator,
    requests: &(impl Requests + ?Sized),
) -> (Report, usize) {
    let count = requests.count();
    let mut repeats = Repeats::new(requests.repeats());
    let (mut at, mut replayed) = (0, 0);
    let mut failure = None;
    while at < count && failure.is_none() {
        if let Some(to) = repeats.skip(at, allocator) {
            at = to;
            continue;
        }
        let until = repeats.next_border(at).min(count);
        let failed = (at..until).find_map(|place| {
            let request = requests.get(place)?;
            Some((place, apply(allocator, request).err()?))
        });
        failure = failed;
        let end = failure.map_or(until, |(place, _)| place);
        replayed += end - at;
        at = until;
    }
    let counters = *allocator.counters();
    (Report { counters, failure }, replayed)
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
fn peak_over_all(requests: &(impl Requests + ?Sized), settings: &Settings) -> Option<(u64, u64)> {
    let mut allocator = Allocator::new(settings.clone(), Card::UNLIMITED);
    let all = (0..requests.count()).filter_map(|at| requests.get(at));
    for request in all.filter(|request| *request != Request::ResetPeaks) {
        apply(&mut allocator, request).ok()?;
    }
    let Counters {
        allocated,
        reserved,
        ..
    } = allocator.counters();
    Some((allocated.peak.get(), reserved.peak.get()))
}
