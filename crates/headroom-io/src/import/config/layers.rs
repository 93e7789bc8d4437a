//! Which layers of a decoder are of which kind, and sizes that a class computes from others.

use std::collections::BTreeMap;

use headroom_base::document::Document;

use super::stages;

/// How many layers one size tells of: `LayerSet` of the decoder reads them.
const EACH: u64 = 20;

/// What attention over all tokens is called in lists of layers.
const FULL: [&str; 5] = [
    "full_attention",
    "attention",
    "full",
    "hybrid",
    "indexed_attention",
];

/// Families whose layers with attention are told one by one: no interval says it for all of their models.
const ONE_BY_ONE: [&str; 6] = [
    "bamba",
    "granitemoehybrid",
    "kimi_linear",
    "lfm2",
    "lfm2_moe",
    "zamba2",
];

/// Sets of layers by the catalogue's names: the model type, the key, and what its class has where the key is absent.
const SETS: &[(&str, &str, &str, &[u64])] = &[
    (
        "v_features",
        "qwen3_vl_vision",
        "deepstack_visual_indexes",
        &[8, 16, 24],
    ),
    (
        "v_features",
        "qwen3_vl_moe_vision",
        "deepstack_visual_indexes",
        &[8, 16, 24],
    ),
    (
        "v_global_layers",
        "qwen2_5_vl_vision",
        "fullatt_block_indexes",
        &[7, 15, 23, 31],
    ),
    (
        "v_features",
        "qwen3_omni_moe_vision_encoder",
        "deepstack_visual_indexes",
        &[8, 16, 24],
    ),
    (
        "v_global_layers",
        "qwen2_5_omni_vision_encoder",
        "fullatt_block_indexes",
        &[7, 15, 23, 31],
    ),
    (
        "v_features",
        "mllama_vision_model",
        "intermediate_layers_indices",
        &[3, 7, 15, 23, 30],
    ),
    (
        "cross_layers",
        "mllama_text_model",
        "cross_attention_layers",
        &[3, 8, 13, 18, 23, 28, 33, 38],
    ),
    (
        "global_layers",
        "deepseek_ocr2_sam_vision_model",
        "global_attn_indexes",
        &[2, 5, 8, 11],
    ),
    (
        "global_layers",
        "sam_vision_model",
        "global_attn_indexes",
        &[2, 5, 8, 11],
    ),
];

/// Whether a size is a part of a set of layers, which models may have whatever the catalogue's have.
pub(super) fn is_part_of_set(name: &str) -> bool {
    part_of(name).is_some_and(|(set, _)| {
        let is_list = stages::is_list(set);
        matches!(set, "full" | "mlp" | "moe" | "sparse")
            || is_list
            || SETS.iter().any(|(own, ..)| *own == set)
    })
}

/// The set and which twenty of its layers a size such as `full_1` tells of.
fn part_of(name: &str) -> Option<(&str, u64)> {
    let (set, part) = name.rsplit_once('_')?;
    Some((set, part.parse().ok()?))
}

/// What a size such as `v_features_0` or `depths_0` would be for an entry that lists its layers or stages.
pub(super) fn bits_of<'a>(name: &str, listed: impl Fn(&str) -> Option<&'a [u64]>) -> Option<u64> {
    let (set, part) = part_of(name)?;
    let layers = listed(set)?;
    if stages::is_list(set) {
        return layers.get(usize::try_from(part).ok()?).copied();
    }
    Some(bits(layers, part))
}

fn bits(layers: &[u64], part: u64) -> u64 {
    let own = layers.iter().filter(|layer| **layer / EACH == part);
    own.fold(0, |bits, layer| bits | 1 << (layer % EACH))
}

/// A set of layers by a rule, a bit for each layer.
pub(super) fn add_set(name: &str, holds: impl Fn(u64) -> bool, sizes: &mut BTreeMap<String, u64>) {
    let count = sizes.get("layers").copied().unwrap_or(0).min(256);
    let members: Vec<u64> = (0..count).filter(|i| holds(*i)).collect();
    for part in 0..count.div_ceil(EACH) {
        sizes.insert(format!("{name}_{part}"), bits(&members, part));
    }
}

/// The sets of layers of a model type, a bit for each layer.
pub(super) fn add_sets(document: &Document, kind: &str, sizes: &mut BTreeMap<String, u64>) {
    let of_kind = SETS.iter().filter(|(_, own, ..)| *own == kind);
    for (set, _, key, default) in of_kind {
        let number = |value: &Document| match value {
            Document::Int(value) => u64::try_from(*value).ok(),
            _ => None,
        };
        let layers: Vec<u64> = match document.get(key) {
            Some(Document::List(all)) => all.iter().filter_map(number).collect(),
            _ => default.to_vec(),
        };
        let count = sizes.get("layers").copied().unwrap_or(0).min(256);
        for part in 0..count.div_ceil(EACH) {
            sizes.insert(format!("{set}_{part}"), bits(&layers, part));
        }
    }
}

/// The layers with full attention: every n-th if they are regular, else a bit for each.
pub(super) fn add(document: &Document, arch: &str, sizes: &mut BTreeMap<String, u64>) {
    if arch == "nemotron_h" {
        by_pattern(document, sizes);
        return;
    }
    let count = sizes.get("layers").copied().unwrap_or(0).min(256);
    let one_by_one = ONE_BY_ONE.contains(&arch);
    // Encoders have their first layers' kinds elsewhere.
    let told = told(document, count, arch).filter(|_| arch != "modernbert");
    let Some(full) = told else {
        return;
    };
    let is_every = |n: u64| (0..count).all(|i| full.contains(&i) == (i + 1).is_multiple_of(n));
    let regular = (1..=count.max(1)).find(|n| is_every(*n));
    match regular.filter(|_| !one_by_one) {
        Some(interval) if sizes.contains_key("global_every") => {
            sizes.insert("global_every".into(), interval);
        }
        Some(interval) if interval == of_family(arch) => {}
        _ => {
            for part in 0..count.div_ceil(EACH) {
                sizes.insert(format!("full_{part}"), bits(&full, part));
            }
        }
    }
}

/// The layers of Nemotron-H by the letters of its pattern: attention, an MLP or experts by themselves, or else a mixer.
fn by_pattern(document: &Document, sizes: &mut BTreeMap<String, u64>) {
    let letter = |kind: &Document| match kind {
        Document::Text(kind) if FULL.contains(&kind.as_str()) => '*',
        Document::Text(kind) if kind == "mlp" => '-',
        Document::Text(kind) if kind == "moe" => 'E',
        _ => 'M',
    };
    let list = ["layers_block_type", "layer_types"];
    let list = list.iter().find_map(|name| document.get(name));
    let letters: Vec<char> = match (list, document.get("hybrid_override_pattern")) {
        (Some(Document::List(kinds)), _) if !kinds.is_empty() => kinds.iter().map(letter).collect(),
        (_, Some(Document::Text(pattern))) if !pattern.is_empty() => pattern.chars().collect(),
        // The class's own.
        _ => "ME*-".chars().collect(),
    };
    let count = letters.len().min(256) as u64;
    sizes.insert("layers".into(), count);
    for (name, own) in [("full", '*'), ("mlp", '-'), ("moe", 'E')] {
        let numbered = (0..count).zip(&letters);
        let members: Vec<u64> = (numbered.filter(|(_, letter)| **letter == own))
            .map(|(i, _)| i)
            .collect();
        for part in 0..count.div_ceil(EACH) {
            sizes.insert(format!("{name}_{part}"), bits(&members, part));
        }
    }
    // Without a layer of experts there are no sizes of theirs.
    if !letters.contains(&'E') {
        for name in ["experts", "topk", "moe_ffn", "shared_ffn", "latent"] {
            sizes.remove(name);
        }
    }
}

/// Every how many layers a family has full attention where its catalogue entries name no interval.
fn of_family(arch: &str) -> u64 {
    match arch {
        "gemma2" | "gpt_oss" => 2,
        "llama4_text" => 4,
        _ => 1,
    }
}

/// The numbers of the layers with full attention, if the file tells of layers.
fn told(document: &Document, count: u64, arch: &str) -> Option<Vec<u64>> {
    let names = ["layer_types", "layers_block_type"];
    let list = names.iter().find_map(|name| match document.get(name) {
        Some(Document::List(kinds)) if !kinds.is_empty() => Some(kinds),
        _ => None,
    });
    if let Some(kinds) = list {
        let is_full =
            |kind: &Document| matches!(kind, Document::Text(kind) if FULL.contains(&kind.as_str()));
        let numbered = (0..count).zip(kinds);
        return Some(
            numbered
                .filter(|(_, kind)| is_full(kind))
                .map(|(i, _)| i)
                .collect(),
        );
    }
    let indices = ["full_attn_idxs", "attn_layer_indices"];
    match indices.iter().find_map(|key| document.get(key)) {
        Some(Document::List(all)) if ONE_BY_ONE.contains(&arch) => {
            let number = |value: &Document| match value {
                Document::Int(value) => u64::try_from(*value).ok().filter(|value| *value < count),
                _ => None,
            };
            Some(all.iter().filter_map(number).collect())
        }
        // No layer has attention unless the file names it.
        _ if arch == "bamba" => Some(Vec::new()),
        _ => None,
    }
}

/// Sizes that classes compute from others.
pub(super) fn derive(document: &Document, arch: &str, sizes: &mut BTreeMap<String, u64>) {
    let get = |sizes: &BTreeMap<String, u64>, name: &str| sizes.get(name).copied();
    match arch {
        // `Lfm2MLP.__init__`.
        "lfm2" => {
            let ffn = match document.get("block_ff_dim") {
                Some(Document::Int(given)) => u64::try_from(*given).ok(),
                _ => get(sizes, "ffn"),
            };
            let adjusts = document.get("block_auto_adjust_ff_dim") != Some(&Document::Bool(false));
            if let Some(ffn) = ffn.filter(|_| adjusts) {
                let factor = match document.get("block_ffn_dim_multiplier") {
                    Some(Document::Number(factor)) => *factor,
                    Some(Document::Int(factor)) => *factor as f64,
                    _ => 1.0,
                };
                let multiple = match document.get("block_multiple_of") {
                    Some(Document::Int(multiple)) => u64::try_from(*multiple).unwrap_or(256).max(1),
                    _ => 256,
                };
                let scaled = ((2 * ffn / 3) as f64 * factor.clamp(0.0, 16.0)) as u64;
                sizes.insert("ffn".into(), scaled.div_ceil(multiple) * multiple);
            } else if let Some(ffn) = ffn {
                sizes.insert("ffn".into(), ffn);
            }
            tie(document, sizes);
        }
        "lfm2_moe" => tie(document, sizes),
        "granitemoehybrid" => {
            let rope =
                document.get("position_embedding_type") == Some(&Document::Text("rope".into()));
            sizes.insert("rope".into(), u64::from(rope));
            heads_of_mamba(document, sizes);
        }
        "falcon_h1" | "bamba" => heads_of_mamba(document, sizes),
        // Its experts have the width that other families' dense layers have.
        "minimax_m2" => {
            if let Some(ffn) = get(sizes, "ffn") {
                sizes.insert("moe_ffn".into(), ffn);
            }
        }
        "wav2vec2" | "hubert" | "unispeech_sat" | "wavlm" => sound(document, arch, sizes),
        "pegasus" | "m2m_100" | "blenderbot" => {
            if let Some(Document::Text(activation)) = document.get("activation_function") {
                sizes.insert("relu".into(), u64::from(activation == "relu"));
            }
        }
        "ernie" if document.get("use_task_id") != Some(&Document::Bool(true)) => {
            sizes.insert("task_types".into(), 0);
        }
        "swin" | "swinv2" => {
            if let Some(embed) = sizes.remove("hidden") {
                sizes.insert("embed".into(), embed);
            }
        }
        "resnet_hf" => {
            let is = |key: &str| document.get(key) == Some(&Document::Bool(true));
            let basic = document.get("layer_type") == Some(&Document::Text("basic".into()));
            sizes.insert("bottleneck".into(), u64::from(!basic));
            sizes.insert(
                "first_halves".into(),
                u64::from(is("downsample_in_first_stage")),
            );
            sizes.insert(
                "halves_early".into(),
                u64::from(is("downsample_in_bottleneck")),
            );
        }
        "dinov2_hf" => {
            if let (Some(Document::Int(ratio)), Some(hidden)) =
                (document.get("mlp_ratio"), get(sizes, "hidden"))
            {
                let ratio = u64::try_from(*ratio).unwrap_or(4);
                sizes.insert("ffn".into(), hidden.saturating_mul(ratio));
            }
        }
        // Without the block there are no experts, whatever their sizes.
        "gemma4_text" => {
            wider_layers(document, sizes);
            if document.get("enable_moe_block") != Some(&Document::Bool(true)) {
                for name in ["experts", "topk", "moe_ffn"] {
                    sizes.remove(name);
                }
            }
            if get(sizes, "k_eq_v") != Some(1)
                && let Some(kv) = get(sizes, "kv")
            {
                sizes.insert("global_kv".into(), kv);
            }
        }
        _ => {}
    }
}

/// What layers with full attention have other than the rest (`per_layer_config`, as transformers 5 writes it).
fn wider_layers(document: &Document, sizes: &mut BTreeMap<String, u64>) {
    let Some(Document::Map(layers)) = document.get("per_layer_config") else {
        return;
    };
    for layer in layers {
        for (key, size) in [
            ("head_dim", "global_head_dim"),
            ("num_key_value_heads", "global_kv"),
        ] {
            if let Some(Document::Int(value)) = layer.value.get(key)
                && let Ok(value) = u64::try_from(*value)
            {
                sizes.insert(size.into(), value);
            }
        }
    }
}

/// Traits of networks over sound, and the head of `…ForSequenceClassification`.
fn sound(document: &Document, arch: &str, sizes: &mut BTreeMap<String, u64>) {
    let is = |key: &str, value: &str| document.get(key) == Some(&Document::Text(value.into()));
    sizes.insert(
        "conv_norms".into(),
        u64::from(is("feat_extract_norm", "layer")),
    );
    let rate = |key: &str, usual: f64| match document.get(key) {
        Some(Document::Number(rate)) => *rate,
        Some(Document::Int(rate)) => *rate as f64,
        _ => usual,
    };
    let masks = rate("mask_time_prob", 0.05) > 0.0 || rate("mask_feature_prob", 0.0) > 0.0;
    let always = arch == "unispeech_sat";
    sizes.insert("mask_embed".into(), u64::from(masks || always));
}

/// `tie_embedding`, an older name.
fn tie(document: &Document, sizes: &mut BTreeMap<String, u64>) {
    if let Some(Document::Bool(tied)) = document.get("tie_embedding") {
        sizes.insert("tied".into(), u64::from(*tied));
    }
}

/// The width of Mamba's heads where the file leaves it to the class.
fn heads_of_mamba(document: &Document, sizes: &mut BTreeMap<String, u64>) {
    let expand = match document.get("mamba_expand") {
        Some(Document::Int(expand)) => u64::try_from(*expand).unwrap_or(2),
        _ => 2,
    };
    let hidden = sizes.get("hidden").copied().unwrap_or(0);
    let inner = sizes
        .remove("m_inner")
        .unwrap_or(hidden.saturating_mul(expand));
    let heads = sizes.get("m_heads").copied().unwrap_or(1).max(1);
    let given = matches!(
        document.get("mamba_d_head"),
        Some(Document::Int(_) | Document::Number(_))
    );
    if !given {
        sizes.insert("m_head_dim".into(), inner / heads);
    }
}
