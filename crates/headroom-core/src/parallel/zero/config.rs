//! The sizes and switches of a stage (deepspeed/runtime/zero/config.py).

use crate::parallel::World;
use crate::tape::DType;
use headroom_scenario::{Parallel, Toggle};

/// `zero_optimization` with its defaults (`DeepSpeedZeroConfig`), and what transformers puts for `auto`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Config {
    /// Elements of the buffer in which gradients are reduced.
    pub reduce_bucket: u64,
    pub overlaps: bool,
    pub contiguous: bool,
    pub offloads_optimizer: bool,
    /// The type of the master weights and of the gradients they are stepped with.
    pub master: DType,
    /// The hidden size, where transformers works sizes out from it.
    pub hidden: Option<u64>,
}

impl Config {
    pub(crate) fn of(world: &World, stage: u32) -> Self {
        let Parallel {
            zero_bucket,
            zero_overlap,
            zero_contiguous,
            zero_bf16_master,
            offload,
            ..
        } = world.parallel;
        let hidden = world.auto_hidden();
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
            offloads_optimizer: offload != headroom_scenario::Offload::None,
            master: if zero_bf16_master {
                DType::BF16
            } else {
                DType::F32
            },
        }
    }
}
