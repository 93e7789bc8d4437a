//! Nanoseconds an allocator event costs: `cargo bench --bench allocator --profile fast`.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use headroom_base::units::Bytes;
use headroom_core::allocator::{Allocator, Card, Request, Settings, replay};

/// A training step's shape: every layer saves some tensors and drops its temporaries, backward frees them in reverse,
/// and the optimizer works through the parameters. Steps differ in length.
fn steps(layers: u32, steps: u64) -> Vec<Request> {
    let mut events = Vec::new();
    let mut spare: Vec<u32> = Vec::new();
    let mut handles = 0;
    let mut take = |events: &mut Vec<Request>, spare: &mut Vec<u32>, bytes: u64| {
        let handle = spare.pop().unwrap_or_else(|| {
            handles += 1;
            handles - 1
        });
        events.push(Request::Malloc {
            handle,
            bytes: Bytes::new(bytes),
            stream: 0,
        });
        handle
    };
    let give = |events: &mut Vec<Request>, spare: &mut Vec<u32>, handle: u32| {
        events.push(Request::Free { handle });
        spare.push(handle);
    };
    for step in 0..steps {
        let tokens = 1024 + step * 389 % 1024;
        let mut saved = Vec::new();
        for _ in 0..layers {
            for width in [2048, 6144, 2048, 8192, 8192, 2048, 2] {
                saved.push(take(&mut events, &mut spare, tokens * width * 2));
                let temporary = take(&mut events, &mut spare, tokens * width * 4);
                let small = take(&mut events, &mut spare, tokens * 4);
                give(&mut events, &mut spare, temporary);
                give(&mut events, &mut spare, small);
            }
        }
        let mut gradients = Vec::new();
        while let Some(handle) = saved.pop() {
            let flowing = take(&mut events, &mut spare, tokens * 2048 * 2);
            gradients.push(take(&mut events, &mut spare, 2048 * 2048 * 2));
            give(&mut events, &mut spare, handle);
            give(&mut events, &mut spare, flowing);
        }
        for handle in gradients {
            give(&mut events, &mut spare, handle);
        }
    }
    events
}

fn allocator(criterion: &mut Criterion) {
    let events = steps(32, 12);
    let mut group = criterion.benchmark_group("allocator, per event");
    group
        .throughput(Throughput::Elements(events.len() as u64))
        .sample_size(20)
        .measurement_time(Duration::from_secs(3));
    for text in [
        "backend:native",
        "expandable_segments:True",
        "max_split_size_mb:128",
        "roundup_power2_divisions:8",
    ] {
        let (settings, _) = Settings::parse(text);
        let mut allocator = Allocator::new(settings.clone(), Card::UNLIMITED);
        group.bench_function(text, |bencher| {
            bencher.iter(|| {
                allocator.reset();
                for event in &events {
                    match *event {
                        Request::Malloc { handle, bytes, .. } => {
                            let _ = black_box(allocator.malloc(handle, bytes));
                        }
                        Request::Free { handle } => allocator.free(handle),
                        _ => {}
                    }
                }
                allocator.counters().reserved.peak
            });
        });
        group.bench_function(format!("{text}, tight card"), |bencher| {
            let room = replay(&events, &settings, Card::UNLIMITED)
                .counters
                .allocated
                .peak;
            let card = Card::usable(room.scale(1.2));
            bencher.iter(|| replay(&events, &settings, card).counters.retries);
        });
    }
    group.finish();
}

criterion_group!(benches, allocator);
criterion_main!(benches);
