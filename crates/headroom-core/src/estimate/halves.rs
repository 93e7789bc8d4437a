//! Splits a step into its passes and its optimizer update, estimated separately.
//!
//! The two combine additively: optimizer states coexist with whatever a pass allocates, and the update starts from what the
//! passes leave. So a search over networks, batches and optimizers estimates each part once and combines them, where
//! `quick_peak` would run every pair.

use super::Unsupported;
use super::engine::Engine;
use super::quick::{Outline, outline};
use super::time::{PhaseTimes, Span, known, phase_times};
use super::{deciding, divided};
use crate::step::{Detail, Run};
use headroom_base::units::Bytes;
use headroom_catalog::Speeds;
use headroom_scenario::{
    Attention, Case, Checkpointing, Compile, Kernels, LossKernel, Optimizer, Scenario,
};

/// The forward and backward passes of a step, as if the optimizer had no state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Passes {
    outline: Outline,
    /// Bytes of batches on the device that were not simulated.
    waiting: u64,
    phase_times: PhaseTimes,
    is_split: bool,
    tensors: u64,
}

/// The optimizer update of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OptimizerUpdate {
    outline: Outline,
    phase_times: PhaseTimes,
}

/// Passes and update combined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CombinedStep {
    /// Equal to `quick_peak`: the larger of the next two.
    pub peak: Bytes,
    /// The peak of the passes.
    pub in_passes: Bytes,
    /// The peak of the optimizer update.
    pub in_update: Bytes,
    /// The duration of one optimizer step, with all its micro-batches.
    pub step: Span,
}

/// Whether the two parts are independent: not if an optimizer or an offload runs inside backward, nor if an optimizer
/// leaves gradients for the next step, nor in a pipeline, whose micro-batches are on their way together.
pub fn separable(scenario: &Scenario) -> bool {
    let optimizer = scenario.training.optimizer;
    scenario.parallel.pp < 2
        && !scenario.training.optimizer_in_backward
        && !optimizer.consumes_gradients()
        && !matches!(
            optimizer,
            Optimizer::AdamWOffloadGradients | Optimizer::Muon
        )
}

/// A cache key: scenarios with equal keys have equal passes.
pub fn passes_key(scenario: &Scenario) -> Scenario {
    let mut bare = scenario.clone();
    bare.training.optimizer = Optimizer::Sgd;
    bare.training.optimizer_in_backward = false;
    bare.training.ema = false;
    bare.training.ema_on_host = false;
    bare.training.clip = false;
    bare.runtime.expandable_segments = false;
    bare
}

/// The passes of this scenario, independent of its optimizer, clipping and moving average.
pub fn passes(scenario: &Scenario) -> Result<Passes, Unsupported> {
    let mut bare = passes_key(scenario);
    bare.training.accumulation = scenario.training.accumulation.min(shown(scenario));
    let run = steady(&bare)?;
    let outline = outline(&run.trace);
    let one = outline.inputs / u64::from(outline.micro_batches.max(1));
    let not_run = scenario.training.accumulation - bare.training.accumulation;
    Ok(Passes {
        outline,
        waiting: one.saturating_mul(not_run),
        phase_times: phase_times(&run, &Case::of(scenario), &known_or_slow(scenario)),
        is_split: divided::not_split(&run, scenario).is_none(),
        tensors: run.trace.storages.len() as u64,
    })
}

/// A cache key: scenarios with equal keys have equal updates.
pub fn update_key(scenario: &Scenario) -> Scenario {
    let mut small = scenario.clone();
    small.data.micro_batch = 1;
    small.runtime.expandable_segments = false;
    small.runtime.eval_batch = None;
    small.runtime.save_every = None;
    let training = &mut small.training;
    training.accumulation = 1;
    training.attention = Attention::Sdpa;
    training.checkpointing = Checkpointing::None;
    training.checkpoint_every = 1;
    training.checkpoint_span = 1;
    training.checkpoint_first = 0;
    training.loss = LossKernel::Library;
    training.kernels = Kernels::Library;
    training.compile = Compile::Nothing;
    training.keep_outputs = false;
    training.use_cache = false;
    training.zero_to_none = true;
    small
}

/// Micro-batches that show all others, which differ only in the batches that are waiting: from the second on gradients exist.
/// To gradients that stay from the step before, the last adds what ranks have reduced, and those before it do not.
fn shown(scenario: &Scenario) -> u64 {
    if scenario.training.zero_to_none { 2 } else { 3 }
}

/// The optimizer update of this scenario, independent of its passes.
pub fn update(scenario: &Scenario) -> Result<OptimizerUpdate, Unsupported> {
    let small = update_key(scenario);
    let run = steady(&small)?;
    let outline = outline(&run.trace);
    Ok(OptimizerUpdate {
        outline,
        phase_times: phase_times(&run, &Case::of(&small), &known_or_slow(scenario)),
    })
}

/// The key of the update with a stateless optimizer, the baseline from which states are counted.
pub fn stateless_update_key(scenario: &Scenario) -> Scenario {
    let mut bare = update_key(scenario);
    bare.training.optimizer = Optimizer::Sgd;
    bare.training.ema = false;
    bare.training.ema_on_host = false;
    bare.training.clip = false;
    bare
}

impl Passes {
    /// Whether all degrees of the layout are modelled.
    pub fn is_split(&self) -> bool {
        self.is_split
    }

    /// Tensors that were recorded: the work that it took.
    pub fn tensors(&self) -> u64 {
        self.tensors
    }

    /// At least as much as all gradients.
    pub fn gradients(&self) -> Bytes {
        Bytes::new(self.outline.before_step.saturating_sub(self.outline.setup))
    }
}

impl OptimizerUpdate {
    /// Its expected duration.
    pub fn seconds(&self) -> f64 {
        self.phase_times.optimizer.span().expected.get()
    }
}

/// The whole step.
pub fn combine(passes: &Passes, update: &OptimizerUpdate, bare: &OptimizerUpdate) -> CombinedStep {
    let states = update.outline.setup.saturating_sub(bare.outline.setup);
    let beside = states.saturating_add(passes.waiting);
    let extra = update
        .outline
        .step
        .saturating_sub(update.outline.before_step);
    let in_passes = passes.outline.passes.saturating_add(beside);
    let in_update = passes
        .outline
        .before_step
        .saturating_add(beside)
        .saturating_add(extra);
    let phase_times = PhaseTimes {
        optimizer: update.phase_times.optimizer,
        ..passes.phase_times
    };
    CombinedStep {
        peak: Bytes::new(in_passes.max(in_update)),
        in_passes: Bytes::new(in_passes),
        in_update: Bytes::new(in_update),
        step: phase_times.step(),
    }
}

/// A lower bound over all optimizers for these passes.
pub fn at_least(passes: &Passes) -> CombinedStep {
    let in_passes = Bytes::new(passes.outline.passes.saturating_add(passes.waiting));
    CombinedStep {
        peak: in_passes,
        in_passes,
        in_update: Bytes::ZERO,
        step: PhaseTimes {
            optimizer: super::time::KernelTime::default(),
            ..passes.phase_times
        }
        .step(),
    }
}

/// The step of a scenario whose parts are not independent, simulated as a whole.
pub fn unsplit(scenario: &Scenario) -> Result<CombinedStep, Unsupported> {
    let run = steady(scenario)?;
    let outline = outline(&run.trace);
    let phase_times = phase_times(&run, &Case::of(scenario), &known_or_slow(scenario));
    Ok(CombinedStep {
        peak: Bytes::new(outline.passes.max(outline.step)),
        in_passes: Bytes::new(outline.passes),
        in_update: Bytes::new(outline.step),
        step: phase_times.step(),
    })
}

fn steady(scenario: &Scenario) -> Result<Run, Unsupported> {
    Engine::of(&Case::of(&deciding(scenario)))?.steady_step(Detail::Kernels)
}

/// Memory can be searched on a GPU of unknown speed: times are then an A100's, and only their order is meaningful.
fn known_or_slow(scenario: &Scenario) -> Speeds {
    known(&Case::of(scenario)).unwrap_or_else(|_| Speeds::a100())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::quick_peak;
    use headroom_scenario::{Precision, settings};
    use headroom_testing::Dice;

    #[test]
    fn waiting_micro_batches_add_time() {
        for model in ["gpt2", "vit-b16", "resnet-18"] {
            let seconds = |accumulation: u64| {
                let mut scenario = Scenario::default();
                scenario.model.id = model.into();
                scenario.data.micro_batch = 2;
                scenario.data.sequence = 64;
                scenario.training.accumulation = accumulation;
                super::unsplit(&scenario).unwrap().step.expected.get()
            };
            let (few, many) = (seconds(8), seconds(9));
            assert!(
                (many - few - (few - seconds(7))).abs() < 1e-6 * few,
                "{model}"
            );
        }
    }

    #[test]
    fn the_parts_combine_to_the_whole_step() {
        let mut dice = Dice::new(21);
        for _ in 0..150 {
            let mut scenario = Scenario::default();
            let optimizers: Vec<&str> = Optimizer::ALL
                .iter()
                .map(|optimizer| optimizer.id())
                .collect();
            let precisions: Vec<&str> = Precision::ALL
                .iter()
                .map(|precision| precision.id())
                .collect();
            for (name, value) in [
                ("dims", "layers=3,hidden=128,heads=4,vocab=1000"),
                ("seq", "128"),
                ("optim", dice.one_of(&optimizers)),
                ("precision", dice.one_of(&precisions)),
                ("mb", dice.one_of(&["1", "2", "6"])),
                ("accum", dice.one_of(&["1", "2", "3", "8"])),
                (
                    "ckpt",
                    dice.one_of(&["none", "layers", "keep-matmuls", "offload"]),
                ),
                ("loss", dice.one_of(&["library", "chunked-head", "liger"])),
                ("attn", dice.one_of(&["sdpa", "eager"])),
                ("ema", dice.one_of(&["on", "off"])),
                ("ema_host", dice.one_of(&["on", "off"])),
                ("eval_mb", dice.one_of(&["0", "2", "16"])),
                ("save_every", dice.one_of(&["0", "100"])),
                ("clip", dice.one_of(&["on", "off"])),
                ("zero_none", dice.one_of(&["on", "on", "off"])),
                ("keep_outputs", dice.one_of(&["off", "off", "on"])),
                ("lora", dice.one_of(&["on", "off"])),
                ("lora_targets", "c_attn"),
                ("gpus", dice.one_of(&["1", "1", "4"])),
                (
                    "par",
                    dice.one_of(&["ddp", "fsdp1", "fsdp2", "zero1", "zero2", "zero3"]),
                ),
            ] {
                settings::set(&mut scenario, name, value).unwrap();
            }
            if dice.below(2) == 0 {
                scenario.training.lora = None;
            }
            if !separable(&scenario) || !scenario.check().is_empty() {
                continue;
            }
            let whole = quick_peak(&scenario).unwrap();
            let halves = combine(
                &passes(&scenario).unwrap(),
                &update(&scenario).unwrap(),
                &update(&stateless_update_key(&scenario)).unwrap(),
            );
            assert_eq!(halves.peak, whole, "{scenario:?}");
            let run = super::unsplit(&scenario).unwrap();
            let off = halves.step.expected.get() / run.step.expected.get() - 1.0;
            assert!(off.abs() < 1e-6, "{off} {scenario:?}");
        }
    }
}
