//! Networks as forward functions over symbolic tensors: each reads like the model's own code.

mod activations;
mod adapter;
mod albert;
mod attention;
mod bert;
mod blip;
mod clip;
mod cx;
mod deberta;
mod deberta_first;
mod declared;
mod decoder;
mod depth;
mod detection;
mod diffusion;
mod distilbert;
mod dit;
mod drop_path;
mod encoder;
mod equivariant;
mod error;
mod esm;
mod esmc;
mod eurobert;
mod gnn;
mod gpt2;
pub mod graph;
mod gte;
mod head;
mod inputs;
mod kv_cache;
mod language_model;
mod layoutlmv3;
mod libraries;
mod litgpt;
mod longformer;
mod losses;
mod mamba;
mod masks;
mod megatron;
mod mmdit;
mod model;
mod modernbert;
mod modules;
mod mpnet;
mod multi_head;
mod net;
mod nomic_bert;
mod parakeet;
mod patchtst;
mod pictures;
mod qat;
mod recurrent;
mod registry;
mod sam;
mod segmentation;
mod seq2seq;
mod siglip;
mod sizes;
mod sliding_chunks;
mod speecht5;
mod stack;
mod swin;
mod t5;
mod text_encoder;
mod text_to_image;
mod torchtitan;
mod unet;
mod video;
mod vision;
mod vit;
mod vit_mae;
mod wav2vec2;
mod xlnet;

#[cfg(test)]
mod recorded;
#[cfg(test)]
mod tests;

pub(crate) use cx::{Context, Plan, Split, Stage, Stages, TensorParallel};
pub use cx::{Cx, Env, Region};
pub(crate) use declared::net as declared;
pub use detection::{named as detector, yolo_named as yolo};
pub use error::ModelError;
pub(crate) use kv_cache::KvCache;
pub(crate) use language_model::{LanguageModel, Shown, TokenMask};
pub use libraries::{Libraries, Logits};
pub(crate) use model::{Model, bytes};
pub use model::{construct, count};
pub use net::{Build, Net, Output};
pub use registry::{build, has, register};
pub use segmentation::named as segmenter;
pub use sizes::Sizes;
pub(crate) use text_encoder::TextEncoder;

/// What a plug-in's networks are composed of, besides layers and operations.
pub mod parts {
    pub use super::decoder::Llava;
    pub use super::error::at_most;
    pub use super::multi_head::multi_head;
    pub use super::sizes::MOST_RUNS;
    pub use super::vision::{TinyVit, index_name};
}
