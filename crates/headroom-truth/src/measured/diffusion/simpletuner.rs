//! SimpleTuner's table of checkpointing (documentation/experimental/SEGMENTED_CHECKPOINTING.md at bc8e6ab7), with the settings of
//! simpletuner/examples: a frozen base in bf16, adapters, pictures and prompts that were encoded before.

use super::{Built, Record, Source, listed, numbers};
use headroom_scenario::{Data, Lora, Optimizer, Precision, Training};

pub(super) const SOURCE: Source = Source {
    recognises: |record| &*record.source_repo_or_url == "bghira/simpletuner",
    network,
    size,
    training,
    libraries: |_| {},
    is_one_step: |_| false,
};

/// Networks by what a record calls their repository.
const NETWORKS: &[(&str, &str)] = &[
    ("longcat-image", "longcat-image"),
    ("dreamshaper-8", "sd-1.5-unet"),
];

fn network(record: &Record) -> Built {
    if record.precision.contains("sdnq") {
        return Err("SDNQ's weights are not modelled".into());
    }
    if record.task.contains("lokr") {
        // Its `bypass_mode` runs the two factors one after the other, where PEFT makes a matrix of them.
        return Err("LyCORIS's LoKr is not modelled".into());
    }
    let named = NETWORKS
        .iter()
        .find(|(part, _)| record.model.contains(part));
    let (_, id) = named.ok_or_else(|| {
        format!(
            "the model `{}` is not in the catalogue",
            record.model.written
        )
    })?;
    listed(id)
}

fn size(record: &Record, data: &mut Data) {
    if let [height, width] = numbers(record.image_size.text())[..] {
        (data.height, data.width) = (height, width);
    }
}

fn training(record: &Record, training: &mut Training) {
    training.precision = Precision::AmpBf16OnBf16;
    training.clip = true;
    training.optimizer = match &*record.optimizer {
        "optimi-lion" => Optimizer::Lion,
        _ => Optimizer::AdamW,
    };
    let targets = if record.model.contains("longcat") {
        [
            "to_q",
            "to_k",
            "to_v",
            "to_out.0",
            "add_q_proj",
            "add_k_proj",
            "add_v_proj",
            "to_add_out",
        ]
        .as_slice()
    } else {
        ["to_q", "to_k", "to_v", "to_out.0"].as_slice()
    };
    training.lora = Some(Lora {
        rank: numbers(&record.task).first().copied().unwrap_or(16),
        targets: targets.iter().map(|name| (*name).into()).collect(),
        fp32_adapters: false,
        ..Lora::default()
    });
}
