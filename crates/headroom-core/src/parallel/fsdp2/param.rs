//! A parameter divided over ranks along its first dimension (`FSDPParam`).

use std::rc::Rc;

use crate::parallel::{World, is_accelerate};
use crate::tape::{DType, Layout, Param, Tape};
use headroom_scenario::Offload;

/// `FSDPParam`: the unsharded parameter that the module sees, and the shard that is trained.
#[derive(Debug)]
pub(super) struct ShardedParam {
    /// The module's own, whose memory exists only while it is unsharded.
    pub module: Rc<Param>,
    pub sharded: Rc<Param>,
    /// Elements of a shard with its padding: as many on each rank.
    pub numel: u64,
}

impl ShardedParam {
    /// The first dimension is cut into as many chunks as there are ranks, the last ones smaller, and padded.
    pub(crate) fn new(
        tape: &Tape,
        module: &Rc<Param>,
        ranks: u64,
        world: &World,
        cast: Option<DType>,
    ) -> Self {
        let rank = u64::from(world.rank.shard) % ranks.max(1);
        let whole = *module.data.shape();
        let rows = whole.first().copied().unwrap_or(1);
        let chunk = rows.div_ceil(ranks);
        let mine = rows.saturating_sub(chunk.saturating_mul(rank)).min(chunk);
        let numel = whole.with(0, chunk).product();
        let loaded = module.data.dtype();
        let cast = cast.filter(|_| loaded.is_floating());
        // accelerate keeps what is trained in fp32 where it computes in a half type.
        let upcasts = cast.is_some() && module.trainable && is_accelerate(world.trainer);
        let dtype = if upcasts { DType::F32 } else { loaded };
        let on_host = world.parallel.offload != Offload::None;
        let bytes = numel.saturating_mul(dtype.bytes());
        let outer = tape.enter(module.scope);
        let sharded = tape.shard(
            module,
            Layout::contiguous(whole.with(0, mine)),
            dtype,
            if on_host { 0 } else { bytes },
        );
        tape.enter(outer);
        if let Some(cast) = cast {
            module.cast(cast);
        }
        Self {
            module: module.clone(),
            sharded,
            numel,
        }
    }
}
