//! Which layers of a list are of one kind, such as those with full attention (`layer_types` of a configuration).

use super::super::{ModelError, Sizes};

/// How many layers one size tells of: a bit each, so that it stays a small number.
const EACH: u64 = 20;

/// Layers by their numbers, up to 256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::nets) struct LayerSet([u64; 4]);

impl LayerSet {
    /// The layers that the sizes `NAME_0`, `NAME_1`, … tell of, a bit for each and twenty in each; `None` without any.
    pub(super) fn of(sizes: &Sizes, name: &str) -> Option<Self> {
        let mut set = Self([0; 4]);
        let mut found = false;
        for part in 0..256 / EACH {
            let Some(bits) = sizes.get(&format!("{name}_{part}")) else {
                continue;
            };
            found = true;
            for bit in (0..EACH).filter(|bit| bits >> bit & 1 == 1) {
                set.insert(part * EACH + bit);
            }
        }
        found.then_some(set)
    }

    /// The numbers of the layers that `NAME_0`, … tell of, below `count`; without any those that the size `NAME` lists.
    pub(in crate::nets) fn list(
        sizes: &Sizes,
        name: &str,
        count: u64,
    ) -> Result<Vec<u64>, ModelError> {
        match Self::of(sizes, name) {
            Some(set) => Ok((0..count.min(256))
                .filter(|layer| set.contains(*layer))
                .collect()),
            None => Ok(sizes.list(name)?.to_vec()),
        }
    }

    fn insert(&mut self, layer: u64) {
        if let Some(word) = self.0.get_mut((layer / 64) as usize) {
            *word |= 1 << (layer % 64);
        }
    }

    pub(super) fn contains(&self, layer: u64) -> bool {
        let word = self.0.get((layer / 64) as usize);
        word.is_some_and(|word| word >> (layer % 64) & 1 == 1)
    }
}

/// The shortest period in which the kinds of `count` layers repeat.
pub(super) fn period<K: PartialEq>(count: u64, kind: impl Fn(u64) -> K) -> u64 {
    let repeats = |period: &u64| (*period..count).all(|i| kind(i) == kind(i - period));
    (1..count).find(repeats).unwrap_or(count).max(1)
}

/// The first layers of a list whose kinds repeat, up to the one that breaks the row, and their period: of the shortest period that leaves
/// out less than another.
pub(super) fn regular_beginning<K: PartialEq>(count: u64, kind: impl Fn(u64) -> K) -> (u64, u64) {
    let repeats = |period: u64| {
        let follows = |i: &u64| kind(*i) == kind(*i - period);
        period + (period..count).take_while(follows).count() as u64
    };
    // Fewer than four periods are not worth it.
    let periods = (1..=count / 4).map(|period| (period, repeats(period)));
    let whole = (count.max(1), count);
    let enough = periods.filter(|(period, layers)| layers / period >= 4);
    enough.fold(whole, |best, next| {
        if best == whole || next.1 > best.1 {
            next
        } else {
            best
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_layers() {
        let sizes = Sizes::from([("full_0", 0b1000), ("full_1", 0b1)]);
        let set = LayerSet::of(&sizes, "full").unwrap();
        let members: Vec<u64> = (0..64).filter(|&i| set.contains(i)).collect();
        assert_eq!(members, [3, 20]);
        assert_eq!(LayerSet::of(&sizes, "moe"), None);
    }

    #[test]
    fn equal_layers_repeat_after_each_and_odd_ones_never() {
        assert_eq!(period(8, |_| 0), 1);
        assert_eq!(period(8, |i| i % 4 == 3), 4);
        assert_eq!(period(8, |i| i == 6), 7);
        assert_eq!(period(0, |_| 0), 1);
    }

    #[test]
    fn a_row_is_regular_up_to_the_layer_that_breaks_it() {
        assert_eq!(regular_beginning(26, |i| i % 4 == 2 || i == 25), (4, 25));
        assert_eq!(regular_beginning(8, |_| 0), (1, 8));
        assert_eq!(regular_beginning(8, |i| i), (8, 8));
        assert_eq!(regular_beginning(0, |_| 0), (1, 0));
    }
}
