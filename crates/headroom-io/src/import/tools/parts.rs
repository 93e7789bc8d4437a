//! What takes more than one key of a file to be known.

use super::super::deepspeed;
use super::super::take::Take;
use headroom_base::document::Document;
use headroom_catalog::{self as catalog, ModelCategory, ModelEntry};
use headroom_core::estimate;
use headroom_scenario::{Case, LossKernel, Parallelism, Trainer};

/// Where a file names its model.
pub const MODEL: &[&str] = &["model_name_or_path", "base_model", "model"];

/// The catalogue's id of a model that the hub knows by this name.
pub fn model(take: &mut Take) {
    for key in MODEL {
        let Some(name) = take.text(key) else { continue };
        let found = catalog::model_named(name).map(|entry| entry.id);
        take.model(key, name, found);
    }
}

/// Adapters on every linear layer, where it is known how the model calls them.
pub fn every_linear(take: &mut Take, key: &str) {
    const KNOWN: &[&str] = &["llama", "mistral", "qwen2", "qwen3"];
    let case = Case::of(&take.imported.scenario);
    if case.model.is_some_and(|model| KNOWN.contains(&model.arch)) {
        let targets = "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj";
        return take.set("training.lora.targets", targets);
    }
    let reads_text = |model: &ModelEntry| model.category == ModelCategory::Decoders;
    let layers = if case.model.is_some_and(reads_text) {
        estimate::linear_layers(&case).unwrap_or_default()
    } else {
        Vec::new()
    };
    if layers.is_empty() {
        take.leave(key);
    } else {
        take.set("training.lora.targets", &layers.join(","));
    }
}

/// How attention is computed.
pub fn attention(take: &mut Take) {
    for key in ["attn_implementation", "attn_impl", "flash_attn"] {
        match take.text(key) {
            Some("eager" | "disabled") => take.set("training.attention", "eager"),
            Some("sdpa" | "auto") => take.set("training.attention", "sdpa"),
            Some("flash_attention_2" | "fa2" | "flash_attn") => {
                take.set("training.attention", "flash_attention_2");
            }
            Some(_) => take.leave(key),
            None => {}
        }
    }
    // Axolotl's former word.
    if take.switch("flash_attention") == Some(true) {
        take.set("training.attention", "flash_attention_2");
    }
}

/// What is made again in backward.
pub fn checkpointing(take: &mut Take, document: &Document) {
    for key in [
        "gradient_checkpointing",
        "activation_checkpointing",
        "fsdp_config.fsdp_activation_checkpointing",
        "fsdp_config.activation_checkpointing",
    ] {
        // One of them on is enough: FSDP's own stands in for the trainer's.
        if take.switch(key) == Some(true) {
            take.checkpointing(key);
        } else if take
            .value(key)
            .is_some_and(|value| !matches!(value, Document::Bool(_)))
        {
            take.leave(key);
        }
    }
    // LLaMA-Factory and ms-swift checkpoint every layer unless they are told not to.
    let checkpoints = document.get("finetuning_type").is_some()
        || document.get("tuner_type").is_some() && document.get("gradient_checkpointing").is_none();
    if document.get("trainer") == Some(&"megatron".into()) {
        // ms-swift on Megatron-Core recomputes attention alone unless it is told to recompute all, and FlashAttention keeps nothing
        // that would be recomputed.
        return match take.text("recompute_granularity") {
            Some("full") => {
                take.value("recompute_method");
                take.value("recompute_num_layers");
                take.set("training.checkpointing", "layers");
            }
            _ => take.set("training.checkpointing", "none"),
        };
    }
    let off = take.switch("disable_gradient_checkpointing");
    if off.is_some() || checkpoints {
        let layers = off != Some(true);
        let found = if layers { "layers" } else { "none" };
        take.set("training.checkpointing", found);
    }
}

/// Weights in four bits, where bitsandbytes keeps them.
pub fn four_bits(take: &mut Take) {
    let method = take
        .text("quantization_method")
        .or_else(|| take.text("quant_method"));
    let bits = take
        .value("quantization_bit")
        .or_else(|| take.value("quant_bits"));
    let loaded = take.switch("load_in_4bit") == Some(true);
    if !loaded && bits != Some(&Document::Int(4)) {
        return;
    }
    if method.is_some_and(|method| method != "bnb") {
        take.leave("quantization_method");
        return take.leave("quant_method");
    }
    // These quantise scales unless they are told not to; TRL and transformers do where they are told to.
    let doubles = ["base_model", "finetuning_type", "tuner_type", "train_type"];
    let doubles = doubles.iter().any(|key| take.seen(key).is_some());
    let mut kind = if doubles { "nf4-double" } else { "nf4" };
    for key in [
        "bnb_4bit_use_double_quant",
        "use_bnb_nested_quant",
        "double_quantization",
        "bnb_config_kwargs.bnb_4bit_use_double_quant",
    ] {
        if let Some(double) = take.switch(key) {
            kind = if double { "nf4-double" } else { "nf4" };
        }
    }
    for key in ["bnb_4bit_quant_type", "quantization_type"] {
        if take.text(key).is_some_and(|kind| kind != "nf4") {
            take.leave(key);
        }
    }
    take.set("training.quantization", kind);
}

/// Liger's kernels, whole or one by one.
pub fn liger(take: &mut Take) {
    let whole = [
        "use_liger_kernel",
        "enable_liger_kernel",
        "liger_fused_linear_cross_entropy",
    ];
    let on = whole.map(|key| take.switch(key) == Some(true));
    let switched = on[0] || on[1];
    // What one switch turns on, or the parts that are said beside it.
    let mut said = |key: &str| take.switch(&format!("liger_kernel_config.{key}"));
    let linear = said("fused_linear_cross_entropy").unwrap_or(true) && switched || on[2];
    let whole = said("cross_entropy") == Some(true) && switched;
    let kernels = ["rope", "rms_norm", "layer_norm", "swiglu", "geglu"].map(said);
    let kernels = switched && kernels.iter().all(|part| part.unwrap_or(true));
    if linear {
        take.set("training.loss", "liger-linear");
    } else if whole || take.switch("liger_cross_entropy") == Some(true) {
        take.set("training.loss", "liger");
    }
    let parts = ["liger_rope", "liger_rms_norm", "liger_glu_activation"];
    let parts = parts.map(|key| take.switch(key));
    if kernels || parts == [Some(true); 3] {
        take.set("training.kernels", "liger");
    }
    if parts.iter().any(Option::is_some) {
        take.value("plugins");
    }
}

/// What TRL calls the ways to compute the loss of a language model.
pub fn loss_type(take: &mut Take) {
    match take.text("loss_type") {
        Some("nll") => take.set("training.loss", "library"),
        Some("chunked_nll") => take.set("training.loss", "chunked-checkpoint"),
        Some(_) => take.leave("loss_type"),
        None => {}
    }
}

/// What the model is trained to do, where it is a language model: LLaMA-Factory's `stage`, Axolotl's `rl`, ms-swift's
/// `rlhf_type`; TRL's files name a command's own keys alone.
pub fn objective(take: &mut Take) {
    let case = Case::of(&take.imported.scenario);
    let language = |model: &ModelEntry| model.category == ModelCategory::Decoders;
    let language = case.model.is_some_and(language);
    let mut said = false;
    for key in ["rl", "rlhf_type", "stage"] {
        let Some(word) = take.text(key) else { continue };
        said = true;
        let by_factory = key == "stage";
        let found = match word {
            "pt" | "sft" => continue,
            _ if !language => None,
            // These keep a language model's logits, which is not modelled.
            "rm" | "ppo" if by_factory => None,
            "dpo" | "ipo" if by_factory => match take.text("pref_loss") {
                Some("orpo") => Some("orpo"),
                Some("simpo") => Some("simpo"),
                _ => Some("dpo"),
            },
            "dpo" | "ipo" => Some("dpo"),
            "rm" | "reward" => Some("reward"),
            "kto" | "orpo" | "simpo" | "cpo" | "grpo" | "rloo" | "ppo" | "gkd" => Some(word),
            _ => None,
        };
        // How these tools get to log-probabilities; TRL's head, on which Axolotl builds, makes no logits.
        let head = match (key, found) {
            ("stage", _) => "log-softmax",
            ("rlhf_type", Some("dpo" | "kto" | "grpo")) => "logits",
            _ => "fused",
        };
        match found {
            Some(found) => trained_for(take, key, found, head),
            None => take.leave(key),
        }
    }
    if !said && language && take.seen("reward_model") == Some(&Document::Bool(true)) {
        // Axolotl's switch.
        take.value("reward_model");
        return trained_for(take, "reward_model", "reward", "fused");
    }
    if !said
        && language
        && let Some((key, found)) = by_keys(take)
    {
        take.value(key);
        if key == "beta" {
            let note = "beta is DPO's weight, or that of ORPO, CPO or KTO: the file does not say which, and DPO is taken";
            take.imported.notes.push(note.into());
        }
        trained_for(take, key, found, "fused");
    }
}

/// What one of TRL's trainers does where Unsloth patches it, which makes no logits.
pub fn patched(take: &mut Take, key: &str, found: &str) {
    trained_for(take, key, found, "fused");
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

/// The task that TRL's keys are of, and the key that says so.
fn by_keys(take: &Take) -> Option<(&'static str, &'static str)> {
    if take.seen("desirable_weight").is_some() {
        return Some(("desirable_weight", "kto"));
    }
    match take.seen("loss_type") {
        Some(Document::List(_)) => return Some(("loss_type", "dpo")),
        Some(Document::Text(name)) if DPO_LOSSES.contains(&name.as_str()) => {
            return Some(("loss_type", "dpo"));
        }
        _ => {}
    }
    let of_rloo = take.seen("normalize_advantages").is_some();
    if take.seen("num_generations").is_some() {
        return Some(("num_generations", if of_rloo { "rloo" } else { "grpo" }));
    }
    let by_trl = take.imported.scenario.stack.trainer == Trainer::Trl;
    let weighs = matches!(take.seen("beta"), Some(Document::Number(_)));
    (by_trl && weighs).then_some(("beta", "dpo"))
}

/// Takes the task, with the head of its loss, where all that goes with it is modelled.
fn trained_for(take: &mut Take, key: &str, found: &str, head: &str) {
    let problems = take.imported.scenario.check().len();
    let before = take.imported.scenario.training.clone();
    take.set("task.objective", found);
    let by_liger = before.loss == LossKernel::LigerLinear && head != "log-softmax";
    take.set("task.head", if by_liger { "liger" } else { head });
    // The task brings its own.
    take.set("training.loss", "library");
    if found == "grpo" || found == "rloo" {
        sampling(take);
    }
    if take.switch("precompute_ref_log_probs") == Some(true) {
        // Axolotl passes a copy to the trainer, which stays; TRL's own command makes none.
        let passed = key == "rl";
        let by = if passed {
            "precomputed"
        } else {
            "precomputed-by-itself"
        };
        take.set("task.reference", by);
    }
    // How a task's models are divided among GPUs, and its teacher, may not be modelled or known.
    if take.imported.scenario.check().len() > problems {
        take.imported.scenario.training = before;
        take.leave(key);
    }
}

/// How completions are sampled; Axolotl's keys are those of TRL below `trl`.
fn sampling(take: &mut Take) {
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
            take.copy(&format!("{below}{key}"), field);
        }
        round(take, &format!("{below}generation_batch_size"));
        followed(take, &format!("{below}beta"));
        if take.switch(&format!("{below}use_vllm")) == Some(true) {
            let mode = take.text(&format!("{below}vllm_mode"));
            let same = mode == Some("colocate");
            let sampler = if same { "vllm" } else { "vllm-server" };
            take.set("task.sampler", sampler);
        }
        match take.value(&format!("{below}sleep_level")) {
            Some(Document::Int(level)) if *level > 0 => take.set("task.vllm_sleep", "on"),
            _ => {}
        }
        if take.switch(&format!("{below}vllm_enable_sleep_mode")) == Some(true) {
            take.set("task.vllm_sleep", "on");
        }
    }
    take.copy("vllm.gpu_memory_utilization", "task.vllm_share");
    if take.text("cache_implementation") == Some("static") {
        take.set("task.sampler", "generate-static");
    }
}

/// The micro-batches that so many rows, sampled at once on all GPUs, are for.
fn round(take: &mut Take, key: &str) {
    let Some(Document::Int(rows)) = take.value(key) else {
        return;
    };
    let scenario = &take.imported.scenario;
    let gpus = u64::from(scenario.hardware.gpus.max(1));
    let at_once = gpus.saturating_mul(scenario.data.micro_batch).max(1);
    let batches = u64::try_from(*rows).unwrap_or(0) / at_once;
    if batches > 0 {
        take.set("task.generation_batches", &batches.to_string());
    }
}

/// Whether a reference is kept: only where it is followed.
fn followed(take: &mut Take, key: &str) {
    let followed = match take.value(key) {
        Some(Document::Number(beta)) => *beta > 0.0,
        Some(Document::Int(beta)) => *beta > 0,
        _ => return,
    };
    let adapters = take.imported.scenario.training.lora.is_some();
    let reference = match (followed, adapters) {
        (false, _) => "none",
        (true, true) => "adapters-off",
        (true, false) => "copy",
    };
    take.set("task.reference", reference);
}

/// How texts fill the rows of a batch.
pub fn lengths(take: &mut Take) {
    let factory = take.value("cutoff_len").is_some();
    for key in ["packing", "join_texts"] {
        if let Some(full) = take.switch(key) {
            take.set("data.padding_mask", if full { "off" } else { "on" });
            if full && factory {
                // LLaMA-Factory takes one token off where it packs.
                let sequence = &mut take.imported.scenario.data.sequence;
                *sequence = sequence.saturating_sub(1).max(1);
            }
        }
    }
    if take
        .text("packing_strategy")
        .is_some_and(|strategy| strategy != "wrapped")
    {
        take.leave("packing_strategy");
    }
    // Axolotl's attention keeps packed samples apart without a mask; unpacked, it pads.
    if let Some(packed) = take.switch("sample_packing") {
        take.set("data.packing", if packed { "on" } else { "off" });
        if packed {
            take.set("data.padding_mask", "off");
        }
    }
    take.switch("pad_to_sequence_len");
}

/// As many GPUs as the file's own division needs at least, where it does not say how many there are.
fn enough_gpus(take: &mut Take) {
    let mut shards = 1_u64;
    for key in ["dp_shard_size", "dp_replicate_size"] {
        if let Some(Document::Int(size)) = take.value(key) {
            shards = shards.saturating_mul(u64::try_from(*size).unwrap_or(1).max(1));
        }
    }
    let layout = &take.imported.scenario.parallel;
    let copies = [layout.tp, layout.cp, layout.pp].into_iter().map(u64::from);
    let least = copies.fold(shards, u64::saturating_mul);
    let gpus = u64::from(take.imported.scenario.hardware.gpus);
    if least > 1 && gpus % least != 0 {
        take.set("hardware.gpus", &least.to_string());
    }
}

/// What is said under `fsdp`: a switch, or transformers' words such as `full_shard auto_wrap`.
fn fsdp_words(take: &mut Take) -> String {
    match take.value("fsdp") {
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

/// DeepSpeed's configuration: in the file itself, or another file, whose name says the stage and what lies on the host in
/// Axolotl (`zero3_bf16_cpuoffload_all.json`), LLaMA-Factory (`ds_z2_offload_config.json`) and ms-swift (`zero3_offload`).
fn deepspeed_by_name(take: &mut Take) {
    deepspeed::zero(take, "deepspeed.zero_optimization.stage");
    deepspeed::offload(
        take,
        "deepspeed.zero_optimization.offload_optimizer.device",
        "deepspeed.zero_optimization.offload_param.device",
    );
    deepspeed_by_path(take, "deepspeed");
}

/// The same of the path that stands at a key.
pub fn deepspeed_by_path(take: &mut Take, key: &str) {
    let Some(path) = take.text(key) else {
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
        _ => return take.leave(key),
    };
    take.set("parallel.strategy", strategy);
    if name.contains("offload") {
        let weights = stage == Some('3');
        let what = if weights { "parameters" } else { "optimizer" };
        take.set("parallel.offload", what);
    }
    let note =
        format!("deepspeed: {strategy} is taken from the name {name}; the file was not read");
    take.imported.notes.push(note);
}

/// ms-swift's Ulysses, where all that goes with it is modelled.
fn sequence_parallel(take: &mut Take) {
    let key = "sequence_parallel_size";
    let problems = take.imported.scenario.check().len();
    let before = take.imported.scenario.parallel;
    take.copy(key, "parallel.cp");
    if take.imported.scenario.parallel.cp > 1 {
        take.set("parallel.context", "ulysses");
    }
    if take.imported.scenario.check().len() > problems {
        take.imported.scenario.parallel = before;
        take.leave(key);
    }
}

/// How the GPUs share the work.
pub fn layout(take: &mut Take) {
    let kind = take.text("distributed_type");
    match kind {
        Some("NO") => take.set("hardware.gpus", "1"),
        Some("MULTI_GPU") => take.set("parallel.strategy", "ddp"),
        Some("FSDP" | "DEEPSPEED") | None => {}
        Some(_) => take.leave("distributed_type"),
    }
    let version = take
        .value("fsdp_config.fsdp_version")
        .or_else(|| take.value("fsdp_version"));
    let version = version.or_else(|| take.value("fsdp_config.version"));
    let words = fsdp_words(take);
    let fsdp = kind == Some("FSDP") || version.is_some() || !words.is_empty();
    if fsdp {
        // Accelerate's own files, and transformers' words, mean the first version unless they say another.
        let unsaid = version.is_none() && (kind.is_some() || words.contains("shard"));
        let first = version == Some(&Document::Int(1)) || unsaid;
        let hybrid = words.contains("hybrid");
        let strategy = match (hybrid, first) {
            (true, _) => "hsdp",
            (_, true) => "fsdp1",
            _ => "fsdp2",
        };
        take.set("parallel.strategy", strategy);
        if words.contains("grad_op") {
            take.set("parallel.reshard", "off");
        }
        if words.contains("offload") {
            take.set("parallel.offload", "parameters");
        }
        for key in [
            "fsdp_config.fsdp_reshard_after_forward",
            "fsdp_config.reshard_after_forward",
            "fsdp_config.fsdp_sharding_strategy",
        ] {
            match take.text(key) {
                Some("FULL_SHARD") => take.set("parallel.reshard", "on"),
                Some("SHARD_GRAD_OP") => take.set("parallel.reshard", "off"),
                Some("HYBRID_SHARD") => take.set("parallel.strategy", "hsdp"),
                Some(_) => take.leave(key),
                None => take.copy(key, "parallel.reshard"),
            }
        }
        for key in [
            "fsdp_config.fsdp_offload_params",
            "fsdp_config.offload_params",
            "fsdp_config.cpu_offload",
        ] {
            if take.switch(key) == Some(true) {
                take.set("parallel.offload", "parameters");
            }
        }
    }
    deepspeed_by_name(take);
    sequence_parallel(take);
    enough_gpus(take);
    if kind == Some("DEEPSPEED") && take.imported.scenario.parallel.strategy == Parallelism::Ddp {
        take.copy(
            "deepspeed_config.gradient_accumulation_steps",
            "training.accumulation",
        );
        deepspeed::zero(take, "deepspeed_config.zero_stage");
        deepspeed::offload(
            take,
            "deepspeed_config.offload_optimizer_device",
            "deepspeed_config.offload_param_device",
        );
    }
}
