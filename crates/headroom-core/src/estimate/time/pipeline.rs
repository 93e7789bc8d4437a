//! What each GPU of a pipeline does when, and how long it waits for the others.

use super::StepTime;
use crate::parallel::World;
use crate::parallel::schedule::{PassTimes, Pipeline, TimedPass};
use headroom_scenario::{Case, Scenario};

/// Passes that are put in order at most: a layout with more is drawn and timed by its first micro-batches.
const MOST_PASSES: usize = 1 << 12;

/// The passes of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Timetable {
    /// Of each rank of the pipeline, in seconds from the start of the step.
    pub ranks: Vec<Vec<TimedPass>>,
    /// Micro-batches in it; where a step has very many, the first.
    pub micro_batches: usize,
    /// Those of the step.
    pub of: u64,
}

/// The timetable of a step; none where there is no pipeline, or one whose schedule is not modelled.
pub fn timetable(case: &Case, time: &StepTime, most: usize) -> Option<Timetable> {
    let pipeline = short(case.scenario, most)?;
    let of = case.scenario.training.accumulation.max(1);
    let each = 1.0 / (of as f64 * pipeline.stages as f64);
    let times = PassTimes {
        forward: time.forward.expected.get() * each,
        backward: time.backward.expected.get() * each,
    };
    Some(Timetable {
        ranks: pipeline.timetable(times),
        micro_batches: pipeline.micro_batches,
        of,
    })
}

/// How much longer a step's passes take because a pipeline's GPUs wait for each other, as a share of them.
pub(super) fn bubble(scenario: &Scenario) -> f64 {
    /// A backward takes twice as long as a forward (arXiv 2001.08361, 2.1).
    const TIMES: PassTimes = PassTimes {
        forward: 1.0,
        backward: 2.0,
    };
    let layout = &scenario.parallel;
    let micro_batches = scenario.training.accumulation.max(1) as f64;
    let stages = f64::from(layout.virtual_stages.max(1));
    // A rank waits while the pipeline fills and drains, however many micro-batches come between.
    let Some(pipeline) = short(scenario, (layout.pp as usize).saturating_mul(4)) else {
        // `(p - 1) / (m v)` (arXiv 2104.04473, 2.2).
        return f64::from(layout.pp.saturating_sub(1)) / (micro_batches * stages);
    };
    let length = length(&pipeline.timetable(TIMES));
    let each = (TIMES.forward + TIMES.backward) * stages;
    let idle = (length - each * pipeline.micro_batches as f64).max(0.0);
    idle / (each * micro_batches)
}

/// How long it takes from the first pass to the end of the last.
fn length(ranks: &[Vec<TimedPass>]) -> f64 {
    let ends = ranks.iter().flatten().map(|pass| pass.end);
    ends.fold(0.0, f64::max)
}

/// The pipeline with the first of its micro-batches: no more than these, and so many that they are soon put in order.
fn short(scenario: &Scenario, most: usize) -> Option<Pipeline> {
    let world = World::of_case(&Case::of(scenario));
    let stages = world
        .mesh
        .stages
        .saturating_mul(world.parallel.virtual_stages.max(1));
    let all = usize::try_from(scenario.training.accumulation.max(1)).unwrap_or(usize::MAX);
    let few = MOST_PASSES / usize::try_from(stages).ok()?.max(1);
    let ranks = usize::try_from(world.mesh.stages).ok()?;
    // Interleaved schedules take whole rounds.
    let micro_batches = match all.min(most).min(few) {
        some if some < all && some > ranks => some - some % ranks.max(1),
        some => some,
    };
    if micro_batches == 0 {
        return None;
    }
    world.pipeline(micro_batches)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Prediction;
    use headroom_scenario::settings;

    fn scenario(run: &str) -> Scenario {
        let mut scenario = Scenario::default();
        for word in run.split(' ') {
            let (name, value) = word.split_once('=').unwrap();
            settings::set(&mut scenario, name, value).unwrap();
        }
        scenario
    }

    #[test]
    fn a_bubble_is_what_is_known_of_its_schedule() {
        #[track_caller]
        fn check(run: &str, expected: f64) {
            let bubble = bubble(&scenario(&format!("gpus=8 par=ddp {run}")));
            assert!((bubble - expected).abs() < 1e-9, "{run}: {bubble}");
        }
        check("pp=4 accum=4", 3.0 / 4.0);
        check("pp=4 accum=8 schedule=gpipe", 3.0 / 8.0);
        // So many micro-batches are not all put in order.
        check("pp=8 accum=1000", 7.0 / 1000.0);
        check("pp=4 accum=64 vpp=2 schedule=interleaved", 3.0 / 128.0);
        check("pp=4 accum=64 schedule=zero-bubble", 1.0 / 64.0);
        // A schedule that the tape does not follow.
        check("pp=4 accum=8 vpp=2", 3.0 / 16.0);
    }

    #[test]
    fn each_micro_batch_takes_as_long_however_many_come() {
        let each = |accumulation: u32, more: &str| {
            let run = format!(
                "model=llama-3.1-8b gpu=h100-sxm5-80gb precision=bf16 mb=1 seq=256 gpus=8 nodes=1 pp=4 accum={accumulation} {more}"
            );
            let time = Prediction::new(scenario(&run)).step_time().unwrap();
            let passes = [time.forward, time.backward].map(|span| span.expected.get());
            passes.map(|seconds| seconds / f64::from(accumulation))
        };
        for more in [
            "par=ddp",
            "par=fsdp2",
            "par=ddp vpp=2 schedule=interleaved",
            "par=ddp schedule=zero-bubble",
        ] {
            let (few, many) = (each(16, more), each(128, more));
            for (few, many) in few.into_iter().zip(many) {
                assert!((many / few - 1.0).abs() < 0.002, "{more}: {few} {many}");
            }
        }
    }

    #[test]
    fn a_timetable_takes_as_long_as_the_step_says() {
        let run = "model=llama-3.1-8b gpu=h100-sxm5-80gb precision=bf16 mb=1 seq=256 gpus=4 par=ddp pp=4 accum=6";
        let prediction = Prediction::new(scenario(run));
        let time = prediction.step_time().unwrap();
        let timetable = prediction.timetable(64).unwrap().unwrap();
        assert_eq!(
            (timetable.ranks.len(), timetable.micro_batches, timetable.of),
            (4, 6, 6)
        );
        let passes = [time.forward, time.backward, time.bubble].map(|span| span.expected.get());
        let expected: f64 = passes.iter().sum();
        let length = length(&timetable.ranks);
        assert!(
            (length / expected - 1.0).abs() < 1e-9,
            "{length} {expected}"
        );
        // The first micro-batches stand for very many.
        assert_eq!(prediction.timetable(4).unwrap().unwrap().micro_batches, 4);
        let alone = Prediction::new(scenario("gpu=h100-sxm5-80gb"));
        assert_eq!(alone.timetable(64).unwrap(), None);
    }
}
