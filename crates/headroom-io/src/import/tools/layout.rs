//! How several GPUs share the run: FSDP, DeepSpeed and sequence parallelism.

use super::super::deepspeed;
use super::super::take::KeyReader;
use headroom_base::document::Document;
use headroom_scenario::Parallelism;

/// The least number of GPUs for the file's parallelism, if the file has none.
fn enough_gpus(reader: &mut KeyReader) {
    let mut shards = 1_u64;
    for key in ["dp_shard_size", "dp_replicate_size"] {
        if let Some(Document::Int(size)) = reader.value(key) {
            shards = shards.saturating_mul(u64::try_from(*size).unwrap_or(1).max(1));
        }
    }
    let layout = &reader.imported.scenario.parallel;
    let copies = [layout.tp, layout.cp, layout.pp].into_iter().map(u64::from);
    let least = copies.fold(shards, u64::saturating_mul);
    let gpus = u64::from(reader.imported.scenario.hardware.gpus);
    if least > 1 && gpus % least != 0 {
        reader.set("hardware.gpus", &least.to_string());
    }
}

/// The value of `fsdp`: a boolean, or transformers' options such as `full_shard auto_wrap`.
fn fsdp_words(reader: &mut KeyReader) -> String {
    match reader.value("fsdp") {
        Some(Document::Bool(true)) => "fsdp2".into(),
        Some(Document::Text(words)) => words.to_ascii_lowercase(),
        Some(Document::List(items)) => {
            let word = |item: &Document| match item {
                Document::Text(word) => Some(word.to_ascii_lowercase()),
                _ => None,
            };
            let words: Vec<String> = items.iter().filter_map(word).collect();
            words.join(" ")
        }
        _ => String::new(),
    }
}

/// DeepSpeed's configuration: in the file itself, or another file, whose name has the stage and the offloading in
/// Axolotl (`zero3_bf16_cpuoffload_all.json`), LLaMA-Factory (`ds_z2_offload_config.json`) and ms-swift (`zero3_offload`).
fn deepspeed_by_name(reader: &mut KeyReader) {
    deepspeed::zero(reader, "deepspeed.zero_optimization.stage");
    deepspeed::offload(
        reader,
        "deepspeed.zero_optimization.offload_optimizer.device",
        "deepspeed.zero_optimization.offload_param.device",
    );
    deepspeed_by_path(reader, "deepspeed");
}

/// The same for the path under a key.
pub fn deepspeed_by_path(reader: &mut KeyReader, key: &str) {
    let Some(path) = reader.text(key) else {
        return;
    };
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let stage = ["zero", "_z", "stage"].iter().find_map(|mark| {
        let (_, after) = name.split_once(mark)?;
        after.trim_start_matches(['_', '-']).chars().next()
    });
    let strategy = match stage {
        Some('0') => "ddp",
        Some('1') => "zero1",
        Some('2') => "zero2",
        Some('3') => "zero3",
        _ => return reader.mark_unused(key),
    };
    reader.set("parallel.strategy", strategy);
    if name.contains("offload") {
        let weights = stage == Some('3');
        let what = if weights { "parameters" } else { "optimizer" };
        reader.set("parallel.offload", what);
    }
    let note =
        format!("deepspeed: {strategy} is inferred from the name {name}; the file was not read");
    reader.imported.notes.push(note);
}

/// ms-swift's Ulysses, if everything about it is modelled.
fn sequence_parallel(reader: &mut KeyReader) {
    let key = "sequence_parallel_size";
    let problems = reader.imported.scenario.check().len();
    let before = reader.imported.draft.clone();
    reader.copy(key, "parallel.cp");
    if reader.imported.scenario.parallel.cp > 1 {
        reader.set("parallel.context", "ulysses");
    }
    if reader.imported.scenario.check().len() > problems {
        reader.imported.rewind(before);
        reader.mark_unused(key);
    }
}

/// The parallel strategy.
pub fn layout(reader: &mut KeyReader) {
    let kind = reader.text("distributed_type");
    match kind {
        Some("NO") => reader.set("hardware.gpus", "1"),
        Some("MULTI_GPU") => reader.set("parallel.strategy", "ddp"),
        Some("FSDP" | "DEEPSPEED") | None => {}
        Some(_) => reader.mark_unused("distributed_type"),
    }
    let version = reader
        .value("fsdp_config.fsdp_version")
        .or_else(|| reader.value("fsdp_version"));
    let version = version.or_else(|| reader.value("fsdp_config.version"));
    let words = fsdp_words(reader);
    let fsdp = kind == Some("FSDP") || version.is_some() || !words.is_empty();
    if fsdp {
        // Accelerate's files and transformers' options mean FSDP 1 by default.
        let default = version.is_none() && (kind.is_some() || words.contains("shard"));
        let first = version == Some(&Document::Int(1)) || default;
        let hybrid = words.contains("hybrid");
        let strategy = match (hybrid, first) {
            (true, _) => "hsdp",
            (_, true) => "fsdp1",
            _ => "fsdp2",
        };
        reader.set("parallel.strategy", strategy);
        if words.contains("grad_op") {
            reader.set("parallel.reshard", "off");
        }
        if words.contains("offload") {
            reader.set("parallel.offload", "parameters");
        }
        for key in [
            "fsdp_config.fsdp_reshard_after_forward",
            "fsdp_config.reshard_after_forward",
            "fsdp_config.fsdp_sharding_strategy",
        ] {
            match reader.text(key) {
                Some("FULL_SHARD") => reader.set("parallel.reshard", "on"),
                Some("SHARD_GRAD_OP") => reader.set("parallel.reshard", "off"),
                Some("HYBRID_SHARD") => reader.set("parallel.strategy", "hsdp"),
                Some(_) => reader.mark_unused(key),
                None => reader.copy(key, "parallel.reshard"),
            }
        }
        for key in [
            "fsdp_config.fsdp_offload_params",
            "fsdp_config.offload_params",
            "fsdp_config.cpu_offload",
        ] {
            if reader.switch(key) == Some(true) {
                reader.set("parallel.offload", "parameters");
            }
        }
    }
    deepspeed_by_name(reader);
    sequence_parallel(reader);
    enough_gpus(reader);
    if kind == Some("DEEPSPEED") && reader.imported.scenario.parallel.strategy == Parallelism::Ddp {
        reader.copy(
            "deepspeed_config.gradient_accumulation_steps",
            "training.accumulation",
        );
        deepspeed::zero(reader, "deepspeed_config.zero_stage");
        deepspeed::offload(
            reader,
            "deepspeed_config.offload_optimizer_device",
            "deepspeed_config.offload_param_device",
        );
    }
}
