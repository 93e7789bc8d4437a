//! The questions, derived from the table of settings: what matters most in sight, the rest folded by section.

mod field;

use leptos::ev::{Event, SubmitEvent};
use leptos::prelude::*;

use super::plans::SavedPlans;
use super::session::Session;
use super::signals::memo;
use super::{Later, browser, text};
use field::Field;
use headroom_scenario::Scenario;
use headroom_scenario::presets::{self, Preset};
use headroom_scenario::settings::{self, SECTIONS, Setting};

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
        .filter(move |setting| setting.section() == section && !front(setting.path))
}

/// The form. What the focused field means is said in one quiet place beneath it.
#[component]
pub fn Questions() -> impl IntoView {
    let focused = RwSignal::new(None::<&'static Setting>);
    let explain = move |event: Event| {
        let setting = settings::find(&browser::attribute_under(&event, "name"));
        if setting.is_some() {
            focused.set(setting);
        }
    };
    let group = |(title, paths): &'static (&str, &[&str])| {
        let fields = paths
            .iter()
            .filter_map(|path| settings::find(path))
            .map(|setting| view! { <Field setting/> });
        view! {
            <fieldset>
                <legend>{*title}</legend>
                <div class="fields">{fields.collect_view()}</div>
                {(*title == "Model").then(|| view! { <Declare/> })}
            </fieldset>
        }
    };
    let sections = SECTIONS
        .iter()
        .filter(|(id, _)| folded(id).next().is_some())
        .map(|(id, title)| view! { <Later><Section id title/></Later> })
        .collect_view();
    let explained = move || {
        focused.get().map(|setting| {
            view! {
                <p>
                    <strong>{setting.label}</strong>
                    " "
                    {setting.help}
                </p>
                <p class="quiet">{setting.memory}</p>
            }
        })
    };
    view! {
        <form
            class="questions"
            aria-label="The training run"
            on:submit=|event: SubmitEvent| event.prevent_default()
            on:focusin=move |event| explain(event.into())
        >
            <StartFrom/>
            <SavedPlans/>
            {FRONT.iter().map(group).collect_view()}
            <div class="rooms">{sections}</div>
            <div class="explainer" aria-hidden="true">
                {explained}
            </div>
        </form>
    }
}

/// The way to a network that is not in the catalogue.
#[component]
fn Declare() -> impl IntoView {
    view! {
        <button type="button" class="plain declare" on:click=|_| browser::unfold("network")>
            {text::DECLARE}
        </button>
    }
}

/// A folded section, which says how many of its settings differ from the preset.
#[component]
fn Section(id: &'static str, title: &'static str) -> impl IntoView {
    let session = Session::current();
    let changed = memo(move || {
        let differs = |setting: &&'static Setting| session.shown(setting).preset.is_some();
        folded(id).filter(differs).count()
    });
    view! {
        <details>
            <summary>
                {text::more(title)}
                <span class="count">{move || text::changed(changed.get())}</span>
            </summary>
            <div class="fields">
                {folded(id).map(|setting| view! { <Field setting/> }).collect_view()}
            </div>
        </details>
    }
}

/// Scenarios to start from; choosing one can be undone.
#[component]
fn StartFrom() -> impl IntoView {
    let session = Session::current();
    let scenarios: Vec<_> = presets::all().iter().map(Preset::scenario).collect();
    let chosen = memo(move || {
        let same = |now: &Scenario| scenarios.iter().position(|preset| preset == now);
        let preset = presets::all().get(session.scenario.with(same)?)?;
        Some((preset.id, preset.about))
    });
    let start = move |event: Event| {
        if let Some(preset) = presets::find(&event_target_value(&event)) {
            session.start_from(preset.scenario());
        }
    };
    let option =
        |preset: &'static Preset| view! { <option value=preset.id>{preset.title}</option> };
    let options = presets::all().iter().map(option).collect_view();
    view! {
        <div class="field presets">
            <label for="preset">"Start from"</label>
            <select
                id="preset"
                data-testid="presets"
                prop:value=move || chosen.get().map_or("", |(id, _)| id)
                on:change=start
            >
                <option value="" disabled=true>"Your own scenario"</option>
                {options}
            </select>
            <p class="hint">{move || chosen.get().map(|(_, about)| about)}</p>
        </div>
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
