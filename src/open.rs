//! Opening a file: a scenario, another tool's settings, a model's `config.json`, saved plans, a run's log or its memory
//! snapshot.

use leptos::ev::Event;
use leptos::prelude::*;

use super::plan_store::{self, Plans};
use super::plans;
use super::session::Session;
use super::snapshot;
use super::{browser, text};
use headroom_advice::doctor::Findings;
use headroom_base::document::{Document, json, toml, yaml};
use headroom_io::import::{self, Imported};
use headroom_scenario::Scenario;

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

/// Tells what a file holds; one that names no model changes this run.
pub fn opened(file: &str, run: &Scenario) -> Opened {
    if let Some(plans) = Plans::read(file) {
        return Opened::Plans(plans);
    }
    let imported = import::linked(file).or_else(|| match json::read(file) {
        Ok(document @ Document::Map(_)) => Some(import::read(&document, run)),
        Ok(_) => None,
        // A message may pass for YAML, and a log begin with the command that failed.
        Err(_) if Findings::parse(file).is_some() => None,
        Err(_) => settings(file, run).or_else(|| import::script(file, run)),
    });
    imported.map_or(Opened::Text, taken)
}

/// What YAML says, where a program is known that writes it so, or where it is a scenario.
fn settings(file: &str, run: &Scenario) -> Option<Imported> {
    let document = if toml::recognises(file) {
        toml::read(file)
    } else {
        yaml::read(file)
    }
    .ok()?;
    let scenario = || {
        document
            .get("version")
            .map(|_| import::read(&document, run))
    };
    import::known(&document, run).or_else(scenario)
}

fn taken(imported: Imported) -> Opened {
    if let Some(question) = imported.question {
        return Opened::Question(text::problem(&question));
    }
    let problems = imported.problems.iter().map(text::problem);
    let left = imported.not_taken.iter().map(|key| text::not_taken(key));
    let part = imported.part.then(|| text::PART_OF_A_RUN.to_string());
    Opened::Scenario {
        notes: part
            .into_iter()
            .chain(problems)
            .chain(left)
            .chain(imported.notes.clone())
            .collect(),
        scenario: Box::new(imported.scenario),
    }
}

/// Takes a file's text into the page.
pub fn take(session: Session, file: &str) {
    match opened(file, &session.scenario.get_untracked()) {
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
                accept=".yaml,.yml,.toml,.json,.jsonl,.sh,.py,.ipynb,.txt,.log,.svg,.pickle,.pkl"
                on:change=chosen
            />
        </label>
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_scenario::share;

    #[test]
    fn a_file_is_known_by_what_it_holds() {
        let mut scenario = Scenario::default();
        scenario.data.micro_batch = 3;
        let linked = format!("# Scenario: #{}\nanything: else\n", share::write(&scenario));
        let run = Scenario::default();
        let check = |file: &str, micro_batch| match opened(file, &run) {
            Opened::Scenario { scenario, .. } => assert_eq!(scenario.data.micro_batch, micro_batch),
            other => panic!("{other:?}"),
        };
        check(&linked, 3);
        check("{\"version\": 1, \"data\": {\"micro_batch\": 5}}", 5);
        check(AXOLOTL, 7);
        check(
            "deepspeed train.py --model_name_or_path gpt2 --per_device_train_batch_size 6\n",
            6,
        );
        check("version: 1\ndata: {micro_batch: 4}\n", 4);
        check(
            "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 2\nseq_len = 512\n",
            2,
        );
        assert!(matches!(
            opened("{\"headroom-plans\": {}}", &run),
            Opened::Plans(_)
        ));
        let failed = format!(
            "{AXOLOTL}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
        );
        for text in [
            "",
            "CUDA out of memory.",
            "[1, 2]",
            "{\"a\":",
            "a: 1\nb: 2\n",
            &failed,
        ] {
            assert_eq!(opened(text, &run), Opened::Text, "{text}");
        }
    }

    const AXOLOTL: &str = "base_model: meta-llama/Llama-3.2-1B\nmicro_batch_size: 7\nsequence_len: 2048\nadapter: lora\n";

    #[test]
    fn a_file_without_a_model_changes_the_run_that_is_open() {
        let mut run = Scenario::default();
        run.model.id = "llama-3.1-8b".into();
        run.data.sequence = 300;
        for part in [
            r#"{"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 3}}"#,
            "distributed_type: FSDP\nmixed_precision: bf16\nper_device_train_batch_size: 2\n",
            "accelerate launch train.py --model_name_or_path --per_device_train_batch_size 2\n",
        ] {
            let Opened::Scenario { scenario, notes } = opened(part, &run) else {
                panic!("{part} is known");
            };
            assert_eq!(scenario.model.id, "llama-3.1-8b", "{part}");
            assert_eq!(scenario.data.sequence, 300, "{part}");
            assert_eq!(scenario.data.micro_batch, 2, "{part}");
            assert_eq!(notes.first().map(String::as_str), Some(text::PART_OF_A_RUN));
        }
    }

    #[test]
    fn what_is_not_taken_is_said() {
        let Opened::Scenario { notes, .. } =
            opened("{\"version\": 1, \"nonsense\": 3}", &Scenario::default())
        else {
            panic!("a scenario with a key too many is a scenario");
        };
        assert!(
            notes.iter().any(|note| note.contains("nonsense")),
            "{notes:?}"
        );
    }
}
