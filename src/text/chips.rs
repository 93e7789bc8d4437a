//! Texts of the chips: values as people say them.

use headroom_scenario::settings::{self, Setting};
use headroom_scenario::{Checkpointing, Quantization, Scenario, Training};

pub const UNDERSTOOD: &str = "What was understood; press one to change it";

pub fn assumed_by(source: &str) -> String {
    format!("assumed: {source}")
}

/// A model of the catalogue in sizes of its own.
pub fn like(name: &str) -> String {
    format!("like {name}, own sizes")
}

pub fn gpus(count: u32) -> String {
    match count {
        1 => "1 GPU".into(),
        _ => format!("{count} GPUs"),
    }
}

pub fn machines_in_all(count: u32) -> String {
    format!("{count} machines")
}

pub fn tokens(count: u64) -> String {
    format!("{count} tokens")
}

/// Whether a setting means anything here: pictures and videos have a size, and no length.
pub fn applies(setting: &Setting, scenario: &Scenario) -> bool {
    setting.applies(scenario)
        && (setting.path != "data.sequence" || settings::takes_length(scenario))
}

/// "720 × 1280 pixels".
pub fn resolution(scenario: &Scenario) -> Option<String> {
    let (height, width) = settings::resolution(scenario)?;
    Some(format!("{height} × {width} pixels"))
}

/// "81 frames".
pub fn frames(scenario: &Scenario) -> Option<String> {
    Some(format!("{} frames", settings::frames(scenario)?))
}

pub fn accumulate(times: u64) -> String {
    format!("accumulate {times}")
}

/// A choice's label without its explanation.
pub fn short_choice(label: &str) -> String {
    let end = label.find([':', '(']).unwrap_or(label.len());
    label.get(..end).unwrap_or(label).trim().into()
}

/// What is trained: the whole model, adapters, adapters over quantised weights.
pub fn method(training: &Training) -> String {
    match &training.lora {
        None => "full training".into(),
        Some(lora) => {
            let name = short_choice(lora.method.label());
            match training.quantization {
                Quantization::Nf4 | Quantization::Nf4Double if name == "LoRA" => {
                    format!("QLoRA rank {}", lora.rank)
                }
                _ => format!("{name} rank {}", lora.rank),
            }
        }
    }
}

pub fn quantization(quantization: Quantization) -> String {
    match quantization {
        Quantization::None => "not quantised".into(),
        other => format!("{} base", other.label()),
    }
}

pub fn checkpointing(mode: Checkpointing) -> String {
    match mode {
        Checkpointing::None => "no checkpointing".into(),
        Checkpointing::Layers => "checkpointing".into(),
        Checkpointing::Offload => "activations on the host".into(),
        _ => "selective checkpointing".into(),
    }
}
