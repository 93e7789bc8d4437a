//! The free blocks of one pool and stream, ordered by size and then by address.

/// A set of free blocks that answers "the smallest block of at least this size" in a few nanoseconds.
///
/// PyTorch keeps a red-black tree. Here the sizes are cut into bins, four to every power of two, each a short sorted
/// vector, with a bitmap of the bins in use: the same order, without pointers to chase.
#[derive(Clone, Debug)]
pub(super) struct FreeList {
    in_use: [u64; WORDS],
    bins: Vec<Vec<Entry>>,
    len: usize,
}

/// A free block as the list sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub size: u64,
    pub address: u64,
    pub block: u32,
}

/// Where an entry stands; valid until the list changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    bin: usize,
    index: usize,
}

const WORDS: usize = 3;
const BINS: usize = WORDS * 64;
/// Blocks are multiples of 512 bytes; bins are cut by this unit.
const UNIT_BITS: u32 = 9;

/// Sizes from here on do not fit the bins; no machine has them, and the allocator refuses them.
pub(super) const SIZE_LIMIT: u64 = 1 << 57;

impl FreeList {
    pub fn new() -> Self {
        Self {
            in_use: [0; WORDS],
            bins: vec![Vec::new(); BINS],
            len: 0,
        }
    }

    /// Forgets every entry and keeps the room for them.
    pub fn clear(&mut self) {
        for (number, word) in self.in_use.iter_mut().enumerate() {
            while *word != 0 {
                self.bins[number * 64 + word.trailing_zeros() as usize].clear();
                *word &= *word - 1;
            }
        }
        self.len = 0;
    }

    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub fn insert(&mut self, entry: Entry) {
        let bin = bin_of(entry.size);
        let entries = &mut self.bins[bin];
        let at = position(entries, entry.size, entry.address);
        entries.insert(at, entry);
        self.in_use[bin / 64] |= 1 << (bin % 64);
        self.len += 1;
    }

    /// Removes the block of this size at this address; an absent one is left absent.
    #[inline]
    pub fn remove(&mut self, size: u64, address: u64) {
        let bin = bin_of(size);
        let at = position(&self.bins[bin], size, address);
        if self.bins[bin]
            .get(at)
            .is_some_and(|it| it.address == address && it.size == size)
        {
            self.remove_at(Cursor { bin, index: at });
        }
    }

    #[inline]
    pub fn remove_at(&mut self, at: Cursor) {
        let entries = &mut self.bins[at.bin];
        entries.remove(at.index);
        if entries.is_empty() {
            self.in_use[at.bin / 64] &= !(1 << (at.bin % 64));
        }
        self.len -= 1;
    }

    pub fn get(&self, at: Cursor) -> Entry {
        self.bins[at.bin][at.index]
    }

    /// The smallest entry of at least this size; among equals the one at the lowest address.
    #[inline]
    pub fn at_least(&self, size: u64) -> Option<Cursor> {
        let bin = bin_of(size);
        let index = position(&self.bins[bin], size, 0);
        if index < self.bins[bin].len() {
            return Some(Cursor { bin, index });
        }
        self.bin_from(bin + 1).map(|bin| Cursor { bin, index: 0 })
    }

    pub fn next(&self, at: Cursor) -> Option<Cursor> {
        if at.index + 1 < self.bins[at.bin].len() {
            return Some(Cursor {
                bin: at.bin,
                index: at.index + 1,
            });
        }
        self.bin_from(at.bin + 1)
            .map(|bin| Cursor { bin, index: 0 })
    }

    /// The largest entry.
    pub fn last(&self) -> Option<Entry> {
        let (number, word) = self
            .in_use
            .iter()
            .enumerate()
            .rfind(|(_, word)| **word != 0)?;
        self.bins[number * 64 + 63 - word.leading_zeros() as usize]
            .last()
            .copied()
    }

    /// All entries, smallest first.
    pub fn iter(&self) -> impl Iterator<Item = Entry> + '_ {
        self.bins.iter().flatten().copied()
    }

    #[inline]
    fn bin_from(&self, first: usize) -> Option<usize> {
        let mut number = first / 64;
        let mut word = self.in_use.get(number)? & (u64::MAX << (first % 64));
        while word == 0 {
            number += 1;
            word = *self.in_use.get(number)?;
        }
        Some(number * 64 + word.trailing_zeros() as usize)
    }
}

#[inline]
fn position(entries: &[Entry], size: u64, address: u64) -> usize {
    entries.partition_point(|it| (it.size, it.address) < (size, address))
}

#[inline]
fn bin_of(size: u64) -> usize {
    let units = size >> UNIT_BITS;
    if units < 4 {
        return units as usize;
    }
    let power = units.ilog2();
    let quarter = (units >> (power - 2)) & 3;
    ((power as usize - 1) * 4 + quarter as usize).min(BINS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_keep_the_order_of_sizes() {
        let mut before = 0;
        for units in (0..5000).chain((13..48).flat_map(|p| (0..9).map(move |k| (k + 8) << p))) {
            let bin = bin_of(units << UNIT_BITS);
            assert!(bin >= before && bin < BINS, "{units}: {bin} after {before}");
            before = bin;
        }
        assert!(bin_of(SIZE_LIMIT) < BINS);
    }

    #[test]
    fn it_answers_as_a_sorted_set_does() {
        let mut list = FreeList::new();
        let mut truth = std::collections::BTreeSet::new();
        let mut state = 1_u64;
        let mut random = move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        for step in 0..20_000_u64 {
            let size = (1 + random() % 4096) << (UNIT_BITS + (random() % 14) as u32);
            if random() % 3 == 0 {
                let found = truth.range((size, 0, 0)..).next().copied();
                let cursor = list.at_least(size);
                let entry = cursor.map(|at| list.get(at));
                assert_eq!(entry.map(|it| (it.size, it.address, it.block)), found);
                if let (Some(at), Some(it)) = (cursor, found) {
                    let after = truth.range((it.0, it.1 + 1, 0)..).next().map(|it| it.1);
                    assert_eq!(list.next(at).map(|at| list.get(at).address), after);
                    list.remove(it.0, it.1);
                    truth.remove(&it);
                }
            } else {
                list.insert(Entry {
                    size,
                    address: step << 9,
                    block: step as u32,
                });
                truth.insert((size, step << 9, step as u32));
            }
            assert_eq!(list.len(), truth.len());
        }
        let all: Vec<_> = list
            .iter()
            .map(|it| (it.size, it.address, it.block))
            .collect();
        assert_eq!(all, truth.iter().copied().collect::<Vec<_>>());
        assert_eq!(
            list.last().map(|it| it.address),
            truth.last().map(|it| it.1)
        );
        list.clear();
        assert!(list.len() == 0 && list.at_least(0).is_none());
    }
}
