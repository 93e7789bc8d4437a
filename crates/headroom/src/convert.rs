//! Commands that convert scenarios: `export`, `import`, `link`, `open`.

use std::fs;
use std::path::Path;

use super::answer::{Answer, Refusal};
use super::args::Args;
use super::estimate::verdict;
use super::{input, what};
use headroom_base::document::Document;
use headroom_base::document::{json, yaml};
use headroom_core::estimate::{Estimate, Prediction};
use headroom_io::export::{self, File, Starter, Target};
use headroom_io::import;
use headroom_reader::report;
use headroom_scenario::share;
use headroom_scenario::{Problem, Scenario, document};

pub(super) fn export(args: &Args) -> Result<Answer, Refusal> {
    let archive = args.option("zip");
    if archive.is_some() || args.option("target") == Some("all") {
        return export_all(args, archive);
    }
    let prediction = Prediction::new(what::scenario(args)?);
    let own = export::own(prediction.scenario());
    let target = match (args.option("target"), own) {
        (None, Some(own)) => own,
        (asked, _) => find_target(asked.unwrap_or_default())?,
    };
    let files = (target.write)(prediction.scenario(), prediction.estimate()?)?;
    let starter = match args.option("starter") {
        None => Starter::Shell,
        Some(id) => Starter::from_id(id).ok_or_else(|| {
            Problem::unknown_choice("--starter", id, &Starter::ALL.map(Starter::id))
        })?,
    };
    let files = starter.wrap(target, prediction.scenario(), files)?;
    let mut text = String::new();
    write_all(args, "", &files, &mut text)?;
    if args.option("out").is_none() {
        for file in &files {
            text.push_str(&format!("==> {} <==\n{}\n", file.name, file.contents));
        }
    }
    let document = Document::new()
        .with("target", target.id)
        .with("files", contents(&files));
    let mut answer = Answer::new(text, &document);
    answer.notes = what::warnings(&prediction);
    answer.notes.extend(too_large(prediction.estimate()?));
    Ok(answer)
}

/// What whoever starts the files should know first.
fn too_large(estimate: &Estimate) -> Option<String> {
    let does_not_fit = estimate.fits == Some(false);
    does_not_fit.then(|| format!("warning: this run {}", verdict(estimate)))
}

/// The target with this name.
pub(super) fn find_target(asked: &str) -> Result<&'static Target, Refusal> {
    export::target(asked).ok_or_else(|| {
        let ids = export::targets().iter().map(|target| target.id);
        let ids: Vec<&str> = ids.chain(["all"]).collect();
        Problem::unknown_choice("--target", asked, &ids).into()
    })
}

/// Every target's files in its own folder, and a note for each target that cannot express the scenario.
fn export_all(args: &Args, archive: Option<&str>) -> Result<Answer, Refusal> {
    if archive.is_none() && args.option("out").is_none() {
        return Err(Problem::new("--out", "", "a folder to write to, or --zip FILE").into());
    }
    let prediction = Prediction::new(what::scenario(args)?);
    let all = export::all(prediction.scenario(), prediction.estimate()?);
    let mut text = String::new();
    let mut notes = Vec::new();
    let mut written = Document::new();
    let mut refused = Document::new();
    for (target, files) in &all {
        match files {
            Ok(files) => {
                write_all(args, target.id, files, &mut text)?;
                written = written.with(target.id, contents(files));
            }
            Err(problems) => {
                let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
                notes.push(format!(
                    "{} is not written: {}",
                    target.id,
                    problems.join("; ")
                ));
                refused = refused.with(target.id, problems);
            }
        }
    }
    if let Some(path) = archive {
        let archive = export::archive(prediction.scenario(), &all);
        refuse_link(Path::new(path))
            .and_then(|()| fs::write(path, archive))
            .map_err(|error| {
                Problem::new("--zip", path, format!("a file to write to ({error})"))
            })?;
        text.push_str(&format!("{path}\n"));
    }
    notes.extend(too_large(prediction.estimate()?));
    let wrote_nothing = all.iter().all(|(_, files)| files.is_err());
    let document = Document::new()
        .with("targets", written)
        .with("refused", refused);
    let mut answer = Answer::new(text, &document);
    answer.notes = notes;
    answer.fits = !wrote_nothing;
    Ok(answer)
}

/// Writes the files to the folder `--out`, if given, and returns their paths.
pub(super) fn write_all(
    args: &Args,
    below: &str,
    files: &[File],
    text: &mut String,
) -> Result<(), Refusal> {
    let Some(out) = args.option("out") else {
        return Ok(());
    };
    let folder = Path::new(out).join(below);
    for file in files {
        write(&folder, file).map_err(|error| {
            Problem::new("--out", out, format!("a folder to write to ({error})"))
        })?;
        text.push_str(&format!("{}\n", folder.join(file.name).display()));
    }
    Ok(())
}

fn contents(files: &[File]) -> Document {
    let contents = |file: &File| (file.name, file.contents.as_str().into());
    files.iter().map(contents).collect()
}

/// A link that lies where a file is to be written would have another file overwritten.
fn refuse_link(path: &Path) -> std::io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(about) if about.file_type().is_symlink() => Err(std::io::Error::other(format!(
            "{} is a symbolic link",
            path.display()
        ))),
        _ => Ok(()),
    }
}

fn write(folder: &Path, file: &File) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let path = folder.join(file.name);
    refuse_link(&path)?;
    fs::write(&path, &file.contents)?;
    #[cfg(unix)]
    if file.executable {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

pub(super) fn import(args: &Args) -> Result<Answer, Refusal> {
    if args.has("facts") {
        let document = report::json(&input::facts(&args.words)?);
        return Ok(Answer::new(
            format!("{}\n", json::write(&document)),
            &document,
        ));
    }
    if args.option("scenario").is_none() {
        let given = what::resolved(args)?;
        let left = given.not_modelled.iter();
        let left = left.map(|line| format!("not modelled: {line}"));
        let unread = given.unread.iter().map(|key| format!("not read: {key}"));
        let notes = given
            .notes
            .iter()
            .cloned()
            .chain(left)
            .chain(unread)
            .collect();
        return Ok(shown(&given.resolved.scenario, notes));
    }
    // A part, such as DeepSpeed's file, changes the run that it belongs to.
    let run = what::named(args.option("scenario").unwrap_or_default(), args)?;
    let text = what::text(args.positional(0))?;
    let imported = import::linked(&text).map_or_else(
        || Ok(import::read(&what::parse(&text)?, &run)),
        Ok::<_, Refusal>,
    )?;
    if !imported.problems.is_empty() {
        return Err(imported.problems.into());
    }
    let note = |key: &String| format!("ignored: {key}: {}", import::effect_of_key(key));
    let left = imported.unused_keys.iter().map(note);
    let notes = imported.notes.iter().cloned().chain(left).collect();
    Ok(shown(&imported.scenario, what::bounded(notes)))
}

pub(super) fn link(args: &Args) -> Result<Answer, Refusal> {
    let link = format!("#{}", share::write(&what::scenario(args)?));
    let document = Document::new().with("link", link.as_str());
    Ok(Answer::new(format!("{link}\n"), &document))
}

pub(super) fn open(args: &Args) -> Result<Answer, Refusal> {
    let link = args.positional(0);
    if !link.contains(['#', '=']) {
        let expected = "a link, as `headroom link` and the page's address have it: #v=1&…";
        return Err(Problem::new("LINK", link, expected).into());
    }
    let opened = share::read(link);
    let mut notes: Vec<String> = opened.problems.iter().map(ToString::to_string).collect();
    if let Some(data) = opened.other_data {
        let this = share::DATA_VERSION;
        notes.push(format!(
            "the link was made with data version {data}, this is {this}: numbers may differ"
        ));
    }
    Ok(shown(&opened.scenario, notes))
}

/// The scenario as YAML.
pub(super) fn shown(scenario: &Scenario, notes: Vec<String>) -> Answer {
    let document = document::write(scenario);
    let mut answer = Answer::new(yaml::write(&document), &document);
    answer.notes = notes;
    answer
}
