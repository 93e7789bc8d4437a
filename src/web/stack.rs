//! The defaults that the named software brings, which of them hold.

use leptos::prelude::*;

use super::session::Session;
use super::signals::memo;
use super::table::{Folded, Table};
use super::text;
use crate::scenario::{Scenario, stack};

fn rows(scenario: &Scenario) -> Vec<Vec<String>> {
    stack::brought(scenario)
        .iter()
        .map(|default| {
            let (major, minor) = default.version;
            let holds = if default.holds {
                text::HOLDS
            } else {
                text::CHANGED
            };
            vec![
                default.setting.label.into(),
                default.value.into(),
                holds.into(),
                format!("{} {major}.{minor}", default.stack.name),
                default.fact.note.into(),
                default.fact.sources().collect::<Vec<_>>().join(", "),
            ]
        })
        .collect()
}

/// Folded, and absent where the loop is one's own.
#[component]
pub fn Brought() -> impl IntoView {
    let session = Session::current();
    let rows = memo(move || session.scenario.with(rows));
    let table = move || {
        let head = vec!["Setting", "By default", "Here", "From", "Note", "Read in"];
        view! { <Table class="plain-table" head numbers=0 rows=rows.get()/> }
    };
    view! {
        <section
            class="panel"
            aria-label=text::BROUGHT
            data-testid="brought"
            hidden=move || rows.with(Vec::is_empty)
        >
            <Folded title=text::BROUGHT class="more">
                <div class="scroller" tabindex="0" role="region" aria-label=text::BROUGHT>
                    {table}
                </div>
            </Folded>
        </section>
    }
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
