//! Stages 1 and 2 (deepspeed/runtime/zero/stage_1_and_2.py): weights stay unsharded, states are divided, and at stage 2 gradients
//! are too.

use headroom_base::units::RoundUp;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::bucket::Bucket;
use super::config::Config;
use super::partition::Flat;
use crate::parallel::{Properties, World, Wrapper, is_accelerate, pinned};
use crate::tape::{Category, DType, Layout, Param, PostAccumulateGradHook, Stream, Tape, Tensor};

/// `DeepSpeedZeroOptimizer`.
#[derive(Debug)]
pub(crate) struct ZeroOptimizer(Rc<State>);

/// How many elements of each gradient this rank steps, and the gradient.
type Pieces = Vec<(u64, Tensor)>;

#[derive(Debug)]
struct State {
    tape: Tape,
    world: World,
    config: Config,
    /// Stage 2: gradients of other ranks' parts are freed as soon as they are reduced.
    divides_gradients: bool,
    groups: RefCell<Vec<Flat>>,
    /// Also kept on every rank: parameters that no optimizer steps, and the offload buffer.
    frozen: RefCell<Vec<Tensor>>,
    bucket: RefCell<Bucket>,
    /// The gradients of this rank's parameters, one behind another.
    in_partition: RefCell<Option<Tensor>>,
    /// Complete gradients of this rank's parameters, by their groups: summed over micro-batches (`all_grad_tensors`).
    averaged: RefCell<Vec<Pieces>>,
    /// Those of later groups while the first is stepped: groups go one after the other, and share the memory behind their gradients.
    stepping: RefCell<Vec<Pieces>>,
    /// The micro-batch under way is the last of its step.
    boundary: Cell<bool>,
    /// A step has several.
    accumulates: Cell<bool>,
}

impl ZeroOptimizer {
    pub(crate) fn new(tape: &Tape, world: World, stage: u32) -> Self {
        Self(Rc::new(State {
            tape: tape.clone(),
            world,
            config: Config::of(&world, stage),
            divides_gradients: stage >= 2,
            groups: RefCell::default(),
            frozen: RefCell::default(),
            bucket: RefCell::default(),
            in_partition: RefCell::default(),
            averaged: RefCell::default(),
            stepping: RefCell::default(),
            boundary: Cell::new(true),
            accumulates: Cell::new(false),
        }))
    }
}

impl Wrapper for ZeroOptimizer {
    fn properties(&self) -> Properties {
        Properties {
            shards_params: true,
            clips: true,
            folds: false,
            ..Properties::default()
        }
    }

    fn wrap(&self, tape: &Tape, state: Vec<Rc<Param>>) -> Vec<Rc<Param>> {
        let zero = &self.0;
        let (mut after, params): (Vec<_>, Vec<_>) =
            state.into_iter().partition(|param| param.is_buffer());
        let frozen = || params.iter().filter(|param| !param.trainable);
        let whole = |param: &Rc<Param>| {
            let weight = tape.empty_as(param.name, *param.data.layout(), param.data.dtype());
            weight.set_category(Category::Parameters);
            weight
        };
        tape.setting_up(|| {
            zero.frozen.replace(frozen().map(whole).collect());
            for group in zero.grouped(params.iter()) {
                after.push(zero.flatten(group));
            }
            zero.take_offload_buffer();
        });
        after.extend(frozen().cloned());
        self.hook();
        after
    }

    fn before_pass(&self, last: bool) {
        self.0.boundary.set(last);
        if !last {
            self.0.accumulates.set(true);
        }
    }

    fn pinned(&self) -> u64 {
        self.0.pinned()
    }

    fn after_backward(&self) {
        self.0.epilogue();
    }

    fn before_step(&self) {
        self.0.before_step();
    }

    fn after_step(&self) {
        for group in self.0.groups.borrow().iter() {
            group.master.grad.take();
        }
        self.0.stepping.take();
    }
}

impl ZeroOptimizer {
    /// `create_gradient_handling_hooks`.
    fn hook(&self) {
        for (at, group) in self.0.groups.borrow().iter().enumerate() {
            for (place, param) in group.params.iter().enumerate() {
                // The parameter is this one's own: a hook that held it would never go.
                let zero = Rc::downgrade(&self.0);
                let hook: Rc<PostAccumulateGradHook> = Rc::new(move |_| {
                    if let Some(zero) = zero.upgrade() {
                        zero.process_gradient((at, place));
                    }
                });
                param.post_accumulate_grad.replace(Some(hook));
            }
        }
    }
}

impl State {
    /// The optimizer's parameter groups: transformers keeps biases and norms, which do not decay, in one of their own.
    fn grouped<'a>(&self, params: impl Iterator<Item = &'a Rc<Param>>) -> Vec<Vec<Rc<Param>>> {
        let trained = params.filter(|param| param.trainable).cloned();
        let apart = is_accelerate(self.world.trainer);
        let (decaying, rest): (Vec<_>, Vec<_>) =
            trained.partition(|param| !apart || param.data.shape().len() > 1);
        let mut groups = vec![decaying, rest];
        groups.retain(|group| !group.is_empty());
        groups
    }

    /// Lays a group out flat and makes the master weights of this rank's part.
    fn flatten(&self, params: Vec<Rc<Param>>) -> Rc<Param> {
        const START_ALIGNMENT: u64 = 2;
        let tape = &self.tape;
        let ranks = u64::from(self.world.mesh.shard).max(1);
        let dtype = params
            .first()
            .map_or(DType::F32, |param| param.data.dtype());
        let sizes = params.iter().map(|param| param.data.numel());
        let numel = sizes.fold(0, u64::saturating_add);
        let aligned = numel.round_up(ranks.saturating_mul(START_ALIGNMENT));
        let part = aligned / ranks;
        let weights = tape.empty("flatten", [aligned], dtype);
        weights.set_category(Category::Parameters);
        let count = params.iter().map(|param| param.count);
        let count = count.fold(0, u64::saturating_add);
        let on_host = self.config.offloads_optimizer;
        let bytes = if on_host {
            0
        } else {
            part.saturating_mul(self.config.master.bytes())
        };
        let master = tape.master(
            "partition",
            Layout::contiguous([part]),
            self.config.master,
            bytes,
            count,
        );
        let rank = u64::from(self.world.rank.shard);
        let group = Flat::new(weights, params, part, rank, master.clone());
        self.groups.borrow_mut().push(group);
        master
    }

    /// `temp_grad_buffer_for_gpu_offload`: as large as the largest parameter, through which gradients go to the host.
    fn take_offload_buffer(&self) {
        if !self.config.offloads_optimizer {
            return;
        }
        let groups = self.groups.borrow();
        let sizes = groups.iter().flat_map(|group| &group.params);
        let largest = sizes.map(|param| param.data.numel()).max().unwrap_or(0);
        let buffer = self.tape.empty("zeros", [largest], self.dtype());
        self.frozen.borrow_mut().push(buffer);
    }

    /// Master weights, their gradients and the weights' part, each group's flat (`cpu_offload`); a buffer for the largest gradient
    /// (`temp_grad_buffer_for_cpu_offload`), and where there are several micro-batches each gradient's sum
    /// (`accumulated_grads_in_cpu`).
    fn pinned(&self) -> u64 {
        if !self.config.offloads_optimizer {
            return 0;
        }
        let size = self.dtype().bytes();
        let master = self.config.master.bytes();
        let groups = self.groups.borrow();
        let flat = groups
            .iter()
            .flat_map(|group| [master, master, size].map(|each| group.part.saturating_mul(each)));
        let params = groups.iter().flat_map(|group| &group.params);
        let largest = params.map(|param| param.data.numel()).max().unwrap_or(0);
        let sums = groups.iter().flat_map(|group| {
            let here = group.here().into_iter();
            here.map(|at| group.elements_here(at).saturating_mul(size))
        });
        let sums = if self.accumulates.get() {
            pinned::blocks(sums)
        } else {
            0
        };
        pinned::blocks(flat)
            .saturating_add(pinned::block(largest.saturating_mul(size)))
            .saturating_add(sums)
    }

    /// `process_gradients`: a gradient has arrived.
    fn process_gradient(&self, member: (usize, usize)) {
        self.set_up_bucket();
        if self.divides_gradients || self.config.overlaps && self.boundary.get() {
            self.reduce_ready(member);
        }
    }

    fn set_up_bucket(&self) {
        let mut bucket = self.bucket.borrow_mut();
        if !self.config.contiguous || !bucket.buffers.is_empty() {
            return;
        }
        let dtype = self.dtype();
        for _ in 0..=u32::from(self.config.overlaps) {
            let buffer = self
                .tape
                .empty("ipg_bucket", [self.config.reduce_bucket], dtype);
            bucket.buffers.push(buffer);
        }
    }

    fn dtype(&self) -> DType {
        let groups = self.groups.borrow();
        let first = groups.first().and_then(|group| group.params.first());
        first.map_or(DType::F32, |param| param.data.dtype())
    }

    fn param(&self, (group, place): (usize, usize)) -> Option<Rc<Param>> {
        self.groups
            .borrow()
            .get(group)
            .and_then(|group| group.params.get(place).cloned())
    }

    /// `reduce_independent_p_g_buckets_and_remove_grads`: the gradient waits in the bucket, which is reduced when full.
    fn reduce_ready(&self, member: (usize, usize)) {
        let Some(param) = self.param(member) else {
            return;
        };
        let numel = param.data.numel();
        let limit = self.config.reduce_bucket;
        if !self.bucket.borrow().has_room_for(numel, limit) {
            self.reduce_bucket();
        }
        let mut bucket = self.bucket.borrow_mut();
        if let Some(buffer) = bucket.buffers.first().filter(|_| numel <= limit) {
            let part = buffer.detach();
            drop(param.grad.replace(Some(part)));
        }
        bucket.push(member, numel);
    }

    /// `reduce_ipg_grads`: what is in the bucket is averaged; this rank keeps its part. All of it is on a stream of its own, where
    /// communication overlaps with the computation (`reduction_stream`).
    fn reduce_bucket(&self) {
        let stream = if self.config.overlaps {
            Stream::side(1)
        } else {
            Stream::COMPUTE
        };
        self.tape.on(stream, || self.reduce_members());
    }

    fn reduce_members(&self) {
        let members = self.bucket.borrow_mut().drain();
        if members.is_empty() {
            return;
        }
        if self.config.contiguous {
            self.average(&members);
        } else if members.len() > 1 {
            let sizes = members.iter().filter_map(|member| self.param(*member));
            let numel = sizes.fold(0_u64, |all, param| all.saturating_add(param.data.numel()));
            drop(self.tape.empty("flatten", [numel], self.dtype()));
        }
        for member in members {
            let Some(param) = self.param(member) else {
                continue;
            };
            if self.is_here(member) {
                if self.config.offloads_optimizer {
                    self.send_to_host(member, &param);
                } else if self.config.contiguous {
                    self.copy_into_partition(&param);
                }
            } else if self.divides_gradients {
                param.grad.take();
            }
        }
    }

    fn is_here(&self, (group, place): (usize, usize)) -> bool {
        let groups = self.groups.borrow();
        groups
            .get(group)
            .is_some_and(|group| group.elements_here(place) > 0)
    }

    /// `average_tensor`: slices that belong to several ranks are joined in one tensor, a bucket's worth at a time.
    fn average(&self, members: &[(usize, usize)]) {
        let mut slices: Vec<(u64, u64)> = Vec::new();
        for &(group, place) in members {
            let groups = self.groups.borrow();
            for (rank, numel) in groups
                .get(group)
                .map_or(Vec::new(), |group| group.slices(place))
            {
                match slices.last_mut() {
                    Some((last, sum)) if *last == rank => *sum = sum.saturating_add(numel),
                    _ => slices.push((rank, numel)),
                }
            }
        }
        // How many slices are joined, and their elements: with thousands of ranks there are as many.
        let (mut joined, mut numel) = (0_usize, 0_u64);
        let join = |joined: usize, numel: u64| {
            // A tensor alone is flat as it is.
            if joined > 1 {
                drop(self.tape.empty("flatten", [numel], self.dtype()));
            }
        };
        for (_, slice) in slices {
            joined += 1;
            numel = numel.saturating_add(slice);
            if numel > self.config.reduce_bucket {
                join(joined, numel);
                (joined, numel) = (0, 0);
            }
        }
        join(joined, numel);
    }

    /// Where the optimizer is on the host: the norm in double precision, then a copy to there.
    fn send_to_host(&self, (group, place): (usize, usize), param: &Rc<Param>) {
        if self.boundary.get() {
            let groups = self.groups.borrow();
            let numel = groups
                .get(group)
                .map_or(0, |group| group.elements_here(place));
            drop(
                self.tape
                    .empty("set_norm_for_param_grad_in_gpu", [numel], DType::F64),
            );
        }
        param.grad.take();
    }

    /// `copy_grads_in_partition`: this rank's gradients go behind each other into a tensor of their own.
    fn copy_into_partition(&self, param: &Rc<Param>) {
        let mut in_partition = self.in_partition.borrow_mut();
        let all = in_partition.get_or_insert_with(|| {
            let groups = self.groups.borrow();
            let sizes = groups.iter().flat_map(|group| {
                let params = group.here().into_iter();
                params.filter_map(|at| group.params.get(at).map(|param| param.data.numel()))
            });
            let numel = sizes.fold(0, u64::saturating_add);
            let all = self.tape.empty("grads_in_partition", [numel], self.dtype());
            all.set_category(Category::Gradients);
            all
        });
        drop(param.grad.replace(Some(all.detach())));
    }

    /// `independent_gradient_partition_epilogue`, and before it at stage 1 all of the reduction.
    fn epilogue(&self) {
        let reduces = self.divides_gradients || self.boundary.get();
        if !reduces {
            return;
        }
        if !self.divides_gradients && !self.config.overlaps {
            let members: Vec<(usize, usize)> = self
                .groups
                .borrow()
                .iter()
                .enumerate()
                .flat_map(|(at, group)| (0..group.params.len()).map(move |place| (at, place)))
                .collect();
            for member in members {
                self.reduce_ready(member);
            }
        }
        self.reduce_bucket();
        if !self.config.offloads_optimizer {
            self.collect();
        }
        drop(self.bucket.take());
        self.in_partition.take();
        for group in self.groups.borrow().iter() {
            for param in &group.params {
                param.grad.take();
            }
        }
    }

    /// This rank's gradients, added to those of the micro-batches before.
    fn collect(&self) {
        let groups = self.groups.borrow();
        let mut averaged = self.averaged.borrow_mut();
        averaged.resize_with(groups.len(), Vec::new);
        for (group, averaged) in groups.iter().zip(averaged.iter_mut()) {
            let new = group.here().into_iter().filter_map(|at| {
                let gradient = group.params.get(at)?.grad.take()?;
                Some((group.elements_here(at), gradient))
            });
            let new: Pieces = new.collect();
            if averaged.is_empty() {
                *averaged = new;
            }
        }
    }

    /// `step`: the norm in double precision, a piece at a time; then the flat gradient in the master weights' type.
    fn before_step(&self) {
        let tape = &self.tape;
        let groups = self.groups.borrow();
        let averaged = self.averaged.take();
        for pieces in &averaged {
            for (numel, _) in pieces {
                drop(tape.empty("get_grad_norm_direct", [*numel], DType::F64));
            }
        }
        let mut stepping = self.stepping.borrow_mut();
        for (at, (group, pieces)) in groups.iter().zip(averaged).enumerate() {
            if self.config.offloads_optimizer {
                continue;
            }
            let filled = pieces
                .iter()
                .fold(0_u64, |all, (numel, _)| all.saturating_add(*numel));
            let joins = pieces.len() > 1 || filled < group.part;
            let flat = if joins {
                Some(tape.empty("flatten", [group.part], self.dtype()))
            } else {
                pieces.first().map(|(_, piece)| piece.detach())
            };
            let gradient = match flat {
                Some(flat) if self.dtype() == self.config.master => flat,
                flat => {
                    let gradient = tape.empty("to", [group.part], self.config.master);
                    drop(flat);
                    gradient
                }
            };
            gradient.set_category(Category::Gradients);
            group.master.grad.replace(Some(gradient));
            if at > 0 {
                stepping.push(pieces);
            }
        }
    }
}
