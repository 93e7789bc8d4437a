//! Explores a space, the most promising networks first.
//!
//! A network is a run without its micro-batch. No micro-batch of a network is faster than all samples at once, so networks are
//! taken in the order of that bound, and of each the largest micro-batch that may fit is found by bisection, until the next
//! bound is above the fastest run.

mod axes;
mod layouts;
mod networks;
mod sizes;

use super::choose::{self, Chosen, Queue};
use super::edit::Edit;
use super::evaluate::{Evaluator, Quick};
use axes::Axes;
use layouts::{Layouts, OVER};
pub use networks::Network;
use networks::{Family, bounded, families};

/// A run that may fit.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub edits: Vec<Edit>,
    pub quick: Quick,
}

/// How much slower than the fastest a run may be to be of interest for the room that it leaves.
pub const ROOM: f64 = 1.10;

/// How much slower a run may be that is accepted, if a faster one is not.
const RUNNABLE: f64 = 2.0;

/// Full estimates that are tried before giving up.
const TRIES: usize = 40;

/// An exploration under way.
#[derive(Debug)]
pub struct Exploration {
    axes: Axes,
    layouts: Layouts,
    families: Vec<Family>,
    waiting: Vec<Network>,
    /// All networks, for the room that they leave.
    pub networks: Vec<Network>,
    /// How many of them have waited.
    explored: usize,
    found: Queue,
    /// The fastest run so far that fits by its full estimate.
    verified: Option<Chosen>,
    /// The time of the fastest run that may fit and that is not accepted.
    refused: Option<f64>,
    /// Full estimates that were made.
    tries: usize,
    /// The fastest run that fits.
    pub fastest: Option<Chosen>,
}

impl Exploration {
    /// Of the runs that have all of these edits.
    pub fn new(evaluator: &Evaluator, always: &[Edit]) -> Self {
        Self {
            axes: Axes::new(evaluator, always),
            layouts: Layouts::new(&evaluator.space),
            families: Vec::new(),
            waiting: Vec::new(),
            networks: Vec::new(),
            explored: 0,
            found: Queue::default(),
            verified: None,
            refused: None,
            tries: 0,
            fastest: None,
        }
    }

    pub fn is_done(&self) -> bool {
        self.layouts.is_done()
            && self.families.is_empty()
            && self.waiting.is_empty()
            && self.found.first().is_none()
            && self.verified.is_none()
    }

    /// The network that saves most of a sample, once all are known.
    pub fn frugal(&self) -> Option<&Network> {
        let by = |network: &&Network| (network.whole, network.edits.len());
        self.networks.iter().min_by_key(by)
    }

    /// Explores a little.
    pub fn step(&mut self, evaluator: &mut Evaluator) {
        if self.layouts.is_ranking() {
            for layout in self.layouts.step(evaluator, &self.axes) {
                let families = families(evaluator, &self.axes, &layout);
                self.families.extend(families);
            }
        } else if let Some(family) = self.families.pop() {
            let networks = bounded(evaluator, &self.axes, &family);
            self.networks.extend(networks);
            if self.families.is_empty() {
                self.waiting = self.networks.split_off(self.explored);
                self.networks.extend_from_slice(&self.waiting);
                self.explored = self.networks.len();
                self.waiting.sort_by(|a, b| b.bound.total_cmp(&a.bound));
            }
        } else {
            self.next(evaluator);
        }
    }

    /// Explores the next network, or verifies the fastest run if no network can be faster. A run may turn out slower than it
    /// seemed, such as one whose optimizer pages: it then waits until nothing else can be faster.
    fn next(&mut self, evaluator: &mut Evaluator) {
        let earlier = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => a <= b,
            (a, _) => a.is_some(),
        };
        let found = self.found.first().map(|first| first.quick.seconds);
        let bound = self.waiting.last().map(|network| network.bound);
        let verified = self.verified.as_ref().map(|chosen| chosen.full.seconds);
        let settled = earlier(verified, found) && earlier(verified, bound);
        if settled || self.tries >= TRIES || found.is_none() && bound.is_none() {
            self.settle();
        } else if earlier(found, bound) {
            self.verify(evaluator);
        } else if let Some(network) = self.waiting.pop() {
            sizes::largest(evaluator, &self.axes, &network, &mut self.found);
        }
    }

    /// Ends the exploration of these layouts. What seemed to fit in them may not have done so: as long as slower layouts and
    /// divisions may have a faster run than the fastest that is verified, they are explored too; not those that are much slower than
    /// a run that is not accepted, which is better known than left out.
    fn settle(&mut self) {
        self.waiting.clear();
        self.found = Queue::default();
        self.tries = 0;
        let refused = self.refused.map_or(OVER, |seconds| seconds * RUNNABLE);
        let verified = self.verified.as_ref();
        self.layouts
            .go_on(verified.map_or(refused, |fastest| fastest.full.seconds));
        if !self.layouts.is_ranking() {
            self.fastest = self.verified.take();
        }
    }

    fn verify(&mut self, evaluator: &mut Evaluator) {
        let Some(first) = self.found.pop() else {
            return;
        };
        if !evaluator.is_accepted(&first.edits) {
            let seconds = first.quick.seconds;
            self.refused = Some(self.refused.map_or(seconds, |least| least.min(seconds)));
            return;
        }
        self.tries += 1;
        match choose::verified(evaluator, &first.edits) {
            Some(chosen) => {
                let best = self.verified.as_ref();
                if best.is_none_or(|best| chosen.full.seconds < best.full.seconds) {
                    self.verified = Some(chosen);
                }
            }
            None => {
                if let Some(smaller) = choose::smaller(evaluator, &first.edits) {
                    self.found.add(smaller);
                }
            }
        }
    }
}
