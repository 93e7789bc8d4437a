//! What paper has and the screen has not: the assumptions in full, the command, when it was made, and the link.

use leptos::prelude::*;

use super::origin::origin;
use super::part::Part;
use super::session::{Answer, Session};
use super::sharing;
use super::{browser, markup, text};
use crate::units::UnitStyle;

/// How much of a script goes on the one page.
const MOST_LINES: usize = 10;

/// The end of the page on paper.
pub fn html(answer: &Answer, units: UnitStyle, address: &str, origin: &str) -> String {
    let mut html = String::new();
    if let Some(estimate) = &answer.estimate {
        let peaks = estimate.phases.iter();
        let peaks = peaks.map(|it| format!("{} {}", text::peak_in(it.what), it.bytes.show(units)));
        let peaks: Vec<_> = peaks.collect();
        html.push_str(&format!("<p>{}</p>", markup::escape(&peaks.join("; "))));
        html.push_str(&format!("<h2>{}</h2><ul>", text::NOT_MODELLED));
        for it in &estimate.not_modelled {
            html.push_str(&format!("<li>{}</li>", markup::escape(it)));
        }
        html.push_str("</ul>");
    }
    if let Some(script) = sharing::script(answer, "") {
        // The comments of the script say again what stands above.
        let lines = script.lines().filter(|it| !it.starts_with('#'));
        let lines: Vec<_> = lines.filter(|it| !it.trim().is_empty()).collect();
        // What is run stands at the end; what it needs first is in the file.
        let left_out = lines.len().saturating_sub(MOST_LINES);
        let dots = if left_out > 0 { "…\n" } else { "" };
        let last = lines.get(left_out..).unwrap_or_default().join("\n");
        let shown = format!("{dots}{}", markup::escape(&last));
        html.push_str(&format!("<pre>{shown}</pre>"));
    }
    let address = markup::escape(address);
    html.push_str(&format!(
        "<p>{}<br><a href=\"{address}\">{address}</a></p>",
        markup::escape(origin)
    ));
    html
}

/// Written only when the browser is about to print.
pub fn view(session: Session) -> Part {
    let shown = RwSignal::new(String::new());
    let handle = window_event_listener_untyped("beforeprint", move |_| {
        let address = browser::address(&session.link_untracked());
        let units = session.units.get_untracked();
        let of = |it: &Answer| html(it, units, &address, &origin(&browser::today()));
        shown.set(session.answer.with_untracked(of));
    });
    on_cleanup(move || handle.remove());
    Part::new(r#"<section class="print-only printed"></section>"#).html("", move || shown.get())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::web::sample;

    #[test]
    fn paper_has_the_assumptions_the_command_and_the_link() {
        let answer = Answer {
            estimate: Some(Arc::new(sample::estimate())),
            ..Answer::default()
        };
        let link = "https://example.org/#v=1&mb=2";
        let html = html(&answer, UnitStyle::Binary, link, "Headroom <1>");
        for text in [
            text::NOT_MODELLED,
            "torchrun",
            "https://example.org/#v=1&amp;mb=2",
            "Headroom &lt;1&gt;",
        ] {
            assert!(html.contains(text), "{text}: {html}");
        }
        assert!(!html.contains("#!/"));
    }
}
