//! Adds up a run's kernels by phase, each at the GPU's speed for its kind.

use super::links::{CommTime, comm_time};
use super::{KernelShares, Span, steps, weighted};
use crate::estimate::{Phase, device, quick};
use crate::parallel::MODULE_HOOKS;
use crate::step::Run;
use crate::tape::{DType, Kernel};
use headroom_base::units::Seconds;
use headroom_catalog::{Rate, Speeds};
use headroom_scenario::{Case, Scenario};

/// The duration of a step by phase: the parts that a search combines.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PhaseTimes {
    pub(crate) forward: KernelTime,
    pub(crate) backward: KernelTime,
    pub(crate) optimizer: KernelTime,
    /// Communication and the pipeline bubble.
    pub(crate) comm_time: CommTime,
    /// Backward passes of a step; gradients are reduced during the last.
    pub(crate) passes: f64,
}

/// Seconds of kernels by kind (best, expected, worst speed), and the time to launch them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct KernelTime {
    seconds: [[f64; 3]; 5],
    launching: [f64; 3],
}

impl KernelTime {
    fn at(&self, speed: usize) -> f64 {
        let card: f64 = self.seconds.iter().map(|kind| kind[speed]).sum();
        card.max(self.launching[speed])
    }

    pub(crate) fn span(&self) -> Span {
        Span {
            low: Seconds::new(self.at(0)),
            expected: Seconds::new(self.at(1)),
            high: Seconds::new(self.at(2)),
        }
    }

    fn scale(&mut self, factor: f64) {
        let all = self.seconds.iter_mut().flatten().chain(&mut self.launching);
        all.for_each(|seconds| *seconds *= factor);
    }
}

impl PhaseTimes {
    /// Communication that the passes do not hide: all but the last of DDP's buckets overlaps the last backward, and all but
    /// the first of FSDP's units overlaps nine tenths of the passes.
    fn exposed(&self, speed: usize) -> f64 {
        const LAST_BUCKET: f64 = 0.1;
        const FIRST_UNIT: f64 = 0.05;
        const OVERLAP: f64 = 0.9;
        let CommTime {
            overlaps_backward,
            overlaps_passes,
            alone,
            ..
        } = self.comm_time;
        let backward = self.backward.at(speed) / self.passes.max(1.0);
        let reduced = overlaps_backward[speed];
        let gathered = overlaps_passes[speed];
        let beside = OVERLAP * (self.forward.at(speed) + self.backward.at(speed));
        (reduced - backward).max(LAST_BUCKET * reduced)
            + (gathered - beside).max(FIRST_UNIT * gathered)
            + alone[speed]
    }

    /// The idle time of a pipeline's GPU.
    fn idle(&self, speed: usize) -> f64 {
        self.comm_time.bubble * (self.forward.at(speed) + self.backward.at(speed))
    }

    pub(super) fn bubble(&self) -> Span {
        Span {
            low: Seconds::new(self.idle(0)),
            expected: Seconds::new(self.idle(1)),
            high: Seconds::new(self.idle(2)),
        }
    }

    pub(super) fn communication(&self) -> Span {
        Span {
            low: Seconds::new(self.exposed(0)),
            expected: Seconds::new(self.exposed(1)),
            high: Seconds::new(self.exposed(2)),
        }
    }

    pub(crate) fn step(&self) -> Span {
        let at = |speed: usize| {
            Seconds::new(
                self.forward.at(speed)
                    + self.backward.at(speed)
                    + self.optimizer.at(speed)
                    + self.exposed(speed)
                    + self.idle(speed),
            )
        };
        Span {
            low: at(0),
            expected: at(1),
            high: at(2),
        }
    }

    pub(super) fn spent(&self) -> KernelShares {
        let mut shares = [0.0; 5];
        for busy in [&self.forward, &self.backward, &self.optimizer] {
            for (share, kind) in shares.iter_mut().zip(&busy.seconds) {
                *share += kind[1];
            }
        }
        let all = shares.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let [products, attention, convolutions, traffic, host] = shares.map(|share| share / all);
        KernelShares {
            products,
            attention,
            convolutions,
            traffic,
            host,
        }
    }

    pub(super) fn waiting(&self) -> f64 {
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
pub(crate) fn phase_times(run: &Run, case: &Case, speeds: &Speeds) -> PhaseTimes {
    let scenario = case.scenario;
    let mut phase_times = PhaseTimes {
        comm_time: comm_time(run, case, speeds),
        passes: scenario.training.accumulation as f64,
        ..PhaseTimes::default()
    };
    let wrapped = wrapping(scenario);
    let stays = stays_on_device(run, scenario);
    for (kernel, times) in weighted(run, scenario) {
        let busy = match kernel.phase {
            // Not in every step, so not in a step's time.
            Phase::Evaluation | Phase::Resume | Phase::Generation => continue,
            Phase::Setup | Phase::Forward | Phase::Reference => &mut phase_times.forward,
            Phase::Backward => &mut phase_times.backward,
            Phase::Optimizer => &mut phase_times.optimizer,
        };
        if kernel.op == MODULE_HOOKS {
            // They run on the CPU only, with or without a library's wrapper modules.
            let Rate {
                low,
                expected,
                high,
                ..
            } = speeds.zero_hooks;
            for (launching, hook) in busy.launching.iter_mut().zip([low, expected, high]) {
                *launching += hook * times;
            }
            continue;
        }
        let (kind, seconds) = if kernel.op == "host_step" && stays {
            (TRAFFIC, over(kernel.bytes_moved, speeds.bandwidth))
        } else {
            of_kernel(kernel, speeds)
        };
        let launch = [
            speeds.launch.low,
            speeds.launch.expected,
            speeds.launch.high,
        ]
        .map(|seconds| seconds * wrapped);
        for speed in 0..3 {
            busy.seconds[kind][speed] += seconds[speed] * times;
            busy.launching[speed] += launch[speed] * times;
        }
    }
    let each = 1.0 / (steps(run) * not_split(run, scenario));
    phase_times.forward.scale(each);
    phase_times.backward.scale(each);
    phase_times.optimizer.scale(each);
    phase_times
}

/// Whether a paged optimizer's states never leave the GPU: pages are evicted only under memory pressure.
fn stays_on_device(run: &Run, scenario: &Scenario) -> bool {
    let paged =
        scenario.training.optimizer.id().contains("paged") && !scenario.training.ema_on_host;
    let all = quick::peak(&run.trace).saturating_add(run.host_states);
    let usable = device::usable(&Case::of(scenario));
    paged && usable.is_some_and(|usable| all <= usable.get())
}

/// The launch overhead of a library's wrapper modules: adapters wrap each layer in a module.
fn wrapping(scenario: &Scenario) -> f64 {
    /// A PEFT layer's forward in eager Python: half a dozen calls and casts around each product (peft tuners/lora/layer.py).
    const ADAPTERS: f64 = 1.75;
    if scenario.training.lora.is_some() {
        ADAPTERS
    } else {
        1.0
    }
}

const PRODUCTS: usize = 0;
const ATTENTION: usize = 1;
const CONVOLUTIONS: usize = 2;
const TRAFFIC: usize = 3;
const HOST: usize = 4;

/// The kind of a kernel, and its seconds (best, expected, worst speed).
fn of_kernel(kernel: &Kernel, speeds: &Speeds) -> (usize, [f64; 3]) {
    let half = matches!(kernel.dtype, DType::F16 | DType::BF16);
    let (kind, arithmetic) = match kernel.op {
        "linear"
        | "linear_4bit"
        | "bmm"
        | "grouped_mm"
        | "linear_cross_entropy"
        | "wgrad_gemm_accum" => (
            PRODUCTS,
            if half {
                speeds.products_half
            } else {
                speeds.products_fp32
            },
        ),
        "scaled_mm" | "scaled_int8_mm" => (PRODUCTS, speeds.products_low),
        "flash_attention" | "efficient_attention" if half => (ATTENTION, speeds.attention_forward),
        "flash_backward" | "efficient_backward" if half => (ATTENTION, speeds.attention_backward),
        "flash_attention" | "efficient_attention" | "flash_backward" | "efficient_backward" => {
            (ATTENTION, speeds.products_fp32)
        }
        "depthwise_convolution" => {
            return (CONVOLUTIONS, over(kernel.bytes_moved, speeds.depthwise));
        }
        "convolution_channels_last" if half => (CONVOLUTIONS, speeds.convolutions_half),
        "convolution" if half => (CONVOLUTIONS, speeds.convolutions_half_channels_first),
        "convolution_channels_last" | "convolution" => (CONVOLUTIONS, speeds.convolutions_fp32),
        "save_on_cpu" | "load_from_cpu" | "host_step" => {
            return (HOST, over(kernel.bytes_moved, speeds.host));
        }
        _ => {
            let least = kernel.flops / speeds.arithmetic;
            let traffic = over(kernel.bytes_moved, speeds.bandwidth);
            return (TRAFFIC, traffic.map(|seconds| seconds.max(least)));
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

pub(super) fn over(amount: f64, rate: Rate) -> [f64; 3] {
    [rate.high, rate.expected, rate.low].map(|rate| amount / rate.max(f64::MIN_POSITIVE))
}

/// By how much the degrees of the scenario exceed those that are modelled.
fn not_split(run: &Run, scenario: &Scenario) -> f64 {
    let layout = &scenario.parallel;
    let split = [
        (u64::from(layout.tp), run.tensor_parallel),
        (u64::from(layout.cp), run.context_parallel),
        (u64::from(layout.pp), u64::from(run.pipeline_parallel)),
    ];
    let times = split
        .iter()
        .map(|(asked, found)| *asked.max(&1) as f64 / *found.max(&1) as f64);
    times.product()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::engine::Engine;
    use crate::step::Detail;
    use headroom_scenario::{presets, settings};

    /// Tensor cores reach above a hundred operations for each byte; what runs elsewhere does a few at most.
    #[test]
    fn compute_bound_kernels_are_not_traffic() {
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
        ] {
            let mut scenario = presets::find(preset).unwrap().scenario();
            for (name, value) in changes {
                settings::set(&mut scenario, name, value).unwrap();
            }
            let engine = Engine::of(&Case::of(&scenario)).unwrap();
            let run = engine.steady_step(Detail::Kernels).unwrap();
            for kernel in &run.trace.kernels {
                let (kind, _) = of_kernel(kernel, &Speeds::a100());
                let much = kernel.flops > 16.0 * kernel.bytes_moved;
                assert!(kind != TRAFFIC || !much, "{preset}: {kernel:?}");
            }
        }
    }
}
