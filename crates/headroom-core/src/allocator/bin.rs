//! Free blocks of about one size: few as a rule, and as many as there are layers at worst.

/// Size, address and block in one number, so that an entry is found with one comparison a step.
pub(super) type Key = u128;

/// The entries of a bin from the largest to the smallest, because the smallest is the one that is taken.
///
/// Few as they mostly are, they are one sorted vector. A thousand layers leave thousands of one size, and to insert among
/// those would move most of them: the larger ones are in separate pieces.
#[derive(Clone, Debug)]
pub(super) struct Bin {
    pub near: Vec<Key>,
    /// Pieces of larger entries, none of them empty and from the largest to the smallest; where there are any, `near` is not empty.
    pub far: Vec<Vec<Key>>,
}

/// Where in a bin: the piece, `NEAR` or one that is far, and the index in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub piece: usize,
    pub index: usize,
}

pub(super) const NEAR: usize = usize::MAX;
/// A piece of more entries is halved.
const MOST_IN_PIECE: usize = 256;

impl Bin {
    pub(crate) const EMPTY: Self = Self {
        near: Vec::new(),
        far: Vec::new(),
    };

    pub(crate) fn pieces(&self) -> impl DoubleEndedIterator<Item = &Vec<Key>> {
        self.far.iter().chain(std::iter::once(&self.near))
    }

    /// The piece that holds this key, or would.
    #[inline]
    fn piece_of(&self, key: Key) -> usize {
        if self.far.is_empty() || self.near.first().is_some_and(|largest| key <= *largest) {
            return NEAR;
        }
        let above = |piece: &Vec<Key>| piece.last().is_some_and(|smallest| *smallest > key);
        self.far.partition_point(above).min(self.far.len() - 1)
    }

    #[inline]
    fn piece(&self, piece: usize) -> &Vec<Key> {
        if piece == NEAR {
            &self.near
        } else {
            &self.far[piece]
        }
    }

    #[inline]
    pub(crate) fn get(&self, place: Place) -> Key {
        self.piece(place.piece)[place.index]
    }

    #[inline]
    pub(crate) fn insert(&mut self, key: Key) {
        let number = self.piece_of(key);
        let piece = match number {
            NEAR => &mut self.near,
            number => &mut self.far[number],
        };
        piece.insert(at_or_above(piece, key), key);
        if piece.len() > MOST_IN_PIECE {
            let larger = piece.drain(..MOST_IN_PIECE / 2).collect();
            self.far.insert(number.min(self.far.len()), larger);
        }
    }

    #[inline]
    pub(crate) fn find(&self, key: Key) -> Option<Place> {
        let piece = self.piece_of(key);
        let keys = self.piece(piece);
        let index = at_or_above(keys, key).checked_sub(1)?;
        (keys[index] == key).then_some(Place { piece, index })
    }

    #[inline]
    pub(crate) fn take(&mut self, place: Place) -> Key {
        let piece = match place.piece {
            NEAR => &mut self.near,
            number => &mut self.far[number],
        };
        // Usually it is the last, which is removed without moving others.
        let key = if place.index + 1 == piece.len() {
            piece.pop().unwrap_or_default()
        } else {
            piece.remove(place.index)
        };
        if piece.is_empty() && !self.far.is_empty() {
            self.drop_empty(place.piece);
        }
        key
    }

    #[cold]
    fn drop_empty(&mut self, piece: usize) {
        if piece != NEAR {
            self.far.remove(piece);
        } else if let Some(next) = self.far.pop() {
            self.near = next;
        }
    }

    /// The smallest key that will do, where all larger ones do too.
    #[inline]
    pub(crate) fn smallest_where(&self, will_do: impl Fn(&Key) -> bool) -> Option<Place> {
        // Usually the smallest of a bin fits, or the bin is empty.
        let many = match self.near.last() {
            Some(smallest) if will_do(smallest) => self.near.len(),
            Some(_) => self.near.partition_point(&will_do),
            None => return None,
        };
        if let Some(index) = many.checked_sub(1) {
            let piece = NEAR;
            return Some(Place { piece, index });
        }
        let largest_does = |piece: &Vec<Key>| piece.first().is_some_and(&will_do);
        let piece = self.far.partition_point(largest_does).checked_sub(1)?;
        let index = self.far[piece].partition_point(&will_do).checked_sub(1)?;
        Some(Place { piece, index })
    }

    pub(crate) fn next(&self, place: Place) -> Option<Place> {
        if let Some(index) = place.index.checked_sub(1) {
            return Some(Place { index, ..place });
        }
        let piece = place.piece.min(self.far.len()).checked_sub(1)?;
        let index = self.far[piece].len().checked_sub(1)?;
        Some(Place { piece, index })
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
