//! The start panel of a first visit: one field for a model, a file or an error, and five examples.

mod cards;

pub use cards::KIND as CARDS;

use leptos::ev::{Event, KeyboardEvent};
use leptos::prelude::*;

use self::cards::Cards;
use super::combo::{self, Entry};
use super::open::{self, Opened};
use super::places::Place;
use super::session::Session;
use super::{browser, text};
use headroom_advice::doctor::Findings;
use headroom_catalog as catalog;
use headroom_scenario::{Scenario, settings};

/// The kind of an input.
#[derive(Clone, Debug, PartialEq)]
enum Input {
    Model(&'static str),
    Gpu(&'static str),
    /// A sentence, a file of any program or saved plans.
    File,
    /// An error message, a log or a table, for the doctor.
    Failure,
    /// Unknown; the models with the most similar names.
    Unknown(Vec<Entry>),
}

fn classify(text: &str) -> Input {
    let text = text.trim();
    if let Some(model) = catalog::model_named(text) {
        return Input::Model(model.id);
    }
    if let Some(gpu) = catalog::gpu_named(text) {
        return Input::Gpu(gpu.id);
    }
    if open::opened("", text, &Scenario::default()) != Opened::Text {
        return Input::File;
    }
    if Findings::parse(text).is_some() || text.lines().count() > 1 {
        return Input::Failure;
    }
    let near = settings::find("model.id").map(|setting| combo::nearest(setting, text));
    Input::Unknown(near.unwrap_or_default())
}

/// The field and the examples, shown above the page until something is chosen.
#[component]
pub fn Start() -> impl IntoView {
    let session = Session::current();
    view! {
        <Show when=move || session.first_visit.get()>
            <section class="start screen-only" aria-label=text::START data-testid="start">
                <p class="tagline">{text::START_ABOUT}</p>
                <AnyField/>
                <Cards/>
                <button
                    type="button"
                    class="plain close"
                    aria-label=text::START_CLOSE
                    on:click=move |_| session.first_visit.set(false)
                >
                    "×"
                </button>
            </section>
        </Show>
    }
}

/// The field. Enter or pasting several lines submits it.
#[component]
fn AnyField() -> impl IntoView {
    let session = Session::current();
    let typed = RwSignal::new(String::new());
    let unknown = RwSignal::new(None::<Vec<Entry>>);
    let leave = move || {
        session.first_visit.set(false);
        browser::show("answers");
    };
    let set = move |path: &str, id: &str| {
        if let Some(setting) = settings::find(path) {
            session.enter(setting, id);
            session.leave(setting);
        }
        leave();
    };
    let take = move || {
        let text = typed.get_untracked();
        match classify(&text) {
            _ if text.trim().is_empty() => {}
            Input::Model(id) => set("model.id", id),
            Input::Gpu(id) => set("hardware.gpu", id),
            Input::File => {
                open::take(session, "", &text);
                leave();
            }
            Input::Failure => {
                open::take(session, "", &text);
                session.first_visit.set(false);
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
            </div>
            <p class="actions nearest" role="status">
                {nearest}
            </p>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_field_recognizes_its_input() {
        #[track_caller]
        fn check(text: &str, expected: &Input) {
            assert_eq!(classify(text), *expected, "{text}");
        }
        check(
            "meta-llama/Llama-3.1-8B-Instruct",
            &Input::Model("llama-3.1-8b"),
        );
        check(
            "https://huggingface.co/Qwen/Qwen2.5-7B-Instruct",
            &Input::Model("qwen2.5-7b"),
        );
        check("4090", &Input::Gpu("rtx-4090-24gb"));
        check(r#"{"model_type": "gpt2", "n_layer": 12}"#, &Input::File);
        check(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.64 GiB \
             of which 1.00 GiB is free.",
            &Input::Failure,
        );
        // Words about a run, also with a slip.
        check("lamma 3.1 8b", &Input::File);
        check("8xH100 FSDP llama 3 70b full finetune bf16", &Input::File);
        assert!(matches!(classify("nothing of the kind"), Input::Unknown(_)));
    }
}
