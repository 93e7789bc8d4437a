//! What comes from a link, a file or a paste: bounded work, no panic, whatever it asks for. `HEADROOM_CASES` says how many of
//! those that are made up are tried.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use headroom_advice::doctor::{Findings, diagnose};
use headroom_base::units::Bytes;
use headroom_catalog as catalog;
use headroom_core::allocator::{Card, Request, Settings, replay, smallest_card};
use headroom_core::estimate::{Unsupported, quick_peak};
use headroom_io::import::{self, snapshot::Snapshot};
use headroom_scenario::share;
use headroom_scenario::{Scenario, presets, settings};

#[test]
fn a_short_text_cannot_ask_for_endless_work() {
    #[track_caller]
    fn check(link: &str) {
        let scenario = share::read(link).scenario;
        assert_eq!(
            quick_peak(&scenario),
            Err(Unsupported::TooMuchWork),
            "{link}"
        );
    }
    check(
        "v=1&network=sizes,h=8;input,kind=values,shape=batch:4:h;part,name=a,passes=10000;linear,out=h;\
         tensor,name=t,shape=batch:8,count=1000,lifetime=saved,part=a",
    );
    check("v=1&model=sdxl-unet&dims=layers_per_block=1000");
    check("v=1&model=peptrm&accum=1000&dims=supervision_steps=400");
}

/// The shortest of a few readings: whatever else the machine does only adds.
fn reading(text: &str) -> Duration {
    let read = || {
        let start = Instant::now();
        if let Some(findings) = Findings::parse(text) {
            let diagnosis = diagnose(&findings, None);
            assert!((0.0..=1.0).contains(&diagnosis.confidence));
        }
        start.elapsed()
    };
    (0..3).map(|_| read()).fold(Duration::MAX, Duration::min)
}

#[test]
fn long_pastes_are_read_in_linear_time() {
    let keys = |count: usize| {
        let keys: Vec<String> = (0..count).map(|key| format!("\"k{key}\":1")).collect();
        format!("{{\"peak_allocated\":1,\"step\":1,{}}}", keys.join(","))
    };
    let steps = |count: usize| {
        let line = |step| {
            format!("{{\"step\":{step},\"peak_allocated\":9,\"allocated\":{step},\"reserved\":9}}")
        };
        (0..count).map(line).collect::<Vec<_>>().join("\n")
    };
    let ranks = |count: usize| {
        let line = |rank| format!("[rank{rank}]: out of memory. Tried to allocate 2.00 MiB.");
        (0..count).rev().map(line).collect::<Vec<_>>().join("\n")
    };
    let making: [(&str, &dyn Fn(usize) -> String); 5] = [
        ("keys", &|times| keys(20_000 * times)),
        ("steps", &|times| steps(3_000 * times)),
        ("ranks", &|times| ranks(2_000 * times)),
        ("processes", &|times| {
            "Process 1 has ".repeat(12_000 * times)
        }),
        ("bars", &|times| "1/1 [".repeat(20_000 * times)),
    ];
    for (name, make) in making {
        let (once, eight_times) = (reading(&make(1)), reading(&make(8)));
        // Eight times as much of what grows with the square is 64 times as long; caches and other tests may triple what is linear.
        let most = once * 32 + Duration::from_millis(20);
        assert!(eight_times < most, "{name}: {once:?} {eight_times:?}");
    }
}

#[test]
fn every_number_has_one_text_that_reads_as_itself() {
    for text in ["1e-308", "0.30000000000000004", "1e-19", "0"] {
        for setting in settings::all() {
            let mut scenario = Scenario::default();
            if setting.set(&mut scenario, text).is_ok() {
                let link = share::write(&scenario);
                // What means nothing to the task is not in a link.
                if !link.contains(&format!("&{}=", setting.key)) {
                    continue;
                }
                assert_eq!(
                    share::read(&link).scenario,
                    scenario,
                    "{} {text}",
                    setting.path
                );
            }
        }
    }
}

#[test]
fn no_size_of_any_network_overflows() {
    const SIZES: [u64; 5] = [0, 1, 1_000, 10_000_000, 1_000_000_000_000_000];
    // One model of each architecture: its forward function is the same for all. Each size at each value, and again with all
    // others as large, so that their products are.
    let mut seen = BTreeSet::new();
    let mut firsts: Vec<&catalog::ModelEntry> = catalog::models().iter().collect();
    firsts.retain(|model| seen.insert(model.arch));
    let every_size = |model: &catalog::ModelEntry| {
        let names: Vec<&str> = model.sizes().into_iter().map(|(name, _)| name).collect();
        let check = |dims: &[(&str, u64)]| {
            let mut scenario = Scenario::default();
            scenario.model.id = model.id.into();
            let dims = dims.iter().map(|(name, size)| ((*name).to_string(), *size));
            scenario.model.dims = dims.collect();
            // A number or a reason; overflow checks are on in tests.
            let _ = quick_peak(&scenario);
        };
        for size in SIZES {
            for name in &names {
                check(&[(name, size)]);
            }
            let all: Vec<(&str, u64)> = names.iter().map(|name| (*name, size)).collect();
            check(&all);
        }
    };
    std::thread::scope(|threads| {
        for part in firsts.chunks(firsts.len().div_ceil(4)) {
            threads.spawn(move || part.iter().for_each(|model| every_size(model)));
        }
    });
}

/// How many are tried of what there is without end: `HEADROOM_CASES` says, where it is set.
fn cases(usual: usize) -> usize {
    let asked = std::env::var("HEADROOM_CASES").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Presets' links, each changed at a few places, read and written again; the longest that one took.
fn mutate_links(count: usize, seed: u64) -> Duration {
    const LETTERS: &[u8] = b"&=,:;+-.%#0189eEvmxyz_[]{}\"' \xc3\xa9";
    let links: Vec<String> = presets::all()
        .iter()
        .map(|preset| share::write(&preset.scenario()))
        .collect();
    let mut state = 0x2545_f491_4f6c_dd1d_u64 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut below = |most: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % most.max(1) as u64) as usize
    };
    let mut longest = Duration::ZERO;
    for _ in 0..count {
        let mut bytes = links[below(links.len())].clone().into_bytes();
        for _ in 0..=below(6) {
            let at = below(bytes.len());
            let letter = LETTERS[below(LETTERS.len())];
            match below(4) {
                0 => bytes[at] = letter,
                1 => bytes.insert(at, letter),
                2 => bytes.truncate(at + 1),
                _ => {
                    let piece = bytes[at..(at + 1 + below(20)).min(bytes.len())].to_vec();
                    let to = below(bytes.len());
                    bytes.splice(to..to, piece);
                }
            }
        }
        let link = String::from_utf8_lossy(&bytes);
        let start = Instant::now();
        let scenario = share::read(&link).scenario;
        longest = longest.max(start.elapsed());
        // What was understood is a scenario with a link of its own.
        let again = share::read(&share::write(&scenario));
        assert_eq!(again.scenario, scenario, "{link}");
    }
    longest
}

#[test]
fn mutated_links_are_read_or_refused() {
    let each = cases(6_000).div_ceil(2);
    let longest = std::thread::scope(|threads| {
        let all = [0, 1].map(|seed| threads.spawn(move || mutate_links(each, seed)));
        all.map(|thread| thread.join().unwrap()).into_iter().max()
    });
    // A link is read in microseconds; what else the machine does may take its turn in between.
    assert!(longest < Some(Duration::from_millis(250)), "{longest:?}");
}

#[test]
fn links_of_unknown_keys_name_a_few_and_count_the_rest() {
    let keys: Vec<String> = (0..1_500).map(|key| format!("k{key}=1")).collect();
    let problems = share::read(&format!("v=1&{}", keys.join("&"))).problems;
    assert!(problems.len() <= 20, "{}", problems.len());
    let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert!(all.join(" ").contains("14"), "{all:?}");
}

#[test]
fn a_long_run_is_still_told_whether_it_runs_on_its_card() {
    // Blocks of two sizes in turn, of which more and more stay: too many requests to replay them often.
    let requests: Vec<Request> = (0..400_000)
        .map(|at| {
            let handle = (at / 2) as u32;
            if at % 2 == 1 && !handle.is_multiple_of(64) {
                return Request::Free { handle };
            }
            let bytes = Bytes::mib(if handle.is_multiple_of(3) { 3 } else { 1 });
            Request::Malloc {
                handle,
                bytes,
                stream: 0,
            }
        })
        .collect();
    let settings = Settings::default();
    let all = replay(&requests, &settings, Card::UNLIMITED)
        .counters
        .reserved
        .peak;
    for percent in [50, 90, 97, 98, 99, 100] {
        let room = Bytes::mib((all.get() / 100 * percent) >> 20);
        let found = smallest_card(&requests[..], &settings, Some(room)).unwrap();
        let runs = replay(&requests, &settings, Card::usable(room));
        assert_eq!(found <= room, runs.failure.is_none(), "{room} {found}");
    }
}

#[test]
fn a_pickle_that_refers_to_itself_again_and_again_is_read_in_bounded_time() {
    // One block, which one list has a million times, which one segment has, which the list of segments has a million times.
    let million = |item: u8| [b'h', item].repeat(1_000_000);
    let text = |text: &str| [&[0x8c, text.len() as u8][..], text.as_bytes()].concat();
    let mut pickle = vec![0x80, 4];
    pickle.extend(b"}(");
    pickle.extend(text("state"));
    pickle.extend(text("active_allocated"));
    pickle.extend(text("size"));
    pickle.extend(b"K\x09u\x94](");
    pickle.extend(million(0));
    pickle.extend(b"e\x94}(");
    pickle.extend(text("blocks"));
    pickle.extend(b"h\x01u\x94](");
    pickle.extend(million(2));
    pickle.extend(b"e.");
    let refused = Snapshot::read(&pickle).unwrap_err();
    assert!(refused.contains("blocks"), "{refused}");
}

#[test]
fn scripts_of_other_programs_are_read_in_bounded_time_and_nothing_is_run() {
    let run = Scenario::default();
    let long = [
        format!("X.from_pretrained({}", "(".repeat(500_000)),
        format!("X.from_pretrained(\n{}", "a=[a,a,a]\n".repeat(20_000)),
        format!(
            "python -m verl.trainer.main_ppo actor_rollout_ref.model.path=a {}",
            "a.b.c.d=1 ".repeat(100_000)
        ),
        format!(
            "L=({}\npython -m verl.trainer.main_ppo \"${{L[@]}}\"",
            "\"${L[@]}\" x ".repeat(20_000)
        ),
        format!("a=$(({}", "(1+".repeat(200_000)),
    ];
    for text in &long {
        let _ = import::script(text, &run);
    }
    let canary = std::env::temp_dir().join("headroom-import-canary");
    let _ = std::fs::remove_file(&canary);
    let path = canary.display();
    let script = format!(
        "model = AutoModel.from_pretrained(open('{path}', 'w').name)\nos.system('touch {path}')\nTrainer(model, output_dir='x')\n\
         x=$(touch {path}) y=`touch {path}` python -m verl.trainer.main_ppo actor_rollout_ref.model.path=$(touch {path})"
    );
    let _ = import::script(&script, &run);
    assert!(!canary.exists());
}
