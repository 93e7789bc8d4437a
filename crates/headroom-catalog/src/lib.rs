//! The catalogue: GPUs, models and software, from `catalog/*.yaml`, with a confidence and sources for each number.
//!
//! The build script turns the files into constant tables; this module provides their types and lookups.

mod configuration;
mod gpu;
#[cfg(feature = "graphs")]
mod graphs;
mod kernels;
mod lookup;
mod method;
mod model;
mod names;
mod overhead;
mod sourced;
mod speed;
mod stack;
mod typed;

pub use configuration::{Configuration, ModelType, configurations, model_types};
pub use gpu::{Class, DataSheet, Gpu, Memory, Os, Tflops, Vendor, gpu, gpus};
#[cfg(feature = "graphs")]
pub use graphs::graph;
pub use kernels::{has_liger, scales_logits};
pub use lookup::{gpu_named, gpus_near};
pub use method::{Method, MethodKind, Multiplier, method, methods};
pub use model::{ModelCategory, ModelEntry, model, models};
pub use names::{
    Meant, ModelName, Storage, begins_a_name, leaves_network, model_name, model_named,
    model_spoken, model_written, models_by_use, models_near, usage_rank,
};
pub use overhead::{
    NamedOverhead, Overhead, Process, cublas_workspace, cuda_context, desktop, libraries, nccl,
    overheads,
};
pub use sourced::{Confidence, Sourced};
pub use speed::{Rate, Speeds, reached, speeds, speeds_without};
pub use stack::{Fact, Stack, stack, stacks};
pub use typed::Typed;
