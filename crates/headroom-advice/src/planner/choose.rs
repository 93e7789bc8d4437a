//! Chooses plans among the runs that an exploration found.

use std::rc::Rc;

use super::edit::Edit;
use super::evaluate::{Evaluator, Full, with, without};
use super::explore::{Candidate, Exploration, Network, ROOM};
use headroom_core::estimate::{Estimate, Fit};

/// A run with its edits.
#[derive(Clone, Debug)]
pub struct Chosen {
    pub edits: Vec<Edit>,
    pub full: Rc<Full>,
}

/// A plan may be this much slower than the fastest if it is simpler.
const SIMPLER: f64 = 1.01;

/// Full estimates that are tried before giving up.
const TRIES: usize = 60;

/// Tensors that may be recorded to find the fewest edits.
const WORK: u64 = 400_000;

/// The fastest run whose full estimate fits.
pub fn fastest(evaluator: &mut Evaluator, found: &[Candidate]) -> Option<Chosen> {
    let mut queue = Queue::default();
    for candidate in found {
        queue.add(candidate.clone());
    }
    for _ in 0..TRIES {
        let next = queue.pop()?;
        if let Some(chosen) = verified(evaluator, &next.edits) {
            return Some(chosen);
        }
        if let Some(smaller) = smaller(evaluator, &next.edits) {
            queue.add(smaller);
        }
    }
    None
}

/// Runs that may fit, the fastest first.
#[derive(Debug, Default)]
pub struct Queue(Vec<Candidate>);

impl Queue {
    pub fn add(&mut self, candidate: Candidate) {
        let seconds = candidate.quick.seconds;
        let place = self
            .0
            .partition_point(|other| other.quick.seconds > seconds);
        let near = self.0.iter().skip(place);
        let mut alike = near.take_while(|other| other.quick.seconds <= seconds);
        if !alike.any(|other| other.edits == candidate.edits) {
            self.0.insert(place, candidate);
        }
    }

    pub fn first(&self) -> Option<&Candidate> {
        self.0.last()
    }

    pub fn pop(&mut self) -> Option<Candidate> {
        self.0.pop()
    }
}

/// The run with these edits, or with expandable segments if it needs them.
pub fn verified(evaluator: &mut Evaluator, edits: &[Edit]) -> Option<Chosen> {
    if let Some(full) = evaluator.fits(edits) {
        let edits = edits.to_vec();
        return Some(Chosen { edits, full });
    }
    // The option brings what is reserved down to what is allocated, at best.
    let plain = evaluator.full(edits)?;
    let Estimate {
        device,
        reserved,
        allocated,
        growth,
        usable,
        ..
    } = &plain.estimate;
    let least = (device.expected - reserved.expected) + allocated.expected + *growth;
    if usable.is_some_and(|usable| least > usable) {
        return None;
    }
    let edits = with(edits, evaluator.space.expandable()?);
    let full = evaluator.fits(&edits)?;
    Some(Chosen { edits, full })
}

/// The next smaller micro-batch: the allocator holds more than it hands out.
pub fn smaller(evaluator: &mut Evaluator, edits: &[Edit]) -> Option<Candidate> {
    let now = evaluator.space.scenario(edits)?.data.micro_batch;
    let sizes = evaluator.space.micro_batches(edits);
    let size = sizes.into_iter().find(|size| *size < now)?;
    let edits = with(edits, Edit::MicroBatch(size));
    let quick = evaluator
        .quick(&edits)
        .filter(super::evaluate::Quick::may_fit)?;
    Some(Candidate { edits, quick })
}

/// Rare changes that make the run faster.
pub fn polished(evaluator: &mut Evaluator, chosen: Chosen, options: &[Edit]) -> Chosen {
    let mut best = chosen;
    for edit in options {
        let edits = with(&best.edits, *edit);
        let faster = evaluator
            .quick(&edits)
            .is_some_and(|quick| quick.may_fit() && quick.seconds < best.full.seconds / SIMPLER);
        if !faster {
            continue;
        }
        if let Some(full) = evaluator.fits(&edits) {
            best = Chosen { edits, full };
        }
    }
    best
}

/// The same run without edits that gain next to nothing, those that change results most being left out first.
pub fn simplified(evaluator: &mut Evaluator, chosen: &Chosen, keeps: &Keeps) -> Chosen {
    let mut best = chosen.clone();
    loop {
        let mut order = best.edits.clone();
        order.sort_by(|a, b| b.results().cmp(&a.results()).then(b.axis().cmp(&a.axis())));
        let mut simpler = None;
        for edit in order {
            let fewer = without(&best.edits, edit);
            let quick = evaluator.quick(&fewer);
            if !quick.is_some_and(|quick| quick.may_fit() && keeps.time(quick.seconds)) {
                continue;
            }
            if let Some(full) = evaluator.fits(&fewer).filter(|full| keeps.all(full)) {
                simpler = Some(Chosen { edits: fewer, full });
                break;
            }
        }
        match simpler {
            Some(simpler) => best = simpler,
            None => return best,
        }
    }
}

/// What a simpler run has to keep.
#[derive(Clone, Copy, Debug)]
pub struct Keeps {
    seconds: f64,
    fit: Fit,
    device: Option<u64>,
}

impl Keeps {
    pub fn fastest(chosen: &Chosen) -> Self {
        Self {
            seconds: chosen.full.seconds * SIMPLER,
            fit: chosen.full.fit(),
            device: None,
        }
    }

    pub fn room(chosen: &Chosen, fastest: &Chosen) -> Self {
        Self {
            seconds: (fastest.full.seconds * ROOM).max(chosen.full.seconds),
            fit: chosen.full.fit(),
            device: Some(chosen.full.device().scale(1.005).get()),
        }
    }

    fn time(&self, seconds: f64) -> bool {
        seconds <= self.seconds
    }

    fn all(&self, full: &Full) -> bool {
        let sure = full.fit() == Fit::Fits || full.fit() == self.fit;
        sure && self.time(full.seconds)
            && self.device.is_none_or(|most| full.device().get() <= most)
    }
}

/// The run that leaves most room, of those that are at most a tenth slower than the fastest.
pub fn roomiest(
    evaluator: &mut Evaluator,
    exploration: &Exploration,
    fastest: &Chosen,
) -> Option<Chosen> {
    /// Networks that save most of a sample, and runs of them with the lowest peaks.
    const NETWORKS: usize = 6;
    const SHOWN: usize = 3;
    let limit = fastest.full.seconds * ROOM;
    let networks = exploration.networks.iter();
    let mut networks: Vec<&Network> = networks.filter(|network| network.bound <= limit).collect();
    networks.sort_by_key(|network| (network.whole, network.edits.len()));
    let mut near: Vec<Candidate> = Vec::new();
    for network in networks.into_iter().take(NETWORKS) {
        let optimizers = evaluator.space.optimizers();
        near.extend(smallest_within(evaluator, &network.edits, limit));
        for optimizer in optimizers {
            let run = with(&network.edits, optimizer);
            near.extend(smallest_within(evaluator, &run, limit));
        }
    }
    let share = |candidate: &Candidate| {
        candidate.quick.peak.get() as f64 - candidate.quick.room.get() as f64
    };
    near.sort_by(|a, b| {
        let peak = share(a).total_cmp(&share(b));
        peak.then(a.edits.len().cmp(&b.edits.len()))
    });
    let mut best: Option<Chosen> = None;
    for candidate in near.into_iter().take(SHOWN) {
        let Some(chosen) = verified(evaluator, &candidate.edits) else {
            continue;
        };
        let least = best.as_ref().map(|best| best.full.device());
        if chosen.full.seconds <= limit && least.is_none_or(|least| chosen.full.device() < least) {
            best = Some(chosen);
        }
    }
    best
}

/// The network with the smallest micro-batch that is fast enough, by bisection: smaller ones are slower.
fn smallest_within(evaluator: &mut Evaluator, network: &[Edit], limit: f64) -> Option<Candidate> {
    let sizes = evaluator.space.micro_batches(network);
    let (mut low, mut high) = (0, sizes.len());
    let mut found = None;
    while low < high {
        let middle = low + (high - low) / 2;
        let edits = with(network, Edit::MicroBatch(*sizes.get(middle)?));
        match evaluator.quick(&edits) {
            Some(quick) if quick.seconds <= limit => {
                low = middle + 1;
                if quick.may_fit() {
                    found = Some(Candidate { edits, quick });
                }
            }
            _ => high = middle,
        }
    }
    found
}

/// The fewest edits that make the run fit, at most three, and of equally few the fastest. Where the fastest fits only
/// probably and another surely, and about as fast, it is the other.
pub fn fewest(evaluator: &mut Evaluator, options: &[Edit]) -> Option<Chosen> {
    const MOST: usize = 3;
    /// Sets of edits that are tried.
    const SETS: usize = 3000;
    let (mut left, end) = (SETS, evaluator.work + WORK);
    let mut helpful: Vec<Edit> = options.to_vec();
    for count in 1..=MOST {
        if count == MOST {
            helpful = saving(evaluator, options);
        }
        let mut found = Vec::new();
        each(&helpful, count, &[], &mut |edits| {
            if left == 0 || evaluator.work >= end {
                return;
            }
            left -= 1;
            if edits.len() == count {
                let quick = evaluator.quick(edits);
                let fits = quick.filter(super::evaluate::Quick::may_fit);
                found.extend(fits.map(|quick| Candidate {
                    edits: edits.to_vec(),
                    quick,
                }));
            } else {
                found.extend(largest_fitting(evaluator, edits));
            }
        });
        if let Some(chosen) = fastest(evaluator, &found).filter(|it| it.edits.len() <= MOST) {
            return Some(chosen);
        }
    }
    None
}

/// Edits that save something by themselves; the others help only together.
fn saving(evaluator: &mut Evaluator, options: &[Edit]) -> Vec<Edit> {
    let Some(now) = evaluator.quick(&[]) else {
        return options.to_vec();
    };
    let spare = |quick: super::evaluate::Quick| quick.room.get() as f64 - quick.peak.get() as f64;
    let mut kept = Vec::new();
    for edit in options {
        let saves = evaluator
            .quick(&[*edit])
            .is_none_or(|quick| spare(quick) > spare(now));
        if saves {
            kept.push(*edit);
        }
    }
    kept
}

/// Calls `then` with each set of `count` edits on different axes, and with each of one fewer, to which a micro-batch is added.
/// Sets of the first options come first.
fn each(options: &[Edit], count: usize, chosen: &[Edit], then: &mut dyn FnMut(&[Edit])) {
    if chosen.len() + 1 >= count {
        then(chosen);
    }
    if chosen.len() == count {
        return;
    }
    for (at, edit) in options.iter().enumerate() {
        if chosen.iter().any(|other| other.axis() == edit.axis()) {
            continue;
        }
        let before = options.get(..at).unwrap_or_default();
        each(before, count, &with(chosen, *edit), then);
    }
}

/// The edits with the largest micro-batch that may fit and is not the run's own.
fn largest_fitting(evaluator: &mut Evaluator, edits: &[Edit]) -> Option<Candidate> {
    let sizes = evaluator.space.micro_batches(edits);
    let at = |evaluator: &mut Evaluator, size: &u64| {
        let edits = with(edits, Edit::MicroBatch(*size));
        let quick = evaluator.quick(&edits)?;
        quick.may_fit().then_some(Candidate { edits, quick })
    };
    let (first, rest) = sizes.split_first()?;
    if let Some(found) = at(evaluator, first) {
        return Some(found);
    }
    let (mut low, mut high) = (0, rest.len());
    let mut best = None;
    while low < high {
        let middle = low + (high - low) / 2;
        match at(evaluator, rest.get(middle)?) {
            Some(found) => {
                best = Some(found);
                high = middle;
            }
            None => low = middle + 1,
        }
    }
    best
}
