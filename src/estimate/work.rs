//! How much work an answer is: counted, for a clock says something else on every machine, and refused or left out where it is too
//! much. With these limits no answer takes more than a quarter of a second or 64 MiB.

use super::Expansion;
use crate::tape::Trace;

/// Requests to the allocator in one replay, each layer's told.
pub const MOST_REQUESTS: usize = 1_200_000;

/// Work of all stages of a pipeline together.
pub const MOST_OF_STAGES: usize = 1_000_000;

/// What the allocator is asked in a replay. What was copied is asked once, if it leaves the allocator as it found it, which it does
/// from the second micro-batch or step on.
pub fn requests(trace: &Trace) -> usize {
    let expansion = Expansion::new(trace);
    let begins = |phase: usize| {
        let mark = trace.phase_starts.get(phase);
        mark.map_or(trace.events.len(), |mark| mark.at)
    };
    let mut all = 0;
    let mut from = 0;
    for copied in &trace.copied {
        let (begin, end) = (begins(copied.from), begins(copied.from + copied.count));
        // One inside another is left out with it.
        if begin >= from {
            all += expansion.count(from, begin);
            from = end;
        }
    }
    all + expansion.count(from, trace.events.len())
}

/// The same with what it takes to make the trace: a tensor costs as much as some eight requests.
pub fn of(trace: &Trace) -> usize {
    const OF_A_TENSOR: usize = 8;
    requests(trace) + OF_A_TENSOR * trace.storages.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Prediction;
    use crate::scenario::{Scenario, settings};

    fn requests_of(changes: &[(&str, &str)]) -> usize {
        let mut scenario = Scenario::default();
        for (name, value) in changes {
            settings::set(&mut scenario, name, value).unwrap();
        }
        let prediction = Prediction::new(scenario);
        requests(&prediction.first_steps().unwrap().run.trace)
    }

    #[test]
    fn what_is_copied_is_no_work() {
        let of = |accumulation: &str| requests_of(&[("accum", accumulation)]);
        let (three, eight, many) = (of("3"), of("8"), of("1000"));
        // Only the batches that wait are more.
        assert!(
            three < eight && eight < three + three / 20,
            "{three} {eight}"
        );
        assert!(many <= eight + 8, "{eight} {many}");
    }
}
