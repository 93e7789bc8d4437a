//! Recycled allocations of tensors and graph nodes: a run creates hundreds of short-lived ones, and calling the system's
//! allocator would cost more than everything else they do.

use std::cell::RefCell;
use std::rc::Rc;
use std::thread::LocalKey;

/// Free slots of one type. They belong to the thread and outlive the tape: within a tape of a single step, which is all a
/// search runs, almost nothing would be reused.
pub(super) struct Spare<T: 'static>(RefCell<Vec<Rc<T>>>);

impl<T> Spare<T> {
    /// Tens of kilobytes' worth; the rest is returned to the system.
    const MOST: usize = 512;

    pub(crate) const fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }
}

/// Puts a value into a free slot, or into new memory if there is none.
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

/// Keeps a slot whose last user is gone. Slots end with their thread.
#[inline]
pub(super) fn keep<T>(spare: &'static LocalKey<Spare<T>>, place: Rc<T>) {
    let _ = spare.try_with(|spare| {
        let mut spare = spare.0.borrow_mut();
        if spare.len() < Spare::<T>::MOST {
            spare.push(place);
        }
    });
}
