//! torchtitan: its TOML (`[job]`, `[model]`, `[training]`, `[parallelism]`).
//!
//! Defaults are those of `torchtitan/config/job_config.py` before its configurations became Python.

use headroom_base::document::Document;

use super::common;
use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::program::{Program, Source};
use crate::words::{
    Attention, Checkpointing, Compute, DataParallel, Offload, Strategy, Task, Weights,
};

pub const PROGRAM: Program = Program {
    id: "torchtitan",
    name: "torchtitan",
    read,
};

fn read(source: &Source) -> Option<Facts> {
    let keys = source.document()?;
    let table = |key: &str| matches!(keys.peek(key), Some(Document::Map(_)));
    let own = table("training") && keys.has("model.flavor") && keys.has("model.name");
    own.then(|| of(keys))
}

fn of(keys: &Keys) -> Facts {
    let mut facts = Facts::of("torchtitan");
    facts.model = match (keys.text("model.name"), keys.text("model.flavor")) {
        (Fact::Known { value: name, .. }, Fact::Known { value: size, .. }) => {
            Fact::read(format!("{name}-{size}"), "model.name and model.flavor")
        }
        (said, _) => said,
    };
    facts.task = Fact::follows(Task::Pretraining, "torchtitan pretrains");
    facts.micro_batch = keys
        .whole("training.local_batch_size")
        .or(keys.whole("training.batch_size"))
        .or_default(8, "torchtitan's local_batch_size");
    facts.sequence = keys
        .whole("training.seq_len")
        .or_default(2048, "torchtitan's seq_len");
    let global = keys
        .number("training.global_batch_size")
        .value()
        .copied()
        .unwrap_or(-1.0);
    if global > 0.0 {
        facts.batch_of_all = keys.whole("training.global_batch_size");
    } else {
        facts.accumulation = Fact::default_of(1, "torchtitan's global_batch_size");
    }
    spread(keys, &mut facts);
    let kept = keys
        .text("training.dtype")
        .or_default("float32".into(), "torchtitan's dtype");
    facts.weights = kept.and_then(|name| match name.as_str() {
        "float32" => Some(Weights::Fp32),
        "bfloat16" => Some(Weights::Bf16),
        _ => None,
    });
    let param = keys
        .text("training.mixed_precision_param")
        .or_default("bfloat16".into(), "torchtitan's mixed_precision_param");
    let converted = keys
        .list("model.converters")
        .value()
        .cloned()
        .unwrap_or_default();
    let fp8 = converted
        .iter()
        .any(|name| name.contains("float8") || name.contains("mx"))
        || keys.switch("float8.enable_float8_linear").value() == Some(&true);
    facts.compute = param.and_then(|name| match name.as_str() {
        _ if fp8 => Some(Compute::Bf16Fp8),
        "bfloat16" => Some(Compute::Bf16),
        "float32" => Some(Compute::Fp32),
        _ => None,
    });
    common::trains_all(&mut facts);
    facts.optimizer = keys
        .text("optimizer.name")
        .map(|name| name.to_ascii_lowercase())
        .or_default("adamw".into(), "torchtitan's optimizer");
    let mode = keys.text("activation_checkpoint.mode").or_default(
        "selective".into(),
        "torchtitan's activation_checkpoint.mode",
    );
    facts.checkpointing = mode.and_then(|mode| match mode.as_str() {
        "full" => Some(Checkpointing::On),
        "selective" | "memory_budget" => Some(Checkpointing::Selective),
        "none" => Some(Checkpointing::Off),
        _ => None,
    });
    facts.attention = Fact::default_of(Attention::Sdpa, "torchtitan");
    facts.packing = Fact::default_of(true, "torchtitan");
    facts.compile = keys
        .switch("compile.enable")
        .or(keys.switch("training.compile"))
        .or_default(false, "torchtitan's compile");
    let validated = keys
        .switch("validation.enable")
        .or(keys.switch("validation.enabled"));
    facts.evaluation = validated.or_default(false, "torchtitan's validation");
    facts
}

fn spread(keys: &Keys, facts: &mut Facts) {
    let degree = |name: &str| {
        let said = keys.number(&format!("parallelism.{name}_degree"));
        said.value()
            .copied()
            .filter(|size| *size >= 1.0)
            .map(|size| size as u64)
    };
    let (tp, pp) = (
        degree("tensor_parallel").unwrap_or(1),
        degree("pipeline_parallel").unwrap_or(1),
    );
    let (cp, ep) = (
        degree("context_parallel").unwrap_or(1),
        degree("expert_parallel").unwrap_or(1),
    );
    let copies = degree("data_parallel_replicate").unwrap_or(1);
    let shard = degree("data_parallel_shard");
    let data = match (shard, copies) {
        (Some(1), 1) => DataParallel::None,
        (Some(1), _) => DataParallel::Ddp,
        (_, 1) => DataParallel::Fsdp2,
        _ => DataParallel::Hsdp,
    };
    facts.strategy = Fact::read(
        Strategy {
            data,
            tp,
            pp,
            cp,
            ep,
        },
        "parallelism",
    );
    // A degree of -1 takes what the launcher's GPUs leave.
    facts.gpus = match shard {
        Some(shard) => {
            let all = [shard, copies, tp, pp, cp]
                .iter()
                .fold(1u64, |all, size| all.saturating_mul(*size));
            Fact::follows(all, "parallelism's degrees")
        }
        None => Fact::Unsaid,
    };
    let on_host = keys.switch("training.enable_cpu_offload").value() == Some(&true);
    facts.offload = if on_host {
        Fact::read(Offload::Both, "training.enable_cpu_offload")
    } else {
        Fact::default_of(Offload::None, "torchtitan")
    };
}

#[cfg(test)]
mod tests {
    use crate::programs::testing::check;

    #[test]
    fn degrees_decide_gpus_where_none_is_open() {
        let run = "
[job]
dump_folder = \"./outputs\"
[model]
name = \"llama3\"
flavor = \"8B\"
[training]
local_batch_size = 1
seq_len = 8192
[parallelism]
data_parallel_shard_degree = 4
tensor_parallel_degree = 2
[activation_checkpoint]
mode = \"full\"
";
        check(
            "llama3_8b.toml",
            run,
            &[
                ("outcome", "estimate"),
                ("gpus", "8"),
                ("strategy", "fsdp2+tp2"),
                ("weights", "fp32"),
                ("compute", "bf16"),
                ("checkpointing", "true"),
            ],
        );
        let open = run.replace("shard_degree = 4", "shard_degree = -1");
        check(
            "llama3_8b.toml",
            &open,
            &[("outcome", "question"), ("asks", "gpus")],
        );
    }
}
