//! A field that searches a catalogue: type a part of a name, choose with the arrow keys.

use leptos::prelude::*;
use web_sys::Event;

use super::markup::escape;
use super::part::Part;
use super::session::Session;
use super::signals::{memo, whenever};
use super::{browser, text};
use crate::catalog;
use crate::catalog::Os;
use crate::scenario::network;
use crate::scenario::settings::{self, Setting, ValueType};
use crate::units::UnitStyle;

/// One thing to choose.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub id: &'static str,
    pub name: &'static str,
    /// What tells it from its neighbours.
    pub detail: String,
}

/// What the catalogue has for this setting.
fn entries(setting: &Setting, units: UnitStyle) -> Vec<Entry> {
    match setting.value_type {
        ValueType::Gpu => catalog::gpus()
            .iter()
            .map(|gpu| Entry {
                id: gpu.id,
                name: gpu.name,
                detail: gpu
                    .usable_bytes(Os::Linux)
                    .map(|it| it.show(units))
                    .unwrap_or_default(),
            })
            .collect(),
        ValueType::Model => catalog::models()
            .iter()
            .map(|model| Entry {
                id: model.id,
                name: model.name,
                detail: text::count(model.parameters),
            })
            .collect(),
        _ => vec![],
    }
}

/// The catalogue's name for an id, which may be a short form of its own; the id where the catalogue has none.
pub fn name(setting: &Setting, id: &str) -> String {
    let known = match setting.value_type {
        ValueType::Gpu => catalog::gpu(id).map(|it| it.name),
        ValueType::Model => catalog::model(id).map(|it| it.name),
        _ => None,
    };
    known.unwrap_or(id).to_string()
}

/// Entries that hold every word of what was typed, in the catalogue's order. What names an entry, such as a Hugging Face id
/// of a tuned variant, finds it first.
pub fn found(setting: &Setting, all: &[Entry], typed: &str) -> Vec<Entry> {
    let words: Vec<String> = typed
        .to_ascii_lowercase()
        .split(|c: char| c.is_whitespace() || c == '/')
        .map(String::from)
        .collect();
    let fits = |entry: &&Entry| {
        let name = format!("{} {}", entry.id, entry.name).to_ascii_lowercase();
        words.iter().all(|word| name.contains(word.as_str()))
    };
    let named = named(setting, typed);
    let is_named = |entry: &&Entry| Some(entry.id) == named;
    let others = all.iter().filter(|entry| fits(entry) && !is_named(entry));
    all.iter().filter(is_named).chain(others).cloned().collect()
}

/// The id of what a typed text names. A part of a name that only one entry has is no name: `resnet50` must not become
/// Wide ResNet.
pub fn named(setting: &Setting, typed: &str) -> Option<&'static str> {
    match setting.value_type {
        ValueType::Gpu => catalog::gpu_named(typed).map(|gpu| gpu.id),
        ValueType::Model => catalog::model_named(typed).map(|model| model.id),
        _ => None,
    }
}

pub fn view(session: Session, setting: &'static Setting) -> Part {
    let all = memo(move || entries(setting, session.units.get()));
    let opened = RwSignal::new(false);
    // What is being typed; the value's own name until then.
    let typed = RwSignal::new(None::<String>);
    let active = RwSignal::new(0_usize);
    let list = memo(move || {
        if opened.get() {
            all.with(|all| found(setting, all, &typed.get().unwrap_or_default()))
        } else {
            vec![]
        }
    });
    let close = move || {
        opened.set(false);
        typed.set(None);
    };
    let open_all = move || {
        active.set(0);
        opened.set(true);
    };
    // A declared network takes the place of the catalogue's.
    let declared = memo(move || {
        setting.value_type == ValueType::Model
            && session.scenario.with(|it| it.model.network.is_some())
    });
    let shown = move || match typed.get() {
        Some(typed) => typed,
        None if declared.get() => text::OWN_NETWORK.into(),
        None => name(setting, &session.text(setting)),
    };
    let choose = move |id: &str| {
        if let Some(network) = settings::find(network::FIELD).filter(|_| declared.get_untracked()) {
            session.enter(network, "");
            session.leave(network);
        }
        session.enter(setting, id);
        session.leave(setting);
        close();
    };
    let commit = move |event| {
        let text = browser::value_under(&event);
        let id = named(setting, &text).map_or(text, String::from);
        choose(&id);
    };
    let keys = move |event: Event| {
        let length = list.with_untracked(Vec::len);
        match browser::key(&event).as_str() {
            "ArrowDown" if !opened.get_untracked() => open_all(),
            "ArrowDown" => active.update(|at| *at = (*at + 1).min(length.saturating_sub(1))),
            "ArrowUp" => active.update(|at| *at = at.saturating_sub(1)),
            "Enter" => {
                let id = list.with_untracked(|it| it.get(active.get_untracked()).map(|it| it.id));
                match id {
                    Some(id) => choose(id),
                    None => return,
                }
            }
            "Escape" => close(),
            _ => return,
        }
        event.prevent_default();
    };
    let path = setting.path;
    let open = move || list.with(|it| !it.is_empty());
    let items = move || {
        let at = active.get_untracked();
        let item = |(index, entry): (usize, &Entry)| {
            let (name, detail) = (escape(entry.name), escape(&entry.detail));
            let chosen = index == at;
            format!(
                "<li id=\"{path}.option.{index}\" role=\"option\" data-at=\"{index}\" aria-selected=\"{chosen}\">\
                 {name}<span class=\"quiet\">{detail}</span></li>"
            )
        };
        list.with(|it| it.iter().enumerate().map(item).collect())
    };
    let option = move || format!("{path}.option.{}", active.get());
    let under = |event: &Event| {
        browser::attribute_around(event, "data-at")
            .parse::<usize>()
            .ok()
    };
    let press = move |event: Event| {
        event.prevent_default();
        let id = under(&event).and_then(|at| list.with_untracked(|it| it.get(at).map(|it| it.id)));
        id.into_iter().for_each(choose);
    };
    let point = move |event: Event| {
        if let Some(at) = under(&event).filter(|it| *it != active.get_untracked()) {
            active.set(at);
        }
    };
    let typing = move |event: Event| {
        open_all();
        typed.set(Some(browser::value_under(&event)));
    };
    let attributes = format!(
        r#"autocomplete="off" spellcheck="false" aria-controls="{path}.list" aria-describedby="{path}.hint {path}.help""#
    );
    let part = Part::new(&format!(
        r#"<div class="combo">
            <input id="{path}" name="{path}" type="text" role="combobox" aria-autocomplete="list" {attributes}>
            <ul id="{path}.list" role="listbox" aria-label="{}"></ul>
        </div>"#,
        escape(&text::choices(setting.label))
    ))
    .attribute("input", "aria-expanded", move || open().to_string())
    .attribute("input", "aria-activedescendant", move || {
        open().then(option).unwrap_or_default()
    })
    .attribute("input", "aria-invalid", move || session.problem(setting).is_some().to_string())
    .value("input", shown)
    // What is typed replaces the name that stands there.
    .on("input", "focus", |event| browser::select_text(&event))
    .on("input", "click", move |event| {
        if typed.get_untracked().is_none() {
            browser::select_text(&event);
        }
        open_all();
    })
    .on("input", "input", typing)
    .on("input", "change", commit)
    .on("input", "blur", move |_| close())
    .on("input", "keydown", keys)
    .flag("ul", "hidden", move || !open())
    .html("ul", items)
    .on("ul", "pointerdown", press)
    .on("ul", "pointerover", point);
    // The outside here is the list: it is not drawn anew for a key or a pointer.
    whenever(move |_| {
        browser::select_only(&format!("[id=\"{path}.list\"] [role=option]"), &option());
    });
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_find_entries_in_any_order_and_names_name_one() {
        let setting = settings::find("hardware.gpu").unwrap();
        let all = entries(setting, UnitStyle::Binary);
        let ids: Vec<_> = found(setting, &all, "80 h100 SXM")
            .iter()
            .map(|it| it.id)
            .collect();
        assert!(ids.iter().all(|id| id.starts_with("h100-sxm")), "{ids:?}");
        assert!(!ids.is_empty());
        assert_eq!(named(setting, "no such card"), None);
        for entry in &all {
            assert_eq!(named(setting, entry.id), Some(entry.id));
        }
        let model = settings::find("model.id").unwrap();
        assert_eq!(named(model, "resnet50"), Some("resnet-50"));
        assert_eq!(named(model, "wide"), None);
        assert_eq!(found(setting, &all, " ").len(), all.len());
    }
}
