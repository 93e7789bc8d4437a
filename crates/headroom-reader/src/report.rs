//! A reading as JSON, in the words of `words.rs`.

use headroom_base::document::Document;

use super::fact::Fact;
use super::facts::Facts;
use super::outcome::{Outcome, asks, outcome};
use super::words::Checkpointing;

/// A value of JSON.
trait Shown {
    fn shown(&self) -> Document;
}

impl Shown for u64 {
    fn shown(&self) -> Document {
        (*self).into()
    }
}
impl Shown for bool {
    fn shown(&self) -> Document {
        (*self).into()
    }
}
impl Shown for f64 {
    fn shown(&self) -> Document {
        (*self).into()
    }
}
impl Shown for String {
    fn shown(&self) -> Document {
        self.as_str().into()
    }
}
impl Shown for &str {
    fn shown(&self) -> Document {
        (*self).into()
    }
}
impl Shown for Vec<String> {
    fn shown(&self) -> Document {
        self.clone().into()
    }
}
impl<T: Shown> Shown for Option<T> {
    fn shown(&self) -> Document {
        self.as_ref().map_or(Document::Null, Shown::shown)
    }
}
impl Shown for Checkpointing {
    fn shown(&self) -> Document {
        match self {
            Self::Off => false.into(),
            Self::On => true.into(),
            Self::Selective => "selective".into(),
        }
    }
}

macro_rules! shown_as_word {
    ($($name:ty),+) => {
        $(impl Shown for $name {
            fn shown(&self) -> Document {
                self.to_string().as_str().into()
            }
        })+
    };
}
shown_as_word!(
    super::words::Task,
    super::words::Weights,
    super::words::Compute,
    super::words::Adapter,
    super::words::Offload,
    super::words::Attention,
    super::words::Strategy,
    super::words::Trained
);

/// `{"outcome", "asks", "facts", "assumed", "not_modelled", "unread", "notes"}`.
pub fn json(facts: &Facts) -> Document {
    let mut table = Table::default();
    table.add("model", &facts.model);
    if facts.model.is_known() {
        table.facts.push(("catalogue", facts.network().shown()));
    }
    table.add("trainer", &facts.trainer);
    table.add("task", &facts.task);
    table.add("micro_batch", &facts.micro_batch);
    table.add("accumulation", &facts.accumulation);
    table.add("sequence", &facts.sequence);
    table.add("height", &facts.height);
    table.add("width", &facts.width);
    table.add("frames", &facts.frames);
    table.add("gpu", &facts.gpu);
    table.add("gpus", &facts.gpus);
    table.add("nodes", &facts.nodes);
    table.add("strategy", &facts.strategy);
    table.add("offload", &facts.offload);
    table.add("weights", &facts.weights);
    table.add("base_dtype", &facts.base_dtype);
    table.add("compute", &facts.compute);
    table.add("adapter", &facts.adapter);
    table.add("rank", &facts.rank);
    table.add("fp32_adapters", &facts.fp32_adapters);
    table.add("targets", &facts.targets);
    table.add("trained", &facts.trained);
    table.add("optimizer", &facts.optimizer);
    table.add("ema", &facts.ema);
    table.add("checkpointing", &facts.checkpointing);
    table.add("checkpoint_span", &facts.checkpoint_span);
    table.add("checkpoint_every", &facts.checkpoint_every);
    table.add("checkpoint_first", &facts.checkpoint_first);
    table.add("attention", &facts.attention);
    table.add("liger", &facts.liger);
    table.add("packing", &facts.packing);
    table.add("compile", &facts.compile);
    table.add("evaluation", &facts.evaluation);
    table.add("samples", &facts.samples);
    table.add("vllm", &facts.vllm);
    table.add("text_encoders_trained", &facts.text_encoders_trained);
    table.add("cached_latents", &facts.cached_latents);
    table.add("cached_text", &facts.cached_text);
    table.add("blocks_swapped", &facts.blocks_swapped);
    let outcome = outcome(facts);
    let asks = match outcome {
        Outcome::Question => asks(facts),
        _ => Vec::new(),
    };
    let words: Vec<String> = asks.iter().map(|(ask, _)| ask.word().into()).collect();
    let reasons: Vec<String> = asks
        .iter()
        .map(|(ask, why)| format!("{}: {why}", ask.word()))
        .chain(facts.refused.clone())
        .collect();
    let read = table.facts.into_iter().collect::<Document>();
    Document::new()
        .with("outcome", outcome.word())
        .with("asks", words)
        .with("facts", read)
        .with("assumed", Document::List(table.assumed))
        .with("not_modelled", facts.not_modelled.clone())
        .with("unread", facts.unread.clone())
        .with("why", reasons)
        .with("notes", facts.notes.clone())
}

#[derive(Default)]
struct Table {
    facts: Vec<(&'static str, Document)>,
    assumed: Vec<Document>,
}

impl Table {
    fn add<T: Shown>(&mut self, name: &'static str, fact: &Fact<T>) {
        use super::fact::Origin;
        if let Fact::Known { value, origin } = fact {
            let value = value.shown();
            if !matches!(origin, Origin::Read(_)) {
                self.assumed.push(
                    Document::new()
                        .with("fact", name)
                        .with("value", value.clone())
                        .with("why", origin.to_string()),
                );
            }
            self.facts.push((name, value));
        }
    }
}
