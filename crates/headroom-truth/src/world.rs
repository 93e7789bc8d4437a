//! The job of a record: how many GPUs share the work, and how.

use serde_json::Value;

use super::knobs::{Dims, Knobs};
use super::record::Mixed;
use headroom_base::mesh::{Mesh, Rank};
use headroom_core::World;
use headroom_scenario::{
    CommHook, ContextParallel, Offload, Parallel, Parallelism, PolicyType, Schedule, Toggle,
    Trainer, Wrap,
};

fn degree(given: Option<u32>) -> u32 {
    given.unwrap_or(1).max(1)
}

fn policy(name: &str, given: Option<&str>) -> Result<PolicyType, String> {
    match given {
        None => Ok(PolicyType::Own),
        Some(id) => PolicyType::from_id(id).ok_or_else(|| format!("{name} `{id}` is not known")),
    }
}

fn strategy(knobs: &Knobs) -> Parallelism {
    match (knobs.strategy.as_deref().unwrap_or_default(), knobs.zero) {
        ("megatron", _) if knobs.mg.dist_opt != Some(false) => Parallelism::Zero1,
        ("ddp" | "zero1_torch" | "megatron", _) => Parallelism::Ddp,
        ("data_parallel", _) => Parallelism::DataParallel,
        ("fsdp1", _) => Parallelism::Fsdp1,
        ("fsdp2", _) => Parallelism::Fsdp2,
        ("ds", 0) => Parallelism::Zero0,
        ("ds", 1) => Parallelism::Zero1,
        ("ds", 2) => Parallelism::Zero2,
        ("ds", _) => Parallelism::Zero3,
        _ if degree(knobs.fsdp) > 1 => Parallelism::Fsdp2,
        _ => Parallelism::None,
    }
}

fn parallel(knobs: &Knobs) -> Result<Parallel, String> {
    let zero = &knobs.ds_cfg;
    // One element is as good as none.
    let elements = |size: &Mixed| size.number().map_or(0, |size| size.max(1));
    let by_megatron = knobs.strategy.as_deref() == Some("megatron");
    Ok(Parallel {
        strategy: strategy(knobs),
        tp: degree(knobs.tp),
        pp: degree(knobs.pp),
        cp: degree(knobs.cp).saturating_mul(degree(knobs.ulysses)),
        ep: degree(knobs.ep),
        bucket_mb: knobs.bucket_mb.unwrap_or(25),
        bucket_view: knobs.gabv,
        comm_hook: match knobs.comm_hook.as_deref() {
            None => CommHook::None,
            Some(id) => {
                CommHook::from_id(id).ok_or_else(|| format!("comm_hook `{id}` is not known"))?
            }
        },
        powersgd_rank: knobs.powersgd_rank.unwrap_or(1),
        partition_optimizer: knobs.strategy.as_deref() == Some("zero1_torch"),
        wrap: match (
            knobs.wrap.as_deref().unwrap_or("layer"),
            knobs.trainer.is_some(),
        ) {
            // transformers wraps the ends by itself.
            ("layer", false) if knobs.engine.as_deref() == Some("moe") => Wrap::Ends,
            ("layer", false) => Wrap::Layers,
            ("layer+emb", _) => Wrap::Embedding,
            ("layer", true) | ("layer+emb+head", _) => Wrap::Ends,
            ("root", _) => Wrap::Root,
            (other, _) => return Err(format!("wrap `{other}` is not known")),
        },
        // Its recorder never reshards under a pipeline, as torchtitan.
        reshard: knobs.reshard.switch() != Some(false) && knobs.engine.as_deref() != Some("pps"),
        reshard_to: match zero.zero_hpz_partition_size {
            // DeepSpeed's own default: no groups.
            Some(0 | 1) => 0,
            Some(group) => group,
            None => knobs.reshard.number().unwrap_or(0) as u32,
        },
        reshard_root: knobs.root_reshard != "default",
        param_dtype: policy("mp_param", knobs.mp_param.as_deref())?,
        reduce_dtype: if knobs.mg.grad_fp32 == Some(false) {
            PolicyType::Bf16
        } else {
            policy("mp_reduce", knobs.mp_reduce.as_deref())?
        },
        shard_quantized: knobs.quant_storage == "bf16",
        prefetch_forward: knobs.prefetch_fwd,
        prefetch_backward: knobs.prefetch_bwd,
        sync_each: knobs.no_sync == Some(false),
        sequence_parallel: knobs.sp,
        loss_parallel: knobs.loss_parallel,
        context: if degree(knobs.ulysses) > 1 {
            ContextParallel::Ulysses
        } else {
            ContextParallel::Ring
        },
        schedule: match knobs.pp_sched.as_deref().unwrap_or("1f1b") {
            "1f1b" if by_megatron && degree(knobs.vpp) > 1 => Schedule::Interleaved,
            "zb" => Schedule::ZeroBubble,
            id => Schedule::from_id(id).ok_or_else(|| format!("pp_sched `{id}` is not known"))?,
        },
        virtual_stages: degree(knobs.vpp),
        offload: if knobs.offload_param || knobs.cpu_offload {
            Offload::Parameters
        } else if knobs.offload_optimizer {
            Offload::Optimizer
        } else {
            Offload::None
        },
        zero_bucket: elements(&zero.reduce_bucket_size),
        zero_prefetch: elements(&zero.stage3_prefetch_bucket_size),
        zero_persistence: elements(&zero.stage3_param_persistence_threshold),
        zero_live: elements(&zero.stage3_max_live_parameters),
        zero_reuse: elements(&zero.stage3_max_reuse_distance),
        zero_subgroup: elements(&zero.sub_group_size),
        zero_overlap: match zero.overlap_comm.or(knobs.mg.overlap_grad) {
            None => Toggle::Auto,
            Some(true) => Toggle::On,
            Some(false) => Toggle::Off,
        },
        zero_contiguous: zero.contiguous_gradients != Some(false),
        zero_bf16_master: zero.bf16.bf16_master_weights_and_grads,
    })
}

/// The rank that a record's settings describe.
pub fn world(knobs: &Knobs, dims: &Dims) -> Result<World, String> {
    let parallel = parallel(knobs)?;
    let divides_states = matches!(
        parallel.strategy,
        Parallelism::Zero0 | Parallelism::Zero1 | Parallelism::Zero2 | Parallelism::Zero3
    );
    let (dp, hsdp) = (degree(knobs.dp), degree(knobs.hsdp));
    let (data, shard) = if divides_states {
        (hsdp, dp)
    } else {
        (dp.saturating_mul(hsdp), degree(knobs.fsdp))
    };
    Ok(World {
        mesh: Mesh {
            data,
            shard,
            tensor: parallel.tp,
            context: parallel.cp,
            expert: parallel.ep,
            stages: parallel.pp,
        },
        rank: Rank {
            stage: knobs.pp_stage,
            shard: knobs.rank,
        },
        parallel,
        trainer: match knobs.trainer.as_deref() {
            Some("hf") => Trainer::Transformers,
            Some("sft" | "dpo" | "kto" | "orpo" | "reward" | "grpo") => Trainer::Trl,
            _ if knobs.strategy.as_deref() == Some("megatron") => Trainer::Megatron,
            _ => Trainer::Torch,
        },
        hidden: dims.get("hidden").and_then(Value::as_u64),
    })
}
