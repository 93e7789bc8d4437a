//! The questions, derived from the table of settings: what matters most in sight, the rest folded by room.

use leptos::prelude::*;

use super::combo::Combo;
use super::session::Session;
use super::text;
use crate::scenario::settings::{self, Kind, SECTIONS, Setting};
use crate::scenario::{Choice, Scenario, presets};

/// Settings in sight, by group; all others are folded under their section's title.
const FRONT: &[(&str, &[&str])] = &[
    ("Hardware", &["hardware.gpu", "hardware.gpus"]),
    ("Model", &["model.id"]),
    ("Data", &["data.micro_batch", "data.sequence"]),
    (
        "Training",
        &[
            "training.precision",
            "training.optimizer",
            "training.attention",
            "training.checkpointing",
            "training.accumulation",
            "training.lora",
            "training.lora.rank",
        ],
    ),
];

/// The settings of a section that are not in sight.
fn folded(section: &str) -> impl Iterator<Item = &'static Setting> {
    let front = |path| FRONT.iter().any(|(_, paths)| paths.contains(&path));
    settings::all()
        .iter()
        .filter(move |it| it.section() == section && !front(it.path))
}

/// The form. What the focused field means is said in one quiet place beneath it.
#[component]
pub fn Questions(session: Session) -> impl IntoView {
    let asked = RwSignal::new(None::<&'static Setting>);
    let groups: Vec<_> = FRONT
        .iter()
        .map(|(title, paths)| {
            let fields: Vec<_> = paths
                .iter()
                .filter_map(|path| settings::find(path))
                .map(|setting| view! { <Field session setting asked/> })
                .collect();
            view! {
                <fieldset>
                    <legend>{*title}</legend>
                    <div class="fields">{fields}</div>
                </fieldset>
            }
        })
        .collect();
    let rooms: Vec<_> = SECTIONS
        .iter()
        .filter(|(id, _)| folded(id).next().is_some())
        .map(|(id, title)| view! { <Room session id=*id title=*title asked/> })
        .collect();
    view! {
        <form class="questions" aria-label="The training run" on:submit=move |event| event.prevent_default()>
            <Presets session/>
            <super::plans::Saved session/>
            {groups}
            <div class="rooms">{rooms}</div>
            <div class="explainer" aria-hidden="true">
                {move || asked.get().map(|setting| view! {
                    <p><strong>{setting.label}</strong>" "{setting.help}</p>
                    <p class="quiet">{setting.memory}</p>
                })}
            </div>
        </form>
    }
}

/// Scenarios to start from; choosing one can be undone.
#[component]
fn Presets(session: Session) -> impl IntoView {
    let options: Vec<_> = presets::all()
        .iter()
        .map(|it| view! { <option value=it.id>{it.title}</option> })
        .collect();
    let at = Memo::new(move |_| {
        let same = |now: &Scenario| presets::all().iter().find(|it| it.scenario() == *now);
        session.scenario.with(same).map(|it| (it.id, it.about))
    });
    let start = move |event| {
        if let Some(preset) = presets::find(&event_target_value(&event)) {
            session.replace(preset.scenario());
        }
    };
    view! {
        <div class="field presets">
            <label for="preset">"Start from"</label>
            <select
                id="preset" data-testid="presets" on:change=start
                prop:value=move || at.get().map_or("", |(id, _)| id)
            >
                <option value="" disabled>"Your own scenario"</option>
                {options}
            </select>
            <p class="hint">{move || at.get().map(|(_, about)| about)}</p>
        </div>
    }
}

/// A folded group, which says how many of its settings differ from the defaults.
#[component]
fn Room(
    session: Session,
    id: &'static str,
    title: &'static str,
    asked: RwSignal<Option<&'static Setting>>,
) -> impl IntoView {
    let fields: Vec<_> = folded(id)
        .map(|setting| view! { <Field session setting asked/> })
        .collect();
    let changed = move || {
        session
            .scenario
            .with(|it| text::changed(folded(id).filter(|setting| is_changed(setting, it)).count()))
    };
    view! {
        <details>
            <summary>{text::more(title)}<span class="count">{changed}</span></summary>
            <div class="fields">{fields}</div>
        </details>
    }
}

/// One setting: its label, its control, and what is wrong with it.
#[component]
fn Field(
    session: Session,
    setting: &'static Setting,
    asked: RwSignal<Option<&'static Setting>>,
) -> impl IntoView {
    let applies = Memo::new(move |_| session.scenario.with(|it| setting.applies(it)));
    let changed = Memo::new(move |_| session.scenario.with(|it| is_changed(setting, it)));
    let control = match setting.kind {
        Kind::Switch => view! { <Switch session setting/> }.into_any(),
        Kind::Choice(choices) => view! { <Select session setting choices/> }.into_any(),
        Kind::Gpu | Kind::Model => view! { <Combo session setting/> }.into_any(),
        _ => view! { <Input session setting/> }.into_any(),
    };
    let label = view! {
        <label for=setting.path>
            {setting.label}
            {move || changed.get().then(|| view! { <span class="changed">"changed"</span> })}
        </label>
    };
    let switch = setting.kind == Kind::Switch;
    // A switch carries its label beside it.
    let label = (!switch).then_some(label);
    view! {
        <div
            class="field" class:switch=switch class:wide=is_wide(setting)
            class:long=setting.kind == Kind::Gpu class:short=setting.path == "hardware.gpus" hidden=move || !applies.get()
            on:focusin=move |_| asked.set(Some(setting))
        >
            {label}
            {control}
            <p class="aside" id=format!("{}.help", setting.path)>{setting.help}</p>
            <p class="hint wrong" id=format!("{}.hint", setting.path)>{move || session.problem(setting)}</p>
        </div>
    }
}

fn is_changed(setting: &Setting, scenario: &Scenario) -> bool {
    setting.get(scenario) != setting.default()
}

/// Lists and names need the whole row.
fn is_wide(setting: &Setting) -> bool {
    matches!(
        setting.kind,
        Kind::Words | Kind::Sizes | Kind::Model | Kind::Choice(_)
    )
}

fn described_by(setting: &Setting) -> String {
    format!("{0}.hint {0}.help", setting.path)
}

#[component]
fn Input(session: Session, setting: &'static Setting) -> impl IntoView {
    let numeric = matches!(setting.kind, Kind::Whole { .. } | Kind::Number { .. });
    view! {
        <div class="boxed">
            <input
                id=setting.path name=setting.path type="text" autocomplete="off" spellcheck="false"
                inputmode=if numeric { "decimal" } else { "text" }
                aria-describedby=described_by(setting)
                aria-invalid=move || session.problem(setting).is_some().to_string()
                prop:value=move || session.text(setting)
                on:input=move |event| session.enter(setting, &event_target_value(&event))
                on:change=move |_| session.leave(setting)
            />
            <span class="unit" aria-hidden="true">{setting.unit}</span>
        </div>
    }
}

#[component]
fn Select(
    session: Session,
    setting: &'static Setting,
    choices: &'static [Choice],
) -> impl IntoView {
    let options: Vec<_> = choices
        .iter()
        .map(|choice| {
            let selected = move || session.text(setting) == choice.id;
            view! { <option value=choice.id selected=selected>{choice.label}</option> }
        })
        .collect();
    let choose = move |event| {
        session.enter(setting, &event_target_value(&event));
        session.leave(setting);
    };
    view! {
        <select
            id=setting.path name=setting.path aria-describedby=described_by(setting)
            prop:value=move || session.text(setting) on:change=choose
        >{options}</select>
    }
}

#[component]
fn Switch(session: Session, setting: &'static Setting) -> impl IntoView {
    let turn = move |event| {
        session.enter(
            setting,
            if event_target_checked(&event) {
                "on"
            } else {
                "off"
            },
        );
        session.leave(setting);
    };
    view! {
        <label>
            <input
                id=setting.path name=setting.path type="checkbox" aria-describedby=described_by(setting)
                prop:checked=move || session.text(setting) == "on" on:change=turn
            />
            {setting.label}
        </label>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_in_the_form_once() {
        for (_, paths) in FRONT {
            for path in *paths {
                assert!(settings::find(path).is_some(), "{path}");
            }
        }
        let front = FRONT.iter().map(|(_, paths)| paths.len()).sum::<usize>();
        let rest = SECTIONS
            .iter()
            .map(|(id, _)| folded(id).count())
            .sum::<usize>();
        assert_eq!(front + rest, settings::all().len());
    }
}
