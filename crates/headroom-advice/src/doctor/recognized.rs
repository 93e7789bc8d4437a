//! Recognizes the failed request in the scenario's own steps: its size gives the batch, and what was allocated before it tells
//! whether anything else was alive.

use serde::Serialize;

use super::Failure;
use headroom_base::units::Bytes;
use headroom_core::estimate::StepRequests;

/// The batch whose step makes the failed request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Recognized {
    /// Tokens of a sample, edges of a batch or pixels of a side.
    pub size: u64,
    /// The scenario's largest.
    pub largest: u64,
    /// What its step needs without anything else.
    pub peak: Bytes,
    /// Allocated before the request, beyond what the step has allocated there.
    pub excess: Bytes,
    /// Whether nothing else was alive, as far as the printed figures tell.
    pub clean: bool,
    /// The operation that makes the requested tensor.
    pub op: &'static str,
    /// What else is alive has the size of a copy of the weights.
    pub copy_of_weights: bool,
    /// The excess is one tensor of each step so far: the tensor's size.
    pub each_step: Option<Bytes>,
}

/// Smaller requests are served from segments of 2 or 20 MiB, whose size tells nothing.
const LEAST: Bytes = Bytes::mib(21);
/// Batches beyond the scenario's largest, as after a change of the length.
const BEYOND: u64 = 4;
/// Distinct sizes of tensors that are followed.
const TENSORS: usize = 24;

impl Recognized {
    /// `run` gives the requests of a step with batches of this size. `None` if no batch makes this request.
    pub fn find(
        failure: &Failure,
        step: Option<u64>,
        largest: u64,
        run: &mut dyn FnMut(u64) -> Option<StepRequests>,
    ) -> Option<Self> {
        let (tried, allocated) = (failure.tried?, failure.allocated?);
        if tried < LEAST || largest == 0 {
            return None;
        }
        let whole = run(largest)?;
        let mut best: Option<(bool, Bytes, Self)> = None;
        for size in candidates(&whole, tried, largest) {
            let beyond = size > largest;
            // The scenario's own batches explain a request before others do.
            if beyond && best.as_ref().is_some_and(|(beyond, ..)| !beyond) {
                continue;
            }
            let requests = if size == largest {
                Some(whole.clone())
            } else {
                run(size)
            };
            let Some(requests) = requests else { continue };
            let Some(request) = requests.nearest(tried, allocated) else {
                continue;
            };
            let apart = request.allocated.max(allocated) - request.allocated.min(allocated);
            let clean = apart <= tolerance(allocated);
            // Less than the step has at that point is no match; nor is a batch beyond the scenario's with something else.
            if !clean && (beyond || request.allocated > allocated) {
                continue;
            }
            let excess = allocated - request.allocated;
            // The same size is requested several times in a step, each with something else allocated.
            let excesses: Vec<Bytes> = requests
                .printed_as(tried)
                .filter(|request| request.allocated < allocated)
                .map(|request| allocated - request.allocated)
                .collect();
            let found = Self {
                size,
                largest,
                peak: requests.peak,
                excess,
                clean,
                op: request.op,
                copy_of_weights: excesses
                    .iter()
                    .any(|excess| is_a_copy(requests.weights, *excess)),
                each_step: excesses
                    .iter()
                    .find_map(|excess| each_step(&requests, *excess, step)),
            };
            if best.as_ref().is_none_or(|(_, least, _)| apart < *least) {
                best = Some((beyond, apart, found));
            }
        }
        best.map(|(.., found)| found)
    }
}

/// Whether this is a copy of the weights, in half, the same or double precision.
fn is_a_copy(weights: Bytes, excess: Bytes) -> bool {
    [0.5, 1.0, 2.0].iter().any(|times| {
        let copy = weights.scale(*times);
        let apart = copy.max(excess) - copy.min(excess);
        weights > Bytes::mib(64) && apart <= copy.scale(0.012).max(Bytes::mib(12))
    })
}

/// The tensor of the step that every step so far would have left behind.
fn each_step(requests: &StepRequests, excess: Bytes, step: Option<u64>) -> Option<Bytes> {
    const FEWEST: u64 = 3;
    let largest = requests
        .requests
        .iter()
        .map(|request| request.bytes)
        .max()?;
    let step = step.filter(|step| *step >= FEWEST)?;
    let each = Bytes::new(excess.get() / step);
    let like = |bytes: Bytes| {
        let apart = bytes.max(each) - bytes.min(each);
        // Small tensors have many sizes.
        bytes.scale(4.0) >= largest && apart <= bytes.scale(0.006)
    };
    requests
        .requests
        .iter()
        .map(|request| request.bytes)
        .find(|bytes| like(*bytes))
}

/// Figures are printed with two decimals, and blocks are rounded.
fn tolerance(allocated: Bytes) -> Bytes {
    allocated.scale(0.012).max(Bytes::mib(12))
}

/// The sizes with which one of the step's tensors is as large as the request: tensors grow with the size or with its square.
fn candidates(whole: &StepRequests, tried: Bytes, largest: u64) -> Vec<u64> {
    let mut segments: Vec<u64> = whole
        .requests
        .iter()
        .map(|request| request.segment.get())
        .collect();
    segments.sort_unstable_by(|a, b| b.cmp(a));
    segments.dedup();
    segments.truncate(TENSORS);
    let mut sizes = vec![largest];
    let mut beyond = Vec::new();
    for segment in segments {
        // The printed size is rounded up to 2 MiB: any tensor of the last two would print it.
        let exact = tried.get() as f64 - f64::from(1 << 20);
        let ratio = exact / segment as f64;
        for size in [largest as f64 * ratio, largest as f64 * ratio.sqrt()] {
            let size = size.round() as u64;
            if (1..=largest).contains(&size) {
                sizes.push(size);
            } else if size > largest && size <= largest.saturating_mul(BEYOND) {
                beyond.push(size);
            }
        }
    }
    sizes.append(&mut beyond);
    sizes.sort_by_key(|size| *size > largest);
    let mut seen = Vec::new();
    sizes.retain(|size| {
        !seen.contains(size) && {
            seen.push(*size);
            true
        }
    });
    sizes
}
