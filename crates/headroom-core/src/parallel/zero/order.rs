//! The order in which modules are fetched, as stage 3's trace has recorded it.

use std::collections::BTreeMap;

/// The order of modules, and what it takes to tell at once how far away the next use of one is.
#[derive(Debug, Default)]
pub(super) struct Order<M> {
    pub modules: Vec<M>,
    /// Where each module comes.
    places: BTreeMap<M, Vec<usize>>,
    /// How many elements the modules up to each place have.
    elements: Vec<u128>,
}

impl<M: Ord + Copy> Order<M> {
    pub(crate) fn push(&mut self, module: M, elements: u64) {
        let before = self.elements.last().copied().unwrap_or_default();
        self.places
            .entry(module)
            .or_default()
            .push(self.modules.len());
        self.modules.push(module);
        self.elements.push(before + u128::from(elements));
    }

    /// Whether a module comes again from this place on, within this many elements.
    pub(crate) fn comes_within(&self, limit: u64, module: M, from: usize) -> bool {
        let places = self.places.get(&module).map(Vec::as_slice);
        let places = places.unwrap_or_default();
        let next = places.partition_point(|place| *place < from);
        let up_to = |place: usize| {
            let last = place
                .checked_sub(1)
                .and_then(|last| self.elements.get(last));
            last.copied().unwrap_or_default()
        };
        places
            .get(next)
            .is_some_and(|place| up_to(*place) - up_to(from) < u128::from(limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reuse_within_a_limit_equals_a_walk_over_the_order() {
        let (mut order, mut walked) = (Order::default(), Vec::new());
        for place in 0..60_u32 {
            let (module, elements) = (place * place % 11, u64::from(place % 7));
            order.push(module, elements);
            walked.push((module, elements));
        }
        for from in 0..=61 {
            for limit in [0, 1, 5, 20, 1_000] {
                for module in 0..12 {
                    let mut traversed = 0;
                    let to_come = walked.get(from..).unwrap_or_default().iter();
                    let near = to_come.take_while(|(_, elements)| {
                        let is_near = traversed < limit;
                        traversed += elements;
                        is_near
                    });
                    let expected = near.map(|(module, _)| *module).any(|other| other == module);
                    let found = order.comes_within(limit, module, from);
                    assert_eq!(found, expected, "{module} from {from} within {limit}");
                }
            }
        }
    }
}
