//! The defaults of the scenario's software, and which of them apply.

use leptos::prelude::*;

use crate::shared::session::Session;
use crate::shared::signals::memo;
use crate::shared::table::{Folded, Table};
use crate::text;
use headroom_io::export;
use headroom_scenario::settings::{SettingId, Value};
use headroom_scenario::{Scenario, resolve};

fn rows(scenario: &Scenario) -> Vec<Vec<String>> {
    let row = |setting: SettingId, value: &Value, in_effect: bool| {
        let mut by_default = scenario.clone();
        setting.write(&mut by_default, value.clone());
        let state = if in_effect {
            text::DEFAULT
        } else {
            text::CHANGED
        };
        [
            setting.label.into(),
            export::shown(setting, &by_default),
            state.into(),
        ]
    };
    let of_method = resolve::method_default(scenario).map(|default| {
        let from = [text::OF_THE_METHOD, default.why, default.source].map(String::from);
        let row = row(default.setting, &default.value, default.in_effect);
        row.into_iter().chain(from).collect()
    });
    let of_software = resolve::stack_defaults(scenario)
        .into_iter()
        .map(|default| {
            let from = [
                default.library.to_string(),
                default.fact.note.into(),
                default.fact.sources().collect::<Vec<_>>().join(", "),
            ];
            let row = row(default.setting, &default.value, default.in_effect);
            row.into_iter().chain(from).collect()
        });
    of_method.into_iter().chain(of_software).collect()
}

/// Folded, and absent for a plain PyTorch loop.
#[component]
pub fn StackDefaults() -> impl IntoView {
    let session = Session::current();
    let rows = memo(move || session.scenario.with(rows));
    let table = move || {
        let head = vec!["Setting", "By default", "Here", "From", "Note", "Source"];
        view! { <Table class="plain-table" head numbers=0 rows=rows.get()/> }
    };
    view! {
        <section
            class="panel"
            aria-label=text::STACK_DEFAULTS
            data-testid="stack-defaults"
            hidden=move || rows.with(Vec::is_empty)
        >
            <Folded title=text::STACK_DEFAULTS class="more">
                <div class="scroller" tabindex="0" role="region" aria-label=text::STACK_DEFAULTS>
                    {table}
                </div>
            </Folded>
        </section>
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_scenario::Trainer;

    #[test]
    fn defaults_of_software_are_listed_with_their_sources() {
        let mut scenario = Scenario::default();
        assert_eq!(rows(&scenario), Vec::<Vec<String>>::new());
        scenario.stack.trainer = Trainer::Trl;
        let rows = rows(&scenario);
        assert!(!rows.is_empty());
        assert!(
            rows.iter()
                .all(|row| row.iter().take(4).all(|cell| !cell.is_empty())),
            "{rows:?}"
        );
    }
}
