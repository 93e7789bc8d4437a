//! Keywords that point to a cause: what was running at the error, and errors other than GPU memory.

use serde::Serialize;

use super::activity::{self, Activity};
use super::keywords::{
    ACTIVITIES, ASSERTS, ATTENTION, DEVICE, DRIVER, EXPANDABLE, FOREIGN, GROWTH, HOST, INDEX,
    LIBRARY_MEMORY, LOADING, MEMORY, NCCL, NCCL_MEMORY, NO_GROWTH, ONE_CARD, SAMPLER,
    SHARED_MEMORY,
};
use super::traceback;
use super::vocabulary::Found;

/// How NCCL failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NcclError {
    OutOfMemory,
    /// Two ranks are on one GPU.
    OneCard,
    Other,
}

/// The keywords of a text, without its numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent sign")]
pub struct Signs {
    /// The name of another framework whose error this is.
    pub foreign: Option<&'static str>,
    /// The shared memory of data loader workers is full.
    pub shared_memory: bool,
    /// The host's memory is full, or a process was killed for it.
    pub host: bool,
    /// An index is out of range, or cuBLAS failed while it ran, which looks alike.
    pub index: bool,
    /// cuBLAS or cuDNN could not allocate its handle.
    pub library_memory: bool,
    /// The error came from the driver, outside PyTorch's allocator.
    pub driver: bool,
    /// A collective failed.
    pub nccl: Option<NcclError>,
    /// GPUs were selected explicitly.
    pub device_chosen: bool,
    /// A model was being loaded.
    pub loading: bool,
    /// Attention was being computed.
    pub attention: bool,
    /// The environment turns expandable segments on.
    pub expandable: bool,
    /// The text reports growing memory.
    pub growing: bool,
    /// vLLM failed in the training process.
    pub sampler: bool,
    /// The activities in the last traceback, the innermost first; without one those in the text, the last one first.
    pub activities: Vec<Activity>,
    /// The activities are from a traceback.
    pub traced: bool,
}

/// All keywords.
fn vocabulary() -> impl Iterator<Item = &'static str> {
    let foreign = FOREIGN.iter().map(|(mark, _)| *mark);
    let lists = [
        SHARED_MEMORY,
        HOST,
        INDEX,
        ASSERTS,
        LIBRARY_MEMORY,
        DRIVER,
        NCCL,
        NCCL_MEMORY,
        DEVICE,
        LOADING,
        ATTENTION,
        GROWTH,
        SAMPLER,
    ];
    let activities = ACTIVITIES.iter().map(|(_, words)| *words);
    let listed = lists.into_iter().chain(activities).flatten().copied();
    foreign.chain(listed).chain([EXPANDABLE])
}

impl Signs {
    pub fn parse(text: &str) -> Self {
        let lowered = text.to_ascii_lowercase();
        let found = Found::in_text(&lowered, vocabulary());
        let mut lines = text.lines().map(str::trim);
        let killed = lines.any(|line| line == "Killed" || line.starts_with("MemoryError"));
        let frames = traceback::last(text);
        let mut activities = activity::of_frames(&frames);
        let traced = !activities.is_empty();
        if !traced {
            activities = of_words(&said(&lowered));
            for activity in activity::near_error(text) {
                if !activities.contains(&activity) {
                    activities.push(activity);
                }
            }
        }
        Self {
            foreign: FOREIGN
                .iter()
                .find(|(mark, _)| found.has(mark))
                .map(|(_, name)| *name),
            shared_memory: found.has_any(SHARED_MEMORY),
            host: killed || found.has_any(HOST),
            index: found.has_any(INDEX) || found.has_any(ASSERTS),
            library_memory: found.has_any(LIBRARY_MEMORY) && !found.has_any(ASSERTS),
            driver: found.has_any(DRIVER),
            nccl: found.has_any(NCCL).then(|| {
                if found.has(ONE_CARD) {
                    NcclError::OneCard
                } else if found.has_any(NCCL_MEMORY) {
                    NcclError::OutOfMemory
                } else {
                    NcclError::Other
                }
            }),
            device_chosen: found.has_any(DEVICE),
            loading: found.has_any(LOADING),
            attention: found.has_any(ATTENTION),
            growing: found.has_any(GROWTH) && lowered.split(['\n', ';']).any(says_growth),
            sampler: found.has_any(SAMPLER),
            expandable: found.has(EXPANDABLE),
            activities,
            traced,
        }
    }

    /// What was running, if it was no plain training step. Logits and attention are computed in evaluations too.
    pub fn activity(&self) -> Option<Activity> {
        use Activity::{Attention, Boxes, Logits, Training};
        let computed = |activity: &&Activity| matches!(activity, Logits | Attention | Boxes);
        let mut phases = self
            .activities
            .iter()
            .filter(|activity| !computed(activity));
        let phase = phases.next().filter(|phase| **phase != Training);
        phase
            .or_else(|| self.activities.iter().find(computed))
            .copied()
    }

    /// The last traceback ends in a training step.
    pub fn in_training(&self) -> bool {
        self.traced && self.activities.first() == Some(&Activity::Training)
    }

    /// Whether the keywords alone show a failure.
    pub fn any(&self) -> bool {
        let errors = [
            self.shared_memory,
            self.host,
            self.index,
            self.library_memory,
            self.driver,
            self.sampler,
        ];
        self.foreign.is_some() || self.nccl.is_some() || errors.contains(&true)
    }
}

/// The activities that a text names, the last one first.
fn of_words(text: &str) -> Vec<Activity> {
    let words = ACTIVITIES
        .iter()
        .flat_map(|(_, words)| words.iter().copied());
    let found = Found::in_text(text, words);
    let last = ACTIVITIES
        .iter()
        .filter_map(|(activity, words)| Some((found.last_of(words)?, *activity)));
    let mut last: Vec<(usize, Activity)> = last.collect();
    last.sort_unstable_by_key(|(at, _)| std::cmp::Reverse(*at));
    last.into_iter().map(|(_, activity)| activity).collect()
}

/// What a text says about activities: without the paths before warnings, and of progress bars only the last one.
fn said(lowered: &str) -> String {
    let is_bar = |line: &&str| line.contains("%|") && line.contains('[');
    let last_bar = lowered.lines().rfind(is_bar);
    let mut said = String::with_capacity(lowered.len());
    for line in lowered.lines() {
        // torch.compile's `_dynamo/eval_frame.py` is no evaluation.
        if is_bar(&line) && Some(line) != last_bar || line.contains("eval_frame") {
            continue;
        }
        // A warning about a failed allocation comes from where it failed.
        let other = !line.contains("out of memory");
        let warned = line
            .split_once("warning:")
            .filter(|(path, _)| other && path.contains(".py:"));
        said.push_str(warned.map_or(line, |(_, warning)| warning));
        said.push('\n');
    }
    said
}

/// Whether a line reports growing memory.
fn says_growth(line: &str) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
    has(MEMORY) && has(GROWTH) && !has(NO_GROWTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_keyword_names_the_activity() {
        #[track_caller]
        fn check(text: &str, activity: Option<Activity>) {
            assert_eq!(Signs::parse(text).activity(), activity, "{text}");
        }
        check("in training_step\nloss.backward()", None);
        check("train.py, in validate", Some(Activity::Evaluation));
        check(
            "_maybe_log_save_evaluate\n in _save_checkpoint\n full_state_dict",
            Some(Activity::Checkpoint),
        );
        check(
            "state['exp_avg'] = torch.zeros_like(p)",
            Some(Activity::OptimizerStep),
        );
    }

    #[test]
    fn growth_is_recognized_within_a_sentence() {
        #[track_caller]
        fn check(text: &str, growing: bool) {
            assert_eq!(Signs::parse(text).growing, growing, "{text}");
        }
        check(
            "nvidia-smi shows a slow and steady increase of GPU memory",
            true,
        );
        check(
            "GPU memory went from 9 GB at step 2k to 20 GB at step 15k",
            true,
        );
        check("the loss is increasing\nCUDA out of memory", false);
        check("Try increasing the memory of the container", false);
    }

    #[test]
    fn errors_of_other_frameworks_are_recognized() {
        let signs =
            Signs::parse("jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory");
        assert_eq!(signs.foreign, Some("JAX or TensorFlow"));
        assert!(Signs::parse("loading\nKilled\n").host);
        assert!(!Signs::parse("torch.OutOfMemoryError: CUDA out of memory.").host);
        assert!(Signs::parse("worker is killed by signal: Bus error.").shared_memory);
    }
}
