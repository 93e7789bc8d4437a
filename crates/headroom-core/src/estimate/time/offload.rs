//! Traffic between GPUs and their host in a sharded run that keeps weights or states there, and the optimizer's step there.

use crate::step::Run;
use headroom_catalog::{Rate, Speeds};
use headroom_scenario::{Case, Offload, Parallelism, Precision, Quantization, Scenario};

/// Seconds of a step (best, expected, worst speed).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct HostTime {
    /// Copies of shards in both directions, which run beside the passes.
    pub overlaps_passes: [f64; 3],
    /// The step on the CPU, and the copies of new weights after it.
    pub alone: [f64; 3],
}

/// What the CPU reads and writes for each trained parameter: a weight, its gradient and two moments in fp32, of which all but
/// the gradient are written (deepspeed/ops/adam/cpu_adam.py; torch's fused AdamW on the CPU).
const STEP: f64 = 28.0;

/// The host's part in a step of this rank.
pub(super) fn host_time(run: &Run, case: &Case, speeds: &Speeds) -> HostTime {
    let scenario = case.scenario;
    let offload = scenario.parallel.offload;
    if offload == Offload::None || scenario.hardware.gpus < 2 {
        return HostTime::default();
    }
    let shards = f64::from(scenario.mesh().shard.max(1));
    let (all, trained) = (
        run.parameters as f64 / shards,
        run.trainable as f64 / shards,
    );
    let passes = scenario.training.accumulation.max(1) as f64;
    let gathers = match (offload, scenario.parallel.strategy) {
        (Offload::Parameters, Parallelism::Zero3) => 2.0,
        (Offload::Parameters, _) if scenario.parallel.reshard => 2.0,
        (Offload::Parameters, _) => 1.0,
        _ => 0.0,
    };
    let to_gpu = passes * gathers * all * stored(scenario);
    let reduces = match scenario.parallel.strategy {
        Parallelism::Zero1 => 1.0,
        Parallelism::Zero2 | Parallelism::Zero3 => passes,
        _ if scenario.parallel.sync_each => passes,
        _ => 1.0,
    };
    let from_gpu = reduces * trained * gradient(scenario);
    // Weights that stay on the GPU get their new values from the host.
    let new = if offload == Offload::Optimizer {
        trained * 2.0
    } else {
        0.0
    };
    HostTime {
        // A link carries both directions at once.
        overlaps_passes: over(to_gpu.max(from_gpu), speeds.host),
        alone: over(STEP * trained + new, speeds.host),
    }
}

/// Bytes of a weight in the host's memory.
fn stored(scenario: &Scenario) -> f64 {
    let training = &scenario.training;
    match training.quantization {
        Quantization::None => {}
        Quantization::Int8 => return 1.0,
        _ => return 0.5,
    }
    let zero = scenario.parallel.strategy == Parallelism::Zero3;
    match training.precision {
        Precision::Bf16 | Precision::Fp16 | Precision::AmpBf16OnBf16 | Precision::AmpFp16OnFp16 => {
            2.0
        }
        // ZeRO keeps 16-bit weights beside its fp32 masters.
        Precision::AmpBf16 | Precision::AmpFp16 if zero => 2.0,
        Precision::Fp64 => 8.0,
        _ => 4.0,
    }
}

fn gradient(scenario: &Scenario) -> f64 {
    match scenario.training.precision {
        Precision::Fp64 => 8.0,
        Precision::Bf16 | Precision::Fp16 | Precision::AmpBf16OnBf16 | Precision::AmpFp16OnFp16 => {
            2.0
        }
        _ => 4.0,
    }
}

fn over(bytes: f64, rate: Rate) -> [f64; 3] {
    [rate.high, rate.expected, rate.low].map(|rate| bytes / rate.max(f64::MIN_POSITIVE))
}

#[cfg(test)]
mod tests {
    use crate::estimate::Prediction;
    use headroom_scenario::{Scenario, settings};

    fn seconds(run: &str) -> f64 {
        let mut scenario = Scenario::default();
        let model = "model=llama-3.1-8b gpu=a100-sxm4-80gb gpus=8 mb=1 seq=2048 optim=adamw-fused";
        for word in model.split(' ').chain(run.split(' ')) {
            let (name, value) = word.split_once('=').unwrap();
            settings::set(&mut scenario, name, value).unwrap();
        }
        let time = Prediction::new(scenario).step_time().unwrap();
        time.step.expected.get()
    }

    #[test]
    fn what_is_kept_on_the_host_takes_time() {
        for strategy in ["zero1", "zero2", "zero3"] {
            let plain = seconds(&format!("par={strategy}"));
            let states = seconds(&format!("par={strategy} offload=optimizer"));
            // A billion parameters of each rank at 28 bytes over some 20 GB/s.
            assert!(states > plain + 0.8, "{strategy} {plain} {states}");
        }
        let states = seconds("par=zero3 offload=optimizer");
        let weights = seconds("par=zero3 offload=parameters");
        assert!(weights >= states * 0.95, "{states} {weights}");
        assert!(seconds("par=fsdp2 offload=parameters") > seconds("par=fsdp2") + 0.8);
    }
}
