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
    let batch = |assumption: &&Assumption| assumption.setting.section() == "data";
    let shape = all.iter().filter(batch).map(|batch| &batch.origin);
    // The batch reads as a product where both factors have one source.
    let product = shape
        .collect::<Vec<_>>()
        .windows(2)
        .any(|pair| pair[0] == pair[1]);
    for assumption in &all {
        let words = match assumption.setting.path {
            "data.micro_batch" if product => {
                let data = &resolved.scenario.data;
                format!("batch {} × {} tokens", data.micro_batch, data.sequence)
            }
            "data.sequence" if product => continue,
            _ => phrase(assumption, &resolved.scenario),
        };
        let source = match assumption.origin {
            Origin::Format(_) => "defaults".into(),
            Origin::Method { .. } => "usual for LoRA".into(),
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
    let words = match assumption.setting.path {
        "hardware.gpu" => {
            let gpu = catalog::gpu_named(&scenario.hardware.gpu);
            let name = gpu.map_or(scenario.hardware.gpu.as_str(), |gpu| gpu.name);
            return format!("{name} as the GPU");
        }
        "data.micro_batch" => return format!("batch {}", scenario.data.micro_batch),
        "data.sequence" => return format!("{} tokens", scenario.data.sequence),
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
