//! A field that searches a catalogue: type a part of a name, choose with the arrow keys.

use leptos::ev::KeyboardEvent;
use leptos::prelude::*;

use super::session::Session;
use super::text;
use crate::catalog;
use crate::catalog::Os;
use crate::scenario::network;
use crate::scenario::settings::{self, Kind, Setting};
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
    match setting.kind {
        Kind::Gpu => catalog::gpus()
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
        Kind::Model => catalog::models()
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
    let known = match setting.kind {
        Kind::Gpu => catalog::gpu(id).map(|it| it.name),
        Kind::Model => catalog::model(id).map(|it| it.name),
        _ => None,
    };
    known.unwrap_or(id).to_string()
}

/// Entries that hold every word of what was typed, in the catalogue's order.
pub fn found(all: &[Entry], typed: &str) -> Vec<Entry> {
    let words: Vec<String> = typed
        .to_ascii_lowercase()
        .split_whitespace()
        .map(String::from)
        .collect();
    let fits = |entry: &&Entry| {
        let name = format!("{} {}", entry.id, entry.name).to_ascii_lowercase();
        words.iter().all(|word| name.contains(word.as_str()))
    };
    all.iter().filter(fits).cloned().collect()
}

/// The id that a typed text means: an id, a name, or the only thing found.
pub fn meant(all: &[Entry], typed: &str) -> Option<&'static str> {
    let typed = typed.trim();
    let same =
        |it: &&Entry| it.id.eq_ignore_ascii_case(typed) || it.name.eq_ignore_ascii_case(typed);
    if let Some(entry) = all.iter().find(same) {
        return Some(entry.id);
    }
    match found(all, typed).as_slice() {
        [only] => Some(only.id),
        _ => None,
    }
}

#[component]
pub fn Combo(session: Session, setting: &'static Setting) -> impl IntoView {
    let all = Memo::new(move |_| entries(setting, session.units.get()));
    let opened = RwSignal::new(false);
    // What is being typed; the value's own name until then.
    let typed = RwSignal::new(None::<String>);
    let active = RwSignal::new(0_usize);
    let list = Memo::new(move |_| {
        if opened.get() {
            all.with(|all| found(all, &typed.get().unwrap_or_default()))
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
    let declared = Memo::new(move |_| {
        setting.kind == Kind::Model && session.scenario.with(|it| it.model.network.is_some())
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
        let text = event_target_value(&event);
        let id = all
            .with_untracked(|all| meant(all, &text))
            .map_or(text, String::from);
        choose(&id);
    };
    let keys = move |event: KeyboardEvent| {
        let length = list.with_untracked(Vec::len);
        match event.key().as_str() {
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
    let list_id = format!("{}.list", setting.path);
    let open = move || list.with(|it| !it.is_empty());
    let option_id = move |index: usize| format!("{}.option.{index}", setting.path);
    let items = move || {
        let items: Vec<_> = list
            .get()
            .into_iter()
            .enumerate()
            .map(|(index, entry)| {
                let id = entry.id;
                view! {
                    <li
                        id=option_id(index) role="option" aria-selected=move || (active.get() == index).to_string()
                        on:pointerdown=move |event| { event.prevent_default(); choose(id); }
                        on:pointerenter=move |_| active.set(index)
                    >{entry.name}<span class="quiet">{entry.detail}</span></li>
                }
            })
            .collect();
        items
    };
    view! {
        <div class="combo">
            <input
                id=setting.path name=setting.path type="text" role="combobox" autocomplete="off" spellcheck="false"
                aria-expanded=move || open().to_string() aria-controls=list_id.clone() aria-autocomplete="list"
                aria-activedescendant=move || open().then(|| option_id(active.get()))
                aria-describedby=format!("{0}.hint {0}.help", setting.path)
                aria-invalid=move || session.problem(setting).is_some().to_string()
                prop:value=shown
                on:click=move |_| open_all()
                on:input=move |event| { open_all(); typed.set(Some(event_target_value(&event))); }
                on:change=commit
                on:blur=move |_| close()
                on:keydown=keys
            />
            <ul id=list_id role="listbox" aria-label=text::choices(setting.label) hidden=move || !open()>{items}</ul>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_find_entries_in_any_order_and_only_one_find_is_meant() {
        let setting = settings::find("hardware.gpu").unwrap();
        let all = entries(setting, UnitStyle::Binary);
        let ids: Vec<_> = found(&all, "80 h100 SXM").iter().map(|it| it.id).collect();
        assert!(ids.iter().all(|id| id.starts_with("h100-sxm")), "{ids:?}");
        assert!(!ids.is_empty());
        assert_eq!(meant(&all, "no such card"), None);
        for entry in &all {
            assert_eq!(meant(&all, entry.id), Some(entry.id));
        }
        assert_eq!(found(&all, " ").len(), all.len());
    }
}
