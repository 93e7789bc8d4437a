//! What is missing from an input, and what therefore comes of it.

use super::fact::Fact;
use super::facts::{Ask, Facts};
use super::names;
use super::words::Task;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It decides a run.
    Estimate,
    /// Its user must say something first.
    Question,
    /// It is no training run.
    Refuse,
}

impl Outcome {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Estimate => "estimate",
            Self::Question => "question",
            Self::Refuse => "refuse",
        }
    }
}

/// What has to be asked, with the reason.
pub fn asks(facts: &Facts) -> Vec<(Ask, String)> {
    let mut asks = facts.asks.clone();
    let mut ask = |ask: Ask, why: String| {
        if asks.iter().all(|(known, _)| *known != ask) {
            asks.push((ask, why));
        }
    };
    if let Some(why) = unnamed(facts) {
        ask(Ask::Model, why);
    }
    // A batch of the whole job decides the micro-batch once the GPUs are known.
    let divided = facts.micro_batch.is_unsaid() && facts.batch_of_all.is_known();
    if divided {
        if !facts.gpus.is_known() {
            ask(Ask::Gpus, "the batch is divided over them".into());
        }
    } else if let Some(why) = missing(&facts.micro_batch) {
        ask(Ask::Batch, why);
    }
    match facts.task.value() {
        Some(Task::Diffusion) => {
            if let Some(why) = missing(&facts.height) {
                ask(Ask::Resolution, why);
            }
        }
        // Their size is the model's own, or is asked by the program's reader.
        Some(Task::Detection | Task::Segmentation | Task::Ctc | Task::SelfDistillation) => {}
        // Images of a size that is said, such as those of a classifier.
        _ if facts.height.is_known() && facts.sequence.is_unsaid() => {}
        _ => {
            if let Some(why) = missing(&facts.sequence) {
                ask(Ask::Sequence, why);
            }
        }
    }
    // A GPU's memory depends on their number where something is divided over them.
    let one = facts.gpus.value() == Some(&1);
    let sharded = match &facts.strategy {
        Fact::Known { value, .. } => value.shards(),
        Fact::Unknown(why) => {
            ask(Ask::Strategy, why.clone());
            true
        }
        Fact::Unsaid => {
            if !one {
                ask(
                    Ask::Strategy,
                    "nothing says how it is spread over GPUs".into(),
                );
            }
            !one
        }
    };
    if sharded && let Some(why) = missing(&facts.gpus) {
        ask(Ask::Gpus, why);
    }
    if let Fact::Unknown(why) = &facts.trained {
        ask(Ask::Trained, why.clone());
    }
    if let Fact::Unknown(why) = &facts.adapter {
        ask(Ask::Adapter, why.clone());
    }
    asks.sort_by_key(|(ask, _)| *ask);
    asks
}

pub fn outcome(facts: &Facts) -> Outcome {
    if facts.refused.is_some() {
        Outcome::Refuse
    } else if asks(facts).is_empty() {
        Outcome::Estimate
    } else {
        Outcome::Question
    }
}

fn missing<T>(fact: &Fact<T>) -> Option<String> {
    match fact {
        Fact::Known { .. } => None,
        Fact::Unknown(why) => Some(why.clone()),
        Fact::Unsaid => Some("not given".into()),
    }
}

/// Why the model cannot be known: no name, a place to fill in, or a folder whose name says nothing.
fn unnamed(facts: &Facts) -> Option<String> {
    let model = match &facts.model {
        Fact::Known { value, .. } => value,
        other => return missing(other),
    };
    if is_placeholder(model) {
        return Some(format!("`{model}` stands for a name"));
    }
    let is_path = model.starts_with(['.', '/', '~']) || model.matches('/').count() > 1;
    (is_path && names::named(model).catalogue.is_none())
        .then(|| format!("`{model}` is a local folder"))
}

/// Whether a value stands for one that its user fills in.
pub fn is_placeholder(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let has = |part: &str| lower.contains(part);
    lower.is_empty()
        // A flag whose value is missing.
        || lower == "true"
        || (has("<") && has(">"))
        || has("$")
        || has("path/to")
        || has("path_to")
        || has("your_")
        || has("your-")
        || has("/your")
        || has("xxx")
        || has("{{")
}
