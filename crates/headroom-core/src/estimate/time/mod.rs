//! How long a step takes: a roofline of each kernel (arithmetic or memory traffic, whichever is slower) at speeds measured
//! on real GPUs, or the time to launch all kernels if that is longer.
//!
//! It is a range, never one number: the same matrix product reaches 40 % of the data sheet in one shape and 85 % in
//! another.

mod links;
mod offload;
mod pace;
mod pipeline;
mod sampling;

pub(crate) use pace::{KernelTime, PhaseTimes, phase_times};
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
    /// With every kernel at its best speed.
    pub low: Seconds,
    /// With every kernel at its typical speed.
    pub expected: Seconds,
    /// With every kernel at its worst speed.
    pub high: Seconds,
}

/// A number and its uncertainty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Range {
    /// The lower end of the range.
    pub low: f64,
    /// The predicted value.
    pub expected: f64,
    /// The upper end of the range.
    pub high: f64,
}

/// How long a step takes, and what it spends its time on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct StepTime {
    /// One optimizer step, with all its micro-batches.
    pub step: Span,
    /// The forward passes of all micro-batches, with those of reference models.
    pub forward: Span,
    /// Including recomputation.
    pub backward: Span,
    /// The optimizer update.
    pub optimizer: Span,
    /// Communication between GPUs that is not overlapped.
    pub communication: Span,
    /// The idle time of a pipeline's GPU.
    pub bubble: Span,
    /// vLLM's on the same GPUs, beside the step and not in it; at least as long, since its own work on the CPU is not counted.
    pub sampling: Option<Span>,
    /// Of all GPUs together.
    pub samples_per_second: Range,
    /// Of all GPUs together; `None` if samples have no tokens.
    pub tokens_per_second: Option<Range>,
    /// MFU: model FLOPs without recomputation, as a share of the data sheet's 16-bit rate (fp32 runs: the fp32 rate).
    pub utilization: Range,
    /// Model FLOPs of a step on one GPU.
    pub model_flops: Flops,
    /// Shares of the GPU's busy time by kind of kernel; they sum to one.
    pub spent: KernelShares,
    /// The share of the step in which the GPU waits for the next kernel launch.
    pub waiting: f64,
}

/// Shares of the GPU's busy time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct KernelShares {
    /// Matrix products.
    pub products: f64,
    /// Fused attention kernels, such as FlashAttention, forward and backward.
    pub attention: f64,
    /// Convolutions, forward and backward.
    pub convolutions: f64,
    /// Everything bound by the memory's bandwidth.
    pub traffic: f64,
    /// Copies to and from the host.
    pub host: f64,
}

/// The duration of a step, from the run of a steady-state step and, if the case uses checkpointing, from one without.
pub(super) fn of_run(case: &Case, run: &Run, plain: Option<&Run>, speeds: &Speeds) -> StepTime {
    let scenario = case.scenario;
    let phase_times = phase_times(run, case, speeds);
    let model_flops = flops(plain.unwrap_or(run), scenario);
    let peak = match scenario.training.precision {
        Precision::Fp32 => speeds.peak_fp32,
        _ => speeds.peak_half,
    };
    let step = phase_times.step();
    let per_second = |amount: f64| Range {
        low: amount / step.high.get(),
        expected: amount / step.expected.get(),
        high: amount / step.low.get(),
    };
    let samples = scenario.effective_batch() as f64;
    let tokens = case
        .model
        .filter(|model| reads_text(model.category))
        .map(|_| samples * scenario.row_length() as f64);
    StepTime {
        step,
        forward: phase_times.forward.span(),
        backward: phase_times.backward.span(),
        optimizer: phase_times.optimizer.span(),
        communication: phase_times.communication(),
        bubble: phase_times.bubble(),
        sampling: sampling::sampling(case, speeds),
        samples_per_second: per_second(samples),
        tokens_per_second: tokens.map(per_second),
        utilization: per_second(model_flops.get() / peak),
        model_flops,
        spent: phase_times.spent(),
        waiting: phase_times.waiting(),
    }
}

/// The GPU's speeds, or an error if they are unknown.
pub fn known(case: &Case) -> Result<Speeds, Unsupported> {
    known_without(case, &|_| false)
}

/// The same without the measurements of these sources.
pub fn known_without(case: &Case, left_out: &dyn Fn(&str) -> bool) -> Result<Speeds, Unsupported> {
    let hardware = &case.scenario.hardware;
    let tflops = hardware.tflops.map(|tflops| tflops.get() as f64 * 1e12);
    let bandwidth = hardware.bandwidth.map(|gb| gb.get() as f64 * 1e9);
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

/// All FLOPs of a step on one GPU, in all phases.
pub(super) fn flops(run: &Run, scenario: &Scenario) -> Flops {
    let in_steps = weighted(run, scenario).filter(|(kernel, _)| kernel.phase != Phase::Evaluation);
    let all = in_steps.map(|(kernel, weight)| kernel.flops * weight);
    Flops::new(all.sum::<f64>() / steps(run))
}

/// The run's kernels with their launch counts: of many equal micro-batches only the first few are simulated, and one
/// of these represents the rest.
fn weighted<'a>(run: &'a Run, scenario: &Scenario) -> impl Iterator<Item = (&'a Kernel, f64)> {
    let trace = &run.trace;
    let accumulation = scenario.training.accumulation;
    let ran = outline(&run.trace).micro_batches.max(1);
    let rest = accumulation.saturating_sub(ran.into()) as f64;
    // Where three ran, the second is one of those between.
    let like_rest = if ran > 2 { 2 } else { ran };
    // After a pipeline's last forward come the backwards of several micro-batches, so no single one can represent the rest:
    // each pass represents equally many.
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
                None if batch == like_rest && mark.phase != Phase::Optimizer => 1.0 + rest,
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
    use std::num::NonZero;

    use super::*;
    use crate::estimate::Prediction;
    use headroom_scenario::{presets, settings};

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
    fn published_durations_are_in_the_range() {
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
    fn vllm_reads_its_weights_for_every_token() {
        let with = |changes: &[(&str, &str)]| {
            let mut scenario = presets::find("qwen-7b-grpo-verl-8x80gb")
                .unwrap()
                .scenario();
            for (name, value) in changes {
                settings::set(&mut scenario, name, value).unwrap();
            }
            let sampling = step_time(&scenario).unwrap().sampling;
            sampling.map_or(0.0, |sampling| sampling.expected.get())
        };
        // 7.6 billion weights of two bytes on two GPUs, 1024 tokens, 3.35 TB/s.
        let least = 7.6e9 * 1024.0 / 3.35e12;
        let [once, twice] = ["1024", "2048"].map(|completion| with(&[("completion", completion)]));
        assert!((least..4.0 * least).contains(&once), "{once} {least}");
        assert!(twice > 1.9 * once);
        assert!(with(&[("vllm_tp", "4")]) < once);
        assert!(with(&[("sampler", "generate"), ("gpus", "1"), ("par", "none")]) < 1e-9);
    }

    /// torchtitan's table has 5762 tokens/s a GPU as it is, and 6667 with compiled layers.
    #[test]
    fn compiled_layers_are_as_much_faster_as_published() {
        let with = |compile| {
            time(&[
                ("gpu", "h100-sxm5-80gb"),
                ("gpus", "8"),
                ("par", "fsdp2"),
                ("model", "llama-3.1-8b"),
                ("mb", "2"),
                ("seq", "8192"),
                ("optim", "adamw-fused"),
                ("ckpt", "keep-half"),
                ("compile", compile),
            ])
        };
        let [eager, compiled] = ["nothing", "layers"].map(|compile| with(compile).step.expected);
        let ratio = eager.get() / compiled.get();
        assert!((ratio / (6667.0 / 5762.0) - 1.0).abs() < 0.05, "{ratio}");
    }

    #[test]
    fn compiled_graphs_compute_again_in_time() {
        for compile in ["layers", "model"] {
            let with = |checkpointing| {
                time(&[("compile", compile), ("ckpt", checkpointing)])
                    .step
                    .expected
            };
            let (plain, again) = (with("none"), with("layers"));
            assert!(again > plain, "{compile}: {plain} {again}");
        }
    }

    #[test]
    fn recomputation_costs_time_and_lowers_utilization() {
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
            let KernelShares {
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
    fn an_unknown_gpu_needs_rates_for_a_step_time() {
        let mut scenario = Scenario::default();
        for (name, value) in [("gpu", "mine"), ("mem", "24000")] {
            settings::set(&mut scenario, name, value).unwrap();
        }
        assert!(step_time(&scenario).is_err());
        scenario.hardware.tflops = NonZero::new(100);
        scenario.hardware.bandwidth = NonZero::new(1000);
        let slow = step_time(&scenario).unwrap().step.expected;
        scenario.hardware.tflops = NonZero::new(200);
        scenario.hardware.bandwidth = NonZero::new(2000);
        assert!(step_time(&scenario).unwrap().step.expected < slow);
    }
}
