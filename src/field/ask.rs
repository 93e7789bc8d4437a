//! The one field: whatever a person says or brings about a run, and below it what was understood.

use leptos::ev::{Event, KeyboardEvent};
use leptos::prelude::*;

use crate::field::chips::Chips;
use crate::field::combo::{self, Entry};
use crate::field::lists;
use crate::field::open::{self, OpenFile, Opened};
use crate::shared::places::Place;
use crate::shared::session::Session;
use crate::shared::signals::memo;
use crate::text;
use headroom_advice::doctor::Findings;
use headroom_catalog as catalog;
use headroom_scenario::Scenario;
use headroom_scenario::presets::{self, Preset};
use headroom_scenario::settings;

/// The kind of an input.
#[derive(Clone, Debug, PartialEq)]
enum Input {
    Gpu(&'static str),
    /// A model, a sentence, a file of any program or saved plans.
    Run,
    /// An error message, a log or a table, for the doctor.
    Failure,
    /// Unknown; the models with the most similar names.
    Unknown(Vec<Entry>),
}

fn classify(text: &str, run: &Scenario) -> Input {
    let text = text.trim();
    if let Some(gpu) = catalog::gpu_named(text) {
        return Input::Gpu(gpu.id);
    }
    if open::opened("", text, run) != Opened::Text {
        return Input::Run;
    }
    if Findings::parse(text).is_some() || text.lines().count() > 1 {
        return Input::Failure;
    }
    let near = settings::find("model.id").map(|setting| combo::nearest(setting, text));
    Input::Unknown(near.unwrap_or_default())
}

/// The field, the examples, and what was understood.
#[component]
pub fn Ask() -> impl IntoView {
    view! {
        <section class="ask screen-only" aria-label=text::START data-testid="ask">
            <AnyField/>
            <Chips/>
        </section>
    }
}

/// The field. Enter or pasting several lines submits it.
#[component]
fn AnyField() -> impl IntoView {
    let session = Session::current();
    let typed = RwSignal::new(String::new());
    let unknown = RwSignal::new(None::<Vec<Entry>>);
    let done = move || {
        typed.set(String::new());
        unknown.set(None);
    };
    let set = move |path: &str, id: &str| {
        if let Some(setting) = settings::find(path) {
            session.enter(setting, id);
            session.leave(setting);
        }
        done();
    };
    let take = move || {
        let text = typed.get_untracked();
        if text.trim().is_empty() {
            return;
        }
        match session.scenario.with_untracked(|run| classify(&text, run)) {
            Input::Gpu(id) => set("hardware.gpu", id),
            Input::Run => {
                if open::take(session, "", &text) {
                    done();
                }
            }
            Input::Failure => {
                open::take(session, "", &text);
                done();
                Place::Diagnose.show();
            }
            Input::Unknown(nearest) => unknown.set(Some(nearest)),
        }
    };
    let typing = move |event: Event| {
        typed.set(event_target_value(&event));
        unknown.set(None);
        // Enter submits, so several lines can only be pasted.
        if typed.with_untracked(|text| text.trim().contains('\n')) {
            take();
        }
    };
    let on_key = move |event: KeyboardEvent| {
        if event.key() == "Enter" && !event.shift_key() {
            event.prevent_default();
            take();
        }
    };
    let nearest = move || {
        unknown.get().map(|nearest| {
            let button = |entry: Entry| {
                view! {
                    <button type="button" on:click=move |_| set("model.id", entry.id)>
                        {entry.name}
                    </button>
                }
            };
            let message = if nearest.is_empty() {
                text::NOT_FOUND
            } else {
                text::NO_MATCH
            };
            view! {
                <span>{message}</span>
                {nearest.into_iter().map(button).collect_view()}
            }
        })
    };
    view! {
        <div class="any">
            <label for="any">{text::ANY}</label>
            <div class="actions">
                <textarea
                    id="any"
                    rows="1"
                    spellcheck="false"
                    autocomplete="off"
                    placeholder=text::ANY_EXAMPLE
                    prop:value=move || typed.get()
                    on:input=typing
                    on:keydown=on_key
                ></textarea>
                <button type="button" class="primary" on:click=move |_| take()>
                    {text::GO}
                </button>
                <StartFrom/>
                <OpenFile/>
            </div>
            <p class="actions nearest" role="status">
                {nearest}
            </p>
        </div>
    }
}

/// Presets to start from; choosing one can be undone.
#[component]
fn StartFrom() -> impl IntoView {
    let session = Session::current();
    let scenarios: Vec<_> = presets::all().iter().map(Preset::scenario).collect();
    let all = presets::all().iter().zip(&scenarios);
    let groups = lists::grouped(all, |(_, scenario)| lists::preset_group(scenario));
    let option =
        |preset: &'static Preset| view! { <option value=preset.id>{preset.title}</option> };
    let group = |(name, all): (&'static str, Vec<(&'static Preset, &Scenario)>)| {
        let options = all.into_iter().map(|(preset, _)| option(preset));
        view! { <optgroup label=name>{options.collect_view()}</optgroup> }
    };
    let options = groups.into_iter().map(group).collect_view();
    let chosen = memo(move || {
        let same = |now: &Scenario| scenarios.iter().position(|preset| preset == now);
        let preset = presets::all().get(session.scenario.with(same)?)?;
        Some((preset.id, preset.about))
    });
    let start = move |event: Event| {
        if let Some(preset) = presets::find(&event_target_value(&event)) {
            session.start_from(preset);
        }
    };
    view! {
        <select
            id="preset"
            class="presets"
            data-testid="presets"
            aria-label=text::START_FROM
            title=move || chosen.get().map(|(_, about)| about)
            prop:value=move || chosen.get().map_or("", |(id, _)| id)
            on:change=start
        >
            <option value="" disabled=true>{text::START_FROM}</option>
            {options}
        </select>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_recognizes_its_input() {
        #[track_caller]
        fn check(text: &str, expected: &Input) {
            assert_eq!(classify(text, &Scenario::default()), *expected, "{text}");
        }
        for run in [
            "meta-llama/Llama-3.1-8B-Instruct",
            "https://huggingface.co/Qwen/Qwen2.5-7B-Instruct",
            "RTX 4090, LoRA on Llama-3.1-8B at 4k",
            "lora gpt2",
            r#"{"model_type": "gpt2", "n_layer": 12}"#,
            // Words about a run, also with a slip.
            "lamma 3.1 8b",
            "8xH100 FSDP llama 3 70b full finetune bf16",
        ] {
            check(run, &Input::Run);
        }
        check("4090", &Input::Gpu("rtx-4090-24gb"));
        check(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.64 GiB \
             of which 1.00 GiB is free.",
            &Input::Failure,
        );
        let unknown = classify("nothing of the kind", &Scenario::default());
        assert!(matches!(unknown, Input::Unknown(_)));
    }
}
