//! Where a first visit begins: one field that takes whatever a person has, and five runs to start from.

use leptos::ev::{Event, KeyboardEvent};
use leptos::prelude::*;
use leptos::reactive::spawn_local;

use super::combo::{self, Entry};
use super::gauge::{Gauge, Segment};
use super::open::{self, Opened};
use super::places::Place;
use super::session::Session;
use super::verdict::Sentence;
use super::{browser, text};
use crate::catalog;
use crate::estimate::Prediction;
use crate::scenario::presets::{self, Preset};
use crate::scenario::settings;
use crate::strategy::doctor::Findings;
use crate::units::UnitStyle;

/// What a text turned out to be.
#[derive(Clone, Debug, PartialEq)]
enum Given {
    Model(&'static str),
    Gpu(&'static str),
    /// A scenario, a model's configuration or saved plans.
    File,
    /// An error message, a log or a table: the doctor's.
    Failure,
    /// None of these; the models with the most similar names.
    Unknown(Vec<Entry>),
}

fn given(text: &str) -> Given {
    let text = text.trim();
    if let Some(model) = catalog::model_named(text) {
        return Given::Model(model.id);
    }
    if let Some(gpu) = catalog::gpu_named(text) {
        return Given::Gpu(gpu.id);
    }
    if open::opened(text) != Opened::Text {
        return Given::File;
    }
    if Findings::parse(text).is_some() || text.lines().count() > 1 {
        return Given::Failure;
    }
    let near = settings::find("model.id").map(|setting| combo::nearest(setting, text));
    Given::Unknown(near.unwrap_or_default())
}

/// The field and the cards, above the page until something was chosen.
#[component]
pub fn Start() -> impl IntoView {
    let session = Session::current();
    view! {
        <Show when=move || session.first_visit.get()>
            <section class="start screen-only" aria-label=text::START data-testid="start">
                <p class="tagline">{text::START_ABOUT}</p>
                <AnyField/>
                <ul class="cards">
                    {CARDS
                        .iter()
                        .filter_map(|id| presets::find(id))
                        .map(|preset| view! { <Card preset/> })
                        .collect_view()}
                </ul>
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

/// One of each kind: small, adapters, four bits, everything trained, a system with a guide.
const CARDS: [&str; 5] = [
    "gpt2-small",
    "llama-8b-lora-24gb",
    "qwen-14b-qlora-24gb",
    "llama-8b-full-80gb",
    "dreams",
];

/// The one field. Enter or a pasted text of several lines is taken.
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
        match given(&text) {
            _ if text.trim().is_empty() => {}
            Given::Model(id) => set("model.id", id),
            Given::Gpu(id) => set("hardware.gpu", id),
            Given::File => {
                open::take(session, &text);
                leave();
            }
            Given::Failure => {
                open::take(session, &text);
                session.first_visit.set(false);
                Place::Diagnose.show();
            }
            Given::Unknown(nearest) => unknown.set(Some(nearest)),
        }
    };
    let typing = move |event: Event| {
        typed.set(event_target_value(&event));
        unknown.set(None);
        // Enter takes the text, so lines come from the clipboard.
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

/// A run to start from, with the picture of its memory.
#[component]
fn Card(preset: &'static Preset) -> impl IntoView {
    let session = Session::current();
    let drawn = RwSignal::new(None::<(Vec<Segment>, f64, String)>);
    spawn_local(async move {
        // The answer comes first, and each picture by itself: none keeps a key waiting.
        browser::painted().await;
        browser::whole().await;
        browser::breathe().await;
        let prediction = Prediction::new(preset.scenario());
        if let Ok(estimate) = prediction.estimate() {
            let gauge = Gauge::of(estimate, UnitStyle::Binary);
            let limit = gauge.limit.map_or(100.0, |(limit, _)| limit);
            let said = Sentence::of(estimate, UnitStyle::Binary);
            let of = said.usable.map(|usable| format!(" of {usable}"));
            let said = format!("{}{}", said.needs, of.unwrap_or_default());
            drawn.try_set(Some((gauge.segments, limit, said)));
        }
    });
    let bar = move || {
        drawn.with(|drawn| {
            let (segments, limit, _) = drawn.as_ref()?;
            let part = |segment: &Segment| {
                let class = format!("segment part-{}", segment.piece.words().0);
                let (x, width) = (percent(segment.start), percent(segment.width));
                view! { <rect class=class x=x width=width height="100%"></rect> }
            };
            Some(view! {
                <rect class="bed" width=percent(*limit) height="100%"></rect>
                {segments.iter().map(part).collect_view()}
            })
        })
    };
    let said = move || drawn.with(|drawn| drawn.as_ref().map(|(_, _, said)| said.clone()));
    let choose = move |_| {
        session.start_from(preset.scenario());
        browser::show("answers");
    };
    view! {
        <li>
            <button type="button" class="card" data-preset=preset.id on:click=choose>
                <span class="name">{preset.title}</span>
                <svg class="bar" aria-hidden="true">{bar}</svg>
                <span class="quiet">{said}</span>
            </button>
        </li>
    }
}

fn percent(value: f64) -> String {
    format!("{value:.3}%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_tells_what_it_was_given() {
        #[track_caller]
        fn check(text: &str, expected: &Given) {
            assert_eq!(given(text), *expected, "{text}");
        }
        check(
            "meta-llama/Llama-3.1-8B-Instruct",
            &Given::Model("llama-3.1-8b"),
        );
        check(
            "https://huggingface.co/Qwen/Qwen2.5-7B-Instruct",
            &Given::Model("qwen2.5-7b"),
        );
        check("4090", &Given::Gpu("rtx-4090-24gb"));
        check(r#"{"model_type": "gpt2", "n_layer": 12}"#, &Given::File);
        check(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.64 GiB \
             of which 1.00 GiB is free.",
            &Given::Failure,
        );
        let Given::Unknown(nearest) = given("lamma 3.1 8b") else {
            panic!("no model has that name");
        };
        assert_eq!(nearest.first().map(|entry| entry.id), Some("llama-3.1-8b"));
    }

    #[test]
    fn every_card_is_a_preset() {
        for id in CARDS {
            assert!(presets::find(id).is_some(), "{id}");
        }
    }
}
