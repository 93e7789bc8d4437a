//! The free blocks of one pool and stream, ordered by size and then by address.

/// A set of free blocks that answers "the smallest block of at least this size" in a few nanoseconds.
///
/// PyTorch keeps a red-black tree. Here the sizes are cut into bins, four to every power of two, each a short sorted
/// vector, with a bitmap of the bins in use: the same order, without pointers to chase. A bin runs from its largest
/// entry to its smallest, because the smallest is the one that is taken.
#[derive(Clone, Debug)]
pub(super) struct FreeList {
    in_use: [u64; WORDS],
    bins: Vec<Vec<Key>>,
}

/// Size, address and block in one number, so that an entry is found with one comparison a step.
type Key = u128;

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
/// Blocks and addresses are multiples of 512 bytes, and keys and bins count in these.
const UNIT_BITS: u32 = 9;
/// A key is the size, 51 bits of address, 32 bits of block.
const ADDRESS_BITS: u32 = 51;
const BLOCK_BITS: u32 = 32;

/// Sizes and addresses from here on do not fit a key; no machine has them, and the allocator refuses them.
pub(super) const SIZE_LIMIT: u64 = 1 << (128 - ADDRESS_BITS - BLOCK_BITS + UNIT_BITS);
pub(super) const ADDRESS_LIMIT: u64 = 1 << (ADDRESS_BITS + UNIT_BITS);

impl FreeList {
    pub fn new() -> Self {
        Self {
            in_use: [0; WORDS],
            bins: vec![Vec::new(); BINS],
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
    }

    pub fn len(&self) -> usize {
        self.bins.iter().map(Vec::len).sum()
    }

    #[inline]
    pub fn insert(&mut self, entry: Entry) {
        let bin = bin_of(entry.size);
        let key = key(entry.size, entry.address) | Key::from(entry.block);
        let keys = &mut self.bins[bin];
        let at = at_or_above(keys, key);
        keys.insert(at, key);
        self.in_use[bin / 64] |= 1 << (bin % 64);
    }

    /// Removes the block of this size at this address; an absent one is left absent.
    #[inline]
    pub fn remove(&mut self, size: u64, address: u64) {
        let bin = bin_of(size);
        let key = key(size, address);
        if let Some(index) = at_or_above(&self.bins[bin], key).checked_sub(1)
            && self.bins[bin][index] >> BLOCK_BITS == key >> BLOCK_BITS
        {
            self.remove_at(Cursor { bin, index });
        }
    }

    #[inline]
    pub fn remove_at(&mut self, at: Cursor) {
        let keys = &mut self.bins[at.bin];
        keys.remove(at.index);
        if keys.is_empty() {
            self.in_use[at.bin / 64] &= !(1 << (at.bin % 64));
        }
    }

    #[inline]
    pub fn get(&self, at: Cursor) -> Entry {
        entry(self.bins[at.bin][at.index])
    }

    /// The smallest entry of at least this size; among equals the one at the lowest address.
    #[inline]
    pub fn at_least(&self, size: u64) -> Option<Cursor> {
        let bin = bin_of(size);
        match at_or_above(&self.bins[bin], key(size, 0)).checked_sub(1) {
            Some(index) => Some(Cursor { bin, index }),
            None => self.smallest_from(bin + 1),
        }
    }

    /// The next larger entry.
    pub fn next(&self, at: Cursor) -> Option<Cursor> {
        match at.index.checked_sub(1) {
            Some(index) => Some(Cursor { index, ..at }),
            None => self.smallest_from(at.bin + 1),
        }
    }

    /// The largest entry.
    pub fn last(&self) -> Option<Entry> {
        let (number, word) = self
            .in_use
            .iter()
            .enumerate()
            .rfind(|(_, word)| **word != 0)?;
        let bin = number * 64 + 63 - word.leading_zeros() as usize;
        self.bins[bin].first().map(|key| entry(*key))
    }

    /// All entries, smallest first.
    pub fn iter(&self) -> impl Iterator<Item = Entry> + '_ {
        let keys = self.bins.iter().flat_map(|bin| bin.iter().rev());
        keys.map(|key| entry(*key))
    }

    #[inline]
    fn smallest_from(&self, first: usize) -> Option<Cursor> {
        let mut number = first / 64;
        let mut word = self.in_use.get(number)? & (u64::MAX << (first % 64));
        while word == 0 {
            number += 1;
            word = *self.in_use.get(number)?;
        }
        let bin = number * 64 + word.trailing_zeros() as usize;
        let index = self.bins[bin].len().checked_sub(1)?;
        Some(Cursor { bin, index })
    }
}

/// The number of keys from this one upwards.
#[inline]
fn at_or_above(keys: &[Key], key: Key) -> usize {
    keys.partition_point(|it| *it >= key)
}

#[inline]
fn key(size: u64, address: u64) -> Key {
    let size = Key::from(size >> UNIT_BITS) << (ADDRESS_BITS + BLOCK_BITS);
    size | Key::from(address >> UNIT_BITS) << BLOCK_BITS
}

#[inline]
fn entry(key: Key) -> Entry {
    let address = (key >> BLOCK_BITS) as u64 & ((1 << ADDRESS_BITS) - 1);
    Entry {
        size: ((key >> (ADDRESS_BITS + BLOCK_BITS)) as u64) << UNIT_BITS,
        address: address << UNIT_BITS,
        block: key as u32,
    }
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
