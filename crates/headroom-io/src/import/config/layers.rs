//! Which layers of a decoder are of which kind, and sizes that a class computes from others.

use std::collections::BTreeMap;

use headroom_base::document::Document;

/// How many layers one size tells of: `LayerSet` of the decoder reads them.
const EACH: u64 = 20;

/// What attention over all tokens is called in lists of layers.
const FULL: [&str; 4] = ["full_attention", "attention", "full", "hybrid"];

/// Families whose layers with attention are told one by one: no interval says it for all of their models.
const ONE_BY_ONE: [&str; 3] = ["granitemoehybrid", "lfm2", "lfm2_moe"];

/// Whether a size is a part of a set of layers, which models may have whatever the catalogue's have.
pub(super) fn is_part_of_set(name: &str) -> bool {
    name.strip_prefix("full_")
        .is_some_and(|part| part.bytes().all(|digit| digit.is_ascii_digit()))
}

/// The layers with full attention: every n-th if they are regular, else a bit for each.
pub(super) fn add(document: &Document, arch: &str, sizes: &mut BTreeMap<String, u64>) {
    let count = sizes.get("layers").copied().unwrap_or(0).min(256);
    let one_by_one = ONE_BY_ONE.contains(&arch);
    // Encoders have their first layers' kinds elsewhere.
    let told = told(document, count, one_by_one).filter(|_| arch != "modernbert");
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
                let own = full.iter().filter(|layer| **layer / EACH == part);
                let bits = own.fold(0, |bits, layer| bits | 1 << (layer % EACH));
                sizes.insert(format!("full_{part}"), bits);
            }
        }
    }
}

/// Every how many layers a family has full attention where its catalogue entries name no interval.
fn of_family(arch: &str) -> u64 {
    match arch {
        "gemma2" | "gpt_oss" => 2,
        _ => 1,
    }
}

/// The numbers of the layers with full attention, if the file tells of layers.
fn told(document: &Document, count: u64, one_by_one: bool) -> Option<Vec<u64>> {
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
    match document.get("full_attn_idxs") {
        Some(Document::List(all)) if one_by_one => {
            let number = |value: &Document| match value {
                Document::Int(value) => u64::try_from(*value).ok().filter(|value| *value < count),
                _ => None,
            };
            Some(all.iter().filter_map(number).collect())
        }
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
        "falcon_h1" => heads_of_mamba(document, sizes),
        // Without the block there are no experts, whatever their sizes.
        "gemma4_text" => {
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
