//! Opening a file: a scenario, another tool's settings, a model's `config.json`, saved plans, a run's log or its memory
//! snapshot.

use leptos::ev::Event;
use leptos::prelude::*;

use super::plan_store::{self, Plans};
use super::plans;
use super::session::Session;
use super::snapshot;
use super::{browser, text};
use crate::document::Document;
use crate::document::json;
use crate::import::{self, Imported};
use crate::scenario::Scenario;

/// What a file turned out to be.
#[derive(Clone, Debug, PartialEq)]
pub enum Opened {
    Scenario {
        scenario: Box<Scenario>,
        notes: Vec<String>,
    },
    Plans(Plans),
    /// A file about a model that is not known; what is shown stays.
    Question(String),
    /// Something for the doctor, or for nobody.
    Text,
}

/// Longest file that is looked at.
pub const LONGEST: usize = 4 << 20;

/// Longest memory snapshot, which has every block in it.
const LONGEST_SNAPSHOT: usize = 64 << 20;

/// PyTorch's memory snapshots are pickles.
fn is_snapshot(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [".pickle", ".pkl"].iter().any(|end| name.ends_with(end))
}

/// Tells what a file holds.
pub fn opened(file: &str) -> Opened {
    if let Some(plans) = Plans::read(file) {
        return Opened::Plans(plans);
    }
    let document = json::read(file).ok();
    let imported = import::linked(file).or_else(|| {
        document
            .filter(|document| matches!(document, Document::Map(_)))
            .map(|document| import::read(&document))
    });
    imported.map_or(Opened::Text, taken)
}

fn taken(imported: Imported) -> Opened {
    if let Some(question) = imported.question {
        return Opened::Question(text::problem(&question));
    }
    let problems = imported.problems.iter().map(text::problem);
    let left = imported.not_taken.iter().map(|key| text::not_taken(key));
    Opened::Scenario {
        notes: problems.chain(left).chain(imported.notes.clone()).collect(),
        scenario: Box::new(imported.scenario),
    }
}

/// Takes a file's text into the page.
pub fn take(session: Session, file: &str) {
    match opened(file) {
        Opened::Scenario { scenario, notes } => {
            session.replace(*scenario);
            session.link_notes.set(notes);
        }
        Opened::Question(question) => session.link_notes.set(vec![question]),
        Opened::Plans(more) => {
            let mut all = plan_store::kept();
            all.merge(more);
            plans::keep(session, &all);
        }
        Opened::Text => session.pasted.set(file.into()),
    }
}

/// A button for files; a file may also be dropped anywhere on the page.
#[component]
pub fn OpenFile() -> impl IntoView {
    let session = Session::current();
    let read = move |file: browser::File| {
        if is_snapshot(&file.name()) {
            browser::read_bytes(file, LONGEST_SNAPSHOT, move |bytes| {
                snapshot::take(session, bytes);
            });
            return;
        }
        browser::read_file(file, LONGEST, move |read| match read {
            Some(text) => take(session, &text),
            None => session.link_notes.set(vec![text::UNREADABLE.into()]),
        });
    };
    browser::on_drop(read);
    let chosen = move |event: Event| {
        if let Some(file) = browser::chosen_file(&event) {
            read(file);
        }
    };
    view! {
        <label class="button plain">
            "Open a file"
            <input
                type="file"
                class="aside"
                data-testid="open-file"
                accept=".yaml,.yml,.json,.jsonl,.sh,.txt,.log,.svg,.pickle,.pkl"
                on:change=chosen
            />
        </label>
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::share;

    #[test]
    fn a_file_is_known_by_what_it_holds() {
        let mut scenario = Scenario::default();
        scenario.data.micro_batch = 3;
        let linked = format!("# Scenario: #{}\nanything: else\n", share::write(&scenario));
        let check = |file: &str, micro_batch| match opened(file) {
            Opened::Scenario { scenario, .. } => assert_eq!(scenario.data.micro_batch, micro_batch),
            other => panic!("{other:?}"),
        };
        check(&linked, 3);
        check("{\"version\": 1, \"data\": {\"micro_batch\": 5}}", 5);
        assert!(matches!(
            opened("{\"headroom-plans\": {}}"),
            Opened::Plans(_)
        ));
        for text in ["", "CUDA out of memory.", "[1, 2]", "{\"a\":"] {
            assert_eq!(opened(text), Opened::Text, "{text}");
        }
    }

    #[test]
    fn what_is_not_taken_is_said() {
        let Opened::Scenario { notes, .. } = opened("{\"version\": 1, \"nonsense\": 3}") else {
            panic!("a scenario with a key too many is a scenario");
        };
        assert!(
            notes.iter().any(|note| note.contains("nonsense")),
            "{notes:?}"
        );
    }
}
