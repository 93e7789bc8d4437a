//! Names of models as people write them: an id of the hub, a folder, a tag; with what the name says of its weights.

use super::words::Weights;

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

pub fn named(_text: &str) -> Named {
    Named::default()
}
