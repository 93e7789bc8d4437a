//! The top of the page: its name, and actions on the whole scenario.

use leptos::prelude::*;

use crate::run::sharing::Share;
use crate::shared::browser;
use crate::shared::menu::Menu;
use crate::shared::session::Session;
use crate::text;
use headroom_base::units::UnitStyle;

#[component]
pub fn Masthead() -> impl IntoView {
    let session = Session::current();
    view! {
        <header class="masthead">
            <div class="brand">
                <h1>
                    <svg class="mark" viewBox="0 0 18 18" aria-hidden="true">
                        <path d="M0 0h18v2.5H0zM2 6.5h14V9H2zM2 10.5h14V18H2z"></path>
                    </svg>
                    "Headroom"
                </h1>
                <p class="quiet">{text::TAGLINE}</p>
            </div>
            <div class="tools" role="group" aria-label="This scenario">
                <button
                    type="button"
                    class="plain"
                    data-do="undo"
                    disabled=move || !session.can_undo()
                    on:click=move |_| {
                        session.undo();
                        browser::catch_focus("[data-do=redo]");
                    }
                >
                    "Undo"
                </button>
                <button
                    type="button"
                    class="plain"
                    data-do="redo"
                    disabled=move || !session.can_redo()
                    on:click=move |_| {
                        session.redo();
                        browser::catch_focus("[data-do=undo]");
                    }
                >
                    "Redo"
                </button>
                <Share/>
                <Menu title=text::MENU testid="menu">
                    <button
                        type="button"
                        class="plain"
                        data-do="reset"
                        title=text::RESET_ABOUT
                        disabled=move || session.is_preset()
                        on:click=move |_| {
                            session.reset();
                            browser::catch_focus("[data-testid=menu] summary");
                        }
                    >
                        {text::RESET}
                    </button>
                    <UnitSwitch/>
                    <ThemeChoice/>
                    <button type="button" class="plain wide-only" data-do="print" on:click=|_| browser::print()>
                        {text::PRINT}
                    </button>
                </Menu>
            </div>
        </header>
    }
}

/// Binary or decimal units, everywhere on the page.
#[component]
fn UnitSwitch() -> impl IntoView {
    let session = Session::current();
    let name = move || match session.units.get() {
        UnitStyle::Binary => text::UNITS_BINARY,
        UnitStyle::Decimal => text::UNITS_DECIMAL,
    };
    let switch = move |_| {
        session.units.update(|units| {
            *units = match units {
                UnitStyle::Binary => UnitStyle::Decimal,
                UnitStyle::Decimal => UnitStyle::Binary,
            };
        });
    };
    view! {
        <button type="button" class="plain" data-testid="units" on:click=switch>
            {name}
        </button>
    }
}

const THEMES: [(&str, &str); 3] = [
    ("system", "Theme: system"),
    ("light", "Theme: light"),
    ("dark", "Theme: dark"),
];

/// The theme's storage key; `boot.js` reads it before anything is drawn.
const THEME: &str = "headroom.theme";

#[component]
fn ThemeChoice() -> impl IntoView {
    let stored = browser::stored(THEME).unwrap_or_default();
    let choose = |event| {
        let theme = event_target_value(&event);
        browser::set_theme(&theme);
        // Without storage the choice lasts as long as the page.
        browser::store(THEME, &theme);
    };
    let options = THEMES.map(|(id, label)| {
        view! { <option value=id selected=id == stored>{label}</option> }
    });
    view! { <select class="plain" aria-label="Theme" on:change=choose>{options}</select> }
}
