//! The files to run: shown, copied, saved, for the program of choice.

use leptos::prelude::*;

use super::browser;
use super::session::{Answer, Session};
use crate::export::{self, File, Files, Target};

/// The target's files, or what it cannot express.
fn files(answer: &Answer, target: &Target) -> Option<Files> {
    let estimate = answer.estimate.as_ref()?;
    Some((target.write)(&answer.scenario, estimate))
}

#[component]
pub fn Exports(session: Session) -> impl IntoView {
    let chosen = RwSignal::new(export::TARGETS.first());
    let files = Memo::new(move |_| {
        let target = chosen.get()?;
        session.answer.with(|answer| files(answer, target))
    });
    let shown = move || match files.get() {
        None => ().into_any(),
        Some(Ok(files)) => {
            let listings = files.into_iter().enumerate();
            listings
                .map(|(index, file)| view! { <Listing file first=index == 0/> })
                .collect_view()
                .into_any()
        }
        Some(Err(problems)) => {
            let items: Vec<_> = problems
                .iter()
                .map(|it| view! { <li>{it.to_string()}</li> })
                .collect();
            view! { <ul class="problems">{items}</ul> }.into_any()
        }
    };
    let all = move |_| {
        let archive = session.answer.with(|answer| {
            let estimate = answer.estimate.as_ref()?;
            Some(export::archive(&export::all(&answer.scenario, estimate)))
        });
        if let Some(archive) = archive {
            browser::download_bytes("headroom.zip", "application/zip", &archive);
        }
    };
    let checked = move || chosen.get().map(|it| it.versions);
    let options: Vec<_> = export::TARGETS
        .iter()
        .map(|it| view! { <option value=it.id>{it.title}</option> })
        .collect();
    view! {
        <section class="panel" class:stale=session.stale aria-labelledby="exports-title">
            <header>
                <h2 id="exports-title">"What to run"</h2>
                <label class="quiet" for="export-target">"Written for"</label>
                <select
                    id="export-target" class="plain"
                    on:change=move |event| chosen.set(export::target(&event_target_value(&event)))
                >{options}</select>
            </header>
            <p class="quiet checked">{checked}</p>
            <div class="actions">
                <button type="button" data-testid="export-zip" on:click=all>"All programs (.zip)"</button>
            </div>
            <div class="files">{shown}</div>
        </section>
    }
}

/// One file with its buttons; the first is open.
#[component]
fn Listing(file: File, first: bool) -> impl IntoView {
    let said = RwSignal::new("Copy");
    let kind = file.name.rsplit('.').next().unwrap_or_default();
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
            <details open=first>
                <summary>{file.name}</summary>
                // Focusable, so that the keyboard can scroll it.
                <pre class="listing" tabindex="0" role="region" aria-label=file.name>{file.contents}</pre>
            </details>
            <div class="actions">
                <button type="button" aria-label=format!("Copy {name}") on:click=copy>{said}</button>
                <button
                    type="button" aria-label=format!("Download {name}") data-testid=format!("export-{kind}")
                    on:click=save
                >"Download"</button>
            </div>
        </article>
    }
}
