//! SimpleTuner's table of checkpointing (documentation/experimental/SEGMENTED_CHECKPOINTING.md at bc8e6ab7), with the settings of
//! simpletuner/examples: a frozen base in bf16, adapters, pictures and prompts that were encoded before.

use super::{Built, Record, Source, listed, numbers};
use headroom_catalog::{self as catalog, ModelEntry};
use headroom_scenario::{Data, Lora, Optimizer, Precision, Training};

pub(super) const SOURCE: Source = Source {
    recognises: |record| &*record.source_repo_or_url == "bghira/simpletuner",
    network,
    size,
    training,
    libraries: |_| {},
    is_one_step: |_| false,
};

/// Networks that a record calls otherwise than the catalogue does.
const NETWORKS: &[(&str, &str)] = &[("dreamshaper-8", "sd-1.5-unet")];

/// Networks whose interval counts blocks (`should_checkpoint_block` in their transformer.py).
const EVERY_NTH: &[&str] = &["longcat-image", "hidream"];

fn network(record: &Record) -> Built {
    if record.precision.contains("sdnq") {
        return Err("SDNQ's weights are not modelled".into());
    }
    if record.task.contains("lokr") {
        // Its `bypass_mode` runs the two factors one after the other, where PEFT makes a matrix of them.
        return Err("LyCORIS's LoKr is not modelled".into());
    }
    let other = NETWORKS
        .iter()
        .find(|(part, _)| record.model.contains(part));
    let id = match other {
        Some((_, id)) => Some(*id),
        None => entry(record).map(|entry| entry.id),
    };
    let not_listed = || {
        let name = &record.model.written;
        format!("the model `{name}` is not in the catalogue")
    };
    listed(id.ok_or_else(not_listed)?)
}

fn entry(record: &Record) -> Option<&'static ModelEntry> {
    catalog::model_named(&record.model.written)
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
    // Of "segments of 2 blocks" and of "2 of every 4 blocks".
    match numbers(&record.activation_checkpointing)[..] {
        // Some networks checkpoint every n-th block instead, and know no stride (`should_checkpoint_block` in
        // simpletuner/helpers/training/gradient_checkpointing_interval.py).
        [every, ..] if EVERY_NTH.iter().any(|part| record.model.contains(part)) => {
            training.checkpoint_every = every;
        }
        [span] => training.checkpoint_span = span,
        [span, every] => {
            training.checkpoint_span = span;
            training.checkpoint_every = every;
        }
        _ => {}
    }
    // `DEFAULT_LORA_TARGET` of simpletuner/helpers/models; of a joint block `to_qkv` is what it calls both projections.
    let of_text = ["add_q_proj", "add_k_proj", "add_v_proj", "to_add_out"];
    let mut targets = vec!["to_q", "to_k", "to_v", "to_out.0"];
    if record.model.contains("longcat") {
        targets.extend(of_text);
    }
    training.lora = Some(Lora {
        rank: numbers(&record.task).first().copied().unwrap_or(16),
        targets: targets.iter().map(|name| (*name).into()).collect(),
        fp32_adapters: false,
        ..Lora::default()
    });
}
