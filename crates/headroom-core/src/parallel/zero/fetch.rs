//! Gathering of stage 3's parameters ahead of their use, and their release (deepspeed/runtime/zero/partitioned_param_coordinator.py).

use std::rc::Rc;

use super::coordinator::{Coordinator, Status, Trace, storage, stored};
use crate::tape::{Category, DType, Scope, Tensor};
use headroom_base::units::RoundUp;

impl Coordinator {
    /// `fetch_sub_module`: what the module needs, and ahead what comes after it.
    pub(super) fn fetch(&mut self, module: Scope) {
        if self.trace == Trace::Complete && self.order.modules.get(self.step) != Some(&module) {
            self.invalidate();
        }
        if self.trace == Trace::Recording {
            let numels = self.of(module).into_iter().map(|at| self.numel(at));
            let elements = numels.fold(0, u64::saturating_add);
            self.order.push(module, elements);
        }
        let needed = self.of(module);
        self.gather(&needed);
        for &at in &needed {
            self.wait(at);
        }
        if self.trace == Trace::Complete {
            let fresh = needed
                .iter()
                .filter(|at| self.fetched_for.get(**at).copied().flatten() < Some(self.step))
                .count();
            for _ in 0..fresh {
                if let Some((at, step)) = self.queue.pop_front()
                    && let Some(place) = self.fetched_for.get_mut(at)
                {
                    *place = Some(step);
                }
            }
            self.prefetch();
        }
        self.step += 1;
    }

    fn prefetch(&mut self) {
        let room = self.limits.live.saturating_sub(self.available);
        let most = room.min(self.limits.prefetch);
        let mut ahead: Vec<usize> = Vec::new();
        let mut numel: u64 = 0;
        while numel < most {
            let Some((at, step)) = self.queue.pop_front() else {
                break;
            };
            if let Some(place) = self.fetched_for.get_mut(at) {
                *place = (*place).max(Some(step));
            }
            if self.is_missing(at) && !ahead.contains(&at) {
                ahead.push(at);
                numel = numel.saturating_add(self.numel(at));
            }
        }
        self.gather(&ahead);
    }

    /// `__all_gather_params_`: those with a copy in the group are gathered from there, the others from all ranks.
    pub(super) fn gather(&mut self, wanted: &[usize]) {
        let missing = wanted.iter().copied().filter(|at| self.is_missing(*at));
        let near = |at: &usize| self.secondary.get(*at).is_some_and(Option::is_some);
        let (near, far) = missing.partition(near);
        self.gather_together(near);
        self.gather_together(far);
    }

    /// `all_gather_coalesced`: one parameter straight into its place, several of a type into one buffer (`_all_gather_dtype`).
    fn gather_together(&mut self, missing: Vec<usize>) {
        let numels = missing.iter().map(|at| self.numel(*at));
        self.available = numels.fold(self.available, u64::saturating_add);
        if let [at] = missing[..] {
            let buffer = self.gather_buffer(&missing);
            buffer.set_category(Category::Parameters);
            self.put(at, Status::InflightAlone(buffer));
            return;
        }
        let (wide, half): (Vec<usize>, Vec<usize>) = missing
            .into_iter()
            .partition(|at| self.storage(*at).bytes() > 2);
        for members in [half, wide] {
            if members.is_empty() {
                continue;
            }
            let buffer = Rc::new(self.gather_buffer(&members));
            for at in members {
                self.put(at, Status::Inflight(buffer.clone()));
            }
        }
    }

    /// What parameters of one type are gathered into.
    fn gather_buffer(&self, members: &[usize]) -> Tensor {
        let padded = |at: usize| self.numel(at).round_up(self.ranks.max(1));
        let sizes = members.iter().map(|at| padded(*at));
        let whole = sizes.fold(0, u64::saturating_add);
        let dtype = members.first().map_or(DType::F32, |at| self.storage(*at));
        self.tape.on(self.limits.stream, || {
            let buffer = self.tape.empty("all_gather", [whole], dtype);
            if self.limits.from_host {
                let sizes = members.iter().map(|at| padded(*at) / self.ranks.max(1));
                let sent = sizes.map(|numel| self.tape.empty("to", [numel], dtype));
                drop(sent.collect::<Vec<Tensor>>());
            }
            buffer
        })
    }

    fn storage(&self, at: usize) -> DType {
        self.params
            .get(at)
            .map_or(DType::F32, |(param, _)| storage(param))
    }

    fn put(&mut self, at: usize, status: Status) {
        if let Some((_, place)) = self.params.get_mut(at) {
            *place = status;
        }
    }

    /// A buffer's parameters are copied out together; it is freed once the last of them has been waited for.
    pub(super) fn wait(&mut self, at: usize) {
        let Some((_, status)) = self.params.get_mut(at) else {
            return;
        };
        let buffer = match std::mem::replace(status, Status::NotAvailable) {
            Status::NotAvailable => return,
            Status::InflightAlone(memory)
            | Status::Available {
                _memory: memory, ..
            } => {
                *status = Status::Available {
                    _memory: memory,
                    buffer: None,
                };
                return;
            }
            Status::Inflight(buffer) => {
                *status = Status::Inflight(buffer.clone());
                buffer
            }
        };
        let (tape, stream) = (self.tape.clone(), self.limits.stream);
        for (param, status) in &mut self.params {
            let is_in = |other: &Rc<Tensor>| Rc::ptr_eq(other, &buffer);
            if !matches!(status, Status::Inflight(other) if is_in(other)) {
                continue;
            }
            let (numel, dtype) = (stored(param), buffer.dtype());
            let whole = tape.on(stream, || tape.empty("cat", [numel], dtype));
            whole.set_category(Category::Parameters);
            *status = Status::Available {
                _memory: whole,
                buffer: Some(buffer.clone()),
            };
        }
        drop(buffer);
        if let Some((_, Status::Available { buffer, .. })) = self.params.get_mut(at) {
            buffer.take();
        }
    }

    /// `release_sub_module`: parameters go that are not used again soon.
    pub(super) fn release(&mut self, module: Scope) {
        let mut leaving = self.of(module);
        if self.trace == Trace::Complete {
            leaving.retain(|at| !self.persists(*at));
            leaving.retain(|at| {
                let fetched = self.fetched_for.get(*at).copied().flatten();
                fetched <= Some(self.step)
            });
            if self
                .order
                .comes_within(self.limits.reuse, module, self.step)
            {
                leaving.clear();
            }
        }
        for at in leaving {
            self.release_param(at);
        }
    }

    /// `__release_param`.
    pub(super) fn release_param(&mut self, at: usize) {
        let active = self.active.get(at).copied().unwrap_or_default();
        if !active && matches!(self.params.get(at), Some((_, Status::Available { .. }))) {
            self.partition(at);
            self.available = self.available.saturating_sub(self.numel(at));
        }
    }

    /// `_clean_inflight_param_registry`: what was prefetched and not used is freed.
    pub(super) fn release_in_flight(&mut self) {
        for at in 0..self.params.len() {
            let status = self.params.get(at).map(|(_, status)| status);
            if let Some(Status::Inflight(_) | Status::InflightAlone(_)) = status {
                self.put(at, Status::NotAvailable);
                self.available = self.available.saturating_sub(self.numel(at));
            }
        }
    }

    /// `_partition`: a gathered parameter is partitioned again.
    pub(super) fn partition(&mut self, at: usize) {
        if matches!(self.params.get(at), Some((_, Status::Available { .. }))) {
            self.keep_secondary(at);
        }
        self.put(at, Status::NotAvailable);
    }

    /// `_partition_param_sec`: a parameter that is about to be divided leaves this rank's part of its group's copy.
    pub(super) fn keep_secondary(&mut self, at: usize) {
        let (tape, group) = (&self.tape, self.limits.secondary);
        let numel = self.numel(at).round_up(self.ranks.max(1));
        let Some(((param, _), kept)) = self.params.get(at).zip(self.secondary.get_mut(at)) else {
            return;
        };
        if group == 0 || kept.is_some() || self.limits.from_host {
            return;
        }
        let part = tape.empty("secondary", [numel / group], storage(param));
        part.set_category(Category::Parameters);
        *kept = Some(part);
    }
}
