//! The catalogue: GPUs, models and software, from `catalog/*.yaml`, with a confidence and sources beside each number.
//!
//! The build script turns the files into constant tables; this room gives them types and look-ups.

mod gpu;
mod kernels;
mod lookup;
mod method;
mod model;
mod overhead;
mod sourced;
mod speed;
mod stack;
mod typed;

pub use gpu::{Class, DataSheet, Gpu, Memory, Os, Tflops, Vendor, gpu, gpus};
pub use kernels::{has_liger, scales_logits};
pub use lookup::{gpu_named, gpus_near, model_named, models_near};
pub use method::{Method, MethodKind, Over, method, methods};
pub use model::{ModelCategory, ModelEntry, model, models};
pub use overhead::{
    NamedOverhead, Overhead, Process, cublas_workspace, cuda_context, desktop, libraries, nccl,
    overheads,
};
pub use sourced::{Confidence, Sourced};
pub use speed::{Rate, Speeds, reached, speeds, speeds_without};
pub use stack::{Fact, Stack, stack, stacks};
pub use typed::Typed;
