//! The `config.json` of a diffusion network in diffusers, which names a class.

use super::{TOOL, text};
use crate::import::Imported;
use headroom_base::document::Document;
use headroom_catalog::{ModelEntry, models};
use headroom_scenario::{NameKind, Problem};

/// Classes of diffusers and the architectures of the catalogue.
const CLASSES: &[(&str, &str)] = &[
    ("AuraFlowTransformer2DModel", "auraflow"),
    ("ChromaTransformer2DModel", "chroma"),
    ("CogVideoXTransformer3DModel", "cogvideox"),
    ("CogView4Transformer2DModel", "cogview4"),
    ("DiTTransformer2DModel", "dit"),
    ("Flux2Transformer2DModel", "flux2"),
    ("FluxTransformer2DModel", "flux"),
    ("HiDreamImageTransformer2DModel", "hidream"),
    ("HunyuanImageTransformer2DModel", "hunyuan_image"),
    ("HunyuanVideo15Transformer3DModel", "hunyuan_video15"),
    ("HunyuanVideoTransformer3DModel", "hunyuan_video"),
    ("LTX2VideoTransformer3DModel", "ltx2"),
    ("LTXVideoTransformer3DModel", "ltx_video"),
    ("Lumina2Transformer2DModel", "lumina2"),
    ("MochiTransformer3DModel", "mochi"),
    ("PixArtTransformer2DModel", "pixart"),
    ("QwenImageTransformer2DModel", "qwen_image"),
    ("SD3Transformer2DModel", "sd3"),
    ("SanaTransformer2DModel", "sana"),
    ("UNet2DConditionModel", "unet"),
    ("WanTransformer3DModel", "wan"),
    ("WanVACETransformer3DModel", "wan_vace"),
    ("ZImageTransformer2DModel", "z_image"),
];

/// What the networks of an architecture have in common: with another value it is another network.
const UNLIKE: &[(&str, &str, bool)] = &[
    ("ltx2", "audio_cross_attn_mod", false),
    ("ltx2", "audio_gated_attn", false),
    ("ltx2", "cross_attn_mod", false),
    ("ltx2", "gated_attn", false),
    ("ltx2", "use_keyframes_abs_pos_embedding", false),
    ("ltx2", "use_prompt_embeddings", true),
];

/// Keys of the classes and the catalogue's names of these sizes.
const SIZES: &[(&str, &str)] = &[
    ("added_kv_proj_dim", "image_dim"),
    ("attention_head_dim", "head_dim"),
    ("cap_feat_dim", "ctx_dim"),
    ("audio_attention_head_dim", "audio_head_dim"),
    ("audio_in_channels", "audio_channels"),
    ("audio_num_attention_heads", "audio_heads"),
    ("caption_channels", "caption"),
    ("caption_projection_dim", "caption"),
    ("cross_attention_dim", "ctx_dim"),
    ("ffn_dim", "ffn"),
    ("guidance_embeds", "guidance"),
    ("hidden_size", "hidden"),
    ("image_dim", "image_dim"),
    ("image_embed_dim", "image_dim"),
    ("joint_attention_dim", "ctx_dim"),
    ("n_heads", "heads"),
    ("n_layers", "layers"),
    ("n_refiner_layers", "refiner_layers"),
    ("num_activated_experts", "topk"),
    ("num_attention_heads", "heads"),
    ("num_cross_attention_heads", "cross_heads"),
    ("num_kv_heads", "kv"),
    ("num_layers", "layers"),
    ("num_mmdit_layers", "layers"),
    ("num_refiner_layers", "refiner_layers"),
    ("num_routed_experts", "experts"),
    ("num_single_dit_layers", "single_layers"),
    ("num_single_layers", "single_layers"),
    ("patch_size", "patch"),
    ("pooled_projection_dim", "pooled"),
    ("pos_embed_max_size", "pos"),
    ("text_dim", "ctx_dim"),
    ("text_embed_2_dim", "glyph_dim"),
    ("text_emb_dim", "pooled"),
    ("text_embed_dim", "ctx_dim"),
    ("time_embed_dim", "time_dim"),
    ("use_rotary_positional_embeddings", "rotary"),
    ("vace_in_channels", "vace_channels"),
    ("zero_cond_t", "zero_cond_t"),
];

/// Whether the document is such a file.
pub fn recognises(document: &Document) -> bool {
    text(document, "_class_name").is_some_and(|class| class.ends_with("Model"))
        && document.get("_diffusers_version").is_some()
}

/// The default scenario with the nearest model of this class, and the sizes in which it differs.
pub fn read(document: &Document) -> Imported {
    let mut imported = Imported::default();
    let given = text(document, "_class_name").unwrap_or_default();
    let Some((_, arch)) = CLASSES.iter().find(|(class, _)| *class == given) else {
        let names = CLASSES.iter().map(|(class, _)| *class);
        let problem = Problem::unknown_name(NameKind::Architecture, "_class_name", given, names);
        imported.problems.push(problem);
        return imported;
    };
    for (_, key, usual) in UNLIKE.iter().filter(|(own, ..)| own == arch) {
        let given = document.get(key);
        if let Some(Document::Bool(given)) = given.filter(|given| **given != Document::Bool(*usual))
        {
            let expected = format!("{usual} for this network");
            let problem = Problem::new(*key, given.to_string(), expected);
            imported.problems.push(problem);
        }
    }
    let wanted = wanted(document, arch);
    let entries = models().iter().filter(|entry| entry.arch == *arch);
    let nearest = entries.min_by_key(|entry| differing(entry, &wanted).count());
    if let Some(entry) = nearest {
        imported.set("model.id", entry.id, TOOL, "_class_name");
        for (name, key, size) in differing(entry, &wanted) {
            imported.size(name, size, TOOL, key);
        }
    }
    imported
}

/// Sizes that the file gives: the catalogue's name, the file's key and the number.
fn wanted(document: &Document, arch: &str) -> Vec<(&'static str, &'static str, u64)> {
    let number = |key: &str| match document.get(key)? {
        Document::Int(size) => u64::try_from(*size).ok(),
        Document::Bool(on) => Some(u64::from(*on)),
        Document::List(all) => Some(all.len() as u64),
        _ => None,
    };
    let mut wanted = Vec::new();
    for (key, name) in SIZES {
        // PixArt's and LTX's texts are as wide as their caption.
        let inner = *name == "ctx_dim" && matches!(arch, "pixart" | "ltx_video" | "ltx2" | "sana");
        let list = matches!(document.get(key), Some(Document::List(_)));
        if let Some(size) = number(key).filter(|_| !inner && !list) {
            wanted.push((*name, *key, size));
        }
    }
    let (into, out) = (number("in_channels"), number("out_channels"));
    match arch {
        "wan" | "wan_vace" | "cogvideox" | "hunyuan_video" | "hunyuan_video15" => {
            if let (Some(into), Some(out)) = (into, out) {
                wanted.push(("channels", "out_channels", out));
                wanted.push(("condition", "in_channels", into.saturating_sub(out)));
            }
        }
        _ => wanted.extend(into.map(|size| ("channels", "in_channels", size))),
    }
    if arch == "ltx2" {
        wanted.extend(number("caption_channels").map(|size| ("ctx_dim", "caption_channels", size)));
        let split = text(document, "rope_type") == Some("split");
        wanted.push(("split_rotary", "rope_type", u64::from(split)));
    }
    if let ("wan_vace", Some(Document::List(all))) = (arch, document.get("vace_layers"))
        && let Some(Document::Int(second)) = all.get(1)
        && let Ok(second) = u64::try_from(*second)
    {
        wanted.push(("vace_every", "vace_layers", second));
    }
    if arch == "sd3" {
        let dual = number("dual_attention_layers").unwrap_or(0);
        wanted.push(("dual_layers", "dual_attention_layers", dual));
        let normed = u64::from(text(document, "qk_norm").is_some());
        wanted.push(("qk_norm", "qk_norm", normed));
    }
    if let ("z_image", Some(width), Some(heads)) = (arch, number("dim"), number("n_heads")) {
        wanted.push(("head_dim", "dim", width / heads.max(1)));
    }
    wanted
}

/// Those that a model has otherwise; a size that its entry does not name is none of its sizes.
fn differing<'a>(
    entry: &'a ModelEntry,
    wanted: &'a [(&'static str, &'static str, u64)],
) -> impl Iterator<Item = (&'static str, &'static str, u64)> + 'a {
    let differs =
        |(name, _, size): &&(&str, &str, u64)| entry.size(name).is_some_and(|own| own != *size);
    wanted.iter().filter(differs).copied()
}
