//! When the error came: the step and the phase, as logs show them.

use serde::Serialize;

use super::scan::first_number;

/// What a log says about the moment of the failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Moment {
    /// Counted from 0.
    pub step: Option<u64>,
    /// A progress bar names the step: it names every step, where log lines name round ones only.
    pub by_bar: bool,
    /// A batch-size finder tried every size, and none fits.
    pub no_batch_fits: bool,
}

impl Moment {
    pub fn parse(text: &str) -> Self {
        let (step, by_bar) = step(text).unzip();
        Self {
            step,
            by_bar: by_bar == Some(true),
            // Accelerate's `find_executable_batch_size`.
            no_batch_fits: text.contains("No executable batch size found"),
        }
    }
}

/// The last step that a log names: "step 37", "global_step=37", or a progress bar's "37/300 [". Bars of evaluations name
/// batches, not steps. Says too whether it was a bar.
fn step(text: &str) -> Option<(u64, bool)> {
    /// As far before a bar's number as its title stands.
    const NEAR: usize = 160;
    let named = ["step", "Step", "iteration", "iter"]
        .iter()
        .flat_map(|word| text.match_indices(word).map(|found| found.0 + word.len()))
        .filter_map(|at| {
            let rest = text[at..].trim_start_matches([' ', ':', '=', '"', '\'', '#']);
            let starts = rest.starts_with(|c: char| c.is_ascii_digit());
            Some((at, starts.then(|| first_number(rest)).flatten()?, false))
        });
    let bars = text.match_indices('/').filter_map(|(at, _)| {
        let after = text[at + 1..].trim_start_matches(|c: char| c.is_ascii_digit());
        if !after.trim_start().starts_with('[') {
            return None;
        }
        let before = text[..at].trim_end();
        let start = before
            .rfind(|c: char| !c.is_ascii_digit())
            .map_or(0, |at| at + 1);
        // The slice may begin inside a letter of many bytes only where no digit stands, and then it does not parse.
        let from = (at.saturating_sub(NEAR)..at).find(|from| text.is_char_boundary(*from));
        let near = text.get(from?..at)?.rsplit('\n').next()?;
        let line = near.to_ascii_lowercase();
        let evaluates = ["val", "eval", "test", "predict"]
            .iter()
            .any(|word| line.contains(word));
        let number = before.get(start..)?.parse().ok()?;
        (!evaluates).then_some((at, number, true))
    });
    let last = named.chain(bars).max_by_key(|(at, ..)| *at);
    last.map(|(_, number, by_bar)| (number, by_bar))
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
            (
                "step 8\nValid (loss 53.34):   9%| | 1/11 [00:01<00:13]",
                Some(8),
            ),
            ("training_step(batch)", None),
            ("█/[", None),
            ("", None),
        ] {
            assert_eq!(Moment::parse(text).step, expected, "{text}");
        }
    }
}
