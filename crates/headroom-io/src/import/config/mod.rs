//! A Hugging Face `config.json`: which architecture, and in which sizes.

pub mod diffusers;
mod families;
mod heads;
mod keys;
mod layers;
mod nearest;
mod own;
mod recorded;
mod stages;
pub mod timm;
mod values;

use std::collections::BTreeMap;

use self::keys::{ACTIVATIONS, ALIKE, SIZES, WITHOUT_EFFECT};
use self::nearest::{differences, usual};
use self::values::{dropouts, keys, labels, number, shown, text};
use super::Imported;
use headroom_base::document::Document;
use headroom_catalog::{self as catalog, ModelEntry, ModelType};
use headroom_core::network as nets;
use headroom_scenario::{NameKind, Problem, settings};

/// Sizes by the catalogue's names.
type Wanted = BTreeMap<String, u64>;

/// Sizes that may be zero.
const MAY_BE_ZERO: &[&str] = &[
    "hidden_size_per_layer_input",
    "moe_layer_start_index",
    "moe_num_shared_experts",
    "num_dense_layers",
    "num_experts_per_tok",
    "num_kv_shared_layers",
    "num_local_experts",
    "shared_intermediate_size",
    "first_k_dense_replace",
    "n_shared_experts",
    "shared_expert_intermediate_size",
    "sliding_window",
    "type_vocab_size",
];

/// Whether the document is such a file.
pub fn recognises(document: &Document) -> bool {
    // Axolotl names a class of transformers by the same key, and scripts a kind of model.
    let trains = [
        "base_model",
        "model_name_or_path",
        "output_dir",
        "learning_rate",
    ];
    let trains = trains.iter().any(|key| document.get(key).is_some());
    document.get("model_type").is_some() && !trains
}

/// The default scenario with this model: the catalogue's nearest, and the sizes in which it differs.
pub fn read(document: &Document) -> Imported {
    let mut imported = Imported::default();
    let given = text(document, "model_type").unwrap_or_default();
    if let Some(recorded) = recorded::read(document, given) {
        // A graph is of one configuration; a forward function is of all.
        let runs = |kind: &ModelType| kind.name == given && nets::has(kind.arch);
        if recorded.problems.is_empty() || !catalog::model_types().iter().any(runs) {
            return recorded;
        }
    }
    let Some(kind) = covered("model_type", given, &mut imported.problems) else {
        return imported;
    };
    let kind = with_parts(document, kind);
    let mut wanted = Wanted::new();
    let mut reading = Reading {
        path: String::new(),
        problems: &mut imported.problems,
        unused_keys: &mut imported.unused_keys,
    };
    reading.part(document, kind, "", &mut wanted);
    let arch = network(document, kind, &mut imported.problems);
    own::complete(&arch, &mut wanted);
    let entries = catalog::models()
        .iter()
        .filter(|model| model.arch == arch && model.graph.is_empty());
    let sizes_known: Vec<&str> = entries
        .clone()
        .flat_map(|model| model.sizes().into_iter().map(|(name, _)| name))
        .collect();
    let vocab = wanted.get("vocab").copied();
    wanted.retain(|name, size| {
        let listed = OFF_WHERE_ABSENT.contains(&name.as_str());
        let said = listed && *size > 0 && usual(kind, name).is_some_and(|usual| usual != *size);
        said || name == "layer_vocab" && vocab != Some(*size)
            || sizes_known.contains(&name.as_str())
            || layers::is_part_of_set(name)
            || arch == "mamba" && name == "tied" && *size == 0
    });
    // Of those as near, the one that people know.
    let place = |entry: &&ModelEntry| {
        let differing = differences(entry, &wanted).len();
        (differing, catalog::usage_rank(entry))
    };
    if let Some(entry) = entries.min_by_key(place) {
        imported.set("model.id", entry.id, TOOL, "model_type");
        if let Some((key, given, has)) = stages::others(&entry.sizes(), &wanted) {
            let fewer = stages::MAY_BE_FEWER.contains(&arch.as_str()) && given < has;
            if fewer {
                imported.size("stages", given as u64, TOOL, key);
            }
            let expected = format!("a list of {has}, as the network has stages");
            let problem = Problem::new(key, format!("a list of {given}"), expected);
            imported.problems.extend((!fewer).then_some(problem));
        }
        for (name, size) in differences(entry, &wanted) {
            imported.size(&name, size, TOOL, &name);
        }
        let positions = wanted.get("ctx").copied().or_else(|| entry.size("ctx"));
        let places = positions.map(|positions| entry.tokens_of(positions));
        let sequence = imported.scenario.data.sequence;
        if let Some(places) = places.filter(|places| (1..sequence).contains(places)) {
            let key = "max_position_embeddings";
            imported.set("data.sequence", &places.to_string(), TOOL, key);
        }
    } else if imported.problems.is_empty() {
        let expected = "an architecture with a model in the catalogue";
        let problem = Problem::new("model_type", given, expected);
        imported.problems.push(problem);
    }
    // Mamba ties its head where an entry says nothing.
    if arch == "mamba" && wanted.get("tied") == Some(&0) {
        imported.size("tied", 0, TOOL, "tie_word_embeddings");
    }
    heads::read(document, &arch, &mut imported);
    let dropouts = dropouts(document);
    if !dropouts.is_empty() && dropouts.iter().all(|p| *p <= 0.0) {
        imported.set("training.dropout", "off", TOOL, "dropout");
    }
    imported
}

const TOOL: &str = "config.json";

/// Traits that forward functions read and that catalogue entries leave out where they are off.
const OFF_WHERE_ABSENT: &[&str] = &[
    "tied",
    "qk_norm",
    "v_qk_norm",
    "v_layer_norms",
    "layer_vocab",
    "drop",
];

/// Model types whose networks are one: without a window Mistral is Llama.
const ONE_NETWORK: &[(&str, &str)] = &[("mistral", "llama")];

/// The row of a type with a part of another type than usual, where there is one.
fn with_parts(document: &Document, kind: &'static ModelType) -> &'static ModelType {
    let joint = |(key, ..): &(&str, &str, &str)| {
        let given = text(document.get(key)?, "model_type")?;
        let joint = format!("{}_{given}", kind.name);
        catalog::model_types().iter().find(|row| row.name == joint)
    };
    kind.parts.iter().find_map(joint).unwrap_or(kind)
}

/// The network of a configuration whose parts may have types of their own: that of the usual parts, or one that is named by both
/// types.
fn network(document: &Document, kind: &ModelType, problems: &mut Vec<Problem>) -> String {
    let mut network = kind.arch.to_string();
    for (key, usual, _) in kind.parts {
        let inner = document.get(key);
        let given = inner.and_then(|inner| text(inner, "model_type"));
        let Some(given) = given.filter(|given| given != usual && *given != kind.name) else {
            continue;
        };
        let row = |name: &str| catalog::model_types().iter().find(|row| row.name == name);
        // One that is not known at all has been refused already.
        let Some(known) = row(given) else {
            continue;
        };
        let other = row(usual).map(|row| row.arch);
        let alike = !known.arch.is_empty() && other == Some(known.arch);
        let joint = format!("{network}_{given}");
        if nets::has(&joint) {
            network = joint;
        } else if !alike && !ONE_NETWORK.contains(&(given, usual)) {
            let expected = format!("{usual} for this network");
            problems.push(Problem::new(format!("{key}.model_type"), given, expected));
        }
    }
    network
}

/// The row of a model type; another type is refused by name, with the nearest.
fn covered(key: &str, given: &str, problems: &mut Vec<Problem>) -> Option<&'static ModelType> {
    let has_net = |kind: &&ModelType| kind.arch.is_empty() || nets::has(kind.arch);
    // The towers of Qwen3.5's two kinds are one.
    let given = match given {
        "qwen3_5_moe_vision" => "qwen3_5_vision",
        given => given,
    };
    let found = catalog::model_types()
        .iter()
        .filter(has_net)
        .find(|kind| kind.name == given);
    if found.is_none() {
        let types = catalog::model_types()
            .iter()
            .filter(has_net)
            .filter(|kind| !kind.arch.is_empty());
        let types = types.map(|kind| kind.name);
        problems.push(Problem::unknown_name(
            NameKind::Architecture,
            key,
            given,
            types,
        ));
    }
    found
}

/// One configuration, or one within another.
struct Reading<'a> {
    /// Its path, such as `text_config.`.
    path: String,
    problems: &'a mut Vec<Problem>,
    unused_keys: &'a mut Vec<String>,
}

impl Reading<'_> {
    /// Adds the sizes that the configuration gives or implies.
    fn part(&mut self, document: &Document, kind: &ModelType, prefix: &str, wanted: &mut Wanted) {
        for (key, usual, prefix) in kind.parts {
            // A tower that a model is without.
            if document.get(key) == Some(&Document::Null) && !prefix.is_empty() {
                wanted.insert(format!("{prefix}layers"), 0);
                continue;
            }
            let inner = document.get(key).cloned().unwrap_or_default();
            // A part may have the model type of the outer configuration (Qwen2-VL).
            let named = text(&inner, "model_type").filter(|name| *name != kind.name);
            let given = named.unwrap_or(usual);
            let outer = std::mem::replace(&mut self.path, format!("{key}."));
            if let Some(kind) = covered(&format!("{key}.model_type"), given, self.problems) {
                self.part(&inner, kind, prefix, wanted);
            }
            self.path = outer;
        }
        self.refuse_others(document, kind);
        let sizes = self.sizes(document, kind);
        // What a configuration of the text model says is not changed by keys around it, which older files repeat.
        let told_within = |(key, _, prefix): &(&str, &str, &str)| {
            prefix.is_empty() && matches!(document.get(key), Some(Document::Map(_)))
        };
        let told_within = kind.parts.iter().any(told_within);
        for (name, size) in sizes {
            let of_row = kind.sizes.iter().any(|(known, _)| *known == name);
            // Only sizes of the tower's row and its MLP: other keys of its file belong to other models.
            if !prefix.is_empty() && !of_row && name != "ffn" && !layers::is_part_of_set(&name) {
                continue;
            }
            if told_within && !of_row && name != "tied" && wanted.contains_key(&name) {
                continue;
            }
            // Two towers in one model: the prefix distinguishes sizes that both have.
            let shared = matches!(
                name.as_str(),
                "layers" | "hidden" | "heads" | "kv" | "head_dim" | "ffn" | "qk_norm" | "qkv_bias"
            );
            let name = if shared {
                format!("{prefix}{name}")
            } else {
                name
            };
            wanted.insert(name, size);
        }
        let is_part = |key: &str| kind.parts.iter().any(|(part, _, _)| *part == key);
        let strange = keys(document).filter(|key| !is_part(key) && !known(key, kind));
        self.unused_keys
            .extend(strange.map(|key| format!("{}{key}", self.path)));
    }

    fn refuse(&mut self, key: &str, value: impl AsRef<str>, expected: impl Into<String>) {
        let field = format!("{}{key}", self.path);
        self.problems.push(Problem::new(field, value, expected));
    }

    /// Refuses values that describe another network.
    fn refuse_others(&mut self, document: &Document, kind: &ModelType) {
        for key in ACTIVATIONS {
            if let Some(given) = text(document, key)
                && !kind.activations.is_empty()
                && !kind.activations.contains(&given)
            {
                let expected = kind.activations.join(" or ");
                self.refuse(key, given, expected);
            }
        }
        for (key, value) in kind.fixed {
            // A key of a group within is written behind the group's and a dot.
            let found = key
                .split('.')
                .try_fold(document, |group, name| group.get(name));
            let given = found.and_then(|found| match found {
                Document::List(_) => Some(recorded::listed(found)),
                found => shown(found),
            });
            if let Some(given) = given.filter(|given| given != value) {
                self.refuse(key, given, format!("{value} for this network"));
            }
        }
        let alike = ALIKE.iter().filter(|(key, _)| !own::knows(kind, key));
        for (key, like) in alike {
            if let (Some(given), Some(other)) = (document.get(key), document.get(like))
                && given != other
            {
                let expected = format!("{}, as {like}", shown(other).unwrap_or_default());
                self.refuse(key, shown(given).unwrap_or_default(), expected);
            }
        }
        for (key, given, expected) in own::contradictions(document, kind) {
            self.refuse(key, given, expected);
        }
        if matches!(document.get("mlp_only_layers"), Some(Document::List(given)) if !given.is_empty())
        {
            self.refuse("mlp_only_layers", "a list", "no layers without experts");
        }
    }

    fn sizes(&mut self, document: &Document, kind: &ModelType) -> Wanted {
        let mut sizes = Wanted::new();
        let mut rotary = None;
        for (name, value) in kind.sizes {
            match *name {
                "rotary_percent" => rotary = Some(*value as f64 / 100.0),
                name => {
                    sizes.insert(name.into(), *value);
                }
            }
        }
        let mut given = Wanted::new();
        for (size, names) in SIZES {
            for name in *names {
                if let Some(value) = self.size(document, name) {
                    given.insert((*size).into(), value);
                }
            }
        }
        if let Some(value) = text(document, "feed_forward_proj") {
            given
                .entry("gated".into())
                .or_insert(u64::from(value.starts_with("gated")));
        }
        // Sizes that the class derives from others if they are absent.
        let get = |sizes: &Wanted, name: &str| given.get(name).or_else(|| sizes.get(name)).copied();
        if let (Some(hidden), Some(heads)) = (get(&sizes, "hidden"), get(&sizes, "heads")) {
            sizes.entry("kv".into()).or_insert(heads);
            sizes
                .entry("head_dim".into())
                .or_insert(hidden / heads.max(1));
            sizes
                .entry("ffn".into())
                .or_insert(hidden.saturating_mul(4));
            if kind.arch == "opt" {
                sizes.entry("proj".into()).or_insert(hidden);
            }
        }
        if kind.arch == "t5"
            && let Some(layers) = get(&sizes, "layers")
        {
            sizes.entry("decoder_layers".into()).or_insert(layers);
        }
        if let Some(hidden) = get(&sizes, "hidden").filter(|_| kind.arch == "mamba") {
            sizes.insert("inner".into(), hidden.saturating_mul(2));
            sizes.insert("dt_rank".into(), hidden.div_ceil(16));
        }
        let one_key = document.get("multi_query") != Some(&Document::Bool(false));
        if kind.arch == "falcon" && get(&sizes, "new_block") == Some(0) {
            let heads = get(&sizes, "heads").unwrap_or(1);
            given.insert("kv".into(), if one_key { 1 } else { heads });
        }
        sizes.extend(given);
        // A text model inside another has no architecture of its own.
        let of = if kind.arch.is_empty() {
            kind.name
        } else {
            kind.arch
        };
        layers::add(document, of, &mut sizes);
        layers::add_sets(document, kind.name, &mut sizes);
        stages::add(document, kind, &mut sizes);
        layers::derive(document, kind.arch, &mut sizes);
        own::add(document, kind, &mut sizes);
        families::add(document, kind, &mut sizes);
        if let Some(labels) = labels(document) {
            sizes.insert("classes".into(), labels);
        }
        if let Some(ratio) = document.get("mask_ratio").and_then(number)
            && kind.arch == "vit_mae"
        {
            let percent = (ratio.clamp(0.0, 1.0) * 100.0).round();
            sizes.insert("mask_percent".into(), percent as u64);
        }
        // A single group means none.
        if sizes.get("groups").is_some_and(|groups| *groups <= 1) {
            sizes.insert("groups".into(), 0);
            sizes.insert("topk_groups".into(), 0);
        }
        if let (Some(each), Some(number)) = (sizes.get("moe_ffn"), sizes.get("shared_experts")) {
            let shared = each.saturating_mul(*number);
            sizes.entry("shared_ffn".into()).or_insert(shared);
        }
        if let Some(share) = rotary {
            let share = rotary_share(document).unwrap_or(share);
            let head = sizes.get("head_dim").copied().unwrap_or_default();
            sizes.insert("rotary".into(), (head as f64 * share) as u64);
        }
        sizes
    }

    /// A size; a boolean counts as 1 or 0, and `null` as 0 if it turns something off.
    fn size(&mut self, document: &Document, name: &str) -> Option<u64> {
        match document.get(name)? {
            // Gemma 4's tower of sounds has two of them; no size is read from it.
            Document::List(_) if name == "subsampling_conv_channels" => None,
            // Those of wav2vec 2.0 are held to be as usual.
            Document::List(_) if name == "conv_kernel" => None,
            // A number for each stage.
            Document::List(_) if matches!(name, "num_heads" | "num_attention_heads") => None,
            Document::List(_) if name == "image_size" && own::has_sides(document) => None,
            // A number for each layer, which all have.
            Document::List(each)
                if matches!(
                    name,
                    "intermediate_size" | "num_experts" | "moe_intermediate_size"
                ) =>
            {
                let (first, rest) = each.split_first()?;
                if rest.iter().any(|other| other != first) {
                    self.refuse(name, "several numbers", "one number for all layers");
                }
                let one = Document::new().with(name, first.clone());
                self.size(&one, name)
            }
            // A height and a width.
            Document::List(sides) if matches!(name, "image_size" | "patch_size") => {
                let (first, rest) = sides.split_first()?;
                if rest.iter().any(|side| side != first) {
                    self.refuse(name, "two numbers", "one number twice");
                }
                let square = Document::new().with(name, first.clone());
                self.size(&square, name)
            }
            Document::Null
                if matches!(
                    name,
                    "sliding_window"
                        | "q_lora_rank"
                        | "moe_latent_size"
                        | "n_group"
                        | "topk_group"
                        | "final_logit_softcapping"
                ) =>
            {
                Some(0)
            }
            Document::Null => None,
            Document::Bool(value) => Some(u64::from(*value)),
            Document::Int(value) if (1..=settings::LARGEST_SIZE.into()).contains(value) => {
                u64::try_from(*value).ok()
            }
            Document::Int(0) if MAY_BE_ZERO.contains(&name) => Some(0),
            Document::Text(value) if value == "auto" => None,
            other => {
                let shown = headroom_base::document::json::write(other);
                let expected = format!("a whole number from 1 to {}", settings::LARGEST_SIZE);
                self.refuse(name, shown.trim(), expected);
                None
            }
        }
    }
}

/// The share of a head that rotary embeddings turn, if the file has it.
fn rotary_share(document: &Document) -> Option<f64> {
    let rope = document.get("rope_parameters");
    let places = [
        rope.and_then(|rope| rope.get("partial_rotary_factor")),
        document.get("partial_rotary_factor"),
        document.get("rotary_pct"),
    ];
    places
        .into_iter()
        .flatten()
        .find_map(number)
        .filter(|share| (0.0..=1.0).contains(share))
}

fn known(key: &str, kind: &ModelType) -> bool {
    let listed = |pattern: &&str| match pattern.strip_suffix('*') {
        Some(start) => key.starts_with(start),
        None => *pattern == key,
    };
    WITHOUT_EFFECT.iter().any(listed)
        || ACTIVATIONS.contains(&key)
        || SIZES.iter().any(|(_, names)| names.contains(&key))
        || ALIKE.iter().any(|(known, _)| *known == key)
        || own::knows(kind, key)
        || families::knows(kind, key)
        || stages::knows(kind, key)
        || kind
            .fixed
            .iter()
            .any(|(known, _)| known.split('.').next() == Some(key))
        || matches!(key, "attention_bias" | "mlp_bias")
}

#[cfg(test)]
mod tests;
