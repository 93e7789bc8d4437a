//! LitGPT's configurations of fine-tuning and of pre-training.

use super::take::KeyReader;
use super::{Imported, lightning};
use headroom_base::document::Document;
use headroom_catalog as catalog;
use headroom_core::estimate;
use headroom_scenario::Case;

/// Whether the document is such a file: a checkpoint or one of its names, and how it is trained.
pub fn recognises(document: &Document) -> bool {
    let named = ["checkpoint_dir", "model_name"]
        .iter()
        .any(|key| matches!(document.get(key), Some(Document::Text(_))));
    let train = document.get("train");
    let sizes = ["micro_batch_size", "global_batch_size"];
    named && train.is_some_and(|train| sizes.iter().any(|key| train.get(key).is_some()))
}

/// The default scenario with the file's settings.
pub fn read(document: &Document) -> Imported {
    let mut reader = KeyReader::new(document);
    for key in ["checkpoint_dir", "model_name"] {
        // `litgpt download` stores a model of the hub in a folder of its name.
        if let Some(name) = reader.text(key) {
            let name = name.strip_prefix("checkpoints/").unwrap_or(name);
            let found = catalog::model_named(name).map(|entry| entry.id);
            reader.model(key, name, found);
            break;
        }
    }
    gpus(&mut reader, document);
    if let Some(value) = reader.value("precision") {
        match lightning::precision(value) {
            Some(precision) => reader.set("training.precision", precision),
            None => reader.mark_unused("precision"),
        }
    }
    reader.copy("train.micro_batch_size", "data.micro_batch");
    reader.copy("train.max_seq_length", "data.sequence");
    accumulation(&mut reader);
    reader.clip("train.max_norm");
    reader.optimizer("optimizer.class_path", "optimizer.init_args.");
    reader.optimizer("optimizer", "");
    reader.copy("data.init_args.num_workers", "runtime.workers");
    adapters(&mut reader, document);
    match reader.text("quantize") {
        Some("bnb.nf4") => reader.set("training.quantization", "nf4"),
        Some("bnb.nf4-dq") => reader.set("training.quantization", "nf4-double"),
        Some(_) => reader.mark_unused("quantize"),
        None => {}
    }
    reader.imported.notes.push(
        "LitGPT's own implementation of the model is not modelled: the prediction is for transformers' in a PyTorch loop".into(),
    );
    reader.finish(&[
        "out_dir",
        "data",
        "train.save_interval",
        "train.log_interval",
        "train.lr_warmup_steps",
        "train.lr_warmup_fraction",
        "train.epochs",
        "train.max_tokens",
        "train.max_steps",
        "train.min_lr",
        "eval",
        "log",
        "logger_name",
        "seed",
        "resume",
        "tokenizer_dir",
        "initial_checkpoint_dir",
        "lora_alpha",
        "optimizer.init_args.lr",
        "optimizer.init_args.weight_decay",
        "optimizer.init_args.betas",
    ])
}

/// Several GPUs mean FSDP: fine-tuning checkpoints its blocks, pre-training shards within a machine only.
fn gpus(reader: &mut KeyReader, document: &Document) {
    reader.copy("devices", "hardware.gpus");
    reader.copy("num_nodes", "hardware.nodes");
    let hardware = &reader.imported.scenario.hardware;
    let all = hardware.gpus.saturating_mul(hardware.nodes.max(1));
    if all <= 1 {
        return;
    }
    reader.set("hardware.gpus", &all.to_string());
    if document.get("checkpoint_dir").is_some() {
        reader.set("parallel.strategy", "fsdp1");
        reader.set("training.checkpointing", "layers");
    } else {
        reader.set("parallel.strategy", "hsdp");
    }
}

/// As many micro-batches as make the effective batch.
fn accumulation(reader: &mut KeyReader) {
    let Some(Document::Int(global)) = reader.value("train.global_batch_size") else {
        return;
    };
    let scenario = &reader.imported.scenario;
    let gpus = u64::from(scenario.hardware.gpus.max(1));
    let at_once = gpus.saturating_mul(scenario.data.micro_batch).max(1);
    let steps = u64::try_from(*global).unwrap_or(0) / at_once;
    if steps > 0 {
        reader.set("training.accumulation", &steps.to_string());
    }
}

/// Its switches, and the layers that they mean in models of transformers.
const LAYERS: &[(&str, &[&str])] = &[
    ("lora_query", &["q_proj", "query_key_value", "qkv_proj"]),
    ("lora_key", &["k_proj", "query_key_value", "qkv_proj"]),
    ("lora_value", &["v_proj", "query_key_value", "qkv_proj"]),
    ("lora_projection", &["o_proj", "dense", "out_proj"]),
    (
        "lora_mlp",
        &[
            "gate_proj",
            "up_proj",
            "gate_up_proj",
            "down_proj",
            "fc1",
            "fc2",
            "dense_h_to_4h",
            "dense_4h_to_h",
        ],
    ),
];

fn adapters(reader: &mut KeyReader, document: &Document) {
    if document.get("lora_r").is_none() {
        return;
    }
    reader.lora();
    reader.copy("lora_r", "training.lora.rank");
    reader.copy("lora_dropout", "training.lora.dropout");
    // They have the type of the weights.
    reader.set("training.lora.fp32_adapters", "off");
    let case = Case::of(&reader.imported.scenario);
    let has = estimate::linear_layers(&case).unwrap_or_default();
    let mut targets: Vec<&str> = Vec::new();
    for (switch, layers) in LAYERS {
        if reader.switch(switch) == Some(true) {
            let known = layers
                .iter()
                .filter(|layer| has.iter().any(|own| own == *layer));
            targets.extend(known);
        }
    }
    if reader.switch("lora_head") == Some(true) {
        targets.push("lm_head");
    }
    targets.sort_unstable();
    targets.dedup();
    if !targets.is_empty() {
        reader.set("training.lora.targets", &targets.join(","));
    }
}
