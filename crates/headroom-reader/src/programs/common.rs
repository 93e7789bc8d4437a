//! What readers of several programs share.

use crate::fact::Fact;
use crate::facts::Facts;
use crate::shape::Shape;
use crate::words::{Adapter, Checkpointing, Trained, Weights};

/// All weights are trained, with nothing beside them.
pub fn trains_all(facts: &mut Facts) {
    facts.adapter = Fact::follows(None, "no adapter is asked for");
    facts.trained = Fact::follows(Trained::All, "no adapter is asked for");
}

/// LoRA, or QLoRA where the base has four bits.
pub fn trains_lora(facts: &mut Facts, rank: Fact<u64>, key: &str) {
    let four_bits = facts
        .weights
        .value()
        .is_some_and(|weights| matches!(weights, Weights::Nf4 | Weights::Fp4));
    let adapter = if four_bits {
        Adapter::Qlora
    } else {
        Adapter::Lora
    };
    facts.adapter = Fact::read(Some(adapter), key);
    facts.rank = rank;
    facts.trained = Fact::follows(Trained::Adapters, key);
}

/// A network that is written out.
pub fn shaped(facts: &mut Facts, shape: Shape, key: &str) {
    facts.model = shape.fact(key);
    facts.shape = Some(shape);
}

/// What one GPU has of a batch of the whole job, in words where it cannot be known.
pub fn divided(global: &Fact<u64>, by: Option<u64>, what: &str) -> Fact<u64> {
    match (global, by.filter(|by| *by > 0)) {
        (Fact::Known { value, .. }, Some(by)) => {
            Fact::follows((value / by).max(1), format!("{what} {value} / {by}"))
        }
        (Fact::Unknown(why), _) => Fact::Unknown(why.clone()),
        (Fact::Known { .. } | Fact::Unsaid, _) => Fact::Unsaid,
    }
}

pub fn checkpointing(on: Fact<bool>) -> Fact<Checkpointing> {
    on.map(|on| {
        if on {
            Checkpointing::On
        } else {
            Checkpointing::Off
        }
    })
}

/// Whether a word is the path of a YAML file.
pub fn is_yaml(path: &str) -> bool {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension);
    matches!(extension, Some("yml" | "yaml"))
}
