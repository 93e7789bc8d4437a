//! Precision, checkpointing and adapters of a row.

use serde::Deserialize;

use super::Record;
use headroom_scenario::{Checkpointing, Lora, Optimizer, Precision, Training};

/// PEFT's adapters. Everything else is frozen.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Adapters {
    rank: u64,
    targets: Targets,
    dropout: f64,
    dtype: String,
}

/// Ends of module names, or a regular expression over whole names.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Targets {
    Names(Vec<String>),
    Expression(String),
}

impl Default for Targets {
    fn default() -> Self {
        Self::Names(Vec::new())
    }
}

/// The towers of pictures and sounds that an expression for the language model leaves out, as classes name them.
const TOWERS: [&str; 3] = ["vision", "visual", "audio"];

pub fn training(record: &Record) -> Result<Training, String> {
    let precision = match record.precision.as_str() {
        "amp_bf16_basebf16" => Some(Precision::AmpBf16OnBf16),
        other => Precision::from_id(&other.replace('_', "-")),
    };
    let on = |switch: &str| record.switches.iter().any(|own| own == switch);
    let unknown = || format!("precision `{}` is not known", record.precision);
    Ok(Training {
        precision: precision.ok_or_else(unknown)?,
        optimizer: Optimizer::from_id(&record.optim).unwrap_or(Optimizer::AdamW),
        ema: on("ema"),
        channels_last: on("channels_last"),
        clip: on("clip"),
        checkpointing: if record.checkpointing {
            Checkpointing::Layers
        } else {
            Checkpointing::None
        },
        lora: record.lora.as_ref().map(Adapters::read).transpose()?,
        ..Training::default()
    })
}

impl Adapters {
    fn read(&self) -> Result<Lora, String> {
        let (targets, exclude) = match &self.targets {
            Targets::Names(names) => (names.clone(), Vec::new()),
            Targets::Expression(text) => within_language_model(text)?,
        };
        Ok(Lora {
            rank: self.rank,
            targets,
            exclude,
            dropout: self.dropout,
            fp32_adapters: self.dtype == "fp32",
            ..Lora::default()
        })
    }
}

/// `.*language_model.*\.(q_proj|v_proj)`: these modules, in no tower.
fn within_language_model(text: &str) -> Result<(Vec<String>, Vec<String>), String> {
    let refused = || format!("the expression `{text}` of LoRA's targets is not modelled");
    let (place, names) = text.split_once(r".*\.(").ok_or_else(refused)?;
    let of_text = ["language_model", "text_model"];
    if !of_text.iter().any(|part| place.contains(part)) {
        return Err(refused());
    }
    let names = names.strip_suffix(')').ok_or_else(refused)?;
    let names = names.split('|').map(String::from).collect();
    Ok((names, TOWERS.map(String::from).to_vec()))
}
