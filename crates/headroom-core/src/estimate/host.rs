//! Host memory and disk that a run needs.

use serde::Serialize;

use super::disk::Disk;
use super::host_use::HostUse;
use super::{Band, Category, Phase, PhasePeak, alive_at, resume};
use crate::parallel::World;
use crate::step::{MOST_PASSES, Run};
use crate::tape::{PhaseStart, Trace};
use headroom_base::units::Bytes;
use headroom_catalog::Os;
use headroom_scenario::{Case, Checkpointing, Offload, Parallelism, Precision, Scenario, Trainer};

/// The memory of one machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Host {
    /// Training processes on it, one per GPU.
    pub processes: u64,
    /// The uses of its memory, each for all processes together.
    pub parts: Vec<HostPart>,
    /// The sum of `parts`.
    pub total: Band,
}

/// One use of a machine's memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HostPart {
    /// What the memory is used for.
    pub what: HostUse,
    /// Its size over all processes of the machine.
    pub bytes: Band,
}

/// Sizes that the host memory and the disk depend on.
pub(super) struct Sizes {
    /// One micro-batch, and the same pinned.
    batch: Bytes,
    pinned: Bytes,
    offloaded: Bytes,
    pub(super) weights: Bytes,
    /// The weights in a checkpoint: with adapters, without the base.
    pub(super) saved: Bytes,
    pub(super) states: Bytes,
    pub(super) host_states: Bytes,
    host_weights: Bytes,
    /// Per rank, pinned by the offload.
    pinned_states: Bytes,
}

/// The host memory and the disk of a run.
pub(crate) fn host_and_disk(
    run: &Run,
    end: Option<&PhasePeak>,
    scenario: &Scenario,
) -> (Host, Disk) {
    let (batch, pinned) = batch(run, scenario.training.accumulation);
    let trained = unsharded(run.trainable, run.trainable_bytes, scenario);
    let weights = unsharded(run.parameters, run.bytes, scenario);
    let sizes = Sizes {
        batch,
        pinned,
        offloaded: match scenario.training.checkpointing {
            Checkpointing::Offload => offloaded(&run.trace),
            _ => Bytes::ZERO,
        },
        weights,
        saved: match scenario.training.lora {
            Some(_) => trained,
            None => weights,
        },
        // Only a checkpoint needs them. Each rank has its shard.
        states: end
            .filter(|_| scenario.runtime.save_every.is_some())
            .map_or(Bytes::ZERO, |end| states(&run.trace, end))
            * u64::from(World::of_case(&Case::of(scenario)).shards().max(1)),
        host_states: Bytes::new(run.host_states),
        host_weights: Bytes::new(run.host_weights),
        pinned_states: Bytes::new(run.pinned),
    };
    let disk = Disk::of(&sizes, scenario);
    (host(&sizes, disk.checkpoint, run.trainable, scenario), disk)
}

/// Weights of all shards together, if a rank has only some of them.
fn unsharded(count: u64, bytes: u64, scenario: &Scenario) -> Bytes {
    use Parallelism::{DataParallel, Ddp, None};
    let divided = !matches!(scenario.parallel.strategy, None | Ddp | DataParallel)
        && scenario.mesh().shard > 1;
    let width = match scenario.training.precision {
        Precision::Bf16 | Precision::Fp16 => 2,
        _ => 4,
    };
    Bytes::new(if divided {
        count.saturating_mul(width)
    } else {
        bytes
    })
}

fn host(sizes: &Sizes, checkpoint: Bytes, trainable: u64, scenario: &Scenario) -> Host {
    let runtime = &scenario.runtime;
    let hardware = &scenario.hardware;
    let nodes = u64::from(hardware.nodes.max(1));
    let processes = match scenario.parallel.strategy {
        Parallelism::DataParallel => 1,
        _ => scenario.mesh().gpus().div_ceil(nodes).max(1),
    };
    let workers = u64::from(runtime.workers);
    let waiting = workers.saturating_mul(u64::from(runtime.prefetch));
    let mut parts = Vec::new();
    // The same for `count` processes, from the lowest to the highest figure.
    let mut add_of = |count: u64, what, [low, expected, high]: [Bytes; 3]| {
        if high > Bytes::ZERO {
            let bytes = Band {
                low: low * count,
                expected: expected * count,
                high: high * count,
            };
            parts.push(HostPart { what, bytes });
        }
    };
    if runtime.save_every.is_some() && gathers_checkpoints(scenario) {
        let weights = sizes.saved;
        add_of(1, HostUse::Gathering, [Bytes::ZERO, weights, checkpoint]);
    }
    let mut add = |what, bytes| add_of(processes, what, bytes);
    let ready = sizes.batch * waiting.max(1);
    add(
        HostUse::Batches,
        [ready, ready, ready + sizes.batch * workers],
    );
    if runtime.pin_memory {
        let one = sizes.pinned;
        let all = one * waiting.saturating_add(1);
        add(HostUse::PinnedBatches, [one, all, all]);
    }
    let set = Bytes::gib(runtime.dataset_gib.max(0.0));
    let copies = set * workers.saturating_add(1);
    let expected = if hardware.os == Os::Windows {
        copies
    } else {
        set
    };
    add(HostUse::DataSet, [expected, expected, copies]);
    let states = sizes.host_states;
    add(HostUse::OptimizerStates, [states; 3]);
    if scenario.parallel.offload != Offload::None && hardware.gpus > 1 {
        // fp32 weights, two states and gradients, spread over the machine's processes. DeepSpeed's own estimate adds half
        // for buffers.
        let divided = |each: u64| {
            let whole = trainable.saturating_mul(each);
            Bytes::new((whole / nodes).div_ceil(processes))
        };
        let states = if sizes.pinned_states > Bytes::ZERO {
            add(HostUse::PinnedStates, [sizes.pinned_states; 3]);
            // The two states are not pinned, nor are stage 3's gradients in fp32.
            [divided(8), divided(8), divided(12)]
        } else {
            [divided(12), divided(16), divided(24)]
        };
        add(HostUse::OptimizerStates, states);
    }
    add(HostUse::SwappedBlocks, [sizes.host_weights; 3]);
    add(HostUse::Activations, [sizes.offloaded; 3]);
    if scenario.training.ema && scenario.training.ema_on_host {
        add(HostUse::Average, [sizes.weights; 3]);
    }
    // Onto the device it is read a tensor at a time.
    if runtime.save_every.is_some() && !resume::on_device(scenario) {
        add(HostUse::Checkpoint, [Bytes::ZERO, checkpoint, checkpoint]);
    }
    let sum = |pick: fn(&Band) -> Bytes| parts.iter().map(|part| pick(&part.bytes)).sum();
    let total = Band {
        low: sum(|band| band.low),
        expected: sum(|band| band.expected),
        high: sum(|band| band.high),
    };
    Host {
        processes,
        parts,
        total,
    }
}

/// Whether rank 0 gathers all shards and writes the full model; otherwise each rank writes its own.
fn gathers_checkpoints(scenario: &Scenario) -> bool {
    use Parallelism::{Fsdp1, Fsdp2, Hsdp, Zero3};
    let shards = matches!(scenario.parallel.strategy, Fsdp1 | Fsdp2 | Hsdp | Zero3);
    let whole = !matches!(
        scenario.stack.trainer,
        Trainer::Torchtitan | Trainer::Megatron | Trainer::Deepspeed
    );
    shards && whole && scenario.mesh().shard > 1
}

/// One batch: its bytes, and the same with each tensor rounded up to a power of two.
fn batch(run: &Run, accumulation: u64) -> (Bytes, Bytes) {
    let trace = &run.trace;
    let passes = trace
        .phase_starts
        .iter()
        .filter(|mark| mark.step == 0 && mark.phase == Phase::Forward);
    // Batches are also created for micro-batches that are not simulated.
    let made = match run.pipeline_parallel {
        0 | 1 => accumulation.min(MOST_PASSES) as usize,
        _ => 0,
    };
    let micro = passes.count().max(made);
    let end = trace.phase_starts.get(1).map_or(0, |mark| mark.at);
    let tensors = end / micro.max(1);
    let mut sums = (Bytes::ZERO, Bytes::ZERO);
    let events = trace.events.get(..tensors).unwrap_or_default();
    for event in events.iter().filter(|event| !event.is_free()) {
        if let Some(storage) = trace.storages.get(event.storage() as usize) {
            let pinned = storage.bytes.checked_next_power_of_two();
            sums.0 += Bytes::new(storage.bytes);
            sums.1 += Bytes::new(pinned.unwrap_or(u64::MAX));
        }
    }
    sums
}

/// Bytes that one forward pass moves to the host.
fn offloaded(trace: &Trace) -> Bytes {
    let is_first = |mark: &PhaseStart| mark.phase == Phase::Forward;
    let Some(at) = trace.phase_starts.iter().position(is_first) else {
        return Bytes::ZERO;
    };
    let from = trace.phase_starts.get(at).map_or(0, |mark| mark.kernels);
    let until = trace.phase_starts.get(at + 1);
    let until = until.map_or(trace.kernels.len(), |mark| mark.kernels);
    let kernels = trace.kernels.get(from..until).unwrap_or_default();
    let moved = kernels.iter().filter(|kernel| kernel.op == "save_on_cpu");
    Bytes::new(
        moved
            .map(|kernel| kernel.bytes_moved * f64::from(kernel.times))
            .sum::<f64>() as u64,
    )
}

/// The optimizer states on the device at the end of the run.
fn states(trace: &Trace, end: &PhasePeak) -> Bytes {
    let of_storage = |(storage, copies): &(u32, u64)| {
        let storage = trace.storages.get(*storage as usize)?;
        let is_state = storage.category == Category::OptimizerStates;
        is_state.then(|| Bytes::new(storage.bytes) * *copies)
    };
    alive_at(trace, end).iter().filter_map(of_storage).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{Estimate, estimate};
    use headroom_scenario::settings;

    fn with(changes: &[(&str, &str)]) -> Estimate {
        let mut scenario = Scenario::default();
        for (name, value) in changes {
            settings::set(&mut scenario, name, value).unwrap();
        }
        estimate(&scenario).unwrap()
    }

    #[track_caller]
    fn check(changes: &[(&str, &str)], what: HostUse, expected: [u64; 3]) {
        let found = with(changes).host;
        let band = found.parts.iter().find(|part| part.what == what);
        let band = band.map(|part| part.bytes).unwrap_or_default();
        let bytes = [band.low, band.expected, band.high].map(Bytes::get);
        assert_eq!(bytes, expected, "{changes:?}");
    }

    #[test]
    fn every_setting_of_the_loader_counts() {
        // 8 × 1024 tokens and labels of eight bytes.
        let batch = 2 * 8 * 1024 * 8;
        check(&[], HostUse::Batches, [batch; 3]);
        let workers = [("workers", "4"), ("prefetch", "3")];
        check(
            &workers,
            HostUse::Batches,
            [12 * batch, 12 * batch, 16 * batch],
        );
        let pinned = [("workers", "4"), ("prefetch", "3"), ("pin", "on")];
        check(
            &pinned,
            HostUse::PinnedBatches,
            [batch, 13 * batch, 13 * batch],
        );
        let gib = 1 << 30;
        let data = [("data_gib", "2"), ("workers", "3"), ("gpus", "2")];
        check(&data, HostUse::DataSet, [4 * gib, 4 * gib, 16 * gib]);
        let windows = [("data_gib", "2"), ("workers", "3"), ("os", "windows")];
        check(&windows, HostUse::DataSet, [8 * gib; 3]);
    }

    #[test]
    fn offloaded_tensors_are_on_the_host() {
        let weights = 4 * 124_439_808;
        let host = [("ema", "on"), ("ema_host", "on")];
        check(&host, HostUse::Average, [weights; 3]);
        let device = with(&[("ema", "on")]).allocated.expected;
        assert!(with(&host).allocated.expected + Bytes::new(weights) <= device + Bytes::mib(8));
        // Four copies of all but the small tensors.
        let offload = with(&[("optim", "adamw-offload")]).host.parts[1].bytes;
        assert!(4 * weights - (2 << 20) < offload.expected.get());
        let activations = with(&[("ckpt", "offload")]).host.parts[1];
        assert_eq!(activations.what, HostUse::Activations);
        assert!(activations.bytes.expected > Bytes::gib(2.0));
    }

    #[test]
    fn offload_pins_blocks_of_powers_of_two() {
        // Eight layers of TinyLlama, 483,428,352 weights, on eight GPUs: torch.cuda.host_memory_stats() of DeepSpeed 0.19 and of
        // `fully_shard` in torch 2.15, in MiB a rank.
        let pinned = |changes: &[(&str, &str)], expected: f64| {
            let base = [
                ("model", "tinyllama-1.1b"),
                ("dims", "layers=8"),
                ("gpus", "8"),
                ("precision", "bf16"),
                ("mb", "1"),
                ("seq", "64"),
            ];
            let found = with(&[&base, changes].concat()).host;
            let part = found
                .parts
                .iter()
                .find(|part| part.what == HostUse::PinnedStates);
            let bytes = part.map_or(0, |part| part.bytes.expected.get()) / 8;
            let mib = bytes as f64 / 1024.0 / 1024.0;
            assert!(
                (mib / expected - 1.0).abs() < 0.001,
                "{changes:?}: {mib} for {expected}"
            );
        };
        pinned(&[("par", "zero2"), ("offload", "optimizer")], 768.0);
        pinned(
            &[("par", "zero2"), ("offload", "optimizer"), ("accum", "4")],
            896.0,
        );
        pinned(&[("par", "zero3"), ("offload", "optimizer")], 384.0);
        pinned(&[("par", "zero3"), ("offload", "parameters")], 658.0);
        pinned(
            &[
                ("par", "fsdp2"),
                ("offload", "parameters"),
                ("precision", "amp-bf16"),
            ],
            584.0,
        );
    }

    #[test]
    fn the_first_machine_gathers_what_it_saves() {
        let save = [
            ("gpus", "16"),
            ("nodes", "2"),
            ("save_every", "9"),
            ("par", "fsdp2"),
        ];
        let found = with(&save);
        let weights = Bytes::new(4 * 124_439_808);
        let mut parts = found.host.parts.iter();
        let part = parts.find(|part| part.what == HostUse::Gathering);
        let Band {
            low,
            expected,
            high,
        } = part.unwrap().bytes;
        assert_eq!((low, expected), (Bytes::ZERO, weights));
        // Shards are padded.
        assert_eq!(high, found.disk.checkpoint);
        assert!(high >= weights * 3 && high < (weights * 3).scale(1.001));
        check(
            &[("gpus", "16"), ("save_every", "9")],
            HostUse::Gathering,
            [0; 3],
        );
    }

    #[test]
    fn checkpoints_fill_the_disk() {
        assert_eq!(with(&[]).disk, Disk::default());
        let weights = Bytes::new(4 * 124_439_808);
        let disk = with(&[("save_every", "100"), ("save_keep", "2")]).disk;
        assert_eq!(disk.checkpoint, weights * 3);
        assert_eq!((disk.count, disk.total), (Some(3), Some(weights * 9)));
        let all = with(&[("save_every", "100"), ("samples", "8000")]).disk;
        assert_eq!((all.count, all.total), (Some(10), Some(weights * 30)));
        let unknown = with(&[("save_every", "100"), ("ema", "on")]).disk;
        assert_eq!((unknown.checkpoint, unknown.count), (weights * 4, None));
        let lora = [
            ("save_every", "9"),
            ("lora_targets", "c_attn"),
            ("lora_rank", "8"),
        ];
        // 12 × 8 × (768 + 2304) numbers, and two states.
        assert_eq!(with(&lora).disk.checkpoint.get(), 3 * 4 * 12 * 8 * 3072);
        let paged = [("save_every", "9"), ("optim", "adamw-paged")];
        assert_eq!(with(&paged).disk.checkpoint, weights * 3);
    }

    #[test]
    fn evaluation_and_resume_have_separate_peaks() {
        let peak = |changes: &[(&str, &str)], phase| {
            let found = with(changes);
            let part = found.phases.iter().find(|part| part.what == phase);
            part.map(|part| part.bytes)
        };
        assert_eq!(peak(&[], Phase::Evaluation), None);
        let small = peak(&[("eval_mb", "8")], Phase::Evaluation).unwrap();
        let large = peak(&[("eval_mb", "16")], Phase::Evaluation).unwrap();
        // Logits in bf16, in fp32 and as log-probabilities, and no more than a layer beside them.
        let logits = Bytes::new(8 * 1024 * 50257 * 10);
        assert!(large - small > logits.scale(0.8) && large - small < logits.scale(1.3));
        let training = with(&[("ckpt", "layers")]).allocated.expected;
        assert!(small < training);
        let huge = with(&[("eval_mb", "64")]);
        assert_eq!(huge.phase, Phase::Evaluation);
        assert_eq!(
            huge.breakdown.iter().map(|part| part.bytes).sum::<Bytes>(),
            huge.allocated.expected
        );
        let weights = Bytes::new(4 * 124_439_808);
        let resumed = peak(&[("save_every", "10")], Phase::Resume).unwrap();
        assert!(weights * 4 <= resumed && resumed < weights * 4 + Bytes::mib(64));
        let trainer = [("save_every", "10"), ("trainer", "transformers")];
        assert_eq!(peak(&trainer, Phase::Resume), None);
    }
}
