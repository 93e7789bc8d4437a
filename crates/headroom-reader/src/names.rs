//! Names of models as people write them: an id of the hub, a folder, a tag; with what the name says of its weights.

use super::programs::diffusion_pipe;
use super::words::Weights;
use headroom_catalog::{Storage, model_name};

/// What a name means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// The catalogue's entry of this very network (same sizes, vocabulary included).
    pub catalogue: Option<&'static str>,
    /// What the checkpoint is quantised to, by its name (`-bnb-4bit`, `-GPTQ`, `-AWQ`, `-FP8`, `-MXFP4`).
    pub weights: Option<Weights>,
    /// Why it cannot be trained as it is (GGUF, MLX, ONNX).
    pub refused: Option<&'static str>,
    /// Entries that may be meant, where there is none; empty where nothing is near.
    pub near: Vec<&'static str>,
}

/// Reads a model's name; `catalog/names.yaml` and the catalogue's `names` module have the rules.
pub fn named(text: &str) -> Named {
    // A file by its name, with the kind of network that a program builds for it.
    let kind = text
        .strip_suffix(')')
        .and_then(|text| text.split_once(" (type "));
    let mut found = model_name(kind.map_or(text, |(name, _)| name));
    if let Some(network) = kind.and_then(|(_, kind)| diffusion_pipe::network(kind))
        && found.entry.is_none()
    {
        found = model_name(network);
    }
    Named {
        catalogue: found.entry.map(|entry| entry.id),
        weights: found.storage.map(weights),
        refused: found.unusable,
        near: found.near,
    }
}

const fn weights(storage: Storage) -> Weights {
    match storage {
        Storage::Nf4 => Weights::Nf4,
        Storage::Fp4 => Weights::Fp4,
        Storage::Int8 => Weights::Int8,
        Storage::Int4 => Weights::Int4,
        Storage::GptqInt4 => Weights::GptqInt4,
        Storage::AwqInt4 => Weights::AwqInt4,
        Storage::Fp8 => Weights::Fp8,
        Storage::Mxfp4 => Weights::Mxfp4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_brings_what_its_weights_are() {
        #[track_caller]
        fn check(name: &str, catalogue: Option<&str>, weights: Option<Weights>) {
            let found = named(name);
            assert_eq!((found.catalogue, found.weights), (catalogue, weights));
        }
        check(
            "unsloth/Meta-Llama-3.1-8B-bnb-4bit",
            Some("llama-3.1-8b"),
            Some(Weights::Nf4),
        );
        check("Qwen/Qwen2.5-7B-Instruct", Some("qwen2.5-7b"), None);
        let refused = named("bartowski/Llama-3.2-3B-Instruct-GGUF");
        assert_eq!(refused.catalogue, Some("llama-3.2-3b"));
        assert!(refused.refused.is_some_and(|why| why.contains("GGUF")));
        assert_eq!(named("/model"), Named::default());
        check("FLUX.1-dev (type flux)", Some("flux.1-dev"), None);
        check(
            "mine.safetensors (type qwen_image)",
            Some("qwen-image"),
            None,
        );
        check("mine.safetensors (type wan)", None, None);
    }
}
