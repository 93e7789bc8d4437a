//! The questions, derived from the table of settings: what matters most in sight, the rest folded by room.

mod html;

use leptos::ev::{Event, FocusEvent};
use leptos::prelude::*;

use super::combo::Combo;
use super::draft::Shown;
use super::session::Session;
use super::{browser, text};
use crate::scenario::Scenario;
use crate::scenario::presets::{self, Preset};
use crate::scenario::settings::{self, Kind, SECTIONS, Setting};

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
    matches!(setting.kind, Kind::Gpu | Kind::Model)
}

/// The form. What the focused field means is said in one quiet place beneath it.
#[component]
pub fn Questions(session: Session) -> impl IntoView {
    let asked = RwSignal::new(None::<&'static Setting>);
    let groups: Vec<_> = FRONT
        .iter()
        .map(|(title, paths)| {
            let all: Vec<_> = paths.iter().filter_map(|it| settings::find(it)).collect();
            let searched: Vec<_> = all
                .iter()
                .filter(|it| is_searched(it))
                .map(|setting| view! { <Searched session setting/> })
                .collect();
            let others = all.iter().filter(|it| !is_searched(it));
            let others: String = others.map(|it| html::field(it)).collect();
            view! {
                <fieldset>
                    <legend>{*title}</legend>
                    <div class="fields">{searched}<div class="contents" inner_html=others></div></div>
                </fieldset>
            }
        })
        .collect();
    let rooms: String = SECTIONS
        .iter()
        .filter(|(id, _)| folded(id).next().is_some())
        .map(|(id, title)| html::room(id, title, folded(id)))
        .collect();
    follow(session);
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
    let ask = move |event: FocusEvent| {
        if let Some(setting) = on(&event) {
            asked.set(Some(setting));
        }
    };
    view! {
        <form
            class="questions" aria-label="The training run" on:submit=move |event| event.prevent_default()
            on:input=typed on:change=left on:focusin=ask
        >
            <Presets session/>
            <super::plans::Saved session/>
            {groups}
            <div class="rooms" inner_html=rooms></div>
            <div class="explainer" aria-hidden="true">
                {move || asked.get().map(|setting| view! {
                    <p><strong>{setting.label}</strong>" "{setting.help}</p>
                    <p class="quiet">{setting.memory}</p>
                })}
            </div>
        </form>
    }
}

/// Whether a setting is chosen at once, and not typed.
fn is_chosen(setting: &Setting) -> bool {
    matches!(setting.kind, Kind::Switch | Kind::Choice(_))
}

/// The fields follow the draft: only those are touched that show something else than before.
fn follow(session: Session) {
    let defaults: Vec<_> = settings::all().iter().map(Setting::default).collect();
    // The outside here is the fields.
    Effect::new(move |before: Option<Vec<Shown>>| {
        let now = session.shown(&defaults);
        let before = before.unwrap_or_default();
        let mut counts = before.is_empty();
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
        now
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
fn Presets(session: Session) -> impl IntoView {
    let options: Vec<_> = presets::all()
        .iter()
        .map(|it| view! { <option value=it.id>{it.title}</option> })
        .collect();
    let scenarios: Vec<_> = presets::all().iter().map(Preset::scenario).collect();
    let at = Memo::new(move |_| {
        let same = |now: &Scenario| scenarios.iter().position(|it| it == now);
        let at = session.scenario.with(same)?;
        presets::all().get(at).map(|it| (it.id, it.about))
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

/// A setting whose values are a catalogue.
#[component]
fn Searched(session: Session, setting: &'static Setting) -> impl IntoView {
    let class = match setting.kind {
        Kind::Gpu => "field long",
        _ => "field wide",
    };
    view! {
        <div class=class data-path=setting.path>
            <div class="contents" inner_html=html::label(setting)></div>
            <Combo session setting/>
            <div class="contents" inner_html=html::notes(setting)></div>
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
