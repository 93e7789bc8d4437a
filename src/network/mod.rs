//! A network of one's own: its rows to edit, its text beside them, and examples to start from.

mod examples;
mod fields;
mod rows;

use leptos::prelude::*;

use self::examples::EXAMPLES;
use self::fields::{Line, OneLine, lines};
use self::rows::{Mark, Row};
use super::advice::tell_open;
use super::exports::Copy;
use super::session::Session;
use super::signals::{memo, memo_after};
use super::{browser, text};
use headroom_scenario::settings::{self, Setting};
use headroom_scenario::{Scenario, network};

/// The panel's state.
#[derive(Clone, Copy)]
pub struct Editor {
    session: Session,
    setting: &'static Setting,
    /// The text that the rows show because it was typed into them: they must not be drawn anew under the cursor.
    own: StoredValue<Option<String>>,
    marks: Memo<Vec<Mark>>,
    /// What is said of the row that has the keyboard.
    about: RwSignal<&'static str>,
}

impl Editor {
    fn new() -> Option<Self> {
        let session = Session::current();
        let setting = settings::find(network::FIELD)?;
        let marks = memo(move || {
            let text = session.text(setting);
            let of = |scenario: &Scenario| {
                let data = &scenario.data;
                network::problems(&text, &scenario.model.dims, data.micro_batch, data.sequence)
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
            about: RwSignal::new(""),
        })
    }

    /// The editor of the panel that a component is part of.
    fn current() -> Self {
        expect_context()
    }

    fn text(self) -> String {
        self.session.text(self.setting)
    }

    fn rows(self) -> Vec<Row> {
        rows::rows(&untrack(|| self.text()))
    }

    /// A field of a row was typed in.
    fn typed(self, at: usize, field: &str, value: &str) {
        let mut all = self.rows();
        rows::set(&mut all, at, field, value);
        self.keep_typed(&all);
    }

    /// A named size was typed in: its name, or its value.
    fn typed_size(self, at: usize, index: usize, name: Option<&str>, value: &str) {
        let mut all = self.rows();
        rows::set_size(&mut all, at, index, name, value);
        self.keep_typed(&all);
    }

    fn keep_typed(self, rows: &[Row]) {
        let text = rows::text(rows);
        self.own.set_value(Some(text.clone()));
        self.session.enter(self.setting, &text);
    }

    fn add(self, part: usize, kind: &str) {
        let mut all = self.rows();
        let at = rows::add(&mut all, kind, part);
        self.change(&all, format!("[data-row=\"{at}\"]"));
    }

    fn shift(self, at: usize, up: bool) {
        let mut all = self.rows();
        let at = rows::shift(&mut all, at, up);
        let what = if up { "up" } else { "down" };
        self.change(&all, format!("[data-row=\"{at}\"][data-do=\"{what}\"]"));
    }

    fn up(self, at: usize) {
        self.shift(at, true);
    }

    fn down(self, at: usize) {
        self.shift(at, false);
    }

    fn remove(self, at: usize) {
        let mut all = self.rows();
        rows::remove(&mut all, at);
        let at = at.min(all.len().saturating_sub(1));
        self.change(&all, format!("[data-row=\"{at}\"]"));
    }

    fn add_size(self, at: usize) {
        let mut all = self.rows();
        rows::add_size(&mut all, at);
        self.change(&all, "li.top .size:last-of-type input".into());
    }

    fn remove_size(self, at: usize, index: usize) {
        let mut all = self.rows();
        rows::remove_size(&mut all, at, index);
        self.change(&all, "[data-do=\"add-size\"]".into());
    }

    /// Takes rows that a button made; the keyboard stays where the work goes on.
    fn change(self, rows: &[Row], then: String) {
        self.own.set_value(None);
        self.session.rest();
        self.session.enter(self.setting, &rows::text(rows));
        self.session.rest();
        browser::focus_soon(format!("#network-rows {then}"));
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

/// The editor, folded until it is used.
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
            <details class="more" id="network" open=declared on:toggle=move |event| tell_open(&event, open)>
                <summary><h3 id="network-title">{text::NETWORK}</h3></summary>
                <div class="contents">{rows}</div>
                <Record/>
            </details>
        </section>
    }
}

/// How a model that exists in Python comes here.
#[component]
fn Record() -> impl IntoView {
    view! {
        <div class="record">
            <h4>{text::RECORD}</h4>
            <p class="quiet">{text::RECORD_ABOUT}</p>
            <pre class="listing" tabindex="0" role="region" aria-label=text::RECORD>{text::RECORD_LINES}</pre>
            <div class="actions">
                <Copy name=text::COPY label=text::RECORD_LABEL read=|| text::RECORD_LINES.into() main=false/>
            </div>
        </div>
    }
}

/// The lines of the list, and how often they have been drawn.
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
    // A line drawn anew is another: its fields show what they hold now.
    let all = move || {
        let (times, lines) = drawn.get();
        let key = move |(at, line): (usize, Line)| ((times, at), line);
        lines.into_iter().enumerate().map(key).collect::<Vec<_>>()
    };
    let whole = move || {
        let of = |mark: &Mark| mark.row.is_none().then(|| mark.says.clone());
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

/// The compact text, a statement a line.
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
                on:input:target=move |event| typed(event.target().value()) on:change=move |_| editor.session.rest()></textarea>
        </label>
    }
}
