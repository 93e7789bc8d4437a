//! Scenario in, estimate out.

mod card;
mod device;
mod divided;
mod drawn;
mod expand;
mod explain;
mod host;
mod names;
mod outcome;
pub mod parts;
mod quick;
mod replay;
mod resume;
mod scan;
pub(crate) mod software;
mod spread;
mod steps;
pub mod time;
mod uncertainty;

pub use crate::tape::{Category, Phase};
pub use card::{SmallestCard, smallest_card};
pub use drawn::{edges, own_card, sized, walk};
pub use expand::{Expansion, Single};
pub use explain::{Held, Kept, held_at_instant, held_at_peak, kept_in};
pub use host::{Disk, Host, HostPart, HostUse};
pub use names::{unmatched, warnings};
pub use outcome::{Band, Estimate, Fit, Instant, Part, Unsupported};
pub use scan::{Alive, Peaks, PhasePeak, alive_at, by_category, by_module};
pub use spread::{Joined, Spread, at_least_once};
pub use steps::{Besides, Kept as KeptEachStep, ManySteps, Plan, SHOWN, StepMemory, Walk};
pub use uncertainty::Doubts;

use crate::allocator::{Divisions, Settings};
use crate::catalog;
use crate::nets::{self, Net, Sizes};
use crate::order::{Map, sorted};
use crate::scenario::{Attention, Parallelism, Runtime, Scenario};
use crate::step::{self, Buckets, Course, Run, Told};
use crate::tape::Machine;
use crate::units::Bytes;

/// Phases whose peaks are told apart.
const PHASES: [Phase; 5] = [
    Phase::Forward,
    Phase::Backward,
    Phase::Optimizer,
    Phase::Evaluation,
    Phase::Resume,
];

/// Steps that are run: the last is like all that follow.
const STEPS: u32 = 3;

/// What a training step of this scenario needs.
pub fn estimate(scenario: &Scenario) -> Result<Estimate, Unsupported> {
    let (net, architecture) = built(scenario)?;
    let estimate = of_net(&*net, architecture, scenario);
    if estimate.trainable == 0 {
        return Err(names::nothing_trained(scenario));
    }
    Ok(estimate)
}

/// The allocated peak alone, without the allocator's own slack: what a search over thousands of scenarios needs.
/// One steady step; never more than `estimate` says, and less by the allocator's rounding of large blocks only.
pub fn quick_peak(scenario: &Scenario) -> Result<Bytes, Unsupported> {
    Ok(Bytes::new(quick::peak(
        &steady_as(scenario, Told::Memory)?.trace,
    )))
}

/// The kernels of a step by name, each once.
pub fn operations(scenario: &Scenario) -> Result<Vec<&'static str>, Unsupported> {
    let mut names: Vec<&'static str> = Vec::new();
    for kernel in steady(scenario)?.trace.kernels {
        if !names.contains(&kernel.op) {
            names.push(kernel.op);
        }
    }
    Ok(names)
}

/// One steady step.
fn steady(scenario: &Scenario) -> Result<Run, Unsupported> {
    steady_as(scenario, Told::Kernels)
}

fn steady_as(scenario: &Scenario, told: Told) -> Result<Run, Unsupported> {
    let (net, _) = built(scenario)?;
    let machine = machine(scenario);
    let steps = Course {
        told,
        ..Course::steady(&scenario.training, machine)
    };
    Ok(step::run(
        &*net,
        &scenario.data,
        &scenario.training,
        machine,
        course(scenario, steps),
    ))
}

/// What a scenario's run does beside its steps.
fn course(scenario: &Scenario, steps: Course) -> Course {
    Course {
        buckets: buckets(scenario),
        evaluation: scenario.runtime.eval_batch,
        resumes: resume::on_device(scenario),
        libraries: software::libraries(&scenario.stack),
        ..steps
    }
}

fn outline_of(run: &Run) -> quick::Outline {
    quick::outline(&run.trace)
}

/// The scenario's network and the name of its architecture.
fn built(scenario: &Scenario) -> Result<(Box<dyn Net>, &'static str), Unsupported> {
    if let Some(network) = &scenario.model.network {
        let (model, data) = (&scenario.model, &scenario.data);
        let plan = network.plan(&model.dims, data.micro_batch, data.sequence);
        let plan = plan.map_err(|problem| Unsupported(problem.to_string()))?;
        return Ok((nets::declared(plan), "declared"));
    }
    let entry = catalog::model(&scenario.model.id).ok_or_else(|| {
        Unsupported(format!(
            "model.id: `{}` is not in the catalogue",
            scenario.model.id
        ))
    })?;
    let mut sizes = Sizes::from_entry(entry);
    sizes.extend(&scenario.model.dims);
    let unsupported = |error: nets::ModelError| Unsupported(error.to_string());
    let net = nets::build(entry.arch, &sizes).map_err(unsupported)?;
    net.supports(&scenario.data).map_err(unsupported)?;
    Ok((net, entry.arch))
}

/// The gradient buckets of data parallelism on several GPUs.
fn buckets(scenario: &Scenario) -> Buckets {
    let layout = &scenario.parallel;
    if layout.strategy != Parallelism::Ddp || scenario.hardware.gpus < 2 {
        Buckets::None
    } else if layout.bucket_view {
        Buckets::Viewed {
            mib: layout.bucket_mb,
        }
    } else {
        Buckets::Copied {
            mib: layout.bucket_mb,
        }
    }
}

/// The GPU and PyTorch.
fn machine(scenario: &Scenario) -> Machine {
    Machine {
        torch: software::torch(&scenario.stack),
        ..device::machine(&scenario.hardware, catalog::gpu(&scenario.hardware.gpu))
    }
}

fn ran(net: &dyn Net, scenario: &Scenario) -> Run {
    ran_as(net, scenario, Told::Kernels)
}

fn ran_as(net: &dyn Net, scenario: &Scenario, told: Told) -> Run {
    let machine = machine(scenario);
    step::run(
        net,
        &scenario.data,
        &scenario.training,
        machine,
        Course {
            told,
            ..course(scenario, Course::from_the_start(STEPS))
        },
    )
}

/// The allocator's settings that the scenario asks for.
fn settings(runtime: &Runtime) -> Settings {
    let divisions = runtime.roundup_power2_divisions;
    let above_zero = |it: f64| (it > 0.0).then_some(it);
    Settings {
        expandable_segments: runtime.expandable_segments,
        max_split_size: (runtime.max_split_size_mb > 0)
            .then(|| Bytes::mib(runtime.max_split_size_mb)),
        garbage_collection_threshold: above_zero(runtime.garbage_collection_threshold),
        memory_fraction: above_zero(runtime.memory_fraction).filter(|it| *it < 1.0),
        divisions: Divisions::all(divisions),
        ..Settings::default()
    }
}

/// The run's peaks, with the allocator replayed as the scenario sets it.
fn peaks(run: &Run, scenario: &Scenario) -> Peaks {
    Peaks::replayed(&run.trace, &settings(&scenario.runtime))
}

fn not_modelled(
    uncertainty: uncertainty::Uncertainty,
    elsewhere: Bytes,
    scenario: &Scenario,
) -> Vec<String> {
    let mut missing = uncertainty.not_modelled();
    missing.extend(divided::not_modelled(elsewhere, scenario));
    missing.extend(divided::not_split(scenario));
    if scenario.data.padding_mask && scenario.training.attention == Attention::Flash2 {
        missing.push("the copies that FlashAttention 2 makes to leave padding out".into());
    }
    if scenario.training.fp8 {
        // ctx.save_for_backward(input_hp, weight_hp_t) in torchao/float8/float8_linear.py: what is kept is not fp8.
        missing.push(
            "one layer's copies in fp8; torchao keeps what it saves in 16 bits, as without fp8, and what Transformer Engine saves less"
                .into(),
        );
    }
    missing
}

/// The estimate of a network that is already built.
fn of_net(net: &dyn Net, architecture: &str, scenario: &Scenario) -> Estimate {
    let gpu = catalog::gpu(&scenario.hardware.gpu);
    let run = ran(net, scenario);
    let peaks = peaks(&run, scenario);
    let steady = STEPS - 1;
    let Some(highest) = peaks.highest().copied() else {
        return Estimate::default();
    };
    let alive = alive_at(&run.trace, &highest);
    let (host, disk) = host::beside(&run, peaks.phases.last(), scenario);
    let doubts = Doubts::of(architecture);
    let uncertainty = doubts.uncertainty();
    let allocated = uncertainty.band(Bytes::new(highest.bytes));
    let reserved = Doubts {
        reserved: true,
        ..doubts
    }
    .uncertainty()
    .band(Bytes::new(peaks.reserved));
    let device = device::band(scenario, gpu, reserved);
    let usable = device::usable(scenario, gpu);
    let breakdown = largest_first(with_rest(
        by_category(&run.trace, &alive),
        Category::Rounding,
        highest.bytes,
    ));
    let elsewhere = divided::elsewhere(&breakdown, scenario);
    Estimate {
        allocated: divided::widened(allocated, elsewhere),
        reserved: divided::widened(reserved, elsewhere),
        device: divided::widened(device, elsewhere),
        phase: highest.mark.phase,
        phases: PHASES
            .into_iter()
            .filter_map(|phase| {
                peaks.in_phase(steady, phase).map(|peak| Part {
                    what: phase,
                    bytes: Bytes::new(peak.bytes),
                })
            })
            .collect(),
        breakdown,
        modules: largest_first(with_rest(
            by_module(&run.trace, &alive),
            "the allocator".to_string(),
            highest.bytes,
        )),
        timeline: peaks.timeline(),
        between_steps: Bytes::new(peaks.phases.last().map_or(0, |peak| peak.end)),
        forward_end: Bytes::new(
            peaks
                .in_phase(steady, Phase::Forward)
                .map_or(0, |peak| peak.end),
        ),
        parameters: run.parameters,
        trainable: run.trainable,
        flops: time::flops(&run, scenario),
        host,
        disk,
        usable,
        fits: usable.map(|usable| device.expected <= usable),
        not_modelled: not_modelled(uncertainty, elsewhere, scenario),
    }
}

/// Adds what the allocator hands out beyond the sum of the parts.
fn with_rest<K: Ord>(mut parts: Map<K, u64>, rest: K, whole: u64) -> Map<K, u64> {
    let sum = parts
        .values()
        .fold(0, |sum: u64, part| sum.saturating_add(*part));
    if whole > sum {
        parts.insert(rest, whole - sum);
    }
    parts
}

fn largest_first<K: Ord>(parts: Map<K, u64>) -> Vec<Part<K>> {
    let parts = parts.into_iter().map(|(what, bytes)| Part {
        what,
        bytes: Bytes::new(bytes),
    });
    // Equal parts keep the order of the map.
    sorted(parts, |a, b| b.bytes.cmp(&a.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpt2(change: impl FnOnce(&mut Scenario)) -> Estimate {
        let mut scenario = Scenario::default();
        change(&mut scenario);
        estimate(&scenario).unwrap()
    }

    #[track_caller]
    fn check(smaller: impl FnOnce(&mut Scenario), larger: impl FnOnce(&mut Scenario)) {
        let (smaller, larger) = (gpt2(smaller), gpt2(larger));
        assert!(smaller.allocated.expected < larger.allocated.expected);
    }

    #[test]
    fn more_needs_more() {
        check(|s| s.data.micro_batch = 4, |s| s.data.micro_batch = 5);
        check(|s| s.data.sequence = 512, |s| s.data.sequence = 640);
        check(
            |s| s.model.dims = [("layers".to_string(), 6)].into(),
            |_| {},
        );
        check(
            |s| s.training.precision = crate::scenario::Precision::Bf16,
            |s| s.training.precision = crate::scenario::Precision::Fp32,
        );
        check(
            |s| s.training.checkpointing = crate::scenario::Checkpointing::Layers,
            |_| {},
        );
    }

    #[test]
    fn parts_sum_to_the_whole() {
        let estimate = gpt2(|_| {});
        let sum = |parts: &mut dyn Iterator<Item = Bytes>| {
            parts.fold(Bytes::ZERO, |all, part| all + part)
        };
        assert_eq!(
            sum(&mut estimate.breakdown.iter().map(|part| part.bytes)),
            estimate.allocated.expected
        );
        assert_eq!(
            sum(&mut estimate.modules.iter().map(|part| part.bytes)),
            estimate.allocated.expected
        );
        assert_eq!(estimate.parameters, 124_439_808);
        let top = estimate.timeline.iter().map(|instant| instant.bytes).max();
        assert_eq!(top, Some(estimate.allocated.expected));
    }

    #[test]
    fn the_quick_peak_is_the_estimate_without_the_allocators_slack() {
        for &optimizer in crate::scenario::Optimizer::ALL {
            for keep in [false, true] {
                let mut scenario = Scenario::default();
                scenario.training.optimizer = optimizer;
                scenario.training.keep_outputs = keep;
                scenario.runtime.expandable_segments = true;
                let full = estimate(&scenario).unwrap().allocated.expected;
                let quick = quick_peak(&scenario).unwrap();
                assert!(
                    quick <= full && full - quick < Bytes::mib(4),
                    "{optimizer:?} {quick} {full}"
                );
            }
        }
    }

    #[test]
    fn the_same_scenario_gives_the_same_bytes() {
        assert_eq!(gpt2(|_| {}), gpt2(|_| {}));
    }
}
