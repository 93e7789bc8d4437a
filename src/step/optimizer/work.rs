//! The work of an optimizer's step, for the time estimate: how often it goes over memory, and in how many launches.

use std::rc::Rc;

use crate::scenario::Optimizer;
use crate::tape::{DType, Param, Tape};

/// Reads and writes of an element in units of a parameter's size, bytes for each element besides, and launches.
struct Work {
    touches: f64,
    bytes: f64,
    launches: Launches,
    /// Over the link to the host instead of the card's own memory.
    on_host: bool,
}

enum Launches {
    /// For each parameter.
    Each(u64),
    /// For each list of parameters that one kernel takes.
    Lists(u64),
}

/// Tensors that `multi_tensor_apply` takes in one launch (`depth_to_max_tensors` of MultiTensorApply.cuh, four lists).
const TENSORS_IN_A_LIST: u64 = 36;

/// Counted in torch/optim: a fused Adam reads parameter, gradient and two states and writes three of them; the foreach one runs
/// eight functions (`mul_`, `lerp_`, `mul_`, `addcmul_`, `sqrt`, `div_`, `add_`, `addcdiv_`) over lists; a loop runs twelve
/// small ones for each tensor. On the host a core's vector units and memory take about as long as six more bytes over the link.
fn work(kind: Optimizer) -> Work {
    use Launches::{Each, Lists};
    let (touches, bytes, launches, on_host) = match kind {
        Optimizer::AdamWFused => (7.0, 0.0, Lists(1), false),
        Optimizer::Sgd => (3.0, 0.0, Lists(1), false),
        Optimizer::SgdMomentum => (7.0, 0.0, Lists(3), false),
        Optimizer::AdamW8bit => (3.0, 4.0, Each(1), false),
        // States count as being on the host, so they go over the link and back in each step.
        Optimizer::PagedAdamW => (0.0, 16.0, Each(1), true),
        Optimizer::PagedAdamW8bit => (0.0, 4.0, Each(1), true),
        Optimizer::AdamW8bitAo | Optimizer::AdamW4bitAo | Optimizer::AdamWFp8Ao => {
            (5.0, 4.0, Each(2), false)
        }
        Optimizer::AdamWOffload | Optimizer::AdamWOffloadGradients => (2.0, 6.0, Each(4), true),
        Optimizer::Lion | Optimizer::LionForeach => (10.0, 0.0, Lists(5), false),
        Optimizer::Adagrad | Optimizer::RmsProp => (14.0, 0.0, Lists(6), false),
        Optimizer::AdamW
        | Optimizer::AdamWTwoLists
        | Optimizer::ScheduleFree
        | Optimizer::Adopt => (20.0, 0.0, Lists(8), false),
        _ => (20.0, 0.0, Each(12), false),
    };
    Work {
        touches,
        bytes,
        launches,
        on_host,
    }
}

pub fn of_step(kind: Optimizer, tape: &Tape, params: &[Rc<Param>]) {
    let (mut bytes, mut elements, mut tensors) = (0.0, 0.0, 0);
    for param in params {
        let copies = param.copies();
        bytes += param.data.bytes() as f64 * copies as f64;
        elements += param.data.numel() as f64 * copies as f64;
        tensors += copies;
    }
    let it = work(kind);
    let launches = match it.launches {
        Launches::Each(functions) => tensors.saturating_mul(functions),
        Launches::Lists(functions) => tensors
            .div_ceil(TENSORS_IN_A_LIST)
            .saturating_mul(functions),
    };
    tape.launches(
        if it.on_host { "host_step" } else { "optimizer" },
        DType::F32,
        [0.0, it.touches * bytes + it.bytes * elements],
        u32::try_from(launches).unwrap_or(u32::MAX),
    );
}
