//! Sizes that single families of text models tell of by lists, by groups within, or by a rule of their class.

use std::collections::BTreeMap;

use headroom_base::document::Document;
use headroom_catalog::ModelType;

use super::layers;
use super::values::number;

/// The hybrid layers of Zamba 2 where a file lists none.
const ZAMBA2_HYBRID: [u64; 9] = [6, 12, 18, 24, 30, 36, 42, 47, 51];

/// Whether a family reads this key.
pub(super) fn knows(kind: &ModelType, key: &str) -> bool {
    match kind.name {
        "gemma3n_text" => {
            key == "activation_sparsity_pattern"
                || matches!(key, "altup_coef_clip" | "altup_lr_multiplier")
        }
        "kimi_linear" => key == "linear_attn_config",
        "afmoe" => matches!(
            key,
            "route_scale" | "route_norm" | "score_func" | "load_balance_coeff"
        ),
        "zamba2" => matches!(
            key,
            "attention_head_dim"
                | "attention_hidden_size"
                | "hybrid_layer_ids"
                | "kv_channels"
                | "mamba_headdim"
                | "num_query_groups"
                | "use_mem_eff_path"
        ),
        _ => false,
    }
}

/// Adds what these say.
pub(super) fn add(document: &Document, kind: &ModelType, sizes: &mut BTreeMap<String, u64>) {
    let get = |sizes: &BTreeMap<String, u64>, name: &str| sizes.get(name).copied();
    match kind.name {
        "deepseek_v32" | "glm_moe_dsa" | "kimi_linear" => {
            if let Some(Document::List(kinds)) = document.get("mlp_layer_types") {
                let is_dense =
                    |kind: &&Document| matches!(kind, Document::Text(kind) if kind == "dense");
                let dense = kinds.iter().take_while(is_dense).count() as u64;
                sizes.insert("dense_layers".into(), dense);
            }
            if kind.name == "kimi_linear" {
                kimi(document, sizes);
            }
        }
        "gemma3n_text" => {
            let layers = get(sizes, "layers").unwrap_or(35);
            let sparse = match document.get("activation_sparsity_pattern") {
                Some(Document::List(shares)) => {
                    let passes = |share: &&Document| number(share).is_some_and(|share| share > 0.0);
                    shares.iter().take_while(passes).count() as u64
                }
                Some(share) if number(share).is_some() => {
                    let all = number(share).is_some_and(|share| share > 0.0);
                    if all { layers } else { 0 }
                }
                // The class's own.
                _ if layers > 10 => 10,
                _ => 0,
            };
            sizes.insert("sparse_gates".into(), sparse);
        }
        // Experts and the MLP for every token have one width.
        "hunyuan_v1_moe" => {
            if let Some(ffn) = get(sizes, "ffn") {
                sizes.insert("moe_ffn".into(), ffn);
                sizes.insert("shared_ffn".into(), ffn);
            }
        }
        "zamba2" => {
            let hidden = get(sizes, "hidden").unwrap_or(2560);
            let expand = match document.get("mamba_expand") {
                Some(Document::Int(expand)) => u64::try_from(*expand).unwrap_or(2),
                _ => 2,
            };
            let heads = get(sizes, "m_heads").unwrap_or(8).max(1);
            sizes.insert("m_head_dim".into(), hidden.saturating_mul(expand) / heads);
            if !sizes.contains_key("full_0") {
                layers::add_set("full", |i| ZAMBA2_HYBRID.contains(&i), sizes);
            }
        }
        _ => {}
    }
}

/// `linear_attn_config` counts layers from one; without it and a list, every fourth after the first has full attention.
fn kimi(document: &Document, sizes: &mut BTreeMap<String, u64>) {
    let whole = |value: &Document| match value {
        Document::Int(value) => u64::try_from(*value).ok(),
        _ => None,
    };
    let inner = document.get("linear_attn_config");
    for (key, size) in [
        ("head_dim", "delta_dim"),
        ("num_heads", "delta_heads"),
        ("short_conv_kernel_size", "delta_conv"),
    ] {
        if let Some(value) = inner.and_then(|inner| inner.get(key)).and_then(whole) {
            sizes.insert(size.into(), value);
        }
    }
    if sizes.contains_key("full_0") {
        return;
    }
    let listed = inner.and_then(|inner| inner.get("full_attn_layers"));
    match listed {
        Some(Document::List(all)) => {
            let full: Vec<u64> = all.iter().filter_map(whole).collect();
            layers::add_set("full", |i| full.contains(&(i + 1)), sizes);
        }
        _ => layers::add_set("full", |i| i > 0 && i.is_multiple_of(4), sizes),
    }
}
