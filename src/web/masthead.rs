//! The top of the page: its name, and what acts on the whole scenario.

use leptos::prelude::*;

use super::part::Part;
use super::session::Session;
use super::{browser, open, sharing, text};
use crate::units::UnitStyle;

pub fn view(session: Session) -> Part {
    let undo = r#"[data-do="undo"]"#;
    let redo = r#"[data-do="redo"]"#;
    let html = format!(
        r#"<header class="masthead">
            <div class="brand">
                <h1>
                    <svg class="mark" viewBox="0 0 18 18" aria-hidden="true">
                        <path d="M0 0h18v2.5H0zM2 6.5h14V9H2zM2 10.5h14V18H2z"/>
                    </svg>Headroom</h1>
                <p class="quiet">{}</p>
            </div>
            <div class="tools" role="group" aria-label="This scenario">
                <button type="button" class="plain" data-do="undo">Undo</button>
                <button type="button" class="plain" data-do="redo">Redo</button>
                <button type="button" class="plain" data-do="reset">Reset</button>
                <span class="divider" aria-hidden="true"></span>
                <button type="button" class="plain" data-testid="units" title="Units"></button>
                <select class="plain" aria-label="Theme">{}</select>
                <span class="divider" aria-hidden="true"></span>
                <slot name="open"></slot>
                <button type="button" class="plain" data-do="print">Print</button>
                <slot name="share"></slot>
            </div>
        </header>"#,
        text::TAGLINE,
        themes()
    );
    let unit = move || match session.units.get() {
        UnitStyle::Binary => "GiB".into(),
        UnitStyle::Decimal => "GB".into(),
    };
    let switch = move |_| {
        session.units.update(|it| {
            *it = match it {
                UnitStyle::Binary => UnitStyle::Decimal,
                UnitStyle::Decimal => UnitStyle::Binary,
            };
        });
    };
    Part::new(&html)
        .flag(undo, "disabled", move || !session.can_undo())
        .on(undo, "click", move |_| session.undo())
        .flag(redo, "disabled", move || !session.can_redo())
        .on(redo, "click", move |_| session.redo())
        .on(r#"[data-do="reset"]"#, "click", move |_| session.reset())
        .on(r#"[data-do="print"]"#, "click", |_| browser::print())
        .text(r#"[data-testid="units"]"#, unit)
        .on(r#"[data-testid="units"]"#, "click", switch)
        .on("select", "change", |event| {
            choose_theme(&browser::value_under(&event));
        })
        .put("open", open::view(session))
        .put("share", sharing::view(session))
}

const THEMES: [(&str, &str); 3] = [
    ("system", "System theme"),
    ("light", "Light"),
    ("dark", "Dark"),
];

/// The page's key in the browser's storage; `boot.js` reads it before anything is drawn.
const THEME: &str = "headroom.theme";

fn themes() -> String {
    let kept = browser::stored(THEME).unwrap_or_default();
    let option = |(id, label): (&str, &str)| {
        let chosen = if kept == id { " selected" } else { "" };
        format!("<option value=\"{id}\"{chosen}>{label}</option>")
    };
    THEMES.into_iter().map(option).collect()
}

fn choose_theme(theme: &str) {
    browser::set_theme(theme);
    // Where storage is refused the choice lasts as long as the page.
    browser::store(THEME, theme);
}
