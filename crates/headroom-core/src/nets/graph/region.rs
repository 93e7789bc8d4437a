//! Modules as ranges of a recorded forward pass, with their inputs and outputs.

use std::ops::Range;

use super::program::{Edge, Instruction, Instructions, Value};

/// The destination of a gradient: a node and the number of its output.
pub(super) type Output = (u32, u32);

/// A module's call: the steps between its first operation and its last.
#[derive(Debug)]
pub(super) struct Region {
    pub steps: Range<usize>,
    /// Inputs: memory that exists before, parameters aside.
    pub inputs: Vec<Value>,
    /// Memory that it makes and that is used after it.
    pub outputs: Vec<Value>,
    /// Where gradients of its inputs go, with the place of each input.
    pub before: Vec<(Output, usize)>,
    /// Where gradients of its outputs go, with the place of each output.
    pub after: Vec<(Output, usize)>,
    /// Its own memory, saved tensors and nodes.
    pub made: Vec<u32>,
    pub saves: Vec<u32>,
    pub nodes: Vec<u32>,
    /// Earlier memory that is freed while it runs.
    pub freed: Vec<u32>,
}

/// The most tensors, or gradients, that a region may exchange with its surroundings.
const MOST_PASSED: usize = 256;

/// What a pass over all steps knows of each slot, saved tensor and node.
#[derive(Debug)]
pub(super) struct Survey {
    /// The steps in which a piece of memory is made, and last used.
    made: Vec<Option<usize>>,
    last: Vec<usize>,
    /// The step that reads it last.
    read: Vec<usize>,
    /// The step in which each node is made, and the memory of its result.
    placed: Vec<usize>,
    result: Vec<Option<u32>>,
    /// The node that keeps each saved tensor.
    keeper: Vec<Option<u32>>,
    /// For each node, the nodes that lead to it, with the step in which they are made and the output they take.
    led: Vec<Vec<(usize, u32)>>,
}

impl Survey {
    pub(crate) fn of(steps: &Instructions) -> Self {
        let mut survey = Self {
            made: vec![None; steps.slots],
            last: vec![0; steps.slots],
            read: vec![0; steps.slots],
            placed: vec![usize::MAX; steps.nodes.len()],
            result: vec![None; steps.nodes.len()],
            keeper: vec![None; steps.saves],
            led: vec![Vec::new(); steps.nodes.len()],
        };
        let mut touched = None;
        for (at, step) in steps.forward.iter().enumerate() {
            match step {
                Instruction::Call { inputs, made, .. } => {
                    for value in made {
                        survey.makes(at, value.slot);
                    }
                    for value in inputs.iter().chain(made) {
                        survey.reads(at, value.slot);
                    }
                    touched = made.first().or(inputs.first()).map(|value| value.slot);
                }
                Instruction::Batch(value) => {
                    survey.makes(at, value.slot);
                    survey.reads(at, value.slot);
                }
                Instruction::Save { value, .. } => survey.reads(at, value.slot),
                Instruction::Unpack { slot, .. } => {
                    survey.makes(at, *slot);
                }
                Instruction::Free(slot) => survey.uses(at, *slot),
                Instruction::Unsave(_) => {}
                Instruction::Given {
                    gradient: value, ..
                }
                | Instruction::Output(value) => {
                    survey.reads(at, value.slot);
                }
                Instruction::Node(node) => {
                    set(&mut survey.placed, *node, at);
                    set(&mut survey.result, *node, touched);
                }
            }
        }
        let (loss, node) = steps.loss;
        survey.reads(steps.forward.len(), loss.slot);
        for (number, place) in (0_u32..).zip(&steps.nodes) {
            for save in &place.saves {
                set(&mut survey.keeper, *save, Some(number));
            }
        }
        for (place, made) in steps.nodes.iter().zip(survey.placed.clone()) {
            for edge in &place.edges {
                if let Edge::Node { node, output } = edge
                    && let Some(led) = survey.led.get_mut(*node as usize)
                {
                    led.push((made, *output));
                }
            }
        }
        if let Some(led) = survey.led.get_mut(node as usize) {
            led.push((usize::MAX, 0));
        }
        survey
    }

    fn makes(&mut self, at: usize, slot: u32) {
        set(&mut self.made, slot, Some(at));
    }

    fn uses(&mut self, at: usize, slot: u32) {
        set(&mut self.last, slot, at);
    }

    fn reads(&mut self, at: usize, slot: u32) {
        set(&mut self.read, slot, at);
        self.uses(at, slot);
    }

    /// Whether memory is read from a step on.
    pub(crate) fn is_read_from(&self, slot: u32, step: usize) -> bool {
        self.read.get(slot as usize).is_some_and(|at| *at >= step)
    }

    /// The region of some steps; none where what it makes is not its own.
    pub(crate) fn region(&self, steps: &Instructions, range: Range<usize>) -> Option<Region> {
        let mut region = Region {
            steps: range.clone(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
            made: Vec::new(),
            saves: Vec::new(),
            nodes: Vec::new(),
            freed: Vec::new(),
        };
        for step in steps.forward.get(range.clone())? {
            match step {
                Instruction::Call { inputs, made, .. } => {
                    for value in made {
                        region.made.push(value.slot);
                        let last = *self.last.get(value.slot as usize)?;
                        if last >= range.end {
                            region.outputs.push(*value);
                        }
                    }
                    for value in inputs {
                        self.enters(&mut region, *value);
                    }
                }
                Instruction::Save { save, value } => {
                    region.saves.push(*save);
                    self.enters(&mut region, *value);
                }
                Instruction::Node(node) => region.nodes.push(*node),
                Instruction::Free(slot) => {
                    let made = self.made.get(*slot as usize).copied().flatten();
                    if made.is_none_or(|made| made < range.start) {
                        region.freed.push(*slot);
                    }
                }
                // A checkpoint of the model's own, or a batch's tensor: not a plain call.
                // Nor is a backward pass of its own.
                Instruction::Unpack { .. }
                | Instruction::Batch(_)
                | Instruction::Given { .. }
                | Instruction::Output(_) => return None,
                Instruction::Unsave(_) => {}
            }
        }
        let passed = region.inputs.len().max(region.outputs.len());
        if passed > MOST_PASSED {
            return None;
        }
        let inside = |at: &usize| range.contains(at);
        let own = |save: &u32| {
            let keeper = self.keeper.get(*save as usize).copied().flatten();
            keeper.is_none_or(|node| self.placed.get(node as usize).is_some_and(inside))
        };
        let made_once = |slot: &u32| {
            let made = self.made.get(*slot as usize).copied().flatten();
            made.is_some_and(|at| inside(&at))
        };
        if !region.saves.iter().all(own) || !region.made.iter().all(made_once) {
            return None;
        }
        self.gradients(steps, &mut region)?;
        Some(region)
    }

    /// Notes memory from before the region that a step of it is given.
    fn enters(&self, region: &mut Region, value: Value) {
        let made = self.made.get(value.slot as usize).copied().flatten();
        let from_before = made.is_some_and(|at| at < region.steps.start);
        if from_before
            && region.inputs.len() <= MOST_PASSED
            && region.inputs.iter().all(|known| known.slot != value.slot)
        {
            region.inputs.push(value);
        }
    }

    fn is_inside(&self, region: &Region, node: u32) -> bool {
        let placed = self.placed.get(node as usize);
        placed.is_some_and(|at| region.steps.contains(at))
    }

    fn gradients(&self, steps: &Instructions, region: &mut Region) -> Option<()> {
        let place_of = |values: &[Value], node: u32| {
            let slot = self.result.get(node as usize).copied().flatten();
            let found = values.iter().position(|value| Some(value.slot) == slot);
            found.or((!values.is_empty()).then_some(0))
        };
        for node in region.nodes.clone() {
            if region.before.len().max(region.after.len()) > MOST_PASSED {
                return None;
            }
            for edge in &steps.nodes.get(node as usize)?.edges {
                let Edge::Node { node: to, output } = edge else {
                    continue;
                };
                let known = |(known, _): &(Output, usize)| *known == (*to, *output);
                if !self.is_inside(region, *to) && !region.before.iter().any(known) {
                    let place = place_of(&region.inputs, *to)?;
                    region.before.push(((*to, *output), place));
                }
            }
            for (made, output) in self.led.get(node as usize)? {
                let known = |(known, _): &(Output, usize)| *known == (node, *output);
                if *made >= region.steps.end && !region.after.iter().any(known) {
                    let place = place_of(&region.outputs, node)?;
                    region.after.push(((node, *output), place));
                }
            }
        }
        Some(())
    }

    /// The stretches of steps whose calls are all of one module, which `owner` tells of a scope. Each with what leads up to
    /// its first call and what follows from its last.
    pub(crate) fn stretches(
        &self,
        steps: &Instructions,
        owner: impl Fn(u32) -> Option<u32>,
    ) -> Vec<(u32, Range<usize>)> {
        let mut all: Vec<(u32, Range<usize>)> = Vec::new();
        let mut open: Option<(u32, Range<usize>)> = None;
        // The first of the saves that a call to come makes.
        let mut ahead = 0;
        let next_calls = next_calls(steps);
        for (at, step) in steps.forward.iter().enumerate() {
            match step {
                Instruction::Call { scope, .. } => {
                    let owner = owner(*scope);
                    all.extend(open.take_if(|(known, _)| Some(*known) != owner));
                    if let Some(owner) = owner {
                        let start = open.as_ref().map_or(ahead, |(_, range)| range.start);
                        open = Some((owner, start..at + 1));
                    }
                    ahead = at + 1;
                }
                Instruction::Save { save, .. } => {
                    // What the last call has made, such as a norm's statistics, is saved after it and before its node.
                    let keeper = self.keeper.get(*save as usize).copied().flatten();
                    let placed = keeper.and_then(|node| self.placed.get(node as usize));
                    let of_last = placed < next_calls.get(at) && placed.is_some();
                    if let Some((_, range)) = open.as_mut().filter(|(_, range)| range.end == at)
                        && of_last
                    {
                        range.end = at + 1;
                        ahead = at + 1;
                    }
                }
                Instruction::Free(slot) => {
                    ahead = at + 1;
                    let made = self.made.get(*slot as usize).copied().flatten();
                    if let Some((_, range)) = open.as_mut().filter(|(_, range)| range.end == at)
                        && made.is_some_and(|made| made >= range.start)
                    {
                        range.end = at + 1;
                    }
                }
                Instruction::Node(_) => {
                    ahead = at + 1;
                    if let Some((_, range)) = open.as_mut().filter(|(_, range)| range.end == at) {
                        range.end = at + 1;
                    }
                }
                _ => ahead = at + 1,
            }
        }
        all.extend(open);
        all
    }
}

/// For each step, the next one that is a call.
fn next_calls(steps: &Instructions) -> Vec<usize> {
    let mut next = steps.forward.len();
    let backwards = steps.forward.iter().enumerate().rev();
    let mut all: Vec<usize> = backwards
        .map(|(at, step)| {
            let after = next;
            if matches!(step, Instruction::Call { .. }) {
                next = at;
            }
            after
        })
        .collect();
    all.reverse();
    all
}

fn set<T>(all: &mut [T], place: u32, value: T) {
    if let Some(entry) = all.get_mut(place as usize) {
        *entry = value;
    }
}
