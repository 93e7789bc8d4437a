//! What comes from a link, a file or a paste: bounded work, no panic, whatever it asks for.

use std::collections::BTreeSet;

use headroom_advice::doctor::{Findings, diagnose};
use headroom_base::units::Bytes;
use headroom_catalog as catalog;
use headroom_core::allocator::{Card, Request, Settings, replay, smallest_card};
use headroom_core::estimate::{Unsupported, quick_peak};
use headroom_io::import::{self, snapshot::Snapshot};
use headroom_scenario::share;
use headroom_scenario::{Scenario, settings};
use headroom_scripts::{Alone, File};
use headroom_testing::slow;

#[test]
fn a_short_text_cannot_ask_for_endless_work() {
    #[track_caller]
    fn check(link: &str) {
        headroom_systems::install();
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
    // What is looked up or waits in each pass is work, too.
    for lifetime in ["persistent", "backward"] {
        check(&format!(
            "v=1&network=sizes,h=8;input,kind=values,shape=batch:4:h;part,name=a,passes=10000;linear,out=h;\
             tensor,name=t,shape=batch:8,count=1000,lifetime={lifetime},part=a"
        ));
    }
    check("v=1&model=llama-3.1-8b&task=kto&task_head=logits&mb=1000000");
    check("v=1&model=sdxl-unet&dims=layers_per_block=1000");
    check("v=1&model=peptrm&accum=1000&dims=supervision_steps=400");
}

#[test]
fn counts_of_heads_and_ranks_are_bounded() {
    headroom_systems::install();
    let refused = |link: &str| {
        let found = quick_peak(&share::read(link).scenario);
        found.map_err(|why| why.to_string())
    };
    let kv = refused("v=1&model=stablelm-2-12b&dims=kv=10000000");
    assert_eq!(kv, Err("kv is 10000000; expected at most 1000".into()));
    // As many slices as ranks are joined one by one.
    for stage in ["zero1", "zero2"] {
        assert!(refused(&format!("v=1&model=gpt2&gpus=100000&par={stage}")).is_ok());
    }
}

/// Work that grows with the square of these lengths would take hours.
#[test]
fn long_pastes_are_read_in_linear_time() {
    let lines = |count: usize, line: &dyn Fn(usize) -> String| {
        (0..count).rev().map(line).collect::<Vec<_>>().join("\n")
    };
    let keys: Vec<String> = (0..400_000).map(|key| format!("\"k{key}\":1")).collect();
    for text in [
        format!("{{\"peak_allocated\":1,\"step\":1,{}}}", keys.join(",")),
        lines(60_000, &|step| {
            format!("{{\"step\":{step},\"peak_allocated\":9,\"allocated\":{step},\"reserved\":9}}")
        }),
        lines(40_000, &|rank| {
            format!("[rank{rank}]: out of memory. Tried to allocate 2.00 MiB.")
        }),
        "Process 1 has ".repeat(250_000),
        "1/1 [".repeat(400_000),
    ] {
        let diagnosis = diagnose(&Findings::parse(&text).unwrap_or_default(), None);
        assert!((0.0..=1.0).contains(&diagnosis.confidence));
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
    headroom_systems::install();
    // One model of each architecture: its forward function is the same for all. Each size at each value, and again with all
    // others as large, so that their products are.
    let mut seen = BTreeSet::new();
    let mut firsts: Vec<&catalog::ModelEntry> = catalog::models().iter().collect();
    firsts.retain(|model| seen.insert(model.arch));
    let every = if slow() { 1 } else { 6 };
    let firsts: Vec<_> = firsts.into_iter().step_by(every).collect();
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
    let script = |text: &str| File {
        name: "run.sh".into(),
        text: text.into(),
    };
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
        let _ = import::files(&[script(text)], &Alone, None);
    }
    let canary = std::env::temp_dir().join("headroom-import-canary");
    let _ = std::fs::remove_file(&canary);
    let path = canary.display();
    let text = format!(
        "model = AutoModel.from_pretrained(open('{path}', 'w').name)\nos.system('touch {path}')\nTrainer(model, output_dir='x')\n\
         x=$(touch {path}) y=`touch {path}` python -m verl.trainer.main_ppo actor_rollout_ref.model.path=$(touch {path})"
    );
    let _ = import::files(&[script(&text)], &Alone, None);
    assert!(!canary.exists());
}
