//! How a record's GPUs shared its work.

use super::Record;
use super::megatron::{self, degree};
use headroom_base::mesh::Mesh;
use headroom_core::World;
use headroom_scenario::{Offload, Parallel, Parallelism, PolicyType, Toggle, Trainer, Wrap};

/// The first rank of a record's job.
pub(super) fn world(record: &Record) -> Result<World, String> {
    let trainer = if record.framework.starts_with("fms") {
        Trainer::Trl
    } else {
        Trainer::Torch
    };
    let gpus = match record.n_gpus.number() {
        Some(1) => {
            return Ok(World {
                trainer,
                ..World::ALONE
            });
        }
        Some(gpus) => u32::try_from(gpus).unwrap_or(u32::MAX),
        None => return Err("the record does not say how many GPUs it ran on".into()),
    };
    let how = &*record.parallelism;
    let hidden = record.dim("hidden");
    let policy = mixed_precision(record);
    if megatron::is_record(record) {
        return megatron::world(record, gpus);
    }
    if how.starts_with("ddp") {
        return Ok(World::of(Parallelism::Ddp, gpus));
    }
    if record.framework.starts_with("torchtitan") {
        if record.fused_or_chunked_ce.starts_with("chunked") {
            return Err("torchtitan's chunked loss is not modelled".into());
        }
        return torchtitan(record, how, gpus);
    }
    let sharded = |strategy, trainer| {
        let mut world = World::of(strategy, gpus);
        world.parallel.param_dtype = policy;
        world.parallel.reduce_dtype = policy;
        world.parallel.shard_quantized = true;
        World {
            trainer,
            hidden,
            ..world
        }
    };
    let zero3 = "reduce_bucket 5e7, prefetch 5e7, max_live 1e9";
    if record.notes.contains(zero3) {
        let mut world = sharded(Parallelism::Zero3, Trainer::Torch);
        world.parallel.zero_bucket = 50_000_000;
        world.parallel.zero_prefetch = 50_000_000;
        return Ok(world);
    }
    if how == "deepspeed zero-2, 4 gpus" {
        // Defaults of Lightning's `DeepSpeedStrategy`.
        let mut world = sharded(Parallelism::Zero2, Trainer::Torch);
        world.parallel.zero_bucket = 200_000_000;
        world.parallel.zero_overlap = Toggle::On;
        return Ok(world);
    }
    if how.starts_with("deepspeed") && record.file.starts_with("training/") {
        // accelerate_configs/deepspeed.yaml of cogvideox-factory: stage 2, whose optimizer steps on the host.
        let mut world = sharded(Parallelism::Zero2, Trainer::Torch);
        world.parallel.offload = Offload::Optimizer;
        return Ok(world);
    }
    if how.contains("offload") {
        return Err(format!("{how}: what is offloaded is not stated"));
    }
    if how.starts_with("fsdp1") {
        return Ok(sharded(Parallelism::Fsdp1, trainer));
    }
    Err(format!("the layout `{how}` is not stated in full"))
}

/// The types of a sharded run: accelerate and Lightning gather and reduce in the type of autocast.
fn mixed_precision(record: &Record) -> PolicyType {
    if (record.precision).contains_any(&["fp16 autocast", "bf16 autocast"]) {
        // The same bytes in either half precision.
        PolicyType::Bf16
    } else {
        PolicyType::Own
    }
}

/// "FSDP 32 x TP 8 (sequence parallel, loss parallel)", "FSDP2 x8", "FSDP2 dp_shard=4",
/// "FSDP2 (dp_shard 2 x CP 2 = 4-way param shard), context parallel 2".
fn torchtitan(record: &Record, how: &str, gpus: u32) -> Result<World, String> {
    let [tensor, stages] = ["tp", "pp"].map(|name| degree(how, name));
    let context = degree(how, "context parallel").max(degree(how, "cp"));
    let each = tensor.saturating_mul(stages);
    let is_sharded = record.parallelism.contains_any(&["fsdp", "dp_shard"]);
    if !is_sharded || !gpus.is_multiple_of(each) {
        return Err(format!("the layout `{how}` is not stated in full"));
    }
    let world = World::of(Parallelism::Fsdp2, gpus);
    Ok(World {
        mesh: Mesh {
            // GPUs that share a sequence shard the weights too.
            shard: gpus / each,
            tensor,
            context,
            stages,
            ..world.mesh
        },
        parallel: Parallel {
            tp: tensor,
            cp: context,
            pp: stages,
            sequence_parallel: tensor > 1,
            loss_parallel: tensor > 1,
            param_dtype: PolicyType::Bf16,
            reduce_dtype: PolicyType::Fp32,
            // `apply_fsdp` wrapped only the blocks until May 2025.
            wrap: if record.framework.contains_any(&["9dec370", "mar 2025"]) {
                Wrap::Layers
            } else {
                Wrap::Ends
            },
            ..world.parallel
        },
        trainer: Trainer::Torchtitan,
        ..world
    })
}
