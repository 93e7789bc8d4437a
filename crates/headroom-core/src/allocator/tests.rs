//! Documented examples, and laws over generated streams of requests.

use super::*;
use headroom_base::units::Bytes;

const MIB: u64 = 1 << 20;

#[track_caller]
fn check(settings: &str, requests: &[u64], allocated: u64, reserved: u64) {
    let (settings, problems) = Settings::parse(settings);
    assert_eq!(problems, []);
    let mut allocator = Allocator::new(settings, Card::UNLIMITED);
    for (handle, bytes) in (0..).zip(requests) {
        allocator.malloc(handle, Bytes::new(*bytes)).unwrap();
    }
    let counters = allocator.counters();
    assert_eq!(counters.allocated.current.get(), allocated);
    assert_eq!(counters.reserved.current.get(), reserved);
}

/// The numbers are those of `torch.cuda.memory_allocated()` and `memory_reserved()` of PyTorch 2.15.
#[test]
fn documented_examples() {
    check("", &[0], 0, 0);
    check("", &[1], 512, 2 * MIB);
    check("", &[MIB, MIB, 1], 2 * MIB + 512, 4 * MIB);
    check("", &[3 * MIB], 3 * MIB, 20 * MIB);
    check("", &[10 * MIB - 512], 10 * MIB - 512, 20 * MIB);
    // A remainder of at most 1 MiB is not split off.
    check("", &[11 * MIB], 12 * MIB, 12 * MIB);
    check("", &[600 * MIB], 600 * MIB, 600 * MIB);
    check("expandable_segments:True", &[21 * MIB], 21 * MIB, 40 * MIB);
    check(
        "expandable_segments:True",
        &[1, 3 * MIB],
        512 + 3 * MIB,
        22 * MIB,
    );
    check(
        "roundup_power2_divisions:4",
        &[65 * MIB],
        80 * MIB,
        80 * MIB,
    );
    check("large_segment_size_mb:64", &[9 * MIB], 9 * MIB, 64 * MIB);
    check("large_segment_size_mb:64", &[12 * MIB], 12 * MIB, 12 * MIB);
}

/// The error of a real run: usable 262 MiB, the context 450 MiB.
#[test]
fn a_failure_reads_as_pytorch_writes_it() {
    let card = Card {
        total: Some(Bytes::mib(712)),
        context: Bytes::mib(450),
        others: Bytes::ZERO,
    };
    let mut allocator = Allocator::new(Settings::default(), card);
    allocator.malloc(0, Bytes::mib(200)).unwrap();
    let oom = allocator.malloc(1, Bytes::new(65_024_000)).unwrap_err();
    assert_eq!(
        oom.to_string(),
        "CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total capacity of 712.00 MiB of which 62.00 MiB \
         is free. Including non-PyTorch memory, this process has 650.00 MiB memory in use. Of the allocated memory \
         200.00 MiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated."
    );
    let counters = allocator.counters();
    assert_eq!((counters.retries, counters.ooms), (1, 1));
}

#[test]
fn a_cached_segment_of_the_wrong_size_is_freed_before_a_failure() {
    let mut allocator = Allocator::new(Settings::default(), Card::usable(Bytes::mib(100)));
    allocator.malloc(0, Bytes::mib(60)).unwrap();
    allocator.free(0);
    allocator.malloc(0, Bytes::mib(80)).unwrap();
    let counters = allocator.counters();
    assert_eq!(counters.reserved.current, Bytes::mib(80));
    assert_eq!((counters.retries, counters.ooms), (1, 0));
}

#[test]
fn memory_another_stream_uses_stays_active_until_the_next_request() {
    let mut allocator = Allocator::new(Settings::default(), Card::UNLIMITED);
    allocator.malloc(0, Bytes::mib(30)).unwrap();
    allocator.free_deferred(0);
    assert_eq!(allocator.counters().allocated.current, Bytes::ZERO);
    assert_eq!(allocator.counters().active.current, Bytes::mib(30));
    allocator.malloc(0, Bytes::mib(30)).unwrap();
    assert_eq!(allocator.counters().reserved.current, Bytes::mib(30));
}

#[test]
fn absurd_sizes_are_refused() {
    for settings in [Settings::default(), Settings::expandable()] {
        let mut allocator = Allocator::new(settings, Card::UNLIMITED);
        for shift in 40..64 {
            let _ = allocator.malloc(shift, Bytes::new(u64::MAX >> (63 - shift)));
        }
        assert!(allocator.malloc(0, Bytes::MAX).is_err());
        allocator.empty_cache();
        let card = Card::usable(Bytes::ZERO);
        allocator.set_card(card);
        assert!(allocator.malloc(0, Bytes::mib(1)).is_err() || allocator.free_blocks() > 0);
    }
}

/// A deterministic stream of numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// A program that allocates and frees as it likes, and ends with nothing alive.
fn program(seed: u64, streams: u64) -> Vec<Request> {
    let mut random = Random(seed);
    let mut alive = Vec::new();
    let mut events = Vec::new();
    for handle in 0..3000 {
        while !alive.is_empty() && random.below(100) < 45 {
            let handle = alive.swap_remove(random.below(alive.len() as u64) as usize);
            events.push(match random.below(10) {
                0 => Request::FreeDeferred { handle },
                _ => Request::Free { handle },
            });
        }
        if random.below(500) == 0 {
            events.push(Request::EmptyCache);
        }
        let magnitude = 1 + random.below(25);
        let bytes = Bytes::new(random.below(1 << magnitude));
        events.push(Request::Malloc {
            handle,
            bytes,
            stream: random.below(streams) as Stream,
        });
        alive.push(handle);
    }
    events.extend(alive.into_iter().map(|handle| Request::Free { handle }));
    events
}

const ALL_SETTINGS: [&str; 8] = [
    "",
    "expandable_segments:True",
    "max_split_size_mb:32",
    "expandable_segments:True,max_split_size_mb:32",
    "roundup_power2_divisions:4",
    "garbage_collection_threshold:0.5,per_process_memory_fraction:0.7",
    "garbage_collection_threshold:0.5,per_process_memory_fraction:0.7,max_split_size_mb:20",
    "expandable_segments:True,large_segment_size_mb:12",
];

/// Blocks of a segment follow each other without gap or overlap, and what is mapped is what is reserved.
#[track_caller]
fn check_blocks(allocator: &mut Allocator) {
    let blocks = &allocator.blocks;
    let gone = |block: &usize| allocator.unused.contains(&(*block as u32));
    let mut reserved = 0;
    let mut ranges = Vec::new();
    for index in (0..blocks.len()).filter(|block| !gone(block)) {
        let block = &blocks[index];
        if block.state != State::Unmapped {
            reserved += block.size;
        }
        ranges.push((block.address, block.size));
        if let Some(next) = blocks.get(block.next as usize) {
            assert_eq!(next.address, block.address + block.size);
            assert_eq!(next.previous as usize, index);
            // Free neighbours are one block.
            assert!(block.state == State::Allocated || block.state != next.state);
        }
    }
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:?} overlap");
    }
    let counters = *allocator.counters();
    assert_eq!(reserved, counters.reserved.current.get());
    let free: u64 = allocator
        .pools
        .iter_mut()
        .flat_map(|pool| pool.free.iter())
        .map(|entry| entry.size)
        .sum();
    let active = counters.active.current.get();
    assert_eq!(free + active, counters.reserved.current.get());
}

#[test]
fn blocks_tile_their_segments_and_everything_merges_back() {
    for (seed, text) in (1..).zip(ALL_SETTINGS) {
        for card in [Card::UNLIMITED, Card::usable(Bytes::gib(1.5))] {
            let mut allocator = Allocator::new(Settings::parse(text).0, card);
            let events = program(seed, seed % 3 + 1);
            for (place, event) in events.iter().enumerate() {
                match *event {
                    Request::Malloc {
                        handle,
                        bytes,
                        stream,
                    } => drop(allocator.malloc_on(handle, bytes, stream)),
                    Request::Free { handle } => allocator.free(handle),
                    Request::FreeDeferred { handle } => allocator.free_deferred(handle),
                    Request::EmptyCache => allocator.empty_cache(),
                    Request::ResetPeaks => allocator.reset_peaks(),
                }
                if place % 97 == 0 && allocator.pending.is_empty() {
                    check_blocks(&mut allocator);
                }
            }
            allocator.release_pending();
            check_blocks(&mut allocator);
            let counters = *allocator.counters();
            assert_eq!(counters.allocated.current, Bytes::ZERO);
            assert_eq!(counters.requested.current, Bytes::ZERO);
            assert_eq!(counters.inactive_split.current, Bytes::ZERO);
            if !allocator.settings.expandable_segments {
                assert_eq!(allocator.free_blocks() as u64, counters.segments);
            }
            allocator.empty_cache();
            assert_eq!(allocator.counters().reserved.current, Bytes::ZERO);
            assert_eq!(allocator.free_blocks(), 0);
        }
    }
}

/// A transient allocation counts as an allocation and a free, and changes nothing later.
#[test]
fn a_transient_allocation_equals_a_request_and_a_free() {
    for (seed, text) in (1..).zip(ALL_SETTINGS) {
        let (settings, _) = Settings::parse(text);
        let [mut two, mut one] =
            [(); 2].map(|()| Allocator::new(settings.clone(), Card::usable(Bytes::gib(1.5))));
        let mut random = Random(seed);
        for event in program(seed, 1) {
            let magnitude = 1 + random.below(25);
            let moment = Bytes::new(random.below(1 << magnitude));
            let taken = two
                .malloc(4000, moment)
                .map(|()| two.counters().allocated.current.get());
            two.free(4000);
            assert_eq!(one.malloc_and_free(4000, moment), taken, "{text}");
            for allocator in [&mut two, &mut one] {
                match event {
                    Request::Malloc { handle, bytes, .. } => drop(allocator.malloc(handle, bytes)),
                    Request::Free { handle } => allocator.free(handle),
                    Request::FreeDeferred { handle } => allocator.free_deferred(handle),
                    Request::EmptyCache => allocator.empty_cache(),
                    Request::ResetPeaks => allocator.reset_peaks(),
                }
            }
            assert_eq!(one.counters(), two.counters(), "{text}");
        }
    }
}

#[test]
fn a_used_allocator_replays_as_a_fresh_one() {
    let events = program(5, 2);
    for text in ALL_SETTINGS {
        let (settings, _) = Settings::parse(text);
        let fresh = replay(&events, &settings, Card::UNLIMITED);
        let mut used = Allocator::new(settings, Card::UNLIMITED);
        for event in &program(6, 1) {
            if let Request::Malloc { handle, bytes, .. } = event {
                used.malloc(*handle, *bytes).unwrap();
            }
        }
        used.reset();
        assert_eq!(replay::run(&mut used, &events[..]).0, fresh);
    }
}

#[test]
fn the_smallest_card_runs_and_is_between_the_peaks() {
    let events: Vec<Request> = program(9, 1);
    for text in ["", "expandable_segments:True", "max_split_size_mb:32"] {
        let (settings, _) = Settings::parse(text);
        let card = smallest_card(&events[..], &settings, None).unwrap();
        let boundless = replay(&events, &settings, Card::UNLIMITED).counters;
        assert!(boundless.allocated.peak <= card);
        assert!(card <= boundless.reserved.peak + Bytes::mib(1));
        let on_it = replay(&events, &settings, Card::usable(card));
        assert_eq!(on_it.failure, None);
        let below = Card::usable(card - Bytes::mib(1));
        assert!(replay(&events, &settings, below).failure.is_some());
    }
}
