//! Finds the smallest GPU memory on which a request sequence succeeds.

use super::replay::{Progress, follow, peak_over_all};
use super::{Allocator, Card, Requests, Settings};
use headroom_base::units::Bytes;

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
        MOST_REQUESTS,
    )
}

/// The same, where it is known how much the requests allocate and reserve on a card without a limit, in so many requests
/// that are replayed.
pub fn smallest_card_between(
    requests: &(impl Requests + ?Sized),
    settings: &Settings,
    room: Option<Bytes>,
    allocated: Bytes,
    reserved: Bytes,
    most: usize,
) -> Option<Bytes> {
    let mut cards = Cards::new(requests, settings);
    cards.left = most.min(MOST_REQUESTS);
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
        if cards.run_between(low, middle, high) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    // Where the search ended early, whether one's own card does is still worth a replay.
    let own = room.map(|room| room.get() / MIB);
    if let Some(own) = own.filter(|own| (low..high).contains(own))
        && cards.run_between(low, own, high)
    {
        high = own;
    }
    Some(Bytes::mib(high))
}

const MIB: u64 = 1 << 20;
/// Requests that are replayed to narrow a card down.
const MOST_REQUESTS: usize = 2_500_000;

/// Replays of the same requests on different cards.
///
/// What two cards have in common is replayed once, and counts as if each had replayed it: where the search ends does not depend
/// on what was spared.
struct Cards<'a, R: ?Sized> {
    requests: &'a R,
    fresh: Allocator,
    /// Up to where all cards that are still in question do the same.
    common: Option<(Allocator, Progress<'a>)>,
    known: Vec<Outcome>,
    /// Whether a card's size decides only what the driver gives, so that replays can share what they have in common.
    shares: bool,
    /// How many more requests may be replayed before the search ends.
    left: usize,
}

/// What happens on every card that has as much as the driver gave, and less than it refused.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    given: u64,
    refused: u64,
    succeeds: bool,
    work: usize,
}

impl<'a, R: Requests + ?Sized> Cards<'a, R> {
    fn new(requests: &'a R, settings: &Settings) -> Self {
        let shares = settings.memory_fraction.is_none()
            && settings.max_split_size.is_none()
            && !settings.expandable_segments;
        Self {
            requests,
            fresh: Allocator::new(settings.clone(), Card::UNLIMITED),
            common: None,
            known: Vec::new(),
            shares,
            left: MOST_REQUESTS,
        }
    }

    /// Whether the requests succeed on a card of this many MiB.
    fn run_on(&mut self, mib: u64) -> bool {
        self.fresh.set_card(Card::usable(Bytes::mib(mib)));
        self.fresh.reset();
        let start = Progress::none(self.requests.repeats());
        let allocator = &mut self.fresh;
        let (report, replayed) = follow(allocator, self.requests, start, &mut |_, _| {});
        let work = replayed.saturating_add(allocator.looked_at);
        self.spend(work);
        report.failure.is_none()
    }

    /// The same where only cards of `low` to `high` MiB are still in question, and after it only those that it leaves.
    fn run_between(&mut self, low: u64, mib: u64, high: u64) -> bool {
        if !self.shares {
            return self.run_on(mib);
        }
        let bytes = Bytes::mib(mib).get();
        let mut known = self.known.iter();
        let known = known.find(|known| (known.given..known.refused).contains(&bytes));
        if let Some(&Outcome { succeeds, work, .. }) = known {
            self.spend(work);
            return succeeds;
        }
        let fresh = || {
            let start = Progress::none(self.requests.repeats());
            (self.fresh.clone(), start)
        };
        let (mut allocator, start) = self.common.take().unwrap_or_else(fresh);
        allocator.set_card(Card::usable(Bytes::mib(mib)));
        allocator.watch_forks(Bytes::mib(low).get(), Bytes::mib(high).get());
        let (mut smaller, mut larger) = (None, None);
        let mut each = |allocator: &mut Allocator, progress: &Progress<'a>| {
            let Some(forks) = &mut allocator.forks else {
                return;
            };
            for (found, place) in [
                (forks.smaller.take(), &mut smaller),
                (forks.larger.take(), &mut larger),
            ] {
                if let Some(found) = found {
                    let progress = progress.inside(found.place);
                    *place = Some((*found, progress));
                }
            }
        };
        let (report, replayed) = follow(&mut allocator, self.requests, start, &mut each);
        // Giving back the cache looks at every free block.
        let work = replayed.saturating_add(allocator.looked_at);
        self.spend(work);
        let succeeds = report.failure.is_none();
        if let Some(forks) = allocator.forks {
            self.known.push(Outcome {
                given: forks.given,
                refused: forks.refused,
                succeeds,
                work,
            });
        }
        // Where none parted, all that are left do as this one did.
        self.common = if succeeds { smaller } else { larger };
        succeeds
    }

    fn spend(&mut self, work: usize) {
        self.left = self.left.saturating_sub(work);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocator::replay::tests::program;

    #[test]
    fn a_search_that_shares_replays_is_the_search_that_does_not() {
        let mut spared = 0;
        for seed in 0..40 {
            let program = program(seed);
            for text in ["", "roundup_power2_divisions:4"] {
                let (settings, _) = Settings::parse(text);
                let (allocated, reserved) = peak_over_all(&program, &settings).unwrap();
                let search = |shares: bool| {
                    let mut cards = Cards::new(&program, &settings);
                    cards.shares &= shares;
                    let (mut low, mut high) = (allocated / MIB, reserved.div_ceil(MIB));
                    let mut found = Vec::new();
                    while low < high {
                        let middle = low + (high - low) / 2;
                        let succeeds = cards.run_between(low, middle, high);
                        found.push((middle, succeeds, cards.left));
                        (low, high) = if succeeds {
                            (low, middle)
                        } else {
                            (middle + 1, high)
                        };
                    }
                    (found, cards.known.len())
                };
                let ((expected, none), (found, replays)) = (search(false), search(true));
                assert_eq!(found, expected, "{seed} {text}");
                assert!(none == 0 && replays <= found.len());
                spared += found.len() - replays;
            }
        }
        assert!(spared > 40, "{spared}");
    }
}
