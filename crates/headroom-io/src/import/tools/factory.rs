//! LLaMA-Factory's newer form, `v1`, whose adapters, quantisation and layout are plugins with a group of keys each.

use super::super::take::KeyReader;
use super::layout::deepspeed_by_path;
use super::parts::every_linear;
use headroom_base::document::Document;

/// Whether the file is of that form.
pub fn recognises(document: &Document) -> bool {
    let mut plugins = [
        "peft_config",
        "dist_config",
        "quant_config",
        "kernel_config",
        "init_config",
    ]
    .iter();
    plugins.any(|key| {
        document
            .get(key)
            .is_some_and(|group| group.get("name").is_some())
    })
}

/// The plugins' settings, over the defaults of this form (llamafactory/v1/config/training_args.py).
pub fn plugins(reader: &mut KeyReader, document: &Document) {
    // Weights keep the format that they were saved in, without autocast.
    let half = reader.switch("bf16") != Some(false);
    reader.set("training.precision", if half { "bf16" } else { "fp32" });
    let kept = reader.switch("enable_activation_checkpointing") == Some(false);
    reader.set(
        "training.checkpointing",
        if kept { "none" } else { "layers" },
    );
    if document.get("micro_batch_size").is_none() {
        reader.set("data.micro_batch", "1");
    }
    if document.get("cutoff_len").is_none() {
        reader.set("data.sequence", "2048");
    }
    if reader.text("peft_config.name") == Some("lora") {
        adapters(reader);
    } else {
        reader.mark_unused("peft_config.name");
    }
    match (
        reader.text("quant_config.name"),
        reader.value("quant_config.quantization_bit"),
    ) {
        (Some("bnb" | "auto"), Some(Document::Int(4))) => {
            let double = reader.switch("quant_config.double_quantization") != Some(false);
            reader.set(
                "training.quantization",
                if double { "nf4-double" } else { "nf4" },
            );
        }
        _ => {
            reader.mark_unused("quant_config.name");
            reader.mark_unused("quant_config.quantization_bit");
        }
    }
    match reader.text("dist_config.name") {
        Some("fsdp2") => reader.set("parallel.strategy", "fsdp2"),
        Some("deepspeed") => deepspeed_by_path(reader, "dist_config.config_file"),
        _ => reader.mark_unused("dist_config.name"),
    }
    reader.copy("cp_size", "parallel.cp");
    if reader.text("cp_mode") == Some("ulysses") {
        reader.set("parallel.context", "ulysses");
    }
}

fn adapters(reader: &mut KeyReader) {
    reader.lora();
    reader.set("training.lora.rank", "8");
    reader.set("training.lora.dropout", "0.05");
    reader.copy("peft_config.r", "training.lora.rank");
    reader.copy("peft_config.lora_dropout", "training.lora.dropout");
    let targets = "peft_config.target_modules";
    let named = match reader.value(targets) {
        Some(Document::Text(word)) => word != "all",
        Some(Document::List(_)) => true,
        _ => false,
    };
    if named {
        reader.targets(targets, "training.lora.targets");
    } else {
        every_linear(reader, targets);
    }
}
