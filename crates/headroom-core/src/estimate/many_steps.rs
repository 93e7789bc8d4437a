//! Many steps whose batches differ in size, one after the other through the allocator: what it reserves beyond what one step
//! needs, and whether a card of a given size runs the last of them.

use super::replay::{FirstSteps, SteadyStep, replay};
use crate::allocator::{Allocator, Card, Oom, Settings};
use crate::tape::Trace;
use headroom_base::order::Map;
use headroom_base::units::Bytes;

/// The memory of one step of many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepMemory {
    /// Tokens of a sample, or edges of a batch.
    pub size: u64,
    pub allocated_peak: Bytes,
    /// Still allocated when the step ends.
    pub allocated_end: Bytes,
    pub reserved_peak: Bytes,
    pub reserved_end: Bytes,
}

/// What many steps on one card needed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ManySteps {
    /// The steps that ran.
    pub steps: Vec<StepMemory>,
    /// How often the card refused and the allocator released its unused segments.
    pub retries: u64,
    /// The step that ran out of memory, and the request.
    pub failure: Option<(usize, Oom)>,
}

impl ManySteps {
    pub fn allocated(&self) -> Bytes {
        let peaks = self.steps.iter().map(|step| step.allocated_peak);
        peaks.max().unwrap_or_default()
    }

    pub fn reserved(&self) -> Bytes {
        let peaks = self.steps.iter().map(|step| step.reserved_peak);
        peaks.max().unwrap_or_default()
    }
}

/// What the training loop, or another program, does beside the plain steps.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoopOptions {
    /// `torch.cuda.empty_cache()` after every so many steps; 0 for never.
    pub empty_cache_every: usize,
    /// Another process takes so much of the card before this step.
    pub other_process: Option<(usize, Bytes)>,
    pub retained: Option<Retained>,
    /// Every so many steps, from the first on, what the step leaves is never freed, as outputs appended to a list; 0 for never.
    pub retain_outputs_every: usize,
    /// After every so many steps the weights are copied on the device, and the copy before is freed; 0 for never.
    pub copy_weights_every: usize,
    /// A step that runs out of memory is abandoned, with `torch.cuda.empty_cache()`, and the next one begun.
    pub skip_on_oom: bool,
}

/// A tensor that every step leaves behind, of a fixed part and one that grows with the batch; the last so many are kept.
#[derive(Clone, Copy, Debug)]
pub struct Retained {
    pub fixed: Bytes,
    pub per_size: Bytes,
    pub last: usize,
}

/// The steps of a run in their order, ready to be replayed on any card.
#[derive(Debug)]
pub struct StepSequence {
    sizes: Vec<u64>,
    first: FirstSteps,
    steady: Map<u64, SteadyStep>,
    /// A step that allocates anew what first steps do, and its events.
    restart: Option<(usize, FirstSteps)>,
}

/// Runs the network with batches of one size and hands the trace on.
type RunSize<'a, E> = dyn FnMut(u64, &mut dyn FnMut(&Trace)) -> Result<(), E> + 'a;

impl StepSequence {
    /// `run` hands the trace of `STEPS` steps from the start, with batches of one size, to its second argument. The first size's
    /// first `warm_up` steps stand for the beginning: 2 where the second step still allocates what lasts, as DDP's buckets.
    pub fn record<E>(sizes: Vec<u64>, warm_up: u32, run: &mut RunSize<E>) -> Result<Self, E> {
        let mut first = None;
        let mut steady: Map<u64, SteadyStep> = Map::new();
        for &size in &sizes {
            if !steady.contains_key(&size) {
                run(size, &mut |trace| {
                    first.get_or_insert_with(|| FirstSteps::of(trace, warm_up));
                    steady.insert(size, SteadyStep::of(trace));
                })?;
            }
        }
        Ok(Self {
            sizes,
            first: first.unwrap_or_default(),
            steady,
            restart: None,
        })
    }

    /// At this step everything is allocated that the first step of a run allocates, as when layers are unfrozen and their
    /// optimizer states appear.
    pub fn restart_at(&mut self, step: usize, trace: &Trace) {
        self.restart = Some((step, FirstSteps::of(trace, 1)));
    }

    /// Replays the steps on a card.
    pub fn replay(&self, settings: &Settings, card: Card, options: &LoopOptions) -> ManySteps {
        let mut found = ManySteps::default();
        let mut runner = Runner::new(self, settings, card, options);
        for (step, &size) in self.sizes.iter().enumerate() {
            let done = runner.step(step, size);
            let counters = *runner.allocator.counters();
            found.retries = counters.retries;
            if let Err(oom) = done {
                found.failure = Some((step, oom));
                break;
            }
            found.steps.push(StepMemory {
                size,
                allocated_peak: counters.allocated.peak,
                allocated_end: counters.allocated.current,
                reserved_peak: counters.reserved.peak,
                reserved_end: counters.reserved.current,
            });
        }
        found
    }
}

/// One replay. Each source of allocations has a range of handles of its own.
struct Runner<'a> {
    sequence: &'a StepSequence,
    card: Card,
    options: &'a LoopOptions,
    allocator: Allocator,
    /// What the last step leaves to the next, which frees it.
    left: Vec<u32>,
    /// Steps take turns with two ranges of this width, after the first steps' handles.
    widest: u32,
    retained: u32,
    copies: u32,
    restarted: u32,
    /// The next handle of outputs that are never freed.
    outputs: u32,
}

impl<'a> Runner<'a> {
    fn new(
        sequence: &'a StepSequence,
        settings: &Settings,
        card: Card,
        options: &'a LoopOptions,
    ) -> Self {
        let handles = sequence.steady.values().map(|step| step.handles);
        let widest = handles.max().unwrap_or(0);
        let weights = sequence.first.weights.len() as u32;
        let retained = sequence
            .first
            .handles
            .saturating_add(widest.saturating_mul(2));
        let copies = retained.saturating_add(sequence.sizes.len() as u32);
        let restarted = copies.saturating_add(weights.saturating_mul(2));
        let in_restart = sequence
            .restart
            .as_ref()
            .map_or(0, |(_, first)| first.handles);
        Self {
            sequence,
            card,
            options,
            allocator: Allocator::new(settings.clone(), card),
            left: sequence.first.left.clone(),
            widest,
            retained,
            copies,
            restarted,
            outputs: restarted.saturating_add(in_restart),
        }
    }

    fn step(&mut self, step: usize, size: u64) -> Result<(), Oom> {
        let options = self.options;
        self.allocator.reset_peaks();
        if let Some((_, others)) = options.other_process.filter(|(at, _)| *at == step) {
            let card = self.card;
            self.allocator.set_card(Card { others, ..card });
        }
        let turn = (step as u32 % 2) * self.widest;
        let handles = self.sequence.first.handles.saturating_add(turn);
        let mut done = self.train(step, size, handles);
        if done.is_ok() {
            done = self.retain(step, size);
        }
        if is_due(options.retain_outputs_every, step) {
            for handle in self.left.drain(..) {
                self.allocator.rename(handle, self.outputs);
                self.outputs = self.outputs.saturating_add(1);
            }
        }
        if done.is_ok() && is_due(options.copy_weights_every, step + 1) {
            done = self.copy_weights(step);
        }
        if done.is_err() && options.skip_on_oom && step > 0 {
            for handle in handles..handles.saturating_add(self.widest) {
                self.allocator.free(handle);
            }
            self.free_left();
            self.allocator.empty_cache();
            done = Ok(());
        }
        if is_due(options.empty_cache_every, step + 1) {
            self.allocator.empty_cache();
        }
        done
    }

    /// The step itself.
    fn train(&mut self, step: usize, size: u64, handles: u32) -> Result<(), Oom> {
        let StepSequence {
            first,
            steady,
            restart,
            ..
        } = self.sequence;
        let (allocator, left) = (&mut self.allocator, &mut self.left);
        if step == 0 {
            return replay(allocator, &first.events, 0, &mut Vec::new());
        }
        let (done, leaves, handles) = match (restart, steady.get(&size)) {
            (Some((at, again)), _) if *at == step => {
                let events = again.events.get(again.setup..).unwrap_or_default();
                let done = replay(allocator, events, self.restarted, left);
                (done, &again.left, self.restarted)
            }
            (_, Some(steady)) => {
                let done = replay(allocator, &steady.events, handles, left);
                (done, &steady.left, handles)
            }
            (_, None) => return Ok(()),
        };
        self.free_left();
        let leaves = leaves.iter().map(|handle| handles.saturating_add(*handle));
        self.left.extend(leaves);
        done
    }

    fn free_left(&mut self) {
        for handle in self.left.drain(..) {
            self.allocator.free(handle);
        }
    }

    /// Allocates what this step leaves behind; where only the last are kept, frees the oldest after that.
    fn retain(&mut self, step: usize, size: u64) -> Result<(), Oom> {
        let Some(retained) = self.options.retained else {
            return Ok(());
        };
        let first = self.retained;
        let handle = |step: usize| first.saturating_add(step as u32);
        let bytes = retained.fixed + retained.per_size * size;
        self.allocator.malloc(handle(step), bytes)?;
        if let Some(oldest) = step.checked_sub(retained.last) {
            self.allocator.free(handle(oldest));
        }
        Ok(())
    }

    /// Copies the weights and frees the copy before: two ranges of handles take turns.
    fn copy_weights(&mut self, step: usize) -> Result<(), Oom> {
        let weights = &self.sequence.first.weights;
        let count = weights.len() as u32;
        let turn = ((step + 1) / self.options.copy_weights_every % 2) as u32;
        let [new, old] =
            [turn, 1 - turn].map(|turn| self.copies.saturating_add(turn.saturating_mul(count)));
        for (handle, bytes) in (new..).zip(weights) {
            self.allocator.malloc(handle, Bytes::new(*bytes))?;
        }
        for handle in old..old.saturating_add(count) {
            self.allocator.free(handle);
        }
        Ok(())
    }
}

/// Whether what happens every so many steps happens after this many.
fn is_due(every: usize, steps: usize) -> bool {
    every > 0 && steps.is_multiple_of(every)
}
