//! DeepSpeed's ZeRO (deepspeed/runtime/zero).

mod bucket;
mod coordinator;
mod partition;
mod stage12;
mod stage3;

use crate::scenario::{Parallel, Toggle};
use crate::tape::DType;

use super::{World, is_accelerate};
pub use stage3::ZeroParameters;
pub use stage12::ZeroOptimizer;

/// `zero_optimization` with its defaults (`DeepSpeedZeroConfig`), and what transformers puts for `auto`.
#[derive(Clone, Copy, Debug)]
struct Config {
    /// Elements of the buffer in which gradients are reduced.
    reduce_bucket: u64,
    overlaps: bool,
    contiguous: bool,
    offloads_optimizer: bool,
    /// The hidden size, where transformers works sizes out from it.
    hidden: Option<u64>,
}

impl Config {
    fn of(world: &World, stage: u32) -> Self {
        let Parallel {
            zero_bucket,
            zero_overlap,
            zero_contiguous,
            offload,
            ..
        } = world.parallel;
        let hidden = world.hidden.filter(|_| is_accelerate(world.trainer));
        let default = hidden.map_or(500_000_000, |hidden| hidden.saturating_mul(hidden));
        Self {
            reduce_bucket: if zero_bucket > 0 {
                zero_bucket
            } else {
                default
            },
            overlaps: match zero_overlap {
                Toggle::Auto => stage == 3,
                toggle => toggle == Toggle::On,
            },
            contiguous: zero_contiguous,
            hidden,
            offloads_optimizer: offload != crate::scenario::Offload::None,
        }
    }
}

/// The type of the master weights and of the gradients they are stepped with.
const MASTER: DType = DType::F32;
