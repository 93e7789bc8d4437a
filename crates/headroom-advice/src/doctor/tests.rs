//! The first cause and its confidence, for texts with an obvious cause.

use super::*;
use headroom_base::units::Bytes;

/// The first cause of a text without a scenario.
#[track_caller]
fn check(text: &str, cause: Cause, sure: std::ops::RangeInclusive<f64>) {
    let diagnosis = diagnose(&Findings::parse(text).unwrap(), None);
    assert_eq!(diagnosis.cause, cause, "{text}\n{diagnosis:#?}");
    assert!(
        sure.contains(&diagnosis.confidence),
        "{text}\n{diagnosis:#?}"
    );
    assert!(!diagnosis.evidence.is_empty() && !diagnosis.advice.is_empty());
    for line in &diagnosis.evidence {
        assert!(!line.contains("  "), "{line}");
    }
}

const USAGE: PredictedUsage = PredictedUsage {
    peak: Bytes::ZERO,
    between_steps: Bytes::mib(1500),
    eval_every: 0,
    save_every: 0,
    replayed: None,
    uneven: None,
    recognized: None,
    typical: None,
    varies: true,
    growth: None,
};

/// An error of a current PyTorch, in MiB.
fn error(tried: u64, total: u64, free: u64, extra: &str, allocated: u64, holes: u64) -> String {
    let used = total - free;
    format!(
        "CUDA out of memory. Tried to allocate {tried}.00 MiB. GPU 0 has a total capacity of {total}.00 MiB of which \
         {free}.00 MiB is free. {extra}Including non-PyTorch memory, this process has {used}.00 MiB memory in use. Of \
         the allocated memory {allocated}.00 MiB is allocated by PyTorch, and {holes}.00 MiB is reserved by PyTorch but \
         unallocated."
    )
}

#[test]
fn only_other_processes_and_limits_have_high_confidence() {
    let other = "Process 24817 has 3000.00 MiB memory in use. ";
    check(
        &error(800, 9000, 100, other, 4000, 1000),
        Cause::OtherProcess,
        0.8..=0.95,
    );
    let limit =
        error(500, 5000, 2600, "", 2000, 100).replace("Of the", "2500.00 MiB allowed; Of the");
    check(&limit, Cause::Capacity, 0.8..=0.95);
    check(
        &error(800, 6500, 700, "", 4200, 1200),
        Cause::Fragmentation,
        0.2..=0.7,
    );
    check(
        &error(2000, 8500, 1300, "", 6500, 200),
        Cause::Capacity,
        0.2..=0.7,
    );
    let finder = "RuntimeError: No executable batch size found, reached zero.";
    check(finder, Cause::Capacity, 0.7..=0.95);
    check(
        "RuntimeError: CUDA error: out of memory",
        Cause::OtherProcess,
        0.0..=0.65,
    );
    check(
        "DataLoader worker (pid 9) is killed by signal: Killed.",
        Cause::HostMemory,
        0.8..=0.95,
    );
    // A process of a display is too small to be the cause.
    let display = error(
        200,
        24000,
        100,
        "Process 812 has 90.00 MiB memory in use. ",
        21000,
        500,
    );
    check(&display, Cause::Capacity, 0.0..=0.65);
}

#[test]
fn the_phase_and_the_step_move_the_ranking() {
    let full = error(700, 8000, 300, "", 6800, 400);
    check(&format!("step 0\n{full}"), Cause::Capacity, 0.6..=0.8);
    check(&format!("step 743\n{full}"), Cause::Outlier, 0.2..=0.7);
    check(
        &format!("step 743 in evaluate\n{full}"),
        Cause::Evaluation,
        0.7..=0.95,
    );
}

#[test]
fn another_empty_gpu_means_the_wrong_one_was_used() {
    let smi = "\
|   0  NVIDIA A100-SXM4-40GB          On  |   00000000:07:00.0 Off |                    0 |
| N/A   31C    P0              56W / 400W |  40000MiB / 40960MiB   |      0%      Default |
|   1  NVIDIA A100-SXM4-40GB          On  |   00000000:0F:00.0 Off |                    0 |
| N/A   30C    P0              52W / 400W |      4MiB / 40960MiB   |      0%      Default |";
    check(
        &format!("CUDA error: out of memory\n{smi}"),
        Cause::WrongDevice,
        0.4..=0.7,
    );
}

#[test]
fn an_evaluation_of_the_scenario_at_the_failed_step_is_suspected() {
    let text = |step: u64| format!("step {step}\n{}", error(1000, 7000, 900, "", 4400, 1200));
    let cause = |step: u64, eval_every| {
        let expected = PredictedUsage {
            peak: Bytes::mib(3000),
            eval_every,
            ..USAGE
        };
        let findings = Findings::parse(&text(step)).unwrap();
        diagnose(&findings, Some(expected)).cause
    };
    assert_eq!(cause(79, 80), Cause::Evaluation);
    assert_eq!(cause(78, 80), Cause::Leak);
    assert_eq!(cause(79, 0), Cause::Schedule);
}

#[test]
fn a_replay_without_retries_keeps_fragmentation_first() {
    let text = format!("step 37\n{}", error(1000, 7000, 900, "", 4400, 1200));
    let findings = Findings::parse(&text).unwrap();
    let check = |replayed, expected| {
        let scenario = PredictedUsage {
            peak: Bytes::mib(5600),
            replayed,
            ..USAGE
        };
        assert_eq!(diagnose(&findings, Some(scenario)).cause, expected);
    };
    let all_run = Replayed {
        steps: 38,
        retries: 0,
        failed: None,
    };
    check(None, Cause::Fragmentation);
    check(Some(all_run), Cause::Fragmentation);
    // Steps in another order might not have run where it was this tight.
    let barely = Replayed {
        retries: 4,
        ..all_run
    };
    check(Some(barely), Cause::Fragmentation);
}

#[test]
fn the_scenario_distinguishes_capacity_from_fragmentation() {
    let check = |allocated, holes, peak, expected| {
        let text = format!("step 37\n{}", error(1000, 7000, 900, "", allocated, holes));
        let scenario = PredictedUsage {
            peak: Bytes::mib(peak),
            ..USAGE
        };
        let findings = Findings::parse(&text).unwrap();
        assert_eq!(diagnose(&findings, Some(scenario)).cause, expected);
    };
    check(4400, 1200, 6000, Cause::Fragmentation);
    check(5200, 400, 9000, Cause::Outlier);
    check(4400, 1200, 3000, Cause::Leak);
}

#[test]
fn a_scenario_that_does_not_fit_explains_an_error_that_says_only_how_large_the_gpu_is() {
    let text =
        "CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 8.00 GiB.";
    let findings = Findings::parse(text).unwrap();
    let cause = |peak| {
        let scenario = PredictedUsage {
            peak: Bytes::mib(peak),
            ..USAGE
        };
        diagnose(&findings, Some(scenario)).cause
    };
    assert_eq!(cause(12_000), Cause::Capacity);
    assert_eq!(cause(3_000), diagnose(&findings, None).cause);
}

#[test]
fn context_comes_before_numbers() {
    let full = error(700, 8000, 300, "", 6800, 400);
    check(
        &format!("File \"adamw.py\", in step\n state['exp_avg'] =\n{full}"),
        Cause::OptimizerStep,
        0.7..=0.95,
    );
    check(
        &format!("UserWarning: Failed to clone() tensor ... state_dict entry\n{full}"),
        Cause::Checkpoint,
        0.7..=0.95,
    );
    check(
        "jax: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 285212672 bytes.",
        Cause::NotOutOfMemory,
        0.8..=0.95,
    );
    check(
        &error(900_000_000, 8000, 300, "", 6800, 400),
        Cause::NotOutOfMemory,
        0.7..=0.95,
    );
    let siblings = "Process 1563102 has 3000.00 MiB memory in use. Process 1563104 has 1000.00 MiB memory in use. ";
    check(
        &error(700, 8000, 300, siblings, 2800, 400),
        Cause::WrongDevice,
        0.7..=0.95,
    );
    let mps = |own: &str, others: &str| {
        format!(
            "MPS backend out of memory (MPS allocated: {own}, other allocations: {others}, max allowed: 9.07 GB). Tried to allocate 563.62 MB on private pool."
        )
    };
    check(&mps("8.45 GB", "7.42 MB"), Cause::Capacity, 0.6..=0.8);
    check(&mps("1.45 GB", "7.42 GB"), Cause::OtherProcess, 0.5..=0.75);
}

/// A log of steps with these sizes and this memory between steps, and a failure after them.
fn log(steps: &[(u64, u64)], failed: (u64, u64, u64, u64)) -> String {
    let mut text = String::new();
    for (step, (size, between)) in steps.iter().enumerate() {
        text += &format!(
            "{{\"step\":{step},\"size\":{size},\"peak_allocated\":{},\"allocated\":{},\"reserved\":0}}\n",
            (between + size * 4) << 20,
            between << 20
        );
    }
    let (size, allocated, reserved, free) = failed;
    let step = steps.len();
    text + &format!(
        "{{\"step\":{step},\"size\":{size},\"peak_allocated\":{a},\"allocated\":{a},\"reserved\":{},\"free\":{},\
         \"total\":9000000000,\"requested\":{},\"oom\":true}}\n",
        reserved << 20,
        free << 20,
        500 << 20,
        a = allocated << 20,
    )
}

#[test]
fn a_history_shows_the_cause() {
    let varied = |between: fn(u64) -> u64| -> Vec<(u64, u64)> {
        (0..40)
            .map(|step| (600 + step * 37 % 400, between(step)))
            .collect()
    };
    let level = varied(|_| 1000);
    check(
        &log(&level, (1900, 7000, 7400, 300)),
        Cause::Outlier,
        0.65..=0.95,
    );
    check(
        &log(&level, (800, 3000, 4900, 300)),
        Cause::Fragmentation,
        0.65..=0.95,
    );
    check(
        &log(&level, (800, 6500, 6900, 300)),
        Cause::Schedule,
        0.65..=0.95,
    );
    check(
        &log(&varied(|step| 1000 + 50 * step), (800, 5000, 5400, 300)),
        Cause::Leak,
        0.65..=0.95,
    );
    let jump = varied(|step| if step < 30 { 1000 } else { 2500 });
    check(
        &log(&jump, (950, 5000, 5400, 300)),
        Cause::Schedule,
        0.65..=0.95,
    );
    let same: Vec<(u64, u64)> = vec![(500, 1000); 30];
    check(
        &log(&same, (1000, 4000, 4400, 300)),
        Cause::Schedule,
        0.45..=0.6,
    );
}

#[test]
fn optimizer_states_displace_the_second_step() {
    let step = |step: i64, allocated: u64| {
        let bytes = allocated << 20;
        format!(
            "{{\"step\":{step},\"size\":500,\"peak_allocated\":{bytes},\"allocated\":{bytes},\"reserved\":0}}\n"
        )
    };
    let failed = log(&[], (500, 7000, 7400, 300)).replace("\"step\":0", "\"step\":1");
    check(
        &(step(-1, 1000) + &step(0, 3000) + &failed),
        Cause::OptimizerStep,
        0.55..=0.8,
    );
}

#[test]
fn nearly_empty_texts_have_low_confidence() {
    assert_eq!(Findings::parse("all is well"), None);
    for text in [
        "CUDA out of memory",
        "out of memory. Tried to allocate ",
        "| 1MiB / 2MiB |",
    ] {
        let diagnosis = diagnose(&Findings::parse(text).unwrap_or_default(), None);
        assert!(diagnosis.confidence <= 0.6);
        assert!(!diagnosis.checks.is_empty());
    }
}

#[test]
fn mutated_texts_never_panic() {
    let mut state = 7_u64;
    let mut below = move |end: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % end
    };
    let smi = "|   0  NVIDIA A100 On  | 1 |\n| N/A | 40000MiB / 40960MiB |\n|    0   N/A  1234  C   p  9MiB |";
    let all = format!(
        "step 37 ▏12/300 [\n{}\n{}\n{smi}\n| Allocated memory | 1062 MB | 4877 MB |",
        error(
            800,
            9000,
            100,
            "Process 24817 has 3000.00 MiB memory in use. ",
            4000,
            1000
        ),
        log(&[(600, 1000); 6], (600, 3000, 3400, 300)),
    );
    let pieces: Vec<char> = all.chars().collect();
    let odd = ['9', '.', '|', '/', ' ', 'é', '\n', '{', '-', 'e'];
    for _ in 0..400 {
        let mut text = pieces.clone();
        for _ in 0..=below(20) {
            let at = below(text.len());
            match below(4) {
                0 => drop(text.splice(at..at, std::iter::repeat_n('9', 25))),
                1 => text[at] = odd[below(odd.len())],
                2 => text.truncate(at.max(1)),
                _ => drop(text.drain(at..(at + below(40)).min(text.len()))),
            }
            if text.is_empty() {
                break;
            }
        }
        let text: String = text.into_iter().collect();
        if let Some(findings) = Findings::parse(&text) {
            let diagnosis = diagnose(&findings, None);
            assert!((0.0..=1.0).contains(&diagnosis.confidence), "{text}");
        }
    }
}

#[test]
fn ranks_on_one_gpu_are_recognized() {
    let others = "Process 70001 has 3000.00 MiB memory in use. ";
    let of_ranks = |extra: &str, used: &str| {
        let of_rank = |rank: u64| {
            let failed = error(800, 9000, 100, extra, 4000, 1000);
            let failed = failed.replace("has 8900.00 MiB memory", used);
            format!("[rank{rank}]: torch.OutOfMemoryError: {failed}\n")
        };
        [of_rank(0), of_rank(3)].concat()
    };
    let shared = of_ranks(others, "has 5800.00 MiB memory");
    check(&shared, Cause::WrongDevice, 0.8..=0.95);
    let alone = of_ranks("", "has 8900.00 MiB memory");
    check(&alone, Cause::Fragmentation, 0.2..=0.7);
}

#[test]
fn nccl_errors_are_distinguished() {
    let nccl = |last: &str| {
        format!(
            "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3384, unhandled cuda error, NCCL version 2.26.2\n\
             ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\n{last}"
        )
    };
    check(
        &nccl("Cuda failure 2 'out of memory'"),
        Cause::Capacity,
        0.4..=0.7,
    );
    check(
        &nccl("Cuda failure 101 'invalid device ordinal'"),
        Cause::NotOutOfMemory,
        0.5..=0.75,
    );
    check(
        "ncclInvalidUsage: Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 7000",
        Cause::WrongDevice,
        0.9..=0.95,
    );
}

#[test]
fn a_fuller_first_stage_is_named() {
    let text = format!("step 0\n{}", error(1000, 7000, 300, "", 6000, 400));
    let stages = |most| StageImbalance {
        stage: 0,
        count: 4,
        most: Bytes::mib(most),
        least: Bytes::mib(3000),
    };
    let expected = PredictedUsage {
        peak: Bytes::mib(9000),
        uneven: Some(stages(9000)),
        ..USAGE
    };
    let found = diagnose(&Findings::parse(&text).unwrap(), Some(expected));
    assert_eq!(
        found.changes.first(),
        Some(&Change::BalanceStages),
        "{found:#?}"
    );
    assert!(
        found
            .evidence
            .iter()
            .any(|line| line.starts_with("Stage 0 of the scenario's 4"))
    );
}
