//! `WHAT`: a preset's id, a model's id, a scenario file, a recorded model, a link, or standard input.

use std::io::Read;

use super::answer::Refusal;
use super::args::Args;
use headroom_base::document::{Document, json, toml, yaml};
use headroom_base::order::sorted;
use headroom_catalog as catalog;
use headroom_core::estimate::Prediction;
use headroom_io::import::recorded;
use headroom_scenario::share;
use headroom_scenario::{Problem, Scenario, document, nearest, one_of, presets, settings, stack};

/// The largest scenario file that is read, in bytes.
const LARGEST_FILE: usize = 1 << 20;

/// The valid scenario that the first word names, with `--set` applied; or everything that is wrong with it.
pub(super) fn scenario(args: &Args) -> Result<Scenario, Refusal> {
    named(args.word(0), args)
}

/// As `scenario`, for a name given elsewhere.
pub(super) fn named(what: &str, args: &Args) -> Result<Scenario, Refusal> {
    let (mut scenario, mut problems) = load(what)?;
    // What brings defaults to other fields comes before them.
    let place = |name: &str| settings::named(name.trim()).map_or(u8::MAX, stack::place);
    let changes = args
        .all("set")
        .map(|change| change.split_once('=').ok_or(change));
    let changes = sorted(changes, |a, b| {
        let place =
            |change: &Result<(&str, &str), &str>| change.map_or(u8::MAX, |(name, _)| place(name));
        place(a).cmp(&place(b))
    });
    for change in changes {
        let set = match change {
            Ok((name, value)) => match settings::named(name.trim()) {
                Some(setting) => stack::choose(setting, &mut scenario, value),
                None => Err(settings::unknown(name.trim(), value)),
            },
            Err(change) => Err(Problem::new("--set", change, "path=value")),
        };
        problems.extend(set.err());
    }
    for problem in scenario.check() {
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
    if problems.is_empty() {
        Ok(scenario)
    } else {
        Err(problems.into())
    }
}

/// What runs and is most likely not what was meant.
pub(super) fn warnings(prediction: &Prediction) -> Vec<String> {
    let all = prediction.warnings().iter();
    all.map(|problem| format!("warning: {problem}")).collect()
}

fn load(what: &str) -> Result<(Scenario, Vec<Problem>), Refusal> {
    if let Some(preset) = presets::find(what) {
        return Ok((preset.scenario(), Vec::new()));
    }
    if let Some(model) = catalog::model_named(what) {
        return Ok((Scenario::of_model(model), Vec::new()));
    }
    if what.contains("#v=") || what.starts_with("v=") {
        let opened = share::read(what);
        return Ok((opened.scenario, opened.problems));
    }
    let document = parse(&text(what)?)?;
    if recorded::recognises(&document) {
        let imported = recorded::read(&document);
        return Ok((imported.scenario, imported.problems));
    }
    Ok(document::read(&document))
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
    let presets = presets::all().iter().map(|preset| preset.id);
    let near = nearest(what, presets).map(String::from);
    let expected = match near.or_else(|| one_of(&catalog::models_near(what))) {
        Some(near) => format!("a preset, a model, a file or -; did you mean {near}?"),
        None => format!(
            "a preset (`headroom presets` lists them), a model (`headroom catalog models`), a file or - ({error})"
        ),
    };
    Problem::new("WHAT", what, expected)
}
