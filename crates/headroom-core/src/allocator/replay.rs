//! A list of requests, replayed, and the smallest card on which it runs.

use std::ops::Range;

use serde::Serialize;

use super::{Allocator, Card, Counters, Oom, Repeats, Settings, Stream};
use headroom_base::units::Bytes;

/// One call of a program to the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Allocates; a request for no bytes allocates nothing.
    Malloc {
        /// The caller's number for the memory, by which it is freed.
        handle: u32,
        /// The requested size, before rounding.
        bytes: Bytes,
        /// The stream whose pool serves it.
        stream: Stream,
    },
    /// Frees; a handle that is not alive is left alone.
    Free {
        /// The number that the memory was allocated with.
        handle: u32,
    },
    /// A free of memory that another stream uses: it takes effect at the next request.
    FreeDeferred {
        /// The number that the memory was allocated with.
        handle: u32,
    },
    /// `torch.cuda.empty_cache()`.
    EmptyCache,
    /// `torch.cuda.reset_peak_memory_stats()`.
    ResetPeaks,
}

/// A program's requests, to be replayed again and again.
pub trait Requests {
    /// The number of requests.
    fn count(&self) -> usize;
    /// The request at this position, counted from 0; `None` beyond the last.
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
    /// The allocator's counters when the replay ended.
    pub counters: Counters,
    /// The request that failed and its index.
    pub failure: Option<(usize, Oom)>,
}

/// Runs requests on a fresh allocator, up to the first request that fails.
pub fn replay(requests: &[Request], settings: &Settings, card: Card) -> Report {
    run(&mut Allocator::new(settings.clone(), card), requests).0
}

/// How far a replay has got.
#[derive(Clone, Debug)]
pub(super) struct Progress<'a> {
    /// The next request, or the one under way.
    at: usize,
    /// How many were worth a replay: repeats that change nothing are not.
    pub replayed: usize,
    repeats: Repeats<'a>,
    /// It begins between two borders of what repeats.
    is_inside: bool,
}

impl<'a> Progress<'a> {
    pub(crate) const fn none(repeats: &'a [Range<usize>]) -> Self {
        Self {
            at: 0,
            replayed: 0,
            repeats: Repeats::new(repeats),
            is_inside: false,
        }
    }

    /// The same at a later request before the next border.
    pub(crate) fn inside(&self, at: usize) -> Self {
        Self {
            at,
            replayed: self.replayed + at.saturating_sub(self.at),
            repeats: self.repeats.clone(),
            is_inside: true,
        }
    }
}

/// Replays the requests, up to the first that fails, and says how many were worth it: repeats that change nothing are not.
pub(super) fn run(
    allocator: &mut Allocator,
    requests: &(impl Requests + ?Sized),
) -> (Report, usize) {
    let progress = Progress::none(requests.repeats());
    follow(allocator, requests, progress, &mut |_, _| {})
}

/// The same from where another replay stopped; `each` is called after each range with the progress before it.
pub(super) fn follow<'a>(
    allocator: &mut Allocator,
    requests: &(impl Requests + ?Sized),
    mut progress: Progress<'a>,
    each: &mut dyn FnMut(&mut Allocator, &Progress<'a>),
) -> (Report, usize) {
    let count = requests.count();
    let mut failure = None;
    while progress.at < count && failure.is_none() {
        let at = progress.at;
        if !std::mem::take(&mut progress.is_inside)
            && let Some(to) = progress.repeats.skip(at, allocator)
        {
            progress.at = to;
            continue;
        }
        let until = progress.repeats.next_border(at).min(count);
        let failed = (at..until).find_map(|place| {
            let request = requests.get(place)?;
            allocator.place = place;
            Some((place, apply(allocator, request).err()?))
        });
        each(allocator, &progress);
        failure = failed;
        let end = failure.map_or(until, |(place, _)| place);
        progress.replayed += end - at;
        progress.at = until;
    }
    let counters = *allocator.counters();
    (Report { counters, failure }, progress.replayed)
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

/// Allocated and reserved peaks, ignoring resets; `None` where a request fails on a card without a limit.
pub(super) fn peak_over_all(
    requests: &(impl Requests + ?Sized),
    settings: &Settings,
) -> Option<(u64, u64)> {
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use headroom_testing::Dice;

    pub(crate) struct Program {
        requests: Vec<Request>,
        repeats: Vec<Range<usize>>,
    }

    impl Requests for Program {
        fn count(&self) -> usize {
            self.requests.len()
        }
        fn get(&self, at: usize) -> Option<Request> {
            self.requests.get(at).copied()
        }
        fn repeats(&self) -> &[Range<usize>] {
            &self.repeats
        }
    }

    /// What lasts, and a stretch that frees what it allocates, six times; the last two as a copy of those before them.
    pub(crate) fn program(seed: u64) -> Program {
        let mut dice = Dice::new(seed);
        let mut size = |most: u64| Bytes::new(512 + dice.below(most << 10));
        let malloc = |handle, bytes| Request::Malloc {
            handle,
            bytes,
            stream: 0,
        };
        let lasting = (0..40).map(|handle| malloc(handle, size(6_000)));
        let mut requests: Vec<Request> = lasting.collect();
        let begin = requests.len();
        for handle in 40..140 {
            requests.push(malloc(
                handle,
                size(if handle % 3 == 0 { 30_000 } else { 900 }),
            ));
            if handle % 4 > 0 && handle > 60 {
                requests.push(Request::Free {
                    handle: handle - 17,
                });
            }
        }
        let freed = |handle: &u32| requests.contains(&Request::Free { handle: *handle });
        let rest: Vec<u32> = (40..140).filter(|handle| !freed(handle)).collect();
        requests.extend(rest.into_iter().map(|handle| Request::Free { handle }));
        let stretch = requests[begin..].to_vec();
        for _ in 0..5 {
            requests.extend_from_slice(&stretch);
        }
        let at = |times: usize| begin + times * stretch.len();
        let repeats = vec![
            at(1)..at(2),
            at(2)..at(3),
            at(3)..at(4),
            at(4)..at(6),
            at(5)..at(6),
        ];
        Program { requests, repeats }
    }

    #[test]
    fn skipped_repeats_change_nothing() {
        let (mut left_out, mut refused) = (0, 0);
        for seed in 0..12 {
            let program = program(seed);
            for text in ["", "expandable_segments:True", "max_split_size_mb:32"] {
                let (settings, _) = Settings::parse(text);
                let fresh = |card| Allocator::new(settings.clone(), card);
                let (all, _) = run(&mut fresh(Card::UNLIMITED), &program.requests[..]);
                for percent in [80, 90, 94, 96, 98, 99, 100, 200] {
                    let card =
                        Card::usable(all.counters.reserved.peak.scale(f64::from(percent) / 100.0));
                    let (expected, every) = run(&mut fresh(card), &program.requests[..]);
                    let (found, some) = run(&mut fresh(card), &program);
                    assert_eq!(found.failure, expected.failure, "{seed} {text} {percent}");
                    let peaks = |of: Counters| (of.allocated.peak, of.reserved.peak);
                    assert_eq!(peaks(found.counters), peaks(expected.counters));
                    left_out += usize::from(some < every);
                    refused += usize::from(found.failure.is_some());
                }
            }
        }
        assert!(left_out > 100 && refused > 20, "{left_out} {refused}");
    }
}
