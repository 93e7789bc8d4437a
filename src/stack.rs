//! The defaults that the named software brings, which of them hold.

use leptos::prelude::*;

use super::session::Session;
use super::signals::memo;
use super::table::{Folded, Table};
use super::text;
use headroom_io::export;
use headroom_scenario::settings::Setting;
use headroom_scenario::{Scenario, stack, usual};

fn rows(scenario: &Scenario) -> Vec<Vec<String>> {
    let state = |holds: bool| if holds { text::HOLDS } else { text::CHANGED };
    let shown = |setting: &Setting, value: &str| {
        let mut there = scenario.clone();
        // A test holds every default to be one that its setting reads.
        let _ = setting.set(&mut there, value);
        export::shown(setting, &there)
    };
    let of_method = usual(scenario).map(|default| {
        vec![
            default.setting.label.into(),
            shown(default.setting, default.value),
            state(default.holds).into(),
            text::OF_THE_METHOD.into(),
            default.why.into(),
            default.source.into(),
        ]
    });
    let brought = stack::brought(scenario);
    let of_software = brought.iter().map(|default| {
        let (major, minor) = default.version;
        vec![
            default.setting.label.into(),
            shown(default.setting, default.value),
            state(default.holds).into(),
            format!("{} {major}.{minor}", default.stack.name),
            default.fact.note.into(),
            default.fact.sources().collect::<Vec<_>>().join(", "),
        ]
    });
    of_method.into_iter().chain(of_software).collect()
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
    use headroom_scenario::Trainer;

    #[test]
    fn what_software_brings_is_named_with_its_source() {
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

    #[test]
    fn what_the_method_brings_is_named_too() {
        let scenario = headroom_scenario::share::read("model=llama-3.1-8b&lora=on").scenario;
        let rows = rows(&scenario);
        let first: Vec<_> = rows[0].iter().take(3).map(String::as_str).collect();
        let bf16 = "bf16 autocast over bf16 weights";
        assert_eq!(first, ["Precision", bf16, text::CHANGED]);
    }
}
