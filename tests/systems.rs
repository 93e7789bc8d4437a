//! Whatever is proposed for a research system can be run: its own program's files say the proposed scenario.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use headroom::estimate::Estimate;
use headroom::scenario::{Scenario, presets, settings};
use headroom::strategy::{Goal, MOVES, ladder};
use headroom::{export, share};

const SYSTEMS: [&str; 5] = ["dreams", "gsa-512m", "rna-3e-ffi", "prs-med", "peptrm"];
/// Cards, in GiB.
const CARDS: [u64; 6] = [8, 16, 24, 40, 48, 80];

/// The files are written, and the link in their header opens the scenario.
#[track_caller]
fn check(preset: &str, proposed: &Scenario, by: &str) {
    let own = export::own(proposed).unwrap();
    let files = (own.write)(proposed, &Estimate::default());
    let files = files.unwrap_or_else(|problems| panic!("{preset}, {by}: {problems:?}"));
    let script = files.iter().find(|file| file.name == "launch.sh").unwrap();
    let lines = script.contents.lines();
    let mut links = lines.filter_map(|line| line.strip_prefix("# Scenario: "));
    assert_eq!(
        &share::read(links.next().unwrap()).scenario,
        proposed,
        "{preset}, {by}"
    );
}

#[test]
fn what_moves_and_ladders_propose_is_what_is_exported() {
    for preset in SYSTEMS {
        let scenario = presets::find(preset).unwrap().scenario();
        check(preset, &scenario, "the preset");
        let mut offered = 0;
        for known in MOVES {
            if let Some(changed) = known.on(&scenario) {
                check(preset, &changed, known.id);
                offered += 1;
            }
        }
        assert!(offered > 0, "{preset}");
        for gib in CARDS {
            let mut scenario = scenario.clone();
            settings::set(&mut scenario, "mem", &(gib * 1024).to_string()).unwrap();
            let found = ladder(&scenario, Goal::default()).unwrap();
            for step in &found.steps {
                check(preset, &step.scenario, step.id);
            }
        }
    }
}
