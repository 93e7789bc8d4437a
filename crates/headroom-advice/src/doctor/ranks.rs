//! Which rank of a job printed what, where the lines of a log say whose they are.

use serde::Serialize;

use super::message::Failure;
use headroom_base::order::Map;

/// The error of one rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RankFailure {
    pub rank: u64,
    pub failure: Failure,
}

impl RankFailure {
    /// The errors with numbers, by rank.
    pub fn parse(text: &str) -> Vec<Self> {
        /// Ranks that are told apart.
        const MOST: usize = 1_024;
        let mut of_rank: Map<u64, String> = Map::new();
        for line in text.lines() {
            if let Some((rank, line)) = labelled(line)
                && (of_rank.len() < MOST || of_rank.contains_key(&rank))
            {
                let text = of_rank.or_default(rank);
                text.push_str(line);
                text.push('\n');
            }
        }
        let failed = of_rank.iter().filter_map(|(rank, text)| {
            let failure = Failure::parse(text)?;
            failure.tried?;
            Some(Self {
                rank: *rank,
                failure,
            })
        });
        failed.collect()
    }
}

/// A line's rank and its words: "[rank3]: " of PyTorch, "[default3]:" of torchrun's tee, "[1,3]<stderr>:" of mpirun.
fn labelled(line: &str) -> Option<(u64, &str)> {
    let (label, line) = line.trim_start().strip_prefix('[')?.split_once(']')?;
    let number = label.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let rank = match number.split_once(',') {
        Some((_, rank)) => rank,
        None if number.len() < label.len() => number,
        None => return None,
    };
    let line = line.trim_start_matches("<stderr>");
    let line = line.trim_start_matches("<stdout>").strip_prefix(':')?;
    Some((rank.parse().ok()?, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart_by_their_ranks() {
        #[track_caller]
        fn check(line: &str, expected: Option<(u64, &str)>) {
            assert_eq!(labelled(line), expected, "{line}");
        }
        check(
            "[rank3]: torch.OutOfMemoryError",
            Some((3, " torch.OutOfMemoryError")),
        );
        check("[default12]:loss", Some((12, "loss")));
        check("[1,3]<stderr>:loss", Some((3, "loss")));
        check("[2024-11-02 10:00:00] step", None);
        check("[3/10] step: 2", None);
        check("[W] warning", None);
    }
}
