//! One setting: its label, its control, and what is wrong with it.

use leptos::ev::Event;
use leptos::prelude::*;

use crate::combo::Combo;
use crate::draft::Shown;
use crate::session::Session;
use crate::signals::memo;
use crate::{browser, text};
use headroom_scenario::settings::{Setting, ValueType};

#[component]
pub fn Field(setting: &'static Setting) -> impl IntoView {
    let session = Session::current();
    let path = setting.path;
    let shown = memo(move || session.shown(setting));
    // A switch carries its label beside it.
    let label = match setting.value_type {
        ValueType::Switch => ().into_any(),
        _ => view! { <label for=path>{setting.label}</label> }.into_any(),
    };
    view! {
        <div
            class=format!("field{}", class(setting))
            data-path=path
            hidden=move || shown.with(|shown| !shown.applies)
        >
            <div class="head">{label} <Changed setting shown/></div>
            {control(setting, shown)}
            <p class="aside" id=format!("{path}.help")>
                {setting.help}
            </p>
            <p class="hint wrong" id=format!("{path}.hint")>
                {move || shown.with(|shown| shown.problem.clone())}
            </p>
        </div>
    }
}

/// Says that a setting differs from the chosen preset; a click takes that back.
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

/// Lists and names need the whole row.
fn class(setting: &Setting) -> &'static str {
    match setting.value_type {
        ValueType::Switch => " switch",
        ValueType::Words | ValueType::Sizes | ValueType::Choice(_) | ValueType::Model => " wide",
        ValueType::Gpu => " long",
        _ if setting.path == "hardware.gpus" => " short",
        _ => "",
    }
}

fn control(setting: &'static Setting, shown: Memo<Shown>) -> AnyView {
    let session = Session::current();
    let Setting { path, label, .. } = *setting;
    let value = move || shown.with(|shown| shown.text.clone());
    let invalid = move || shown.with(|shown| shown.problem.is_some()).to_string();
    let described = format!("{path}.hint {path}.help");
    let choose = move |text: &str| {
        session.enter(setting, text);
        session.leave(setting);
    };
    match setting.value_type {
        ValueType::Gpu | ValueType::Model => view! { <Combo setting/> }.into_any(),
        ValueType::Switch => view! {
            <label>
                <input
                    id=path
                    name=path
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
            let options = choices
                .iter()
                .map(|choice| view! { <option value=choice.id>{choice.label}</option> });
            view! {
                <select
                    id=path
                    name=path
                    aria-describedby=described
                    prop:value=value
                    on:change=move |event| choose(&event_target_value(&event))
                >
                    {options.collect_view()}
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
                        id=path
                        name=path
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
