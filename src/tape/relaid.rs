//! What happens to a model's memory between its constructor and the first step: weights are laid out anew
//! (`model.to(memory_format=torch.channels_last)`), and adapters are put into it.

use std::rc::Rc;

use super::fold::Fold;
use super::{DType, Event, Group, Param, Tape, Trace};

/// A parameter whose memory is not what the constructor made.
#[derive(Clone, Copy, Debug)]
struct Renewed {
    block: u32,
    fold: Option<Fold>,
    /// How many bytes it had before.
    before: u64,
}

impl Tape {
    /// Notes a parameter that comes to the model once all else is there, first in a type of its own.
    pub fn comes_later(&self, param: &Param, first: DType) {
        let Some(block) = param.met() else {
            return;
        };
        let mut later = self.0.later.borrow_mut();
        if let Err(at) = later.binary_search_by_key(&block, |it| it.0) {
            later.insert(at, (block, first));
        }
    }

    /// Once all of the model is declared: weights of four dimensions were made contiguous and are copied one after
    /// the other where the run asks for it; then come those parameters that come later, and are cast.
    pub fn complete(&self, params: &[Rc<Param>], channels_last: bool) {
        let mut trace = self.0.trace.borrow_mut();
        if channels_last {
            let of = |param: &Param, _| (param.data.shape().len() == 4).then(|| param.data.bytes());
            trace.renew(&renewed(params, &of));
        }
        let later = self.0.later.borrow();
        if later.is_empty() {
            return;
        }
        let first = |param: &Param, block| {
            let at = later.binary_search_by_key(&block, |it| it.0).ok()?;
            let elements = param.data.numel();
            later
                .get(at)
                .map(|it| elements.saturating_mul(it.1.bytes()))
        };
        let mut all = renewed(params, &first);
        trace.bring_last(&all);
        all.retain(|it| {
            let now = trace.blocks.get(it.block as usize);
            now.is_some_and(|now| now.bytes != it.before)
        });
        trace.renew(&all);
    }
}

/// The parameters for which `of` says how large they were before, as the model lists them.
fn renewed(params: &[Rc<Param>], of: &dyn Fn(&Param, u32) -> Option<u64>) -> Vec<Renewed> {
    let chosen = params.iter().filter_map(|param| {
        let block = param.met()?;
        Some(Renewed {
            block,
            fold: param.fold,
            before: of(param, block)?,
        })
    });
    chosen.collect()
}

impl Trace {
    /// Each is made anew, one after the other, and lets its old memory go.
    fn renew(&mut self, all: &[Renewed]) {
        let mut places = vec![None; self.blocks.len()];
        for (at, event) in self.setup.iter().enumerate().filter(|it| !it.1.is_free()) {
            if let Some(place) = places.get_mut(event.block() as usize) {
                *place = Some(at);
            }
        }
        self.in_rows(all, &mut |trace, it| {
            let place = it.block as usize;
            let (Some(Some(at)), Some(&block)) = (places.get(place), trace.blocks.get(place))
            else {
                return;
            };
            let first = trace.blocks.len() as u32;
            trace.blocks.push(super::Block {
                bytes: it.before,
                ..block
            });
            if let Some(made) = trace.setup.get_mut(*at) {
                *made = Event::alloc(first);
            }
            let made = [Event::alloc(it.block), Event::free(first)];
            trace.setup.extend(made);
        });
    }

    /// Each is made after all else.
    fn bring_last(&mut self, all: &[Renewed]) {
        let mut late = vec![false; self.blocks.len()];
        for it in all {
            if let Some(late) = late.get_mut(it.block as usize) {
                *late = true;
            }
        }
        let is_late = |event: &Event| late.get(event.block() as usize) == Some(&true);
        // How many events stay before each place.
        let mut staying = vec![0];
        let mut count = 0;
        for event in &self.setup {
            count += usize::from(!is_late(event));
            staying.push(count);
        }
        let moved = |at: usize| staying.get(at).copied().unwrap_or(count);
        for group in &mut self.setup_groups {
            (group.start, group.end) = (moved(group.start), moved(group.end));
        }
        self.setup_groups.retain(|group| group.end > group.start);
        self.setup.retain(|event| !is_late(event));
        self.in_rows(all, &mut |trace, it| {
            trace.setup.push(Event::alloc(it.block));
        });
    }

    /// Does something for each at the end of the set-up; those of one row of folded layers form a group.
    fn in_rows(&mut self, all: &[Renewed], body: &mut dyn FnMut(&mut Self, &Renewed)) {
        for row in all.chunk_by(|a, b| a.fold == b.fold) {
            let start = self.setup.len();
            for it in row {
                body(self, it);
            }
            let end = self.setup.len();
            if let Some(Some(fold)) = row.first().map(|it| it.fold).filter(|_| end > start) {
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
