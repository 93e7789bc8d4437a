//! How long a step takes: each kernel as long as its arithmetic or its traffic needs, whichever is more, at speeds that were
//! measured on cards; or as long as the program needs to launch them all, where that is more.
//!
//! It is a band, never one number: the same product runs at 40 % of the data sheet in one shape and at 85 % in another.

mod links;
mod pace;
mod pipeline;

pub use pace::{Busy, Pace, pace};
pub use pipeline::{Timetable, timetable};

use serde::Serialize;

use super::quick::outline;
use super::{Phase, Unsupported};
use crate::step::Run;
use crate::tape::{Kernel, PhaseStart};
use headroom_base::units::{Flops, Seconds};
use headroom_catalog::{self as catalog, Speeds, speeds_without};
use headroom_scenario::{Case, Precision, Scenario};

/// A duration and its uncertainty; `low` is the shortest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Span {
    pub low: Seconds,
    pub expected: Seconds,
    pub high: Seconds,
}

/// A number and its uncertainty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Range {
    pub low: f64,
    pub expected: f64,
    pub high: f64,
}

/// What a step does with its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct StepTime {
    /// One optimizer step, with all its micro-batches.
    pub step: Span,
    pub forward: Span,
    /// With what checkpoints compute again.
    pub backward: Span,
    pub optimizer: Span,
    /// Between GPUs, beyond what happens beside backward.
    pub communication: Span,
    /// In which a pipeline's GPU waits for the others.
    pub bubble: Span,
    /// Of all GPUs together.
    pub samples_per_second: Range,
    /// Of all GPUs together; `None` where samples are not made of tokens.
    pub tokens_per_second: Option<Range>,
    /// The model's arithmetic, without what is computed again, against the data sheet's 16-bit rate (fp32 runs: the fp32 rate).
    pub utilization: Range,
    /// What the model's arithmetic comes to in a step on one GPU.
    pub model_flops: Flops,
    /// What the card spends its time on, as shares of its busy time that sum to one.
    pub spent: Spent,
    /// The share of the step in which the card waits for the program's next launch.
    pub waiting: f64,
}

/// Shares of the card's busy time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spent {
    pub products: f64,
    pub attention: f64,
    pub convolutions: f64,
    /// Everything bound by the memory's bandwidth.
    pub traffic: f64,
    /// Copies to and from the host.
    pub host: f64,
}

/// The time of a step: from a steady step's run, and from one without checkpoints where the case has them.
pub(super) fn of_run(case: &Case, run: &Run, plain: Option<&Run>, speeds: &Speeds) -> StepTime {
    let scenario = case.scenario;
    let pace = pace(run, case, speeds);
    let model_flops = flops(plain.unwrap_or(run), scenario);
    let peak = match scenario.training.precision {
        Precision::Fp32 => speeds.peak_fp32,
        _ => speeds.peak_half,
    };
    let step = pace.step();
    let per_second = |amount: f64| Range {
        low: amount / step.high.get(),
        expected: amount / step.expected.get(),
        high: amount / step.low.get(),
    };
    let samples = scenario.effective_batch() as f64;
    let tokens = case
        .model
        .filter(|model| reads_text(model.category))
        .map(|_| samples * scenario.data.sequence as f64);
    StepTime {
        step,
        forward: pace.forward.span(),
        backward: pace.backward.span(),
        optimizer: pace.optimizer.span(),
        communication: pace.communication(),
        bubble: pace.bubble(),
        samples_per_second: per_second(samples),
        tokens_per_second: tokens.map(per_second),
        utilization: per_second(model_flops.get() / peak),
        model_flops,
        spent: pace.spent(),
        waiting: pace.waiting(),
    }
}

/// The card's speeds, or why nothing can be said of time.
pub fn known(case: &Case) -> Result<Speeds, Unsupported> {
    known_without(case, &|_| false)
}

/// The same without what these sources say.
pub fn known_without(case: &Case, left_out: &dyn Fn(&str) -> bool) -> Result<Speeds, Unsupported> {
    let hardware = &case.scenario.hardware;
    let tflops = (hardware.tflops > 0).then_some(hardware.tflops as f64 * 1e12);
    let bandwidth = (hardware.bandwidth > 0).then_some(hardware.bandwidth as f64 * 1e9);
    let listed = case.gpu.and_then(|gpu| speeds_without(gpu, left_out));
    let complete = listed.is_some() || (tflops.is_some() && bandwidth.is_some());
    let speeds = listed.or_else(|| complete.then(Speeds::a100));
    let speeds = speeds.ok_or_else(|| Unsupported::UnknownSpeed(hardware.gpu.clone()))?;
    Ok(speeds.given(tflops, bandwidth))
}

fn reads_text(category: catalog::ModelCategory) -> bool {
    use catalog::ModelCategory;
    matches!(
        category,
        ModelCategory::Decoders
            | ModelCategory::EncoderDecoders
            | ModelCategory::Encoders
            | ModelCategory::Proteins
            | ModelCategory::StateSpace
            | ModelCategory::TextEncoders
            | ModelCategory::VisionLanguage
    )
}

/// All arithmetic of a step on one GPU, whatever its phase.
pub(super) fn flops(run: &Run, scenario: &Scenario) -> Flops {
    let in_steps = weighted(run, scenario).filter(|(kernel, _)| kernel.phase != Phase::Evaluation);
    let all = in_steps.map(|(kernel, weight)| kernel.flops * weight);
    Flops::new(all.sum::<f64>() / steps(run))
}

/// The run's kernels, each with the times it runs: of many equal micro-batches only the first few are run on the tape, and the
/// last of these stands for the rest.
fn weighted<'a>(run: &'a Run, scenario: &Scenario) -> impl Iterator<Item = (&'a Kernel, f64)> {
    let trace = &run.trace;
    let accumulation = scenario.training.accumulation;
    let ran = outline(&run.trace).micro_batches.max(1);
    let rest = accumulation.saturating_sub(ran.into()) as f64;
    // After a pipeline's last forward come the backwards of several micro-batches, so that none stands for the rest: each of its
    // passes stands for as many.
    let in_pipeline = (run.pipeline_parallel > 1).then(|| {
        let is_forward = |mark: &&PhaseStart| mark.step == 0 && mark.phase == Phase::Forward;
        let forwards = trace.phase_starts.iter().filter(is_forward).count().max(1);
        let stages = f64::from(scenario.parallel.virtual_stages.max(1));
        accumulation.max(1) as f64 * stages / forwards as f64
    });
    let mut batch = 0;
    let stretches = trace
        .phase_starts
        .iter()
        .enumerate()
        .flat_map(move |(i, mark)| {
            if mark.phase == Phase::Setup {
                batch = 0;
            }
            batch += u32::from(mark.phase == Phase::Forward);
            let is_pass = matches!(mark.phase, Phase::Forward | Phase::Backward);
            let weight = match in_pipeline {
                Some(each) if is_pass => each,
                None if batch == ran && mark.phase != Phase::Optimizer => 1.0 + rest,
                _ => 1.0,
            };
            let next = trace.phase_starts.get(i + 1);
            let end = next.map_or(trace.kernels.len(), |next| next.kernels);
            let kernels = trace.kernels.get(mark.kernels..end).unwrap_or_default();
            kernels.iter().map(move |kernel| (kernel, weight))
        });
    stretches.map(|(kernel, weight)| (kernel, weight * f64::from(kernel.times)))
}

fn steps(run: &Run) -> f64 {
    let last = run.trace.phase_starts.last().map_or(1, |mark| mark.step);
    f64::from(last.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Prediction;
    use headroom_scenario::settings;

    fn time(changes: &[(&str, &str)]) -> StepTime {
        let mut scenario = Scenario::default();
        for (name, value) in changes {
            settings::set(&mut scenario, name, value).unwrap();
        }
        step_time(&scenario).unwrap()
    }

    fn step_time(scenario: &Scenario) -> Result<StepTime, Unsupported> {
        Prediction::new(scenario.clone()).step_time()
    }

    /// Whether a measured duration, in seconds, lies in the band.
    #[track_caller]
    fn check(changes: &[(&str, &str)], measured: f64) {
        let Span { low, high, .. } = time(changes).step;
        assert!(
            low.get() <= measured && measured <= high.get(),
            "{low} {measured} {high}"
        );
    }

    #[test]
    fn published_durations_lie_in_the_band() {
        // nanoGPT's README: about 250 ms for a step of bench.py without compilation on an A100, attention in Python.
        check(
            &[
                ("gpu", "a100-sxm4-40gb"),
                ("mb", "12"),
                ("attn", "eager"),
                ("optim", "adamw-fused"),
                ("dropout", "off"),
            ],
            0.250,
        );
        // torchtitan's Llama 3 8B on eight H100 (benchmarks/llama3_h100_202412_torchtitan.md, table 1: 5762 tokens/s a GPU with
        // FSDP, selective checkpointing, not compiled): its gathering of weights hides behind the passes.
        check(
            &[
                ("gpu", "h100-sxm5-80gb"),
                ("model", "llama-3.1-8b"),
                ("mb", "1"),
                ("seq", "8192"),
                ("precision", "bf16"),
                ("optim", "adamw-fused"),
                ("ckpt", "keep-half"),
            ],
            8192.0 / 5762.0,
        );
    }

    #[test]
    fn recomputing_costs_time_and_no_utilization_is_won_by_it() {
        let plain = time(&[("seq", "512")]);
        let again = time(&[("seq", "512"), ("ckpt", "layers")]);
        assert!(again.step.expected > plain.step.expected);
        assert_eq!(again.model_flops, plain.model_flops);
        assert!(again.utilization.expected < plain.utilization.expected);
        for time in [plain, again] {
            let Span {
                low,
                expected,
                high,
            } = time.step;
            assert!(low < expected && expected < high);
            let Spent {
                products,
                attention,
                convolutions,
                traffic,
                host,
            } = time.spent;
            let sum = products + attention + convolutions + traffic + host;
            assert!((sum - 1.0).abs() < 1e-9);
            assert!(time.utilization.high < 1.0);
        }
    }

    #[test]
    fn a_card_without_rates_has_no_time_unless_they_are_given() {
        let mut scenario = Scenario::default();
        for (name, value) in [("gpu", "mine"), ("mem", "24000")] {
            settings::set(&mut scenario, name, value).unwrap();
        }
        assert!(step_time(&scenario).is_err());
        scenario.hardware.tflops = 100;
        scenario.hardware.bandwidth = 1000;
        let slow = step_time(&scenario).unwrap().step.expected;
        scenario.hardware.tflops = 200;
        scenario.hardware.bandwidth = 2000;
        assert!(step_time(&scenario).unwrap().step.expected < slow);
    }
}
