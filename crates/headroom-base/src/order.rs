//! Sorting and small maps that compile to less code than those of the standard library, which the page downloads.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::iter::Map as Mapped;
use std::{slice, vec};

/// The items in order, by a stable insertion sort.
///
/// The lists here have tens of entries. The standard sort is made for millions of them and compiles to 5 kB for every type.
pub fn sorted<T>(
    items: impl IntoIterator<Item = T>,
    compare: impl Fn(&T, &T) -> Ordering,
) -> Vec<T> {
    let mut sorted: Vec<T> = Vec::new();
    for item in items {
        let at = sorted.partition_point(|placed| compare(placed, &item) != Ordering::Greater);
        sorted.insert(at, item);
    }
    sorted
}

/// The items in order, each once.
pub fn distinct<T: Ord>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let map: Map<T, ()> = items.into_iter().map(|item| (item, ())).collect();
    map.into_iter().map(|(item, ())| item).collect()
}

/// Values by key, in the order of the keys, as `BTreeMap` has them.
///
/// The maps here have tens of entries and are read far more often than written. A `BTreeMap` compiles to 5 kB for every
/// pair of types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map<K, V>(Vec<(K, V)>);

type Pair<'a, K, V> = fn(&'a (K, V)) -> (&'a K, &'a V);

impl<K: Ord, V> Map<K, V> {
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    pub fn with_capacity(count: usize) -> Self {
        Self(Vec::with_capacity(count))
    }

    /// The index of the key, or where it would be inserted.
    fn search<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        self.0
            .binary_search_by(|(other, _)| other.borrow().cmp(key))
    }

    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let at = self.search(key).ok()?;
        self.0.get(at).map(|(_, value)| value)
    }

    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.search(key).is_ok()
    }

    /// Returns the value that was there before.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.search(&key) {
            Ok(at) => Some(std::mem::replace(&mut self.0[at].1, value)),
            Err(at) => {
                self.0.insert(at, (key, value));
                None
            }
        }
    }

    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let at = self.search(key).ok()?;
        Some(self.0.remove(at).1)
    }

    /// The value of the key, inserted where there is none.
    pub fn or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let at = self.search(&key).unwrap_or_else(|at| {
            self.0.insert(at, (key, make()));
            at
        });
        &mut self.0[at].1
    }

    pub fn or_insert(&mut self, key: K, value: V) -> &mut V {
        self.or_insert_with(key, || value)
    }

    pub fn or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        self.or_insert_with(key, V::default)
    }

    pub fn iter(&self) -> Mapped<slice::Iter<'_, (K, V)>, Pair<'_, K, V>> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.0.iter().map(|(key, _)| key)
    }

    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }

    pub fn retain(&mut self, mut keep: impl FnMut(&K, &V) -> bool) {
        self.0.retain(|(key, value)| keep(key, value));
    }

    pub const fn len(&self) -> usize {
        self.0.len()
    }

    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Ord, V> Extend<(K, V)> for Map<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, items: I) {
        for (key, value) in items {
            self.insert(key, value);
        }
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for Map<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(items: I) -> Self {
        let mut map = Self::new();
        map.extend(items);
        map
    }
}

impl<K: Ord, V, const N: usize> From<[(K, V); N]> for Map<K, V> {
    fn from(items: [(K, V); N]) -> Self {
        items.into_iter().collect()
    }
}

impl<K, V> IntoIterator for Map<K, V> {
    type Item = (K, V);
    type IntoIter = vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, K: Ord, V> IntoIterator for &'a Map<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Mapped<slice::Iter<'a, (K, V)>, Pair<'a, K, V>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_map_does_what_a_btree_map_does() {
        let mut state = 7_u32;
        let mut next = |most| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % most
        };
        let (mut map, mut tree) = (Map::new(), BTreeMap::new());
        for _ in 0..2000 {
            let (key, value) = (next(40), next(1000));
            match next(4) {
                0 => assert_eq!(map.remove(&key), tree.remove(&key)),
                1 => assert_eq!(*map.or_default(key), *tree.entry(key).or_default()),
                2 => {
                    let odd = |key: &u32, value: &u32| (key + value) % 8 != 1;
                    map.retain(odd);
                    tree.retain(|key, value| odd(key, value));
                }
                _ => assert_eq!(map.insert(key, value), tree.insert(key, value)),
            }
            assert_eq!(map.get(&key), tree.get(&key));
            assert!(map.iter().eq(tree.iter()) && map.len() == tree.len());
        }
        let given: Map<_, _> = [(3, 'a'), (1, 'b'), (3, 'c')].into();
        assert!(given.into_iter().eq([(1, 'b'), (3, 'c')]));
        assert_eq!(distinct([3, 1, 3, 2, 1]), [1, 2, 3]);
    }

    #[test]
    fn sorting_is_stable_as_in_the_standard_library() {
        let mut state = 1_u32;
        for length in 0..60 {
            let numbered: Vec<(u32, usize)> = (0..length)
                .map(|place| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 28, place)
                })
                .collect();
            let mut expected = numbered.clone();
            expected.sort_by_key(|item| item.0);
            assert_eq!(sorted(numbered, |a, b| a.0.cmp(&b.0)), expected);
        }
    }
}
