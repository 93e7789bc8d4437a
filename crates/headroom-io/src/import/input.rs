//! The one door: whatever a person brings, as a draft with origins, and what is assumed, asked and not modelled.

use std::collections::BTreeSet;

use headroom_base::document::{Document, json, toml, yaml};
use headroom_catalog as catalog;
use headroom_reader::draft::{self, Drafted};
use headroom_reader::facts::{Ask, Facts};
use headroom_reader::keys::Keys;
use headroom_reader::reading::{self, Launched};
use headroom_reader::words::{Task, Wanted};
use headroom_reader::{asks, names, sentence};
use headroom_scenario::resolve::{Origin, resolve};
use headroom_scenario::settings::{self, SettingId, Value};
use headroom_scenario::{Draft, Problem, Scenario, one_of, presets, share};
use headroom_scripts::{Beside, File};

use super::flags::equivalent;
use super::own::{self, Own};
use super::places::{adapt_every_layer, attention_projections, critic, every_linear, head_alone};
use super::usual;
use super::{
    Imported, KeyEffect, allocator, config, effect_of_key, known, plain, plugin_script, recorded,
};

/// What an input says: a draft, and what is wrong with it, missing or left out.
#[derive(Clone, Debug, Default)]
pub struct Input {
    pub draft: Draft,
    /// What cannot be used as it is written.
    pub problems: Vec<Problem>,
    /// What its user must say first, and why.
    pub asks: Vec<(Ask, String)>,
    /// What changes memory and is not in the draft.
    pub not_modelled: Vec<String>,
    /// Keys whose effect on memory is unknown.
    pub unread: Vec<String>,
    pub notes: Vec<String>,
    /// Why it is no training run.
    pub refused: Option<String>,
    /// It names no model, and changes the run that it was read for.
    pub part: bool,
    /// What an expert reads from it; none for scenarios, links and presets, which say everything themselves.
    pub facts: Option<Facts>,
}

/// The setting that answers a question.
pub fn answer(ask: Ask) -> Option<SettingId> {
    settings::find(match ask {
        Ask::Model | Ask::BaseConfig | Ask::Vocabulary => "model.id",
        Ask::Batch => "data.micro_batch",
        Ask::Sequence | Ask::Resolution | Ask::Frames => "data.sequence",
        Ask::Gpus => "hardware.gpus",
        Ask::Strategy => "parallel.strategy",
        Ask::Trained | Ask::Adapter => "training.lora",
    })
}

/// Words: a preset, a model, a link, a sentence, a command.
pub fn words(text: &str, beside: &dyn Beside) -> Input {
    let text = text.trim();
    if let Some(preset) = presets::find(text) {
        return Input {
            draft: preset.draft(),
            ..Input::default()
        };
    }
    if text.contains("#v=") || text.starts_with("v=") {
        let opened = share::read(text);
        return Input {
            draft: opened.draft,
            problems: opened.problems,
            ..Input::default()
        };
    }
    // A name may have spaces; words beside it say more, though names leave out the words of tuning.
    let named = || catalog::model_named(text).map(|entry| entry.id);
    let is_name = !text.contains(char::is_whitespace)
        || catalog::models()
            .iter()
            .any(|model| model.name.eq_ignore_ascii_case(text));
    if let Some(model) = named().filter(|_| is_name) {
        return of_model(model, text);
    }
    let command = reading::command(text, beside);
    let is_sentence = command.is_none();
    let facts = command.unwrap_or_else(|| sentence::read(text));
    if is_sentence
        && facts.network().is_none()
        && let Some(model) = named()
    {
        return of_model(model, text);
    }
    let mut input = of_facts(facts, Draft::default(), is_sentence);
    if is_sentence {
        // Who says a sentence means the run that people start with, not the format's defaults.
        input.draft.bring_usual_run();
        let unsaid = input
            .facts
            .as_ref()
            .is_some_and(|facts| facts.strategy.is_unsaid());
        if let Some(strategy) = settings::find("parallel.strategy").filter(|_| unsaid) {
            input.draft.forget(strategy);
        }
        adapt_every_layer(&mut input.draft);
        usual::without_bf16(&mut input.draft);
        usual::sampler(input.facts.as_ref(), &mut input.draft);
        beside_the_policy(&mut input);
    }
    input
}

fn of_model(model: &str, written: &str) -> Input {
    let mut draft = Draft::default();
    if let Some(setting) = settings::find("model.id") {
        draft.read(setting, model, Origin::User);
    }
    let mut input = Input {
        draft,
        ..Input::default()
    };
    let named = names::named(written);
    if let Some(reason) = named.refused {
        input.problems.push(Problem::new("model", written, reason));
    }
    input
}

/// Files; `run` is what a file without a model changes.
pub fn files(files: &[File], beside: &dyn Beside, run: Option<&Scenario>) -> Input {
    match own::read(files) {
        Some(Own::Written(own)) => of_import(*own, true),
        Some(Own::Edited(name)) => {
            let mut input = others(files, beside, run);
            let unread = input.refused.is_some() || !input.asks.is_empty();
            if unread {
                let expected = "as it was exported: what was changed in it cannot be read; change the scenario of its link";
                input.problems.push(Problem::new("WHAT", name, expected));
            } else {
                input.notes.push(format!(
                    "{name} was changed since it was exported: it is read as it is, not by its link"
                ));
            }
            input
        }
        None => others(files, beside, run),
    }
}

/// Files that are not as Headroom wrote them.
fn others(files: &[File], beside: &dyn Beside, run: Option<&Scenario>) -> Input {
    if let [file] = files
        && let Some(input) = alone(file, run)
    {
        return input;
    }
    let facts = reading::files(files, beside);
    let default = Scenario::default();
    let run_or_default = run.unwrap_or(&default);
    let launches: Vec<Launched> = files
        .iter()
        .flat_map(|file| reading::launches(file, beside))
        .collect();
    let written = files.iter().flat_map(|file| reading::written(file, beside));
    let written: Vec<File> = written.collect();
    let documents = files.iter().chain(&written);
    let documents: Vec<Document> = documents.filter_map(|file| parse(&file.text)).collect();
    // Our own loop's configuration leaves nothing to its script.
    let ours = documents
        .iter()
        .find(|document| plain::recognises(document));
    if let Some(ours) = ours {
        return of_import(plain::read(ours), true);
    }
    let flags = launches
        .iter()
        .map(|one| equivalent(&one.launch, one.flags.clone()));
    // What names its model says more than a part of a run, such as its launcher's configuration.
    let mut exact: Vec<Imported> = documents
        .into_iter()
        .chain(flags)
        .filter_map(|document| known(&document, run_or_default))
        .collect();
    exact.sort_by_key(|exact| exact.part);
    // Scripts for images have flags of the same names as a Trainer's, which mean other things.
    let images = facts.task.value() == Some(&Task::Diffusion);
    let exact = exact.into_iter().next().filter(|_| !images);
    let mut input = match exact {
        Some(exact) if facts.unrecognised => of_import(exact, run.is_some()),
        // Its own reader knows it, and knows that it trains nothing.
        Some(_) if facts.refused.is_some() => of_facts(facts, Draft::default(), false),
        Some(exact) if exact.part && run.is_some() && facts.model.value().is_none() => {
            of_import(exact, true)
        }
        Some(exact) => merged(exact, facts),
        None => match run.filter(|_| facts.model.value().is_none() && facts.refused.is_none()) {
            Some(run) => Input {
                part: true,
                asks: Vec::new(),
                ..of_facts(facts, Draft::of_run(run), false)
            },
            None => of_facts(facts, Draft::of_format(Scenario::VERSION), false),
        },
    };
    for launched in &launches {
        settings_of(&launched.environment, &mut input.draft);
    }
    leave_compilation(&mut input);
    beside_the_policy(&mut input);
    input
}

/// The critic of PPO, where a program updates it by itself.
fn beside_the_policy(input: &mut Input) {
    let Some(facts) = &input.facts else {
        return;
    };
    input.notes.extend(critic(facts, &mut input.draft));
}

/// Where compiled graphs are not modelled the same run without them is, and that is said: it is no reason for no answer.
fn leave_compilation(input: &mut Input) {
    let Some(setting) = settings::find("training.compile") else {
        return;
    };
    let Some((_, origin)) = input.draft.get(setting).cloned() else {
        return;
    };
    let problems = resolve(&input.draft).scenario.check();
    if problems
        .iter()
        .any(|problem| problem.field() == setting.path)
    {
        input.draft.read(setting, "nothing", origin);
        let line = "torch.compile of this run: the estimate is of the run without it";
        input.not_modelled.push(line.into());
    }
}

/// The allocator's settings among variables.
fn settings_of(variables: &[(String, String)], draft: &mut Draft) {
    let mut imported = Imported::default();
    allocator(&mut imported, variables);
    for setting in settings::all() {
        if let Some((value, origin @ Origin::File { .. })) = imported.draft.get(setting) {
            draft.set_value(setting, value.clone(), origin.clone());
        }
    }
}

/// A file that needs no program's reader: a scenario, a recorded model, a model's configuration.
fn alone(file: &File, run: Option<&Scenario>) -> Option<Input> {
    if let Some(own) = plugin_script(&file.text) {
        return Some(of_import(own, true));
    }
    let document = parse(&file.text)?;
    if recorded::recognises(&document) {
        return Some(of_import(recorded::read(&document), true));
    }
    if config::recognises(&document) {
        return Some(of_import(config::read(&document), true));
    }
    if super::of_plugin(&document) || is_scenario(&document) {
        let read = super::read(&document, run.unwrap_or(&Scenario::default()));
        return Some(of_import(read, true));
    }
    None
}

/// Whether a document's sections are a scenario's, or most of its keys are settings of ours.
fn is_scenario(document: &Document) -> bool {
    let Document::Map(entries) = document else {
        return false;
    };
    let is_ours = |key: &str| {
        key == "version"
            || settings::SECTIONS
                .iter()
                .any(|(section, _)| *section == key)
    };
    let ours = entries.iter().filter(|entry| is_ours(&entry.key)).count();
    if document.get("version").is_some() && ours * 2 >= entries.len() {
        return true;
    }
    let leaves = Keys::new(document.clone()).unused();
    // Sizes and networks are settings with keys of their own.
    let above = |path: &str| {
        let ends = path.match_indices('.').map(|(at, _)| at);
        let mut all = ends.chain([path.len()]);
        all.any(|end| {
            path.get(..end)
                .is_some_and(|path| settings::find(path).is_some())
        })
    };
    let own = leaves.iter().filter(|path| above(path)).count();
    own > 0 && (own * 2 > leaves.len() || ours == entries.len())
}

fn parse(text: &str) -> Option<Document> {
    let read = if text.trim_start().starts_with('{') {
        json::read(text)
    } else if toml::recognises(text) {
        toml::read(text)
    } else {
        yaml::read(text)
    };
    read.ok()
        .filter(|document| matches!(document, Document::Map(_)))
}

fn of_import(imported: Imported, whole: bool) -> Input {
    let mut input = Input {
        part: imported.part,
        draft: imported.draft,
        problems: imported.problems,
        notes: imported.notes,
        ..Input::default()
    };
    input
        .asks
        .extend(imported.question.map(|problem| match problem {
            Problem::UnknownName { given, near, .. } => {
                (Ask::Model, not_in_catalogue(&given, &near))
            }
            other => (Ask::Model, other.to_string()),
        }));
    if imported.part && !whole {
        input
            .asks
            .push((Ask::Model, "the file is for any model".into()));
    }
    input.leave(&imported.unused_keys);
    input
}

impl Input {
    /// Sorts keys that no setting expresses by what they do to memory.
    fn leave(&mut self, keys: &[String]) {
        for key in keys {
            let line = match effect_of_key(key) {
                KeyEffect::None => continue,
                effect @ KeyEffect::May => format!("{key}: {effect}"),
                KeyEffect::Unknown => {
                    self.unread.push(key.clone());
                    continue;
                }
            };
            self.not_modelled.push(line);
        }
    }
}

/// What a program's exact reader sets, over what an expert reads; where they speak of the same, the exact one is finer, but for
/// the few settings that only the whole of a file decides.
fn merged(exact: Imported, facts: Facts) -> Input {
    const BY_FACTS: &[&str] = &[
        "task.objective",
        "training.loss",
        "hardware.gpus",
        "hardware.nodes",
        "parallel.strategy",
        "parallel.offload",
        "model.id",
    ];
    let facts_unread: BTreeSet<String> = facts.unread.iter().cloned().collect();
    let mut input = of_facts(facts, Draft::of_format(Scenario::VERSION), false);
    for setting in settings::all() {
        let Some((value, origin @ Origin::File { .. })) = exact.draft.get(setting) else {
            continue;
        };
        // A model and its data alone are no mark of TRL's: the script's name says more.
        let guessed = setting.path == "stack.trainer" && *value == Value::Text("trl".into());
        let by_facts = guessed || BY_FACTS.contains(&setting.path);
        if !by_facts || input.draft.get(setting).is_none() {
            input
                .draft
                .set_value(setting, value.clone(), origin.clone());
        }
    }
    input.problems.extend(exact.problems);
    input.notes.extend(exact.notes);
    // A key that one of the two understood is no longer open.
    let open = |key: &&String| facts_unread.contains(*key);
    let left: Vec<String> = exact.unused_keys.iter().filter(open).cloned().collect();
    input.unread.clear();
    input.leave(&left);
    input
}

fn of_facts(facts: Facts, over: Draft, is_sentence: bool) -> Input {
    let Drafted {
        mut draft,
        left,
        mut notes,
    } = draft::draft(&facts, over);
    notes.extend(facts.notes.iter().cloned());
    every_linear(&facts, &mut draft);
    attention_projections(&mut draft);
    let mut left = left;
    if head_alone(&facts, &mut draft) {
        left.retain(|line| !line.starts_with("what is trained"));
    }
    let mut input = Input {
        draft,
        not_modelled: left,
        notes,
        refused: facts.refused.clone(),
        ..Input::default()
    };
    // A sentence says what its speaker cares about; the rest has defaults, which are listed.
    let needed = |ask: &Ask| !is_sentence || *ask == Ask::Model;
    input.asks = asks(&facts)
        .into_iter()
        .filter(|(ask, _)| needed(ask))
        .collect();
    if let Some(model) = facts.model.value() {
        let named = names::named(model);
        if let Some(reason) = named.refused {
            input
                .problems
                .push(Problem::new("model", model.clone(), reason));
        } else if facts.network().is_none()
            && facts.sized().is_none()
            && input.asks.iter().all(|(ask, _)| *ask != Ask::Model)
        {
            let why = not_in_catalogue(model, &named.near);
            input.asks.push((Ask::Model, why));
        }
    }
    input
        .notes
        .extend(facts.wanted.map(wanted).map(str::to_string));
    if is_sentence && !facts.unread.is_empty() {
        let words = facts.unread.join("`, `");
        input.notes.push(format!("not understood: `{words}`"));
    }
    input.facts = Some(facts);
    input
}

/// A name that is no model of the catalogue, and what to do instead.
fn not_in_catalogue<S: AsRef<str> + std::borrow::Borrow<str>>(name: &str, near: &[S]) -> String {
    let instead = one_of(near).map_or_else(
        || "give its config.json, or the entry of the same sizes".to_string(),
        |near| format!("did you mean {near}?"),
    );
    format!("`{name}` is not in the catalogue; {instead}")
}

/// The command that answers what a sentence asks, besides whether its run fits.
const fn wanted(wanted: Wanted) -> &'static str {
    match wanted {
        Wanted::Batch => "`headroom fit` and `headroom plan` answer for the largest batch",
        Wanted::Length => "`headroom plan` answers for the longest sequence",
        Wanted::Cards => "`headroom plan` answers for the number of GPUs",
        Wanted::Cheapest => "`headroom plan` and `headroom gpus` answer for the cheapest GPU",
    }
}
