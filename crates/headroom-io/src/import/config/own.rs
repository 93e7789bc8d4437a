//! Sizes and traits that single families have, each by a key of its own.

use std::collections::BTreeMap;

use headroom_base::document::Document;
use headroom_catalog::ModelType;

use super::layers;
use super::values::{number, text};

/// The architecture (of a part, the model type), the key and the catalogue's name: numbers as they are, a boolean as 1 or 0.
const KEYS: &[(&str, &str, &str)] = &[
    ("afmoe", "mup_enabled", "mup"),
    ("afmoe", "num_shared_experts", "shared_experts"),
    ("ast", "frequency_stride", "f_stride"),
    ("ast", "max_length", "frames"),
    ("ast", "time_stride", "t_stride"),
    ("aya_vision", "alignment_intermediate_size", "aligned"),
    ("aya_vision", "downsample_factor", "merge"),
    ("beit_hf", "use_absolute_position_embeddings", "absolute"),
    ("beit_hf", "use_mask_token", "mask_token"),
    ("beit_hf", "use_relative_position_bias", "relative"),
    ("blip_2", "num_query_tokens", "queries"),
    ("blip_2_qformer", "cross_attention_frequency", "q_every"),
    ("csm", "num_codebooks", "codebooks"),
    ("csm", "text_vocab_size", "text_vocab"),
    ("deepseek_ocr2_sam_vision_model", "mlp_dim", "ffn"),
    ("deepseek_ocr2_sam_vision_model", "output_channels", "neck"),
    ("d_fine", "decoder_attention_heads", "decoder_heads"),
    ("d_fine", "decoder_ffn_dim", "decoder_ffn"),
    ("d_fine", "encoder_hidden_dim", "encoder_hidden"),
    ("d_fine", "freeze_backbone_batch_norms", "frozen_norms"),
    ("d_fine", "learn_initial_query", "learned_queries"),
    ("d_fine", "max_num_bins", "bins"),
    ("d_fine", "num_denoising", "denoising"),
    ("d_fine", "num_feature_levels", "levels"),
    ("d_fine", "num_queries", "queries"),
    (
        "deformable_detr",
        "decoder_attention_heads",
        "decoder_heads",
    ),
    ("deformable_detr", "decoder_ffn_dim", "decoder_ffn"),
    ("deformable_detr", "decoder_n_points", "decoder_points"),
    ("deformable_detr", "encoder_n_points", "points"),
    ("deformable_detr", "num_queries", "queries"),
    ("deepseek_v32", "index_head_dim", "index_dim"),
    ("deepseek_v32", "index_n_heads", "index_heads"),
    ("deepseek_v32", "index_topk", "index_topk"),
    ("depth_anything", "fusion_hidden_size", "fusion"),
    ("depth_anything", "head_hidden_size", "head_hidden"),
    ("detr", "num_queries", "queries"),
    ("dinov2_hf", "num_register_tokens", "registers"),
    ("dinov2_hf", "use_swiglu_ffn", "swiglu"),
    ("dinov3", "key_bias", "k_bias"),
    ("dinov3", "mlp_bias", "mlp_bias"),
    ("dinov3", "num_register_tokens", "registers"),
    ("dinov3", "proj_bias", "o_bias"),
    ("dinov3", "query_bias", "q_bias"),
    ("dinov3", "use_gated_mlp", "gated"),
    ("dinov3", "value_bias", "v_bias"),
    ("gemma3n_text", "altup_num_inputs", "streams"),
    ("gemma3n_text", "laurel_rank", "laurel"),
    ("glm_moe_dsa", "index_head_dim", "index_dim"),
    ("glm_moe_dsa", "index_n_heads", "index_heads"),
    ("glm_moe_dsa", "index_topk", "index_topk"),
    ("grounding_dino", "decoder_attention_heads", "decoder_heads"),
    ("dpt", "fusion_hidden_size", "fusion"),
    ("grounding_dino", "decoder_ffn_dim", "decoder_ffn"),
    ("grounding_dino", "decoder_n_points", "decoder_points"),
    ("grounding_dino", "max_text_len", "text_len"),
    ("grounding_dino", "num_queries", "queries"),
    ("grounding_dino", "encoder_n_points", "points"),
    ("hgnet_v2", "use_learnable_affine_block", "affine"),
    ("hunyuan_v1_moe", "moe_topk", "topk"),
    ("jamba", "mamba_dt_rank", "dt_rank"),
    ("jamba", "mamba_expand", "expand"),
    ("kimi_linear", "linear_head_dim", "delta_dim"),
    ("kimi_linear", "linear_num_heads", "delta_heads"),
    ("kimi_linear", "num_experts_per_token", "topk"),
    ("kimi_linear", "num_shared_experts", "shared_experts"),
    ("layoutlmv3", "coordinate_size", "coordinate"),
    ("layoutlmv3", "input_size", "img"),
    ("layoutlmv3", "shape_size", "shape"),
    ("led", "max_decoder_position_embeddings", "ctx"),
    ("led", "max_encoder_position_embeddings", "encoder_ctx"),
    ("lfm2_vl", "downsample_factor", "merge"),
    ("lfm2_vl", "projector_bias", "proj_bias"),
    ("lfm2_vl", "projector_hidden_size", "projected"),
    ("lfm2_vl", "projector_use_layernorm", "proj_norm"),
    ("llama4_text", "intermediate_size_mlp", "dense_ffn"),
    ("llama4_text", "interleave_moe_layer_step", "moe_every"),
    ("llama4_vision_model", "projector_input_dim", "proj_in"),
    ("llama4_vision_model", "projector_output_dim", "proj_out"),
    ("mask2former", "dim_feedforward", "decoder_ffn"),
    ("mask2former", "hidden_dim", "hidden"),
    ("mask2former", "num_queries", "queries"),
    ("mask2former", "train_num_points", "points"),
    ("moonshine", "decoder_num_attention_heads", "decoder_heads"),
    ("moonshine", "decoder_num_hidden_layers", "decoder_layers"),
    ("moonshine", "encoder_num_attention_heads", "heads"),
    ("moonshine", "encoder_num_hidden_layers", "layers"),
    ("moonshine", "pad_head_dim_to_multiple_of", "pad"),
    ("parakeet_encoder", "attention_bias", "bias"),
    ("patchtst", "context_length", "steps_in"),
    ("patchtst", "num_input_channels", "channels"),
    ("patchtst", "patch_length", "patch"),
    ("patchtst", "patch_stride", "p_stride"),
    ("patchtst", "prediction_length", "steps_out"),
    ("phimoe", "lm_head_bias", "head_bias"),
    ("regnet", "downsample_in_first_stage", "first_halves"),
    ("regnet", "groups_width", "group"),
    ("rf_detr", "c2f_num_blocks", "fusion_blocks"),
    ("rf_detr", "decoder_cross_attention_heads", "decoder_heads"),
    ("rf_detr", "decoder_ffn_dim", "decoder_ffn"),
    ("rf_detr", "decoder_n_points", "points"),
    ("rf_detr", "decoder_self_attention_heads", "heads"),
    ("rf_detr", "group_detr", "query_groups"),
    ("rf_detr", "num_queries", "queries"),
    ("rf_detr_dinov2", "image_size", "table"),
    ("rf_detr_dinov2", "num_windows", "windows"),
    ("rt_detr", "decoder_attention_heads", "decoder_heads"),
    ("rt_detr", "decoder_ffn_dim", "decoder_ffn"),
    ("rt_detr", "decoder_n_points", "points"),
    ("rt_detr", "encoder_hidden_dim", "encoder_hidden"),
    ("rt_detr", "freeze_backbone_batch_norms", "frozen_norms"),
    ("rt_detr", "learn_initial_query", "learned_queries"),
    ("rt_detr", "num_denoising", "denoising"),
    ("rt_detr", "num_queries", "queries"),
    ("rt_detr_v2", "decoder_attention_heads", "decoder_heads"),
    ("rt_detr_v2", "decoder_ffn_dim", "decoder_ffn"),
    ("rt_detr_v2", "decoder_n_points", "points"),
    ("rt_detr_v2", "encoder_hidden_dim", "encoder_hidden"),
    ("rt_detr_v2", "freeze_backbone_batch_norms", "frozen_norms"),
    ("rt_detr_v2", "learn_initial_query", "learned_queries"),
    ("rt_detr_v2", "num_denoising", "denoising"),
    ("rt_detr_v2", "num_queries", "queries"),
    ("sam_vision_model", "mlp_dim", "ffn"),
    ("segformer", "decoder_hidden_size", "decoder"),
    ("siglip2_text_model", "projection_size", "proj"),
    ("siglip2_vision_model", "num_patches", "patches"),
    ("speecht5", "decoder_attention_heads", "decoder_heads"),
    ("speecht5", "decoder_ffn_dim", "decoder_ffn"),
    ("speecht5", "encoder_max_relative_position", "distances"),
    ("speecht5", "max_speech_positions", "speech_ctx"),
    ("speecht5", "max_text_positions", "ctx"),
    ("speecht5", "reduction_factor", "factor"),
    ("speecht5", "speaker_embedding_dim", "speaker"),
    ("speecht5", "speech_decoder_postnet_kernel", "post_kernel"),
    ("speecht5", "speech_decoder_postnet_layers", "post_layers"),
    ("speecht5", "speech_decoder_postnet_units", "post_width"),
    ("speecht5", "speech_decoder_prenet_layers", "pre_layers"),
    ("speecht5", "speech_decoder_prenet_units", "pre_width"),
    ("videomae", "num_frames", "frames"),
    ("videomae", "qv_bias", "qv_bias"),
    ("videomae", "tubelet_size", "tubelet"),
    ("videomae", "use_mean_pooling", "mean_pooling"),
    ("vjepa2", "crop_size", "img"),
    ("vjepa2", "frames_per_clip", "frames"),
    ("vjepa2", "num_pooler_layers", "pooler_layers"),
    ("vjepa2", "pred_hidden_size", "p_hidden"),
    ("vjepa2", "pred_num_hidden_layers", "p_layers"),
    ("vjepa2", "pred_num_mask_tokens", "p_mask_tokens"),
    ("vjepa2", "qkv_bias", "qkv_bias"),
    ("vjepa2", "tubelet_size", "tubelet"),
    ("wav2vec2-bert", "conv_depthwise_kernel_size", "kernel"),
    ("wav2vec2-bert", "feature_projection_input_dim", "features"),
    ("yolos", "num_detection_tokens", "queries"),
    ("yolos", "use_mid_position_embeddings", "middle"),
    ("xlnet", "d_head", "head_dim"),
    ("xlnet", "d_inner", "ffn"),
    ("zamba2", "adapter_rank", "adapter_rank"),
    ("zamba2", "mamba_ngroups", "m_groups"),
    ("zamba2", "n_mamba_heads", "m_heads"),
    ("zamba2", "num_mem_blocks", "mem_blocks"),
    ("zamba2", "use_mem_rope", "mem_rope"),
    (
        "zamba2",
        "use_shared_attention_adapter",
        "attention_adapters",
    ),
];

/// Channels of RT-DETR's maps as they go into its encoder and its decoder.
const ENCODER_CHANNELS: &str = "encoder_in_channels";
const DECODER_CHANNELS: &str = "decoder_in_channels";

/// Sizes that a family computes from other values (`add`).
#[cfg(test)]
const COMPUTED: &[&str] = &[
    "sparse_gates",
    "bottleneck",
    "down",
    "expansion_percent",
    "fusion_blocks",
    "guided",
    "img_w",
    "outs",
    "table",
    "distances",
    "drop",
    "encoder_heads",
    "decoder_heads",
    "paths",
    "pooled",
    "reach",
    "p_ffn",
    "ratio_percent",
    "squeezes",
    "v_headless",
    "v_layer_norms",
    "width_percent",
];

/// Whether a size is one of these.
#[cfg(test)]
pub(super) fn has(name: &str) -> bool {
    COMPUTED.contains(&name) || KEYS.iter().any(|(_, _, own)| *own == name)
}

/// Whether the height and the width of pictures may differ.
pub(super) fn has_sides(document: &Document) -> bool {
    text(document, "model_type") == Some("yolos")
}

/// Whether a family reads this key.
pub(super) fn knows(kind: &ModelType, key: &str) -> bool {
    let computed = match kind.name {
        "deepseek_ocr2_sam_vision_model" => key == "downsample_channels",
        "csm" => matches!(
            key,
            "codec_config" | "codebook_pad_token_id" | "codebook_eos_token_id"
        ),
        "d_fine" => {
            matches!(
                key,
                "depth_mult" | "hidden_expansion" | "encode_proj_layers" | "reg_scale" | "up"
            ) || matches!(key, ENCODER_CHANNELS | DECODER_CHANNELS)
        }
        "depth_anything" => key == "reassemble_hidden_size",
        "hgnet_v2" => key == "stage_in_channels",
        "dpt" => matches!(key, "backbone_config" | "backbone_out_indices"),
        "led" | "longformer" => key == "attention_window",
        "jamba" => key.starts_with("attn_layer_") || key.starts_with("expert_layer_"),
        "llama4_text" => key == "moe_layers",
        "mask2former" => key == "encoder_feedforward_dim",
        "mobilenet_v2" => key == "depth_multiplier",
        "patchtst" => key == "pooling_type",
        "regnet" | "rt_detr_resnet" => key == "layer_type",
        "rf_detr" => key == "hidden_expansion",
        "rt_detr" | "rt_detr_v2" => {
            key == "hidden_expansion" || matches!(key, ENCODER_CHANNELS | DECODER_CHANNELS)
        }
        "speecht5" => key.starts_with("guided_attention_") || key == "use_guided_attention_loss",
        "vjepa2" => key == "pred_mlp_ratio",
        "wav2vec2-bert" => key.ends_with("_max_position_embeddings"),
        _ => false,
    };
    computed || of(kind).any(|(_, name, _)| *name == key)
}

fn of(
    kind: &ModelType,
) -> impl Iterator<Item = &'static (&'static str, &'static str, &'static str)> {
    let own = [kind.name, kind.arch];
    KEYS.iter().filter(move |(family, ..)| own.contains(family))
}

/// Adds what a family's own keys say.
pub(super) fn add(document: &Document, kind: &ModelType, sizes: &mut BTreeMap<String, u64>) {
    for (_, key, size) in of(kind) {
        let value = match document.get(key) {
            Some(Document::Bool(value)) => Some(u64::from(*value)),
            Some(Document::Int(value)) => u64::try_from(*value).ok(),
            _ => None,
        };
        if let Some(value) = value {
            sizes.insert((*size).into(), value);
        }
    }
    let rate = |key: &str| document.get(key).and_then(number);
    match kind.name {
        "beit" => {
            let drops = rate("drop_path_rate").is_none_or(|rate| rate > 0.0);
            sizes.insert("paths".into(), u64::from(drops));
        }
        "deberta" => {
            let ctx = rate("max_position_embeddings").unwrap_or(512.0);
            let reach = rate("max_relative_positions").filter(|reach| *reach >= 1.0);
            sizes.insert("reach".into(), reach.unwrap_or(ctx).clamp(1.0, 1e6) as u64);
        }
        "esm" => {
            let usual = ["hidden_dropout_prob", "attention_probs_dropout_prob"];
            let drops = usual.iter().any(|key| rate(key).is_some_and(|p| p > 0.0));
            sizes.insert("drop".into(), u64::from(drops));
        }
        "internvl_vision" => {
            let normed = document.get("use_qk_norm") == Some(&Document::Bool(true));
            let plain = text(document, "norm_type") != Some("rms_norm");
            sizes.insert("v_layer_norms".into(), u64::from(normed && plain));
        }
        "deepseek_ocr2_sam_vision_model" => {
            let first =
                listed(document, "downsample_channels").and_then(|all| all.first().copied());
            sizes.insert("down".into(), first.unwrap_or(512));
        }
        "deepseek_ocr2_text" => {
            let dense = Document::Text("dense".into());
            let leading = match document.get("mlp_layer_types") {
                Some(Document::List(kinds)) => {
                    kinds.iter().take_while(|kind| **kind == dense).count()
                }
                _ => 0,
            };
            sizes.insert("dense_layers".into(), leading as u64);
        }
        "moonshine" => {
            if let (Some(hidden), Some(heads)) = (sizes.get("hidden"), sizes.get("heads")) {
                let head_dim = hidden / (*heads).max(1);
                sizes.insert("head_dim".into(), head_dim);
            }
        }
        "d_fine" => {
            let share = rate("hidden_expansion").unwrap_or(1.0).clamp(0.0, 100.0);
            sizes.insert("expansion_percent".into(), (share * 100.0).round() as u64);
            let depth = rate("depth_mult").unwrap_or(1.0).clamp(0.0, 100.0);
            let blocks = (3.0 * depth).round_ties_even() as u64;
            sizes.insert("fusion_blocks".into(), blocks);
            // One number for all maps.
            if let Some(points) = whole(document, "decoder_n_points") {
                let levels = whole(document, "num_feature_levels").unwrap_or(3).min(16);
                add_list("points", vec![points; levels as usize], sizes);
            }
        }
        "patchtst" => {
            let whole = document.get("pooling_type") == Some(&Document::Null);
            sizes.insert("pooled".into(), u64::from(!whole));
        }
        "deformable_detr" => {
            let drops = rate("dropout").is_none_or(|rate| rate > 0.0);
            sizes.insert("drop".into(), u64::from(drops));
        }
        "depth_anything" => {
            let backbone = document.get("backbone_config");
            let layers = backbone.and_then(|inner| whole(inner, "num_hidden_layers"));
            let layers = layers.unwrap_or(12);
            let outs = backbone.and_then(|inner| listed(inner, "out_indices"));
            let last = || (layers.saturating_sub(3)..=layers).collect();
            add_list("outs", outs.unwrap_or_else(last), sizes);
        }
        // These count layers from zero.
        "dpt" => {
            let outs = listed(document, "backbone_out_indices");
            let outs = outs.unwrap_or_else(|| vec![2, 5, 8, 11]);
            let outs = outs.into_iter().map(|out| out.saturating_add(1));
            add_list("outs", outs.collect(), sizes);
        }
        "jamba" => {
            let hidden = sizes.get("hidden").copied().unwrap_or(4096);
            sizes
                .entry("dt_rank".into())
                .or_insert_with(|| hidden.div_ceil(16));
            let nth = |period: &str, offset: &str, usual: [u64; 2]| {
                let whole = |key, usual| whole(document, key).unwrap_or(usual);
                let (period, offset) = (whole(period, usual[0]), whole(offset, usual[1]));
                move |i: u64| i % period.max(1) == offset
            };
            let attends = nth("attn_layer_period", "attn_layer_offset", [8, 4]);
            layers::add_set("full", attends, sizes);
            let mixes = nth("expert_layer_period", "expert_layer_offset", [2, 1]);
            let several = sizes.get("experts").is_none_or(|experts| *experts > 1);
            layers::add_set("sparse", |i| several && mixes(i), sizes);
        }
        "led" | "longformer" => {
            let widest = match document.get("attention_window") {
                Some(Document::List(all)) => all.iter().filter_map(number).reduce(f64::max),
                given => given.and_then(number),
            };
            if let Some(window) = widest.filter(|window| (2.0..1e7).contains(window)) {
                sizes.insert("window".into(), window as u64);
            }
            // Tables of positions have lengths of their own.
            if kind.name == "led" && document.get("max_decoder_position_embeddings").is_none() {
                sizes.insert("ctx".into(), 1024);
            }
        }
        "grounding-dino" => {
            // The backbone's heads are a list.
            let heads = sizes.remove("heads").unwrap_or(8);
            sizes.insert("encoder_heads".into(), heads);
        }
        "mask2former" => {
            let heads = sizes.remove("heads").unwrap_or(8);
            sizes.insert("decoder_heads".into(), heads);
            let ffn = whole(document, "encoder_feedforward_dim").unwrap_or(1024);
            sizes.insert("ffn".into(), ffn);
        }
        "siglip2_vision_model" => {
            let headless = document.get("vision_use_head") == Some(&Document::Bool(false));
            sizes.insert("v_headless".into(), u64::from(headless));
        }
        "sam2_hiera_det_model" => {
            let ratio = rate("mlp_ratio").unwrap_or(4.0).clamp(0.0, 100.0);
            sizes.insert("ratio_percent".into(), (ratio * 100.0).round() as u64);
        }
        "swin" => {
            let drops = rate("drop_path_rate").is_none_or(|rate| rate > 0.0);
            sizes.insert("paths".into(), u64::from(drops));
        }
        "mobilenet_v2" => {
            let width = rate("depth_multiplier").unwrap_or(1.0).clamp(0.0, 100.0);
            sizes.insert("width_percent".into(), (width * 100.0).round() as u64);
        }
        "regnet" => {
            let squeezes = text(document, "layer_type") != Some("x");
            sizes.insert("squeezes".into(), u64::from(squeezes));
        }
        "rt_detr" | "rt_detr_v2" => {
            let share = rate("hidden_expansion").unwrap_or(1.0).clamp(0.0, 100.0);
            sizes.insert("expansion_percent".into(), (share * 100.0).round() as u64);
        }
        "rf_detr" => {
            let share = rate("hidden_expansion").unwrap_or(0.5).clamp(0.0, 100.0);
            sizes.insert("expansion_percent".into(), (share * 100.0).round() as u64);
            let drops = rate("dropout").is_none_or(|rate| rate > 0.0);
            sizes.insert("drop".into(), u64::from(drops));
        }
        "rt_detr_resnet" => {
            let deep = text(document, "layer_type") != Some("basic");
            sizes.insert("bottleneck".into(), u64::from(deep));
        }
        "speecht5" => {
            let guides = document.get("use_guided_attention_loss") != Some(&Document::Bool(false));
            let heads = whole(document, "guided_attention_loss_num_heads").unwrap_or(2);
            sizes.insert("guided".into(), if guides { heads } else { 0 });
        }
        "vjepa2" => {
            let inner = |width: &str, ratio: &str, usual: u64, sizes: &BTreeMap<String, u64>| {
                let width = sizes.get(width).copied().unwrap_or(usual);
                let ratio = rate(ratio).unwrap_or(4.0).clamp(0.0, 100.0);
                (width as f64 * ratio) as u64
            };
            let ffn = inner("hidden", "mlp_ratio", 1024, sizes);
            sizes.insert("ffn".into(), ffn);
            let narrow = inner("p_hidden", "pred_mlp_ratio", 384, sizes);
            sizes.insert("p_ffn".into(), narrow);
        }
        "yolos" => {
            if let Some(Document::List(sides)) = document.get("image_size")
                && let [Document::Int(height), Document::Int(width)] = sides[..]
                && let (Ok(height), Ok(width)) = (u64::try_from(height), u64::try_from(width))
            {
                sizes.insert("img".into(), height);
                sizes.insert("img_w".into(), width);
            }
        }
        "wav2vec2-bert" => {
            let reach = |key: &str, usual| whole(document, key).unwrap_or(usual).min(1_000_000);
            let [left, right] = [
                ("left_max_position_embeddings", 64),
                ("right_max_position_embeddings", 8),
            ]
            .map(|(key, usual)| reach(key, usual));
            sizes.insert("distances".into(), left + right + 1);
            let masks = rate("mask_time_prob").is_none_or(|p| p > 0.0)
                || rate("mask_feature_prob").is_some_and(|p| p > 0.0);
            sizes.insert("mask_embed".into(), u64::from(masks));
        }
        _ => {}
    }
}

/// A whole number that is above zero or zero.
fn whole(document: &Document, key: &str) -> Option<u64> {
    match document.get(key) {
        Some(Document::Int(value)) => u64::try_from(*value).ok(),
        _ => None,
    }
}

/// A list of whole numbers.
fn listed(document: &Document, key: &str) -> Option<Vec<u64>> {
    let Document::List(all) = document.get(key)? else {
        return None;
    };
    let number = |value: &Document| match value {
        Document::Int(value) => u64::try_from(*value).ok(),
        _ => None,
    };
    all.iter().map(number).collect()
}

fn add_list(name: &str, all: Vec<u64>, sizes: &mut BTreeMap<String, u64>) {
    for (i, size) in all.into_iter().enumerate() {
        sizes.insert(format!("{name}_{i}"), size);
    }
}

/// Values that a class needs to be as other values say: the key, what the file has, and what it should have.
pub(super) fn contradictions(
    document: &Document,
    kind: &ModelType,
) -> Vec<(&'static str, String, String)> {
    let shown = |all: &[u64]| {
        let all: Vec<String> = all.iter().map(u64::to_string).collect();
        all.join(",")
    };
    let mut found = Vec::new();
    match kind.name {
        "depth_anything" => {
            let hidden = document
                .get("backbone_config")
                .and_then(|inner| whole(inner, "hidden_size"));
            if let (Some(given), Some(hidden)) = (whole(document, "reassemble_hidden_size"), hidden)
                && given != hidden
            {
                let expected = format!("{hidden}, as the backbone's hidden_size");
                found.push(("reassemble_hidden_size", given.to_string(), expected));
            }
        }
        "dpt" => {
            if let Some(Document::Map(_)) = document.get("backbone_config") {
                let expected = "no backbone: this network has a ViT of its own";
                found.push(("backbone_config", "a backbone".into(), expected.into()));
            }
        }
        "rt_detr" | "rt_detr_v2" => {
            // The encoder's maps are as many as its list, the decoder's are the encoder's.
            let widths = document
                .get("backbone_config")
                .and_then(|inner| listed(inner, "hidden_sizes"))
                .unwrap_or_else(|| vec![256, 512, 1024, 2048]);
            let seen = &widths[widths.len().saturating_sub(3)..];
            let hidden = whole(document, "encoder_hidden_dim").unwrap_or(256);
            for (key, expected, why) in [
                (ENCODER_CHANNELS, seen, "as the backbone's hidden_sizes"),
                (DECODER_CHANNELS, &[hidden; 3], "as encoder_hidden_dim"),
            ] {
                let given = listed(document, key).filter(|given| given != expected);
                let problem = given.map(|given| {
                    let expected = format!("{}, {why}", shown(expected));
                    (key, shown(&given), expected)
                });
                found.extend(problem);
            }
        }
        _ => {}
    }
    found
}

/// What a class derives from sizes of its parts where its own key is absent.
pub(super) fn complete(arch: &str, wanted: &mut BTreeMap<String, u64>) {
    if arch == "siglip2"
        && let (Some(patches), Some(patch)) = (wanted.get("patches"), wanted.get("patch"))
    {
        let side = patches.isqrt().saturating_mul(*patch);
        wanted.insert("img".into(), side);
    }
    if matches!(arch, "depth_anything" | "dpt" | "owlv2" | "owlvit")
        && let Some(img) = wanted.get("img").copied()
    {
        // Positions are for pictures of this side.
        wanted.insert("table".into(), img);
    }
    if arch == "rf_detr"
        && let (Some(table), Some(patch)) = (wanted.get("table"), wanted.get("patch"))
    {
        // Pictures are whole windows.
        let windows = wanted.get("windows").copied().unwrap_or(1);
        let step = patch.saturating_mul(windows).max(1);
        wanted.insert("img".into(), table.div_ceil(step).saturating_mul(step));
    }
    if arch == "aya_vision"
        && let Some(hidden) = wanted.get("hidden").copied()
    {
        wanted.entry("aligned".into()).or_insert(hidden);
    }
}
