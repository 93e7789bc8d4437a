//! `train.yaml` of the PyTorch loop that `headroom export --target plain` writes: settings by keys of its own.

use super::Imported;
use super::take::KeyReader;
use headroom_base::document::Document;
use headroom_catalog as catalog;

/// Keys, and the settings that they are; the file leaves none out.
const KEYS: &[(&str, &str)] = &[
    ("micro_batch_size", "data.micro_batch"),
    ("gradient_accumulation_steps", "training.accumulation"),
    ("max_seq_len", "data.sequence"),
    ("padding_mask", "data.padding_mask"),
    ("precision", "training.precision"),
    ("quantization", "training.quantization"),
    ("optimizer", "training.optimizer"),
    ("attention", "training.attention"),
    ("checkpointing", "training.checkpointing"),
    ("checkpoint_every", "training.checkpoint_every"),
    ("kernels", "training.kernels"),
    ("loss", "training.loss"),
    ("loss_chunks", "training.loss_chunks"),
    ("optimizer_in_backward", "training.optimizer_in_backward"),
    ("channels_last", "training.channels_last"),
    ("dropout", "training.dropout"),
    ("ema", "training.ema"),
    ("ema_on_host", "training.ema_on_host"),
    ("set_to_none", "training.zero_to_none"),
    ("keep_outputs", "training.keep_outputs"),
    ("use_cache", "training.use_cache"),
    ("compile", "training.compile"),
    ("compile_mode", "training.compile_mode"),
    ("freeze", "training.freeze"),
    ("train_only", "training.train_only"),
    ("lora.method", "training.lora.method"),
    ("lora.rank", "training.lora.rank"),
    ("lora.block", "training.lora.block"),
    ("lora.targets", "training.lora.targets"),
    ("lora.exclude", "training.lora.exclude"),
    ("lora.modules_to_save", "training.lora.modules_to_save"),
    ("lora.dropout", "training.lora.dropout"),
    ("lora.fp32_adapters", "training.lora.fp32_adapters"),
    ("bucket_cap_mb", "parallel.bucket_mb"),
    ("gradient_as_bucket_view", "parallel.bucket_view"),
    ("comm_hook", "parallel.comm_hook"),
    ("powersgd_rank", "parallel.powersgd_rank"),
    ("partition_optimizer", "parallel.partition_optimizer"),
    ("sync_each", "parallel.sync_each"),
    ("num_workers", "runtime.workers"),
    ("prefetch_factor", "runtime.prefetch"),
    ("pin_memory", "runtime.pin_memory"),
    ("learning_rate", "training.learning_rate"),
    ("fsdp.wrap", "parallel.wrap"),
    ("fsdp.reshard_root", "parallel.reshard_root"),
    ("fsdp.param_dtype", "parallel.param_dtype"),
    ("fsdp.reduce_dtype", "parallel.reduce_dtype"),
    ("fsdp.prefetch_forward", "parallel.prefetch_forward"),
    ("fsdp.prefetch_backward", "parallel.prefetch_backward"),
];

/// Keys for which 0 says that nothing of the kind happens.
const OR_ZERO: &[(&str, &str)] = &[
    ("eval_batch_size", "runtime.eval_batch"),
    ("eval_every", "runtime.eval_every"),
    ("save_every", "runtime.save_every"),
    ("save_keep", "runtime.save_keep"),
];

/// Whether the document is such a file.
pub fn recognises(document: &Document) -> bool {
    let has = |key: &str| document.get(key).is_some();
    let kind = document.get("kind");
    let ours = ["causal", "network", "recorded"].map(Document::from);
    kind.is_some_and(|kind| ours.contains(kind)) && has("world_size") && has("checkpoint_every")
}

/// The default scenario with the file's settings.
pub fn read(document: &Document) -> Imported {
    let mut reader = KeyReader::new(document);
    reader.value("kind");
    model(&mut reader, document);
    if matches!(document.get("lora"), Some(Document::Map(_))) {
        reader.set("training.lora", "on");
    }
    spread(&mut reader, document);
    for (key, setting) in KEYS {
        reader.copy(key, setting);
    }
    for (key, setting) in OR_ZERO {
        match reader.peek(key) {
            Some(Document::Int(0)) => {
                reader.value(key);
            }
            _ => reader.copy(key, setting),
        }
    }
    let clips = !matches!(reader.value("clip_grad_norm"), None | Some(Document::Null));
    reader.set("training.clip", if clips { "on" } else { "off" });
    match reader.value("memory_fraction") {
        Some(Document::Number(share)) if *share < 1.0 => {
            reader.set("runtime.memory_fraction", &share.to_string());
        }
        _ => {}
    }
    reader.finish(&[
        "train_file",
        "world_size",
        "copies",
        "library",
        "class",
        "classes",
        "subfolder",
        "objective",
        "dims",
        "layers",
        "blocks",
        "inputs",
        "sizes",
        "pretrained",
        "max_steps",
        "predicted_allocated",
        "fsdp.replicas",
        "fsdp.reshard_after_forward",
        "fsdp.cpu_offload",
    ])
}

/// A model by its name on the hub, or by its constructor in timm.
fn model(reader: &mut KeyReader, document: &Document) {
    let text = |key: &str| match document.get(key) {
        Some(Document::Text(text)) => text.as_str(),
        _ => "",
    };
    let (hub, class, part) = (text("model"), text("class"), text("subfolder"));
    let whole = format!("{hub} ({part})");
    let by_hub = || {
        let exact = catalog::models().iter();
        let mut exact = exact.filter(|entry| entry.hf_id == hub || entry.hf_id == whole);
        exact.next().or_else(|| catalog::model_named(hub))
    };
    let by_class = || {
        let mut all = catalog::models().iter();
        all.find(|entry| {
            [".", "_"]
                .iter()
                .any(|dash| entry.id.replace('-', dash) == class)
        })
    };
    let found = if hub.is_empty() { by_class() } else { by_hub() };
    let (key, name) = if hub.is_empty() {
        ("class", class)
    } else {
        ("model", hub)
    };
    reader.model(key, name, found.map(|entry| entry.id));
    let causal = text("kind") == "causal";
    if let Some(Document::Map(sizes)) = document.get("dims").filter(|_| causal) {
        for entry in sizes {
            if let Document::Int(size) = entry.value {
                reader.size(&entry.key, u64::try_from(size).unwrap_or(0));
            }
        }
    }
}

/// How its processes share the model.
fn spread(reader: &mut KeyReader, document: &Document) {
    let count = |key: &str| match document.get(key) {
        Some(Document::Int(count)) => u64::try_from(*count).unwrap_or(1),
        _ => 1,
    };
    let (processes, copies) = (count("world_size"), count("copies"));
    reader.set("hardware.gpus", &processes.max(copies).to_string());
    let replicas = |fsdp: &Document| match fsdp.get("replicas") {
        Some(Document::Int(replicas)) => *replicas,
        _ => 1,
    };
    let fsdp = document.get("fsdp").filter(|fsdp| **fsdp != Document::Null);
    let strategy = match fsdp {
        Some(fsdp) if replicas(fsdp) > 1 => "hsdp",
        Some(_) => "fsdp2",
        None if copies > 1 => "dp",
        None if processes > 1 => "ddp",
        None => "none",
    };
    reader.set("parallel.strategy", strategy);
    let Some(fsdp) = fsdp else {
        return;
    };
    if strategy == "hsdp" {
        // Shards are of one machine.
        reader.set("hardware.nodes", &replicas(fsdp).to_string());
    }
    match fsdp.get("reshard_after_forward") {
        Some(Document::Int(to)) => reader.set("parallel.reshard_to", &to.to_string()),
        Some(Document::Bool(false)) => reader.set("parallel.reshard", "off"),
        _ => {}
    }
    if fsdp.get("cpu_offload") == Some(&Document::Bool(true)) {
        reader.set("parallel.offload", "parameters");
    }
}
