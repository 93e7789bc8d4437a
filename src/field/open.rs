//! Opens what a person brings: a sentence, a file of any program, a scenario, saved plans, a log or a memory snapshot.

use leptos::ev::Event;
use leptos::prelude::*;

use crate::diagnose::snapshot;
use crate::field::plans;
use crate::shared::browser;
use crate::shared::places::Place;
use crate::shared::plan_store::{self, Plans};
use crate::shared::session::Session;
use crate::text;
use headroom_advice::doctor::Findings;
use headroom_base::document::{Document, json};
use headroom_io::import::{self, Input};
use headroom_reader::draft;
use headroom_reader::fact::Fact;
use headroom_reader::facts::{Ask, Facts};
use headroom_scenario::presets;
use headroom_scenario::{Draft, Scenario};
use headroom_scripts::{Alone, File};

/// The kind of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Opened {
    Scenario {
        draft: Box<Draft>,
        notes: Vec<String>,
        /// Words, which leave open what their speaker does not care about.
        words: bool,
    },
    Plans(Plans),
    /// A file with an unknown model; nothing changes.
    Question(String),
    /// Other text: a failure message, or nothing known.
    Text,
}

/// The largest file that is read.
pub const LONGEST: usize = 4 << 20;

/// The largest memory snapshot, which lists every block.
const LONGEST_SNAPSHOT: usize = 64 << 20;

/// PyTorch's memory snapshots are pickles.
fn is_snapshot(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [".pickle", ".pkl"].iter().any(|end| name.ends_with(end))
}

/// Detects the kind of a file; one that names no model changes the current run.
pub fn opened(name: &str, file: &str, run: &Scenario) -> Opened {
    if let Some(plans) = Plans::read(file) {
        return Opened::Plans(plans);
    }
    let is_document = matches!(json::read(file), Ok(Document::Map(_)));
    // An error message may parse as YAML, and a log may begin with the failed command.
    let failed = !is_document && import::linked(file).is_none() && Findings::parse(file).is_some();
    let single_line = file.trim().lines().count() < 2 && !is_document && name.is_empty();
    if failed || file.trim().is_empty() {
        return Opened::Text;
    }
    if single_line {
        let mut input = import::words(file, &Alone);
        let open = leaves_open(file, &input);
        if open {
            input.draft.bring_usual_run();
            import::adapt_every_layer(&mut input.draft);
        }
        return of_input(input, open, run);
    }
    let input = {
        let one = File {
            name: name.into(),
            text: file.into(),
        };
        import::files(&[one], &Alone, Some(run))
    };
    of_input(input, false, run)
}

/// Whether words say only what their speaker cares about: presets, links and commands mean their own defaults.
fn leaves_open(text: &str, input: &Input) -> bool {
    let facts = input.facts.as_ref();
    let of_program = facts.is_some_and(|facts| facts.trainer.origin().is_some());
    presets::find(text.trim()).is_none() && input.draft.format().is_none() && !of_program
}

fn of_input(input: Input, words: bool, run: &Scenario) -> Opened {
    let understood = input.facts.as_ref().is_none_or(Facts::says_something);
    if input.refused.is_some() || !understood {
        return Opened::Text;
    }
    let of_model = |(ask, _): &&(Ask, String)| *ask == Ask::Model;
    if let Some((_, why)) = input.asks.iter().find(of_model) {
        // Words about a run change the current one; a file's model decides what the file means.
        let Some(facts) = input
            .facts
            .as_ref()
            .filter(|facts| facts.model.value().is_none())
        else {
            return Opened::Question(text::asked(Ask::Model, why));
        };
        let mut over = draft::draft(facts, Draft::of_run(run));
        import::adapt_every_layer(&mut over.draft);
        return Opened::Scenario {
            draft: Box::new(over.draft),
            notes: std::iter::once(match &facts.model {
                // A size alone, or a place to fill in: what to say instead.
                Fact::Unknown(why) => text::which_model(why),
                _ => text::PART_OF_A_RUN.into(),
            })
            .chain(over.left.iter().map(|key| text::ignored(key)))
            .collect(),
            words: false,
        };
    }
    let part = input.part.then(|| text::PART_OF_A_RUN.to_string());
    let asked = input.asks.iter().map(|(ask, why)| text::asked(*ask, why));
    let problems = input.problems.iter().map(text::problem);
    let left = input.not_modelled.iter().chain(&input.unread);
    let left = left.map(|key| text::ignored(key));
    Opened::Scenario {
        notes: part
            .into_iter()
            .chain(asked)
            .chain(problems)
            .chain(left)
            .chain(input.notes.iter().map(|note| text::note(note)))
            .collect(),
        draft: Box::new(input.draft),
        words,
    }
}

/// Opens a file's text in the page; `false` if its model is unknown, so that nothing changed.
pub fn take(session: Session, name: &str, file: &str) -> bool {
    match opened(name, file, &session.scenario.get_untracked()) {
        Opened::Scenario {
            mut draft,
            notes,
            words,
        } => {
            if words {
                session.keep_hardware(&mut draft);
            }
            session.start_from_draft(*draft);
            session.link_notes.set(notes);
        }
        Opened::Question(question) => {
            session.link_notes.set(vec![question]);
            return false;
        }
        Opened::Plans(more) => {
            let mut all = plan_store::kept();
            let merged = all.merge(more);
            plans::keep(session, &all);
            if !merged {
                session.link_notes.set(vec![text::too_many_plans()]);
            }
        }
        Opened::Text => {
            session.pasted.set(file.into());
            Place::Diagnose.show();
        }
    }
    true
}

/// A file button; files can also be dropped anywhere on the page.
#[component]
pub fn OpenFile() -> impl IntoView {
    let session = Session::current();
    let read = move |file: browser::File| {
        let name = file.name();
        if is_snapshot(&name) {
            browser::read_bytes(file, LONGEST_SNAPSHOT, move |bytes| {
                snapshot::take(session, bytes);
            });
            return;
        }
        browser::read_file(file, LONGEST, move |read| match read {
            Some(text) => {
                take(session, &name, &text);
            }
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
            {text::OPEN_FILE}
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
    use headroom_scenario::resolve::resolve;
    use headroom_scenario::share;

    #[test]
    fn files_are_recognized_by_content() {
        let mut scenario = Scenario::default();
        scenario.data.micro_batch = 3;
        let linked = format!("# Scenario: #{}\nanything: else\n", share::write(&scenario));
        let run = Scenario::default();
        let check = |file: &str, micro_batch| match opened("", file, &run) {
            Opened::Scenario { draft, .. } => {
                assert_eq!(resolve(&draft).scenario.data.micro_batch, micro_batch);
            }
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
            opened("", "{\"headroom-plans\": {}}", &run),
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
            assert_eq!(opened("", text, &run), Opened::Text, "{text}");
        }
    }

    const AXOLOTL: &str = "base_model: meta-llama/Llama-3.2-1B\nmicro_batch_size: 7\nsequence_len: 2048\nadapter: lora\n";

    #[test]
    fn a_file_without_a_model_changes_the_current_run() {
        let mut run = Scenario::default();
        run.model.id = "llama-3.1-8b".into();
        run.data.sequence = 300;
        for (part, note) in [
            (
                r#"{"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 3}}"#,
                text::PART_OF_A_RUN,
            ),
            (
                "distributed_type: FSDP\nmixed_precision: bf16\nper_device_train_batch_size: 2\n",
                text::PART_OF_A_RUN,
            ),
            (
                "accelerate launch train.py --model_name_or_path --per_device_train_batch_size 2\n",
                "Which model? train.py is not here. Until you say, the rest was applied to the run on the screen.",
            ),
        ] {
            let Opened::Scenario { draft, notes, .. } = opened("", part, &run) else {
                panic!("{part} is known");
            };
            let scenario = resolve(&draft).scenario;
            assert_eq!(scenario.model.id, "llama-3.1-8b", "{part}");
            assert_eq!(scenario.data.sequence, 300, "{part}");
            assert_eq!(scenario.data.micro_batch, 2, "{part}");
            assert_eq!(notes.first().map(String::as_str), Some(note));
        }
    }

    #[test]
    fn unused_keys_are_listed() {
        let Opened::Scenario { notes, .. } = opened(
            "",
            "{\"version\": 1, \"nonsense\": 3}",
            &Scenario::default(),
        ) else {
            panic!("a scenario with a key too many is a scenario");
        };
        assert!(
            notes.iter().any(|note| note.contains("nonsense")),
            "{notes:?}"
        );
    }
}
