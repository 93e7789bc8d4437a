//! What a prediction assumes: the values that decide it and that nobody gave.

use super::{Origin, Resolved};
use crate::settings::{self, SettingId, Value};
use crate::{Case, Checkpointing, Optimizer, Precision, Scenario};
use headroom_catalog::{self as catalog, ModelCategory};

/// A value that nobody gave, and its source.
#[derive(Clone, Debug, PartialEq)]
pub struct Assumption {
    pub setting: SettingId,
    pub value: Value,
    pub origin: Origin,
}

/// What decides most of a run's memory: named also where it is the format's default or a preset's.
const DECISIVE: &[&str] = &[
    "hardware.gpu",
    "data.micro_batch",
    "data.sequence",
    "data.height",
    "data.frames",
    "data.images",
    "training.precision",
    "training.optimizer",
    "training.checkpointing",
];

/// In the order of the settings.
pub fn assumptions(resolved: &Resolved) -> Vec<Assumption> {
    let scenario = &resolved.scenario;
    let assumed = |setting: SettingId| {
        let origin = resolved.origins.get(setting)?;
        let counts = match origin {
            Origin::User | Origin::File { .. } | Origin::Link => false,
            Origin::Format(_) | Origin::Preset(_) => {
                // A preset is of its card.
                DECISIVE.contains(&setting.path)
                    && (setting.path != "hardware.gpu" || matches!(origin, Origin::Format(_)))
                    && (setting.path != "data.sequence" || has_tokens(scenario))
            }
            _ => true,
        };
        (counts && setting.applies(scenario)).then(|| Assumption {
            setting,
            value: setting.value(scenario),
            origin: origin.clone(),
        })
    };
    settings::all().iter().filter_map(assumed).collect()
}

/// The assumptions in one line, by source, such as `bf16 autocast over fp32 weights, AdamW (defaults)`.
pub fn in_words(resolved: &Resolved) -> Option<String> {
    let all = assumptions(resolved);
    let mut sources: Vec<(String, Vec<String>)> = Vec::new();
    // The batch reads as a product where both factors have one source.
    let origin = |path: &str| {
        let of = all
            .iter()
            .find(|assumption| assumption.setting.path == path);
        of.map(|assumption| &assumption.origin)
    };
    let batch = origin("data.micro_batch");
    let product = batch.is_some() && batch == origin("data.sequence");
    for assumption in &all {
        let words = match assumption.setting.path {
            "data.micro_batch" if product => {
                let data = &resolved.scenario.data;
                let length = resolved.scenario.row_length();
                format!("batch {} × {length} tokens", data.micro_batch)
            }
            "data.sequence" if product => continue,
            _ => phrase(assumption, &resolved.scenario),
        };
        let source = match assumption.origin {
            Origin::Format(_) => "defaults".into(),
            // What it is; its reasons follow the colon.
            Origin::Method { why, .. } => why.split(':').next().unwrap_or(why).to_string(),
            _ => assumption.origin.to_string(),
        };
        match sources.iter_mut().find(|(known, _)| *known == source) {
            Some((_, all)) => all.push(words),
            None => sources.push((source, vec![words])),
        }
    }
    let parts = sources
        .iter()
        .map(|(source, all)| format!("{} ({source})", all.join(", ")));
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn has_tokens(scenario: &Scenario) -> bool {
    let category = Case::of(scenario)
        .listed_model()
        .map(|model| model.category);
    category.is_some_and(|category| {
        use ModelCategory::{
            Decoders, EncoderDecoders, Encoders, StateSpace, TextEncoders, VisionLanguage,
        };
        matches!(
            category,
            Decoders | EncoderDecoders | Encoders | StateSpace | TextEncoders | VisionLanguage
        )
    })
}

/// A value as people say it; of less common settings the flag that sets it.
fn phrase(assumption: &Assumption, scenario: &Scenario) -> String {
    let training = &scenario.training;
    let case = Case::of(scenario);
    let or_own = |given: u64, name: &str| match given {
        0 => case.listed_size(name).unwrap_or(0),
        given => given,
    };
    let words = match assumption.setting.path {
        "hardware.gpu" => {
            let gpu = catalog::gpu_named(&scenario.hardware.gpu);
            let name = gpu.map_or(scenario.hardware.gpu.as_str(), |gpu| gpu.name);
            return format!("{name} as the GPU");
        }
        "data.micro_batch" => return format!("batch {}", scenario.data.micro_batch),
        "data.sequence" => return format!("{} tokens", scenario.row_length()),
        "data.height" => {
            let data = &scenario.data;
            return size(or_own(data.height, "height"), or_own(data.width, "width"));
        }
        "data.frames" => return format!("{} frames", or_own(scenario.data.frames, "frames")),
        "data.images" => {
            let data = &scenario.data;
            let plural = if data.images == 1 { "" } else { "s" };
            let size = size(data.image_height, data.image_width);
            return format!("{} picture{plural} a sample, {size}", data.images);
        }
        "hardware.gpus" => {
            let gpus = scenario.hardware.gpus;
            return format!("{gpus} GPU{}", if gpus == 1 { "" } else { "s" });
        }
        "parallel.strategy" => scenario.parallel.strategy.label(),
        "training.quantization" => {
            return format!("base weights in {}", training.quantization.label());
        }
        "training.lora.targets" if training.lora.is_some() => {
            return format!(
                "adapters on {}",
                assumption.value.to_string().replace(',', ", ")
            );
        }
        "training.precision" => match training.precision {
            Precision::AmpBf16 => "bf16 autocast over fp32 weights",
            Precision::AmpFp16 => "fp16 autocast over fp32 weights",
            other => other.label(),
        },
        "training.optimizer" => match training.optimizer {
            Optimizer::AdamW => "AdamW",
            other => other.label(),
        },
        "training.checkpointing" => match training.checkpointing {
            Checkpointing::None => "no checkpointing",
            Checkpointing::Layers => "checkpointing of every layer",
            other => return format!("checkpointing {}", other.label()),
        },
        _ => return format!("{}={}", assumption.setting.key, assumption.value),
    };
    words.into()
}

/// The size of pictures, where the model's own is known.
fn size(height: u64, width: u64) -> String {
    if height == 0 || width == 0 {
        "pictures of the model's usual size".into()
    } else {
        format!("{height} × {width} pixels")
    }
}
