//! The free blocks of one pool and stream, ordered by size and then by address.

/// A set of free blocks that answers "the smallest block of at least this size" in a few nanoseconds.
///
/// PyTorch keeps a red-black tree. Here the sizes are cut into bins, four to every power of two, each a short sorted
/// vector, with a bitmap of the bins in use: the same order, without pointers to chase. A bin runs from its largest
/// entry to its smallest, because the smallest is the one that is taken.
///
/// What came last waits outside the bins, for it often leaves next: to be handed out again, or merged with a neighbour.
#[derive(Clone, Debug)]
pub(super) struct FreeList {
    in_use: [u64; WORDS],
    bins: [Vec<Key>; BINS],
    /// Without size where nothing does.
    waiting: Entry,
}

/// Size, address and block in one number, so that an entry is found with one comparison a step.
type Key = u128;

/// A free block as the list sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub size: u64,
    pub address: u64,
    pub block: u32,
}

/// Where an entry stands, in bin `WAITING` if in none; valid until the list changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    bin: usize,
    index: usize,
}

const WORDS: usize = 4;
const BINS: usize = WORDS * 64;
const WAITING: usize = usize::MAX;
/// Blocks and addresses are multiples of 512 bytes, and keys and bins count in these.
const UNIT_BITS: u32 = 9;
/// A key is the size, 51 bits of address, 32 bits of block.
const ADDRESS_BITS: u32 = 51;
const BLOCK_BITS: u32 = 32;
/// Where the size begins in the upper half of a key.
const SIZE_SHIFT: u32 = ADDRESS_BITS + BLOCK_BITS - 64;

/// Sizes and addresses from here on do not fit a key; no machine has them, and the allocator refuses them.
pub(super) const SIZE_LIMIT: u64 = 1 << (128 - ADDRESS_BITS - BLOCK_BITS + UNIT_BITS);
pub(super) const ADDRESS_LIMIT: u64 = 1 << (ADDRESS_BITS + UNIT_BITS);

impl FreeList {
    pub fn new() -> Self {
        Self {
            in_use: [0; WORDS],
            bins: [const { Vec::new() }; BINS],
            waiting: Entry::default(),
        }
    }

    /// Forgets every entry and keeps the room for them.
    pub fn clear(&mut self) {
        self.waiting.size = 0;
        for (number, word) in self.in_use.iter_mut().enumerate() {
            while *word != 0 {
                self.bins[number * 64 + word.trailing_zeros() as usize].clear();
                *word &= *word - 1;
            }
        }
    }

    pub fn len(&self) -> usize {
        self.bins.iter().map(Vec::len).sum::<usize>() + usize::from(self.waiting.size > 0)
    }

    #[inline]
    pub fn insert(&mut self, new: Entry) {
        self.settle();
        self.waiting = new;
    }

    /// Puts what waits into its bin.
    #[inline]
    pub fn settle(&mut self) {
        if self.waiting.size > 0 {
            self.file(self.waiting);
            self.waiting.size = 0;
        }
    }

    #[inline(never)]
    fn file(&mut self, entry: Entry) {
        let bin = bin_of(entry.size);
        let key = key(entry);
        let keys = &mut self.bins[bin];
        let at = at_or_above(keys, key);
        keys.insert(at, key);
        self.in_use[bin / 64] |= 1 << (bin % 64);
    }

    /// Removes this block; an absent one is left absent.
    #[inline]
    pub fn remove(&mut self, entry: Entry) {
        if self.waiting == entry {
            self.waiting.size = 0;
        } else {
            self.unfile(entry);
        }
    }

    #[inline(never)]
    fn unfile(&mut self, entry: Entry) {
        let bin = bin_of(entry.size);
        let key = key(entry);
        if let Some(index) = at_or_above(&self.bins[bin], key).checked_sub(1)
            && self.bins[bin][index] == key
        {
            self.remove_at(Cursor { bin, index });
        }
    }

    #[inline]
    pub fn remove_at(&mut self, at: Cursor) {
        if at.bin == WAITING {
            self.waiting.size = 0;
        } else {
            self.take_filed(at);
        }
    }

    #[inline]
    fn take_filed(&mut self, at: Cursor) -> Key {
        let keys = &mut self.bins[at.bin];
        // Most often it is the last, which goes without moving others.
        let key = if at.index + 1 == keys.len() {
            keys.pop().unwrap_or_default()
        } else {
            keys.remove(at.index)
        };
        if keys.is_empty() {
            self.in_use[at.bin / 64] &= !(1 << (at.bin % 64));
        }
        key
    }

    /// Takes the block that `at_least` finds.
    #[inline]
    pub fn take_at_least(&mut self, size: u64) -> Option<u32> {
        match self.at_least(size)? {
            Cursor { bin: WAITING, .. } => {
                self.waiting.size = 0;
                Some(self.waiting.block)
            }
            at => Some(self.take_filed(at) as u32),
        }
    }

    #[inline]
    pub fn get(&self, at: Cursor) -> Entry {
        match at.bin {
            WAITING => self.waiting,
            bin => entry(self.bins[bin][at.index]),
        }
    }

    /// The smallest entry of at least this size; among equals the one at the lowest address.
    #[inline]
    pub fn at_least(&self, size: u64) -> Option<Cursor> {
        let found = self.filed(size);
        let waits = self.waiting.size >= size.max(1)
            && found.is_none_or(|at| key(self.waiting) < self.bins[at.bin][at.index]);
        if waits {
            let (bin, index) = (WAITING, 0);
            return Some(Cursor { bin, index });
        }
        found
    }

    /// The same without what waits.
    #[inline]
    fn filed(&self, size: u64) -> Option<Cursor> {
        let bin = bin_of(size);
        let least = (size >> UNIT_BITS) << SIZE_SHIFT;
        let will_do = |key: &Key| (key >> 64) as u64 >= least;
        let keys = &self.bins[bin];
        // Mostly the smallest of a bin will do, or none is there.
        let many = match keys.last() {
            Some(smallest) if will_do(smallest) => keys.len(),
            Some(_) => keys.partition_point(will_do),
            None => 0,
        };
        match many.checked_sub(1) {
            Some(index) => Some(Cursor { bin, index }),
            None => self.smallest_from(bin + 1),
        }
    }

    /// The next larger entry, where none waits.
    pub fn next(&self, at: Cursor) -> Option<Cursor> {
        match at.index.checked_sub(1) {
            Some(index) => Some(Cursor { index, ..at }),
            None => self.smallest_from(at.bin + 1),
        }
    }

    /// The largest entry.
    pub fn last(&self) -> Option<Entry> {
        let used = self
            .in_use
            .iter()
            .enumerate()
            .rfind(|(_, word)| **word != 0);
        let largest = used.and_then(|(number, word)| {
            let bin = number * 64 + 63 - word.leading_zeros() as usize;
            self.bins[bin].first()
        });
        let waiting = (self.waiting.size > 0).then_some(self.waiting);
        let largest = largest.map(|key| entry(*key));
        waiting.into_iter().chain(largest).max()
    }

    /// All entries, smallest first.
    pub fn iter(&mut self) -> impl Iterator<Item = Entry> + '_ {
        self.settle();
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
    match keys.last() {
        Some(smallest) if *smallest < key => keys.partition_point(|other| *other >= key),
        _ => keys.len(),
    }
}

#[inline]
fn key(entry: Entry) -> Key {
    let size = Key::from(entry.size >> UNIT_BITS) << (ADDRESS_BITS + BLOCK_BITS);
    let address = Key::from(entry.address >> UNIT_BITS) << BLOCK_BITS;
    size | address | Key::from(entry.block)
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

/// Four to every power of two of the units and four more: with those the smallest sizes need no case of their own.
#[inline]
fn bin_of(size: u64) -> usize {
    let units = (size >> UNIT_BITS) + 4;
    let power = units.ilog2();
    let quarter = (units >> (power - 2)) as usize;
    (power as usize * 4 + quarter - 12).min(BINS - 1)
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
                assert_eq!(
                    entry.map(|entry| (entry.size, entry.address, entry.block)),
                    found
                );
                if let (Some(at), Some(taken)) = (cursor, found) {
                    let after = truth
                        .range((taken.0, taken.1 + 1, 0)..)
                        .next()
                        .map(|next| next.1);
                    match step % 3 {
                        0 => {
                            list.settle();
                            let next = list.at_least(size).and_then(|at| list.next(at));
                            assert_eq!(next.map(|at| list.get(at).address), after);
                            list.remove(entry.unwrap());
                        }
                        1 => list.remove(entry.unwrap()),
                        _ => list.remove_at(at),
                    }
                    truth.remove(&taken);
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
            .map(|entry| (entry.size, entry.address, entry.block))
            .collect();
        assert_eq!(all, truth.iter().copied().collect::<Vec<_>>());
        assert_eq!(
            list.last().map(|entry| entry.address),
            truth.last().map(|entry| entry.1)
        );
        list.clear();
        assert!(list.len() == 0 && list.at_least(0).is_none());
    }
}
