//! Chooses plans among the runs that an exploration found.

use std::rc::Rc;

use super::edit::Edit;
use super::evaluate::{Evaluator, Full, with, without};
use super::explore::{Candidate, Exploration, ROOM};
use headroom_core::estimate::Fit;

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

/// The fastest run whose full estimate fits.
pub fn fastest(evaluator: &mut Evaluator, found: &[Candidate]) -> Option<Chosen> {
    let mut queue: Vec<Candidate> = found.to_vec();
    queue.sort_by(|a, b| b.quick.seconds.total_cmp(&a.quick.seconds));
    let mut tries = 0;
    while let Some(candidate) = queue.pop() {
        if let Some(chosen) = verified(evaluator, &candidate.edits) {
            return Some(chosen);
        }
        tries += 1;
        if tries > TRIES {
            return None;
        }
        // The allocator holds more than it hands out: the next smaller micro-batch.
        if let Some(smaller) = smaller(evaluator, &candidate.edits) {
            let known = queue.iter().any(|other| other.edits == smaller.edits);
            let place = queue.partition_point(|other| other.quick.seconds > smaller.quick.seconds);
            if !known {
                queue.insert(place, smaller);
            }
        }
    }
    None
}

/// The run with these edits, or with expandable segments if it needs them.
fn verified(evaluator: &mut Evaluator, edits: &[Edit]) -> Option<Chosen> {
    let mut ways = vec![edits.to_vec()];
    let expandable = evaluator.space.expandable();
    ways.extend(expandable.map(|edit| with(edits, edit)));
    ways.into_iter().find_map(|edits| {
        let full = evaluator.fits(&edits)?;
        Some(Chosen { edits, full })
    })
}

fn smaller(evaluator: &mut Evaluator, edits: &[Edit]) -> Option<Candidate> {
    let now = evaluator.space.scenario(edits)?.data.micro_batch;
    let sizes = evaluator.space.micro_batches(edits);
    let size = sizes.into_iter().find(|size| *size < now)?;
    let edits = with(edits, Edit::MicroBatch(size));
    let quick = evaluator.quick(&edits).filter(super::evaluate::Quick::may_fit)?;
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
    /// Full estimates of the runs with the lowest peaks.
    const SHOWN: usize = 3;
    let limit = fastest.full.seconds * ROOM;
    let mut near: Vec<Candidate> = Vec::new();
    let mut networks: Vec<Vec<Edit>> = Vec::new();
    for candidate in &exploration.found {
        if candidate.quick.seconds > limit {
            continue;
        }
        near.push(candidate.clone());
        let network = stripped(&candidate.edits);
        if !networks.contains(&network) {
            networks.push(network);
        }
    }
    for network in networks {
        near.extend(smallest_within(evaluator, &network, limit));
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

fn stripped(edits: &[Edit]) -> Vec<Edit> {
    edits
        .iter()
        .filter(|edit| !matches!(edit, Edit::MicroBatch(_)))
        .copied()
        .collect()
}

/// The network with the smallest micro-batch that is fast enough, by bisection: smaller ones are slower.
fn smallest_within(
    evaluator: &mut Evaluator,
    network: &[Edit],
    limit: f64,
) -> Option<Candidate> {
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
    let mut left = SETS;
    let mut helpful: Vec<Edit> = options.to_vec();
    for count in 1..=MOST {
        if count == MOST {
            helpful = saving(evaluator, options);
        }
        let mut found = Vec::new();
        each(&helpful, count, &mut Vec::new(), &mut |edits| {
            if left == 0 {
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
fn each(
    options: &[Edit],
    count: usize,
    chosen: &mut Vec<Edit>,
    then: &mut dyn FnMut(&[Edit]),
) {
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
        let before = chosen.clone();
        *chosen = with(chosen, *edit);
        each(
            options.get(at + 1..).unwrap_or_default(),
            count,
            chosen,
            then,
        );
        *chosen = before;
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
