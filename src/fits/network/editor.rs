//! The state of the network editor, and its actions.

use leptos::prelude::*;

use super::rows::{self, Mark, Row};
use crate::shared::browser;
use crate::shared::session::Session;
use crate::shared::signals::memo;
use headroom_scenario::settings::{self, Setting};
use headroom_scenario::{Scenario, network};

/// The panel's state.
#[derive(Clone, Copy)]
pub struct Editor {
    pub session: Session,
    pub setting: &'static Setting,
    /// The text that came from typing into the rows: they must not be redrawn under the cursor.
    pub own: StoredValue<Option<String>>,
    pub marks: Memo<Vec<Mark>>,
    /// The help of the focused row.
    pub about: RwSignal<&'static str>,
}

impl Editor {
    pub fn new() -> Option<Self> {
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
    pub fn current() -> Self {
        expect_context()
    }

    pub fn text(self) -> String {
        self.session.text(self.setting)
    }

    pub fn rows(self) -> Vec<Row> {
        rows::rows(&untrack(|| self.text()))
    }

    /// A field of a row was typed in.
    pub fn typed(self, at: usize, field: &str, value: &str) {
        let mut all = self.rows();
        rows::set(&mut all, at, field, value);
        self.keep_typed(&all);
    }

    /// A named size was typed in: its name, or its value.
    pub fn typed_size(self, at: usize, index: usize, name: Option<&str>, value: &str) {
        let mut all = self.rows();
        rows::set_size(&mut all, at, index, name, value);
        self.keep_typed(&all);
    }

    fn keep_typed(self, rows: &[Row]) {
        let text = rows::text(rows);
        self.own.set_value(Some(text.clone()));
        self.session.enter(self.setting, &text);
    }

    pub fn add(self, part: usize, kind: &str) {
        let mut all = self.rows();
        let at = rows::add(&mut all, kind, part);
        self.change(&all, format!("[data-row=\"{at}\"]"));
    }

    pub fn shift(self, at: usize, up: bool) {
        let mut all = self.rows();
        let at = rows::shift(&mut all, at, up);
        let what = if up { "up" } else { "down" };
        self.change(&all, format!("[data-row=\"{at}\"][data-do=\"{what}\"]"));
    }

    pub fn up(self, at: usize) {
        self.shift(at, true);
    }

    pub fn down(self, at: usize) {
        self.shift(at, false);
    }

    pub fn remove(self, at: usize) {
        let mut all = self.rows();
        rows::remove(&mut all, at);
        let at = at.min(all.len().saturating_sub(1));
        self.change(&all, format!("[data-row=\"{at}\"]"));
    }

    pub fn add_size(self, at: usize) {
        let mut all = self.rows();
        rows::add_size(&mut all, at);
        self.change(&all, "li.top .size:last-of-type input".into());
    }

    pub fn remove_size(self, at: usize, index: usize) {
        let mut all = self.rows();
        rows::remove_size(&mut all, at, index);
        self.change(&all, "[data-do=\"add-size\"]".into());
    }

    /// Applies rows changed by a button, and moves the focus to `then`.
    fn change(self, rows: &[Row], then: String) {
        self.own.set_value(None);
        self.session.end_edit();
        self.session.enter(self.setting, &rows::text(rows));
        self.session.end_edit();
        browser::focus_soon(format!("#network-rows {then}"));
    }

    /// Loads an example, or returns to the catalogue; both can be undone.
    pub fn start(self, text: &str) {
        let mut scenario = self.session.scenario.get_untracked();
        scenario.model.dims.clear();
        if self.setting.set(&mut scenario, text).is_ok() {
            self.own.set_value(None);
            self.session.replace(scenario);
        }
    }
}
