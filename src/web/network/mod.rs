//! A network of one's own: its rows to edit, its text beside them, and examples to start from.

mod examples;
mod html;
mod rows;

use leptos::prelude::*;
use web_sys::Event;

use self::examples::EXAMPLES;
use self::rows::Mark;
use super::part::Part;
use super::session::Session;
use super::signals::{memo, memo_after, whenever};
use super::{browser, text};
use crate::scenario::settings::{self, Setting};
use crate::scenario::{Scenario, network};

/// The panel's state.
#[derive(Clone, Copy)]
struct Editor {
    session: Session,
    setting: &'static Setting,
    /// The text that the rows show because it was typed into them: they must not be drawn anew under the cursor.
    own: StoredValue<Option<String>>,
    marks: Memo<Vec<Mark>>,
}

impl Editor {
    fn new(session: Session) -> Option<Self> {
        let setting = settings::find(network::FIELD)?;
        let marks = memo(move || {
            let text = session.text(setting);
            let of = |it: &Scenario| {
                let data = &it.data;
                network::problems(&text, &it.model.dims, data.micro_batch, data.sequence)
            };
            if text.is_empty() {
                return Vec::new();
            }
            rows::marks(&rows::rows(&text), &session.scenario.with(of))
        });
        Some(Self {
            session,
            setting,
            own: StoredValue::new(None),
            marks,
        })
    }

    fn text(self) -> String {
        self.session.text(self.setting)
    }

    fn rows(self) -> Vec<rows::Row> {
        rows::rows(&untrack(|| self.text()))
    }

    /// A field was typed in.
    fn typed(self, event: &Event) {
        let under = |name| browser::attribute_under(event, name);
        let Ok(at) = under("data-row").parse() else {
            return;
        };
        let value = browser::value_under(event);
        let mut all = self.rows();
        match under("data-size").parse() {
            Ok(index) if under("data-what") == text::SIZE_NAME => {
                rows::set_size(&mut all, at, index, Some(&value), "");
            }
            Ok(index) => rows::set_size(&mut all, at, index, None, &value),
            Err(_) => rows::set(&mut all, at, &under("data-field"), &value),
        }
        let text = rows::text(&all);
        self.own.set_value(Some(text.clone()));
        self.session.enter(self.setting, &text);
    }

    /// A button was pressed; the keyboard stays where the work goes on.
    fn pressed(self, event: &Event) {
        let under = |name| browser::attribute_under(event, name);
        let (what, kind) = (under("data-do"), under("data-kind"));
        let at: usize = under("data-row").parse().unwrap_or(0);
        let size: usize = under("data-size").parse().unwrap_or(0);
        let mut all = self.rows();
        let then = match &*what {
            "add" => {
                let at = rows::add(&mut all, &kind, at);
                format!("[data-row=\"{at}\"]")
            }
            "up" | "down" => {
                let at = rows::shift(&mut all, at, what == "up");
                format!("[data-row=\"{at}\"][data-do=\"{what}\"]")
            }
            "remove" => {
                rows::remove(&mut all, at);
                format!("[data-row=\"{}\"]", at.min(all.len().saturating_sub(1)))
            }
            "add-size" => {
                rows::add_size(&mut all, at);
                "li.top .size:last-of-type input".into()
            }
            "remove-size" => {
                rows::remove_size(&mut all, at, size);
                "[data-do=\"add-size\"]".into()
            }
            _ => return,
        };
        self.own.set_value(None);
        self.session.rest();
        self.session.enter(self.setting, &rows::text(&all));
        self.session.rest();
        browser::focus_soon(format!("#network-rows {then}"));
    }

    /// What is wrong, for the fields that are on the screen.
    fn show_marks(self) {
        let rows = self.rows();
        self.marks.with(|marks| {
            let of = |mark: &Mark| {
                let at = mark.row?;
                Some(html::field_id(at, rows.get(at)?, &mark.field))
            };
            let wrong: Vec<_> = marks.iter().filter_map(of).collect();
            browser::mark_invalid(
                "#network-rows [data-field], #network-rows [data-size]",
                &wrong,
            );
            browser::set_texts("#network-rows .hint", |id| {
                let of = |it: &&Mark| it.row.is_some_and(|at| html::id(at, "") == id);
                let found = marks.iter().find(of);
                found.map(|it| it.says.clone()).unwrap_or_default()
            });
        });
    }

    /// Starts from an example, or from the catalogue again; either can be undone.
    fn start(self, text: &str) {
        let mut scenario = self.session.scenario.get_untracked();
        scenario.model.dims.clear();
        if self.setting.set(&mut scenario, text).is_ok() {
            self.own.set_value(None);
            self.session.replace(scenario);
        }
    }
}

pub fn view(session: Session) -> Part {
    let open = RwSignal::new(untrack(|| {
        session.scenario.with(|it| it.model.network.is_some())
    }));
    let editor = Editor::new(session);
    Part::new(&format!(
        r#"<section class="panel screen-only" aria-labelledby="network-title" data-testid="network">
            <details class="more" id="network">
                <summary><h2 id="network-title">{}</h2></summary>
                <div class="contents"></div>
            </details>
        </section>"#,
        text::NETWORK
    ))
    .flag("details", "open", move || open.get())
    .tells_open("details", open)
    .shows(".contents", move || {
        editor.filter(|_| open.get()).as_ref().map(in_rows)
    })
}

fn in_rows(&editor: &Editor) -> Part {
    let shown = memo_after(move |before: Option<&String>| {
        let text = editor.text();
        match before {
            Some(before) if editor.own.get_value().as_ref() == Some(&text) => before.clone(),
            _ if text.is_empty() => String::new(),
            _ => {
                editor.own.set_value(None);
                untrack(|| {
                    editor
                        .marks
                        .with(|marks| html::html(&rows::rows(&text), marks))
                })
            }
        }
    });
    // The outside here is the fields: they are not drawn anew while they are typed in.
    whenever(move |_| editor.show_marks());
    let about = RwSignal::new("");
    let explain = move |event: Event| {
        let at = browser::attribute_under(&event, "data-row").parse::<usize>();
        let row = at.ok().and_then(|at| editor.rows().into_iter().nth(at));
        about.set(row.and_then(|it| it.known()).map_or("", |it| it.about));
    };
    let whole = move || {
        let of = |it: &Mark| it.row.is_none().then(|| it.says.clone());
        editor.marks.with(|it| it.iter().find_map(of))
    };
    let empty = memo(move || editor.text().is_empty());
    let start = move |event: Event| {
        let at = browser::attribute_under(&event, "data-example").parse::<usize>();
        if let Some((_, text)) = at.ok().and_then(|at| EXAMPLES.get(at)) {
            editor.start(text);
        }
    };
    let example = |(at, (name, _)): (usize, &(&str, &str))| {
        format!("<button type=\"button\" data-example=\"{at}\">{name}</button>")
    };
    let examples: String = EXAMPLES.iter().enumerate().map(example).collect();
    Part::new(&format!(
        r#"<p class="quiet">{}</p>
        <div class="actions" role="group" aria-label="{named}">
            <span class="quiet">{named}</span>
            {examples}
            <button type="button" class="plain">{}</button>
        </div>
        <div class="network">
            <div>
                <ol id="network-rows" class="rows"></ol>
                <p class="hint wrong" role="status"></p>
                <p class="quiet about-row" aria-hidden="true"></p>
            </div>
            <slot name="text"></slot>
        </div>"#,
        text::NETWORK_ABOUT,
        text::BACK_TO_CATALOGUE,
        named = text::EXAMPLES,
    ))
    .on(".actions", "click", start)
    .flag(".plain", "hidden", move || empty.get())
    .on(".plain", "click", move |_| editor.start(""))
    .flag("ol", "hidden", move || empty.get())
    .html("ol", move || shown.get())
    .on("ol", "input", move |event| editor.typed(&event))
    .on("ol", "change", move |_| editor.session.rest())
    .on("ol", "click", move |event| editor.pressed(&event))
    .on("ol", "focusin", explain)
    .text(".network .wrong", move || whole().unwrap_or_default())
    .text(".about-row", move || about.get().into())
    .put("text", as_text(&editor))
}

/// The compact text, a statement a line.
fn as_text(&editor: &Editor) -> Part {
    let own = StoredValue::new(None::<String>);
    let shown = move || {
        let text = editor.text();
        if own.get_value().as_ref() == Some(&text) {
            text
        } else {
            text.replace(";\n", ";").replace(';', ";\n")
        }
    };
    let typed = move |event| {
        let text = browser::value_under(&event);
        own.set_value(Some(text.clone()));
        editor.own.set_value(None);
        editor.session.enter(editor.setting, &text);
    };
    let wrong = move || editor.marks.with(|it| !it.is_empty()).to_string();
    Part::new(&format!(
        r#"<label class="as-text">
            <span class="quiet">{}</span>
            <textarea class="listing" rows="14" spellcheck="false" id="network-text"></textarea>
        </label>"#,
        text::AS_TEXT
    ))
    .attribute("textarea", "aria-invalid", wrong)
    .value("textarea", shown)
    .on("textarea", "input", typed)
    .on("textarea", "change", move |_| editor.session.rest())
}
