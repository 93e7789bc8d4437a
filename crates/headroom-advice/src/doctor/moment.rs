//! When the error occurred: the step and the epoch that logs show, and whether the same step failed before.

use serde::Serialize;

use super::scan::{first_number, first_size};
use headroom_base::units::Bytes;

/// The moment of the failure, from a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Moment {
    /// Counted from 0; with progress bars, within the epoch.
    pub step: Option<u64>,
    /// The step is from a progress bar, which shows every step; log lines often show only round ones.
    pub by_bar: bool,
    /// The log names only every so many steps, and the failure may have been at any step after the last one.
    pub logged_every: Option<u64>,
    /// The epoch as the log counts it.
    pub epoch: Option<u64>,
    /// A batch-size finder tried every size, and none fit.
    pub no_batch_fits: bool,
}

/// Several failures of one log, each after further steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Repeated {
    pub times: u64,
    /// The step at which all of them failed, if it is the same.
    pub step: Option<u64>,
    /// The request that all of them failed at, if it is the same.
    pub tried: Option<Bytes>,
}

impl Moment {
    /// The last step that a log names: "step 37", "global_step=37", "[20/41]", or a progress bar's "37/300 [". Bars of
    /// evaluations count batches, not steps, and bars of downloads neither.
    pub fn parse(text: &str) -> Self {
        let named = named(text);
        let last = named
            .iter()
            .copied()
            .chain(bars(text))
            .max_by_key(|mark| mark.at);
        let by_bar = last.is_some_and(|mark| mark.by_bar);
        Self {
            step: last.map(|mark| mark.step),
            by_bar,
            logged_every: interval(&named).filter(|_| !by_bar),
            epoch: epoch(text),
            // Accelerate's `find_executable_batch_size`.
            no_batch_fits: text.contains("No executable batch size found"),
        }
    }
}

impl Repeated {
    /// The failures of one process after another, or of a loop that goes on; several ranks fail together, which is one
    /// failure. `None` if there are fewer than two.
    pub fn parse(text: &str) -> Option<Self> {
        const ERROR: &str = "out of memory. Tried to allocate ";
        let mut failures: Vec<(Option<u64>, Option<Bytes>)> = Vec::new();
        let mut start = 0;
        for (at, _) in text.match_indices(ERROR).take(10_000) {
            let part = text.get(start..at).unwrap_or_default();
            let moment = Moment::parse(part);
            let after = text.get(at + ERROR.len()..).unwrap_or_default();
            if moment.step.is_some() {
                failures.push((moment.step, first_size(after)));
            }
            start = at;
        }
        let last = *failures.last()?;
        // Settings may have changed in between: those like the last one count.
        let like = failures
            .iter()
            .rev()
            .take_while(|other| **other == last)
            .count();
        let (times, same) = if like > 1 {
            (like, true)
        } else {
            (failures.len(), false)
        };
        (times > 1).then(|| Self {
            times: times as u64,
            step: last.0.filter(|_| same),
            tried: last.1.filter(|_| same),
        })
    }
}

/// A step in the text.
#[derive(Clone, Copy)]
struct Mark {
    at: usize,
    step: u64,
    by_bar: bool,
}

/// How far before a bar's number its title may be.
const NEAR: usize = 160;

/// Steps with their word before them, and "[20/41]" in a line of an epoch.
fn named(text: &str) -> Vec<Mark> {
    let words = ["step", "Step", "iteration", "iter", "Iter", "Iteration"];
    let ends = words
        .iter()
        .flat_map(|word| text.match_indices(word).map(|found| found.0 + word.len()));
    let after = ends.filter_map(|at| {
        let rest = text[at..].trim_start_matches([' ', ':', '=', '"', '\'', '#', '[', '(']);
        let starts = rest.starts_with(|c: char| c.is_ascii_digit());
        Some(Mark {
            at,
            step: starts.then(|| first_number(rest)).flatten()?,
            by_bar: false,
        })
    });
    let brackets = text.match_indices("][").filter_map(|(at, _)| {
        let (number, rest) = text[at + 2..].split_once('/')?;
        let closes = rest
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .starts_with(']');
        let step = number.trim().parse().ok()?;
        (closes && !is_other(near(text, at)?)).then_some(Mark {
            at,
            step,
            by_bar: false,
        })
    });
    let mut marks: Vec<Mark> = after.chain(brackets).collect();
    marks.sort_unstable_by_key(|mark| mark.at);
    marks
}

/// The beginning of the line, up to `NEAR` bytes.
fn near(text: &str, at: usize) -> Option<&str> {
    // The slice may begin inside a letter of many bytes only where no digit stands, and then it does not parse.
    let from = (at.saturating_sub(NEAR)..=at).find(|from| text.is_char_boundary(*from));
    text.get(from?..at)?.rsplit('\n').next()
}

/// Whether a line counts something other than training steps.
fn is_other(line: &str) -> bool {
    const OTHERS: &[&str] = &[
        "val", "eval", "test", "predict", "generat", "infer", "download", "loading", "shards",
        "tokeniz", "map", "filter", "fetch", "caching", "process", "resolv", "sanity", "sampling",
    ];
    let line = line.to_ascii_lowercase();
    // "Training: ... val_loss=0.3" is a bar of training.
    let title = line.split(['%', '|', '(']).next().unwrap_or(&line);
    let titled = !title.trim().is_empty() && title.len() < line.len();
    let is_in = |text: &str| OTHERS.iter().any(|word| text.contains(word));
    if titled && title.contains("train") {
        false
    } else {
        is_in(&line)
    }
}

fn bars(text: &str) -> impl Iterator<Item = Mark> {
    text.match_indices('/').filter_map(|(at, _)| {
        let after = text[at + 1..].trim_start_matches(|c: char| c.is_ascii_digit());
        if !after.trim_start().starts_with('[') {
            return None;
        }
        let before = text[..at].trim_end();
        let start = before
            .rfind(|c: char| !c.is_ascii_digit())
            .map_or(0, |at| at + 1);
        let step = before.get(start..)?.parse().ok()?;
        (!is_other(near(text, at)?)).then_some(Mark {
            at,
            step,
            by_bar: true,
        })
    })
}

/// The interval at which a log names steps, if it names several.
fn interval(named: &[Mark]) -> Option<u64> {
    const FEWEST: usize = 3;
    let steps: Vec<u64> = named
        .iter()
        .map(|mark| mark.step)
        .filter(|step| *step > 0)
        .collect();
    let mut distinct = steps.clone();
    distinct.dedup();
    let common = distinct.iter().copied().reduce(divisor)?;
    (distinct.len() >= FEWEST && common > 1).then_some(common)
}

fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// The last "Epoch 3/100", "epoch: 3", "[3/100]".
fn epoch(text: &str) -> Option<u64> {
    const OPENING: [char; 8] = [' ', ':', '=', '"', '\'', '#', '[', '('];
    let numbered = |word: &str, at: usize| {
        let rest = text[at + word.len()..].trim_start_matches(OPENING);
        let rest = rest.strip_prefix("train)").unwrap_or(rest);
        let rest = rest.trim_start_matches([' ', '[']);
        let starts = rest.starts_with(|c: char| c.is_ascii_digit());
        Some((at, starts.then(|| first_number(rest)).flatten()?))
    };
    let last = ["Epoch", "epoch", "EPOCH"].iter().filter_map(|word| {
        let mut found = text.rmatch_indices(word).take(50);
        found.find_map(|(at, _)| numbered(word, at))
    });
    last.max_by_key(|(at, _)| *at).map(|(_, epoch)| epoch)
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
            ("Epoch(train) [31][20/41]  lr: 4e-3  memory: 4257", Some(20)),
            ("Epoch(val) [31][20/41]", None),
            (
                "Loading checkpoint shards:  33%|###  | 1/3 [00:14<00:28]",
                None,
            ),
            (
                "Training:  17%|█▋  | 82/487 [00:23<01:55, 3.51it/s, val_loss=0.1]",
                Some(82),
            ),
            ("training_step(batch)", None),
            ("█/[", None),
            ("", None),
        ] {
            assert_eq!(Moment::parse(text).step, expected, "{text}");
        }
    }

    #[test]
    fn epochs_and_logging_intervals_are_found() {
        let moment = Moment::parse("Epoch 32/300\nEpoch 33/300\nstep 100\nstep 150\nstep 200\n");
        assert_eq!((moment.epoch, moment.logged_every), (Some(33), Some(50)));
        let moment = Moment::parse("'epoch': 1.5 step 3\nstep 4\nstep 5\n");
        assert_eq!((moment.epoch, moment.logged_every), (Some(1), None));
    }

    #[test]
    fn repeated_failures_are_counted() {
        let run = |step: u64, mib: u64| {
            format!(
                "Training: 1%| | {step}/487 [00:01<00:09]\nCUDA out of memory. Tried to allocate {mib}.00 MiB. GPU\n"
            )
        };
        let repeated = |times, step: Option<u64>, mib: Option<u64>| {
            Some(Repeated {
                times,
                step,
                tried: mib.map(Bytes::mib),
            })
        };
        assert_eq!(
            Repeated::parse(&(run(82, 6) + &run(82, 6) + &run(82, 6))),
            repeated(3, Some(82), Some(6))
        );
        assert_eq!(
            Repeated::parse(&(run(82, 6) + &run(90, 6))),
            repeated(2, None, None)
        );
        assert_eq!(
            Repeated::parse(&(run(9, 5) + &run(82, 6) + &run(82, 6))),
            repeated(2, Some(82), Some(6))
        );
        assert_eq!(Repeated::parse(&run(82, 6)), None);
        // Ranks that fail together.
        let ranks = run(82, 6) + "[rank1] CUDA out of memory. Tried to allocate 6.00 MiB";
        assert_eq!(Repeated::parse(&ranks), None);
    }
}
