//! Everything the page does to the outside on its own, each with a name: the address, the keyboard, the window.

use std::time::Duration;

use leptos::ev;
use leptos::prelude::*;

use super::browser;
use super::session::Session;
use crate::scenario::Scenario;

/// Where the latest link is kept in the browser's storage: a tab has its own, and the last of any tab is kept for new ones.
const DRAFT: &str = "headroom.draft";

/// The scenario the page opens with: the address's, or the one last worked on here or anywhere, or the default.
pub fn opening() -> Session {
    let session = Session::new(Scenario::default());
    let fragment = browser::fragment();
    let draft = browser::stored_in_tab(DRAFT).or_else(|| browser::stored(DRAFT));
    let draft = draft.unwrap_or_default();
    if fragment.is_empty() {
        session.begin(&draft);
    } else {
        session.begin(&fragment);
        // A link wins over what was worked on, which stays one click away.
        let other = !draft.is_empty() && draft != untrack(|| session.link());
        session.yours.set(other.then_some(draft));
    }
    session
}

/// The address and the browser's storage follow the scenario, once it has rested for a moment; and the scenario follows
/// the address: a link pasted over the old one opens.
pub fn follow_address(session: Session) {
    // What the page last saw there. Anything else is a link that somebody has just opened: it is read, not written over.
    let seen = StoredValue::new(browser::fragment());
    let write = debounce(Duration::from_millis(250), move |link: String| {
        if seen.try_get_value() != Some(browser::fragment()) {
            return;
        }
        browser::replace_fragment(&link);
        // As the browser spells it.
        seen.try_set_value(browser::fragment());
        // Storage is a convenience: where it is refused the address still holds everything.
        browser::store_in_tab(DRAFT, &link);
        browser::store(DRAFT, &link);
    });
    let write = StoredValue::new_local(write);
    Effect::new(move |before: Option<String>| {
        let link = session.link();
        if before.is_some_and(|before| before != link) {
            write.update_value(|write| write(link.clone()));
        }
        link
    });
    let handle = window_event_listener(ev::hashchange, move |_| {
        let fragment = browser::fragment();
        seen.set_value(fragment.clone());
        if fragment != session.link_untracked() {
            session.open(&fragment);
        }
    });
    on_cleanup(move || handle.remove());
}

/// Undo and redo by keyboard outside fields, and `/` for the model.
pub fn listen_to_keys(session: Session) {
    let handle = window_event_listener(ev::keydown, move |event| {
        if browser::in_field(&event) {
            return;
        }
        let command = event.ctrl_key() || event.meta_key();
        match event.key().as_str() {
            "z" | "Z" if command && event.shift_key() => session.redo(),
            "z" if command => session.undo(),
            "y" if command => session.redo(),
            "/" if !command => browser::focus("[name='model.id']"),
            _ => return,
        }
        event.prevent_default();
    });
    on_cleanup(move || handle.remove());
}

/// The window's width, in steps.
pub fn watch_width() -> ReadSignal<u32> {
    let (width, set_width) = signal(browser::width());
    let handle = window_event_listener(ev::resize, move |_| {
        let now = browser::width();
        if width.get_untracked() != now {
            set_width.set(now);
        }
    });
    on_cleanup(move || handle.remove());
    width
}
