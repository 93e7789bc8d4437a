//! How a record's GPUs shared its work.

use serde_json::Value;

use super::{megatron, text};
use headroom_base::mesh::Mesh;
use headroom_core::parallel::World;
use headroom_scenario::{Parallel, Parallelism, PolicyType, Toggle, Trainer, Wrap};

/// The first rank of a record's job.
pub(super) fn world(record: &Value) -> Result<World, String> {
    let trainer = if text(record, "framework").starts_with("fms") {
        Trainer::Trl
    } else {
        Trainer::Torch
    };
    let gpus = match record["n_gpus"].as_u64() {
        Some(1) => {
            return Ok(World {
                trainer,
                ..World::ALONE
            });
        }
        Some(gpus) => u32::try_from(gpus).unwrap_or(u32::MAX),
        None => return Err("the record does not say how many GPUs it ran on".into()),
    };
    let how = text(record, "parallelism");
    let hidden = record["model_dims"]["hidden"].as_u64();
    let policy = mixed_precision(record);
    if megatron::is_record(record) {
        return megatron::world(record, gpus);
    }
    if how.starts_with("ddp") {
        return Ok(World::of(Parallelism::Ddp, gpus));
    }
    if text(record, "framework").starts_with("torchtitan") {
        if text(record, "fused_or_chunked_ce").starts_with("chunked") {
            return Err("torchtitan's chunked loss is not modelled".into());
        }
        return torchtitan(record, &how, gpus);
    }
    let sharded = |strategy, trainer| {
        let world = World::of(strategy, gpus);
        World {
            parallel: Parallel {
                param_dtype: policy,
                reduce_dtype: policy,
                shard_quantized: true,
                ..world.parallel
            },
            trainer,
            hidden,
            ..world
        }
    };
    if text(record, "notes").contains("reduce_bucket 5e7, prefetch 5e7, max_live 1e9") {
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
    if how.contains("offload") {
        return Err(format!("{how}: what is offloaded is not stated"));
    }
    if how.starts_with("fsdp1") {
        return Ok(sharded(Parallelism::Fsdp1, trainer));
    }
    Err(format!("the layout `{how}` is not stated in full"))
}

/// The types of a sharded run: accelerate and Lightning gather and reduce in the type of autocast.
fn mixed_precision(record: &Value) -> PolicyType {
    let precision = text(record, "precision");
    if ["fp16 autocast", "bf16 autocast"]
        .iter()
        .any(|word| precision.contains(word))
    {
        // The same bytes in either half precision.
        PolicyType::Bf16
    } else {
        PolicyType::Own
    }
}

/// "FSDP 32 x TP 8 (sequence parallel, loss parallel)", "FSDP2 x8", "FSDP2 dp_shard=4",
/// "FSDP2 (dp_shard 2 x CP 2 = 4-way param shard), context parallel 2".
fn torchtitan(record: &Value, how: &str, gpus: u32) -> Result<World, String> {
    let degree = |names: &[&str]| {
        let rest = names.iter().find_map(|name| how.split_once(name))?.1;
        let digits = rest.trim_start_matches([' ', '=']);
        let end = digits
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(digits.len());
        digits.get(..end)?.parse::<u32>().ok()
    };
    let tensor = degree(&["tp "]).unwrap_or(1).max(1);
    let context = degree(&["context parallel ", "cp "]).unwrap_or(1).max(1);
    let stages = degree(&["pp "]).unwrap_or(1).max(1);
    let named = ["fsdp", "dp_shard"].iter().any(|name| how.contains(name));
    let each = tensor.saturating_mul(stages);
    if !named || !gpus.is_multiple_of(each) {
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
            // `apply_fsdp` wrapped the blocks alone until May 2025.
            wrap: if ["9dec370", "mar 2025"]
                .iter()
                .any(|word| text(record, "framework").contains(word))
            {
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
