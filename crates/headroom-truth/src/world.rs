//! The job of a record: how many GPUs share the work, and how.

use serde_json::{Map, Value};

use headroom_base::mesh::{Mesh, Rank};
use headroom_core::parallel::World;
use headroom_scenario::{
    CommHook, ContextParallel, Offload, Parallel, Parallelism, PolicyType, Schedule, Toggle,
    Trainer, Wrap,
};

/// The rank that a record's settings describe.
pub fn world(knobs: &Map<String, Value>, dims: &Map<String, Value>) -> Result<World, String> {
    let text = |name: &str| knobs.get(name).and_then(Value::as_str);
    let flag =
        |name: &str, default: bool| knobs.get(name).and_then(Value::as_bool).unwrap_or(default);
    let number = |name: &str, default: u32| {
        let given = knobs.get(name).and_then(Value::as_u64);
        given.map_or(default, |n| u32::try_from(n).unwrap_or(u32::MAX))
    };
    let degree = |name: &str| number(name, 1).max(1);
    let offload = |name: &str| flag(name, false);
    let megatron = |name: &str| {
        let settings = knobs.get("mg");
        settings
            .and_then(|settings| settings.get(name))
            .and_then(Value::as_bool)
    };
    let is_megatron = text("strategy") == Some("megatron");
    let strategy = match text("strategy").unwrap_or("single") {
        "megatron" if megatron("dist_opt") != Some(false) => Parallelism::Zero1,
        "ddp" | "zero1_torch" | "megatron" => Parallelism::Ddp,
        "data_parallel" => Parallelism::DataParallel,
        "fsdp1" => Parallelism::Fsdp1,
        "fsdp2" => Parallelism::Fsdp2,
        "ds" => match number("zero", 0) {
            0 => Parallelism::Ddp,
            1 => Parallelism::Zero1,
            2 => Parallelism::Zero2,
            _ => Parallelism::Zero3,
        },
        _ if degree("fsdp") > 1 => Parallelism::Fsdp2,
        _ => Parallelism::None,
    };
    let policy = |name: &str| {
        Ok(match text(name) {
            None => PolicyType::Own,
            Some("bf16") => PolicyType::Bf16,
            Some("fp16") => PolicyType::Fp16,
            Some("fp32") => PolicyType::Fp32,
            Some(other) => return Err(format!("{name} `{other}` is not known")),
        })
    };
    let config = |name: &str| knobs.get("ds_cfg").and_then(|config| config.get(name));
    let zero = |name: &str| config(name).and_then(Value::as_u64).map_or(0, |n| n.max(1));
    let divides_states = matches!(
        strategy,
        Parallelism::Zero1 | Parallelism::Zero2 | Parallelism::Zero3
    );
    let (data, shard) = if divides_states {
        (degree("hsdp"), degree("dp"))
    } else {
        (degree("dp").saturating_mul(degree("hsdp")), degree("fsdp"))
    };
    let parallel = Parallel {
        strategy,
        tp: degree("tp"),
        pp: degree("pp"),
        cp: degree("cp").saturating_mul(degree("ulysses")),
        ep: degree("ep"),
        bucket_mb: knobs.get("bucket_mb").and_then(Value::as_u64).unwrap_or(25),
        bucket_view: flag("gabv", false),
        comm_hook: match text("comm_hook") {
            None => CommHook::None,
            Some(other) => CommHook::from_id(other)
                .ok_or_else(|| format!("comm_hook `{other}` is not known"))?,
        },
        powersgd_rank: number("powersgd_rank", 1).into(),
        partition_optimizer: text("strategy") == Some("zero1_torch"),
        wrap: match (text("wrap").unwrap_or("layer"), text("trainer")) {
            // transformers wraps the ends by itself.
            ("layer", None) if text("engine") == Some("moe") => Wrap::Ends,
            ("layer", None) => Wrap::Layers,
            ("layer+emb", _) => Wrap::Embedding,
            ("layer", Some(_)) | ("layer+emb+head", _) => Wrap::Ends,
            ("root", _) => Wrap::Root,
            (other, _) => return Err(format!("wrap `{other}` is not known")),
        },
        reshard: flag("reshard", true),
        reshard_to: match config("zero_hpz_partition_size").and_then(Value::as_u64) {
            // DeepSpeed's own default: no groups.
            Some(0 | 1) => 0,
            Some(group) => u32::try_from(group).unwrap_or(u32::MAX),
            None => number("reshard", 0),
        },
        reshard_root: text("root_reshard") != Some("default"),
        param_dtype: policy("mp_param")?,
        reduce_dtype: if megatron("grad_fp32") == Some(false) {
            PolicyType::Bf16
        } else {
            policy("mp_reduce")?
        },
        shard_quantized: text("quant_storage") == Some("bf16"),
        prefetch_forward: number("prefetch_fwd", 0),
        prefetch_backward: number("prefetch_bwd", 0),
        sync_each: !flag("no_sync", true),
        sequence_parallel: flag("sp", false),
        loss_parallel: flag("loss_parallel", false),
        context: if degree("ulysses") > 1 {
            ContextParallel::Ulysses
        } else {
            ContextParallel::Ring
        },
        schedule: match text("pp_sched").unwrap_or("1f1b") {
            "1f1b" if is_megatron && degree("vpp") > 1 => Schedule::Interleaved,
            "1f1b" => Schedule::OneForwardOneBackward,
            "gpipe" => Schedule::GPipe,
            "interleaved" => Schedule::Interleaved,
            "bfs" => Schedule::LoopedBfs,
            "zb" => Schedule::ZeroBubble,
            "zbv" => Schedule::ZeroBubbleV,
            "dualpipev" => Schedule::DualPipeV,
            other => return Err(format!("pp_sched `{other}` is not known")),
        },
        virtual_stages: degree("vpp"),
        offload: if offload("offload_param") || offload("cpu_offload") {
            Offload::Parameters
        } else if offload("offload_optimizer") {
            Offload::Optimizer
        } else {
            Offload::None
        },
        zero_bucket: zero("reduce_bucket_size"),
        // One element is as good as none.
        zero_prefetch: zero("stage3_prefetch_bucket_size"),
        zero_persistence: zero("stage3_param_persistence_threshold"),
        zero_live: zero("stage3_max_live_parameters"),
        zero_reuse: zero("stage3_max_reuse_distance"),
        zero_subgroup: zero("sub_group_size"),
        zero_overlap: match config("overlap_comm")
            .and_then(Value::as_bool)
            .or_else(|| megatron("overlap_grad"))
        {
            None => Toggle::Auto,
            Some(true) => Toggle::On,
            Some(false) => Toggle::Off,
        },
        zero_contiguous: config("contiguous_gradients").and_then(Value::as_bool) != Some(false),
        zero_bf16_master: config("_bf16")
            .and_then(|types| types.get("bf16_master_weights_and_grads"))
            .and_then(Value::as_bool)
            == Some(true),
    };
    let mesh = Mesh {
        data,
        shard,
        tensor: parallel.tp,
        context: parallel.cp,
        expert: parallel.ep,
        stages: parallel.pp,
    };
    let rank = Rank {
        stage: number("pp_stage", 0),
        shard: number("rank", 0),
    };
    Ok(World {
        mesh,
        rank,
        parallel,
        trainer: match text("trainer") {
            Some("hf") => Trainer::Transformers,
            Some("sft" | "dpo" | "kto" | "orpo" | "reward" | "grpo") => Trainer::Trl,
            _ if is_megatron => Trainer::Megatron,
            _ => Trainer::Torch,
        },
        hidden: dims.get("hidden").and_then(Value::as_u64),
    })
}
