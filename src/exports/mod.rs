//! The files to run: shown with what changed, copied as one command, saved; or what a program cannot express, and what to
//! change so that it can.

mod listing;
mod refused;

pub use refused::KIND as REMEDIES;

use leptos::ev::{Event, Targeted};
use leptos::prelude::*;
use web_sys::HtmlSelectElement;

use self::refused::Refused;
use super::session::{Answer, Session};
use super::signals::{memo, memo_after};
use super::wishes::Wishes;
use super::worker::Helper;
use super::{browser, text};
use headroom_io::export::{self, File, Starter, Target};
use headroom_scenario::Problem;

/// What a program makes of the run.
#[derive(Clone, Debug, PartialEq)]
struct Written {
    target: &'static Target,
    starter: Starter,
    /// Its files; empty where it refuses.
    files: Vec<File>,
    /// The files before the last edit, where the same program wrote other ones.
    before: Vec<File>,
    /// What it cannot express.
    refused: Vec<Problem>,
}

impl Written {
    fn of(
        answer: &Answer,
        target: &'static Target,
        starter: Starter,
        last: Option<&Self>,
    ) -> Option<Self> {
        let estimate = answer.estimate.as_ref()?;
        let last = last.filter(|last| last.target.id == target.id && last.starter == starter);
        let mut written = Self {
            target,
            starter,
            files: Vec::new(),
            before: Vec::new(),
            refused: Vec::new(),
        };
        match (target.write)(&answer.scenario, estimate) {
            Ok(files) => match starter.wrap(target, &answer.scenario, files) {
                Ok(files) => {
                    written.before = match last {
                        Some(last) if last.files == files => last.before.clone(),
                        Some(last) => last.files.clone(),
                        None => Vec::new(),
                    };
                    written.files = files;
                }
                Err(problems) => written.refused = problems,
            },
            Err(problems) => written.refused = problems,
        }
        Some(written)
    }

    fn file(&self, name: &str) -> Option<&File> {
        self.files.iter().find(|file| file.name == name)
    }

    /// The text of a file before the last edit.
    fn before(&self, name: &str) -> Option<&str> {
        let before = self.before.iter().find(|file| file.name == name);
        before.map(|file| file.contents.as_str())
    }
}

/// Everything about running this: the program, its files, one command.
#[component]
pub fn Run() -> impl IntoView {
    let session = Session::current();
    let program = Wishes::current().program;
    let starter = RwSignal::new(Starter::default());
    let target = move || program.get().or(export::TARGETS.first());
    let written = memo_after(move |last: Option<&Option<Written>>| {
        let target = target()?;
        let last = last.and_then(Option::as_ref);
        session
            .answer
            .with(|answer| Written::of(answer, target, starter.get(), last))
    });
    let option =
        |target: &'static Target| view! { <option value=target.id>{target.title}</option> };
    let choose = move |id: String| program.set(export::target(&id));
    let started_by =
        |starter: Starter| view! { <option value=starter.id()>{starter.title()}</option> };
    let start = move |event: Targeted<Event, HtmlSelectElement>| {
        starter.set(Starter::from_id(&event.target().value()).unwrap_or_default());
    };
    let chosen = move || target().map_or("", |target| target.id);
    let checked = move || {
        let target = target()?;
        let differs = match target.differs {
            "" => String::new(),
            differs => format!(" Note: {differs}."),
        };
        Some(format!("For {}.{differs}", target.versions))
    };
    let helper = Helper::new(REMEDIES.id);
    refused::search(session, helper, written);
    let refused =
        memo(move || written.with(|all| all.as_ref().is_some_and(|all| all.files.is_empty())));
    view! {
        <section class="panel run" id="run" aria-labelledby="run-title" class:stale=move || session.stale.get()>
            <header>
                <h3 id="run-title" tabindex="-1">{text::RUN}</h3>
                <label class="quiet" for="export-target">"Written for"</label>
                <select id="export-target" prop:value=chosen on:change:target=move |event| choose(event.target().value())>
                    {export::TARGETS.iter().map(option).collect_view()}
                </select>
                <label class="quiet" for="export-starter">{text::STARTED_BY}</label>
                <select id="export-starter" prop:value=move || starter.get().id() on:change:target=start>
                    {Starter::ALL.map(started_by).collect_view()}
                </select>
            </header>
            <p class="quiet checked">{checked}</p>
            <Show when=move || refused.get() fallback=move || view! { <Files written/> }>
                <Refused written helper/>
            </Show>
        </section>
    }
}

/// The files, and the ways to take them along.
#[component]
fn Files(written: Memo<Option<Written>>) -> impl IntoView {
    let command = move || {
        written.with_untracked(|all| {
            let all = all.as_ref()?;
            Some(export::command(all.target, &all.files))
        })
    };
    let names = memo(move || {
        let names = |all: &Written| -> Vec<_> {
            let name = |file: &File| (all.target.id, file.name);
            all.files.iter().map(name).collect()
        };
        written.with(|all| all.as_ref().map(names).unwrap_or_default())
    });
    let save_all = move |_| {
        if let Some(command) = command() {
            browser::download("headroom.sh", "text/x-shellscript", &command);
        }
    };
    view! {
        <div class="actions">
            <Copy name=text::COPY_COMMAND label="" read=move || command().unwrap_or_default() main=true/>
            <button type="button" on:click=save_all>{text::SAVE_COMMAND}</button>
            <AllPrograms/>
        </div>
        <p class="quiet">{text::COMMAND_ABOUT}</p>
        <div class="files" id="files">
            <For each=move || names.get() key=|name| *name let((_, name))>
                <OneFile written name first=names.with_untracked(|all| all.first().is_some_and(|(_, first)| *first == name))/>
            </For>
        </div>
    }
}

/// Every program's files in one archive; the scenario itself is in it, so that it is never empty.
#[component]
fn AllPrograms() -> impl IntoView {
    let session = Session::current();
    let save = move |_| {
        let archive = session.answer.with_untracked(|answer| {
            let estimate = answer.estimate.as_ref()?;
            let all = export::all(&answer.scenario, estimate);
            Some(export::archive(&answer.scenario, &all))
        });
        if let Some(archive) = archive {
            browser::download_bytes("headroom.zip", "application/zip", &archive);
        }
    };
    view! { <button type="button" data-testid="export-zip" on:click=save>{text::ALL_PROGRAMS}</button> }
}

/// One file: folded or shown, with the lines that the last edit changed.
#[component]
fn OneFile(written: Memo<Option<Written>>, name: &'static str, first: bool) -> impl IntoView {
    let contents = move || {
        let of = |all: &Written| all.file(name).map(|file| file.contents.clone());
        written
            .with(|all| all.as_ref().and_then(of))
            .unwrap_or_default()
    };
    let contents_now = move || untrack(contents);
    // A file is drawn anew when it is another, not when its neighbour is.
    let text = memo(move || {
        let before = |all: &Written| all.before(name).map(String::from);
        (
            contents(),
            written.with(|all| all.as_ref().and_then(before)),
        )
    });
    let lines = move || text.with(|(now, before)| listing::lines(now, before.as_deref()));
    let changed = move || {
        let count = text.with(|(now, before)| {
            let marks = before
                .as_deref()
                .map(|before| listing::changed(before, now));
            marks
                .unwrap_or_default()
                .into_iter()
                .filter(|mark| *mark)
                .count()
        });
        (count > 0).then(|| text::lines_changed(count))
    };
    let save = move |_| browser::download(name, "text/plain", &contents_now());
    let kind = name.rsplit('.').next().unwrap_or_default();
    view! {
        <article class="file">
            <details open=first>
                <summary>{name}" "<span class="aside">{changed}</span></summary>
                // Focusable, so that the keyboard can scroll it.
                <pre class="listing" id=name tabindex="0" role="region" aria-label=name>{lines}</pre>
            </details>
            <div class="actions">
                <Copy name=text::COPY label=name read=contents_now main=false/>
                <button type="button" aria-label=format!("Download {name}") data-testid=format!("export-{kind}") on:click=save>
                    "Download"
                </button>
            </div>
        </article>
    }
}

/// A button that copies, and says so; where the browser refuses, it says what to do.
#[component]
pub fn Copy(
    name: &'static str,
    /// What is copied, where the button's name alone does not say it.
    label: &'static str,
    read: impl Fn() -> String + 'static,
    /// Whether it is what most people came for.
    main: bool,
) -> impl IntoView {
    let said = RwSignal::new(name);
    let copy = move |_| {
        browser::copy(&read(), move |done| {
            said.try_set(if done {
                text::COPIED
            } else {
                text::COPY_YOURSELF
            });
        });
    };
    let named = move || (!label.is_empty()).then(|| format!("{} {label}", said.get()));
    view! {
        <button type="button" class:primary=main aria-label=named on:click=copy on:blur=move |_| said.set(name)>
            {said}
        </button>
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::answer;
    use headroom_scenario::{Scenario, settings};

    fn set(scenario: &mut Scenario, changes: &[(&str, &str)]) {
        for (name, value) in changes {
            settings::set(scenario, name, value).unwrap();
        }
    }

    #[test]
    fn every_program_shows_its_own_files_or_what_to_change() {
        let scenario = headroom_scenario::presets::find("llama-8b-lora-24gb")
            .unwrap()
            .scenario();
        let answer = answer(&scenario, None);
        let mut last: Option<Written> = None;
        for target in export::TARGETS {
            let written = Written::of(&answer, target, Starter::Shell, last.as_ref()).unwrap();
            assert_eq!(
                written.files.is_empty(),
                !written.refused.is_empty(),
                "{}",
                target.id
            );
            assert!(written.files.iter().all(|file| !file.contents.is_empty()));
            assert_eq!(written.before, [], "{}", target.id);
            last = Some(written);
        }
    }

    #[test]
    fn what_the_last_edit_changed_stays_marked_until_the_next() {
        let target = export::target("trl").unwrap();
        let mut scenario = headroom_scenario::presets::find("llama-8b-lora-24gb")
            .unwrap()
            .scenario();
        let first = Written::of(&answer(&scenario, None), target, Starter::Shell, None).unwrap();
        set(&mut scenario, &[("lora_rank", "8")]);
        let second = Written::of(
            &answer(&scenario, None),
            target,
            Starter::Shell,
            Some(&first),
        )
        .unwrap();
        let marked = |written: &Written| {
            let file = written.file("sft.yaml").unwrap();
            let marks = listing::changed(written.before("sft.yaml").unwrap(), &file.contents);
            let lines = file.contents.lines().zip(marks).filter(|(_, mark)| *mark);
            lines.map(|(line, _)| line.to_string()).collect::<Vec<_>>()
        };
        assert!(
            marked(&second)
                .iter()
                .any(|line| line.starts_with("lora_r:")),
            "{:?}",
            marked(&second)
        );
        let again = Written::of(
            &answer(&scenario, None),
            target,
            Starter::Shell,
            Some(&second),
        )
        .unwrap();
        assert_eq!(again.before, second.before);
    }
}
