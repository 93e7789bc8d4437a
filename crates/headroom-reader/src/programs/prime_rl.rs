//! prime-rl: the TOML of `uv run rl @ …`, `uv run sft @ …` and `uv run trainer @ …`.
//!
//! Defaults are those of `packages/prime-rl-configs/src/prime_rl/configs/*.py`.

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
    id: "prime-rl",
    name: "prime-rl",
    read,
};

/// What a file is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Trainer, orchestrator and inference together.
    Rl,
    Sft,
    /// The trainer of RL alone.
    Trainer,
}

fn read(source: &Source) -> Option<Facts> {
    let keys = source.document()?;
    let kind = kind(keys)?;
    Some(of(keys, kind))
}

fn kind(keys: &Keys) -> Option<Kind> {
    let table = |key: &str| matches!(keys.peek(key), Some(Document::Map(_)));
    // torchtitan has `[training]`, Axolotl and others no `[model]` with a name beside these.
    if keys.has("training") || keys.has("job") || keys.has("datasets") {
        return None;
    }
    let deployment = keys.has("deployment.num_train_gpus")
        || keys.has("deployment.num_train_nodes")
        || keys.has("deployment.num_infer_gpus");
    if table("orchestrator") && (table("model") || table("trainer") || table("inference")) {
        return Some(Kind::Rl);
    }
    if table("trainer") && table("inference") && table("model") {
        return Some(Kind::Rl);
    }
    if !table("model") || !keys.has("model.name") && !keys.has("model.seq_len") {
        return None;
    }
    if keys.has("data.seq_len") || keys.has("data.loss_mask") || (table("data") && deployment) {
        return Some(Kind::Sft);
    }
    if keys.has("data.fake") || (keys.has("model.seq_len") && (table("optim") || table("ckpt"))) {
        return Some(Kind::Trainer);
    }
    (deployment && (table("optim") || table("ckpt"))).then_some(Kind::Sft)
}

fn of(keys: &Keys, kind: Kind) -> Facts {
    let mut facts = Facts::of("prime-rl");
    let below = if kind == Kind::Rl { "trainer." } else { "" };
    let at = |key: &str| format!("{below}{key}");
    facts.model = keys.text(&at("model.name")).or(keys.text("model.name"));
    facts.task = match kind {
        Kind::Sft => Fact::follows(Task::Sft, "its form"),
        _ => task(keys),
    };
    facts.sequence = match kind {
        Kind::Sft => keys
            .whole("data.seq_len")
            .or_default(128, "prime-rl's data.seq_len"),
        _ => keys
            .whole(&at("model.seq_len"))
            .or(keys.whole("seq_len"))
            .or_default(2048, "prime-rl's seq_len"),
    };
    let training = deployment(keys, kind, &mut facts);
    if let Some(own) = training {
        facts.trained_on = Fact::follows(own, "the trainer's GPUs");
    }
    spread(keys, &at("model"), &mut facts);
    facts.micro_batch = match kind {
        Kind::Sft => keys
            .whole("data.micro_batch_size")
            .or_default(1, "prime-rl's micro_batch_size"),
        _ => keys
            .whole(&at("data.fake.batch_size"))
            .map(|_| 1)
            .or_default(1, "prime-rl packs a micro-batch into one row"),
    };
    if kind == Kind::Sft {
        let global = keys
            .whole("data.batch_size")
            .or_default(128, "prime-rl's batch_size");
        let cp = facts.strategy.value().map_or(1, |strategy| strategy.cp);
        let ranks = training.map(|gpus| (gpus / cp.max(1)).max(1));
        let by = ranks.zip(facts.micro_batch.value().copied());
        let by = by.map(|(ranks, micro)| ranks.saturating_mul(micro));
        facts.accumulation = common::divided(&global, by, "data.batch_size");
    } else {
        facts.samples = keys
            .whole("orchestrator.group_size")
            .or(keys.whole("orchestrator.rollouts_per_example"))
            .or_default(1, "prime-rl's group_size");
    }
    if kind == Kind::Rl {
        facts.vllm = keys
            .number("inference.vllm.gpu_memory_utilization")
            .or(keys.number("inference.gpu_memory_utilization"))
            .or_default(0.9, "prime-rl's gpu_memory_utilization")
            .map(Some);
    }
    precision(keys, &at("model"), &mut facts);
    method(keys, &at("model"), &mut facts);
    facts.optimizer = keys
        .text(&at("optim.type"))
        .or_default("adamw".into(), "prime-rl's optim");
    facts.checkpointing = checkpointing(keys, &at("model"));
    facts.attention = keys
        .text(&at("model.attn"))
        .or_default("auto".into(), "prime-rl's attn")
        .and_then(|name| {
            Some(match name.as_str() {
                "sdpa" => Attention::Sdpa,
                "eager" => Attention::Eager,
                "flex_attention" => Attention::Flex,
                _ => Attention::Flash,
            })
        });
    facts.packing = Fact::default_of(true, "prime-rl");
    offload(keys, &at("model"), &mut facts);
    facts
}

fn task(keys: &Keys) -> Fact<Task> {
    match keys
        .text("orchestrator.algo.type")
        .value()
        .map(String::as_str)
    {
        Some("sft") => Fact::read(Task::Sft, "orchestrator.algo.type"),
        Some("opd" | "self_distill") => Fact::read(Task::Distillation, "orchestrator.algo.type"),
        Some(_) => Fact::read(Task::Grpo, "orchestrator.algo.type"),
        None => Fact::follows(Task::Grpo, "its form"),
    }
}

/// GPUs of the job; the answer is those that train.
fn deployment(keys: &Keys, kind: Kind, facts: &mut Facts) -> Option<u64> {
    let whole = |key: &str| keys.whole(&format!("deployment.{key}")).value().copied();
    let several = keys
        .text("deployment.type")
        .value()
        .is_some_and(|kind| kind == "multi_node")
        || whole("num_train_nodes").is_some();
    let generates = kind == Kind::Rl;
    if several {
        let each = whole("gpus_per_node").unwrap_or(8);
        let train = whole("num_train_nodes").unwrap_or(if kind == Kind::Sft { 2 } else { 1 });
        let infer = whole("num_infer_nodes")
            .unwrap_or(0)
            .saturating_mul(whole("num_infer_replicas").unwrap_or(1));
        let nodes = train.saturating_add(if generates { infer } else { 0 });
        facts.nodes = Fact::read(nodes, "deployment");
        facts.gpus = Fact::read(nodes.saturating_mul(each), "deployment");
        return Some(train.saturating_mul(each));
    }
    let train = whole("num_train_gpus").unwrap_or(1);
    let infer = if generates {
        whole("num_infer_gpus").unwrap_or(1)
    } else {
        0
    };
    facts.nodes = Fact::default_of(1, "prime-rl's deployment");
    let gpus = train.saturating_add(infer);
    facts.gpus = if keys.has("deployment") {
        Fact::read(gpus, "deployment")
    } else if kind == Kind::Trainer {
        Fact::Unsaid
    } else {
        Fact::default_of(gpus, "prime-rl's deployment")
    };
    facts.gpus.value().map(|_| train)
}

fn spread(keys: &Keys, model: &str, facts: &mut Facts) {
    let size = |key: &str| {
        keys.whole(&format!("{model}.{key}"))
            .value()
            .copied()
            .unwrap_or(1)
            .max(1)
    };
    let data = if size("dp_replicate") > 1 {
        DataParallel::Hsdp
    } else {
        DataParallel::Fsdp2
    };
    let strategy = Strategy {
        data,
        tp: size("tp"),
        pp: 1,
        cp: size("cp"),
        ep: size("ep"),
    };
    facts.strategy = Fact::default_of(strategy, "prime-rl shards by FSDP2");
}

fn precision(keys: &Keys, model: &str, facts: &mut Facts) {
    let kept = keys
        .text(&format!("{model}.optimization_dtype"))
        .or_default("float32".into(), "prime-rl's optimization_dtype");
    facts.weights = kept.and_then(|name| {
        Some(match name.as_str() {
            "float32" => Weights::Fp32,
            "bfloat16" => Weights::Bf16,
            _ => return None,
        })
    });
    let quantised = keys.has(&format!("{model}.quantization"))
        || keys.switch(&format!("{model}.fp8")).value() == Some(&true);
    facts.compute = if quantised {
        Fact::read(Compute::Bf16Fp8, format!("{model}.quantization"))
    } else {
        Fact::default_of(Compute::Bf16, "prime-rl")
    };
}

/// Layers that its LoRA is for where none is named.
const ALL: &[&str] = &[
    "q_proj",
    "k_proj",
    "v_proj",
    "o_proj",
    "gate_proj",
    "up_proj",
    "down_proj",
    "experts",
];

fn method(keys: &Keys, model: &str, facts: &mut Facts) {
    let at = format!("{model}.lora");
    if !matches!(keys.peek(&at), Some(Document::Map(_))) {
        common::trains_all(facts);
        return;
    }
    let rank = keys
        .whole(&format!("{at}.rank"))
        .or_default(16, "prime-rl's lora.rank");
    common::trains_lora(facts, rank, &at);
    facts.targets = keys.list(&format!("{at}.target_modules")).or_default(
        ALL.iter().map(|name| (*name).into()).collect(),
        "prime-rl's target_modules",
    );
}

fn checkpointing(keys: &Keys, model: &str) -> Fact<Checkpointing> {
    let at = format!("{model}.ac");
    match keys.get(&at) {
        Some(Document::Text(none)) if none.eq_ignore_ascii_case("none") => {
            Fact::read(Checkpointing::Off, at)
        }
        Some(Document::Bool(false)) => Fact::read(Checkpointing::Off, at),
        Some(Document::Map(_)) => {
            let selective = keys
                .text(&format!("{at}.mode"))
                .value()
                .is_some_and(|mode| mode == "selective");
            let some = keys
                .whole(&format!("{at}.freq"))
                .value()
                .is_some_and(|every| *every > 1);
            let kind = if selective || some {
                Checkpointing::Selective
            } else {
                Checkpointing::On
            };
            Fact::read(kind, at)
        }
        _ => Fact::default_of(Checkpointing::On, "prime-rl's ac"),
    }
}

fn offload(keys: &Keys, model: &str, facts: &mut Facts) {
    let on = |key: &str| keys.switch(&format!("{model}.{key}")).value() == Some(&true);
    let full = matches!(
        keys.peek(&format!("{model}.full_offload")),
        Some(Document::Map(_) | Document::Bool(true))
    );
    facts.offload = if on("fsdp_cpu_offload") {
        Fact::read(Offload::Both, format!("{model}.fsdp_cpu_offload"))
    } else if full {
        Fact::read(Offload::Optimizer, format!("{model}.full_offload"))
    } else {
        Fact::default_of(Offload::None, "prime-rl")
    };
    if keys.switch(&format!("{model}.optim_cpu_offload")).value() != Some(&false) && !full {
        let effect = "optim_cpu_offload (on unless said otherwise in recent versions): moments are in host memory between optimizer steps";
        facts.not_modelled.push(format!("{model}.{effect}"));
    }
    let off = keys
        .text(&format!("{model}.ac_offloading"))
        .value()
        .is_some_and(|word| word.eq_ignore_ascii_case("none"));
    if !off {
        let effect = "ac_offloading (on unless said otherwise in recent versions): checkpoints are in host memory";
        facts.not_modelled.push(format!("{model}.{effect}"));
    }
}

#[cfg(test)]
mod tests {
    use crate::programs::testing::check;

    #[test]
    fn training_and_inference_have_gpus_of_their_own() {
        let rl = "
seq_len = 4096
[model]
name = \"Qwen/Qwen3-4B\"
[deployment]
num_train_gpus = 2
num_infer_gpus = 6
[trainer.model]
ac = \"None\"
cp = 2
[trainer.model.lora]
rank = 4
[orchestrator]
group_size = 8
";
        check(
            "rl.toml",
            rl,
            &[
                ("outcome", "estimate"),
                ("gpus", "8"),
                ("strategy", "fsdp2+cp2"),
                ("adapter", "lora"),
                ("rank", "4"),
                ("checkpointing", "false"),
                ("samples", "8"),
                ("sequence", "4096"),
            ],
        );
        let sft = "
[model]
name = \"Qwen/Qwen3-0.6B\"
[data]
seq_len = 2048
batch_size = 16
[deployment]
num_train_gpus = 4
";
        check(
            "sft.toml",
            sft,
            &[
                ("task", "sft"),
                ("gpus", "4"),
                ("micro_batch", "1"),
                ("accumulation", "4"),
                ("weights", "fp32"),
            ],
        );
    }
}
