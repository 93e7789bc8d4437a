//! Several GPUs: what wrappers around a model do on one rank, a file for each of PyTorch's, DeepSpeed's and Megatron-Core's.

mod data_parallel;
mod fsdp1;
mod fsdp2;
mod megatron;
mod pinned;
pub mod schedule;
mod world;
mod wrapper;
mod zero;

use std::rc::Rc;

use crate::tape::Tape;
pub(crate) use data_parallel::DataParallel;
pub(crate) use fsdp1::FullyShardedDataParallel;
pub(crate) use fsdp2::FullyShard;
use headroom_scenario::{Parallelism, Precision, Training};
pub(crate) use megatron::MegatronDdp;
pub use world::World;
pub(crate) use world::is_accelerate;
pub(crate) use wrapper::{Forward, Properties, Role, Unwrapped, Wrapper};
pub(crate) use zero::{MODULE_HOOKS, UnfusedOptimizer, ZeroOptimizer, ZeroParameters};

impl World {
    /// The model wrapper of this strategy; `Unwrapped` on one GPU.
    pub fn wrapper(self, tape: &Tape, training: &Training) -> Rc<dyn Wrapper> {
        use Parallelism::{Ddp, Fsdp1, Fsdp2, Hsdp, None, Zero0, Zero1, Zero2, Zero3};
        if self.parallel.strategy == Parallelism::DataParallel && self.mesh.data > 1 {
            return Rc::new(DataParallel::new(tape, self, training));
        }
        if self.mesh.shard <= 1 {
            return Rc::new(Unwrapped);
        }
        match self.parallel.strategy {
            None | Ddp | Parallelism::DataParallel => Rc::new(Unwrapped),
            Fsdp1 => Rc::new(FullyShardedDataParallel::new(tape, self, training)),
            Fsdp2 | Hsdp => Rc::new(FullyShard::new(tape, self, training)),
            Zero0 => Rc::new(UnfusedOptimizer::new(
                tape,
                matches!(training.precision, Precision::Bf16 | Precision::Fp16),
            )),
            Zero1 => Rc::new(ZeroOptimizer::new(tape, self, 1)),
            Zero2 => Rc::new(ZeroOptimizer::new(tape, self, 2)),
            Zero3 => Rc::new(ZeroParameters::new(tape, self)),
        }
    }
}
