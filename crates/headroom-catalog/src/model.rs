//! Models: the sizes that a forward function needs, and how many parameters it must come to.

use super::Confidence;

/// One entry of `catalog/models/*.yaml`.
#[derive(Clone, Copy, Debug)]
pub struct ModelEntry {
    pub id: &'static str,
    pub name: &'static str,
    /// The repository on the Hugging Face hub; empty if there is none.
    pub hf_id: &'static str,
    pub category: ModelCategory,
    /// The name of its forward function.
    pub arch: &'static str,
    /// Whether there is one, or a recorded graph.
    pub runs: bool,
    /// Of a model that answers by its recorded graph, the size that is the graph's length, or `sequence`; else empty.
    pub graph: &'static str,
    keys: &'static [&'static str],
    /// A size for each key; see `sizes`.
    packed: &'static [u8],
    /// The parts of its blocks: norms, activations, positions, biases.
    pub traits: &'static [&'static str],
    /// Distinct parameters; tied tensors once, buffers never.
    pub parameters: u64,
    /// Parameters that a token uses; 0 if all.
    pub active: u64,
    pub confidence: Confidence,
    set: u8,
}

/// The file a model is listed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ModelCategory {
    Decoders,
    Diffusion,
    EncoderDecoders,
    Encoders,
    Graphs,
    Proteins,
    Series,
    Speech,
    StateSpace,
    Systems,
    TextEncoders,
    Vision,
    VisionLanguage,
}

impl ModelCategory {
    pub const fn label(self) -> &'static str {
        match self {
            Self::Decoders => "Language models",
            Self::Diffusion => "Diffusion models",
            Self::EncoderDecoders => "Encoder-decoders",
            Self::Encoders => "Text encoders",
            Self::Graphs => "Graph networks",
            Self::Proteins => "Protein models",
            Self::Series => "Time series",
            Self::Speech => "Speech models",
            Self::StateSpace => "State-space models",
            Self::Systems => "Research systems",
            Self::TextEncoders => "Text encoders of diffusion models",
            Self::Vision => "Vision models",
            Self::VisionLanguage => "Vision-language models",
        }
    }
}

/// All models, sorted by id.
pub fn models() -> &'static [ModelEntry] {
    &table::MODELS
}

/// The model with this id. Dashes may be left out (`llama3.1-8b` is `llama-3.1-8b`).
pub fn model(id: &str) -> Option<&'static ModelEntry> {
    if let Ok(at) = models().binary_search_by(|model| model.id.cmp(id)) {
        return models().get(at);
    }
    models()
        .iter()
        .find(|model| letters(model.id).eq(letters(id)))
}

fn letters(id: &str) -> impl Iterator<Item = char> {
    id.chars()
        .filter(|c| !matches!(c, '-' | '_'))
        .map(|c| c.to_ascii_lowercase())
}

impl ModelEntry {
    /// Its sizes by name, each with one value or, for stages of a network, several.
    pub fn sizes(&self) -> Vec<(&'static str, Vec<u64>)> {
        let mut rest = self.packed;
        let one = |key: &&'static str| {
            let head = number(&mut rest);
            let values = if head & 1 == 0 {
                vec![head >> 1]
            } else {
                (0..head >> 1).map(|_| number(&mut rest)).collect()
            };
            (*key, values)
        };
        self.keys.iter().map(one).collect()
    }

    /// One size; of several the first.
    pub fn size(&self, key: &str) -> Option<u64> {
        let sizes = self.sizes();
        let (_, values) = sizes.iter().find(|(name, _)| *name == key)?;
        values.first().copied()
    }

    /// The most tokens of a row that a table of so many positions has places for. RoBERTa and its relatives count from behind the
    /// padding token's number (`create_position_ids_from_input_ids` in transformers): the first two places are of no token.
    pub fn tokens_of(&self, positions: u64) -> u64 {
        const BEHIND_PADDING: [&str; 4] = ["layoutlmv3", "longformer", "mpnet", "roberta"];
        let behind = self.graph.is_empty() && BEHIND_PADDING.contains(&self.arch);
        positions.saturating_sub(if behind { 2 } else { 0 })
    }

    /// The most tokens of a row, where its positions end somewhere.
    pub fn longest(&self) -> Option<u64> {
        let positions = self.size("ctx").filter(|positions| *positions > 0);
        positions.map(|positions| self.tokens_of(positions))
    }

    /// Where its sizes and count were read.
    pub fn sources(&self) -> impl Iterator<Item = &'static str> {
        let set = table::SOURCE_SETS.get(usize::from(self.set)).copied();
        set.unwrap_or_default()
            .iter()
            .filter_map(|&source| table::SOURCES.get(usize::from(source)).copied())
    }
}

/// Takes a number off the front: seven bits a byte, the low ones first, the last byte below 128.
fn number(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    let mut shift = 0;
    while let Some((&byte, rest)) = bytes.split_first() {
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 || shift > 56 {
            break;
        }
    }
    value
}

#[allow(clippy::pedantic)]
mod table {
    use super::{Confidence, ModelCategory, ModelEntry};
    include!(concat!(env!("OUT_DIR"), "/models.rs"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_sorted_and_unique() {
        let published = models()
            .iter()
            .filter(|model| model.category != ModelCategory::Systems);
        assert_eq!(published.count(), 788);
        for pair in models().windows(2) {
            assert!(pair[0].id < pair[1].id, "{} {}", pair[0].id, pair[1].id);
        }
    }

    #[test]
    fn positions_behind_the_padding_token_hold_two_tokens_less() {
        for (id, longest) in [
            ("roberta-base", 512),
            ("xlm-roberta-large", 512),
            ("mpnet-base", 512),
            ("bge-m3", 8192),
            ("bert-base-uncased", 512),
            ("gpt2", 1024),
        ] {
            assert_eq!(
                model(id).and_then(ModelEntry::longest),
                Some(longest),
                "{id}"
            );
        }
    }

    #[test]
    fn ids_differ_in_more_than_dashes() {
        let mut all: Vec<String> = models()
            .iter()
            .map(|model| letters(model.id).collect())
            .collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), models().len());
    }

    #[test]
    fn every_entry_has_sources_and_sizes_named_once() {
        for model in models() {
            assert!(model.sources().count() > 0, "{}", model.id);
            let sizes = model.sizes();
            assert!(!sizes.is_empty(), "{}", model.id);
            for (at, (key, values)) in sizes.iter().enumerate() {
                assert!(!values.is_empty());
                assert!(
                    sizes[..at].iter().all(|(other, _)| other != key),
                    "{} {key}",
                    model.id
                );
                assert_eq!(model.size(key), values.first().copied());
            }
            assert!(model.active < model.parameters, "{}", model.id);
            assert!(
                (10_000..2_000_000_000_000).contains(&model.parameters),
                "{}",
                model.id
            );
        }
    }

    /// Twelve times layers × width², plus the vocabulary, is a text model within a factor of the block's shape.
    #[test]
    fn counts_are_near_the_rough_formula() {
        for model in models() {
            let dense = model.size("experts").is_none();
            let text = matches!(
                model.category,
                ModelCategory::Decoders | ModelCategory::Encoders
            );
            // Tables of each layer, layers without matrices of values or keys of their own, and layers of one part each.
            if !dense
                || !text
                || matches!(
                    model.arch,
                    "albert" | "gemma3n_text" | "gemma4_text" | "nemotron_h"
                )
            {
                continue;
            }
            let size = |key| model.size(key).unwrap_or(0) as f64;
            let attention = 2.0 * size("hidden") * size("hidden")
                + 2.0 * size("hidden") * size("kv") * size("head_dim");
            let matrices = if model.traits.contains(&"gated") || model.arch == "modernbert" {
                3.0
            } else {
                2.0
            };
            let blocks = size("layers") * (attention + matrices * size("hidden") * size("ffn"));
            let embeddings = size("vocab") * size("hidden") * (2.0 - size("tied"));
            let ratio = model.parameters as f64 / (blocks + embeddings);
            assert!((0.5..1.5).contains(&ratio), "{} {ratio}", model.id);
        }
    }

    #[track_caller]
    fn check(id: &str, found: Option<&str>) {
        assert_eq!(model(id).map(|model| model.id), found);
    }

    #[test]
    fn look_ups_forgive_dashes_and_case() {
        check("gpt2", Some("gpt2"));
        check("llama-3.1-8b", Some("llama-3.1-8b"));
        check("llama3.1-8b", Some("llama-3.1-8b"));
        check("Qwen2.5-0.5B", Some("qwen2.5-0.5b"));
        check("resnet50", Some("resnet-50"));
        check("gpt", None);
        check("", None);
    }

    #[test]
    fn stages_keep_their_order() {
        let swin = model("swin-tiny")
            .map(ModelEntry::sizes)
            .unwrap_or_default();
        let depths = swin.iter().find(|(key, _)| *key == "depths");
        assert_eq!(depths, Some(&("depths", vec![2, 2, 6, 2])));
    }
}
