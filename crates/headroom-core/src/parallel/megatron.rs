//! Megatron-Core's `DistributedDataParallel` and its optimizers (megatron/core/distributed, megatron/core/optimizer).

use headroom_base::units::RoundUp;
use std::cell::RefCell;
use std::rc::Rc;

use super::{Properties, World, Wrapper};
use crate::tape::{Category, DType, Layout, Param, PostAccumulateGradHook, Tape, Tensor};
use headroom_scenario::{Parallelism, PolicyType, Toggle};

const MASTER: DType = DType::F32;

/// Weights and gradients in one buffer each (`_ParamAndGradBuffer`), and the optimizer's part of them.
#[derive(Debug)]
pub(crate) struct MegatronDdp(Rc<State>);

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
    masters: Vec<Rc<Param>>,
}

impl MegatronDdp {
    pub(crate) fn new(world: World) -> Self {
        Self(Rc::new(State {
            world,
            buffers: RefCell::default(),
            weights: RefCell::default(),
        }))
    }
}

impl Wrapper for MegatronDdp {
    fn properties(&self) -> Properties {
        Properties {
            shards_params: true,
            clips: true,
            ..Properties::default()
        }
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
                    after.extend(self.0.lay_out(tape, &params, ranks));
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
            for master in &buffer.masters {
                let part = Layout::contiguous(*master.data.shape());
                let gradient = buffer.gradients.as_strided(part);
                // `shard_model_grad.float()`: nothing where it is so already.
                master.grad.replace(Some(gradient.to(MASTER)));
            }
        }
    }

    fn after_step(&self) {
        let buffers = self.0.buffers.borrow();
        for master in buffers.iter().flat_map(|buffer| &buffer.masters) {
            master.grad.take();
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

    fn lay_out(&self, tape: &Tape, params: &[Rc<Param>], ranks: u64) -> Vec<Rc<Param>> {
        let dtype = params
            .first()
            .map_or(DType::F32, |param| param.data.dtype());
        let (numel, parts) = self.place(params, ranks);
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
        let counts = params.iter().map(|param| param.count);
        let mut count = counts.fold(0, u64::saturating_add);
        let masters = parts.into_iter().map(|part| {
            // Weights in fp32 are stepped as they are.
            let bytes = if dtype == MASTER {
                0
            } else {
                part.saturating_mul(MASTER.bytes())
            };
            let layout = Layout::contiguous([part]);
            let count = std::mem::take(&mut count);
            tape.master("main_param", layout, MASTER, bytes, count)
        });
        let masters: Vec<Rc<Param>> = masters.collect();
        self.buffers.borrow_mut().push(Buffer {
            _weights: weights,
            gradients,
            masters: masters.clone(),
        });
        masters
    }

    /// The elements of a buffer, and of each parameter those that this rank steps. With a distributed optimizer each parameter
    /// begins at a multiple of 64, and each bucket ends where it can be divided over the GPUs, of which each has a part of every
    /// bucket. Norms and biases, which do not decay, are the optimizer's first group.
    fn place(&self, params: &[Rc<Param>], ranks: u64) -> (u64, Vec<u64>) {
        const PARAM: u64 = 64;
        const BUCKET: u64 = 128;
        let each = one_by_one(params);
        let grouped = |parts: Vec<(u64, bool)>| {
            let (decaying, first): (Vec<_>, Vec<_>) =
                parts.into_iter().partition(|(_, decays)| *decays);
            let parts = first.into_iter().chain(decaying);
            parts.map(|(numel, _)| numel).collect::<Vec<u64>>()
        };
        if !self.is_distributed() {
            let numels = each.iter().map(|(numel, _)| *numel);
            let numel = numels.fold(0, u64::saturating_add);
            return (numel, grouped(each));
        }
        // Of a pipeline the first stage alone, whose backward is the last, reduces in buckets.
        let overlaps =
            self.world.parallel.zero_overlap != Toggle::Off && self.world.rank.stage == 0;
        let limit = if overlaps {
            ranks.saturating_mul(1_000_000).max(40_000_000)
        } else {
            u64::MAX
        };
        let ranks = ranks.max(1);
        let divisor = least_common_multiple(ranks, BUCKET);
        let rank = u64::from(self.world.rank.shard) % ranks;
        let (mut parts, mut members) = (Vec::new(), Vec::new());
        let mut close = |members: &mut Vec<(u64, u64, bool)>, start: u64, end: u64| {
            let part = (end - start) / ranks;
            let from = start.saturating_add(part.saturating_mul(rank));
            let until = from.saturating_add(part);
            let here = members.drain(..).map(|(first, end, decays)| {
                let numel = end.min(until).saturating_sub(first.max(from));
                (numel, decays)
            });
            parts.extend(here.filter(|(numel, _)| *numel > 0));
        };
        let (mut end, mut start) = (0_u64, 0_u64);
        for (numel, decays) in each.into_iter().rev() {
            let first = end.round_up(PARAM);
            end = first.saturating_add(numel);
            members.push((first, end, decays));
            if end - start >= limit {
                end = end.round_up(divisor);
                close(&mut members, start, end);
                start = end;
            }
        }
        end = end.round_up(divisor);
        close(&mut members, start, end);
        (end, grouped(parts))
    }
}

/// The elements of each parameter, and whether it decays: folded layers are repeated one after the other.
fn one_by_one(params: &[Rc<Param>]) -> Vec<(u64, bool)> {
    let rows = params.chunk_by(|a, b| a.fold.is_some() && a.fold == b.fold);
    let rows = rows.flat_map(|row| {
        let copies = row.first().map_or(1, |param| param.copies());
        (0..copies).flat_map(move |_| row)
    });
    let sizes = rows.map(|param| (param.data.numel(), param.data.shape().len() > 1));
    sizes.collect()
}

fn least_common_multiple(a: u64, b: u64) -> u64 {
    let (mut greater, mut smaller) = (a.max(b), a.min(b));
    while smaller > 0 {
        (greater, smaller) = (smaller, greater % smaller);
    }
    (a / greater.max(1)).saturating_mul(b)
}
