//! What comes from a link, a file or a paste: bounded work, no panic, whatever it asks for.

use headroom::estimate::{Unsupported, quick_peak};
use headroom::scenario::{Scenario, settings};
use headroom::share;
use headroom::strategy::doctor::{Findings, diagnose};

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

#[test]
fn long_pastes_are_read_in_linear_time() {
    let keys: Vec<String> = (0..100_000).map(|key| format!("\"k{key}\":1")).collect();
    let line = format!("{{\"peak_allocated\":1,\"step\":1,{}}}", keys.join(","));
    let steps: Vec<String> = (0..20_000)
        .map(|step| {
            format!("{{\"step\":{step},\"peak_allocated\":9,\"allocated\":{step},\"reserved\":9}}")
        })
        .collect();
    for text in [
        line,
        steps.join("\n"),
        "Process 1 has ".repeat(50_000),
        "1/1 [".repeat(200_000),
    ] {
        if let Some(findings) = Findings::parse(&text) {
            let diagnosis = diagnose(&findings, None);
            assert!((0.0..=1.0).contains(&diagnosis.confidence));
        }
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
