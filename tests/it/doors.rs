//! Whatever is brought is read without a panic and in bounded work: files of every program, altered.

#![allow(clippy::unwrap_used)]

use headroom_core::estimate::Estimate;
use headroom_io::{export, import};
use headroom_scenario::presets::{self, Preset};
use headroom_scenario::resolve::resolve;
use headroom_scenario::{Scenario, share};
use headroom_scripts::{Alone, File};
use headroom_testing::{Dice, HOSTILE, slow};

/// A text with a piece taken out, doubled, moved, or replaced by something hostile.
fn altered(text: &str, dice: &mut Dice) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    for _ in 0..=dice.below(4) {
        if lines.is_empty() {
            break;
        }
        let at = dice.below(lines.len() as u64) as usize;
        match dice.below(5) {
            0 => {
                lines.remove(at);
            }
            1 => lines.insert(at, lines[at]),
            2 => {
                let other = dice.below(lines.len() as u64) as usize;
                lines.swap(at, other);
            }
            3 => lines[at] = dice.one_of(HOSTILE),
            _ => {
                let line = lines[at];
                let middle = line.char_indices().nth(line.chars().count() / 2);
                lines[at] = &line[..middle.map_or(0, |(at, _)| at)];
            }
        }
    }
    lines.join("\n")
}

#[test]
fn altered_files_of_every_program_are_read_or_refused() {
    let rounds = if slow() { 4 } else { 1 };
    let mut dice = Dice::new(41);
    let mut kinds = std::collections::BTreeSet::new();
    let presets = presets::all().iter().map(Preset::scenario);
    let all: Vec<Scenario> = presets.collect();
    for scenario in all.iter().cycle().take(rounds * all.len()) {
        let all = export::all(scenario, &Estimate::default());
        for (target, files) in all {
            for file in files.into_iter().flatten() {
                let kind = file.name.rsplit('.').next().unwrap_or_default();
                kinds.insert((target.id, kind.to_string()));
                // Without its link it is a file of the program.
                let lines = file.contents.lines();
                let plain: Vec<&str> = lines
                    .filter(|line| !line.starts_with("# Scenario: "))
                    .collect();
                let text = altered(&plain.join("\n"), &mut dice);
                let file = File {
                    name: file.name.into(),
                    text,
                };
                let brought = import::files(&[file], &Alone, Some(&Scenario::default()));
                let link = share::write(&resolve(&brought.draft).scenario);
                assert!(link.starts_with("v="));
            }
        }
    }
    assert!(kinds.len() > 20, "{kinds:?}");
}

#[test]
fn words_of_any_kind_are_read_or_refused() {
    const WORDS: &[&str] = &[
        "llama",
        "3",
        "8b",
        "qlora",
        "4090",
        "8xh100",
        "fsdp",
        "batch",
        "of",
        "4k",
        "×",
        "0",
        "99999999999999999999",
        "-1",
        "𝕏",
        "--",
        "$(",
        "#v=",
        "torchrun",
        "python",
        "train.py",
        "base_model:",
        "{",
        "\"",
        "how many",
        "?",
    ];
    let mut dice = Dice::new(43);
    for _ in 0..2000 {
        let words: Vec<&str> = (0..dice.below(12)).map(|_| dice.one_of(WORDS)).collect();
        let _ = import::words(&words.join(" "), &Alone);
    }
    for hostile in HOSTILE {
        let _ = import::words(hostile, &Alone);
    }
}
