//! Files that Headroom wrote: their run is the scenario in the link at their head, as long as they are as they were written.

use std::path::Path;

use headroom_core::estimate::Estimate;
use headroom_scenario::Scenario;
use headroom_scenario::resolve::resolve;
use headroom_scripts::File;

use super::{Imported, linked};
use crate::export::{self, Starter};

/// What a link at the head of files says of them.
#[derive(Debug)]
pub(super) enum Own {
    /// They are what is written for its scenario.
    Written(Box<Imported>),
    /// The file of this name is not, so it says more than its link.
    Edited(String),
}

/// `None` if no file has such a link.
pub(super) fn read(files: &[File]) -> Option<Own> {
    let found = files.iter().find_map(|file| linked(&file.text))?;
    let scenario = resolve(&found.draft).scenario;
    let written = every_file(&scenario);
    let edited = files.iter().find(|file| {
        // JSON has no comments, and scripts are the same for every scenario.
        let compares = match linked(&file.text) {
            // What another version wrote cannot be compared: its link is the best that is known.
            Some(_) => is_of_this_version(&file.text),
            None => written.iter().any(|(name, _)| {
                let of_json = Path::new(name)
                    .extension()
                    .is_some_and(|kind| kind == "json");
                of_json && file.name.rsplit('/').next() == Some(name)
            }),
        };
        let found = content(&file.text);
        compares && !written.iter().any(|(_, contents)| *contents == found)
    });
    Some(match edited {
        Some(file) => Own::Edited(file.name.clone()),
        None => Own::Written(Box::new(found)),
    })
}

/// Every file that some program gets for a scenario, and the job files that start it.
fn every_file(scenario: &Scenario) -> Vec<(&'static str, String)> {
    let estimate = Estimate::default();
    let targets = export::targets().iter();
    let written = targets.filter_map(|target| {
        let files = (target.write)(scenario, &estimate).ok()?;
        let started = Starter::ALL
            .into_iter()
            .filter_map(|starter| starter.wrap(target, scenario, files.clone()).ok());
        Some(started.flatten().collect::<Vec<_>>())
    });
    written
        .flatten()
        .map(|file| (file.name, content(&file.contents)))
        .collect()
}

/// A file without its comments and what it predicts, which are of the version that wrote it.
fn content(text: &str) -> String {
    let says = |line: &&str| {
        let text = line.trim_start();
        !text.starts_with('#') && !text.starts_with("predicted_allocated:")
    };
    let lines: Vec<&str> = text.lines().filter(says).map(str::trim_end).collect();
    lines.join("\n").trim().to_string()
}

fn is_of_this_version(text: &str) -> bool {
    let head = format!("# Headroom {}:", env!("CARGO_PKG_VERSION"));
    text.lines().take(20).any(|line| line.starts_with(&head))
}

#[cfg(test)]
mod tests {
    use super::super::input::{files, words};
    use super::*;
    use headroom_scenario::{presets, settings};

    fn exported(scenario: &Scenario, target: &str) -> Option<Vec<File>> {
        let target = export::target(target)?;
        let files = (target.write)(scenario, &Estimate::default()).ok()?;
        let file = |file: &export::File| File {
            name: format!("run/{}", file.name),
            text: file.contents.clone(),
        };
        Some(files.iter().map(file).collect())
    }

    #[test]
    fn a_folder_as_it_was_exported_is_its_scenario() {
        let mut read = 0;
        for preset in presets::all().iter().step_by(3) {
            let scenario = preset.scenario();
            for target in export::targets() {
                let Some(folder) = exported(&scenario, target.id) else {
                    continue;
                };
                let input = files(&folder, &folder, None);
                assert_eq!(input.problems, [], "{} {}", preset.id, target.id);
                let found = resolve(&input.draft).scenario;
                assert_eq!(found, scenario, "{} {}", preset.id, target.id);
                read += 1;
            }
        }
        assert!(read > 60, "{read}");
    }

    #[test]
    fn a_changed_file_is_read_as_it_is_or_refused() {
        let mut scenario = presets::find("qwen-0.5b-full-12gb").unwrap().scenario();
        settings::set(&mut scenario, "trainer", "trl").unwrap();
        let change = |target: &str, from: &str, to: &str| {
            let mut folder = exported(&scenario, target).unwrap();
            let with = folder.iter_mut().find(|file| file.text.contains(from));
            let file = with.unwrap();
            file.text = file.text.replace(from, to);
            files(&folder, &folder, None)
        };
        let batch = scenario.data.micro_batch;
        for (target, key) in [
            ("hf", "per_device_train_batch_size"),
            ("plain", "micro_batch_size"),
        ] {
            let edited = change(target, &format!("{key}: {batch}"), &format!("{key}: 64"));
            assert_eq!(resolve(&edited.draft).scenario.data.micro_batch, 64);
            let note = "was changed since it was exported";
            assert!(edited.notes.iter().any(|said| said.contains(note)));
        }
    }

    #[test]
    fn a_sentence_that_begins_with_a_model_is_read_to_its_end() {
        let input = words(
            "llama-3.3-70b lora 4k on 4 x a100 80gb",
            &headroom_scripts::Alone,
        );
        let found = resolve(&input.draft).scenario;
        assert_eq!((found.hardware.gpus, found.data.sequence), (4, 4096));
        assert!(found.training.lora.is_some());
    }

    #[test]
    fn a_gpu_without_bf16_trains_in_fp16_where_a_sentence_says_no_precision() {
        let precision = |text: &str| {
            let input = words(text, &headroom_scripts::Alone);
            resolve(&input.draft).scenario.training.precision.id()
        };
        assert_eq!(precision("bert large on a T4 batch 32 at 512"), "amp-fp16");
        let adapted = "LoRA of Llama 3.2 1B on a V100, batch 4 at 1k";
        assert_eq!(precision(adapted), "amp-fp16-on-fp16");
        assert_eq!(
            precision("bert large on a T4 in fp32 batch 32 at 512"),
            "fp32"
        );
        assert_eq!(precision("bert large on an L4 batch 32 at 512"), "amp-bf16");
    }
}
