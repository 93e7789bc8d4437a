//! Settings that depend on several keys of a file.

use super::super::deepspeed;
use super::super::take::KeyReader;
use headroom_base::document::Document;
use headroom_catalog::{self as catalog, ModelCategory, ModelEntry};
use headroom_core::estimate;
use headroom_scenario::{Case, LossKernel, Parallelism, Trainer};

/// Where a file names its model.
pub const MODEL: &[&str] = &["model_name_or_path", "base_model", "model"];

/// The catalogue's id of a model that the hub knows by this name.
pub fn model(reader: &mut KeyReader) {
    for key in MODEL {
        let Some(name) = reader.text(key) else {
            continue;
        };
        let found = catalog::model_named(name).map(|entry| entry.id);
        reader.model(key, name, found);
    }
}

/// Adapters on every linear layer, if the model's names for them are known.
pub fn every_linear(reader: &mut KeyReader, key: &str) {
    const KNOWN: &[&str] = &["llama", "mistral", "qwen2", "qwen3"];
    let case = Case::of(&reader.imported.scenario);
    if case.model.is_some_and(|model| KNOWN.contains(&model.arch)) {
        let targets = "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj";
        return reader.set("training.lora.targets", targets);
    }
    let reads_text = |model: &ModelEntry| model.category == ModelCategory::Decoders;
    let layers = if case.model.is_some_and(reads_text) {
        estimate::linear_layers(&case).unwrap_or_default()
    } else {
        Vec::new()
    };
    if layers.is_empty() {
        reader.mark_unused(key);
    } else {
        reader.set("training.lora.targets", &layers.join(","));
    }
}

/// How attention is computed.
pub fn attention(reader: &mut KeyReader) {
    for key in ["attn_implementation", "attn_impl", "flash_attn"] {
        match reader.text(key) {
            Some("eager" | "disabled") => reader.set("training.attention", "eager"),
            Some("sdpa" | "auto") => reader.set("training.attention", "sdpa"),
            Some("flash_attention_2" | "fa2" | "flash_attn") => {
                reader.set("training.attention", "flash_attention_2");
            }
            Some(_) => reader.mark_unused(key),
            None => {}
        }
    }
    // Axolotl's former key.
    if reader.switch("flash_attention") == Some(true) {
        reader.set("training.attention", "flash_attention_2");
    }
}

/// Activation checkpointing.
pub fn checkpointing(reader: &mut KeyReader, document: &Document) {
    for key in [
        "gradient_checkpointing",
        "activation_checkpointing",
        "fsdp_config.fsdp_activation_checkpointing",
        "fsdp_config.activation_checkpointing",
    ] {
        // One of them is enough: FSDP's replaces the trainer's.
        if reader.switch(key) == Some(true) {
            reader.checkpointing(key);
        } else if reader
            .value(key)
            .is_some_and(|value| !matches!(value, Document::Bool(_)))
        {
            reader.mark_unused(key);
        }
    }
    // LLaMA-Factory and ms-swift checkpoint every layer by default.
    let checkpoints = document.get("finetuning_type").is_some()
        || document.get("tuner_type").is_some() && document.get("gradient_checkpointing").is_none();
    if document.get("trainer") == Some(&"megatron".into()) {
        // ms-swift on Megatron-Core recomputes only attention by default, where FlashAttention saves nothing that would be
        // recomputed.
        return match reader.text("recompute_granularity") {
            Some("full") => {
                reader.value("recompute_method");
                reader.value("recompute_num_layers");
                reader.set("training.checkpointing", "layers");
            }
            _ => reader.set("training.checkpointing", "none"),
        };
    }
    let off = reader.switch("disable_gradient_checkpointing");
    if off.is_some() || checkpoints {
        let layers = off != Some(true);
        let found = if layers { "layers" } else { "none" };
        reader.set("training.checkpointing", found);
    }
}

/// 4-bit weights of bitsandbytes.
pub fn four_bits(reader: &mut KeyReader) {
    let method = reader
        .text("quantization_method")
        .or_else(|| reader.text("quant_method"));
    let bits = reader
        .value("quantization_bit")
        .or_else(|| reader.value("quant_bits"));
    let loaded = reader.switch("load_in_4bit") == Some(true);
    if !loaded && bits != Some(&Document::Int(4)) {
        return;
    }
    if method.is_some_and(|method| method != "bnb") {
        reader.mark_unused("quantization_method");
        return reader.mark_unused("quant_method");
    }
    // These quantise scales by default; TRL and transformers do not.
    let doubles = ["base_model", "finetuning_type", "tuner_type", "train_type"];
    let doubles = doubles.iter().any(|key| reader.peek(key).is_some());
    let mut kind = if doubles { "nf4-double" } else { "nf4" };
    for key in [
        "bnb_4bit_use_double_quant",
        "use_bnb_nested_quant",
        "double_quantization",
        "bnb_config_kwargs.bnb_4bit_use_double_quant",
    ] {
        if let Some(double) = reader.switch(key) {
            kind = if double { "nf4-double" } else { "nf4" };
        }
    }
    for key in ["bnb_4bit_quant_type", "quantization_type"] {
        if reader.text(key).is_some_and(|kind| kind != "nf4") {
            reader.mark_unused(key);
        }
    }
    reader.set("training.quantization", kind);
}

/// Liger's kernels, all or one by one.
pub fn liger(reader: &mut KeyReader) {
    let whole = [
        "use_liger_kernel",
        "enable_liger_kernel",
        "liger_fused_linear_cross_entropy",
    ];
    let on = whole.map(|key| reader.switch(key) == Some(true));
    let switched = on[0] || on[1];
    // What the switch turns on, or the parts that its configuration lists.
    let mut kernel_switch = |key: &str| reader.switch(&format!("liger_kernel_config.{key}"));
    let linear = kernel_switch("fused_linear_cross_entropy").unwrap_or(true) && switched || on[2];
    let whole = kernel_switch("cross_entropy") == Some(true) && switched;
    let kernels = ["rope", "rms_norm", "layer_norm", "swiglu", "geglu"].map(kernel_switch);
    let kernels = switched && kernels.iter().all(|part| part.unwrap_or(true));
    if linear {
        reader.set("training.loss", "liger-linear");
    } else if whole || reader.switch("liger_cross_entropy") == Some(true) {
        reader.set("training.loss", "liger");
    }
    let parts = ["liger_rope", "liger_rms_norm", "liger_glu_activation"];
    let parts = parts.map(|key| reader.switch(key));
    if kernels || parts == [Some(true); 3] {
        reader.set("training.kernels", "liger");
    }
    if parts.iter().any(Option::is_some) {
        reader.value("plugins");
    }
}

/// TRL's ways to compute the loss of a language model.
pub fn loss_type(reader: &mut KeyReader) {
    match reader.text("loss_type") {
        Some("nll") => reader.set("training.loss", "library"),
        Some("chunked_nll") => reader.set("training.loss", "chunked-checkpoint"),
        Some(_) => reader.mark_unused("loss_type"),
        None => {}
    }
}

/// The task of a language model: LLaMA-Factory's `stage`, Axolotl's `rl`, ms-swift's
/// `rlhf_type`; TRL's files name a command's own keys alone.
pub fn objective(reader: &mut KeyReader) {
    let case = Case::of(&reader.imported.scenario);
    let language = |model: &ModelEntry| model.category == ModelCategory::Decoders;
    let language = case.model.is_some_and(language);
    let mut is_known = false;
    for key in ["rl", "rlhf_type", "stage"] {
        let Some(word) = reader.text(key) else {
            continue;
        };
        is_known = true;
        let by_factory = key == "stage";
        let found = match word {
            "pt" | "sft" => continue,
            _ if !language => None,
            // These keep a language model's logits, which is not modelled.
            "rm" | "ppo" if by_factory => None,
            "dpo" | "ipo" if by_factory => match reader.text("pref_loss") {
                Some("orpo") => Some("orpo"),
                Some("simpo") => Some("simpo"),
                _ => Some("dpo"),
            },
            "dpo" | "ipo" => Some("dpo"),
            "rm" | "reward" => Some("reward"),
            "kto" | "orpo" | "simpo" | "cpo" | "grpo" | "rloo" | "ppo" | "gkd" => Some(word),
            _ => None,
        };
        // How these tools compute log-probabilities; TRL's head, which Axolotl uses, creates no logits.
        let head = match (key, found) {
            ("stage", _) => "log-softmax",
            ("rlhf_type", Some("dpo" | "kto" | "grpo")) => "logits",
            _ => "fused",
        };
        match found {
            Some(found) => trained_for(reader, key, found, head),
            None => reader.mark_unused(key),
        }
    }
    if !is_known && language && reader.peek("reward_model") == Some(&Document::Bool(true)) {
        // Axolotl's switch.
        reader.value("reward_model");
        return trained_for(reader, "reward_model", "reward", "fused");
    }
    if !is_known
        && language
        && let Some((key, found)) = by_keys(reader)
    {
        reader.value(key);
        if key == "beta" {
            let note = "beta belongs to DPO, ORPO, CPO or KTO: the file does not say which, and DPO is assumed";
            reader.imported.notes.push(note.into());
        }
        trained_for(reader, key, found, "fused");
    }
}

/// One of TRL's trainers as patched by Unsloth, which creates no logits.
pub fn patched(reader: &mut KeyReader, key: &str, found: &str) {
    trained_for(reader, key, found, "fused");
}

/// Losses that only TRL's DPO has (trl/trainer/dpo_config.py).
const DPO_LOSSES: &[&str] = &[
    "sigmoid",
    "hinge",
    "ipo",
    "exo_pair",
    "nca_pair",
    "robust",
    "bco_pair",
    "sppo_hard",
    "aot",
    "aot_pair",
    "discopop",
    "apo_zero",
    "apo_down",
    "sigmoid_norm",
];

/// The task that TRL's keys imply, and the key that implies it.
fn by_keys(reader: &KeyReader) -> Option<(&'static str, &'static str)> {
    if reader.peek("desirable_weight").is_some() {
        return Some(("desirable_weight", "kto"));
    }
    match reader.peek("loss_type") {
        Some(Document::List(_)) => return Some(("loss_type", "dpo")),
        Some(Document::Text(name)) if DPO_LOSSES.contains(&name.as_str()) => {
            return Some(("loss_type", "dpo"));
        }
        _ => {}
    }
    let of_rloo = reader.peek("normalize_advantages").is_some();
    if reader.peek("num_generations").is_some() {
        return Some(("num_generations", if of_rloo { "rloo" } else { "grpo" }));
    }
    let by_trl = reader.imported.scenario.stack.trainer == Trainer::Trl;
    let weighs = matches!(reader.peek("beta"), Some(Document::Number(_)));
    (by_trl && weighs).then_some(("beta", "dpo"))
}

/// Takes the task, with the head of its loss, where all that goes with it is modelled.
fn trained_for(reader: &mut KeyReader, key: &str, found: &str, head: &str) {
    let problems = reader.imported.scenario.check().len();
    let before = reader.imported.draft.clone();
    let loss = reader.imported.scenario.training.loss;
    reader.set("task.objective", found);
    let by_liger = loss == LossKernel::LigerLinear && head != "log-softmax";
    reader.set("task.head", if by_liger { "liger" } else { head });
    // The task brings its own.
    reader.set("training.loss", "library");
    if found == "grpo" || found == "rloo" {
        sampling(reader);
    }
    if reader.switch("precompute_ref_log_probs") == Some(true) {
        // Axolotl passes a copy to the trainer, which stays in memory; TRL's own command creates none.
        let passed = key == "rl";
        let by = if passed {
            "precomputed"
        } else {
            "precomputed-by-itself"
        };
        reader.set("task.reference", by);
    }
    // How a task's models are divided among GPUs, and its teacher, may not be modelled or known.
    if reader.imported.scenario.check().len() > problems {
        reader.imported.rewind(before);
        reader.mark_unused(key);
    }
}

/// How completions are sampled; Axolotl's keys are those of TRL below `trl`.
fn sampling(reader: &mut KeyReader) {
    for below in ["", "trl."] {
        for (key, field) in [
            ("num_generations", "task.generations"),
            ("max_completion_length", "task.completion"),
            ("max_prompt_length", "task.prompt"),
            ("num_iterations", "task.iterations"),
            ("steps_per_generation", "task.generation_batches"),
            ("vllm_gpu_memory_utilization", "task.vllm_share"),
            ("cast_lm_head_to_fp32", "task.fp32_head"),
        ] {
            reader.copy(&format!("{below}{key}"), field);
        }
        round(reader, &format!("{below}generation_batch_size"));
        kl_term(reader, &format!("{below}beta"));
        if reader.switch(&format!("{below}use_vllm")) == Some(true) {
            let mode = reader.text(&format!("{below}vllm_mode"));
            let same = mode == Some("colocate");
            let sampler = if same { "vllm" } else { "vllm-server" };
            reader.set("task.sampler", sampler);
        }
        match reader.value(&format!("{below}sleep_level")) {
            Some(Document::Int(level)) if *level > 0 => reader.set("task.vllm_sleep", "on"),
            _ => {}
        }
        if reader.switch(&format!("{below}vllm_enable_sleep_mode")) == Some(true) {
            reader.set("task.vllm_sleep", "on");
        }
    }
    reader.copy("vllm.gpu_memory_utilization", "task.vllm_share");
    if reader.text("cache_implementation") == Some("static") {
        reader.set("task.sampler", "generate-static");
    }
}

/// The micro-batches in one generation batch of all GPUs.
fn round(reader: &mut KeyReader, key: &str) {
    let Some(Document::Int(rows)) = reader.value(key) else {
        return;
    };
    let scenario = &reader.imported.scenario;
    let gpus = u64::from(scenario.hardware.gpus.max(1));
    let at_once = gpus.saturating_mul(scenario.data.micro_batch).max(1);
    let batches = u64::try_from(*rows).unwrap_or(0) / at_once;
    if batches > 0 {
        reader.set("task.generation_batches", &batches.to_string());
    }
}

/// The reference model, which is kept only for a KL term.
fn kl_term(reader: &mut KeyReader, key: &str) {
    let has_kl = match reader.value(key) {
        Some(Document::Number(beta)) => *beta > 0.0,
        Some(Document::Int(beta)) => *beta > 0,
        _ => return,
    };
    let adapters = reader.imported.scenario.training.lora.is_some();
    let reference = match (has_kl, adapters) {
        (false, _) => "none",
        (true, true) => "adapters-off",
        (true, false) => "copy",
    };
    reader.set("task.reference", reference);
}

/// Packing and padding.
pub fn lengths(reader: &mut KeyReader) {
    let factory = reader.value("cutoff_len").is_some();
    for key in ["packing", "join_texts"] {
        if let Some(full) = reader.switch(key) {
            reader.set("data.padding_mask", if full { "off" } else { "on" });
            if full && factory {
                // LLaMA-Factory takes one token off where it packs.
                let sequence = reader.imported.scenario.data.sequence;
                let sequence = sequence.saturating_sub(1).max(1);
                reader.set("data.sequence", &sequence.to_string());
            }
        }
    }
    if reader
        .text("packing_strategy")
        .is_some_and(|strategy| strategy != "wrapped")
    {
        reader.mark_unused("packing_strategy");
    }
    // Axolotl's attention keeps packed samples apart without a mask; unpacked, it pads.
    if let Some(packed) = reader.switch("sample_packing") {
        reader.set("data.packing", if packed { "on" } else { "off" });
        if packed {
            reader.set("data.padding_mask", "off");
        }
    }
    reader.switch("pad_to_sequence_len");
}

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
