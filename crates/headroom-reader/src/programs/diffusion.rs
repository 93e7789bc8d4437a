//! What the readers of image and video trainers share.

use headroom_base::document::Document;

use crate::fact::Fact;
use crate::keys::{Keys, whole};
use crate::outcome::is_placeholder;
use crate::words::{Compute, Weights};

/// Types as trainers of images write them: PyTorch's names, their short forms, and those of quantizing libraries.
pub fn weights(name: &str) -> Option<Weights> {
    let lower = name.to_ascii_lowercase();
    let plain = lower.trim_start_matches("torch.").replace(['_', '-'], "");
    Some(match plain.as_str() {
        "fp32" | "float32" | "float" | "no" | "32" => Weights::Fp32,
        "bf16" | "bfloat16" => Weights::Bf16,
        "fp16" | "float16" | "half" => Weights::Fp16,
        "uint4" => Weights::Uint4,
        "uint3" => Weights::Uint3,
        "uint2" => Weights::Uint2,
        other => {
            let has = |part: &str| other.contains(part);
            if has("nf4") || has("nfloat4") {
                Weights::Nf4
            } else if has("fp4") || has("float4") {
                Weights::Fp4
            } else if has("fp8") || has("float8") || has("floatw8a8") || has("e4m3") || has("e5m2")
            {
                Weights::Fp8
            } else if has("int8") || has("convrot8") || has("w8a8") {
                Weights::Int8
            } else if has("int4") {
                Weights::Int4
            } else if has("int2") {
                Weights::Int2
            } else {
                return None;
            }
        }
    })
}

/// The type of forward and backward where autocast is on for it.
pub fn autocast(name: &str) -> Option<Compute> {
    Some(match weights(name)? {
        Weights::Fp32 => Compute::Fp32,
        Weights::Bf16 => Compute::Bf16Autocast,
        Weights::Fp16 => Compute::Fp16Autocast,
        Weights::Fp8 => Compute::Bf16Fp8,
        _ => return None,
    })
}

/// The same without autocast: the model itself is in that type.
pub const fn pure(weights: Weights) -> Option<Compute> {
    Some(match weights {
        Weights::Fp32 => Compute::Fp32,
        Weights::Bf16 => Compute::Bf16,
        Weights::Fp16 => Compute::Fp16,
        _ => return None,
    })
}

/// The name of a model by the path of its files, with the network that the program builds for it.
pub fn named(path: &Fact<String>, network: &str) -> Fact<String> {
    path.clone().and_then(|path| {
        let last = path.trim_end_matches(['/', '\\']);
        let last = last.rsplit(['/', '\\']).next().unwrap_or(last);
        // `owner/name` is an id of the hub.
        let id = path.split('/').count() == 2 && !path.starts_with(['.', '/', '~']);
        let name = if id { path } else { last };
        (!is_placeholder(name)).then(|| format!("{name} (type {network})"))
    })
}

/// The largest edge of the sizes that a data file trains on: `512`, `[512, 768]`, `[[1280, 720]]`, `"1024,1024"`; as
/// height and width where they differ.
pub fn size(keys: &Keys, path: &str) -> Fact<(u64, u64)> {
    let Some(value) = keys.get(path) else {
        return Fact::Unsaid;
    };
    match sizes(value)
        .into_iter()
        .max_by_key(|(w, h)| w.saturating_mul(*h))
    {
        Some((width, height)) => Fact::read((height, width), path),
        None => Fact::Unknown(format!("{path} is not understood")),
    }
}

/// The same where a list is the width and height of one size.
pub fn one_size(keys: &Keys, path: &str) -> Fact<(u64, u64)> {
    let Some(value) = keys.get(path) else {
        return Fact::Unsaid;
    };
    match pair(value) {
        Some((width, height)) => Fact::read((height, width), path),
        None => Fact::Unknown(format!("{path} is not understood")),
    }
}

/// Pairs of width and height: a list holds edges of squares or pairs, a text one of both.
fn sizes(value: &Document) -> Vec<(u64, u64)> {
    match value {
        Document::List(items) => items.iter().filter_map(pair).collect(),
        value => pair(value).into_iter().collect(),
    }
}

fn pair(value: &Document) -> Option<(u64, u64)> {
    let numbers: Vec<u64> = match value {
        Document::List(items) => items.iter().filter_map(whole).collect(),
        Document::Text(text) => {
            let parts = text.split([',', 'x', ' ', '[', ']', '(', ')']);
            parts.filter_map(|part| part.trim().parse().ok()).collect()
        }
        other => whole(other).into_iter().collect(),
    };
    match numbers.as_slice() {
        [edge] => Some((*edge, *edge)),
        [width, height, ..] => Some((*width, *height)),
        [] => None,
    }
}
