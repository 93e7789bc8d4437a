//! Everything the page does to the outside on its own, each with a name: the address, the keyboard, the window.

use leptos::ev;
use leptos::prelude::*;
use leptos::reactive::spawn_local;

use super::graphs::State;
use super::places::Place;
use super::session::Session;
use super::signals::{once_rested, whenever};
use super::verdict::Sentence;
use super::{browser, text, worker};
use headroom_core::nets::graph;
use headroom_scenario::{Case, Scenario};

/// Where the latest link is kept in the browser's storage: a tab has its own, and the last of any tab is kept for new ones.
const DRAFT: &str = "headroom.draft";

/// The scenario the page opens with: the address's, or the one last worked on here or anywhere, or the default.
pub fn opening() -> Session {
    let session = Session::new(Scenario::default());
    let fragment = browser::fragment();
    let draft = browser::stored_in_tab(DRAFT).or_else(|| browser::stored(DRAFT));
    let draft = draft.unwrap_or_default();
    if fragment.is_empty() {
        session.first_visit.set(draft.is_empty());
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
    let write = move || {
        if seen.try_get_value() != Some(browser::fragment()) {
            return;
        }
        let link = session.link_untracked();
        browser::replace_fragment(&link);
        // As the browser spells it.
        seen.try_set_value(browser::fragment());
        // Storage is a convenience: where it is refused the address still holds everything.
        browser::store_in_tab(DRAFT, &link);
        browser::store(DRAFT, &link);
    };
    // What the page opened with is not written before something has changed.
    once_rested(250, write, move |first| {
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

/// What is costly to draw follows the answer once the person pauses.
pub fn settle(session: Session) {
    let act = move || session.settled.set(session.answer.get_untracked());
    once_rested(PAUSE, act, move |first| {
        session.answer.with(|_| ());
        !first
    });
}

/// The window's title says the answer: it is what a bookmark, a tab and a shared link are called by.
pub fn title(session: Session) {
    whenever(move |_| {
        let units = session.units.get();
        session.settled.with(|answer| {
            if let Some(estimate) = &answer.estimate {
                let said = Sentence::of(estimate, units).short();
                let about = text::about(&answer.scenario);
                document().set_title(&format!("{said} – {about} – Headroom"));
            }
        });
    });
}

/// How long nobody types before what is costly is drawn, in milliseconds.
const PAUSE: i32 = 80;

/// Undo and redo by keyboard outside fields, `/` for the model, a digit for each place.
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

/// Brings the graphs of the run on the screen and of the one it is compared with. One that did not come is asked for again
/// when the run changes, and when the browser is online again.
pub fn bring_graphs(session: Session) {
    let ask = move || {
        session.scenario.with(|scenario| want(session, scenario));
        session.kept.with(|kept| {
            if let Some(kept) = kept {
                want(session, kept);
            }
        });
    };
    whenever(move |_| ask());
    let handle = window_event_listener(ev::online, move |_| untrack(ask));
    on_cleanup(move || handle.remove());
}

fn want(session: Session, scenario: &Scenario) {
    let listed = Case::of(scenario).listed_model();
    let Some(entry) = listed.filter(|entry| !entry.graph.is_empty()) else {
        return;
    };
    let set = move |state| {
        // A page that is gone needs no answer.
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
        // What reads it may be in the module's second part.
        browser::whole().await;
        let here = found.is_some_and(|text| {
            worker::bring(entry.id, &text);
            graph::insert(entry.id, &text).is_ok()
        });
        set(if here { State::Here } else { State::Failed });
    });
}
