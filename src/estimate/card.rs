//! The smallest card on which a run completes its steps.

use super::expand::{ExpandedEvent, Expansion};
use super::{alloc_conf, device};
use crate::allocator::{Request, smallest_card};
use crate::list::push;
use crate::scenario::Case;
use crate::tape::Trace;
use crate::units::Bytes;

/// The least memory the run can do with: less than it would reserve if it could, because an allocator that is refused frees
/// its unused blocks and tries again, synchronizing the device each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmallestCard {
    /// Available to the allocator.
    pub allocator: Bytes,
    /// With the CUDA context and libraries: what the driver must leave to programs.
    pub usable: Bytes,
    /// Whether the scenario's card has that much; `None` if its memory is not known.
    pub runs: Option<bool>,
}

/// Replays the run on smaller and smaller cards; `None` if it runs on none.
pub(super) fn smallest(case: &Case, trace: &Trace) -> Option<SmallestCard> {
    let settings = alloc_conf::settings(&case.scenario.runtime);
    let allocator = smallest_card(&requests(trace), &settings)?;
    let usable = allocator + device::overhead(case);
    Some(SmallestCard {
        allocator,
        usable,
        runs: device::usable(case).map(|available| usable <= available),
    })
}

/// The run as the requests it makes of the allocator.
fn requests(trace: &Trace) -> Vec<Request> {
    let expansion = Expansion::new(trace);
    let mut events = Vec::new();
    let mut request = |event: ExpandedEvent| {
        let Some(storage) = trace.storages.get(event.storage as usize) else {
            return;
        };
        let handle = event.handle;
        push(
            &mut events,
            if event.is_free {
                Request::Free { handle }
            } else {
                Request::Malloc {
                    handle,
                    bytes: Bytes::new(storage.bytes),
                    stream: event.stream,
                }
            },
        );
    };
    expansion.setup(&mut request);
    expansion.events(0, trace.events.len(), &mut request);
    events
}

#[cfg(test)]
mod tests {
    use crate::estimate::Prediction;
    use crate::scenario::{Scenario, settings};

    #[test]
    fn a_card_lies_between_what_is_allocated_and_what_would_be_reserved() {
        for changes in [
            &[][..],
            &[("ckpt", "layers")],
            &[("expandable", "on")],
            &[("eval_mb", "32"), ("mb", "2")],
            &[("model", "llama-3.2-1b"), ("mb", "1"), ("seq", "512")],
        ] {
            let mut scenario = Scenario::default();
            for (name, value) in changes {
                settings::set(&mut scenario, name, value).unwrap();
            }
            let prediction = Prediction::new(scenario);
            let all = prediction.estimate().unwrap();
            let card = prediction.smallest_card().unwrap().unwrap();
            // Without unsplit slack, which a tight card may not allow: a block of it is below 1 MiB a request.
            let least = all.allocated.expected.scale(0.97);
            assert!(
                least <= card.allocator
                    && card.allocator <= all.reserved.expected.round_up(1 << 20),
                "{changes:?} {card:?}"
            );
            assert!(card.usable > card.allocator);
            assert!(card.runs == Some(true) || all.fits == Some(false));
        }
    }
}
