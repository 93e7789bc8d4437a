//! The top of the page: its name, and what acts on the whole scenario.

use leptos::prelude::*;

use super::session::Session;
use super::{browser, text};
use crate::units::UnitStyle;

#[component]
pub fn Masthead(session: Session) -> impl IntoView {
    view! {
        <header class="masthead">
            <div class="brand">
                <h1>
                    <svg class="mark" viewBox="0 0 18 18" aria-hidden="true">
                        <path d="M0 0h18v2.5H0zM2 6.5h14V9H2zM2 10.5h14V18H2z"/>
                    </svg>
                    "Headroom"
                </h1>
                <p class="quiet">{text::TAGLINE}</p>
            </div>
            <div class="tools" role="group" aria-label="This scenario">
                <button type="button" class="plain" disabled=move || !session.can_undo() on:click=move |_| session.undo()>"Undo"</button>
                <button type="button" class="plain" disabled=move || !session.can_redo() on:click=move |_| session.redo()>"Redo"</button>
                <button type="button" class="plain" on:click=move |_| session.reset()>"Reset"</button>
                <span class="divider" aria-hidden="true"></span>
                <Units session/>
                <Theme/>
                <span class="divider" aria-hidden="true"></span>
                <super::open::Open session/>
                <button type="button" class="plain" on:click=move |_| browser::print()>"Print"</button>
                <super::sharing::Share session/>
            </div>
        </header>
    }
}

/// Binary or decimal units.
#[component]
fn Units(session: Session) -> impl IntoView {
    let decimal = move || session.units.get() == UnitStyle::Decimal;
    let switch = move |_| {
        session.units.update(|it| {
            *it = match it {
                UnitStyle::Binary => UnitStyle::Decimal,
                UnitStyle::Decimal => UnitStyle::Binary,
            };
        });
    };
    view! {
        <button type="button" class="plain" data-testid="units" title="Units" on:click=switch>
            {move || if decimal() { "GB" } else { "GiB" }}
        </button>
    }
}

const THEMES: [(&str, &str); 3] = [
    ("system", "System theme"),
    ("light", "Light"),
    ("dark", "Dark"),
];

/// The page's key in the browser's storage; `boot.js` reads it before anything is drawn.
const THEME: &str = "headroom.theme";

#[component]
fn Theme() -> impl IntoView {
    let chosen = RwSignal::new(browser::stored(THEME).unwrap_or_default());
    let choose = move |event| {
        let theme = event_target_value(&event);
        browser::set_theme(&theme);
        // Where storage is refused the choice lasts as long as the page.
        browser::store(THEME, &theme);
        chosen.set(theme);
    };
    let options: Vec<_> = THEMES
        .into_iter()
        .map(|(id, label)| view! { <option value=id selected=move || chosen.get() == id>{label}</option> })
        .collect();
    view! { <select class="plain" aria-label="Theme" on:change=choose>{options}</select> }
}
