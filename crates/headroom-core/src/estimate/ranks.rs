//! The ranks of a job that differ: each is simulated separately, and the fullest decides whether the job fits.

use serde::Serialize;

use super::engine::Engine;
use super::time::{self, Span};
use super::{
    Band, Category, Estimate, Part, Peaks, Phase, Unsupported, alloc_conf, assess, deciding,
    divided, quick, work,
};
use crate::parallel::World;
use crate::step::{Detail, Run};
use headroom_base::mesh::Rank;
use headroom_base::units::Bytes;
use headroom_catalog::Speeds;
use headroom_scenario::{Case, Scenario, Schedule};

/// The memory of one rank, and of all ranks at the same position.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RankMemory {
    /// Its stage of the pipeline.
    pub stage: u32,
    /// Its index among the ranks over which tensors are sharded.
    pub shard: u32,
    /// `torch.cuda.max_memory_allocated` on this rank.
    pub allocated: Band,
    /// `torch.cuda.max_memory_reserved` on this rank.
    pub reserved: Band,
    /// As `nvidia-smi` shows it for this rank's process.
    pub device: Band,
    /// Allocated between steps.
    #[serde(rename = "static")]
    pub between_steps: Bytes,
    /// The phase whose peak is the step's peak.
    pub phase: Phase,
    /// What is alive at the peak.
    pub breakdown: Vec<Part<Category>>,
    /// Whether it fits its GPU, as `Estimate::fits` says; `None` if the GPU's memory is unknown.
    pub fits: Option<bool>,
}

impl RankMemory {
    fn of(rank: Rank, estimate: &Estimate) -> Self {
        Self {
            stage: rank.stage,
            shard: rank.shard,
            allocated: estimate.allocated,
            reserved: estimate.reserved,
            device: estimate.device,
            between_steps: estimate.between_steps,
            phase: estimate.phase,
            breakdown: estimate.breakdown.clone(),
            fits: estimate.fits,
        }
    }

    /// Whether it differs by more than a thousandth.
    fn differs_from(&self, other: &Self) -> bool {
        let differs = |this: Band, other: Band| {
            let (this, other) = (this.expected.get(), other.expected.get());
            this.abs_diff(other) > this / 1000
        };
        differs(self.reserved, other.reserved) || differs(self.allocated, other.allocated)
    }
}

/// A rank's first steps, and the allocator's replay of them.
#[derive(Debug)]
pub(crate) struct FirstSteps {
    pub rank: Rank,
    pub run: Run,
    pub peaks: Peaks,
    /// The memory of each pipeline stage; empty without a pipeline.
    stages: Vec<RankMemory>,
}

impl FirstSteps {
    /// What these steps need.
    pub(crate) fn estimate(&self, case: &Case) -> Result<Estimate, Unsupported> {
        assess::estimate(&case.on(self.rank), &self.run, &self.peaks)
    }

    fn is_fuller_than(&self, other: &Self) -> bool {
        let filled = |steps: &Self| {
            let highest = steps.peaks.highest().map_or(0, |peak| peak.bytes);
            (steps.peaks.reserved, highest)
        };
        filled(self) > filled(other)
    }
}

/// How many micro-batches are simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MicroBatches {
    /// Enough for the allocator's blocks to reach a steady state.
    Default,
    /// As few as reach every state of the memory.
    Fewest,
}

/// The first steps of this case's rank.
pub(crate) fn first_steps(case: &Case, detail: Detail) -> Result<FirstSteps, Unsupported> {
    let usual = simulate(case, detail, MicroBatches::Default)?;
    let steps = match usual {
        Some(steps) => Some(steps),
        None => simulate(case, detail, MicroBatches::Fewest)?,
    };
    steps.ok_or(Unsupported::TooMuchWork)
}

/// Simulates the first steps; `None` if the allocator would get too many requests.
fn simulate(
    case: &Case,
    detail: Detail,
    micro_batches: MicroBatches,
) -> Result<Option<FirstSteps>, Unsupported> {
    let engine = Engine::of(case)?;
    let run = match micro_batches {
        MicroBatches::Default => engine.first_steps(detail)?,
        MicroBatches::Fewest => engine.fewest_first_steps(detail)?,
    };
    if work::requests(&run.trace) > work::MOST_REQUESTS {
        return Ok(None);
    }
    let settings = alloc_conf::settings(&case.scenario.runtime);
    let peaks = Peaks::replayed(&run.trace, &settings);
    Ok(Some(FirstSteps {
        rank: case.rank,
        run,
        peaks,
        stages: Vec::new(),
    }))
}

/// The first steps of the fullest rank: of the fullest pipeline stage, and of the first shard, which is never smaller than
/// another.
pub(crate) fn fullest(case: &Case, detail: Detail) -> Result<FirstSteps, Unsupported> {
    let mut fullest = first_steps(case, detail)?;
    let count = fullest.run.pipeline_parallel;
    if count < 2 {
        return Ok(fullest);
    }
    // All simulated stages share the work limit of one answer.
    let all = later_stages(count, u32::MAX).count() + 1;
    let affordable = |steps: &FirstSteps| work::MOST_OF_STAGES / work::of(&steps.run.trace).max(1);
    let mut micro_batches = MicroBatches::Default;
    let mut stages_at_each_end = u32::MAX;
    if affordable(&fullest) < all {
        if let Some(fewer) = simulate(case, detail, MicroBatches::Fewest)? {
            micro_batches = MicroBatches::Fewest;
            fullest = fewer;
        }
        let most = affordable(&fullest);
        if most < all {
            stages_at_each_end = u32::try_from(most / 2).unwrap_or(u32::MAX);
        }
    }
    let mut stages = vec![RankMemory::of(fullest.rank, &fullest.estimate(case)?)];
    for stage in later_stages(count, stages_at_each_end) {
        let next = simulate(&case.on(of_stage(stage)), detail, micro_batches)?;
        let next = next.ok_or(Unsupported::TooMuchWork)?;
        stages.push(RankMemory::of(next.rank, &next.estimate(case)?));
        if next.is_fuller_than(&fullest) {
            fullest = next;
        }
    }
    fullest.stages = stages;
    Ok(fullest)
}

/// The ranks that differ, given the fullest rank's steps and their estimate.
pub(crate) fn all(
    case: &Case,
    fullest: &FirstSteps,
    estimate: &Estimate,
) -> Result<Vec<RankMemory>, Unsupported> {
    let mut ranks = fullest.stages.clone();
    let first = RankMemory::of(fullest.rank, estimate);
    let world = World::of_case(case);
    let last = Rank {
        shard: world.distinct_ranks().saturating_sub(1),
        ..fullest.rank
    };
    let is_affordable = work::of(&fullest.run.trace) <= work::MOST_OF_SHARDS;
    let other = if last == fullest.rank || !is_affordable {
        None
    } else {
        // The uncertainty of convolutions is read from the kernels.
        let steps = first_steps(&case.on(last), Detail::Kernels)?;
        let needs = RankMemory::of(last, &steps.estimate(case)?);
        first.differs_from(&needs).then_some(needs)
    };
    if ranks.is_empty() {
        ranks.push(first);
    }
    let place = ranks
        .iter()
        .position(|rank| rank.stage == fullest.rank.stage)
        .map_or(ranks.len(), |place| place + 1);
    if let Some(other) = other {
        ranks.insert(place, other);
    }
    Ok(ranks)
}

/// The allocated peak of the fullest rank in a steady-state step.
pub(crate) fn quick_peak(case: &Case) -> Result<Bytes, Unsupported> {
    let (mut most, run) = quick_run_of(case)?;
    let count = run.pipeline_parallel;
    let middle = middle_stages_to_run(case.scenario, &run);
    for stage in later_stages(count, u32::MAX) {
        if stage + 1 < count && stage > middle {
            continue;
        }
        most = most.max(quick_peak_of(&case.on(of_stage(stage)))?.0);
    }
    Ok(most)
}

/// The same for this case's rank only, and the number of its pipeline stages.
pub(crate) fn quick_peak_of(case: &Case) -> Result<(Bytes, u32), Unsupported> {
    let (peak, run) = quick_run_of(case)?;
    Ok((peak, run.pipeline_parallel))
}

fn quick_run_of(case: &Case) -> Result<(Bytes, Run), Unsupported> {
    let run = Engine::of(case)?.peak_only_step(Detail::Memory)?;
    Ok((Bytes::new(quick::peak(&run.trace)), run))
}

/// How many middle stages of a pipeline can be the fullest. If all layers are alike, no stage has more layers or more
/// micro-batches in flight than the one before it. The first also has the embedding, the others the gradients of their
/// received activations; with one more micro-batch in flight, the first's activations outweigh those.
fn middle_stages_to_run(scenario: &Scenario, run: &Run) -> u32 {
    let (layout, count) = (&scenario.parallel, run.pipeline_parallel);
    let fills = scenario.training.accumulation >= u64::from(count);
    if !run.like_layers || layout.virtual_stages > 1 {
        return u32::MAX;
    }
    match layout.schedule {
        Schedule::OneForwardOneBackward if fills => 0,
        Schedule::OneForwardOneBackward | Schedule::GPipe => 1,
        _ => u32::MAX,
    }
}

/// The figures that a search over layouts needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuickStep {
    /// The allocated peak of a steady-state step, of the first or the last stage.
    pub peak: Bytes,
    /// The duration of a step on the slower of the stages that were run.
    pub step: Span,
    /// Whether all degrees of the layout are modelled.
    pub is_split: bool,
    /// Tensors that were recorded: the work that it took.
    pub tensors: u64,
}

/// The peak and the duration of a steady-state step of the first and the last pipeline stage, the fullest and the slowest.
/// The last is skipped if the first already exceeds `allowance`.
pub fn quick_step(scenario: &Scenario, allowance: Bytes) -> Result<QuickStep, Unsupported> {
    let decides = deciding(scenario);
    let case = Case::of(&decides);
    // Memory can be searched on a GPU of unknown speed: the times of an A100 order the layouts.
    let speeds = time::known(&case).unwrap_or_else(|_| Speeds::a100());
    // This many micro-batches reach every state of the memory and represent the rest.
    let mut short = decides.clone().into_owned();
    let enough = match short.parallel.pp {
        0 | 1 => 2,
        stages => u64::from(stages) + 1,
    };
    short.training.accumulation = short.training.accumulation.min(enough);
    let of_rank = |rank: Rank| {
        let case = case.on(rank);
        let run = Engine::of(&Case::of(&short).on(rank))?.peak_only_step(Detail::Kernels)?;
        let step = time::phase_times(&run, &case, &speeds).step();
        let quick = QuickStep {
            peak: Bytes::new(quick::peak(&run.trace)),
            step,
            is_split: divided::not_split(&run, case.scenario).is_none(),
            tensors: run.trace.storages.len() as u64,
        };
        Ok((quick, run.pipeline_parallel))
    };
    let (first, count) = of_rank(case.rank)?;
    let is_enough = first.peak > allowance || !first.is_split;
    let Some(last) = count.checked_sub(1).filter(|last| *last > 0 && !is_enough) else {
        return Ok(first);
    };
    let (last, _) = of_rank(of_stage(last))?;
    let slower = last.step.expected.get() > first.step.expected.get();
    Ok(QuickStep {
        peak: first.peak.max(last.peak),
        step: if slower { last.step } else { first.step },
        is_split: first.is_split,
        tensors: first.tensors + last.tensors,
    })
}

const fn of_stage(stage: u32) -> Rank {
    Rank { stage, shard: 0 }
}

/// The stages after the first that are simulated. In very long pipelines those in the middle are skipped: they have the
/// layers of their neighbours, and no more micro-batches in flight than the stages before them. `affordable` can limit the
/// number at each end further.
fn later_stages(count: u32, affordable: u32) -> impl Iterator<Item = u32> {
    const MOST_AT_EACH_END: u32 = 16;
    let stages_at_each_end = affordable.clamp(1, MOST_AT_EACH_END);
    (1..count)
        .filter(move |stage| *stage < stages_at_each_end || stage + stages_at_each_end >= count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{Prediction, quick_peak};
    use headroom_scenario::settings;

    fn prediction(run: &str) -> Prediction {
        let mut scenario = Scenario::default();
        for word in run.split(' ') {
            let (name, value) = word.split_once('=').unwrap();
            settings::set(&mut scenario, name, value).unwrap();
        }
        Prediction::new(scenario)
    }

    /// The stage and the shard of each rank that differs.
    #[track_caller]
    fn check(run: &str, expected: &[(u32, u32)]) {
        let prediction = prediction(run);
        let ranks = prediction.ranks().unwrap();
        let places: Vec<_> = ranks.iter().map(|rank| (rank.stage, rank.shard)).collect();
        assert_eq!(places, expected, "{run}");
        let headline = prediction.estimate().unwrap();
        let fullest = ranks.iter().map(|rank| rank.device.expected).max();
        assert_eq!(Some(headline.device.expected), fullest, "{run}");
        let allocated = ranks.iter().map(|rank| rank.allocated.expected).max();
        let quick = quick_peak(prediction.scenario()).unwrap();
        assert!(Some(quick) <= allocated, "{run}");
    }

    #[test]
    fn differing_ranks_are_listed() {
        let model = "mb=1 seq=64 model=llama-3.2-1b precision=bf16";
        check(&format!("{model} gpus=1"), &[(0, 0)]);
        check(&format!("{model} gpus=4 par=fsdp2"), &[(0, 0)]);
        // 2048 rows over seven: the last has fewer.
        check(&format!("{model} gpus=7 par=fsdp2"), &[(0, 0), (0, 6)]);
        // Four stages of a decoder whose head has weights of its own.
        let pipeline = "mb=1 seq=64 model=llama-3.1-8b precision=bf16 gpus=4 par=ddp pp=4 accum=4";
        check(pipeline, &[(0, 0), (1, 0), (2, 0), (3, 0)]);
    }

    #[test]
    fn few_micro_batches_reach_the_peak() {
        let check = |run: &str| {
            let prediction = prediction(run);
            let case = Case::of(prediction.scenario());
            let (_, stages) = quick_peak_of(&case).unwrap();
            assert!(stages > 1, "{run}");
            let mut fullest = 0;
            for stage in 0..stages {
                let rank = case.on(of_stage(stage));
                let engine = Engine::of(&rank).unwrap();
                let brief = engine.peak_only_step(Detail::Memory).unwrap().trace;
                let whole = engine.steady_step(Detail::Memory).unwrap().trace;
                let peaks = [&brief, &whole].map(quick::peak);
                assert_eq!(peaks[0], peaks[1], "{run}, stage {stage}");
                fullest = fullest.max(peaks[1]);
                // Otherwise nothing would have been left out, or folded.
                assert!(quick::outline(&brief).micro_batches <= 3, "{run}");
                assert!(!brief.groups.is_empty(), "{run}");
            }
            // Not every stage is asked.
            assert_eq!(
                quick_peak(prediction.scenario()).unwrap().get(),
                fullest,
                "{run}"
            );
        };
        let job = "mb=1 seq=256 model=llama-3.1-8b precision=bf16 gpus=8 pp=4";
        for accumulation in [1, 3, 4, 5, 9] {
            for strategy in ["ddp", "fsdp2"] {
                for checkpointing in ["none", "layers"] {
                    check(&format!(
                        "{job} accum={accumulation} par={strategy} ckpt={checkpointing}"
                    ));
                }
            }
        }
        check(&format!("{job} accum=9 par=fsdp2 tp=2 sp=on ckpt=layers"));
        check(&format!("{job} accum=9 par=fsdp2 trainer=torchtitan"));
        check(&format!("{job} accum=9 par=fsdp2 trainer=megatron"));
    }

    #[test]
    fn the_headline_is_the_fullest_stages() {
        let check = |checkpointing: &str, fullest: usize| {
            let prediction = prediction(&format!(
                "model=llama-3.1-8b mb=1 seq=2048 precision=bf16 gpus=4 par=ddp pp=4 accum=4 ckpt={checkpointing}"
            ));
            let of_stage = |stage: usize| prediction.ranks().unwrap()[stage].device.expected;
            let headline = prediction.estimate().unwrap().device.expected;
            assert_eq!(headline, of_stage(fullest), "{checkpointing}");
            let others = (0..4).filter(|stage| *stage != fullest);
            assert!(others.map(of_stage).all(|other| other < headline));
        };
        // The first keeps the layers of four micro-batches; where these are checkpoints, the last keeps most: its logits.
        check("none", 0);
        check("layers", 3);
    }

    #[test]
    fn only_the_ends_of_a_long_pipeline_are_simulated() {
        let all = |count| later_stages(count, u32::MAX);
        assert_eq!(all(4).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(all(100).count(), 31);
        assert_eq!(all(1).count(), 0);
        assert_eq!(later_stages(16, 2).collect::<Vec<_>>(), [1, 14, 15]);
        assert_eq!(later_stages(16, 0).collect::<Vec<_>>(), [15]);
    }
}
