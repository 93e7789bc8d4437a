//! A filter over all settings: by name, help, path, and the values that they accept.

use leptos::ev::KeyboardEvent;
use leptos::prelude::*;

use super::Field;
use crate::shared::signals::memo;
use crate::text;
use headroom_scenario::settings::{self, Setting, ValueType};

/// The most fields that are shown.
const MOST: usize = 8;

/// The settings that have all typed words, those with a word in their name first.
fn matches(typed: &str) -> Vec<&'static Setting> {
    let words: Vec<String> = typed.split_whitespace().map(str::to_lowercase).collect();
    if words.is_empty() {
        return Vec::new();
    }
    let all_in = |text: &str| {
        let text = text.to_lowercase();
        words.iter().all(|word| text.contains(word))
    };
    let name = |setting: &Setting| format!("{} {} {}", setting.label, setting.path, setting.key);
    let values = |setting: &Setting| match setting.value_type {
        ValueType::Choice(choices) => {
            let names = choices
                .iter()
                .map(|choice| format!("{} {}", choice.id, choice.label));
            names.collect::<Vec<_>>().join(" ")
        }
        _ => String::new(),
    };
    let (named, others): (Vec<&Setting>, Vec<&Setting>) = settings::all()
        .iter()
        .partition(|setting| all_in(&name(setting)));
    let told = |setting: &&&Setting| {
        let all = [
            name(setting),
            setting.help.into(),
            setting.memory.into(),
            values(setting),
        ];
        all_in(&all.join(" "))
    };
    let others = others.iter().filter(told).copied();
    named.into_iter().chain(others).collect()
}

/// The filter, and the fields of what it finds.
#[component]
pub fn FindSetting() -> impl IntoView {
    let typed = RwSignal::new(String::new());
    let all = memo(move || {
        let all = typed.with(|typed| matches(typed));
        all.iter().map(|setting| setting.path).collect::<Vec<_>>()
    });
    let on_key = move |event: KeyboardEvent| {
        if event.key() == "Escape" {
            typed.set(String::new());
        }
    };
    let said = move || {
        let found = all.with(Vec::len);
        let asked = typed.with(|typed| !typed.trim().is_empty());
        asked.then(|| text::settings_found(found, MOST))
    };
    let first = move || all.with(|all| all.iter().take(MOST).copied().collect::<Vec<_>>());
    view! {
        <div class="find-setting" data-testid="find-setting">
            <input
                id="find-setting"
                type="search"
                autocomplete="off"
                spellcheck="false"
                aria-label=text::FIND_SETTING
                placeholder=text::FIND_SETTING_EXAMPLE
                prop:value=move || typed.get()
                on:input=move |event| typed.set(event_target_value(&event))
                on:keydown=on_key
            />
            <p class="quiet" role="status">{said}</p>
            <div class="fields">
                <For each=first key=|path| *path let(path)>
                    {settings::find(path)
                        .map(|setting| view! { <Field setting place="find." sourced=true/> })}
                </For>
            </div>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_found_by_name_help_and_values() {
        #[track_caller]
        fn check(typed: &str, expected: &str) {
            let found = matches(typed);
            let found: Vec<&str> = found.iter().map(|setting| setting.path).collect();
            assert!(found.contains(&expected), "{typed}: {found:?}");
        }
        check("gradient clipping", "training.clip");
        check("galore", "training.optimizer");
        check("lora_rank", "training.lora.rank");
        check("vllm", "task.vllm_share");
        assert_eq!(matches("rank adapter")[0].path, "training.lora.rank");
        assert_eq!((matches("").len(), matches("zzz").len()), (0, 0));
    }
}
