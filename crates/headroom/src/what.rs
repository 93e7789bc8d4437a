//! `WHAT`: whatever a person brings, as a complete scenario.

use std::io::Read;
use std::path::Path;

use super::answer::{Refusal, unreadable};
use super::args::Args;
use super::{flags, input, terminal};
use headroom_base::document::{Document, json, toml, yaml};
use headroom_catalog as catalog;
use headroom_core::estimate::Prediction;
use headroom_io::import::{self, Input};
use headroom_reader::{Wanted, facts::Ask, sentence};
use headroom_scenario::settings::{Setting, ValueType};
use headroom_scenario::{
    NameKind, Problem, Resolved, Scenario, presets, resolve::in_words, resolve::resolve, settings,
};

/// The largest scenario file that is read, in bytes.
const LARGEST_FILE: usize = 1 << 20;

/// The valid scenario that the words name or describe, with `--set` applied; or everything that is wrong with it.
pub(super) fn scenario(args: &Args) -> Result<Scenario, Refusal> {
    Ok(resolved(args)?.resolved.scenario)
}

/// As `scenario`, for a name given elsewhere.
pub(super) fn named(what: &str, args: &Args) -> Result<Scenario, Refusal> {
    Ok(of(&[what.to_string()], args)?.resolved.scenario)
}

/// A complete scenario, and what whoever reads it should know of how it came to be.
pub(super) struct Given {
    pub resolved: Resolved,
    /// What the files say that changes memory and is not in the scenario.
    pub not_modelled: Vec<String>,
    /// Keys whose effect on memory is unknown.
    pub unread: Vec<String>,
    pub notes: Vec<String>,
    /// What a sentence asks for, such as the number of GPUs.
    pub wanted: Option<Wanted>,
}

impl Given {
    pub fn scenario(&self) -> &Scenario {
        &self.resolved.scenario
    }

    /// What was assumed, a line each for what is not modelled, not read and to be known; nothing for a run that says all.
    pub fn said(&self) -> String {
        let assumed = in_words(&self.resolved).map(|assumed| format!("assuming {assumed}\n"));
        assumed.unwrap_or_default() + &self.left_out()
    }

    /// What is not modelled, not read and to be known.
    pub fn left_out(&self) -> String {
        let not_modelled = self.not_modelled.iter();
        let mut lines: Vec<String> = not_modelled
            .map(|line| format!("not modelled: {line}"))
            .collect();
        if !self.unread.is_empty() {
            lines.push(format!("not read: {}", self.unread.join(", ")));
        }
        lines.extend(self.notes.iter().map(|line| format!("note: {line}")));
        let lines = lines.iter().map(|line| terminal::line(line) + "\n");
        lines.collect()
    }
}

/// The same with the origin of every value.
pub(super) fn resolved(args: &Args) -> Result<Given, Refusal> {
    of(&args.words, args)
}

pub(super) fn of(words: &[String], args: &Args) -> Result<Given, Refusal> {
    let Input {
        mut draft,
        mut problems,
        mut asks,
        not_modelled,
        unread,
        mut notes,
        refused,
        facts,
        ..
    } = input::load(words)?;
    if let Some(why) = refused {
        let said = Problem::new("WHAT", words.join(" "), "");
        let line = format!("`{}` is not a training run: {why}", said.given());
        return Err(Refusal(vec![line]));
    }
    for change in args.all("set") {
        let set = match change.split_once('=') {
            Some((name, value)) => match settings::typed(name.trim()) {
                Some(setting) => {
                    asks.retain(|(ask, _)| import::answer(*ask) != Some(setting));
                    let usual = usual_gpu(setting, value);
                    notes.extend(usual.map(|id| format!("{value} is taken for {id}")));
                    draft.change(setting, usual.unwrap_or(value))
                }
                None => Err(settings::unknown(name.trim(), value)),
            },
            None => Err(Problem::new("--set", change, "path=value")),
        };
        problems.extend(set.err());
    }
    if problems.is_empty() && !asks.is_empty() {
        let is_named = facts.is_some_and(|facts| facts.model.value().is_some());
        if let Some(problem) = misspelt(words, &asks, is_named) {
            return Err(problem.into());
        }
        return Err(Refusal(asks.iter().map(question).collect()));
    }
    let wanted = facts.and_then(|facts| facts.wanted);
    let resolved = resolve(&draft);
    let found = resolved.problems.iter().cloned();
    for problem in found.chain(resolved.scenario.check()) {
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
    if problems.is_empty() {
        Ok(Given {
            resolved,
            not_modelled: bounded(not_modelled),
            unread: bounded(unread),
            notes: bounded(notes),
            wanted,
        })
    } else {
        Err(problems.into())
    }
}

/// As many lines as a person reads: a file can have a hundred thousand unknown keys.
pub(super) fn bounded(mut lines: Vec<String>) -> Vec<String> {
    const MOST: usize = 40;
    if lines.len() > MOST {
        let more = lines.len() - MOST;
        lines.truncate(MOST);
        lines.push(format!("and {more} more"));
    }
    lines
}

/// The variant that people mean by a name which several GPUs share, such as `h100`.
fn usual_gpu(setting: &Setting, name: &str) -> Option<&'static str> {
    if setting.value_type != ValueType::Gpu || catalog::gpu_named(name).is_some() {
        return None;
    }
    sentence::read(name).gpu.value().copied()
}

/// One word that is nearly a preset's or a model's name, or no name at all.
fn misspelt(words: &[String], asks: &[(Ask, String)], is_named: bool) -> Option<Problem> {
    let [word] = words else {
        return None;
    };
    let is_name = !word.contains(char::is_whitespace) && !Path::new(word).exists();
    if !is_name || !asks.iter().any(|(ask, _)| *ask == Ask::Model) {
        return None;
    }
    let presets = presets::all().iter().map(|preset| preset.id);
    let problem = Problem::unknown_name(NameKind::Run, "WHAT", word, presets);
    let has_near = matches!(&problem, Problem::UnknownName { near, .. } if !near.is_empty());
    // Of a name that is known as one the question says more.
    (has_near || !is_named).then_some(problem)
}

/// A question, with the option that answers it.
fn question((ask, why): &(Ask, String)) -> String {
    let name = ask.word();
    match import::answer(*ask) {
        Some(setting) => format!("{name}? {why}; say it with {} …", flags::named(setting)),
        None => format!("{name}? {why}"),
    }
}

/// What runs and is most likely not what was meant.
pub(super) fn warnings(prediction: &Prediction) -> Vec<String> {
    let all = prediction.warnings().iter();
    all.map(|problem| format!("warning: {problem}")).collect()
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
        return Err(missing(what, &error));
    }
    if bytes.len() > LARGEST_FILE {
        let expected = format!("a file of at most {LARGEST_FILE} bytes");
        return Err(Problem::new("WHAT", what, expected).into());
    }
    String::from_utf8(bytes).map_err(|_| Problem::new("WHAT", what, "text in UTF-8").into())
}

pub(super) fn missing(what: &str, error: &std::io::Error) -> Refusal {
    if error.kind() != std::io::ErrorKind::NotFound {
        return unreadable(what, error);
    }
    let presets = presets::all().iter().map(|preset| preset.id);
    Problem::unknown_name(NameKind::Run, "WHAT", what, presets).into()
}
