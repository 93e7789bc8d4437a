//! The doors to Leptos' signals. Each closure that one of its generic functions is given makes that function anew in the
//! download: behind these, one is made for each kind of value.

use leptos::prelude::{Effect, Memo};

/// A value worked out from signals, once for each change of them.
pub fn memo<T: PartialEq + Send + Sync + 'static>(
    work: impl Fn() -> T + Send + Sync + 'static,
) -> Memo<T> {
    memo_after(move |_| work())
}

/// The same, from the value before it as well.
pub fn memo_after<T: PartialEq + Send + Sync + 'static>(
    work: impl Fn(Option<&T>) -> T + Send + Sync + 'static,
) -> Memo<T> {
    let work: Work<T> = Box::new(work);
    Memo::new(work)
}

type Work<T> = Box<dyn Fn(Option<&T>) -> T + Send + Sync>;

/// Does something to what lies outside, at first and whenever a signal in it changes; it is told whether this is the
/// first time.
pub fn whenever(act: impl FnMut(bool) + 'static) {
    run(Box::new(act));
}

fn run(mut act: Box<dyn FnMut(bool)>) {
    Effect::new(move |before: Option<()>| act(before.is_none()));
}
