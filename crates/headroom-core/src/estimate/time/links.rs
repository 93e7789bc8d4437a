//! Communication between GPUs in a step, and its duration.

use super::offload::host_time;
use super::pipeline::bubble;
use crate::step::Run;
use headroom_catalog::{Rate, Speeds, reached};
use headroom_scenario::{
    Case, Checkpointing, Parallelism, PolicyType, Precision, Scenario, Toggle, Trainer,
};

/// Seconds of a step's collectives (best, expected, worst speed), by what overlaps them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CommTime {
    /// Overlapped with the last backward pass: gradients reduced as they become ready.
    pub overlaps_backward: [f64; 3],
    /// Overlapped with all passes: prefetched all-gathers of weights and reduce-scatters of gradients.
    pub overlaps_passes: [f64; 3],
    /// Not overlapped: the next operation needs the result.
    pub alone: [f64; 3],
    /// The pipeline bubble, as a share of the passes' duration.
    pub bubble: f64,
}

/// A process group: its size, and how many of its GPUs are on one machine.
#[derive(Clone, Copy, Debug)]
struct Group {
    size: f64,
    on_a_machine: f64,
}

/// ZeRO's default bucket in elements (`reduce_bucket_size`, deepspeed/runtime/zero/config.py).
const ZERO_BUCKET: f64 = 5e8;

/// The communication of this rank in a step.
pub(crate) fn comm_time(run: &Run, case: &Case, speeds: &Speeds) -> CommTime {
    let scenario = case.scenario;
    let mut comm_time = CommTime::default();
    let Some(links) = speeds.links.filter(|_| scenario.hardware.gpus > 1) else {
        return comm_time;
    };
    let mesh = scenario.mesh();
    // The mesh has this order; the first group's ranks are on neighbouring GPUs.
    let tensor = Group::of(scenario, mesh.tensor, 1);
    let before_context = mesh.tensor;
    let context = Group::of(scenario, mesh.context, before_context);
    let before_shards = before_context.saturating_mul(mesh.context);
    let shards = Group::of(scenario, mesh.shard, before_shards);
    let copies = Group::of(
        scenario,
        mesh.data,
        before_shards.saturating_mul(mesh.shard),
    );
    // All-gathers and reduce-scatters in messages of this size, and all-reduces, which traverse the ring twice.
    let over = |group: Group, bytes: f64, message: f64| {
        let count = bytes / message.max(1.0);
        group.seconds(count, bytes, message, links, speeds)
    };
    let all_reduced = |group: Group, bytes: f64, message: f64| {
        let count = bytes / message.max(1.0);
        group.seconds(count, 2.0 * bytes, message, links, speeds)
    };
    let layers_of_all = case.listed_size("layers").unwrap_or(1).max(1) as f64;

    let passes = scenario.training.accumulation.max(1) as f64;
    let half = !matches!(
        scenario.training.precision,
        Precision::Fp32 | Precision::Fp64
    );
    let wide = !matches!(
        scenario.training.precision,
        Precision::Bf16 | Precision::Fp16
    );
    // Megatron-Core reduces in fp32 by default (`grad_reduce_in_fp32`), and overlaps that with backward only with
    // `--overlap-grad-reduce`.
    let megatron_core = scenario.stack.trainer == Trainer::Megatron;
    let in_fp32 = wide || megatron_core && scenario.parallel.reduce_dtype != PolicyType::Bf16;
    let waits = megatron_core && scenario.parallel.zero_overlap != Toggle::On;
    let (weight, gradient) = (
        if half { 2.0 } else { 4.0 },
        if in_fp32 { 4.0 } else { 2.0 },
    );
    let (all, trained) = (run.parameters as f64, run.trainable as f64);
    // A rank of a ring sends everything except its own share.
    match scenario.parallel.strategy {
        Parallelism::None => {}
        Parallelism::Ddp => {
            const MIB: f64 = 1_048_576.0;
            let bucket = (scenario.parallel.bucket_mb as f64 * MIB).min(trained * gradient);
            let reduced = all_reduced(copies, trained * gradient, bucket);
            if waits {
                comm_time.alone = reduced;
            } else {
                comm_time.overlaps_backward = reduced;
            }
        }
        Parallelism::DataParallel => {
            // The weights are sent before every forward and the gradients after every backward, in chunks of `buffer_size`.
            const CHUNK: f64 = 10_485_760.0;
            let each = all * weight + trained * gradient;
            comm_time.alone = over(copies, passes * each, CHUNK);
        }
        // Buckets are reduced once backward is over (`allreduce_gradients`).
        Parallelism::Zero0 => {
            let bucket = ZERO_BUCKET.min(trained) * gradient;
            comm_time.alone = all_reduced(shards, trained * gradient, bucket);
        }
        Parallelism::Zero1 | Parallelism::Zero2 => {
            let bucket = match scenario.parallel.zero_bucket {
                0 => ZERO_BUCKET,
                elements => elements as f64,
            };
            let bucket = bucket.min(trained) * weight;
            let gathered = over(shards, trained * weight, bucket);
            if megatron_core {
                // Its distributed optimizer uses reduce-scatter.
                let reduced = over(shards, trained * gradient, bucket);
                if waits {
                    comm_time.alone = sum(reduced, gathered);
                } else {
                    comm_time.overlaps_backward = reduced;
                    comm_time.alone = gathered;
                }
            } else {
                // DeepSpeed all-reduces buckets (`allreduce_and_scatter`), in stage 2 after every backward, since each rank
                // keeps only its shard of the gradients; and waits for each bucket by default (`overlap_comm_valid`).
                let reduces = match scenario.parallel.strategy {
                    Parallelism::Zero2 => passes,
                    _ => 1.0,
                };
                let reduced = all_reduced(shards, reduces * trained * weight, bucket);
                let overlaps = scenario.parallel.zero_overlap == Toggle::On;
                if overlaps && reduces > 1.0 {
                    comm_time.overlaps_passes = reduced;
                    comm_time.alone = gathered;
                } else if overlaps {
                    comm_time.overlaps_backward = reduced;
                    comm_time.alone = gathered;
                } else {
                    comm_time.alone = sum(reduced, gathered);
                }
            }
        }
        Parallelism::Fsdp1 | Parallelism::Fsdp2 | Parallelism::Hsdp | Parallelism::Zero3 => {
            let gathers = if scenario.parallel.reshard { 2.0 } else { 1.0 };
            // Stage 3 keeps no unsharded gradients between micro-batches (`reduce_and_partition_ipg_grads`).
            let each_pass =
                scenario.parallel.sync_each || scenario.parallel.strategy == Parallelism::Zero3;
            let reduces = if each_pass { passes } else { 1.0 };
            // One layer is gathered at a time, and its gradients are reduced together.
            let (layer, of_layer) = (
                all * weight / layers_of_all,
                trained * gradient / layers_of_all,
            );
            let gathered = over(shards, passes * gathers * all * weight, layer);
            let reduced = over(shards, reduces * trained * gradient, of_layer);
            comm_time.overlaps_passes = sum(gathered, reduced);
            let shard = trained * gradient / shards.size;
            let message = shard / layers_of_all;
            comm_time.overlaps_backward = all_reduced(copies, shard, message);
        }
    }
    let hidden = case.listed_size("hidden").unwrap_or(0) as f64;
    let layers = case.listed_size("layers").unwrap_or(0) as f64 / f64::from(mesh.stages.max(1));
    let tokens = scenario.data.micro_batch as f64 * scenario.data.sequence as f64 / context.size;
    let state = tokens * hidden * weight;
    if mesh.tensor > 1 {
        // Two all-reduces per layer in each pass, and in recomputation.
        let again = matches!(
            scenario.training.checkpointing,
            Checkpointing::Layers | Checkpointing::KeepHalf
        );
        let reductions = if again { 6.0 } else { 4.0 };
        let bytes = passes * layers * reductions * state;
        let sent = if scenario.parallel.sequence_parallel {
            // Each all-reduce becomes a reduce-scatter and an all-gather before the next matrix.
            over(tensor, 2.0 * bytes, state)
        } else {
            all_reduced(tensor, bytes, state)
        };
        comm_time.alone = sum(comm_time.alone, sent);
        if scenario.parallel.sequence_parallel && megatron_core {
            // Its column-parallel layers save their shard of the input, and gather the rest again during the input's
            // gradient (`LinearWithGradAccumulationAndAsyncCommunication`).
            let again = over(tensor, passes * layers * 2.0 * state, state);
            comm_time.overlaps_passes = sum(comm_time.overlaps_passes, again);
        }
    }
    if mesh.context > 1 {
        // Keys and values of all ranks, and their gradients.
        let heads = case.listed_size("heads").unwrap_or(1).max(1) as f64;
        let share = case.listed_size("kv").map_or(1.0, |kv| kv as f64 / heads);
        let bytes = passes * layers * 3.0 * 2.0 * share * state * context.size;
        comm_time.overlaps_passes = sum(
            comm_time.overlaps_passes,
            over(context, bytes, 2.0 * share * state * context.size),
        );
    }
    let host = host_time(run, case, speeds);
    comm_time.overlaps_passes = sum(comm_time.overlaps_passes, host.overlaps_passes);
    comm_time.alone = sum(comm_time.alone, host.alone);
    if mesh.stages > 1 {
        let stages = f64::from(scenario.parallel.virtual_stages.max(1));
        let neighbours = Group::of(scenario, 2, mesh.gpus_of_a_stage());
        let bytes = passes * stages * 2.0 * 2.0 * state / f64::from(mesh.tensor.max(1));
        let message = state / f64::from(mesh.tensor.max(1));
        comm_time.alone = sum(comm_time.alone, over(neighbours, bytes, message));
        comm_time.bubble = bubble(scenario);
    }
    comm_time
}

fn sum(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

impl Group {
    /// A group of `size` GPUs, `apart` ranks from each other.
    fn of(scenario: &Scenario, size: u32, apart: u32) -> Self {
        let near = scenario.hardware.gpus_of_a_machine() / apart.max(1);
        Self {
            size: f64::from(size.max(1)),
            on_a_machine: f64::from(near.clamp(1, size.max(1))),
        }
    }

    /// How long a ring takes for these bytes in `count` messages: at the rate of the links within a machine plus a start-up
    /// latency each, or of the network cards of the group's GPUs on one machine, of whose bandwidth short messages reach
    /// only a part.
    fn seconds(
        self,
        count: f64,
        bytes: f64,
        message: f64,
        links: Rate,
        speeds: &Speeds,
    ) -> [f64; 3] {
        /// Messages partly overlap or congest, as if they were longer or shorter by this factor.
        const LENGTHS: [f64; 3] = [4.0, 1.0, 0.25];
        if self.size < 2.0 {
            return [0.0; 3];
        }
        let passed = bytes * (self.size - 1.0) / self.size;
        let high_first = |rate: Rate| [rate.high, rate.expected, rate.low];
        let low_first = |rate: Rate| [rate.low, rate.expected, rate.high];
        let (rates, cards) = (high_first(links), high_first(speeds.network));
        let (starts, each) = (low_first(speeds.start), low_first(speeds.start_each));
        let one_machine = self.on_a_machine >= self.size;
        [0, 1, 2].map(|speed| {
            if one_machine {
                let starting = count * (starts[speed] + each[speed] * (self.size - 1.0));
                return starting + passed / rates[speed].max(f64::MIN_POSITIVE);
            }
            let between = cards[speed] * self.on_a_machine;
            let reached = between * reached(message * LENGTHS[speed], between);
            passed / rates[speed].min(reached).max(f64::MIN_POSITIVE)
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::estimate::Prediction;
    use headroom_scenario::{Scenario, settings};

    fn seconds(run: &str) -> f64 {
        let mut scenario = Scenario::default();
        let model = "model=llama-3.1-8b gpu=h100-sxm5-80gb precision=amp-bf16 mb=1 seq=2048";
        for word in model.split(' ').chain(run.split(' ')) {
            let (name, value) = word.split_once('=').unwrap();
            settings::set(&mut scenario, name, value).unwrap();
        }
        let time = Prediction::new(scenario).step_time().unwrap();
        time.step.expected.get()
    }

    /// The first run takes longer than the second.
    #[track_caller]
    fn check(slower: &str, faster: &str) {
        let (slow, fast) = (seconds(slower), seconds(faster));
        assert!(slow > fast, "{slower} {slow}, {faster} {fast}");
    }

    #[test]
    fn communication_takes_time() {
        check("gpus=16 nodes=2 par=ddp", "gpus=8 par=ddp");
        check("gpus=8 nodes=8 par=fsdp2", "gpus=8 par=fsdp2");
        check(
            "gpus=16 nodes=2 par=ddp bucket=1",
            "gpus=16 nodes=2 par=ddp bucket=100",
        );
        check("gpus=1", "gpus=2 par=none tp=2");
        // Short passes wait for ZeRO-3's hooks around each module; long ones hide them.
        check("gpus=2 par=zero3 seq=128", "gpus=2 par=fsdp2 seq=1024");
        // DeepSpeed reduces whole gradients at the end of a step, parts of them after every micro-batch.
        check(
            "gpus=8 nodes=8 par=zero2 accum=8",
            "gpus=8 nodes=8 par=zero1 accum=8",
        );
        check(
            "gpus=8 nodes=8 par=zero2 accum=8",
            "gpus=8 nodes=8 par=zero2 accum=8 zero_overlap=on",
        );
        // More stages on each GPU make the bubble smaller.
        check(
            "gpus=4 par=ddp pp=4 accum=4",
            "gpus=4 par=ddp pp=4 accum=4 vpp=4 schedule=interleaved",
        );
    }
}
