//! Thin wrappers over Leptos' signals. Each closure passed to a generic Leptos function instantiates it again in the
//! download; these are instantiated once per type.

use leptos::prelude::{Effect, GetUntracked, Memo, RwSignal, Set, StoredValue, WithValue};
use web_sys::Event;

use crate::shared::browser;

/// A memo.
pub fn memo<T: PartialEq + Send + Sync + 'static>(
    work: impl Fn() -> T + Send + Sync + 'static,
) -> Memo<T> {
    memo_after(move |_| work())
}

/// A memo that also gets its previous value.
pub fn memo_after<T: PartialEq + Send + Sync + 'static>(
    work: impl Fn(Option<&T>) -> T + Send + Sync + 'static,
) -> Memo<T> {
    let work: Work<T> = Box::new(work);
    Memo::new(work)
}

type Work<T> = Box<dyn Fn(Option<&T>) -> T + Send + Sync>;

/// Runs a side effect now and whenever a signal in it changes; the argument says whether this is the first run.
pub fn whenever(act: impl FnMut(bool) + 'static) {
    run(Box::new(act));
}

fn run(mut act: Box<dyn FnMut(bool)>) {
    Effect::new(move |before: Option<()>| act(before.is_none()));
}

/// Acts once the signals that `watch` reads have not changed for `delay` milliseconds. `watch` gets whether this is its
/// first run, and returns whether to act. It must read memos even if it ignores them: a memo that was never read tracks
/// nothing.
pub fn debounced(delay: i32, act: impl FnMut() + 'static, watch: impl Fn(bool) -> bool + 'static) {
    rest(delay, Box::new(act), Box::new(watch));
}

fn rest(delay: i32, act: Box<dyn FnMut()>, watch: Box<dyn Fn(bool) -> bool>) {
    let timer = StoredValue::new_local(browser::Timer::new(delay, act));
    // The side effect is a timer.
    whenever(move |first| {
        if watch(first) {
            timer.with_value(browser::Timer::set);
        }
    });
}

/// Sets a signal to whether the `details` element of an event is open.
pub fn track_open(event: &Event, open: RwSignal<bool>) {
    let now = browser::is_open(event);
    if open.get_untracked() != now {
        open.set(now);
    }
}
