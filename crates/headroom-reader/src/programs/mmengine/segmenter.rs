//! The catalogue's network of an `EncoderDecoder`: by the file's backbone and heads, else by the name of the base that describes them
//! (`pspnet_r50-d8`), in the sizes that the file changes.

use headroom_base::document::Document;
use headroom_catalog::model;

use super::shipped::Said;
use crate::fact::Fact;
use crate::keys::Keys;
use crate::shape::Sized;

/// Decode heads, and the beginning of the ids of their networks.
const HEADS: [(&str, &str); 20] = [
    ("ANNHead", "ann"),
    ("APCHead", "apcnet"),
    ("ASPPHead", "deeplabv3"),
    ("CCHead", "ccnet"),
    ("DAHead", "danet"),
    ("DMHead", "dmnet"),
    ("DNLHead", "dnl"),
    ("DepthwiseSeparableASPPHead", "deeplabv3plus"),
    ("EMAHead", "emanet"),
    ("EncHead", "encnet"),
    ("FCNHead", "fcn"),
    ("FPNHead", "sem-fpn"),
    ("GCHead", "gcnet"),
    ("LRASPPHead", "lraspp"),
    ("NLHead", "nonlocal"),
    ("OCRHead", "ocrnet"),
    ("PSAHead", "psanet"),
    ("PSPHead", "pspnet"),
    ("PointHead", "pointrend"),
    ("UPerHead", "upernet"),
];

/// `None` if the file's backbone or head is none of those that the catalogue has.
pub(super) fn network(keys: &Keys, said: &[Said]) -> Option<Sized> {
    let base = said.iter().find_map(|said| {
        let name = said.model.as_deref()?.replace('_', "-");
        let name = if name.starts_with("fpn-") {
            format!("sem-{name}")
        } else {
            name
        };
        Some(model(&name)?.id)
    });
    let head = last(&keys.text("model.decode_head.type")).or_else(|| {
        // `CascadeEncoderDecoder` has a list of them.
        let heads = keys.items("model.decode_head");
        last(&heads.last()?.text("type"))
    });
    let found = HEADS
        .iter()
        .find(|(kind, _)| Some(*kind) == head.as_deref());
    let backbone = last(&keys.text("model.backbone.type"));
    let entry = match (&head, &backbone) {
        (None, None) => model(base?)?,
        (head, _) => {
            let begins = match head {
                Some(_) => found?.1,
                None => HEADS
                    .iter()
                    .map(|(_, begins)| *begins)
                    .filter(|begins| base.is_some_and(|base| base.starts_with(begins)))
                    .max_by_key(|begins| begins.len())?,
            };
            let middle = match backbone.as_deref() {
                None | Some("ResNet" | "ResNetV1c") => &["r50-d8", "r50", "r101-d8"][..],
                Some("HRNet") => &["hr18"],
                Some("MobileNetV2") => &["mobilenetv2-d8"],
                Some("MobileNetV3") => &["mobilenetv3"],
                Some("ResNeSt") => &["s101-d8"],
                Some("UNet") => &["unet-s5"],
                Some(_) => return None,
            };
            let names = middle.iter().map(|middle| format!("{begins}-{middle}"));
            names.into_iter().find_map(|name| model(&name))?
        }
    };
    let mut sizes = Vec::new();
    let mut set = |name: &'static str, value: Option<u64>| {
        if let Some(value) = value.filter(|value| entry.size(name) != Some(*value)) {
            sizes.push((name, value));
        }
    };
    let whole = |path: &str| keys.whole(path).value().copied();
    let of_head = |name: &str| {
        let own = whole(&format!("model.decode_head.{name}"));
        own.or_else(|| {
            let heads = keys.items("model.decode_head");
            heads.last()?.whole(name).value().copied()
        })
    };
    set("classes", of_head("num_classes"));
    if entry.size("depths").is_some() {
        // Of the networks with a depth the catalogue's differ in their third stage only.
        let third = match whole("model.backbone.depth") {
            None => None,
            Some(50) => Some(6),
            Some(101) => Some(23),
            Some(_) => return None,
        };
        let depths = entry
            .sizes()
            .into_iter()
            .find(|(name, _)| *name == "depths");
        let own = depths.and_then(|(_, all)| all.get(2).copied());
        if let Some(third) = third.filter(|third| Some(*third) != own) {
            sizes.push(("depths_2", third));
        }
        let strides = numbers(keys, "model.backbone.strides");
        let stride = (!strides.is_empty())
            .then(|| strides.iter().fold(4, |all, one| all * one.clamp(&1, &2)));
        if let Some(stride) = stride.filter(|stride| entry.size("stride") != Some(*stride)) {
            sizes.push(("stride", stride));
        }
        if backbone.as_deref() == Some("ResNet") {
            sizes.push(("deep_stem", 0));
        }
    }
    if entry.size("branch").is_some() {
        let fine = numbers(keys, "model.backbone.extra.stage2.num_channels");
        if let Some(width) = fine
            .first()
            .filter(|width| entry.size("branch") != Some(**width))
        {
            sizes.push(("branch", *width));
        }
    } else if let Some(channels) =
        of_head("channels").filter(|n| entry.size("channels") != Some(*n))
    {
        sizes.push(("channels", channels));
    }
    if let Some(channels) = whole("model.auxiliary_head.channels")
        .filter(|channels| entry.size("aux_channels") != Some(*channels))
    {
        sizes.push(("aux_channels", channels));
    }
    Some(Sized {
        model: entry.id,
        sizes,
    })
}

fn numbers(keys: &Keys, path: &str) -> Vec<u64> {
    let Some(Document::List(items)) = keys.peek(path) else {
        return Vec::new();
    };
    let whole = items.iter().filter_map(|item| match item {
        Document::Int(value) => u64::try_from(*value).ok(),
        _ => None,
    });
    whole.collect()
}

/// A class's name without its module.
fn last(kind: &Fact<String>) -> Option<String> {
    let kind = kind.value()?;
    Some(kind.rsplit('.').next().unwrap_or(kind).to_string())
}
