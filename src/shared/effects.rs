//! The page's side effects: the address, the keyboard, the window.

use leptos::ev;
use leptos::prelude::*;
use leptos::reactive::spawn_local;

use crate::fits::verdict::Sentence;
use crate::shared::graphs::State;
use crate::shared::places::Place;
use crate::shared::session::Session;
use crate::shared::signals::{debounced, whenever};
use crate::shared::{browser, worker};
use crate::text;
use headroom_core::graph;
use headroom_scenario::{Case, Scenario};

/// The storage key of the latest link: each tab has its own, and the latest of all tabs is for new ones.
const DRAFT: &str = "headroom.draft";

/// The initial scenario: the address's, or the latest of this tab or any tab, or the default.
pub fn opening() -> Session {
    let session = Session::new(Scenario::default());
    let fragment = browser::fragment();
    let draft = browser::stored_in_tab(DRAFT).or_else(|| browser::stored(DRAFT));
    let draft = draft.unwrap_or_default();
    if fragment.is_empty() {
        session.begin(&draft);
    } else {
        session.begin(&fragment);
        // A link takes precedence over earlier work, which stays one click away.
        let other = !draft.is_empty() && draft != untrack(|| session.link());
        session.previous_link.set(other.then_some(draft));
    }
    session
}

/// Updates the address and the browser's storage when the scenario changes, debounced; and opens a link that is pasted into
/// the address bar.
pub fn follow_address(session: Session) {
    // The fragment the page last saw. Any other one is a link that was just opened: it must be read, not overwritten.
    let seen = StoredValue::new(browser::fragment());
    let write = move || {
        if seen.try_get_value() != Some(browser::fragment()) {
            return;
        }
        let link = session.link_untracked();
        browser::replace_fragment(&link);
        // In the browser's spelling.
        seen.try_set_value(browser::fragment());
        // Storage is optional: the address has everything.
        browser::store_in_tab(DRAFT, &link);
        browser::store(DRAFT, &link);
    };
    // The initial scenario is not written before something changes.
    debounced(250, write, move |first| {
        session.scenario.with(|_| ());
        session.kept.track();
        !first
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

/// Updates expensive panels once the user pauses.
pub fn settle(session: Session) {
    let act = move || session.settled.set(session.answer.get_untracked());
    debounced(PAUSE, act, move |first| {
        session.answer.with(|_| ());
        !first
    });
}

/// Puts the answer into the window's title, which names bookmarks, tabs and shared links.
pub fn title(session: Session) {
    whenever(move |_| {
        let units = session.units.get();
        session.settled.with(|answer| {
            if let Some(estimate) = &answer.estimate {
                let shown = Sentence::of(estimate, units).short();
                let about = text::about(&answer.scenario);
                document().set_title(&format!("{shown} – {about} – Headroom"));
            }
        });
    });
}

/// Debounce before expensive panels redraw, in milliseconds.
const PAUSE: i32 = 80;

/// Keyboard shortcuts outside fields: undo and redo, `/` for the settings, a digit for each section.
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
            "/" if !command => browser::focus("#find-setting"),
            key if !command && !event.alt_key() => match Place::of_key(key) {
                Some(place) => place.show(),
                None => return,
            },
            _ => return,
        }
        event.prevent_default();
    });
    on_cleanup(move || handle.remove());
}

/// The window's rounded width.
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

/// Fetches the graphs of the current run and of the one it is compared with. A failed fetch is retried when the run changes
/// and when the browser is online again.
pub fn fetch_graphs(session: Session) {
    let ask = move || {
        session
            .scenario
            .with(|scenario| fetch_graph(session, scenario));
        session.kept.with(|kept| {
            if let Some(kept) = kept {
                fetch_graph(session, kept);
            }
        });
    };
    whenever(move |_| ask());
    let handle = window_event_listener(ev::online, move |_| untrack(ask));
    on_cleanup(move || handle.remove());
}

fn fetch_graph(session: Session, scenario: &Scenario) {
    let listed = Case::of(scenario).listed_model();
    let Some(entry) = listed.filter(|entry| !entry.graph.is_empty()) else {
        return;
    };
    let set = move |state| {
        // A closed page needs no answer.
        session
            .graphs
            .try_update(|graphs| graphs.set(entry.id, state));
    };
    let state = session
        .graphs
        .with_untracked(|graphs| graphs.state(entry.id));
    if matches!(state, Some(State::Coming | State::Here)) {
        return;
    }
    set(State::Coming);
    spawn_local(async move {
        let found = browser::recorded_graph(entry.id).await;
        // The reader may be in the module's second part.
        browser::second_part().await;
        let here = found.is_some_and(|text| {
            worker::send_graph(entry.id, &text);
            graph::insert(entry.id, &text).is_ok()
        });
        set(if here { State::Here } else { State::Failed });
    });
}
