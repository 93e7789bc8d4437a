//! What comments say of the machine: `# 8 x H100, ZeRO-3`, `# set up for 8 GPUs`, `# accelerate launch --num_processes=7 …`.

use super::fact::Fact;
use super::facts::Facts;
use super::words::{DataParallel, Strategy};

/// Lines at the head of a file that may speak of the run as a whole; later ones speak of the key beside them.
const MOST_LINES: usize = 400;

/// Fills in the number of GPUs and the strategy where the file itself says neither.
pub fn apply(text: &str, facts: &mut Facts) {
    let comments = text.lines().take(MOST_LINES).filter_map(|line| {
        let (_, comment) = line.split_once('#')?;
        Some(comment.trim())
    });
    for comment in comments {
        if facts.gpus.is_unsaid()
            && let Some(count) = gpus(comment)
        {
            facts.gpus = Fact::read(count, format!("comment `{comment}`"));
        }
        if facts.strategy.is_unsaid()
            && let Some(stage) = zero(comment)
        {
            facts.strategy = Fact::read(Strategy::from(stage), format!("comment `{comment}`"));
        }
    }
}

/// The number of GPUs of a job: `8 GPUs`, `8x H100 80GB`, `1 node of 8 x H100s`, `num_gpus * … = 8 * 32 * 4`.
pub fn gpus(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase().replace(['×', '*'], " x ");
    let spaced: String = lower
        .chars()
        .map(|c| {
            if c.is_alphanumeric() || c == '=' {
                c
            } else {
                ' '
            }
        })
        .collect();
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let card = |word: &str| {
        const CARDS: &[&str] = &[
            "h100", "h100s", "h200", "h200s", "a100", "a100s", "b200", "l40s", "a10g", "a6000",
            "v100", "rtx", "l4", "t4", "3090", "4090", "mi300x", "gpu", "gpus", "a40",
        ];
        CARDS.contains(&word)
    };
    for (at, word) in words.iter().enumerate() {
        let next = |n: usize| words.get(at + n).copied().unwrap_or_default();
        // `8xh100`
        if let Some((count, name)) = word.split_once('x')
            && let Ok(count) = count.parse::<u64>()
            && (card(name) || (name.is_empty() && card(next(1))))
        {
            return sane(count);
        }
        if let Ok(count) = word.parse::<u64>() {
            let follows = card(next(1)) || (next(1) == "x" && card(next(2)));
            // `80GB A100` and `4 GPUs per node` are not counts of the job.
            if follows && !words.contains(&"per") {
                return sane(count);
            }
        }
    }
    None
}

fn sane(count: u64) -> Option<u64> {
    (1..=65_536).contains(&count).then_some(count)
}

/// `ZeRO-3`, `zero stage 2`, `deepspeed_zero3.yaml`, `recipes/accelerate_configs/zero2.yaml`.
pub fn zero(text: &str) -> Option<DataParallel> {
    let plain: String = text
        .to_ascii_lowercase()
        .chars()
        .filter(|c| !matches!(c, '-' | '_' | ' '))
        .collect();
    [
        ("zero3", DataParallel::Zero3),
        ("zerostage3", DataParallel::Zero3),
        ("stage3", DataParallel::Zero3),
        ("zero2", DataParallel::Zero2),
        ("zerostage2", DataParallel::Zero2),
        ("stage2", DataParallel::Zero2),
        ("zero1", DataParallel::Zero1),
        ("zerostage1", DataParallel::Zero1),
        ("stage1", DataParallel::Zero1),
        ("zero0", DataParallel::Zero0),
        ("stage0", DataParallel::Zero0),
    ]
    .iter()
    .find(|(part, _)| plain.contains(part))
    .map(|(_, stage)| *stage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_gpus_are_read_and_sizes_are_not() {
        #[track_caller]
        fn check(text: &str, expected: Option<u64>) {
            assert_eq!(gpus(text), expected, "{text}");
        }
        check("4x H100 80GB", Some(4));
        check("1 node of 8 x H100s", Some(8));
        check("note, this is set up for 8 GPUs", Some(8));
        check("needs 80GB A100", None);
        check("4 GPUs per node", None);
        check("8xA100", Some(8));
        check("an epoch is 3 hours", None);
    }
}
