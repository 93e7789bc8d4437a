//! Changes to a model's memory between its constructor and the first step: weights are converted
//! (`model.to(memory_format=torch.channels_last)`), and adapters are injected.

use std::rc::Rc;

use super::fold::Fold;
use super::{DType, Event, Group, Param, Tape, Trace};

/// A parameter whose storage is not the one its constructor allocated.
#[derive(Clone, Copy, Debug)]
struct Converted {
    storage: u32,
    fold: Option<Fold>,
    /// How many bytes it had before.
    bytes_before: u64,
}

impl Tape {
    /// Notes a parameter that is injected once the rest of the model is constructed, at first in another dtype
    /// (`inject_adapter_in_model` of PEFT).
    pub fn inject_parameter(&self, param: &Param, first: DType) {
        let Some(storage) = param.storage() else {
            return;
        };
        let mut injected = self.0.construction.injected.borrow_mut();
        if let Err(at) = injected.binary_search_by_key(&storage, |(storage, _)| *storage) {
            injected.insert(at, (storage, first));
        }
    }

    /// Finishes the construction of a model. Weights of four dimensions, which constructors make contiguous, are copied to
    /// channels last one after the other where the run requests it; then injected parameters are allocated and cast.
    pub fn finish_construction(&self, params: &[Rc<Param>], channels_last: bool) {
        let mut trace = self.0.trace.borrow_mut();
        if channels_last {
            let before =
                |param: &Param, _| (param.data.shape().len() == 4).then(|| param.data.bytes());
            trace.reallocate(&converted(params, &before));
        }
        let injected = self.0.construction.injected.borrow();
        if injected.is_empty() {
            return;
        }
        let before = |param: &Param, storage| {
            let at = injected.binary_search_by_key(&storage, |(storage, _)| *storage);
            let (_, first) = injected.get(at.ok()?)?;
            Some(param.data.numel().saturating_mul(first.bytes()))
        };
        let mut all = converted(params, &before);
        trace.allocate_last(&all);
        all.retain(|param| {
            let now = trace.storages.get(param.storage as usize);
            now.is_some_and(|now| now.bytes != param.bytes_before)
        });
        trace.reallocate(&all);
    }
}

/// The parameters for which `before` returns their former bytes, in the model's order.
fn converted(params: &[Rc<Param>], before: &dyn Fn(&Param, u32) -> Option<u64>) -> Vec<Converted> {
    let chosen = params.iter().filter_map(|param| {
        let storage = param.storage()?;
        Some(Converted {
            storage,
            fold: param.fold,
            bytes_before: before(param, storage)?,
        })
    });
    chosen.collect()
}

impl Trace {
    /// Reallocates the parameters one by one, freeing each old storage after its copy.
    fn reallocate(&mut self, all: &[Converted]) {
        let mut allocated_at = vec![None; self.storages.len()];
        for (at, event) in self.setup.iter().enumerate() {
            if let Some(place) = allocated_at.get_mut(event.storage() as usize)
                && !event.is_free()
            {
                *place = Some(at);
            }
        }
        self.by_fold(all, &mut |trace, param| {
            let number = param.storage as usize;
            let (Some(Some(at)), Some(&storage)) =
                (allocated_at.get(number), trace.storages.get(number))
            else {
                return;
            };
            let first = trace.storages.len() as u32;
            trace.storages.push(super::Storage {
                bytes: param.bytes_before,
                ..storage
            });
            if let Some(event) = trace.setup.get_mut(*at) {
                *event = Event::alloc(first);
            }
            let copy = [Event::alloc(param.storage), Event::free(first)];
            trace.setup.extend(copy);
        });
    }

    /// Moves the parameters' allocations to the end.
    fn allocate_last(&mut self, all: &[Converted]) {
        let mut moves = vec![false; self.storages.len()];
        for param in all {
            if let Some(moves) = moves.get_mut(param.storage as usize) {
                *moves = true;
            }
        }
        let moves = |event: &Event| moves.get(event.storage() as usize) == Some(&true);
        // How many events remain before each position.
        let mut staying = vec![0];
        let mut count = 0;
        for event in &self.setup {
            count += usize::from(!moves(event));
            staying.push(count);
        }
        let moved = |at: usize| staying.get(at).copied().unwrap_or(count);
        for group in &mut self.setup_groups {
            (group.start, group.end) = (moved(group.start), moved(group.end));
        }
        self.setup_groups.retain(|group| group.end > group.start);
        self.setup.retain(|event| !moves(event));
        self.by_fold(all, &mut |trace, param| {
            trace.setup.push(Event::alloc(param.storage));
        });
    }

    /// Runs `body` for each parameter at the end of the set-up; those of one row of folded layers form a group.
    fn by_fold(&mut self, all: &[Converted], body: &mut dyn FnMut(&mut Self, &Converted)) {
        for row in all.chunk_by(|a, b| a.fold == b.fold) {
            let start = self.setup.len();
            for param in row {
                body(self, param);
            }
            let end = self.setup.len();
            let fold = row.first().and_then(|param| param.fold);
            if let Some(fold) = fold.filter(|_| end > start) {
                self.setup_groups.push(Group {
                    start,
                    end,
                    times: fold.times(),
                    carries: Vec::new(),
                    reversed: false,
                });
            }
        }
    }
}
