//! The files to run: shown, copied, saved, for the program of choice.

use leptos::prelude::*;
use web_sys::Event;

use super::part::Part;
use super::session::{Answer, Session};
use super::signals::{memo, whenever};
use super::{browser, markup, text};
use crate::export::{self, File, Files, Target};
use crate::scenario::Problem;

/// The target's files, or what it cannot express.
fn files(answer: &Answer, target: &Target) -> Option<Files> {
    let estimate = answer.estimate.as_ref()?;
    Some((target.write)(&answer.scenario, estimate))
}

pub fn view(session: Session) -> Part {
    let chosen = RwSignal::new(export::TARGETS.first());
    let files = memo(move || {
        let target = chosen.get()?;
        session.answer.with(|answer| files(answer, target))
    });
    let names = memo(move || files.with(|it| it.as_ref().map(names)));
    // Tracking alone does not run a memo that nobody has read: it has to be read to be followed.
    let shown = move || {
        names.with(|_| files.with_untracked(|files| files.as_ref().map(html).unwrap_or_default()))
    };
    // The outside here is the listings: a file that is open stays open while its text changes.
    whenever(move |_| {
        files.with(|it| {
            let all = it.as_ref().and_then(|it| it.as_ref().ok());
            browser::set_texts("#files pre", |id| {
                let named = all.and_then(|it| it.iter().find(|it| id == it.name));
                named.map(|it| it.contents.clone()).unwrap_or_default()
            });
        });
    });
    let press = move |event: Event| {
        let meant = |attribute| {
            let name = browser::attribute_under(&event, attribute);
            files.with_untracked(|it| {
                let all = it.as_ref()?.as_ref().ok()?;
                all.iter().find(|it| it.name == name).cloned()
            })
        };
        if let Some(file) = meant("data-save") {
            browser::download(file.name, "text/plain", &file.contents);
        }
        if let Some(file) = meant("data-copy") {
            let pressed = event.clone();
            browser::copy(&file.contents, move |done| {
                let said = if done {
                    text::COPIED
                } else {
                    text::COPY_YOURSELF
                };
                browser::write_on(&pressed, said);
            });
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
    let checked = move || chosen.get().map_or("", |it| it.versions).into();
    let option = |it: &Target| format!("<option value=\"{}\">{}</option>", it.id, it.title);
    let options: String = export::TARGETS.iter().map(option).collect();
    Part::new(&format!(
        r#"<section class="panel" aria-labelledby="exports-title">
            <header>
                <h2 id="exports-title">What to run</h2>
                <label class="quiet" for="export-target">Written for</label>
                <select id="export-target" class="plain">{options}</select>
            </header>
            <p class="quiet checked"></p>
            <div class="actions">
                <button type="button" data-testid="export-zip">All programs (.zip)</button>
            </div>
            <div class="files" id="files"></div>
        </section>"#
    ))
    .class("", "stale", move || session.stale.get())
    .on("select", "change", move |event| {
        chosen.set(export::target(&browser::value_under(&event)));
    })
    .text(".checked", checked)
    .on(".actions", "click", all)
    .on("#files", "click", press)
    .html("#files", shown)
}

/// What the drawing is made anew for: which files there are, or why there are none.
fn names(files: &Files) -> Result<Vec<&'static str>, Vec<Problem>> {
    let names = |all: &Vec<File>| all.iter().map(|it| it.name).collect();
    files.as_ref().map(names).map_err(Clone::clone)
}

/// The files with their buttons, the first open; or what cannot be written.
fn html(files: &Files) -> String {
    let files = match files {
        Ok(files) => files,
        Err(problems) => {
            let item = |it: &Problem| format!("<li>{}</li>", markup::escape(&it.to_string()));
            let items: String = problems.iter().map(item).collect();
            return format!("<ul class=\"problems\">{items}</ul>");
        }
    };
    let mut html = String::new();
    for (at, File { name, contents, .. }) in files.iter().enumerate() {
        let kind = name.rsplit('.').next().unwrap_or_default();
        let open = if at == 0 { " open" } else { "" };
        // Focusable, so that the keyboard can scroll it.
        html.push_str(&format!(
            "<article class=\"file\"><details{open}><summary>{name}</summary>\
             <pre class=\"listing\" id=\"{name}\" tabindex=\"0\" role=\"region\" aria-label=\"{name}\">{}</pre></details>\
             <div class=\"actions\"><button type=\"button\" aria-label=\"Copy {name}\" data-copy=\"{name}\">{}</button>\
             <button type=\"button\" aria-label=\"Download {name}\" data-save=\"{name}\" \
             data-testid=\"export-{kind}\">Download</button></div></article>",
            markup::escape(contents),
            text::COPY
        ));
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_has_its_place_and_problems_are_not_trusted() {
        let file = File {
            name: "train.py",
            contents: "<b>".into(),
            executable: false,
        };
        let html = html(&Ok(vec![file]));
        assert!(
            html.contains("id=\"train.py\"") && html.contains("export-py"),
            "{html}"
        );
        assert!(html.contains("&lt;b&gt;"));
        let html = super::html(&Err(vec![Problem::new("a.b", "<i>", "one of <u>")]));
        assert!(html.starts_with("<ul") && !html.contains("<i>"), "{html}");
    }
}
