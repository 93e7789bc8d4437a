//! Many steps whose batches differ in size, one after the other through the allocator: what it comes to hold beyond what one
//! step needs, and whether a card of a given size sees the last of them.

use serde::Serialize;

use super::replay::{Start, Steady, replay};
use crate::allocator::{Allocator, Card, Oom, Settings};
use crate::order::Map;
use crate::step::Run;
use crate::units::Bytes;

/// Steps that a run must show: what the last of them does, all later ones do.
pub const SHOWN: u32 = 3;

/// One step of many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StepMemory {
    /// Tokens of a sample, or edges of a batch.
    pub size: u64,
    /// The most allocated in this step.
    pub allocated: Bytes,
    /// What lasts beyond its end.
    pub left: Bytes,
    /// Held when it ends, and the most held in it.
    pub reserved: Bytes,
    pub highest: Bytes,
}

/// What became of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ManySteps {
    /// Those that were gone through.
    pub steps: Vec<StepMemory>,
    /// How often the card refused and the allocator gave back what it did not use.
    pub retries: u64,
    /// The step that failed, and the request.
    pub failure: Option<(usize, Oom)>,
}

impl ManySteps {
    pub fn allocated(&self) -> Bytes {
        let all = self.steps.iter().map(|it| it.allocated);
        all.max().unwrap_or_default()
    }

    pub fn reserved(&self) -> Bytes {
        let all = self.steps.iter().map(|it| it.highest);
        all.max().unwrap_or_default()
    }
}

/// How the steps are gone through.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    pub settings: &'a Settings,
    pub card: Card,
    /// `torch.cuda.empty_cache()` after every so many steps; 0 for never.
    pub empty_every: usize,
    pub besides: Besides,
}

/// What happens beside the steps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Besides {
    /// Another process takes so much before this step.
    pub taken: Option<(usize, Bytes)>,
    pub kept: Option<Kept>,
    /// What every so many steps leave, the first among them, is never let go, as outputs put in a list; 0 for none.
    pub hoarded_every: usize,
    /// After every so many steps the weights are copied on the device, and the copy before goes; 0 for never.
    pub copied_every: usize,
    /// A step that is refused is let go, with `torch.cuda.empty_cache()`, and the next one begun.
    pub skips: bool,
}

/// Every step leaves a tensor behind: of a fixed part and one that grows with its size; the last so many are kept.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    pub fixed: Bytes,
    pub each: Bytes,
    pub last: usize,
}

/// The steps of a run in their order, for any allocator to go through.
#[derive(Debug)]
pub struct Walk {
    sizes: Vec<u64>,
    start: Start,
    /// What the beginning leaves that the step after it lets go.
    left: Vec<u32>,
    kinds: Map<u64, Steady>,
    /// The step at which a run begins that has more to make, and what its own beginning leaves.
    again: Option<(usize, Start, Vec<u32>)>,
}

impl Walk {
    /// `run_of` makes a run of `SHOWN` steps from the start with batches of one size. So many steps of the first size stand for
    /// the beginning: 2 where the second still makes what stays, as DDP's buckets.
    pub fn of<E>(
        sizes: Vec<u64>,
        beginning: u32,
        run_of: &mut dyn FnMut(u64) -> Result<Run, E>,
    ) -> Result<Self, E> {
        let (start, left) = match sizes.first() {
            Some(&first) => Start::of(&run_of(first)?.trace, beginning),
            None => Default::default(),
        };
        let mut kinds: Map<u64, Steady> = Map::new();
        for &size in &sizes {
            if !kinds.contains_key(&size) {
                kinds.insert(size, Steady::of(&run_of(size)?.trace));
            }
        }
        Ok(Self {
            sizes,
            start,
            left,
            kinds,
            again: None,
        })
    }

    /// At this step everything is made that the first step of `run` makes, as when layers thaw and their states appear.
    pub fn begins_again(&mut self, step: usize, run: &Run) {
        let (start, left) = Start::of(&run.trace, 1);
        self.again = Some((step, start, left));
    }

    pub fn through(&self, plan: &Plan) -> ManySteps {
        let mut found = ManySteps::default();
        let Self {
            sizes,
            start,
            kinds,
            ..
        } = self;
        let mut left = self.left.clone();
        // Two ranges of names take turns: what a step leaves behind, the next one lets go.
        let widest = kinds.values().map(|it| it.handles).max().unwrap_or(0);
        let mut allocator = Allocator::new(plan.settings.clone(), plan.card);
        let kept_names = start.handles.saturating_add(widest.saturating_mul(2));
        let copies = kept_names.saturating_add(sizes.len() as u32);
        let weights = start.weights.len() as u32;
        let second = copies.saturating_add(weights.saturating_mul(2));
        let thawed = self.again.as_ref().map_or(0, |it| it.1.handles);
        let mut hoard = second.saturating_add(thawed);
        let besides = plan.besides;
        for (step, &size) in sizes.iter().enumerate() {
            allocator.reset_peaks();
            if let Some((_, others)) = plan.besides.taken.filter(|it| it.0 == step) {
                allocator.set_card(Card {
                    others,
                    ..plan.card
                });
            }
            let names = start.handles.saturating_add((step as u32 % 2) * widest);
            let again = self.again.as_ref().filter(|it| it.0 == step);
            let done = if step == 0 {
                replay(&mut allocator, &start.events, 0, &mut Vec::new())
            } else if let Some((_, start, leaves)) = again {
                let events = start.events.get(start.setup..).unwrap_or_default();
                let done = replay(&mut allocator, events, second, &mut left);
                left.drain(..).for_each(|handle| allocator.free(handle));
                left.extend(leaves.iter().map(|it| second.saturating_add(*it)));
                done
            } else if let Some(steady) = kinds.get(&size) {
                let done = replay(&mut allocator, &steady.events, names, &mut left);
                for handle in &left {
                    allocator.free(*handle);
                }
                left = steady
                    .left
                    .iter()
                    .map(|it| names.saturating_add(*it))
                    .collect();
                done
            } else {
                Ok(())
            };
            let done = done.and_then(|()| match besides.kept {
                Some(kept) => keep(&mut allocator, kept, step, size, kept_names),
                None => Ok(()),
            });
            if besides.hoarded_every > 0 && step.is_multiple_of(besides.hoarded_every) {
                for handle in left.drain(..) {
                    allocator.rename(handle, hoard);
                    hoard = hoard.saturating_add(1);
                }
            }
            let done = done.and_then(|()| {
                if besides.copied_every == 0 || !(step + 1).is_multiple_of(besides.copied_every) {
                    return Ok(());
                }
                // Two copies take turns.
                let turn = ((step + 1) / besides.copied_every % 2) as u32;
                let [new, old] = [turn, 1 - turn].map(|it| copies.saturating_add(it * weights));
                for (name, bytes) in (new..).zip(&start.weights) {
                    allocator.malloc(name, Bytes::new(*bytes))?;
                }
                (old..old.saturating_add(weights)).for_each(|name| allocator.free(name));
                Ok(())
            });
            let done = match done {
                Err(_) if besides.skips && step > 0 => {
                    (names..names.saturating_add(widest)).for_each(|name| allocator.free(name));
                    left.drain(..).for_each(|handle| allocator.free(handle));
                    allocator.empty_cache();
                    Ok(())
                }
                done => done,
            };
            if plan.empty_every > 0 && (step + 1).is_multiple_of(plan.empty_every) {
                allocator.empty_cache();
            }
            let counters = *allocator.counters();
            found.retries = counters.retries;
            if let Err(oom) = done {
                found.failure = Some((step, oom));
                break;
            }
            found.steps.push(StepMemory {
                size,
                allocated: counters.allocated.peak,
                left: counters.allocated.current,
                reserved: counters.reserved.current,
                highest: counters.reserved.peak,
            });
        }
        found
    }
}

/// What a step leaves behind; where only the last are kept, the oldest goes once the new one is there.
fn keep(
    allocator: &mut Allocator,
    kept: Kept,
    step: usize,
    size: u64,
    names: u32,
) -> Result<(), Oom> {
    let name = |step: usize| names.saturating_add(step as u32);
    let bytes = kept.fixed + kept.each * size;
    allocator.malloc(name(step), bytes)?;
    if let Some(oldest) = step.checked_sub(kept.last) {
        allocator.free(name(oldest));
    }
    Ok(())
}
