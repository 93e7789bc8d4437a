//! The print-only part: all assumptions, the command, the date and the link.

use leptos::prelude::*;

use crate::run::sharing;
use crate::shared::browser;
use crate::shared::origin::origin;
use crate::shared::session::{Answer, Session};
use crate::text;
use headroom_base::units::UnitStyle;

/// The most lines of a script that fit on the page.
const MOST_LINES: usize = 10;

/// The content of the print-only part.
#[derive(Clone, Debug, Default, PartialEq)]
struct Page {
    peaks: String,
    not_modelled: Vec<String>,
    command: Option<String>,
    origin: String,
    address: String,
}

fn page(answer: &Answer, units: UnitStyle, address: String, origin: String) -> Page {
    let estimate = answer.estimate.as_deref();
    let peaks = estimate.iter().flat_map(|estimate| &estimate.phases);
    let peaks =
        peaks.map(|peak| format!("{} {}", text::peak_in(peak.what), peak.bytes.show(units)));
    let peaks: Vec<String> = peaks.collect();
    Page {
        peaks: peaks.join("; "),
        not_modelled: estimate.map_or_else(Vec::new, |estimate| estimate.not_modelled.clone()),
        command: sharing::script(answer, "").map(|script| end_of(&script)),
        origin,
        address,
    }
}

/// The command is at the end of a script; its preparation is in the file, and its comments repeat the page.
fn end_of(script: &str) -> String {
    let lines = script.lines().filter(|line| !line.starts_with('#'));
    let lines: Vec<&str> = lines.filter(|line| !line.trim().is_empty()).collect();
    let left_out = lines.len().saturating_sub(MOST_LINES);
    let dots = if left_out > 0 { "…\n" } else { "" };
    format!(
        "{dots}{}",
        lines.get(left_out..).unwrap_or_default().join("\n")
    )
}

/// Rendered only when the browser is about to print.
#[component]
pub fn Printed() -> impl IntoView {
    let session = Session::current();
    let shown = RwSignal::new(Page::default());
    let handle = window_event_listener_untyped("beforeprint", move |_| {
        let address = browser::address(&session.link_untracked());
        let units = session.units.get_untracked();
        let page = |answer: &Answer| page(answer, units, address, origin(&browser::today()));
        shown.set(session.answer.with_untracked(page));
    });
    on_cleanup(move || handle.remove());
    let content = move || {
        let Page {
            peaks,
            not_modelled,
            command,
            origin,
            address,
        } = shown.get();
        let item = |line: String| view! { <li>{line}</li> };
        view! {
            <p>{peaks}</p>
            <h2>{text::NOT_MODELLED}</h2>
            <ul>{not_modelled.into_iter().map(item).collect_view()}</ul>
            {command.map(|command| view! { <pre>{command}</pre> })}
            <p>
                {origin} <br/> <a href=address.clone()>{address.clone()}</a>
            </p>
        }
    };
    view! { <section class="print-only printed">{content}</section> }
}
