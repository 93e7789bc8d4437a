//! Lists that grow by a part of what they hold: doubling takes three times the room of a long list while it is moved.

/// Appends to a list.
#[inline]
pub fn push<T>(list: &mut Vec<T>, new: T) {
    const LEAST: usize = 512;
    if list.len() == list.capacity() {
        list.reserve_exact((list.len() / 8).max(LEAST));
    }
    list.push(new);
}
