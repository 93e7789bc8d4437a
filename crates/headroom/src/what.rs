//! `WHAT`: a preset's id, a model's id, a scenario file, a recorded model, a link, or standard input.

use std::io::Read;

use super::answer::Refusal;
use super::args::Args;
use headroom_base::document::{Document, json, toml, yaml};
use headroom_catalog as catalog;
use headroom_core::estimate::Prediction;
use headroom_io::import::recorded;
use headroom_scenario::share;
use headroom_scenario::{
    Draft, NameKind, Origin, Problem, Resolved, Scenario, document, presets, resolve::resolve,
    settings,
};

/// The largest scenario file that is read, in bytes.
const LARGEST_FILE: usize = 1 << 20;

/// The valid scenario that the first word names, with `--set` applied; or everything that is wrong with it.
pub(super) fn scenario(args: &Args) -> Result<Scenario, Refusal> {
    named(args.positional(0), args)
}

/// As `scenario`, for a name given elsewhere.
pub(super) fn named(what: &str, args: &Args) -> Result<Scenario, Refusal> {
    Ok(resolved(what, args)?.scenario)
}

/// The same with the origin of every value.
pub(super) fn resolved(what: &str, args: &Args) -> Result<Resolved, Refusal> {
    let (mut draft, mut problems) = load(what)?;
    for change in args.all("set") {
        let set = match change.split_once('=') {
            Some((name, value)) => match settings::named(name.trim()) {
                Some(setting) => draft.change(setting, value),
                None => Err(settings::unknown(name.trim(), value)),
            },
            None => Err(Problem::new("--set", change, "path=value")),
        };
        problems.extend(set.err());
    }
    let resolved = resolve(&draft);
    let found = resolved.problems.iter().cloned();
    for problem in found.chain(resolved.scenario.check()) {
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
    if problems.is_empty() {
        Ok(resolved)
    } else {
        Err(problems.into())
    }
}

/// What runs and is most likely not what was meant.
pub(super) fn warnings(prediction: &Prediction) -> Vec<String> {
    let all = prediction.warnings().iter();
    all.map(|problem| format!("warning: {problem}")).collect()
}

fn load(what: &str) -> Result<(Draft, Vec<Problem>), Refusal> {
    if let Some(preset) = presets::find(what) {
        return Ok((preset.draft(), Vec::new()));
    }
    if catalog::model_named(what).is_some() {
        let mut draft = Draft::default();
        if let Some(model) = settings::find("model.id") {
            draft.read(model, what, Origin::User);
        }
        return Ok((draft, Vec::new()));
    }
    if what.contains("#v=") || what.starts_with("v=") {
        let opened = share::read(what);
        return Ok((opened.draft, opened.problems));
    }
    let document = parse(&text(what)?)?;
    if recorded::recognises(&document) {
        let imported = recorded::read(&document);
        return Ok((imported.draft, imported.problems));
    }
    Ok(document::draft(&document))
}

/// The document in a file's text: JSON where it begins like an object, TOML where it begins like that, else YAML.
pub(super) fn parse(text: &str) -> Result<Document, Refusal> {
    let document = if text.trim_start().starts_with('{') {
        json::read(text)
    } else if toml::recognises(text) {
        toml::read(text)
    } else {
        yaml::read(text)
    };
    document.map_err(|problem| {
        Refusal(vec![format!(
            "not readable as YAML, JSON or TOML: {problem}"
        )])
    })
}

/// The text of a file, or of standard input for `-`.
pub(super) fn text(what: &str) -> Result<String, Refusal> {
    let mut bytes = Vec::new();
    let limit = LARGEST_FILE as u64 + 1;
    let read = if what == "-" {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(what).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    };
    if let Err(error) = read {
        return Err(missing(what, &error).into());
    }
    if bytes.len() > LARGEST_FILE {
        let expected = format!("a file of at most {LARGEST_FILE} bytes");
        return Err(Problem::new("WHAT", what, expected).into());
    }
    String::from_utf8(bytes).map_err(|_| Problem::new("WHAT", what, "text in UTF-8").into())
}

fn missing(what: &str, error: &std::io::Error) -> Problem {
    if error.kind() != std::io::ErrorKind::NotFound {
        return Problem::new("WHAT", what, format!("a readable file ({error})"));
    }
    let presets = presets::all().iter().map(|preset| preset.id);
    Problem::unknown_name(NameKind::Run, "WHAT", what, presets)
}
