//! The files to run: shown, copied, saved.

use leptos::prelude::*;

use super::browser;
use super::session::{Answer, Session};
use crate::export::{self, File, Files};

/// The files of the first target, or what it cannot express.
fn files(answer: &Answer) -> Option<Files> {
    let estimate = answer.estimate.as_ref()?;
    let target = export::TARGETS.first()?;
    Some((target.write)(&answer.scenario, estimate))
}

#[component]
pub fn Exports(session: Session) -> impl IntoView {
    let files = Memo::new(move |_| session.answer.with(files));
    let shown = move || match files.get() {
        None => ().into_any(),
        Some(Ok(files)) => files
            .into_iter()
            .map(|file| view! { <Listing file/> })
            .collect_view()
            .into_any(),
        Some(Err(problems)) => {
            let items: Vec<_> = problems
                .iter()
                .map(|it| view! { <li>{it.to_string()}</li> })
                .collect();
            view! { <ul class="problems">{items}</ul> }.into_any()
        }
    };
    view! {
        <section class="panel" class:stale=move || session.answer.with(|it| it.stale) aria-labelledby="exports-title">
            <header><h2 id="exports-title">"What to run"</h2></header>
            <div class="pair">{shown}</div>
        </section>
    }
}

/// One file with its buttons.
#[component]
fn Listing(file: File) -> impl IntoView {
    let said = RwSignal::new("Copy");
    let kind = if file.name.ends_with(".yaml") {
        "yaml"
    } else {
        "shell"
    };
    let copied = file.contents.clone();
    let copy = move |_| {
        browser::copy(&copied, move |done| {
            said.try_set(if done {
                "Copied"
            } else {
                "Select and press Ctrl+C"
            });
        });
    };
    let (name, saved) = (file.name, file.contents.clone());
    let save = move |_| browser::download(name, "text/plain", &saved);
    view! {
        <article class="file">
            <header class="actions">
                <h3>{file.name}</h3>
                <button type="button" on:click=copy><span aria-live="polite">{said}</span></button>
                <button type="button" data-testid=format!("export-{kind}") on:click=save>"Download"</button>
            </header>
            // Focusable, so that the keyboard can scroll it.
            <pre class="listing" tabindex="0" aria-label=file.name>{file.contents}</pre>
        </article>
    }
}
