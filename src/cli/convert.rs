//! Commands between forms of a scenario: `export`, `import`, `link`, `open`.

use std::fs;
use std::path::Path;

use super::args::Args;
use super::{Answer, Refusal, what};
use crate::document::Document;
use crate::estimate::estimate;
use crate::export::{self, File, yaml};
use crate::import;
use crate::scenario::{Problem, Scenario, document};
use crate::share;

pub(super) fn export(args: &Args) -> Result<Answer, Refusal> {
    let ids: Vec<&str> = export::TARGETS.iter().map(|target| target.id).collect();
    let asked = args.option("target").unwrap_or_default();
    let Some(target) = export::target(asked) else {
        let expected = format!("one of {}", ids.join(", "));
        return Err(Problem::new("--target", asked, expected).into());
    };
    let scenario = what::scenario(args)?;
    let files = (target.write)(&scenario, &estimate(&scenario)?)?;
    if let Some(folder) = args.option("out") {
        for file in &files {
            write(Path::new(folder), file).map_err(|error| {
                Problem::new("--out", folder, format!("a folder to write to ({error})"))
            })?;
        }
    }
    let mut text = String::new();
    for file in &files {
        match args.option("out") {
            Some(folder) => {
                text.push_str(&format!(
                    "{}\n",
                    Path::new(folder).join(file.name).display()
                ));
            }
            None => text.push_str(&format!("==> {} <==\n{}\n", file.name, file.contents)),
        }
    }
    let document = files
        .iter()
        .map(|file| (file.name, file.contents.as_str().into()));
    let document = Document::new()
        .with("target", target.id)
        .with("files", document.collect::<Document>());
    Ok(Answer::new(text, &document))
}

fn write(folder: &Path, file: &File) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let path = folder.join(file.name);
    fs::write(&path, &file.contents)?;
    #[cfg(unix)]
    if file.executable {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

pub(super) fn import(args: &Args) -> Result<Answer, Refusal> {
    let text = what::text(args.word(0))?;
    let imported = match import::linked(&text) {
        Some(imported) => imported,
        None => import::read(&what::parse(&text)?),
    };
    if !imported.problems.is_empty() {
        return Err(imported.problems.into());
    }
    let note = |key: &String| format!("{key} is not taken: a scenario has no word for it");
    let notes = imported.not_taken.iter().map(note).collect();
    Ok(shown(&imported.scenario, notes))
}

pub(super) fn link(args: &Args) -> Result<Answer, Refusal> {
    let link = format!("#{}", share::write(&what::scenario(args)?));
    let document = Document::new().with("link", link.as_str());
    Ok(Answer::new(format!("{link}\n"), &document))
}

#[expect(clippy::unnecessary_wraps, reason = "commands share one signature")]
pub(super) fn open(args: &Args) -> Result<Answer, Refusal> {
    let opened = share::read(args.word(0));
    let mut notes: Vec<String> = opened.problems.iter().map(ToString::to_string).collect();
    if let Some(data) = opened.other_data {
        let this = share::DATA_VERSION;
        notes.push(format!(
            "the link was made with data {data}, this is {this}: numbers may differ"
        ));
    }
    Ok(shown(&opened.scenario, notes))
}

fn shown(scenario: &Scenario, notes: Vec<String>) -> Answer {
    let document = document::write(scenario);
    let mut answer = Answer::new(yaml::write(&document), &document);
    answer.notes = notes;
    answer
}
