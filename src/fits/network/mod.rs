//! The editor of a custom network: rows, text, and examples.

mod editor;
mod examples;
mod fields;
mod rows;

use leptos::prelude::*;

use self::editor::Editor;
use self::examples::EXAMPLES;
use self::fields::{Line, OneLine, lines};
use self::rows::Mark;
use crate::shared::browser;
use crate::shared::copy::CopyButton;
use crate::shared::session::Session;
use crate::shared::signals::{memo, memo_after, track_open};
use crate::text;

/// The editor, collapsed until it is used.
#[component]
pub fn OwnNetwork() -> impl IntoView {
    let session = Session::current();
    let declared = untrack(|| {
        session
            .scenario
            .with(|scenario| scenario.model.network.is_some())
    });
    let open = RwSignal::new(declared);
    let editor = Editor::new();
    let rows = move || {
        editor.filter(|_| open.get()).map(|editor| {
            provide_context(editor);
            view! { <InRows/> }
        })
    };

    view! {
        <section class="panel screen-only" aria-labelledby="network-title" data-testid="network">
            <details class="more" id="network" open=declared on:toggle=move |event| track_open(&event, open)>
                <summary><h3 id="network-title">{text::NETWORK}</h3></summary>
                <div class="contents">{rows}</div>
                <Record/>
            </details>
        </section>
    }
}

/// How to import a model that exists in Python.
#[component]
fn Record() -> impl IntoView {
    view! {
        <div class="record">
            <h4>{text::RECORD}</h4>
            <p class="quiet">{text::RECORD_ABOUT}</p>
            <pre class="listing" tabindex="0" role="region" aria-label=text::RECORD>{text::RECORD_LINES}</pre>
            <div class="actions">
                <CopyButton name=text::COPY label=text::RECORD_LABEL read=|| text::RECORD_LINES.into() main=false/>
            </div>
        </div>
    }
}

/// The lines of the list, and a counter of redraws.
type Drawn = (u32, Vec<Line>);

#[component]
fn InRows() -> impl IntoView {
    let editor = Editor::current();
    let drawn = memo_after(move |before: Option<&Drawn>| {
        let text = editor.text();
        match before {
            Some(before) if editor.own.get_value().as_ref() == Some(&text) => before.clone(),
            _ if text.is_empty() => (0, Vec::new()),
            before => {
                editor.own.set_value(None);
                let times = before.map_or(0, |(times, _)| times.wrapping_add(1));
                (times, lines(&rows::rows(&text)))
            }
        }
    });
    // A redrawn line is a new element, so its fields show their current content.
    let all = move || {
        let (times, lines) = drawn.get();
        let key = move |(at, line): (usize, Line)| ((times, at), line);
        lines.into_iter().enumerate().map(key).collect::<Vec<_>>()
    };
    let whole = move || {
        let of = |mark: &Mark| mark.row.is_none().then(|| mark.message.clone());
        editor.marks.with(|marks| marks.iter().find_map(of))
    };
    let empty = memo(move || editor.text().is_empty());
    let example = move |(at, (name, network)): (usize, &(&'static str, &'static str))| {
        let (name, network) = (*name, *network);
        view! { <button type="button" data-example=at on:click=move |_| editor.start(network)>{name}</button> }
    };
    let back = move |_| {
        editor.start("");
        browser::focus_soon("#network > summary".into());
    };
    view! {
        <p class="quiet">{text::NETWORK_ABOUT}</p>
        <div class="actions" role="group" aria-label=text::EXAMPLES>
            <span class="quiet">{text::EXAMPLES}</span>
            {EXAMPLES.iter().enumerate().map(example).collect_view()}
            <button type="button" class="plain" hidden=move || empty.get() on:click=back>{text::BACK_TO_CATALOGUE}</button>
        </div>
        <div class="network" class:empty=move || empty.get()>
            <div>
                <ol id="network-rows" class="rows" hidden=move || empty.get()>
                    <For each=all key=|(key, _)| *key let((_, line))>
                        <OneLine line/>
                    </For>
                </ol>
                <p class="hint wrong" role="status">{whole}</p>
                <p class="quiet about-row" aria-hidden="true">{editor.about}</p>
            </div>
            <AsText/>
        </div>
    }
}

/// The compact text, one statement per line.
#[component]
fn AsText() -> impl IntoView {
    let editor = Editor::current();
    let own = StoredValue::new(None::<String>);
    let shown = move || {
        let text = editor.text();
        if own.get_value().as_ref() == Some(&text) {
            text
        } else {
            text.replace(";\n", ";").replace(';', ";\n")
        }
    };
    let typed = move |text: String| {
        own.set_value(Some(text.clone()));
        editor.own.set_value(None);
        editor.session.enter(editor.setting, &text);
    };
    let wrong = move || editor.marks.with(|marks| !marks.is_empty()).to_string();
    view! {
        <label class="as-text">
            <span class="quiet">{text::AS_TEXT}</span>
            <textarea class="listing" rows="14" spellcheck="false" id="network-text" aria-invalid=wrong prop:value=shown
                on:input:target=move |event| typed(event.target().value()) on:change=move |_| editor.session.end_edit()></textarea>
        </label>
    }
}
