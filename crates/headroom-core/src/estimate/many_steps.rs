//! Replays many steps with batches of different sizes through the allocator: the memory reserved beyond one step's need,
//! and whether a GPU of a given size completes them.

use std::collections::BTreeMap;

use super::replay::{FirstSteps, Request, SteadyStep, replay};
use crate::allocator::{Allocator, Card, Oom, Settings};
use crate::tape::Trace;
use headroom_base::units::Bytes;

/// The memory of one of many steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepMemory {
    /// Tokens of a sample, or edges of a batch.
    pub size: u64,
    /// The most that is allocated during the step.
    pub allocated_peak: Bytes,
    /// Still allocated when the step ends.
    pub allocated_end: Bytes,
    /// The most that is reserved during the step.
    pub reserved_peak: Bytes,
    /// Still reserved when the step ends.
    pub reserved_end: Bytes,
}

/// The result of replaying many steps on one GPU.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ManySteps {
    /// The completed steps.
    pub steps: Vec<StepMemory>,
    /// How often cudaMalloc failed and the allocator freed its unused segments (`num_alloc_retries`).
    pub retries: u64,
    /// The step that ran out of memory, and the request.
    pub failure: Option<(usize, Oom)>,
}

impl ManySteps {
    /// The highest allocated peak of the completed steps.
    pub fn allocated(&self) -> Bytes {
        let peaks = self.steps.iter().map(|step| step.allocated_peak);
        peaks.max().unwrap_or_default()
    }

    /// The highest reserved peak of the completed steps.
    pub fn reserved(&self) -> Bytes {
        let peaks = self.steps.iter().map(|step| step.reserved_peak);
        peaks.max().unwrap_or_default()
    }
}

/// What the training loop, or another program, does besides plain steps.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoopOptions {
    /// `torch.cuda.empty_cache()` every this many steps; 0 for never.
    pub empty_cache_every: usize,
    /// Another process allocates this much of the GPU before this step.
    pub other_process: Option<(usize, Bytes)>,
    /// A tensor that steps leave behind between forward and backward; `None` if there is none.
    pub retained: Option<Retained>,
    /// Every this many steps the step's leftovers are never freed, as with outputs appended to a list; 0 for never.
    pub retain_outputs_every: usize,
    /// The first step that does so.
    pub retain_outputs_from: usize,
    /// Every this many steps the weights are copied on the device and the previous copy is freed; 0 for never.
    pub copy_weights_every: usize,
    /// A step that runs out of memory is skipped after `torch.cuda.empty_cache()`.
    pub skip_on_oom: bool,
}

/// A tensor that steps leave behind: a fixed part and one that grows with the batch; only the last few are kept. The loop makes it
/// of what forward returned, so it is there in backward.
#[derive(Clone, Copy, Debug)]
pub struct Retained {
    /// Every this many steps, from the first on.
    pub every: usize,
    /// The size that every one of these tensors has at least.
    pub fixed: Bytes,
    /// Added for each unit of the step's `size`: a token of a sample, or an edge of a batch.
    pub per_size: Bytes,
    /// How many are kept: each further step frees the oldest.
    pub last: usize,
}

/// Evaluations between steps.
#[derive(Clone, Debug, Default)]
pub struct Evaluations {
    /// One follows every so many steps; 0 for none.
    pub every: usize,
    /// The sizes of the batches of each, in order.
    pub batches: Vec<Vec<u64>>,
    /// What was kept of their batches is never freed; otherwise it is when the evaluation ends.
    pub keep_forever: bool,
}

/// The steps of a run in order, ready to be replayed on any GPU.
#[derive(Debug)]
pub struct StepSequence {
    sizes: Vec<u64>,
    first: FirstSteps,
    steady: BTreeMap<u64, SteadyStep>,
    /// A step that allocates again what the first steps do, and its events.
    restart: Option<(usize, FirstSteps)>,
    evaluations: Evaluations,
    evaluated: BTreeMap<u64, SteadyStep>,
}

/// Runs the network with batches of one size and passes the trace on.
type RunSize<'a, E> = dyn FnMut(u64, &mut dyn FnMut(&Trace)) -> Result<(), E> + 'a;

impl StepSequence {
    /// `run` passes the trace of `STEPS` steps from the start, with batches of one size, to its second argument. The first
    /// `warm_up` steps of the first size are the beginning: 2 if the second step still allocates permanent memory, such as
    /// DDP's buckets.
    pub fn record<E>(sizes: Vec<u64>, warm_up: u32, run: &mut RunSize<E>) -> Result<Self, E> {
        let mut first = None;
        let mut steady: BTreeMap<u64, SteadyStep> = BTreeMap::new();
        for &size in &sizes {
            if steady.contains_key(&size) {
                continue;
            }
            run(size, &mut |trace| {
                first.get_or_insert_with(|| FirstSteps::of(trace, warm_up));
                steady.insert(size, SteadyStep::of(trace));
            })?;
        }
        Ok(Self {
            sizes,
            first: first.unwrap_or_default(),
            steady,
            restart: None,
            evaluations: Evaluations::default(),
            evaluated: BTreeMap::new(),
        })
    }

    /// Evaluates between the steps. `run` passes on the trace of a run that ends with the evaluation of a batch of one size.
    pub fn evaluate<E>(&mut self, evaluations: Evaluations, run: &mut RunSize<E>) -> Result<(), E> {
        for &size in evaluations.batches.iter().flatten() {
            if self.evaluated.contains_key(&size) {
                continue;
            }
            run(size, &mut |trace| {
                let batch = SteadyStep::of_evaluation(trace);
                self.evaluated.insert(size, batch);
            })?;
        }
        self.evaluations = evaluations;
        Ok(())
    }

    /// This step allocates everything that a run's first step does, as when layers are unfrozen and get optimizer states.
    pub fn restart_at(&mut self, step: usize, trace: &Trace) {
        self.restart = Some((step, FirstSteps::of(trace, 1)));
    }

    /// Replays the steps on a GPU.
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

/// One replay. Each source of allocations has its own range of handles.
struct Runner<'a> {
    sequence: &'a StepSequence,
    card: Card,
    options: &'a LoopOptions,
    allocator: Allocator,
    /// Left over from the last step, to be freed by the next.
    left: Vec<u32>,
    /// Steps alternate between two ranges of this width, after the handles of the first steps.
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
        let steps = sequence.steady.values();
        let handles = (steps.chain(sequence.evaluated.values())).map(|step| step.handles);
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
        if step >= options.retain_outputs_from && is_due(options.retain_outputs_every, step) {
            for handle in self.left.drain(..) {
                self.allocator.rename(handle, self.outputs);
                self.outputs = self.outputs.saturating_add(1);
            }
        }
        if done.is_ok() && is_due(self.sequence.evaluations.every, step + 1) {
            done = self.evaluate(step);
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
        if step == 0 {
            return self.train_with(&first.events, first.backward, 0, (step, size));
        }
        let (done, leaves, handles) = match (restart, steady.get(&size)) {
            (Some((at, again)), _) if *at == step => {
                let events = again.events.get(again.setup..).unwrap_or_default();
                let backward = again.backward.saturating_sub(again.setup);
                let handles = self.restarted;
                let done = self.train_with(events, backward, handles, (step, size));
                (done, &again.left, handles)
            }
            (_, Some(steady)) => {
                let done = self.train_with(&steady.events, steady.backward, handles, (step, size));
                (done, &steady.left, handles)
            }
            (_, None) => return Ok(()),
        };
        self.free_left();
        let leaves = leaves.iter().map(|handle| handles.saturating_add(*handle));
        self.left.extend(leaves);
        done
    }

    /// Sends a step's requests; before those of its backward the loop has looked at what forward returned.
    fn train_with(
        &mut self,
        events: &[Request],
        backward: usize,
        handles: u32,
        (step, size): (usize, u64),
    ) -> Result<(), Oom> {
        let (forward, backward) = events.split_at(backward.min(events.len()));
        let mut left = if step == 0 {
            Vec::new()
        } else {
            std::mem::take(&mut self.left)
        };
        let allocator = &mut self.allocator;
        let mut done = replay(allocator, forward, handles, &mut left);
        if done.is_ok() {
            done = self.retain(step, size);
        }
        if done.is_ok() {
            done = replay(&mut self.allocator, backward, handles, &mut left);
        }
        if step > 0 {
            self.left = left;
        }
        done
    }

    /// The evaluation after a step. Its batches use the handles that the step does not.
    fn evaluate(&mut self, step: usize) -> Result<(), Oom> {
        let StepSequence {
            first,
            evaluations,
            evaluated,
            ..
        } = self.sequence;
        let turn = (step as u32 + 1) % 2 * self.widest;
        let handles = first.handles.saturating_add(turn);
        let number = (step + 1) / evaluations.every.max(1);
        let batches = evaluations.batches.get(number.saturating_sub(1));
        let kept = self.outputs;
        for batch in batches
            .into_iter()
            .flatten()
            .filter_map(|size| evaluated.get(size))
        {
            replay(&mut self.allocator, &batch.events, handles, &mut Vec::new())?;
            for handle in &batch.left {
                let handle = handles.saturating_add(*handle);
                self.allocator.rename(handle, self.outputs);
                self.outputs = self.outputs.saturating_add(1);
            }
        }
        if !evaluations.keep_forever {
            for handle in kept..self.outputs {
                self.allocator.free(handle);
            }
            self.outputs = kept;
        }
        Ok(())
    }

    fn free_left(&mut self) {
        for handle in self.left.drain(..) {
            self.allocator.free(handle);
        }
    }

    /// Allocates what this step leaves behind, if it does; where only the last are kept, then frees the oldest.
    fn retain(&mut self, step: usize, size: u64) -> Result<(), Oom> {
        let Some(retained) = self.options.retained.filter(|it| is_due(it.every, step)) else {
            return Ok(());
        };
        let first = self.retained;
        let handle = |step: usize| first.saturating_add(step as u32);
        let bytes = retained.fixed + retained.per_size * size;
        self.allocator.malloc(handle(step), bytes)?;
        if let Some(oldest) = step.checked_sub(retained.last.saturating_mul(retained.every)) {
            self.allocator.free(handle(oldest));
        }
        Ok(())
    }

    /// Copies the weights and frees the previous copy: two ranges of handles alternate.
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

/// Whether an event with this interval happens after this many steps.
fn is_due(every: usize, steps: usize) -> bool {
    every > 0 && steps.is_multiple_of(every)
}
