//! How long a step takes: each kernel as long as its arithmetic or its traffic needs, whichever is more, at speeds that were
//! measured on cards; or as long as the program needs to launch them all, where that is more.
//!
//! It is a band, never one number: the same product runs at 40 % of the data sheet in one shape and at 85 % in another.

use serde::Serialize;

use super::{Phase, Unsupported, outline_of, steady};
use crate::catalog::{self, Rate, Speeds, speeds};
use crate::scenario::{Checkpointing, Precision, Scenario};
use crate::step::Run;
use crate::tape::{DType, Kernel};
use crate::units::{Flops, Seconds};

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

/// The time of a step of this scenario.
pub fn step_time(scenario: &Scenario) -> Result<StepTime, Unsupported> {
    let speeds = known(scenario)?;
    let run = steady(scenario)?;
    let pace = pace(&run, scenario, &speeds);
    let plain = match scenario.training.checkpointing {
        Checkpointing::None | Checkpointing::Offload => None,
        _ => {
            let mut plain = scenario.clone();
            plain.training.checkpointing = Checkpointing::None;
            Some(steady(&plain)?)
        }
    };
    let model_flops = flops(plain.as_ref().unwrap_or(&run), scenario);
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
    let tokens = catalog::model(&scenario.model.id)
        .filter(|model| reads_text(model.category))
        .map(|_| samples * scenario.data.sequence as f64);
    Ok(StepTime {
        step,
        forward: pace.forward.span(),
        backward: pace.backward.span(),
        optimizer: pace.optimizer.span(),
        communication: pace.communication(),
        samples_per_second: per_second(samples),
        tokens_per_second: tokens.map(per_second),
        utilization: per_second(model_flops.get() / peak),
        model_flops,
        spent: pace.spent(),
        waiting: pace.waiting(),
    })
}

/// The card's speeds, or why nothing can be said of time.
pub fn known(scenario: &Scenario) -> Result<Speeds, Unsupported> {
    let hardware = &scenario.hardware;
    let tflops = (hardware.tflops > 0).then_some(hardware.tflops as f64 * 1e12);
    let bandwidth = (hardware.bandwidth > 0).then_some(hardware.bandwidth as f64 * 1e9);
    let listed = catalog::gpu(&hardware.gpu).and_then(speeds);
    let complete = listed.is_some() || (tflops.is_some() && bandwidth.is_some());
    let speeds = listed.or_else(|| complete.then(Speeds::a100));
    let speeds = speeds.ok_or_else(|| {
        Unsupported(format!(
            "the speed of {} is not known: give hardware.tflops and hardware.bandwidth",
            hardware.gpu
        ))
    })?;
    Ok(speeds.given(tflops, bandwidth))
}

fn reads_text(category: catalog::Category) -> bool {
    use catalog::Category;
    matches!(
        category,
        Category::Decoders
            | Category::EncoderDecoders
            | Category::Encoders
            | Category::Proteins
            | Category::StateSpace
            | Category::TextEncoders
            | Category::VisionLanguage
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
    let ran = outline_of(run).micro_batches.max(1);
    let rest = scenario.training.accumulation.saturating_sub(ran.into()) as f64;
    let mut batch = 0;
    let stretches = trace.marks.iter().enumerate().flat_map(move |(i, mark)| {
        if mark.phase == Phase::Setup {
            batch = 0;
        }
        batch += u32::from(mark.phase == Phase::Forward);
        let stands_for_rest = batch == ran && mark.phase != Phase::Optimizer;
        let weight = if stands_for_rest { 1.0 + rest } else { 1.0 };
        let next = trace.marks.get(i + 1);
        let end = next.map_or(trace.kernels.len(), |next| next.kernels);
        let kernels = trace.kernels.get(mark.kernels..end).unwrap_or_default();
        kernels.iter().map(move |kernel| (kernel, weight))
    });
    stretches.map(|(kernel, weight)| (kernel, weight * f64::from(kernel.times)))
}

fn steps(run: &Run) -> f64 {
    let last = run.trace.marks.last().map_or(1, |mark| mark.step);
    f64::from(last.max(1))
}

/// A step's time in the parts that change independently: what `parts` adds up for a search.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pace {
    pub forward: Busy,
    pub backward: Busy,
    pub optimizer: Busy,
    /// Sending all gradients around once.
    pub sending: [f64; 3],
    /// Backward passes of a step: gradients are sent beside the last.
    pub passes: f64,
}

/// The card's busy time at the best, the expected and the worst speed, by what it does, and the time to launch it all.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Busy {
    seconds: [[f64; 3]; 5],
    launching: [f64; 3],
}

impl Busy {
    fn at(&self, speed: usize) -> f64 {
        let card: f64 = self.seconds.iter().map(|kind| kind[speed]).sum();
        card.max(self.launching[speed])
    }

    pub fn span(&self) -> Span {
        Span {
            low: Seconds::new(self.at(0)),
            expected: Seconds::new(self.at(1)),
            high: Seconds::new(self.at(2)),
        }
    }

    fn scale(&mut self, factor: f64) {
        let all = self.seconds.iter_mut().flatten().chain(&mut self.launching);
        all.for_each(|it| *it *= factor);
    }
}

impl Pace {
    /// The part of sending that backward does not hide: all but the last of DDP's buckets goes beside it.
    fn exposed(&self, speed: usize) -> f64 {
        const LAST_BUCKET: f64 = 0.1;
        let beside = self.backward.at(speed) / self.passes.max(1.0);
        (self.sending[speed] - beside).max(LAST_BUCKET * self.sending[speed])
    }

    fn communication(&self) -> Span {
        Span {
            low: Seconds::new(self.exposed(0)),
            expected: Seconds::new(self.exposed(1)),
            high: Seconds::new(self.exposed(2)),
        }
    }

    pub fn step(&self) -> Span {
        let at = |speed: usize| {
            Seconds::new(
                self.forward.at(speed)
                    + self.backward.at(speed)
                    + self.optimizer.at(speed)
                    + self.exposed(speed),
            )
        };
        Span {
            low: at(0),
            expected: at(1),
            high: at(2),
        }
    }

    fn spent(&self) -> Spent {
        let mut shares = [0.0; 5];
        for busy in [&self.forward, &self.backward, &self.optimizer] {
            for (share, kind) in shares.iter_mut().zip(&busy.seconds) {
                *share += kind[1];
            }
        }
        let all = shares.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let [products, attention, convolutions, traffic, host] = shares.map(|it| it / all);
        Spent {
            products,
            attention,
            convolutions,
            traffic,
            host,
        }
    }

    fn waiting(&self) -> f64 {
        let idle: f64 = [&self.forward, &self.backward, &self.optimizer]
            .iter()
            .map(|busy| {
                let card: f64 = busy.seconds.iter().map(|kind| kind[1]).sum();
                (busy.launching[1] - card).max(0.0)
            })
            .sum();
        idle / self.step().expected.get().max(f64::MIN_POSITIVE)
    }
}

/// Adds up a run's kernels for a whole step of the scenario.
pub fn pace(run: &Run, scenario: &Scenario, speeds: &Speeds) -> Pace {
    let mut pace = Pace {
        sending: sending(run, scenario, speeds),
        passes: scenario.training.accumulation as f64,
        ..Pace::default()
    };
    for (kernel, times) in weighted(run, scenario) {
        let busy = match kernel.phase {
            // Not in every step, so not in a step's time.
            Phase::Evaluation | Phase::Resume => continue,
            Phase::Setup | Phase::Forward => &mut pace.forward,
            Phase::Backward => &mut pace.backward,
            Phase::Optimizer => &mut pace.optimizer,
        };
        let (kind, seconds) = of_kernel(kernel, speeds);
        let launch = [
            speeds.launch.low,
            speeds.launch.expected,
            speeds.launch.high,
        ];
        for speed in 0..3 {
            busy.seconds[kind][speed] += seconds[speed] * times;
            busy.launching[speed] += launch[speed] * times;
        }
    }
    let each = 1.0 / steps(run);
    pace.forward.scale(each);
    pace.backward.scale(each);
    pace.optimizer.scale(each);
    pace
}

const PRODUCTS: usize = 0;
const ATTENTION: usize = 1;
const CONVOLUTIONS: usize = 2;
const TRAFFIC: usize = 3;
const HOST: usize = 4;

/// What a kernel is, and how long it runs at the best, the expected and the worst speed.
fn of_kernel(kernel: &Kernel, speeds: &Speeds) -> (usize, [f64; 3]) {
    let half = matches!(kernel.dtype, DType::F16 | DType::BF16);
    let (kind, arithmetic) = match kernel.op {
        "linear" | "linear_4bit" | "bmm" | "grouped_mm" | "linear_cross_entropy" => (
            PRODUCTS,
            if half {
                speeds.products_half
            } else {
                speeds.products_fp32
            },
        ),
        "flash_attention" | "efficient_attention" if half => (ATTENTION, speeds.attention_forward),
        "flash_backward" | "efficient_backward" if half => (ATTENTION, speeds.attention_backward),
        "flash_attention" | "efficient_attention" | "flash_backward" | "efficient_backward" => {
            (ATTENTION, speeds.products_fp32)
        }
        "convolution" | "convolution_backward" => (
            CONVOLUTIONS,
            if half {
                speeds.convolutions_half
            } else {
                speeds.convolutions_fp32
            },
        ),
        "save_on_cpu" | "load_from_cpu" | "host_step" => {
            return (HOST, over(kernel.bytes_moved, speeds.host));
        }
        _ => {
            let least = kernel.flops / speeds.arithmetic;
            let traffic = over(kernel.bytes_moved, speeds.bandwidth);
            return (TRAFFIC, traffic.map(|it| it.max(least)));
        }
    };
    // Double precision runs at half the rate of single precision at best.
    let flops = if kernel.dtype == DType::F64 {
        2.0 * kernel.flops
    } else {
        kernel.flops
    };
    let compute = over(flops, arithmetic);
    let traffic = over(kernel.bytes_moved, speeds.bandwidth);
    let longer = [0, 1, 2].map(|speed| compute[speed].max(traffic[speed]));
    (kind, longer)
}

fn over(amount: f64, rate: Rate) -> [f64; 3] {
    [rate.high, rate.expected, rate.low].map(|rate| amount / rate.max(f64::MIN_POSITIVE))
}

/// A ring sends every gradient twice but for its own share.
fn sending(run: &Run, scenario: &Scenario, speeds: &Speeds) -> [f64; 3] {
    let gpus = f64::from(scenario.hardware.gpus.max(1));
    let Some(links) = speeds.links.filter(|_| gpus > 1.0) else {
        return [0.0; 3];
    };
    let each = match scenario.training.precision {
        Precision::Bf16 | Precision::Fp16 => 2.0,
        _ => 4.0,
    };
    let bytes = run.trainable as f64 * each;
    over(2.0 * (gpus - 1.0) / gpus * bytes, links)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{presets, settings};

    fn time(changes: &[(&str, &str)]) -> StepTime {
        let mut scenario = Scenario::default();
        for (name, value) in changes {
            settings::set(&mut scenario, name, value).unwrap();
        }
        step_time(&scenario).unwrap()
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

    /// Tensor cores reach above a hundred operations for each byte; what runs elsewhere does a few at most.
    #[test]
    fn nothing_with_much_arithmetic_counts_as_traffic() {
        for (preset, changes) in [
            ("gpt2-small", [("optim", "muon"), ("precision", "bf16")]),
            (
                "llama-8b-lora-24gb",
                [("attn", "eager"), ("lora_dropout", "0.1")],
            ),
            ("llama-1b-qlora-8gb", [("mb", "4"), ("seq", "512")]),
            ("mixtral-lora-141gb", [("mb", "2"), ("seq", "512")]),
            ("sd-1.5-lora-8gb", [("mb", "2"), ("attn", "sdpa")]),
            ("resnet-50-16gb", [("mb", "2"), ("precision", "fp32")]),
            ("lstm-wikitext2-8gb", [("mb", "2"), ("precision", "fp32")]),
            ("rna-3e-ffi", [("mb", "2"), ("precision", "fp32")]),
            ("gsa-512m", [("mb", "1"), ("precision", "fp32")]),
        ] {
            let mut scenario = presets::find(preset).unwrap().scenario();
            for (name, value) in changes {
                settings::set(&mut scenario, name, value).unwrap();
            }
            let run = steady(&scenario).unwrap();
            for kernel in &run.trace.kernels {
                let (kind, _) = of_kernel(kernel, &Speeds::a100());
                let much = kernel.flops > 16.0 * kernel.bytes_moved;
                assert!(kind != TRAFFIC || !much, "{preset}: {kernel:?}");
            }
        }
    }

    #[test]
    fn recomputing_costs_time_and_no_utilization_is_won_by_it() {
        let plain = time(&[("seq", "512")]);
        let again = time(&[("seq", "512"), ("ckpt", "layers")]);
        assert!(again.step.expected > plain.step.expected);
        assert_eq!(again.model_flops, plain.model_flops);
        assert!(again.utilization.expected < plain.utilization.expected);
        for it in [plain, again] {
            let Span {
                low,
                expected,
                high,
            } = it.step;
            assert!(low < expected && expected < high);
            let Spent {
                products,
                attention,
                convolutions,
                traffic,
                host,
            } = it.spent;
            let sum = products + attention + convolutions + traffic + host;
            assert!((sum - 1.0).abs() < 1e-9);
            assert!(it.utilization.high < 1.0);
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
