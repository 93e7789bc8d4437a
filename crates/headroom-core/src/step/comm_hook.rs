//! Communication hooks of `DistributedDataParallel` (torch/distributed/algorithms/ddp_comm_hooks): what a bucket is sent as.

use std::rc::Rc;

use crate::parallel::World;
use crate::tape::{Category, DType, Param, Tape, Tensor};
use headroom_scenario as scenario;

/// A hook, with what it keeps from step to step.
#[derive(Debug)]
pub(crate) enum CommHook {
    /// `fp16_compress_hook` and `bf16_compress_hook`: a copy in this type.
    Cast(DType),
    /// `powerSGD_hook`: two factors of this rank for each matrix.
    PowerSgd {
        rank: u64,
        kept: Vec<Option<HookState>>,
    },
}

/// What `PowerSGDState` has of a bucket.
#[derive(Debug)]
pub(crate) struct HookState {
    /// What compression lost of the gradients, which the next step adds to them (`error_dict`).
    error: Tensor,
    /// `p_memory_dict` and `q_memory_dict`, from which the next step starts.
    factors: [Tensor; 2],
}

/// A bucket whose gradients are all there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready<'a> {
    pub place: usize,
    pub bytes: u64,
    pub params: &'a [Rc<Param>],
}

impl CommHook {
    /// Steps that reduce full buckets before PowerSGD begins: as few as `PowerSGDState` takes.
    const WHOLE_STEPS: u32 = 2;

    pub(crate) fn of(world: &World) -> Option<Self> {
        match world.parallel.comm_hook {
            scenario::CommHook::None => None,
            scenario::CommHook::Fp16 => Some(Self::Cast(DType::F16)),
            scenario::CommHook::Bf16 => Some(Self::Cast(DType::BF16)),
            scenario::CommHook::PowerSgd => Some(Self::PowerSgd {
                rank: world.parallel.powersgd_rank,
                kept: Vec::new(),
            }),
        }
    }

    /// Is called with a bucket in a step. Collectives take no time here: what is only sent is freed at once.
    pub(crate) fn run(&mut self, tape: &Tape, step: u32, bucket: Ready) {
        let Some(dtype) = bucket.params.first().map(|param| param.data.dtype()) else {
            return;
        };
        let numel = bucket.bytes / dtype.bytes().max(1);
        match self {
            Self::Cast(to) => {
                if *to != dtype {
                    drop(tape.empty("compress", [numel], *to));
                }
            }
            Self::PowerSgd { rank, kept } => {
                if step < Self::WHOLE_STEPS {
                    return;
                }
                if kept.len() <= bucket.place {
                    kept.resize_with(bucket.place + 1, || None);
                }
                if let Some(kept) = kept.get_mut(bucket.place) {
                    power_sgd(tape, *rank, numel, dtype, bucket.params, kept);
                }
            }
        }
    }
}

fn power_sgd(
    tape: &Tape,
    rank: u64,
    numel: u64,
    dtype: DType,
    params: &[Rc<Param>],
    kept: &mut Option<HookState>,
) {
    let stays = |tensor: Tensor| {
        tensor.set_category(Category::Gradients);
        tensor
    };
    let (error, factors) = match kept.take() {
        Some(HookState { error, factors }) => (error, Some(factors)),
        None => (stays(tape.empty("error", [numel], dtype)), None),
    };
    let copy = tape.empty("clone", [numel], dtype);
    let (mut whole, mut p, mut q) = (0_u64, 0_u64, 0_u64);
    for param in params {
        let all = param.data.numel();
        let n = param.data.shape().first().copied().unwrap_or(1).max(1);
        let m = all / n;
        let rank = rank.min(n).min(m);
        if compresses(n, m, rank) {
            p = p.saturating_add(n.saturating_mul(rank));
            q = q.saturating_add(m.saturating_mul(rank));
        } else {
            whole = whole.saturating_add(all);
        }
    }
    let sent_whole = tape.empty("cat", [whole], dtype);
    let factors =
        factors.unwrap_or_else(|| [p, q].map(|numel| stays(tape.empty("factors", [numel], dtype))));
    // What was lost is known before what was lost last is freed.
    let lost = stays(tape.empty("sub", [numel], dtype));
    drop((error, copy, sent_whole));
    *kept = Some(HookState {
        error: lost,
        factors,
    });
}

/// `_should_compress`: whether the factors have less than half of a matrix's elements (`min_compression_rate`).
const fn compresses(n: u64, m: u64, rank: u64) -> bool {
    const MIN_COMPRESSION_RATE: u64 = 2;
    let factors = n.saturating_add(m).saturating_mul(rank);
    factors.saturating_mul(MIN_COMPRESSION_RATE) < n.saturating_mul(m)
}
