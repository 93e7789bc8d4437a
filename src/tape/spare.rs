//! What tensors and nodes of the graph leave behind for the next: a run makes hundreds that live for a moment, and memory
//! from the system costs more than all else they do.

use std::cell::RefCell;
use std::rc::Rc;
use std::thread::LocalKey;

/// Empty places of one kind. They belong to the thread and outlive the tape: of a tape of one step alone, which is all that a
/// search runs, next to nothing would be used twice.
pub(super) struct Spare<T: 'static>(RefCell<Vec<Rc<T>>>);

impl<T> Spare<T> {
    /// Tens of kilobytes' worth; what is beyond goes back to the system.
    const MOST: usize = 512;

    pub const fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }
}

/// Puts a value into an empty place, or into new memory where there is none.
#[inline]
pub(super) fn placed<T>(spare: &'static LocalKey<Spare<T>>, value: T) -> Rc<T> {
    let place = spare.try_with(|spare| spare.0.borrow_mut().pop());
    if let Ok(Some(mut place)) = place
        && let Some(empty) = Rc::get_mut(&mut place)
    {
        *empty = value;
        return place;
    }
    Rc::new(value)
}

/// Keeps a place that its last user has left. Where the thread ends, so do its places.
#[inline]
pub(super) fn keep<T>(spare: &'static LocalKey<Spare<T>>, place: Rc<T>) {
    let _ = spare.try_with(|spare| {
        let mut spare = spare.0.borrow_mut();
        if spare.len() < Spare::<T>::MOST {
            spare.push(place);
        }
    });
}
