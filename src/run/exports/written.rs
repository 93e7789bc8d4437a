//! The files of a program, and all programs' files as an archive.

use leptos::prelude::*;

use crate::shared::browser;
use crate::shared::session::{Answer, Session};
use crate::text;
use headroom_io::export::{self, File, Starter, Target};
use headroom_scenario::Problem;

/// The export for a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    pub target: &'static Target,
    pub starter: Starter,
    /// Its files; empty if it refuses.
    pub files: Vec<File>,
    /// The files before the last edit, if the same program's differ.
    pub before: Vec<File>,
    /// The settings it cannot express.
    pub refused: Vec<Problem>,
}

impl Written {
    pub fn of(
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

    pub fn file(&self, name: &str) -> Option<&File> {
        self.files.iter().find(|file| file.name == name)
    }

    /// The text of a file before the last edit.
    pub fn before(&self, name: &str) -> Option<&str> {
        let before = self.before.iter().find(|file| file.name == name);
        before.map(|file| file.contents.as_str())
    }
}

/// Every program's files in one archive, with the scenario, so that it is never empty.
#[component]
pub fn AllPrograms() -> impl IntoView {
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
