//! The doors to Leptos' signals. Each closure that one of its generic functions is given makes that function anew in the
//! download: behind these, one is made for each kind of value.

use leptos::prelude::{Effect, Memo, StoredValue, WithValue};

use super::browser;

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

/// Acts once what `watch` reads has not changed for so many milliseconds. `watch` is told whether it reads for the first
/// time, and says whether anything is due. Memos it must read, with nothing done to them if need be: one that nobody has
/// read yet follows nothing.
pub fn once_rested(
    delay: i32,
    act: impl FnMut() + 'static,
    watch: impl Fn(bool) -> bool + 'static,
) {
    rest(delay, Box::new(act), Box::new(watch));
}

fn rest(delay: i32, act: Box<dyn FnMut()>, watch: Box<dyn Fn(bool) -> bool>) {
    let timer = StoredValue::new_local(browser::Timer::new(delay, act));
    // The outside here is time.
    whenever(move |first| {
        if watch(first) {
            timer.with_value(browser::Timer::set);
        }
    });
}
