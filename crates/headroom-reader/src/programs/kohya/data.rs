//! Batch, resolution and frames: in flags, or in the dataset's TOML (`docs/config_README-en.md`).

use crate::documents;
use crate::fact::Fact;
use crate::facts::{Ask, Facts};
use crate::keys::Keys;
use crate::program::Source;
use crate::programs::diffusion::one_size as size;
use crate::words::Task;

const DEFAULT: &str = "sd-scripts";

pub fn sizes(source: &Source, keys: &Keys, video: bool, facts: &mut Facts) {
    let path = keys.text("dataset_config");
    if path.is_unsaid() {
        facts.micro_batch = keys.whole("train_batch_size").or_default(1, DEFAULT);
        let size = size(keys, "resolution").or(size(keys, "max_resolution"));
        facts.height = size.clone().map(|(height, _)| height);
        facts.width = size.map(|(_, width)| width);
        if keys.has("config_file") && facts.height.is_unsaid() {
            let why = "it may be in config_file, which is not here";
            facts.height = Fact::Unknown(why.into());
            facts.micro_batch = keys.whole("train_batch_size").or(Fact::Unknown(why.into()));
        }
        return;
    }
    let file = path.value().and_then(|path| source.beside.text(path));
    let Some(data) = file.as_deref().and_then(documents::read) else {
        let file = path
            .value()
            .cloned()
            .unwrap_or_else(|| "the dataset's file".into());
        let why = format!("it is in {file}");
        facts.micro_batch = Fact::Unknown(why.clone());
        facts.height = Fact::Unknown(why.clone());
        if video {
            facts.ask(Ask::Frames, why);
        }
        return;
    };
    of_file(&data, video, facts);
}

/// The largest of what the datasets say, `[general]` standing for what one leaves out.
fn of_file(data: &Keys, video: bool, facts: &mut Facts) {
    let general = data.items("general").pop().unwrap_or_default();
    let mut area = 0;
    for set in data.items("datasets") {
        let batch = set
            .whole("batch_size")
            .or(general.whole("batch_size"))
            .or_default(1, DEFAULT);
        if batch.value() > facts.micro_batch.value() {
            facts.micro_batch = batch;
        }
        let own = size(&set, "resolution").or(size(&general, "resolution"));
        let own_area = own
            .value()
            .map_or(0, |(height, width)| height.saturating_mul(*width));
        if own_area > area || facts.height.is_unsaid() {
            area = own_area;
            facts.height = own.clone().map(|(height, _)| height);
            facts.width = own.map(|(_, width)| width);
        }
        if video {
            let frames = set
                .largest("target_frames")
                .or(set.whole("max_frames"))
                .or_default(1, DEFAULT);
            if frames.value() > facts.frames.value() {
                facts.frames = frames;
            }
        }
    }
}

/// A dataset's file without its run.
pub fn alone(keys: &Keys) -> Option<Facts> {
    let sets = keys.items("datasets");
    let own =
        |set: &Keys| set.has("subsets") || set.has("image_directory") || set.has("video_directory");
    if !sets.iter().any(own) {
        return None;
    }
    let mut facts = Facts::of("kohya");
    facts.task = Fact::follows(Task::Diffusion, "sd-scripts train diffusion models");
    let video = sets.iter().any(|set| set.has("video_directory"));
    of_file(keys, video, &mut facts);
    facts.ask(Ask::Model, "the file is of a dataset, for any model");
    Some(facts)
}
