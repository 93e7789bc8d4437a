//! LitGPT's configurations of fine-tuning and of pre-training.

use super::take::Take;
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

/// The default scenario with what the file says.
pub fn read(document: &Document) -> Imported {
    let mut take = Take::new(document);
    for key in ["checkpoint_dir", "model_name"] {
        // `litgpt download` puts a model of the hub into a folder of its name.
        if let Some(name) = take.text(key) {
            let name = name.strip_prefix("checkpoints/").unwrap_or(name);
            let found = catalog::model_named(name).map(|entry| entry.id);
            take.model(key, name, found);
            break;
        }
    }
    gpus(&mut take, document);
    if let Some(value) = take.value("precision") {
        match lightning::precision(value) {
            Some(precision) => take.set("training.precision", precision),
            None => take.leave("precision"),
        }
    }
    take.copy("train.micro_batch_size", "data.micro_batch");
    take.copy("train.max_seq_length", "data.sequence");
    accumulation(&mut take);
    take.clip("train.max_norm");
    take.optimizer("optimizer.class_path", "optimizer.init_args.");
    take.optimizer("optimizer", "");
    take.copy("data.init_args.num_workers", "runtime.workers");
    adapters(&mut take, document);
    match take.text("quantize") {
        Some("bnb.nf4") => take.set("training.quantization", "nf4"),
        Some("bnb.nf4-dq") => take.set("training.quantization", "nf4-double"),
        Some(_) => take.leave("quantize"),
        None => {}
    }
    take.imported.notes.push(
        "LitGPT's own code of the model is not modelled: the memory is that of transformers' in a loop of PyTorch".into(),
    );
    take.finish(&[
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

/// Several are FSDP: fine-tuning checkpoints its blocks, pre-training divides within a machine alone.
fn gpus(take: &mut Take, document: &Document) {
    take.copy("devices", "hardware.gpus");
    take.copy("num_nodes", "hardware.nodes");
    let hardware = &take.imported.scenario.hardware;
    let all = hardware.gpus.saturating_mul(hardware.nodes.max(1));
    if all <= 1 {
        return;
    }
    take.set("hardware.gpus", &all.to_string());
    if document.get("checkpoint_dir").is_some() {
        take.set("parallel.strategy", "fsdp1");
        take.set("training.checkpointing", "layers");
    } else {
        take.set("parallel.strategy", "hsdp");
    }
}

/// As many micro-batches as make the effective batch.
fn accumulation(take: &mut Take) {
    let Some(Document::Int(global)) = take.value("train.global_batch_size") else {
        return;
    };
    let scenario = &take.imported.scenario;
    let gpus = u64::from(scenario.hardware.gpus.max(1));
    let at_once = gpus.saturating_mul(scenario.data.micro_batch).max(1);
    let steps = u64::try_from(*global).unwrap_or(0) / at_once;
    if steps > 0 {
        take.set("training.accumulation", &steps.to_string());
    }
}

/// Its switches, and the layers that they are in the models of transformers.
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

fn adapters(take: &mut Take, document: &Document) {
    if document.get("lora_r").is_none() {
        return;
    }
    take.lora();
    take.copy("lora_r", "training.lora.rank");
    take.copy("lora_dropout", "training.lora.dropout");
    // They are made in the format of the weights.
    take.set("training.lora.fp32_adapters", "off");
    let case = Case::of(&take.imported.scenario);
    let has = estimate::linear_layers(&case).unwrap_or_default();
    let mut targets: Vec<&str> = Vec::new();
    for (switch, layers) in LAYERS {
        if take.switch(switch) == Some(true) {
            let known = layers
                .iter()
                .filter(|layer| has.iter().any(|own| own == *layer));
            targets.extend(known);
        }
    }
    if take.switch("lora_head") == Some(true) {
        targets.push("lm_head");
    }
    targets.sort_unstable();
    targets.dedup();
    if !targets.is_empty() {
        take.set("training.lora.targets", &targets.join(","));
    }
}
