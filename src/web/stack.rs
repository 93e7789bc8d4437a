//! The defaults that the named software brings, which of them hold.

use leptos::prelude::*;

use super::part::Part;
use super::session::Session;
use super::signals::memo;
use super::{markup, text};
use crate::scenario::{Scenario, stack};

fn rows(scenario: &Scenario) -> Vec<Vec<String>> {
    stack::brought(scenario)
        .iter()
        .map(|it| {
            let (major, minor) = it.version;
            let holds = if it.holds { text::HOLDS } else { text::CHANGED };
            vec![
                it.setting.label.into(),
                it.value.into(),
                holds.into(),
                format!("{} {major}.{minor}", it.stack.name),
                it.fact.note.into(),
                it.fact.sources().collect::<Vec<_>>().join(", "),
            ]
        })
        .collect()
}

/// Folded, and absent where the loop is one's own.
pub fn view(session: Session) -> Part {
    let rows = memo(move || session.scenario.with(rows));
    let none = move || rows.with(Vec::is_empty);
    let head = ["Setting", "By default", "Here", "From", "Note", "Read in"];
    let title = text::BROUGHT;
    Part::new(&format!(
        r#"<section class="panel" aria-label="{title}" data-testid="brought">
            <details class="more">
                <summary>{title}</summary>
                <div class="scroller" tabindex="0" role="region" aria-label="{title}"></div>
            </details>
        </section>"#
    ))
    .flag("", "hidden", none)
    .html(".scroller", move || {
        rows.with(|it| markup::table("plain-table", &head, 0, it))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Trainer;

    #[test]
    fn what_software_brings_is_named_with_its_source() {
        let mut scenario = Scenario::default();
        assert_eq!(rows(&scenario), Vec::<Vec<String>>::new());
        scenario.stack.trainer = Trainer::Trl;
        let rows = rows(&scenario);
        assert!(!rows.is_empty());
        assert!(
            rows.iter()
                .all(|row| row.iter().take(4).all(|it| !it.is_empty())),
            "{rows:?}"
        );
    }
}
