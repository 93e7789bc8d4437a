//! Vectors with small growth factors: doubling a long `Vec` needs three times its memory during reallocation.

/// Appends to a vector.
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

/// A vector in chunks of equal length: it grows without being moved, which is worth one more indirection for each item if
/// there are a hundred thousand.
#[derive(Clone, Debug)]
pub struct ChunkedVec<T> {
    chunks: Vec<Vec<T>>,
    len: usize,
}

impl<T> ChunkedVec<T> {
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
        self.chunks.get(at >> Self::BITS)?.get(at % Self::LENGTH)
    }

    #[inline]
    pub fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.chunks
            .get_mut(at >> Self::BITS)?
            .get_mut(at % Self::LENGTH)
    }

    #[inline]
    pub fn push(&mut self, new: T) {
        if self.len.is_multiple_of(Self::LENGTH) {
            self.chunks.push(Vec::with_capacity(Self::LENGTH));
        }
        if let Some(last) = self.chunks.last_mut() {
            last.push(new);
            self.len += 1;
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }
}

impl<T> Default for ChunkedVec<T> {
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            len: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_hold_what_a_vector_holds() {
        let mut list = Vec::new();
        let mut pieces = ChunkedVec::default();
        for item in 0..=3 * ChunkedVec::<usize>::LENGTH {
            list.push(item);
            pieces.push(item);
            *pieces.get_mut(item / 2).unwrap() += item;
            list[item / 2] += item;
        }
        assert!(pieces.iter().eq(&list));
        assert_eq!(pieces.len(), list.len());
        assert!((0..=list.len()).all(|at| pieces.get(at) == list.get(at)));
        assert!(ChunkedVec::<u8>::default().is_empty());
    }
}
