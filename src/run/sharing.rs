//! Sharing the answer: as a link, Markdown, YAML, a script or a drawing. Each has its origin and the link.

use leptos::ev::KeyboardEvent;
use leptos::html;
use leptos::prelude::*;

use crate::run::{picture, summary};
use crate::shared::browser;
use crate::shared::origin::origin;
use crate::shared::session::{Answer, Session};
use crate::shared::signals::memo;
use crate::text;
use headroom_base::document::yaml;
use headroom_base::units::UnitStyle;
use headroom_io::export;
use headroom_scenario::document;
use headroom_scenario::share;

/// The scenario as a YAML file.
fn scenario_yaml(answer: &Answer, origin: &str) -> String {
    let link = share::write(&answer.scenario);
    let head = yaml::comment(&format!("{origin}\nScenario: #{link}"));
    format!("{head}{}", yaml::write(&document::write(&answer.scenario)))
}

/// The script for the first program that can run this, plain PyTorch first.
pub fn script(answer: &Answer, origin: &str) -> Option<String> {
    let estimate = answer.estimate.as_ref()?;
    let mut written = export::targets()
        .iter()
        .filter_map(|target| (target.write)(&answer.scenario, estimate).ok());
    let script = written.find_map(|files| files.into_iter().find(|file| file.executable))?;
    let (first, rest) = script.contents.split_once('\n')?;
    Some(format!("{first}\n# {origin}\n{rest}"))
}

/// A button for the link, and a menu for the rest.
#[component]
pub fn Share() -> impl IntoView {
    let session = Session::current();
    let menu = NodeRef::<html::Details>::new();
    let address = move || browser::address(&session.link());
    let markdown = move || {
        let origin = origin(&browser::today());
        let write =
            |answer: &Answer| summary::markdown(answer, session.units.get(), &address(), &origin);
        session.answer.with(write).unwrap_or_default()
    };
    let has_script = memo(move || session.answer.with(|answer| script(answer, "").is_some()));
    let close = move || {
        if let Some(menu) = menu.get_untracked() {
            menu.set_open(false);
            browser::focus("[data-testid=share] summary");
        }
    };
    let on_key = move |event: KeyboardEvent| {
        // Reads the element itself, since its `toggle` event may come after the next key.
        if event.key() == "Escape" && menu.get_untracked().is_some_and(|menu| menu.open()) {
            close();
        }
    };
    let save =
        move |write: fn(&Saved) -> Option<String>, name: &'static str, kind: &'static str| {
            move |_| {
                let saved = Saved {
                    answer: session.answer.get_untracked(),
                    units: session.units.get_untracked(),
                    address: untrack(address),
                    origin: origin(&browser::today()),
                };
                if let Some(file) = write(&saved) {
                    browser::download(name, kind, &file);
                }
                close();
            }
        };
    let save_yaml = save(
        |saved| Some(scenario_yaml(&saved.answer, &saved.origin)),
        "scenario.yaml",
        "text/plain",
    );
    let save_script = save(
        |saved| script(&saved.answer, &saved.origin),
        "run.sh",
        "text/plain",
    );
    let save_drawing = save(
        |saved| picture::picture(&saved.answer, saved.units, &saved.address, &saved.origin),
        "headroom.svg",
        "image/svg+xml",
    );
    let no_answer = move || session.estimate.with(Option::is_none);
    view! {
        <details class="menu" data-testid="share" node_ref=menu on:keydown=on_key>
            <summary>{text::SHARE}</summary>
            <div class="items" role="group" aria-label=text::SHARE>
                <Copy
                    name="Copy link"
                    class="plain"
                    testid="copy-link"
                    content=Signal::derive(address)
                />
                <Copy
                    name="Copy Markdown"
                    class="plain"
                    testid="copy-markdown"
                    content=Signal::derive(markdown)
                />
                <button type="button" class="plain" data-share="yaml" on:click=save_yaml>
                    "Download YAML"
                </button>
                <button
                    type="button"
                    class="plain"
                    data-share="sh"
                    disabled=move || !has_script.get()
                    on:click=save_script
                >
                    "Download shell script"
                </button>
                <button
                    type="button"
                    class="plain"
                    data-share="svg"
                    disabled=no_answer
                    on:click=save_drawing
                >
                    "Download picture (SVG)"
                </button>
            </div>
        </details>
    }
}

/// Everything that saved files need.
struct Saved {
    answer: Answer,
    units: UnitStyle,
    address: String,
    origin: String,
}

/// A copy button that confirms until its content changes.
#[component]
fn Copy(
    name: &'static str,
    class: &'static str,
    testid: &'static str,
    content: Signal<String>,
) -> impl IntoView {
    let copied = RwSignal::new(None::<(String, bool)>);
    let copy = move |_| {
        let text = content.get_untracked();
        browser::copy(&text.clone(), move |done| {
            copied.try_set(Some((text, done)));
        });
    };
    let label = move || match copied.get() {
        Some((text, true)) if text == content.get() => text::COPIED,
        Some((_, false)) => "Copying was refused",
        _ => name,
    };
    view! {
        <button type="button" class=class data-testid=testid on:click=copy>
            <span aria-live="polite">{label}</span>
        </button>
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::field::open::{Opened, opened};
    use crate::shared::sample;
    use headroom_scenario::Scenario;
    use headroom_scenario::resolve::resolve;

    #[test]
    fn shared_files_have_their_origin_and_open_again() {
        let mut scenario = Scenario::default();
        scenario.data.micro_batch = 3;
        let answer = Answer {
            estimate: Some(Arc::new(sample::estimate())),
            scenario: Arc::new(scenario),
            ..Answer::default()
        };
        let origin = origin("2026-01-02");
        for file in [
            scenario_yaml(&answer, &origin),
            script(&answer, &origin).unwrap(),
        ] {
            let line = format!(
                "# Headroom {}, data 1, 2026-01-02\n",
                env!("CARGO_PKG_VERSION")
            );
            assert!(file.contains(&line), "{file}");
            match opened("", &file, &Scenario::default()) {
                Opened::Scenario { draft, .. } => {
                    assert_eq!(resolve(&draft).scenario.data.micro_batch, 3);
                }
                other => panic!("{other:?}"),
            }
        }
    }
}
