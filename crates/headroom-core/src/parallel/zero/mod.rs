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

pub use coordinator::MODULE_HOOKS;
pub use stage3::ZeroParameters;
pub use stage12::ZeroOptimizer;
