//! Limits on the work of an answer, counted instead of timed, so that every machine gives the same answer. They are set for
//! about three quarters of a second and 64 MiB per answer, which a hybrid model's 32,768 tokens need.

use super::Expansion;
use crate::tape::Trace;

/// The most requests to the allocator in one replay, with layers unfolded.
pub(crate) const MOST_REQUESTS: usize = 6_000_000;

/// The most work of a run and of the search for the smallest GPU on which it completes.
pub(crate) const MOST_OF_ANSWER: usize = 12_000_000;

/// The most work of all pipeline stages together.
pub(crate) const MOST_OF_STAGES: usize = 1_000_000;

/// The most work of a rank for which another shard is simulated too; that holds no more.
pub(crate) const MOST_OF_SHARDS: usize = 1_500_000;

/// Requests to the allocator in a replay. A copied part counts once if it leaves the allocator's state unchanged, which it
/// does from the second micro-batch or step on.
pub(crate) fn requests(trace: &Trace) -> usize {
    let expansion = Expansion::new(trace);
    let begins = |phase: usize| {
        let mark = trace.phase_starts.get(phase);
        mark.map_or(trace.events.len(), |mark| mark.at)
    };
    let mut all = 0;
    let mut from = 0;
    for copied in &trace.copied {
        let (begin, end) = (begins(copied.from), begins(copied.from + copied.count));
        // A copy inside another is skipped with it.
        if begin >= from {
            all += expansion.count(from, begin);
            from = end;
        }
    }
    all + expansion.count(from, trace.events.len())
}

/// The same including the cost of recording the trace: a tensor costs about eight requests.
pub(crate) fn of(trace: &Trace) -> usize {
    const OF_A_TENSOR: usize = 8;
    requests(trace) + OF_A_TENSOR * trace.storages.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocator::counting::take_count;
    use crate::estimate::Prediction;
    use crate::estimate::engine::counting::take_counts;
    use headroom_catalog as catalog;
    use headroom_scenario::settings::{self, ValueType};
    use headroom_scenario::{Scenario, presets};
    use headroom_testing::Dice;

    fn with(model: &str, changes: &[(&str, &str)]) -> Scenario {
        let mut scenario = Scenario::default();
        scenario.model.id = model.into();
        for (name, value) in changes {
            settings::set(&mut scenario, name, value).unwrap();
        }
        scenario
    }

    #[test]
    fn copies_do_not_count_as_work() {
        let of = |accumulation: &str| {
            let prediction = Prediction::new(with("gpt2", &[("accum", accumulation)]));
            requests(&prediction.first_steps().unwrap().run.trace)
        };
        let (three, eight, many) = (of("3"), of("8"), of("1000"));
        // Only the batches that wait are more.
        assert!(
            three < eight && eight < three + three / 20,
            "{three} {eight}"
        );
        assert!(many <= eight + 8, "{eight} {many}");
    }

    /// What one answer of `headroom estimate` took: storages made, memory asked of the allocator, bytes of the largest trace.
    fn counted(scenario: Scenario) -> Option<[usize; 3]> {
        let _ = (take_counts(), take_count());
        let prediction = Prediction::new(scenario);
        let answered = prediction.estimate().is_ok();
        let _ = (prediction.smallest_card(), prediction.ranks());
        let ((made, bytes), asked) = (take_counts(), take_count());
        answered.then_some([made, asked, bytes])
    }

    #[track_caller]
    fn check(scenario: Scenario) -> bool {
        let link = headroom_scenario::share::write(&scenario);
        let Some([made, asked, bytes]) = counted(scenario) else {
            return false;
        };
        // At half a microsecond and at 50 nanoseconds each this is less than a second.
        let work = made * 8 + asked;
        assert!(work < 15_000_000, "{made} made, {asked} asked: {link}");
        // Beside it are the tensors that are alive and the allocator's blocks.
        assert!(bytes < 32 << 20, "{bytes} bytes: {link}");
        true
    }

    /// A preset or a model with sizes and settings at the edges of what is admitted.
    fn extreme(dice: &mut Dice) -> Scenario {
        let mut pick = |count: usize| dice.below(count as u64) as usize;
        let mut scenario = match pick(3) {
            0 => presets::all()[pick(presets::all().len())].scenario(),
            _ => Scenario::of_model(&catalog::models()[pick(catalog::models().len())]),
        };
        if let Some(entry) = catalog::model(&scenario.model.id) {
            let sizes = entry.sizes();
            for _ in 0..pick(3) {
                let (name, own) = &sizes[pick(sizes.len())];
                let own = own.first().copied().unwrap_or(1);
                let size = [1, own / 2, own * 2, own * 4, 100, 400, 1_000][pick(7)].max(1);
                scenario.model.dims.insert((*name).into(), size);
            }
        }
        for _ in 0..=pick(4) {
            let setting = &settings::all()[pick(settings::all().len())];
            let value = match setting.value_type {
                ValueType::Whole { low, high } => [low, 8, 64, 129, 1_000, high][pick(6)]
                    .clamp(low, high)
                    .to_string(),
                ValueType::Switch => ["on", "off"][pick(2)].to_string(),
                ValueType::Choice(choices) => choices[pick(choices.len())].id.to_string(),
                _ => continue,
            };
            let _ = setting.set(&mut scenario, &value);
        }
        scenario
    }

    #[test]
    fn accepted_scenarios_stay_within_the_work_limit() {
        let pipeline = [
            ("gpus", "16"),
            ("par", "ddp"),
            ("pp", "16"),
            ("accum", "64"),
        ];
        let zero = [("gpus", "8"), ("par", "zero3"), ("accum", "8")];
        let (accumulated, deep) = ([("accum", "8")], [("dims", "layers_per_block=12")]);
        for (model, changes) in [
            ("llama-3.1-405b", &pipeline[..]),
            ("llama-3.1-405b", &zero),
            ("sdxl-unet", &accumulated),
            ("sdxl-unet", &deep),
            ("deepseek-v3", &accumulated),
        ] {
            assert!(check(with(model, changes)), "{model} {changes:?}");
        }
        let mut dice = Dice::new(16);
        let (mut admitted, mut tried) = (0, 0);
        while tried < 60 {
            let scenario = extreme(&mut dice);
            if scenario.check().is_empty() {
                tried += 1;
                admitted += usize::from(check(scenario));
            }
        }
        // A bound that refuses everything would hold as well.
        assert!(admitted > 45, "{admitted} of {tried}");
    }
}
