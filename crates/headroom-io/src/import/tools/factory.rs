//! LLaMA-Factory's newer form, `v1`, whose adapters, quantisation and layout are plugins with a group of keys each.

use super::super::take::Take;
use super::parts::{deepspeed_by_path, every_linear};
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

/// What its plugins say, over the defaults of this form (llamafactory/v1/config/training_args.py).
pub fn plugins(take: &mut Take, document: &Document) {
    // Weights come in the format that they were saved in, and are computed with as they are.
    let half = take.switch("bf16") != Some(false);
    take.set("training.precision", if half { "bf16" } else { "fp32" });
    let kept = take.switch("enable_activation_checkpointing") == Some(false);
    take.set(
        "training.checkpointing",
        if kept { "none" } else { "layers" },
    );
    if document.get("micro_batch_size").is_none() {
        take.set("data.micro_batch", "1");
    }
    if document.get("cutoff_len").is_none() {
        take.set("data.sequence", "2048");
    }
    if take.text("peft_config.name") == Some("lora") {
        adapters(take);
    } else {
        take.leave("peft_config.name");
    }
    match (
        take.text("quant_config.name"),
        take.value("quant_config.quantization_bit"),
    ) {
        (Some("bnb" | "auto"), Some(Document::Int(4))) => {
            let double = take.switch("quant_config.double_quantization") != Some(false);
            take.set(
                "training.quantization",
                if double { "nf4-double" } else { "nf4" },
            );
        }
        _ => {
            take.leave("quant_config.name");
            take.leave("quant_config.quantization_bit");
        }
    }
    match take.text("dist_config.name") {
        Some("fsdp2") => take.set("parallel.strategy", "fsdp2"),
        Some("deepspeed") => deepspeed_by_path(take, "dist_config.config_file"),
        _ => take.leave("dist_config.name"),
    }
    take.copy("cp_size", "parallel.cp");
    if take.text("cp_mode") == Some("ulysses") {
        take.set("parallel.context", "ulysses");
    }
}

fn adapters(take: &mut Take) {
    take.lora();
    take.set("training.lora.rank", "8");
    take.set("training.lora.dropout", "0.05");
    take.copy("peft_config.r", "training.lora.rank");
    take.copy("peft_config.lora_dropout", "training.lora.dropout");
    let targets = "peft_config.target_modules";
    let named = match take.value(targets) {
        Some(Document::Text(word)) => word != "all",
        Some(Document::List(_)) => true,
        _ => false,
    };
    if named {
        take.targets(targets, "training.lora.targets");
    } else {
        every_linear(take, targets);
    }
}
