//! Megatron-Core's `DistributedDataParallel` and its optimizers (megatron/core/distributed, megatron/core/optimizer).

use crate::units::RoundUp;
use std::cell::RefCell;
use std::rc::Rc;

use super::{World, Wrapper};
use crate::scenario::{Parallelism, PolicyType, Toggle};
use crate::tape::{Category, DType, Layout, Param, PostAccumulateGradHook, Tape, Tensor};

const MASTER: DType = DType::F32;

/// Weights and gradients in one buffer each (`_ParamAndGradBuffer`), and the optimizer's part of them.
#[derive(Debug)]
pub struct MegatronDdp(Rc<State>);

#[derive(Debug)]
struct State {
    world: World,
    buffers: RefCell<Vec<Buffer>>,
    /// Weights that are no part of a buffer.
    weights: RefCell<Vec<Tensor>>,
}

/// `_ParamAndGradBuffer`, and what the optimizer steps for it.
#[derive(Debug)]
struct Buffer {
    _weights: Option<Tensor>,
    gradients: Tensor,
    master: Rc<Param>,
}

impl MegatronDdp {
    pub fn new(world: World) -> Self {
        Self(Rc::new(State {
            world,
            buffers: RefCell::default(),
            weights: RefCell::default(),
        }))
    }
}

impl Wrapper for MegatronDdp {
    fn divides(&self) -> bool {
        true
    }

    fn clips(&self) -> bool {
        true
    }

    fn wrap(&self, tape: &Tape, state: Vec<Rc<Param>>) -> Vec<Rc<Param>> {
        let (buffers, params): (Vec<_>, Vec<_>) =
            state.into_iter().partition(|param| param.is_buffer());
        // Experts are copied on fewer GPUs than the rest, so they have buffers of their own.
        let is_expert = |param: &Rc<Param>| tape.path(param.scope).contains("experts");
        let (experts, rest): (Vec<_>, Vec<_>) = params.iter().cloned().partition(is_expert);
        let mut after = buffers;
        tape.setting_up(|| {
            for (params, ranks) in [
                (rest, self.0.replicas()),
                (experts, self.0.expert_replicas()),
            ] {
                if !params.is_empty() {
                    after.push(self.0.lay_out(tape, &params, ranks));
                }
            }
        });
        let hook: Rc<PostAccumulateGradHook> = Rc::new(|param: &Rc<Param>| {
            // It has been added to `main_grad`.
            param.grad.take();
        });
        for param in &params {
            param.post_accumulate_grad.replace(Some(hook.clone()));
        }
        after
    }

    fn before_step(&self) {
        for buffer in self.0.buffers.borrow().iter() {
            let part = Layout::contiguous(*buffer.master.data.shape());
            let gradient = buffer.gradients.as_strided(part);
            // `shard_model_grad.float()`: nothing where it is so already.
            buffer.master.grad.replace(Some(gradient.to(MASTER)));
        }
    }

    fn after_step(&self) {
        for buffer in self.0.buffers.borrow().iter() {
            buffer.master.grad.take();
        }
    }
}

impl State {
    /// `use_distributed_optimizer`.
    fn is_distributed(&self) -> bool {
        !matches!(
            self.world.parallel.strategy,
            Parallelism::None | Parallelism::Ddp
        )
    }

    /// GPUs with the same weights, which share the optimizer's states: those of a context group among them.
    fn replicas(&self) -> u64 {
        let mesh = self.world.mesh;
        [mesh.data, mesh.shard, mesh.context]
            .into_iter()
            .fold(1, |all: u64, n| all.saturating_mul(u64::from(n.max(1))))
    }

    /// Those with the same experts.
    fn expert_replicas(&self) -> u64 {
        let mesh = self.world.mesh;
        let all = self
            .replicas()
            .saturating_mul(u64::from(mesh.tensor.max(1)));
        (all / u64::from(mesh.expert.max(1))).max(1)
    }

    fn lay_out(&self, tape: &Tape, params: &[Rc<Param>], ranks: u64) -> Rc<Param> {
        let dtype = params
            .first()
            .map_or(DType::F32, |param| param.data.dtype());
        let numel = self.numel(params, ranks);
        let whole = |name, dtype| tape.empty(name, [numel], dtype);
        let weights = if self.is_distributed() {
            let weights = whole("param_data", dtype);
            weights.set_category(Category::Parameters);
            Some(weights)
        } else {
            tape.each(params, |param| {
                let weight = tape.empty_as(param.name, *param.data.layout(), dtype);
                weight.set_category(Category::Parameters);
                self.weights.borrow_mut().push(weight);
            });
            None
        };
        let half = self.world.parallel.reduce_dtype == PolicyType::Bf16;
        let gradients = whole("grad_data", if half { dtype } else { DType::F32 });
        gradients.set_category(Category::Gradients);
        let part = if self.is_distributed() {
            numel / ranks.max(1)
        } else {
            numel
        };
        // Weights in fp32 are stepped as they are.
        let bytes = if dtype == MASTER {
            0
        } else {
            part.saturating_mul(MASTER.bytes())
        };
        let count = params.iter().map(|param| param.count);
        let count = count.fold(0, u64::saturating_add);
        let layout = Layout::contiguous([part]);
        let master = tape.master("main_param", layout, MASTER, bytes, count);
        self.buffers.borrow_mut().push(Buffer {
            _weights: weights,
            gradients,
            master: master.clone(),
        });
        master
    }

    /// The elements of a buffer: with a distributed optimizer each parameter begins at a multiple of 64, and each bucket ends
    /// where it can be divided over the GPUs.
    fn numel(&self, params: &[Rc<Param>], ranks: u64) -> u64 {
        const PARAM: u64 = 64;
        const BUCKET: u64 = 128;
        let sizes = params
            .iter()
            .rev()
            .map(|param| (param.data.numel(), param.copies()));
        if !self.is_distributed() {
            return sizes.fold(0, |all: u64, (numel, copies)| {
                all.saturating_add(numel.saturating_mul(copies))
            });
        }
        let overlaps = self.world.parallel.zero_overlap != Toggle::Off;
        let limit = if overlaps {
            ranks.saturating_mul(1_000_000).max(40_000_000)
        } else {
            u64::MAX
        };
        let divisor = least_common_multiple(ranks.max(1), BUCKET);
        let (mut end, mut start) = (0_u64, 0_u64);
        for (numel, copies) in sizes {
            for _ in 0..copies {
                end = end.round_up(PARAM).saturating_add(numel);
                if end - start >= limit {
                    end = end.round_up(divisor);
                    start = end;
                }
            }
        }
        end.round_up(divisor)
    }
}

fn least_common_multiple(a: u64, b: u64) -> u64 {
    let (mut greater, mut smaller) = (a.max(b), a.min(b));
    while smaller > 0 {
        (greater, smaller) = (smaller, greater % smaller);
    }
    (a / greater.max(1)).saturating_mul(b)
}
