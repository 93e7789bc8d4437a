//! A combobox over a catalogue: type part of a name, choose with the arrow keys.

use leptos::ev::{Event, KeyboardEvent, MouseEvent, PointerEvent};
use leptos::prelude::*;

use crate::field::lists;
use crate::shared::browser;
use crate::shared::session::Session;
use crate::shared::signals::memo;
use crate::text;
use headroom_base::order::sorted;
use headroom_base::units::UnitStyle;
use headroom_catalog as catalog;
use headroom_catalog::Os;
use headroom_scenario::network;
use headroom_scenario::settings::{self, Setting, ValueType};

/// One option.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub id: &'static str,
    pub name: &'static str,
    /// A detail that distinguishes it from its neighbours.
    pub detail: String,
    /// The heading above it in the whole list.
    pub group: &'static str,
    /// A GPU's memory in its maker's gigabytes; zero for models.
    gigabytes: u32,
}

/// The catalogue's options for this setting: the newest and most used models, the GPUs that people own and rent first.
fn entries(setting: &Setting, units: UnitStyle) -> Vec<Entry> {
    let groups = lists::grouped(listed(setting, units), |entry| entry.group);
    groups.into_iter().flat_map(|(_, all)| all).collect()
}

fn listed(setting: &Setting, units: UnitStyle) -> Vec<Entry> {
    match setting.value_type {
        ValueType::Gpu => lists::gpus()
            .into_iter()
            .map(|gpu| Entry {
                id: gpu.id,
                name: gpu.name,
                detail: gpu
                    .usable_bytes(Os::Linux)
                    .map(|bytes| bytes.show(units))
                    .unwrap_or_default(),
                group: lists::gpu_group(gpu),
                gigabytes: gpu.memory.marketing_gb.into(),
            })
            .collect(),
        ValueType::Model => catalog::models_by_use()
            .into_iter()
            .map(|model| Entry {
                id: model.id,
                name: model.name,
                detail: text::count(model.parameters),
                group: model.category.label(),
                gigabytes: 0,
            })
            .collect(),
        _ => vec![],
    }
}

/// The catalogue's name for an id or alias; the id itself if unknown.
pub fn name(setting: &Setting, id: &str) -> String {
    let known = match setting.value_type {
        ValueType::Gpu => catalog::gpu(id).map(|entry| entry.name),
        ValueType::Model => catalog::model(id).map(|entry| entry.name),
        _ => None,
    };
    known.unwrap_or(id).to_string()
}

/// The matches of a typed text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    pub entries: Vec<Entry>,
    /// No name contains the text: these are the most similar.
    pub nearest: bool,
}

/// Entries whose names contain every typed word, in the catalogue's order; if there are none, those with the most similar
/// names. An exact alias, such as the Hugging Face id of a fine-tuned variant, comes first.
pub fn found(setting: &Setting, all: &[Entry], typed: &str) -> Found {
    // `12 GB` is no part of `128 GB`.
    let sized = lists::memory_in(typed).filter(|_| setting.value_type == ValueType::Gpu);
    let memory = sized.as_ref().map(|(gigabytes, _)| *gigabytes);
    let wanted = catalog::Typed::new(sized.as_ref().map_or(typed, |(_, rest)| rest));
    let fits = |entry: &&Entry| {
        memory.is_none_or(|memory| entry.gigabytes == memory)
            && wanted.is_in(&format!("{}{}", entry.id, entry.name))
    };
    let named = named(setting, typed);
    let is_named = |entry: &&Entry| Some(entry.id) == named;
    let others = all.iter().filter(|entry| fits(entry) && !is_named(entry));
    let entries: Vec<Entry> = all.iter().filter(is_named).chain(others).cloned().collect();
    if !entries.is_empty() {
        return Found {
            entries,
            nearest: false,
        };
    }
    let ranked = all.iter().map(|entry| (wanted.likeness(entry.id), entry));
    let ranked = sorted(ranked, |(one, _), (other, _)| other.cmp(one));
    Found {
        entries: ranked
            .into_iter()
            .take(NEAREST)
            .filter(|(similarity, _)| *similarity > 0)
            .map(|(_, entry)| entry.clone())
            .collect(),
        nearest: true,
    }
}

/// The entries with the names most similar to a text.
pub fn nearest(setting: &Setting, typed: &str) -> Vec<Entry> {
    let all = entries(setting, UnitStyle::default());
    let mut found = found(setting, &all, typed).entries;
    found.truncate(NEAREST);
    found
}

/// The number of suggestions if nothing matches.
const NEAREST: usize = 6;

/// The id that a typed text names. A unique substring of a name is not enough: `resnet50` must not become Wide ResNet.
pub fn named(setting: &Setting, typed: &str) -> Option<&'static str> {
    match setting.value_type {
        ValueType::Gpu => catalog::gpu_named(typed).map(|gpu| gpu.id),
        ValueType::Model => catalog::model_named(typed).map(|model| model.id),
        _ => None,
    }
}

#[component]
pub fn Combo(
    setting: &'static Setting,
    /// What its ids begin with, where the form has a field of the same setting.
    #[prop(optional)]
    place: &'static str,
) -> impl IntoView {
    let session = Session::current();
    let path = format!("{place}{}", setting.path);
    let option_path = path.clone();
    let all = memo(move || entries(setting, session.units.get()));
    let opened = RwSignal::new(false);
    // The typed text; the value's own name until then.
    let typed = RwSignal::new(None::<String>);
    // The option that Enter selects; none for merely similar names.
    let active = RwSignal::new(Some(0_usize));
    let list = memo(move || {
        if opened.get() {
            all.with(|all| found(setting, all, &typed.get().unwrap_or_default()))
        } else {
            Found::default()
        }
    });
    let close = move || {
        opened.set(false);
        typed.set(None);
    };
    let open_all = move || {
        opened.set(true);
        active.set(list.with_untracked(|list| (!list.nearest).then_some(0)));
    };
    // A declared network replaces the catalogue's.
    let declared = memo(move || {
        setting.value_type == ValueType::Model
            && session
                .scenario
                .with(|scenario| scenario.model.network.is_some())
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
    let commit = move |event: Event| {
        let text = event_target_value(&event);
        let id = named(setting, &text).map_or(text, String::from);
        choose(&id);
    };
    let on_key = move |event: KeyboardEvent| {
        let last = list.with_untracked(|list| list.entries.len().saturating_sub(1));
        match event.key().as_str() {
            "ArrowDown" if !opened.get_untracked() => open_all(),
            "ArrowDown" => active.update(|at| *at = Some(at.map_or(0, |at| (at + 1).min(last)))),
            "ArrowUp" => active.update(|at| *at = at.map(|at| at.saturating_sub(1))),
            "Enter" => {
                let at = active.get_untracked();
                let entry = |list: &Found| list.entries.get(at?).map(|entry| entry.id);
                match list.with_untracked(entry) {
                    Some(id) => choose(id),
                    None => return,
                }
                browser::select_text_soon(&event);
            }
            "Escape" => {
                close();
                browser::select_text_soon(&event);
            }
            _ => return,
        }
        event.prevent_default();
    };
    let is_open = move || list.with(|list| !list.entries.is_empty());
    let option_id = StoredValue::new(option_path);
    let option_id = move |at: usize| option_id.with_value(|path| format!("{path}.option.{at}"));
    let option = move |(at, entry): (usize, Entry)| {
        let press = move |event: PointerEvent| {
            event.prevent_default();
            choose(entry.id);
        };
        view! {
            <div
                class="option"
                id=option_id(at)
                role="option"
                aria-selected=move || (active.get() == Some(at)).to_string()
                on:pointerdown=press
                on:pointerover=move |_| active.set(Some(at))
            >
                {entry.name}
                <span class="quiet">{entry.detail}</span>
            </div>
        }
    };
    // The whole list has headings; what matches is in the order in which it matches.
    let options = move || {
        let entries = list.with(|list| list.entries.clone());
        let whole = typed.with(|typed| typed.as_ref().is_none_or(|typed| typed.trim().is_empty()));
        let heading = |(_, entry): &(usize, Entry)| if whole { entry.group } else { "" };
        // Arrows go through the list as it is drawn.
        let mut at = 0;
        let group = |(name, all): (&'static str, Vec<(usize, Entry)>)| {
            let options = all.into_iter().map(|(_, entry)| {
                at += 1;
                option((at - 1, entry))
            });
            let options = options.collect_view();
            if name.is_empty() {
                return options.into_any();
            }
            view! {
                <div role="group" aria-label=name>
                    <p class="heading" aria-hidden="true">{name}</p>
                    {options}
                </div>
            }
            .into_any()
        };
        let groups = lists::grouped(entries.into_iter().enumerate(), heading);
        groups.into_iter().map(group).collect_view()
    };
    let nearest = move || list.with(|list| list.nearest && !list.entries.is_empty());
    let typing = move |event: Event| {
        typed.set(Some(event_target_value(&event)));
        open_all();
    };
    let click = move |event: MouseEvent| {
        if typed.get_untracked().is_none() {
            browser::select_text(&event);
        }
        open_all();
    };
    view! {
        <div class="combo">
            <input
                id=path.clone()
                name=path.clone()
                type="text"
                role="combobox"
                autocomplete="off"
                spellcheck="false"
                aria-autocomplete="list"
                aria-controls=format!("{path}.list")
                aria-describedby=format!("{path}.hint {path}.help")
                aria-expanded=move || is_open().to_string()
                aria-activedescendant=move || active.get().filter(|_| is_open()).map(option_id)
                aria-invalid=move || session.problem(setting).is_some().to_string()
                prop:value=shown
                // Typing replaces the current name.
                on:focus=|event| browser::select_text(&event)
                on:click=click
                on:input=typing
                on:change=commit
                on:blur=move |_| close()
                on:keydown=on_key
            />
            <div class="found" hidden=move || !is_open()>
                <p class="quiet" role="status" hidden=move || !nearest()>
                    {text::NO_MATCH}
                </p>
                <div
                    class="list"
                    id=format!("{path}.list")
                    role="listbox"
                    aria-label=text::choices(setting.label)
                >
                    {options}
                </div>
            </div>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_words_match_in_any_order() {
        let setting = settings::find("hardware.gpu").unwrap();
        let all = entries(setting, UnitStyle::Binary);
        let ids: Vec<_> = found(setting, &all, "80 h100 SXM")
            .entries
            .iter()
            .map(|entry| entry.id)
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
        assert_eq!(found(setting, &all, " ").entries.len(), all.len());
    }

    #[test]
    fn names_match_any_spelling() {
        #[track_caller]
        fn check(path: &str, typed: &str, expected: &str, nearest: bool) {
            let setting = settings::find(path).unwrap();
            let all = entries(setting, UnitStyle::Binary);
            let found = found(setting, &all, typed);
            let first: Vec<&str> = found.entries.iter().take(3).map(|entry| entry.id).collect();
            assert!(first.contains(&expected), "{typed}: {first:?}");
            assert_eq!(found.nearest, nearest, "{typed}");
        }
        let model = "model.id";
        check(
            model,
            "meta-llama/Llama-3.1-8B-Instruct",
            "llama-3.1-8b",
            false,
        );
        check(model, "Qwen2.5-7B", "qwen2.5-7b", false);
        check(model, "qwen 2.5 7b", "qwen2.5-7b", false);
        check(model, "lama 3.1 8b", "llama-3.1-8b", false);
        check(model, "lamma-3.1-8b", "llama-3.1-8b", true);
        check(model, "mistrl-7b", "mistral-7b-v0.3", true);
        check("hardware.gpu", "4090", "rtx-4090-24gb", false);
        check("hardware.gpu", "RTX4090", "rtx-4090-24gb", false);
        let models = settings::find(model).unwrap();
        let all = entries(models, UnitStyle::Binary);
        let newest = found(models, &all, "qwen").entries[0].id;
        assert!(newest.starts_with("qwen3"), "{newest}");
        let setting = settings::find("hardware.gpu").unwrap();
        let all = entries(setting, UnitStyle::Binary);
        let first = |typed: &str| found(setting, &all, typed).entries[0].id;
        assert_eq!(first("H100"), "h100-sxm5-80gb");
        assert_eq!(first("12 GB"), "rtx-3060-12gb");
        assert_eq!(first("a100"), "a100-sxm4-80gb");
        let setting = settings::find(model).unwrap();
        let nothing = found(setting, &entries(setting, UnitStyle::Binary), "\u{1F600}");
        assert!(nothing.entries.len() <= 1000);
    }
}
