//! What stage 3 keeps of parameters and gradients on one rank, and how gradients are reduced.

use std::rc::Rc;

use super::coordinator::{Pass, storage, stored};
use super::stage3::State;
use crate::parallel::pinned;
use crate::tape::{Category, DType, Layout, Param, Tensor};
use headroom_base::units::RoundUp;
use headroom_scenario::Offload;

/// The type in which gradients are reduced: the engine's 16-bit type where some weights have it, also for adapters in fp32
/// (`communication_data_type`).
fn communicated(params: &[Rc<Param>]) -> DType {
    let half = params.iter().find(|param| param.data.dtype().is_half());
    let mut trained = params.iter().filter(|param| param.trainable);
    let first = half.or_else(|| trained.next()).or(params.first());
    first.map_or(DType::F32, |param| param.data.dtype())
}

impl State {
    fn dtype(&self) -> DType {
        communicated(&self.params.borrow())
    }

    /// Shards of the parameters that are not trained.
    pub(super) fn divide_frozen(&self, params: &[Rc<Param>]) {
        let ranks = self.ranks();
        for param in params.iter().filter(|param| !param.trainable) {
            let numel = stored(param).div_ceil(ranks);
            let shard = self.tape.empty(param.name, [numel], storage(param));
            shard.set_category(Category::Parameters);
            self.kept.borrow_mut().push(shard);
        }
    }

    /// Shards of all parameters, their master weights and gradients, and the bucket.
    pub(super) fn divide(&self, params: &[Rc<Param>]) -> Rc<Param> {
        let tape = &self.tape;
        let ranks = self.ranks();
        // Those that are not trained are divided too, but nothing is kept for them reference.
        self.divide_frozen(params);
        let trained = || params.iter().filter(|param| param.trainable);
        let shards = trained().map(|param| param.data.numel().div_ceil(ranks));
        let part = shards.fold(0, u64::saturating_add);
        let count = trained().map(|param| param.count);
        let count = count.fold(0, u64::saturating_add);
        let dtype = trained()
            .next()
            .map_or(DType::F32, |param| param.data.dtype());
        let offload = self.world.parallel.offload;
        let keep = |tensor: Tensor, category| {
            tensor.set_category(category);
            self.kept.borrow_mut().push(tensor);
        };
        if offload != Offload::Parameters {
            let shards = tape.empty("defragment", [part], dtype);
            keep(shards, Category::Parameters);
        }
        let bytes = if offload == Offload::None {
            part.saturating_mul(self.config.master.bytes())
        } else {
            0
        };
        let master = tape.master(
            "partition",
            Layout::contiguous([part]),
            self.config.master,
            bytes,
            count,
        );
        self.master.replace(Some(master.clone()));
        if self.config.contiguous {
            let sent = communicated(params);
            let bucket = tape.empty("ipg_bucket", [self.config.reduce_bucket], sent);
            self.bucket.borrow_mut().buffers.push(bucket);
        }
        if offload == Offload::None {
            let sent = communicated(params);
            let gradients = tape.empty("grad_partitions_flat_buffer", [part], sent);
            keep(gradients, Category::Gradients);
        }
        master
    }

    /// A gradient has arrived: the backward of its module is finished, and it waits in the bucket.
    pub(super) fn reduce(&self, place: usize, param: &Rc<Param>) {
        self.coordinate(|coordinator| {
            if !coordinator.holds(param.scope) {
                coordinator.enter(param.scope, Pass::Backward);
            }
        });
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
        bucket.push((0, place), numel);
    }

    /// `__reduce_and_partition_ipg_grads`: parts of several gradients are interleaved in a tensor that is reduced.
    pub(super) fn reduce_bucket(&self) {
        let members = self.bucket.borrow_mut().drain();
        let params = self.params.borrow();
        let ranks = self.ranks();
        let found: Vec<&Rc<Param>> = members
            .iter()
            .filter_map(|(_, place)| params.get(*place))
            .collect();
        let sizes = found.iter().map(|param| param.data.numel());
        let whole = sizes.clone().all(|numel| numel % ranks == 0);
        if found.len() > 1 || !whole {
            let padded = sizes.map(|numel| numel.round_up(ranks));
            let numel = padded.fold(0, u64::saturating_add);
            let reduced = || self.tape.empty("reduce_scatter", [numel], self.dtype());
            drop(self.tape.on(self.stream(2), reduced));
        }
        for param in found {
            self.send_to_host(param);
            param.grad.take();
        }
    }

    /// `partition_grads` where the optimizer is on the host: a part of a gradient comes back from there, and its norm is taken in
    /// double precision once it is complete (`_constant_buffered_norm2`).
    fn send_to_host(&self, param: &Param) {
        const PIECE: u64 = 250_000_000;
        if self.world.parallel.offload == Offload::None {
            return;
        }
        let part = param.data.numel().div_ceil(self.ranks());
        self.tape.on(self.stream(2), || {
            let gradient = self.tape.empty("to", [part], self.dtype());
            if self.boundary.get() {
                let norm =
                    self.tape
                        .empty("_constant_buffered_norm2", [part.min(PIECE)], DType::F64);
                drop(norm);
            }
            drop(gradient);
        });
    }

    /// Master weights, those of a sub-group flat (`_create_fp16_sub_groups`), and the gradients of all; with the parameters there
    /// too, these flat, and the blocks in which each was before.
    pub(super) fn pinned(&self) -> u64 {
        const SUB_GROUP: u64 = 1_000_000_000;
        let offload = self.world.parallel.offload;
        if offload == Offload::None {
            return 0;
        }
        let limit = match self.world.parallel.zero_subgroup {
            0 => SUB_GROUP,
            given => given,
        };
        let params = self.params.borrow();
        let trained = params.iter().filter(|param| param.trainable);
        let ranks = self.ranks();
        let part = |param: &Rc<Param>| param.data.numel().div_ceil(ranks);
        let (mut groups, mut all, mut open) = (Vec::new(), 0_u64, 0_u64);
        for param in trained {
            all = all.saturating_add(part(param));
            open = open.saturating_add(part(param));
            if open >= limit {
                groups.push(std::mem::take(&mut open));
            }
        }
        groups.push(open);
        let size = self.dtype().bytes();
        let master = self.config.master.bytes();
        let masters = pinned::blocks(groups.iter().map(|numel| numel.saturating_mul(master)));
        let flat = pinned::block(all.saturating_mul(size));
        let gradients = masters.saturating_add(flat);
        if offload != Offload::Parameters {
            return gradients;
        }
        let each = params.iter().map(|param| part(param).saturating_mul(size));
        gradients
            .saturating_add(flat)
            .saturating_add(pinned::blocks(each))
    }

    /// The norm in double precision, a shard at a time; then the flat gradient in the master weights' type.
    pub(super) fn before_step(&self) {
        let tape = &self.tape;
        let Some(master) = self.master.borrow().clone() else {
            return;
        };
        if self.world.parallel.offload != Offload::None {
            return;
        }
        let ranks = self.ranks();
        let params = self.params.borrow();
        for param in params.iter().filter(|param| param.trainable) {
            let numel = param.data.numel().div_ceil(ranks);
            drop(tape.empty("get_grad_norm_direct", [numel], DType::F64));
        }
        let part = master.data.numel();
        let flat = tape.empty("flatten", [part], self.dtype());
        let gradient = if self.dtype() == self.config.master {
            flat
        } else {
            flat.pipe(|flat| flat.tape().empty("to", [part], self.config.master))
        };
        gradient.set_category(Category::Gradients);
        master.grad.replace(Some(gradient));
    }
}
