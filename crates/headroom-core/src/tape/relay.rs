//! Tensors handed from one folded layer to the next besides its outputs, e.g. a collective's buffer.

use std::rc::{Rc, Weak};

use super::core::{Queue, Relays};
use super::{Core, Tape, Tensor};

/// A queue of tensors that outlives the layer that fills it. Folding takes it into account: one repeat takes out what the
/// previous one put in.
#[derive(Clone, Default)]
pub struct Relay(Rc<Queue>);

impl std::fmt::Debug for Relay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Relay({})", self.0.borrow().len())
    }
}

impl Relay {
    pub fn push(&self, tensor: Tensor) {
        self.0.borrow_mut().push_back(tensor);
    }

    pub fn pop(&self) -> Option<Tensor> {
        self.0.borrow_mut().pop_front()
    }

    pub fn len(&self) -> usize {
        self.0.borrow().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops its contents.
    pub fn clear(&self) {
        drop(self.0.take());
    }
}

impl Tape {
    /// A new, empty relay.
    pub fn relay(&self) -> Relay {
        let relay = Relay::default();
        self.0.relays.all.borrow_mut().push(Rc::downgrade(&relay.0));
        relay
    }
}

impl Core {
    /// Notes the contents of the relays as a group begins.
    pub(super) fn note_relays(&self) {
        let now = self.relays.contents();
        self.relays.at_open.replace(now);
    }

    /// Pairs the contents at the start of the group with the present ones; `None` if they do not match.
    pub(super) fn relayed(&self) -> Option<Vec<(u32, u32)>> {
        let (before, now) = (self.relays.at_open.take(), self.relays.contents());
        let mut pairs = Vec::new();
        for (before, now) in before.iter().zip(&now) {
            if before.len() != now.len() {
                return None;
            }
            let changed = before.iter().zip(now).filter(|(a, b)| a != b);
            pairs.extend(changed.map(|(a, b)| (*a, *b)));
        }
        let trace = self.trace.borrow();
        let bytes = |storage: u32| {
            trace
                .storages
                .get(storage as usize)
                .map(|storage| storage.bytes)
        };
        let alike = pairs.iter().all(|(a, b)| bytes(*a) == bytes(*b));
        alike.then_some(pairs)
    }
}

impl Relays {
    fn contents(&self) -> Vec<Vec<u32>> {
        let all = self.all.borrow();
        let slots = all.iter().filter_map(Weak::upgrade);
        let ids = |slot: Rc<Queue>| {
            slot.borrow()
                .iter()
                .filter_map(Tensor::storage_id)
                .collect()
        };
        slots.map(ids).collect()
    }
}
