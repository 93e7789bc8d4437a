//! A step in two halves that are estimated apart: what the passes through the network need, and what the optimizer's turn adds.
//!
//! Both only add: states lie beside whatever a pass allocates, and the optimizer finds what the passes left. So a search over
//! networks, batches and optimizers estimates each half once and puts them together, where `quick_peak` would run every pair.

use super::Unsupported;
use super::deciding;
use super::engine::Engine;
use super::quick::{Outline, outline};
use super::time::{Pace, Span, known, pace};
use crate::step::{Detail, Run};
use headroom_base::units::Bytes;
use headroom_catalog::Speeds;
use headroom_scenario::{Attention, Case, Checkpointing, Kernels, LossKernel, Optimizer, Scenario};

/// The forward and backward passes of a step, as if the optimizer kept nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Passes {
    outline: Outline,
    /// Bytes of batches that wait on the device and were not run.
    waiting: u64,
    pace: Pace,
}

/// The optimizer's turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    outline: Outline,
    pace: Pace,
}

/// The two together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Whole {
    /// What `quick_peak` says: the higher of the two that follow.
    pub peak: Bytes,
    /// At most while the passes run.
    pub in_passes: Bytes,
    /// At most in the optimizer's turn.
    pub in_turn: Bytes,
    pub step: Span,
}

/// Whether the halves are independent: not where an optimizer or an offload runs inside backward, nor where an
/// optimizer leaves gradients for the next step.
pub fn separable(scenario: &Scenario) -> bool {
    let optimizer = scenario.training.optimizer;
    !scenario.training.optimizer_in_backward
        && !optimizer.uses_gradients_up()
        && !matches!(
            optimizer,
            Optimizer::AdamWOffloadGradients | Optimizer::Muon
        )
}

/// The scenario without what its passes do not depend on: equal keys have equal passes.
pub fn of_passes(scenario: &Scenario) -> Scenario {
    let mut bare = scenario.clone();
    bare.training.optimizer = Optimizer::Sgd;
    bare.training.optimizer_in_backward = false;
    bare.training.ema = false;
    bare.training.ema_on_host = false;
    bare.training.clip = false;
    bare.runtime.expandable_segments = false;
    bare
}

/// The passes of this scenario; its optimizer, clipping and moving average do not matter.
pub fn passes(scenario: &Scenario) -> Result<Passes, Unsupported> {
    let mut bare = of_passes(scenario);
    // From the second micro-batch on gradients are there; further ones differ in nothing but the batches that wait.
    bare.training.accumulation = scenario.training.accumulation.min(2);
    let run = steady(&bare)?;
    let outline = outline(&run.trace);
    let one = outline.inputs / u64::from(outline.micro_batches.max(1));
    let not_run = scenario.training.accumulation - bare.training.accumulation;
    Ok(Passes {
        outline,
        waiting: one.saturating_mul(not_run),
        pace: pace(&run, &Case::of(scenario), &known_or_slow(scenario)),
    })
}

/// The scenario without what its optimizer's turn does not depend on: equal keys have equal turns.
pub fn of_turn(scenario: &Scenario) -> Scenario {
    let mut small = scenario.clone();
    small.data.micro_batch = 1;
    small.runtime.expandable_segments = false;
    small.runtime.eval_batch = 0;
    small.runtime.save_every = 0;
    let training = &mut small.training;
    training.accumulation = 1;
    training.attention = Attention::Sdpa;
    training.checkpointing = Checkpointing::None;
    training.checkpoint_every = 1;
    training.loss = LossKernel::Library;
    training.kernels = Kernels::Library;
    training.keep_outputs = false;
    training.use_cache = false;
    training.zero_to_none = true;
    small
}

/// The optimizer's turn in this scenario; what the passes do does not matter.
pub fn turn(scenario: &Scenario) -> Result<Turn, Unsupported> {
    let small = of_turn(scenario);
    let run = steady(&small)?;
    let outline = outline(&run.trace);
    Ok(Turn {
        outline,
        pace: pace(&run, &Case::of(&small), &known_or_slow(scenario)),
    })
}

/// With an optimizer that keeps nothing, against which states are counted.
pub fn of_bare_turn(scenario: &Scenario) -> Scenario {
    let mut bare = of_turn(scenario);
    bare.training.optimizer = Optimizer::Sgd;
    bare.training.ema = false;
    bare.training.ema_on_host = false;
    bare.training.clip = false;
    bare
}

impl Passes {
    /// At least as much as all gradients.
    pub fn gradients(&self) -> Bytes {
        Bytes::new(self.outline.before_step.saturating_sub(self.outline.setup))
    }
}

impl Turn {
    /// Its expected duration.
    pub fn seconds(&self) -> f64 {
        self.pace.optimizer.span().expected.get()
    }
}

/// The whole step.
pub fn together(passes: &Passes, turn: &Turn, bare: &Turn) -> Whole {
    let states = turn.outline.setup.saturating_sub(bare.outline.setup);
    let beside = states.saturating_add(passes.waiting);
    let extra = turn.outline.step.saturating_sub(turn.outline.before_step);
    let in_passes = passes.outline.passes.saturating_add(beside);
    let in_turn = passes
        .outline
        .before_step
        .saturating_add(beside)
        .saturating_add(extra);
    let pace = Pace {
        optimizer: turn.pace.optimizer,
        ..passes.pace
    };
    Whole {
        peak: Bytes::new(in_passes.max(in_turn)),
        in_passes: Bytes::new(in_passes),
        in_turn: Bytes::new(in_turn),
        step: pace.step(),
    }
}

/// The least that any optimizer can make of these passes.
pub fn at_least(passes: &Passes) -> Whole {
    let in_passes = Bytes::new(passes.outline.passes.saturating_add(passes.waiting));
    Whole {
        peak: in_passes,
        in_passes,
        in_turn: Bytes::ZERO,
        step: Pace {
            optimizer: super::time::Busy::default(),
            ..passes.pace
        }
        .step(),
    }
}

/// A scenario whose halves are not independent, run as it is.
pub fn whole(scenario: &Scenario) -> Result<Whole, Unsupported> {
    let run = steady(scenario)?;
    let outline = outline(&run.trace);
    let pace = pace(&run, &Case::of(scenario), &known_or_slow(scenario));
    Ok(Whole {
        peak: Bytes::new(outline.passes.max(outline.step)),
        in_passes: Bytes::new(outline.passes),
        in_turn: Bytes::new(outline.step),
        step: pace.step(),
    })
}

fn steady(scenario: &Scenario) -> Result<Run, Unsupported> {
    Engine::of(&Case::of(&deciding(scenario)))?.steady_step(Detail::Kernels)
}

/// Memory can be searched on a card of unknown speed: times are then those of an A100, and only their order means anything.
fn known_or_slow(scenario: &Scenario) -> Speeds {
    known(&Case::of(scenario)).unwrap_or_else(|_| Speeds::a100())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::quick_peak;
    use headroom_scenario::sample::Dice;
    use headroom_scenario::{Precision, settings};

    #[test]
    fn micro_batches_that_wait_take_their_time() {
        for model in ["gpt2", "vit-b16", "dreams", "resnet-18"] {
            let seconds = |accumulation: u64| {
                let mut scenario = Scenario::default();
                scenario.model.id = model.into();
                scenario.data.micro_batch = 2;
                scenario.data.sequence = 64;
                scenario.training.accumulation = accumulation;
                super::whole(&scenario).unwrap().step.expected.get()
            };
            let (few, many) = (seconds(8), seconds(9));
            assert!(
                (many - few - (few - seconds(7))).abs() < 1e-6 * few,
                "{model}"
            );
        }
    }

    #[test]
    fn the_halves_add_up_to_the_whole() {
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
            ] {
                settings::set(&mut scenario, name, value).unwrap();
            }
            if dice.below(2) == 0 {
                scenario.training.lora = None;
            }
            if !separable(&scenario) {
                continue;
            }
            let whole = quick_peak(&scenario).unwrap();
            let halves = together(
                &passes(&scenario).unwrap(),
                &turn(&scenario).unwrap(),
                &turn(&of_bare_turn(&scenario)).unwrap(),
            );
            assert_eq!(halves.peak, whole, "{scenario:?}");
            let run = super::whole(&scenario).unwrap();
            let off = halves.step.expected.get() / run.step.expected.get() - 1.0;
            assert!(off.abs() < 1e-6, "{off} {scenario:?}");
        }
    }
}
