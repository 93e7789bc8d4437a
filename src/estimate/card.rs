//! The smallest card on which a run really goes through its steps.

use super::expand::{Expansion, Single};
use super::{alloc_conf, device};
use crate::allocator::{Request, smallest_card};
use crate::scenario::Case;
use crate::tape::Trace;
use crate::units::Bytes;

/// How little memory the run can do with: below what it would reserve if it could, since an allocator that is refused gives
/// back what it does not use and asks again, at the price of a stop of the card each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmallestCard {
    /// Left to the allocator.
    pub allocator: Bytes,
    /// With the CUDA context and the libraries beside it: what the driver must leave to programs.
    pub usable: Bytes,
    /// Whether the scenario's own card has that much; `None` where it is not known.
    pub runs: Option<bool>,
}

/// Replays the run on ever smaller cards; `None` where it runs on none.
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

/// The whole run as what its program asks of the allocator.
fn requests(trace: &Trace) -> Vec<Request> {
    let expansion = Expansion::new(trace);
    let mut events = Vec::new();
    let mut push = |event: Single| {
        let Some(storage) = trace.storages.get(event.storage as usize) else {
            return;
        };
        let handle = event.handle;
        events.push(if event.is_free {
            Request::Free { handle }
        } else {
            Request::Malloc {
                handle,
                bytes: Bytes::new(storage.bytes),
                stream: event.stream,
            }
        });
    };
    expansion.setup(&mut push);
    expansion.events(0, trace.events.len(), &mut push);
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
