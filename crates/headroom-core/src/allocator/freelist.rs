//! The free blocks of one pool and stream, ordered by size and then by address.

use super::bin::{Bin, Key, NEAR, Place};

/// A set of free blocks that answers "the smallest block of at least this size" in a few nanoseconds.
///
/// PyTorch keeps a red-black tree. Here the sizes are cut into bins, four to every power of two, with a bitmap of the bins in use:
/// the same order, without pointers to chase.
///
/// What came last waits outside the bins, for it often leaves next: to be handed out again, or merged with a neighbour.
#[derive(Clone, Debug)]
pub(super) struct FreeList {
    in_use: [u64; WORDS],
    bins: [Bin; BINS],
    /// Without size where nothing does.
    waiting: Entry,
}

/// A free block as the list sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub size: u64,
    pub address: u64,
    pub block: u32,
}

/// The position of an entry, in bin `WAITING` if in none; valid until the list changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    bin: usize,
    place: Place,
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
    pub(crate) fn new() -> Self {
        Self {
            in_use: [0; WORDS],
            bins: [const { Bin::EMPTY }; BINS],
            waiting: Entry::default(),
        }
    }

    /// Forgets every entry and keeps the room for them.
    pub(crate) fn clear(&mut self) {
        self.waiting.size = 0;
        for (number, word) in self.in_use.iter_mut().enumerate() {
            while *word != 0 {
                let bin = &mut self.bins[number * 64 + word.trailing_zeros() as usize];
                bin.near.clear();
                bin.far.clear();
                *word &= *word - 1;
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        let filed = self.bins.iter().flat_map(Bin::pieces).map(Vec::len);
        filed.sum::<usize>() + usize::from(self.waiting.size > 0)
    }

    #[inline]
    pub(crate) fn insert(&mut self, new: Entry) {
        self.settle();
        self.waiting = new;
    }

    /// Puts what waits into its bin.
    #[inline]
    pub(crate) fn settle(&mut self) {
        if self.waiting.size > 0 {
            self.file(self.waiting);
            self.waiting.size = 0;
        }
    }

    #[inline(never)]
    fn file(&mut self, entry: Entry) {
        let bin = bin_of(entry.size);
        self.bins[bin].insert(key(entry));
        self.in_use[bin / 64] |= 1 << (bin % 64);
    }

    /// Removes this block; an absent one is left absent.
    #[inline]
    pub(crate) fn remove(&mut self, entry: Entry) {
        if self.waiting == entry {
            self.waiting.size = 0;
        } else {
            self.unfile(entry);
        }
    }

    #[inline(never)]
    fn unfile(&mut self, entry: Entry) {
        let bin = bin_of(entry.size);
        if let Some(place) = self.bins[bin].find(key(entry)) {
            self.take_filed(bin, place);
        }
    }

    #[inline]
    pub(crate) fn remove_at(&mut self, at: Cursor) {
        if at.bin == WAITING {
            self.waiting.size = 0;
        } else {
            self.take_filed(at.bin, at.place);
        }
    }

    #[inline]
    fn take_filed(&mut self, bin: usize, place: Place) -> Key {
        let key = self.bins[bin].take(place);
        if self.bins[bin].near.is_empty() {
            self.in_use[bin / 64] &= !(1 << (bin % 64));
        }
        key
    }

    /// Takes the block that `at_least` finds.
    #[inline]
    pub(crate) fn take_at_least(&mut self, size: u64) -> Option<u32> {
        match self.at_least(size)? {
            Cursor { bin: WAITING, .. } => {
                self.waiting.size = 0;
                Some(self.waiting.block)
            }
            Cursor { bin, place } => Some(self.take_filed(bin, place) as u32),
        }
    }

    #[inline]
    pub(crate) fn get(&self, at: Cursor) -> Entry {
        match at.bin {
            WAITING => self.waiting,
            bin => entry(self.bins[bin].get(at.place)),
        }
    }

    /// The smallest entry of at least this size; among equals the one at the lowest address.
    #[inline]
    pub(crate) fn at_least(&self, size: u64) -> Option<Cursor> {
        let found = self.filed(size);
        let waits = self.waiting.size >= size.max(1)
            && found.is_none_or(|at| key(self.waiting) < self.bins[at.bin].get(at.place));
        if waits {
            let (piece, index) = (NEAR, 0);
            return Some(Cursor {
                bin: WAITING,
                place: Place { piece, index },
            });
        }
        found
    }

    /// The same without what waits.
    #[inline]
    fn filed(&self, size: u64) -> Option<Cursor> {
        let bin = bin_of(size);
        let least = (size >> UNIT_BITS) << SIZE_SHIFT;
        match self.bins[bin].smallest_where(|key| (key >> 64) as u64 >= least) {
            Some(place) => Some(Cursor { bin, place }),
            None => self.smallest_from(bin + 1),
        }
    }

    /// The next larger entry, where none waits.
    pub(crate) fn next(&self, at: Cursor) -> Option<Cursor> {
        match self.bins[at.bin].next(at.place) {
            Some(place) => Some(Cursor { place, ..at }),
            None => self.smallest_from(at.bin + 1),
        }
    }

    /// The largest entry.
    pub(crate) fn last(&self) -> Option<Entry> {
        let used = self
            .in_use
            .iter()
            .enumerate()
            .rfind(|(_, word)| **word != 0);
        let largest = used.and_then(|(number, word)| {
            let bin = number * 64 + 63 - word.leading_zeros() as usize;
            self.bins[bin].pieces().next()?.first()
        });
        let waiting = (self.waiting.size > 0).then_some(self.waiting);
        let largest = largest.map(|key| entry(*key));
        waiting.into_iter().chain(largest).max()
    }

    /// All entries, smallest first.
    pub(crate) fn iter(&mut self) -> impl Iterator<Item = Entry> + '_ {
        self.settle();
        let pieces = self.bins.iter().flat_map(|bin| bin.pieces().rev());
        let keys = pieces.flat_map(|piece| piece.iter().rev());
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
        let (piece, index) = (NEAR, self.bins[bin].near.len().checked_sub(1)?);
        Some(Cursor {
            bin,
            place: Place { piece, index },
        })
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
            // A third are of few sizes, so that a bin holds thousands of them.
            let size = match random() % 3 {
                0 => (4096 + random() % 2) << UNIT_BITS,
                _ => (1 + random() % 4096) << (UNIT_BITS + (random() % 14) as u32),
            };
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
                // Addresses in no order, each once.
                let place = step * 7919 % 20_011;
                list.insert(Entry {
                    size,
                    address: place << 9,
                    block: step as u32,
                });
                truth.insert((size, place << 9, step as u32));
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
