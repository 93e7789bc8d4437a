//! The requests of a step to the allocator, each with what was allocated before it: a failed request is recognized by both.

use super::expand::Expansion;
use crate::tape::{Category, Phase, Trace, rounded};
use headroom_base::units::Bytes;

/// A request of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepRequest {
    /// The tensor's own size.
    pub bytes: Bytes,
    /// As the error prints it: the size of the segment that it needs.
    pub segment: Bytes,
    /// Allocated before it.
    pub allocated: Bytes,
    /// What the tensor is used for.
    pub category: Category,
    /// The operation that makes it.
    pub op: &'static str,
}

/// The requests of a step that need a segment of their own, and its peak.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepRequests {
    /// In the order in which they happen.
    pub requests: Vec<StepRequest>,
    /// The most allocated in the step.
    pub peak: Bytes,
    /// Allocated when it begins.
    pub start: Bytes,
    /// The weights, as they are stored.
    pub weights: Bytes,
}

impl StepRequests {
    /// The last step of a trace.
    pub fn of(trace: &Trace) -> Self {
        let steps = trace
            .phase_starts
            .iter()
            .filter(|mark| mark.phase == Phase::Optimizer);
        Self::of_step(trace, steps.map(|mark| mark.step).max().unwrap_or(0))
    }

    /// The first step, before which there are no optimizer states.
    pub fn of_first(trace: &Trace) -> Self {
        Self::of_step(trace, 0)
    }

    fn of_step(trace: &Trace, step: u32) -> Self {
        let begins = |step: u32| {
            let mark = trace.phase_starts.iter().find(|mark| mark.step == step);
            mark.map_or(trace.events.len(), |mark| mark.at)
        };
        let (begins, ends) = (begins(step), begins(step + 1));
        let expansion = Expansion::new(trace);
        let mut live = 0_u64;
        let mut found = Self::default();
        let mut count = |is_free: bool, bytes: u64| {
            live = if is_free {
                live.saturating_sub(rounded(bytes))
            } else {
                live.saturating_add(rounded(bytes))
            };
            live
        };
        expansion.setup(|event| {
            count(event.is_free, event.bytes);
        });
        expansion.events(0, begins, |event| {
            count(event.is_free, event.bytes);
        });
        found.start = Bytes::new(count(false, 0));
        expansion.setup(|event| {
            let storage = trace.storages.get(event.storage as usize);
            let bytes = Bytes::new(event.bytes);
            match storage.map(|storage| storage.category) {
                // A head's own weight goes where it is tied to the embeddings.
                Some(Category::Parameters) if event.is_free => {
                    found.weights = found.weights - bytes;
                }
                Some(Category::Parameters) => found.weights += bytes,
                _ => {}
            }
        });
        expansion.events(begins, ends, |event| {
            let now = count(event.is_free, event.bytes);
            found.peak = found.peak.max(Bytes::new(now));
            if event.is_free || event.bytes < LARGE {
                return;
            }
            if let Some(storage) = trace.storages.get(event.storage as usize) {
                found.requests.push(StepRequest {
                    bytes: Bytes::new(event.bytes),
                    segment: segment(event.bytes),
                    allocated: Bytes::new(now.saturating_sub(rounded(event.bytes))),
                    category: storage.category,
                    op: trace.source(storage).op,
                });
            }
        });
        found
    }

    /// The request of this printed size before which the least memory is missing or too much, compared with what was
    /// allocated.
    pub fn nearest(&self, tried: Bytes, allocated: Bytes) -> Option<&StepRequest> {
        self.printed_as(tried).min_by_key(|request| {
            request.allocated.max(allocated) - request.allocated.min(allocated)
        })
    }

    /// The requests that an error prints as this size.
    pub fn printed_as(&self, tried: Bytes) -> impl Iterator<Item = &StepRequest> {
        let requests = self.requests.iter();
        requests.filter(move |request| is_printed_as(request.segment, tried))
    }
}

/// Requests from this size get a segment of their own size (`kMinLargeAlloc`), which the error prints.
const LARGE: u64 = 10 << 20;
/// The size of such a segment is a multiple of this (`kRoundLarge`).
const STEP: u64 = 2 << 20;

/// What cudaMalloc is asked for.
fn segment(bytes: u64) -> Bytes {
    Bytes::new(bytes.div_ceil(STEP).saturating_mul(STEP))
}

/// Whether a size is printed like this: with two decimals of its unit.
fn is_printed_as(size: Bytes, printed: Bytes) -> bool {
    let unit = if printed >= Bytes::gib(1.0) {
        1 << 30
    } else {
        1 << 20
    };
    let apart = size.max(printed) - size.min(printed);
    apart.get() <= unit / 100
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::engine::Engine;
    use headroom_scenario::{Case, Scenario, settings};

    /// The logits of a batch are recognized by their size, and by what is allocated before them.
    #[test]
    fn a_failed_request_is_recognized() {
        let mut scenario = Scenario::default();
        for (name, value) in [
            ("dims", "layers=2"),
            ("mb", "2"),
            ("seq", "512"),
            ("dropout", "off"),
        ] {
            settings::set(&mut scenario, name, value).unwrap();
        }
        let case = Case::of(&scenario);
        let run = Engine::of(&case).unwrap().steps_alone().unwrap();
        let found = StepRequests::of(&run.trace);
        // 2 × 512 × 50,257 numbers in bf16.
        let logits = segment(2 * 512 * 50_257 * 2);
        let first = found.nearest(logits, found.start + Bytes::mib(10)).unwrap();
        assert_eq!(first.segment, logits);
        assert!(first.allocated > found.start && first.allocated < found.peak);
        assert_eq!(found.nearest(Bytes::gib(3.0), found.start), None);
        let weights = 4 * run.parameters;
        let held = found.weights.get();
        assert!(
            held >= weights && held < weights * 21 / 20,
            "{held} of {weights}"
        );
    }
}
