//! A network of one's own: its rows to edit, its text beside them, and examples to start from.

mod examples;
mod html;
mod rows;

use leptos::ev::{Event, FocusEvent, MouseEvent};
use leptos::prelude::*;

use self::examples::EXAMPLES;
use self::rows::Mark;
use super::session::Session;
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
        let marks = Memo::new(move |_| {
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
    fn pressed(self, event: &MouseEvent) {
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

#[component]
pub fn NetworkEditor(session: Session) -> impl IntoView {
    let open = RwSignal::new(untrack(|| {
        session.scenario.with(|it| it.model.network.is_some())
    }));
    let editor = Editor::new(session);
    view! {
        <section class="panel screen-only" aria-labelledby="network-title" data-testid="network">
            <details class="more" id="network" open=open on:toggle=move |event| open.set(browser::is_open(&event))>
                <summary><h2 id="network-title">{text::NETWORK}</h2></summary>
                {move || editor.filter(|_| open.get()).map(|editor| view! { <Rows editor/> })}
            </details>
        </section>
    }
}

#[component]
fn Rows(editor: Editor) -> impl IntoView {
    let shown = Memo::new(move |before: Option<&String>| {
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
    Effect::new(move || editor.show_marks());
    let about = RwSignal::new("");
    let explain = move |event: FocusEvent| {
        let at = browser::attribute_under(&event, "data-row").parse::<usize>();
        let row = at.ok().and_then(|at| editor.rows().into_iter().nth(at));
        about.set(row.and_then(|it| it.known()).map_or("", |it| it.about));
    };
    let whole = move || {
        let of = |it: &Mark| it.row.is_none().then(|| it.says.clone());
        editor.marks.with(|it| it.iter().find_map(of))
    };
    let empty = Memo::new(move |_| editor.text().is_empty());
    let start = move |event: MouseEvent| {
        let at = browser::attribute_under(&event, "data-example").parse::<usize>();
        if let Some((_, text)) = at.ok().and_then(|at| EXAMPLES.get(at)) {
            editor.start(text);
        }
    };
    let examples: Vec<_> = (0..)
        .zip(EXAMPLES)
        .map(|(at, (name, _)): (usize, _)| view! { <button type="button" data-example=at.to_string()>{name}</button> })
        .collect();
    view! {
        <p class="quiet">{text::NETWORK_ABOUT}</p>
        <div class="actions" on:click=start role="group" aria-label=text::EXAMPLES>
            <span class="quiet">{text::EXAMPLES}</span>
            {examples}
            <button type="button" class="plain" hidden=move || empty.get() on:click=move |_| editor.start("")>
                {text::BACK_TO_CATALOGUE}
            </button>
        </div>
        <div class="network">
            <div>
                <ol
                    id="network-rows" class="rows" hidden=move || empty.get() inner_html=shown
                    on:input=move |event| editor.typed(&event)
                    on:change=move |_| editor.session.rest()
                    on:click=move |event| editor.pressed(&event)
                    on:focusin=explain
                ></ol>
                <p class="hint wrong" role="status">{whole}</p>
                <p class="quiet" aria-hidden="true">{about}</p>
            </div>
            <AsText editor/>
        </div>
    }
}

/// The compact text, a statement a line.
#[component]
fn AsText(editor: Editor) -> impl IntoView {
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
        let text = event_target_value(&event);
        own.set_value(Some(text.clone()));
        editor.own.set_value(None);
        editor.session.enter(editor.setting, &text);
    };
    view! {
        <label class="as-text">
            <span class="quiet">{text::AS_TEXT}</span>
            <textarea
                class="listing" rows="14" spellcheck="false" id="network-text"
                aria-invalid=move || editor.marks.with(|it| !it.is_empty()).to_string()
                prop:value=shown on:input=typed on:change=move |_| editor.session.rest()
            ></textarea>
        </label>
    }
}
