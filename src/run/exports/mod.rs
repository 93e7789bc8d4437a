//! The files to run: shown with changes marked, copied as one command, saved; or the settings that a program cannot
//! express, with fixes.

mod listing;
mod refused;
mod written;

pub use refused::KIND as REMEDIES;

use leptos::ev::{Event, Targeted};
use leptos::prelude::*;
use web_sys::HtmlSelectElement;

use self::refused::Refused;
use self::written::{AllPrograms, Written};
use crate::field::lists;
use crate::shared::browser;
use crate::shared::copy::CopyButton;
use crate::shared::preferences::AdvicePreferences;
use crate::shared::session::Session;
use crate::shared::signals::{memo, memo_after};
use crate::shared::worker::Helper;
use crate::text;
use headroom_io::export::{self, File, Starter, Target};

/// The panel for running this: the program, its files, one command.
#[component]
pub fn Run() -> impl IntoView {
    let session = Session::current();
    let program = AdvicePreferences::current().program;
    let starter = RwSignal::new(Starter::default());
    let target = move || program.get().or(export::targets().first());
    let written = memo_after(move |last: Option<&Option<Written>>| {
        let target = target()?;
        let last = last.and_then(Option::as_ref);
        session
            .answer
            .with(|answer| Written::of(answer, target, starter.get(), last))
    });
    let option =
        |target: &'static Target| view! { <option value=target.id>{target.title}</option> };
    let group = |(name, all): (&'static str, Vec<&'static Target>)| {
        view! {
            <optgroup label=name>{all.into_iter().map(option).collect_view()}</optgroup>
        }
    };
    let programs = lists::grouped(export::targets(), |target| lists::program_group(target));
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
                <label class="quiet" for="export-target">{text::WRITTEN_FOR}</label>
                <select id="export-target" prop:value=chosen on:change:target=move |event| choose(event.target().value())>
                    {programs.into_iter().map(group).collect_view()}
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

/// The files, and buttons to copy and save them.
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
            <CopyButton name=text::COPY_COMMAND label="" read=move || command().unwrap_or_default() main=true/>
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

/// One collapsible file, with the lines that the last edit changed marked.
#[component]
fn OneFile(written: Memo<Option<Written>>, name: &'static str, first: bool) -> impl IntoView {
    let contents = move || {
        let of = |all: &Written| all.file(name).map(|file| file.contents.clone());
        written
            .with(|all| all.as_ref().and_then(of))
            .unwrap_or_default()
    };
    let contents_now = move || untrack(contents);
    // A file is redrawn when it changes, not when another does.
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
                <CopyButton name=text::COPY label=name read=contents_now main=false/>
                <button type="button" aria-label=format!("Download {name}") data-testid=format!("export-{kind}") on:click=save>
                    "Download"
                </button>
            </div>
        </article>
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::session::answer;
    use headroom_scenario::{Scenario, settings};

    fn set(scenario: &mut Scenario, changes: &[(&str, &str)]) {
        for (name, value) in changes {
            settings::set(scenario, name, value).unwrap();
        }
    }

    #[test]
    fn every_program_has_files_or_problems() {
        let scenario = headroom_scenario::presets::find("llama-8b-lora-24gb")
            .unwrap()
            .scenario();
        let answer = answer(&scenario, None);
        let mut last: Option<Written> = None;
        for target in export::targets() {
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
    fn changed_lines_stay_marked_until_the_next_edit() {
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
