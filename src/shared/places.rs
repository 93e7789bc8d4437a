//! The four sections of the page, each one click or key press away.

use leptos::ev;
use leptos::prelude::*;

use crate::shared::browser;

/// A section of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Fits,
    Change,
    Run,
    Diagnose,
}

impl Place {
    pub const ALL: [Self; 4] = [Self::Fits, Self::Change, Self::Run, Self::Diagnose];

    const fn id(self) -> &'static str {
        match self {
            Self::Fits => "place-fits",
            Self::Change => "place-change",
            Self::Run => "place-run",
            Self::Diagnose => "place-diagnose",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Fits => "Fits?",
            Self::Change => "Change",
            Self::Run => "Run",
            Self::Diagnose => "Diagnose",
        }
    }

    /// Its description.
    const fn about(self) -> &'static str {
        match self {
            Self::Fits => "Where the memory goes, when, and how it grows.",
            Self::Change => "What makes it fit, or makes it faster.",
            Self::Run => "The files that run this, for each program.",
            Self::Diagnose => "Why your run ran out of memory.",
        }
    }

    const fn key(self) -> &'static str {
        match self {
            Self::Fits => "1",
            Self::Change => "2",
            Self::Run => "3",
            Self::Diagnose => "4",
        }
    }

    /// The section of a key.
    pub fn of_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|place| place.key() == key)
    }

    /// Scrolls to it and focuses it.
    pub fn show(self) {
        browser::show(self.id());
    }
}

/// Links to the four sections; the visible one is marked.
#[component]
pub fn PlaceLinks() -> impl IntoView {
    let current = RwSignal::new(Place::Fits);
    let look = move || {
        let reached = |place: &&Place| browser::is_above_middle(place.id());
        let now = Place::ALL.iter().rev().find(reached);
        // The last one may be too short to reach the middle.
        let last = Place::ALL.last().filter(|_| browser::is_at_end());
        // Short ones stand together: it is the one that was gone to, as long as it is in sight.
        let gone_to = |place: &&Place| browser::is_focused_in_sight(place.id());
        let gone_to = Place::ALL.iter().find(gone_to);
        let now = gone_to.or(last).or(now).copied().unwrap_or(Place::Fits);
        if current.get_untracked() != now {
            current.set(now);
        }
    };
    let handle = window_event_listener(ev::scroll, move |_| look());
    on_cleanup(move || handle.remove());
    let link = |place: Place| {
        view! {
            <button
                type="button"
                class="plain"
                data-place=place.id()
                title=format!("{} Key {}", place.about(), place.key())
                aria-current=move || (current.get() == place).then_some("true")
                on:click=move |_| {
                    place.show();
                    current.set(place);
                }
            >
                {place.title()}
            </button>
        }
    };
    view! {
        <nav class="places screen-only" aria-label="Sections">
            {Place::ALL.map(link).collect_view()}
        </nav>
    }
}

/// One section: its title and its panels.
#[component]
pub fn Section(place: Place, children: Children) -> impl IntoView {
    let title = format!("{}-title", place.id());
    let labelled = title.clone();
    view! {
        <section class="place" id=place.id() aria-labelledby=labelled tabindex="-1">
            <header class="place-head">
                <h2 id=title>{place.title()}</h2>
                <p class="quiet">{place.about()}</p>
            </header>
            {children()}
        </section>
    }
}
