//! Handing the answer on: as a link, in words, as a scenario, as a script, as a drawing. Each says when and with what it
//! was made, and carries the link.

use std::rc::Rc;

use leptos::prelude::*;
use web_sys::Event;

use super::origin::origin;
use super::part::Part;
use super::session::{Answer, Session};
use super::{browser, picture, summary, text};
use crate::document::yaml;
use crate::export;
use crate::scenario::document;
use crate::share;

/// The scenario as a file that the page and the command line read.
fn scenario_yaml(answer: &Answer, origin: &str) -> String {
    let link = share::write(&answer.scenario);
    let head = yaml::comment(&format!("{origin}\nScenario: #{link}"));
    format!("{head}{}", yaml::write(&document::write(&answer.scenario)))
}

/// The script of the first program that can run this, plain PyTorch before all others.
pub fn script(answer: &Answer, origin: &str) -> Option<String> {
    let estimate = answer.estimate.as_ref()?;
    let mut written = export::TARGETS
        .iter()
        .filter_map(|it| (it.write)(&answer.scenario, estimate).ok());
    let script = written.find_map(|files| files.into_iter().find(|it| it.executable))?;
    let (first, rest) = script.contents.split_once('\n')?;
    Some(format!("{first}\n# {origin}\n{rest}"))
}

/// The link one press away, the rest behind it.
pub fn view(session: Session) -> Part {
    let address = move || browser::address(&session.link());
    let open = RwSignal::new(false);
    let save = move |event: Event| {
        let origin = origin(&browser::today());
        let address = untrack(address);
        let answer = session.answer.get_untracked();
        match &*browser::attribute_under(&event, "data-share") {
            "yaml" => {
                let file = scenario_yaml(&answer, &origin);
                browser::download("scenario.yaml", "text/plain", &file);
            }
            "sh" => {
                let file = script(&answer, &origin).unwrap_or_default();
                browser::download("run.sh", "text/plain", &file);
            }
            "svg" => {
                let units = session.units.get_untracked();
                let file = picture::picture(&answer, units, &address, &origin);
                browser::download("headroom.svg", "image/svg+xml", &file.unwrap_or_default());
            }
            _ => return,
        }
        open.set(false);
    };
    let page = move || {
        let origin = origin(&browser::today());
        let of = |it: &Answer| summary::markdown(it, session.units.get(), &address(), &origin);
        session.answer.with(of).unwrap_or_default()
    };
    let none = move || session.estimate.with(Option::is_none);
    let no_script = move || open.get() && session.answer.with(|it| script(it, "").is_none());
    let escape = move |event: Event| {
        if browser::key(&event) == "Escape" && open.get_untracked() {
            open.set(false);
            browser::focus("[data-testid=share] summary");
        }
    };
    let share = text::SHARE;
    Part::new(&format!(
        r#"<slot name="link"></slot>
        <details class="menu" data-testid="share">
            <summary>{share}</summary>
            <div class="items" role="group" aria-label="{share}">
                <slot name="page"></slot>
                <button type="button" class="plain" data-share="yaml">Download YAML</button>
                <button type="button" class="plain" data-share="sh">Download shell script</button>
                <button type="button" class="plain" data-share="svg">Download drawing (SVG)</button>
            </div>
        </details>"#
    ))
    .flag("details", "open", move || open.get())
    .tells_open("details", open)
    .on("details", "keydown", escape)
    .on(".items", "click", save)
    .flag("[data-share=sh]", "disabled", no_script)
    .flag("[data-share=svg]", "disabled", none)
    .put(
        "link",
        copy("Copy link", "primary", "copy-link", Rc::new(address)),
    )
    .put(
        "page",
        copy("Copy Markdown", "plain", "copy-markdown", Rc::new(page)),
    )
}

/// A button that copies, and says so until what it copies changes.
fn copy(name: &'static str, class: &str, testid: &str, what: Rc<dyn Fn() -> String>) -> Part {
    let copied = RwSignal::new(None::<(String, bool)>);
    let now = what.clone();
    let copy = move |_| {
        let text = untrack(|| now());
        browser::copy(&text.clone(), move |done| {
            copied.try_set(Some((text, done)));
        });
    };
    let said = move || match copied.get() {
        Some((text, true)) if text == what() => text::COPIED.into(),
        Some((_, false)) => "Copying was refused".into(),
        _ => name.into(),
    };
    Part::new(&format!(
        r#"<button type="button" class="{class}" data-testid="{testid}"><span aria-live="polite"></span></button>"#
    ))
    .text("span", said)
    .on("", "click", copy)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::scenario::Scenario;
    use crate::web::open::{Opened, opened};
    use crate::web::sample;

    #[test]
    fn what_is_shared_says_its_origin_and_opens_again() {
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
            match opened(&file) {
                Opened::Scenario { scenario, .. } => assert_eq!(scenario.data.micro_batch, 3),
                other => panic!("{other:?}"),
            }
        }
    }
}
