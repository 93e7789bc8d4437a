//! One setting: its label, its control, and its error.

use leptos::ev::Event;
use leptos::prelude::*;

use crate::field::combo::Combo;
use crate::field::lists;
use crate::shared::browser;
use crate::shared::draft::Shown;
use crate::shared::session::Session;
use crate::shared::signals::memo;
use crate::text;
use headroom_scenario::Choice;
use headroom_scenario::settings::{Setting, ValueType};

#[component]
pub fn Field(
    setting: &'static Setting,
    /// What its ids begin with, where the page has another field of the same setting.
    #[prop(optional)]
    place: &'static str,
    /// Whether it says what set its value.
    #[prop(optional)]
    sourced: bool,
) -> impl IntoView {
    let session = Session::current();
    let path = format!("{place}{}", setting.path);
    let shown = memo(move || session.shown(setting));
    // A switch has its label next to it.
    let label = match setting.value_type {
        ValueType::Switch => ().into_any(),
        _ => view! { <label for=path.clone()>{setting.label}</label> }.into_any(),
    };
    let source = sourced.then(|| {
        view! {
            <p class="hint source">
                {move || shown.with(|shown| shown.source.clone())}
            </p>
        }
    });
    view! {
        <div
            class=format!("field{}", class(setting))
            data-path=path.clone()
            hidden=move || shown.with(|shown| !shown.applies)
        >
            <div class="head">{label} <Changed setting shown/></div>
            {control(setting, place, shown)}
            <p class="aside" id=format!("{path}.help")>
                {setting.help}
            </p>
            {source}
            <p class="hint wrong" id=format!("{path}.hint")>
                {move || shown.with(|shown| shown.problem.clone())}
            </p>
        </div>
    }
}

/// Shows that a setting differs from the chosen preset; a click reverts it.
#[component]
fn Changed(setting: &'static Setting, shown: Memo<Shown>) -> impl IntoView {
    let session = Session::current();
    let reset = move |_| {
        if let Some(before) = shown.with_untracked(|shown| shown.preset.clone()) {
            session.enter(setting, &before);
            session.leave(setting);
            browser::focus(&format!("[id='{}']", setting.path));
        }
    };
    let before = move || shown.with(|shown| shown.preset.clone().unwrap_or_default());
    let name = move || text::reset_setting(setting.label, &before());
    view! {
        <button
            type="button"
            class="changed"
            hidden=move || shown.with(|shown| shown.preset.is_none())
            title=name
            aria-label=name
            on:click=reset
        >
            <span class="word">{text::CHANGED_SETTING}</span>
            " ↺"
        </button>
    }
}

/// Lists and names need a full row.
fn class(setting: &Setting) -> &'static str {
    match setting.value_type {
        ValueType::Switch => " switch",
        ValueType::Words | ValueType::Sizes | ValueType::Choice(_) | ValueType::Model => " wide",
        ValueType::Gpu => " long",
        _ if setting.path == "hardware.gpus" => " short",
        _ if setting.path == "training.accumulation" => " wide",
        _ => "",
    }
}

fn control(setting: &'static Setting, place: &'static str, shown: Memo<Shown>) -> AnyView {
    let session = Session::current();
    let label = setting.label;
    let path = format!("{place}{}", setting.path);
    let value = move || shown.with(|shown| shown.text.clone());
    let invalid = move || shown.with(|shown| shown.problem.is_some()).to_string();
    let described = format!("{path}.hint {path}.help");
    let choose = move |text: &str| {
        session.enter(setting, text);
        session.leave(setting);
    };
    match setting.value_type {
        ValueType::Gpu | ValueType::Model => view! { <Combo setting place/> }.into_any(),
        ValueType::Switch => view! {
            <label>
                <input
                    id=path.clone()
                    name=path.clone()
                    type="checkbox"
                    aria-describedby=described
                    aria-invalid=invalid
                    prop:checked=move || shown.with(|shown| shown.text == "on")
                    on:change=move |event| {
                        choose(if event_target_checked(&event) { "on" } else { "off" });
                    }
                />
                {label}
            </label>
        }
        .into_any(),
        ValueType::Choice(choices) => {
            let option =
                |choice: &'static Choice| view! { <option value=choice.id>{choice.label}</option> };
            let options = if setting.path == "training.optimizer" {
                let usual = |choice: &&Choice| {
                    if lists::is_usual_optimizer(choice.id) {
                        text::USUAL
                    } else {
                        text::OTHERS
                    }
                };
                let group = |(name, all): (&'static str, Vec<&'static Choice>)| {
                    view! {
                        <optgroup label=name>
                            {all.into_iter().map(option).collect_view()}
                        </optgroup>
                    }
                };
                let groups = lists::grouped(choices, usual);
                groups.into_iter().map(group).collect_view().into_any()
            } else {
                choices.iter().map(option).collect_view().into_any()
            };
            view! {
                <select
                    id=path.clone()
                    name=path.clone()
                    aria-describedby=described
                    prop:value=value
                    on:change=move |event| choose(&event_target_value(&event))
                >
                    {options}
                </select>
            }
            .into_any()
        }
        kind => {
            let mode = match kind {
                ValueType::Whole { .. } | ValueType::Number { .. } => "decimal",
                _ => "text",
            };
            view! {
                <div class="boxed">
                    <input
                        id=path.clone()
                        name=path.clone()
                        type="text"
                        autocomplete="off"
                        spellcheck="false"
                        inputmode=mode
                        aria-describedby=described
                        aria-invalid=invalid
                        prop:value=value
                        on:input=move |event: Event| {
                            session.enter(setting, &event_target_value(&event));
                        }
                        on:change=move |_| session.leave(setting)
                    />
                    <span class="unit" aria-hidden="true">
                        {setting.unit}
                    </span>
                </div>
            }
            .into_any()
        }
    }
}
