//! Lists that grow by a part of what they hold: doubling takes three times the room of a long list while it is moved.

/// Appends to a list.
#[inline]
pub fn push<T>(list: &mut Vec<T>, new: T) {
    if list.len() == list.capacity() {
        grow(list);
    }
    list.push(new);
}

#[cold]
fn grow<T>(list: &mut Vec<T>) {
    const LEAST: usize = 512;
    list.reserve_exact((list.len() / 8).max(LEAST));
}

/// A list in pieces of equal length: it grows without being moved, which is worth a step more to each item where there are
/// a hundred thousand of them.
#[derive(Clone, Debug)]
pub struct Pieces<T> {
    pieces: Vec<Vec<T>>,
    len: usize,
}

impl<T> Pieces<T> {
    const BITS: u32 = 9;
    const LENGTH: usize = 1 << Self::BITS;

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub fn get(&self, at: usize) -> Option<&T> {
        self.pieces.get(at >> Self::BITS)?.get(at % Self::LENGTH)
    }

    #[inline]
    pub fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.pieces
            .get_mut(at >> Self::BITS)?
            .get_mut(at % Self::LENGTH)
    }

    #[inline]
    pub fn push(&mut self, new: T) {
        if self.len.is_multiple_of(Self::LENGTH) {
            self.pieces.push(Vec::with_capacity(Self::LENGTH));
        }
        if let Some(last) = self.pieces.last_mut() {
            last.push(new);
            self.len += 1;
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.pieces.iter().flatten()
    }
}

impl<T> Default for Pieces<T> {
    fn default() -> Self {
        Self {
            pieces: Vec::new(),
            len: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_hold_what_a_list_holds() {
        let mut list = Vec::new();
        let mut pieces = Pieces::default();
        for item in 0..=3 * Pieces::<usize>::LENGTH {
            list.push(item);
            pieces.push(item);
            *pieces.get_mut(item / 2).unwrap() += item;
            list[item / 2] += item;
        }
        assert!(pieces.iter().eq(&list));
        assert_eq!(pieces.len(), list.len());
        assert!((0..=list.len()).all(|at| pieces.get(at) == list.get(at)));
        assert!(Pieces::<u8>::default().is_empty());
    }
}
