//! DeepSpeed's ZeRO (deepspeed/runtime/zero).

mod bucket;
mod config;
mod coordinator;
mod fetch;
mod order;
mod partition;
mod shards;
mod stage12;
mod stage3;
mod unfused;

pub(crate) use coordinator::MODULE_HOOKS;
pub(crate) use stage3::ZeroParameters;
pub(crate) use stage12::ZeroOptimizer;
pub(crate) use unfused::UnfusedOptimizer;
