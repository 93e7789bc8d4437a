//! timm's `config.json`, which names an architecture and no sizes.

use super::{TOOL, text};
use crate::import::Imported;
use headroom_base::document::Document;
use headroom_catalog as catalog;
use headroom_scenario::{NameKind, Problem};

/// Architectures of timm by the name it has for them, and the catalogue's models of them.
const ARCHITECTURES: &[(&str, &str)] = &[
    ("beit_base_patch16_224", "beit-b16"),
    ("convnext_base", "convnext-base"),
    ("convnext_large", "convnext-large"),
    ("convnext_small", "convnext-small"),
    ("convnext_tiny", "convnext-tiny"),
    ("convnext_xlarge", "convnext-xlarge"),
    ("deit_base_patch16_224", "deit-b"),
    ("deit_small_patch16_224", "deit-s"),
    ("densenet121", "densenet-121"),
    ("efficientnet_b0", "efficientnet-b0"),
    ("efficientnet_b1", "efficientnet-b1"),
    ("efficientnet_b3", "efficientnet-b3"),
    ("efficientnet_b4", "efficientnet-b4"),
    ("efficientnet_b5", "efficientnet-b5"),
    ("efficientnet_b7", "efficientnet-b7"),
    ("eva02_large_patch14_448", "eva02-l14-448"),
    ("inception_v3", "inception-v3"),
    ("maxvit_base_tf_224", "maxvit-b"),
    ("maxvit_large_tf_224", "maxvit-l"),
    ("maxvit_small_tf_224", "maxvit-s"),
    ("maxvit_tiny_tf_224", "maxvit-t"),
    ("mobilenetv2_100", "mobilenetv2"),
    ("mobilenetv3_large_100", "mobilenetv3-large"),
    ("resnet101", "resnet-101"),
    ("resnet152", "resnet-152"),
    ("resnet18", "resnet-18"),
    ("resnet34", "resnet-34"),
    ("resnet50", "resnet-50"),
    ("swin_base_patch4_window7_224", "swin-base"),
    ("swin_large_patch4_window7_224", "swin-large"),
    ("swin_small_patch4_window7_224", "swin-small"),
    ("swin_tiny_patch4_window7_224", "swin-tiny"),
    ("tf_efficientnetv2_s", "efficientnetv2-s"),
    ("tiny_vit_11m_224", "tiny-vit-11m"),
    ("tiny_vit_21m_224", "tiny-vit-21m"),
    ("tiny_vit_5m_224", "tiny-vit-5m"),
    ("vgg16", "vgg-16"),
    ("vit_base_patch14_dinov2", "dinov2-vitb14"),
    ("vit_base_patch16_224", "vit-b16"),
    ("vit_base_patch32_224", "vit-b32"),
    ("vit_giant_patch14_224", "vit-g14"),
    ("vit_giant_patch14_dinov2", "dinov2-vitg14"),
    ("vit_gigantic_patch14_224", "vit-gigantic14"),
    ("vit_huge_patch14_224", "vit-h14"),
    ("vit_large_patch14_dinov2", "dinov2-vitl14"),
    ("vit_large_patch16_224", "vit-l16"),
    ("vit_small_patch14_dinov2", "dinov2-vits14"),
    ("vit_small_patch16_224", "vit-s16"),
    ("vit_tiny_patch16_224", "vit-ti16"),
    ("wide_resnet50_2", "wide-resnet50-2"),
];

/// Keys without an effect on memory.
const WITHOUT_EFFECT: &[&str] = &[
    "architecture",
    "global_pool",
    "num_features",
    "pretrained_cfg",
];

/// Whether the document is such a file.
pub fn recognises(document: &Document) -> bool {
    document.get("model_type").is_none()
        && document.get("architecture").is_some()
        && (document.get("num_classes").is_some() || document.get("pretrained_cfg").is_some())
}

/// The default scenario with this model, its number of classes and the size of its images.
pub fn read(document: &Document) -> Imported {
    let mut imported = Imported::default();
    let given = text(document, "architecture").unwrap_or_default();
    let known = ARCHITECTURES.iter().filter_map(|(name, id)| {
        let model = catalog::model(id).filter(|model| model.runs)?;
        Some((*name, model))
    });
    let Some((_, model)) = known.clone().find(|(name, _)| *name == given) else {
        let names = known.map(|(name, _)| name);
        let problem = Problem::unknown_name(NameKind::Architecture, "architecture", given, names);
        imported.problems.push(problem);
        return imported;
    };
    imported.set("model.id", model.id, TOOL, "architecture");
    let side = document
        .get("pretrained_cfg")
        .and_then(|config| config.get("input_size"))
        .and_then(|size| match size {
            Document::List(sizes) => sizes.last(),
            _ => None,
        });
    for (name, value) in [("classes", document.get("num_classes")), ("img", side)] {
        if let (Some(Document::Int(value)), Some(now)) = (value, model.size(name))
            && let Ok(value) = u64::try_from(*value)
            && value != now
            && value > 0
        {
            imported.size(name, value, TOOL, name);
        }
    }
    let Document::Map(entries) = document else {
        return imported;
    };
    let strange = entries
        .iter()
        .map(|entry| entry.key.as_str())
        .filter(|key| *key != "num_classes" && !WITHOUT_EFFECT.contains(key));
    imported.unused_keys.extend(strange.map(String::from));
    imported
}
