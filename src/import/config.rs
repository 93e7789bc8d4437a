//! A Hugging Face `config.json`: which architecture, and in which sizes.

use std::collections::BTreeMap;

use super::Imported;
use crate::catalog::{self, ModelEntry};
use crate::document::Document;
use crate::nets;
use crate::scenario::{Problem, settings};

/// A `model_type` that a network covers, and what its configuration says where it says nothing.
struct Kind {
    model_type: &'static str,
    /// The network, as the catalogue calls it.
    arch: &'static str,
    /// The activation functions that the network runs.
    activations: &'static [&'static str],
    tied: u64,
}

const fn kind(model_type: &'static str, arch: &'static str, tied: u64) -> Kind {
    let activations: &[&str] = match arch.as_bytes() {
        b"gpt2" => &["gelu_new", "gelu_pytorch_tanh"],
        b"bert" | b"roberta" => &["gelu"],
        _ => &["silu"],
    };
    Kind {
        model_type,
        arch,
        activations,
        tied,
    }
}

/// Defaults as in the configuration classes of transformers 4.57 to 5.23.
const KINDS: &[Kind] = &[
    kind("bert", "bert", 1),
    kind("camembert", "roberta", 1),
    kind("gpt2", "gpt2", 1),
    kind("llama", "llama", 0),
    kind("mistral", "mistral", 0),
    kind("qwen2", "qwen2", 0),
    kind("qwen3", "qwen3", 0),
    kind("roberta", "roberta", 1),
    kind("xlm-roberta", "roberta", 1),
];

/// The catalogue's name of a size and the names that configurations have for it.
const SIZES: &[(&str, &[&str])] = &[
    ("layers", &["num_hidden_layers", "n_layer"]),
    ("hidden", &["hidden_size", "n_embd"]),
    ("heads", &["num_attention_heads", "n_head"]),
    ("kv", &["num_key_value_heads"]),
    ("head_dim", &["head_dim"]),
    ("ffn", &["intermediate_size", "n_inner"]),
    ("vocab", &["vocab_size"]),
    ("ctx", &["max_position_embeddings", "n_positions"]),
    ("tied", &["tie_word_embeddings"]),
    ("types", &["type_vocab_size"]),
    ("window", &["sliding_window"]),
];

/// Keys that change no tensor's size.
const WITHOUT_EFFECT: &[&str] = &[
    "_name_or_path",
    "architectures",
    "attention_bias",
    "auto_map",
    "bos_token_id",
    "classifier_dropout",
    "dtype",
    "embd_pdrop",
    "attn_pdrop",
    "resid_pdrop",
    "attention_dropout",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "eos_token_id",
    "finetuning_task",
    "gradient_checkpointing",
    "hidden_act",
    "activation_function",
    "id2label",
    "initializer_range",
    "label2id",
    "layer_norm_eps",
    "layer_norm_epsilon",
    "layer_types",
    "max_window_layers",
    "mlp_bias",
    "model_type",
    "n_ctx",
    "output_past",
    "pad_token_id",
    "position_embedding_type",
    "pretraining_tp",
    "reorder_and_upcast_attn",
    "rms_norm_eps",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "scale_attn_by_inverse_layer_idx",
    "scale_attn_weights",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "task_specific_params",
    "torch_dtype",
    "transformers_version",
    "unk_token_id",
    "use_cache",
    "use_sliding_window",
];

/// Whether the document is such a file.
pub fn recognises(document: &Document) -> bool {
    document.get("model_type").is_some()
}

/// The default scenario with this model: the catalogue's nearest, and the sizes in which it differs.
pub fn read(document: &Document) -> Imported {
    let mut imported = Imported::default();
    let Some(kind) = covered(document, &mut imported.problems) else {
        return imported;
    };
    imported.problems.extend(refused(document, kind));
    let sizes = sizes(document, kind, &mut imported.problems);
    let entries = catalog::models().iter().filter(|it| it.arch == kind.arch);
    let nearest = entries.min_by_key(|entry| differences(entry, &sizes).len());
    if let Some(entry) = nearest {
        imported.scenario.model.id = entry.id.into();
        imported.scenario.model.dims = differences(entry, &sizes);
    }
    let dropouts = values(document, |key| key.contains("drop"));
    imported.scenario.training.dropout = dropouts.is_empty() || dropouts.iter().any(|it| *it > 0.0);
    let known = |key: &str| {
        WITHOUT_EFFECT.contains(&key) || SIZES.iter().any(|(_, names)| names.contains(&key))
    };
    imported.not_taken = keys(document)
        .filter(|key| !known(key))
        .map(String::from)
        .collect();
    imported
}

fn covered(document: &Document, problems: &mut Vec<Problem>) -> Option<&'static Kind> {
    let given = match document.get("model_type") {
        Some(Document::Text(it)) => it.as_str(),
        _ => "",
    };
    let found = KINDS
        .iter()
        .find(|it| it.model_type == given && nets::has(it.arch));
    if found.is_none() {
        let types: Vec<&str> = KINDS.iter().map(|it| it.model_type).collect();
        let expected = format!("one of {}", types.join(", "));
        problems.push(Problem::new("model_type", given, expected));
    }
    found
}

/// What would make another network of it.
fn refused(document: &Document, kind: &Kind) -> Vec<Problem> {
    let mut problems = Vec::new();
    for key in ["hidden_act", "activation_function"] {
        if let Some(Document::Text(it)) = document.get(key)
            && !kind.activations.contains(&it.as_str())
        {
            problems.push(Problem::new(key, it, kind.activations.join(" or ")));
        }
    }
    for key in ["attention_bias", "mlp_bias", "use_sliding_window"] {
        if document.get(key) == Some(&Document::Bool(true)) {
            problems.push(Problem::new(key, "true", "false for this network"));
        }
    }
    problems
}

/// The sizes that the configuration gives or implies, by the catalogue's names.
fn sizes(
    document: &Document,
    kind: &Kind,
    problems: &mut Vec<Problem>,
) -> BTreeMap<&'static str, u64> {
    let mut sizes = BTreeMap::from([("tied", kind.tied)]);
    for (size, names) in SIZES {
        for name in *names {
            match document.get(name) {
                None | Some(Document::Null) => {}
                Some(Document::Bool(it)) => {
                    sizes.insert(size, u64::from(*it));
                }
                Some(Document::Int(it)) if (1..=settings::LARGEST_SIZE.into()).contains(it) => {
                    sizes.insert(size, *it as u64);
                }
                Some(other) => {
                    let shown = crate::export::json::write(other);
                    let expected = format!("a whole number from 1 to {}", settings::LARGEST_SIZE);
                    problems.push(Problem::new(*name, shown.trim(), expected));
                }
            }
        }
    }
    let get = |sizes: &BTreeMap<&str, u64>, name: &str| sizes.get(name).copied();
    if let (Some(hidden), Some(heads)) = (get(&sizes, "hidden"), get(&sizes, "heads")) {
        sizes.entry("kv").or_insert(heads);
        sizes.entry("head_dim").or_insert(hidden / heads.max(1));
        if kind.arch == "gpt2" {
            sizes.entry("ffn").or_insert(hidden.saturating_mul(4));
        }
    }
    for required in ["layers", "hidden", "heads", "vocab"] {
        if get(&sizes, required).is_none() {
            let names = SIZES.iter().find(|(size, _)| *size == required);
            let names = names.map_or("", |(_, names)| names[0]);
            problems.push(Problem::new(names, "nothing", "a whole number"));
        }
    }
    sizes
}

/// The sizes in which the entry is not what is wanted.
fn differences(entry: &ModelEntry, wanted: &BTreeMap<&str, u64>) -> BTreeMap<String, u64> {
    let differs = |(name, _): &(&str, Vec<u64>)| {
        let wanted = wanted.get(name).copied()?;
        (entry.size(name) != Some(wanted)).then(|| (name.to_string(), wanted))
    };
    entry.sizes().iter().filter_map(differs).collect()
}

fn keys(document: &Document) -> impl Iterator<Item = &str> {
    let entries = match document {
        Document::Map(entries) => entries.as_slice(),
        _ => &[],
    };
    entries.iter().map(|entry| entry.key.as_str())
}

fn values(document: &Document, wanted: impl Fn(&str) -> bool) -> Vec<f64> {
    let number = |key: &str| match document.get(key)? {
        Document::Int(it) => Some(*it as f64),
        Document::Number(it) => Some(*it),
        _ => None,
    };
    keys(document)
        .filter(|key| wanted(key))
        .filter_map(number)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::json;
    use crate::scenario::Scenario;

    /// The configuration file that a model of these sizes has.
    fn written(entry: &ModelEntry, kind: &Kind) -> Document {
        let mut config = Document::new()
            .with("model_type", kind.model_type)
            .with("torch_dtype", "bfloat16");
        for (size, values) in entry.sizes() {
            let Some((_, names)) = SIZES.iter().find(|(name, _)| *name == size) else {
                continue;
            };
            let name = if kind.arch == "gpt2" {
                names[names.len() - 1]
            } else {
                names[0]
            };
            config = match size {
                "tied" => config.with(name, values[0] == 1),
                _ => config.with(name, values[0]),
            };
        }
        config
    }

    #[test]
    fn every_covered_model_of_the_catalogue_is_read_from_its_configuration() {
        let mut count = 0;
        for kind in KINDS {
            for entry in catalog::models().iter().filter(|it| it.arch == kind.arch) {
                let imported = read(&written(entry, kind));
                assert_eq!(imported.problems, vec![], "{}", entry.id);
                assert!(imported.not_taken.is_empty());
                let model = &imported.scenario.model;
                let found = catalog::model(&model.id).unwrap();
                let mut sizes: BTreeMap<String, u64> = BTreeMap::new();
                for (name, values) in found.sizes() {
                    sizes.insert(name.into(), values[0]);
                }
                sizes.extend(model.dims.clone());
                for (name, values) in entry.sizes() {
                    assert_eq!(sizes.get(name), Some(&values[0]), "{} {name}", entry.id);
                }
                count += 1;
            }
        }
        assert!(count >= 60, "{count}");
    }

    #[test]
    fn what_is_not_covered_is_refused_by_name_and_what_is_not_known_is_listed() {
        #[track_caller]
        fn check(text: &str, problems: &[&str], not_taken: &[&str]) -> Scenario {
            let imported = read(&json::read(text).unwrap());
            let found: Vec<String> = imported.problems.iter().map(ToString::to_string).collect();
            assert_eq!(found, problems);
            assert_eq!(imported.not_taken, not_taken);
            imported.scenario
        }
        check(
            r#"{"model_type": "rwkv", "hidden_size": 8}"#,
            &[
                "model_type is `rwkv`; expected one of bert, camembert, gpt2, llama, mistral, qwen2, qwen3, roberta, xlm-roberta",
            ],
            &[],
        );
        check(
            r#"{"model_type": "llama", "hidden_size": 64, "num_attention_heads": "4", "vocab_size": 0, "hidden_act": "relu", "mlp_bias": true}"#,
            &[
                "hidden_act is `relu`; expected silu",
                "mlp_bias is `true`; expected false for this network",
                "num_attention_heads is `\"4\"`; expected a whole number from 1 to 10000000",
                "vocab_size is `0`; expected a whole number from 1 to 10000000",
                "num_hidden_layers is `nothing`; expected a whole number",
                "num_attention_heads is `nothing`; expected a whole number",
                "vocab_size is `nothing`; expected a whole number",
            ],
            &[],
        );
        let scenario = check(
            r#"{"model_type": "gpt2", "n_layer": 3, "n_embd": 768, "n_head": 12, "vocab_size": 1000, "n_positions": 1024,
                "n_inner": null, "embd_pdrop": 0.0, "attn_pdrop": 0, "resid_pdrop": 0, "swirl": 3}"#,
            &[],
            &["swirl"],
        );
        assert_eq!(scenario.model.dims.get("layers"), Some(&3));
        assert!(!scenario.training.dropout);
    }
}
