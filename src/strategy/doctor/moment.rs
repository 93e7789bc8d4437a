//! When the error came: the step and the phase, as logs show them.

use serde::Serialize;

use super::scan::first_number;

/// What a log says about the moment of the failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Moment {
    /// Counted from 0.
    pub step: Option<u64>,
    /// An evaluation, not training, was running.
    pub evaluating: bool,
    /// A checkpoint was being written.
    pub saving: bool,
    /// A batch-size finder tried every size, and none fits.
    pub no_batch_fits: bool,
}

/// Frames of a traceback that belong to evaluation, in PyTorch, Transformers, Lightning and Accelerate scripts.
const EVALUATION: &[&str] = &[
    "evaluation_loop",
    "in evaluate",
    "validation_step",
    "prediction_step",
    "in validate",
    "phase: eval",
    "phase=eval",
    "during evaluation",
];
const SAVING: &[&str] = &[
    "in save_checkpoint",
    "_save_checkpoint",
    "in state_dict",
    "in save_pretrained",
    "deepcopy",
];

impl Moment {
    pub fn parse(text: &str) -> Self {
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        Self {
            step: step(text),
            evaluating: has(EVALUATION),
            saving: has(SAVING),
            // Accelerate's `find_executable_batch_size`.
            no_batch_fits: has(&["No executable batch size found"]),
        }
    }
}

/// The last step that a log names: "step 37", "global_step=37", or a progress bar's "37/300 [".
fn step(text: &str) -> Option<u64> {
    let named = ["step", "Step", "iteration", "iter"]
        .iter()
        .flat_map(|word| text.match_indices(word).map(|it| it.0 + word.len()))
        .filter_map(|at| {
            let rest = text[at..].trim_start_matches([' ', ':', '=', '"', '\'', '#']);
            let starts = rest.starts_with(|c: char| c.is_ascii_digit());
            Some((at, starts.then(|| first_number(rest)).flatten()?))
        });
    let bars = text.match_indices('/').filter_map(|(at, _)| {
        let after = text[at + 1..].trim_start_matches(|c: char| c.is_ascii_digit());
        if !after.trim_start().starts_with('[') {
            return None;
        }
        let before = text[..at].trim_end();
        let start = before
            .rfind(|c: char| !c.is_ascii_digit())
            .map_or(0, |it| it + 1);
        // The slice may begin inside a letter of many bytes only where no digit stands, and then it does not parse.
        Some((at, before.get(start..)?.parse().ok()?))
    });
    named.chain(bars).max_by_key(|it| it.0).map(|it| it.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_found_in_logs() {
        for (text, expected) in [
            ("step 37 loss 2.1", Some(37)),
            ("{'global_step': 12, 'loss': 3}", Some(12)),
            ("global_step=12 ... Step: 13", Some(13)),
            (" 12%|█▏        | 37/300 [00:10<01:20,  3.2it/s]", Some(37)),
            ("training_step(batch)", None),
            ("█/[", None),
            ("", None),
        ] {
            assert_eq!(Moment::parse(text).step, expected, "{text}");
        }
    }
}
