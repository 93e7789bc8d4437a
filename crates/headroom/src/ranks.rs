//! The ranks of a job that hold different things, beside the headline of the fullest.

use super::answer::{band, name};
use headroom_base::document::Document;
use headroom_core::estimate::RankMemory;
use headroom_scenario::{Parallelism, Scenario};

/// Adds the ranks to an estimate of several GPUs.
pub(super) fn in_document(
    document: Document,
    scenario: &Scenario,
    ranks: &[RankMemory],
) -> Document {
    if scenario.hardware.gpus < 2 {
        return document;
    }
    let of_rank = |rank: &RankMemory| {
        let breakdown = rank.breakdown.iter();
        let breakdown = breakdown.map(|part| (name(part.what), part.bytes.into()));
        Document::new()
            .with("stage", u64::from(rank.stage))
            .with("shard", u64::from(rank.shard))
            .with("allocated", band(rank.allocated))
            .with("reserved", band(rank.reserved))
            .with("device", band(rank.device))
            .with("static", rank.between_steps)
            .with("phase", name(rank.phase))
            .with("breakdown", breakdown.collect::<Document>())
            .with("fits", rank.fits)
    };
    document.with("ranks", Document::List(ranks.iter().map(of_rank).collect()))
}

/// A line for each rank; nothing where all are alike.
pub(super) fn table(scenario: &Scenario, ranks: &[RankMemory]) -> String {
    if ranks.len() < 2 {
        return String::new();
    }
    let stages = scenario.parallel.pp;
    let mut text = String::from("\nranks that differ (the fullest is shown above):\n");
    for rank in ranks {
        let copies = scenario.parallel.strategy == Parallelism::DataParallel;
        let place = match (stages > 1, rank.shard) {
            _ if copies && rank.shard == 0 => "the first GPU".into(),
            _ if copies => "the other GPUs".into(),
            (true, 0) => format!("stage {} of {stages}", rank.stage),
            (true, _) => format!("stage {} of {stages}, last shard", rank.stage),
            (false, 0) => "first shard".into(),
            (false, _) => "last shard".into(),
        };
        let fits = match rank.fits {
            Some(true) => ", fits",
            Some(false) => ", does not fit",
            None => "",
        };
        text.push_str(&format!(
            "  {place:<24} device {:>9}, allocated {:>9}, reserved {:>9}, peak in {}{fits}\n",
            rank.device.expected.to_string(),
            rank.allocated.expected.to_string(),
            rank.reserved.expected.to_string(),
            name(rank.phase),
        ));
    }
    text
}
