//! The smallest card on which a run really goes through its steps.

use super::expand::{Expansion, Single};
use super::{Unsupported, built, device, ran, settings};
use crate::allocator::{Event, smallest_card as smallest};
use crate::catalog;
use crate::scenario::Scenario;
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
pub fn smallest_card(scenario: &Scenario) -> Result<Option<SmallestCard>, Unsupported> {
    let (net, _) = built(scenario)?;
    let run = ran(&*net, scenario);
    let events = requests(&run.trace);
    let found = smallest(&events, &settings(&scenario.runtime));
    let gpu = catalog::gpu(&scenario.hardware.gpu);
    Ok(found.map(|allocator| {
        let outside = device::band(scenario, gpu, super::Band::default()).expected;
        let usable = allocator + outside;
        SmallestCard {
            allocator,
            usable,
            runs: device::usable(scenario, gpu).map(|it| usable <= it),
        }
    }))
}

/// The whole run as what its program asks of the allocator.
fn requests(trace: &Trace) -> Vec<Event> {
    let expansion = Expansion::new(trace);
    let mut events = Vec::new();
    let mut push = |it: Single| {
        let Some(block) = trace.blocks.get(it.block as usize) else {
            return;
        };
        let handle = it.handle;
        events.push(if it.is_free {
            Event::Free { handle }
        } else {
            Event::Malloc {
                handle,
                bytes: Bytes::new(block.bytes),
                stream: 0,
            }
        });
    };
    expansion.setup(&mut push);
    expansion.events(0, trace.events.len(), &mut push);
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::estimate;
    use crate::scenario::settings;

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
            let all = estimate(&scenario).unwrap();
            let card = smallest_card(&scenario).unwrap().unwrap();
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
