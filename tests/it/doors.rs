//! Whatever is brought is read without a panic and in bounded work: files of every program, altered.

#![allow(clippy::unwrap_used)]

use headroom_core::estimate::{Estimate, quick_peak};
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

/// Without its link, what a program gets is read as a run that needs the same; what names no model that Headroom knows is asked.
#[test]
fn what_is_exported_is_read_without_its_link() {
    // Its own Trainer masks padding, its own loss is fused, or its modules are its own: what is read is its run, not ours.
    const OF_ITS_OWN: &[&str] = &["axolotl", "trl", "torchtune", "megatron"];
    let mut same = std::collections::BTreeMap::<&str, usize>::new();
    let mut wrong = Vec::new();
    let every = if slow() { 1 } else { 7 };
    for preset in presets::all().iter().step_by(every) {
        let scenario = preset.scenario();
        let wanted = quick_peak(&scenario).unwrap();
        for (target, files) in export::all(&scenario, &Estimate::default()) {
            let Ok(files) = files else { continue };
            if OF_ITS_OWN.contains(&target.id) || files.is_empty() {
                continue;
            }
            let without = |text: &str| {
                let lines = text.lines();
                let kept = lines.filter(|line| !line.trim_start().starts_with("# Scenario: "));
                kept.fold(String::new(), |all, line| all + line + "\n")
            };
            let files: Vec<File> = files
                .iter()
                .map(|file| File {
                    name: file.name.into(),
                    text: without(&file.contents),
                })
                .collect();
            let brought = import::files(&files, &Alone, None);
            if brought.refused.is_some() || !brought.asks.is_empty() {
                continue;
            }
            let mut read = resolve(&brought.draft).scenario;
            // Few programs are told their card.
            read.hardware.gpu.clone_from(&scenario.hardware.gpu);
            match quick_peak(&read) {
                Ok(peak) if peak == wanted => *same.entry(target.id).or_default() += 1,
                other => wrong.push(format!(
                    "{} as {}: {other:?}, not {wanted}: {}",
                    preset.id,
                    target.id,
                    share::write(&read)
                )),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let programs = [
        "accelerate",
        "hf",
        "kubernetes",
        "lightning",
        "llama-factory",
        "plain",
        "ray",
        "slurm",
        "trainjob",
    ];
    for program in programs {
        assert!(
            same.get(program).is_some_and(|count| *count >= 3),
            "{same:?}"
        );
    }
}
