//! The questions, derived from the table of settings: what matters most in sight, the rest folded by room.

mod html;

use leptos::prelude::*;
use web_sys::Event;

use super::draft::Shown;
use super::markup::escape;
use super::part::Part;
use super::session::Session;
use super::signals::{memo, whenever};
use super::{browser, combo, plans, text};
use crate::scenario::Scenario;
use crate::scenario::presets::{self, Preset};
use crate::scenario::settings::{self, SECTIONS, Setting, ValueType};

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

fn is_searched(setting: &Setting) -> bool {
    matches!(setting.value_type, ValueType::Gpu | ValueType::Model)
}

/// The form. What the focused field means is said in one quiet place beneath it.
pub fn view(session: Session) -> Part {
    let asked = RwSignal::new(None::<&'static Setting>);
    let field = |setting: &&Setting| {
        if is_searched(setting) {
            html::searched(setting)
        } else {
            html::field(setting)
        }
    };
    let group = |(title, paths): &(&str, &[&str])| {
        let all: Vec<_> = paths.iter().filter_map(|it| settings::find(it)).collect();
        let fields: String = all.iter().map(field).collect();
        format!("<fieldset><legend>{title}</legend><div class=\"fields\">{fields}</div></fieldset>")
    };
    let groups: String = FRONT.iter().map(group).collect();
    let rooms: String = SECTIONS
        .iter()
        .filter(|(id, _)| folded(id).next().is_some())
        .map(|(id, title)| html::room(id, title, folded(id)))
        .collect();
    let on = move |event: &Event| settings::find(&browser::attribute_under(event, "name"));
    // A list that searches listens for itself.
    let written = move |event: &Event| on(event).filter(|it| !is_searched(it));
    let typed = move |event: Event| {
        let setting = written(&event).filter(|it| !is_chosen(it));
        if let Some(setting) = setting {
            session.enter(setting, &browser::value_under(&event));
        }
    };
    let left = move |event: Event| {
        if let Some(setting) = written(&event) {
            if is_chosen(setting) {
                session.enter(setting, &browser::value_under(&event));
            }
            session.leave(setting);
        }
    };
    let ask = move |event: Event| {
        if let Some(setting) = on(&event) {
            asked.set(Some(setting));
        }
    };
    let explained = move || {
        let explain = |it: &Setting| {
            let [label, help, memory] = [it.label, it.help, it.memory].map(escape);
            format!("<p><strong>{label}</strong> {help}</p><p class=\"quiet\">{memory}</p>")
        };
        asked.get().map(explain).unwrap_or_default()
    };
    let searched = settings::all().iter().filter(|it| is_searched(it));
    let form = Part::new(&format!(
        r#"<form class="questions" aria-label="The training run">
            <slot name="presets"></slot>
            <slot name="plans"></slot>
            {groups}
            <div class="rooms">{rooms}</div>
            <div class="explainer" aria-hidden="true"></div>
        </form>"#
    ))
    .on("", "submit", |event| event.prevent_default())
    .on("", "input", typed)
    .on("", "change", left)
    .on("", "focusin", ask)
    .html(".explainer", explained)
    .put("presets", Part::of(view! { <StartFrom/> }))
    .put("plans", plans::view(session));
    follow(session);
    searched.fold(form, |form, it| {
        form.put(it.section(), combo::view(session, it))
    })
}

/// Whether a setting is chosen at once, and not typed.
fn is_chosen(setting: &Setting) -> bool {
    matches!(setting.value_type, ValueType::Switch | ValueType::Choice(_))
}

/// The fields follow the draft: only those are touched that show something else than before.
fn follow(session: Session) {
    let defaults: Vec<_> = settings::all().iter().map(Setting::default).collect();
    // The outside here is the fields.
    let mut before: Vec<Shown> = Vec::new();
    whenever(move |first| {
        let now = session.shown(&defaults);
        let mut counts = first;
        for (at, (setting, shown)) in settings::all().iter().zip(&now).enumerate() {
            let was = before.get(at);
            if was != Some(shown) {
                browser::show_field(setting.path, shown);
                counts |= was.is_some_and(|it| it.changed != shown.changed);
            }
        }
        if counts {
            show_counts(&now);
        }
        before = now;
    });
}

/// How many settings of each folded group differ from the defaults.
fn show_counts(all: &[Shown]) {
    browser::set_texts(".rooms .count", |id| {
        let section = id.trim_start_matches("count.");
        let changed = |it: &&Setting| {
            let at = settings::all()
                .iter()
                .position(|other| other.path == it.path);
            at.and_then(|at| all.get(at)).is_some_and(|it| it.changed)
        };
        text::changed(folded(section).filter(changed).count())
    });
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
            session.replace(preset.scenario());
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
