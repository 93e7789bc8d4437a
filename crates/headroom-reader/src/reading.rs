//! `read`: files, commands and sentences to facts.

use headroom_base::document::Document;
use headroom_scripts::{Beside, File, python, shell};

use super::comments;
use super::documents;
use super::fact::Fact;
use super::facts::Facts;
use super::finish;
use super::flags;
use super::jobs;
use super::keys;
use super::parts;
use super::program::{Form, Source, is_kind};
use super::programs::{LAST, PROGRAMS};
use super::sentence;

/// The form of a text, by its name and else by its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Shell,
    Python,
    Document,
    Words,
}

/// What several files say together: the first that names a run, and the others where it leaves something open.
pub fn files(files: &[File], beside: &dyn Beside) -> Facts {
    let together = Together { files, beside };
    let mut all: Vec<Facts> = files.iter().map(|one| file(one, &together)).collect();
    if all.is_empty() {
        return Facts::refuse("nothing was given");
    }
    // What names the model is filled up by the rest; a part of a run, such as an engine's configuration, has a batch at most.
    let first = |says: &dyn Fn(&Facts) -> bool| {
        all.iter()
            .position(|facts| facts.refused.is_none() && says(facts))
    };
    let main = first(&|facts| facts.model.is_known())
        .or_else(|| first(&|facts| !facts.model.is_unsaid() || !facts.micro_batch.is_unsaid()));
    let mut main = all.swap_remove(main.unwrap_or(0).min(all.len().saturating_sub(1)));
    for part in all {
        main.fill(part);
    }
    main
}

/// What one file says.
pub fn file(file: &File, beside: &dyn Beside) -> Facts {
    let kind = kind(&file.name, &file.text);
    if kind == Kind::Document
        && let Some(job) = jobs::read(file)
    {
        let mut facts = self::file(&job.script, beside);
        if let Some(gpu) = job.gpu.filter(|_| facts.gpu.is_unsaid()) {
            facts.gpu = Fact::read(gpu, "resources.accelerators");
        }
        return facts;
    }
    let mut facts = match kind {
        Kind::Shell => script(file, beside),
        Kind::Python => module(file, &[], None, beside),
        Kind::Document => document(file, beside),
        Kind::Words => return sentence::read(&file.text),
    };
    if facts.refused.is_none() && kind != Kind::Words {
        comments::apply(&file.text, &mut facts);
        finish::apply(&mut facts);
    }
    facts
}

fn kind(name: &str, text: &str) -> Kind {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    match extension.unwrap_or_default().to_ascii_lowercase().as_str() {
        "sh" | "bash" | "zsh" | "slurm" | "sbatch" | "job" => return Kind::Shell,
        "py" | "ipynb" => return Kind::Python,
        "yaml" | "yml" | "json" | "toml" => return Kind::Document,
        _ => {}
    }
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let starts = |words: &[&str]| {
        text.lines()
            .map(str::trim_start)
            .any(|line| words.iter().any(|word| line.starts_with(word)))
    };
    if text.starts_with("#!") && !text.starts_with("#!/usr/bin/env python") {
        return Kind::Shell;
    }
    if python::notebook(text).is_some() || starts(&["import ", "from ", "def ", "class "]) {
        return Kind::Python;
    }
    if text.lines().any(starts_a_program) {
        return Kind::Shell;
    }
    if lines.nth(1).is_none() && !text.trim_start().starts_with('{') {
        return Kind::Words;
    }
    if documents::read(text).is_some() {
        Kind::Document
    } else {
        Kind::Words
    }
}

/// A command that starts something.
#[derive(Clone, Debug)]
pub struct Launched {
    pub launch: shell::Launch,
    /// With typed values: for readers of documents.
    pub flags: Document,
    /// Variables with their texts.
    pub environment: Vec<(String, String)>,
}

/// The launches of a script.
pub fn launches(file: &File, beside: &dyn Beside) -> Vec<Launched> {
    let Some(script) = evaluated(file, beside) else {
        return Vec::new();
    };
    let launched = |command: &shell::Command| {
        let launch = shell::launch(command, &script, beside)?;
        let variables = command.environment.iter();
        let known = variables.filter(|(_, word)| word.unknown.is_none());
        Some(Launched {
            flags: keys::typed(flags::keys(&launch).tree()),
            environment: known
                .map(|(name, word)| (name.clone(), word.text.clone()))
                .collect(),
            launch,
        })
    };
    joined(&script.commands)
        .iter()
        .filter_map(launched)
        .collect()
}

/// The files that a script writes before it starts a program.
pub fn written(file: &File, beside: &dyn Beside) -> Vec<File> {
    let files = evaluated(file, beside).map_or_else(Vec::new, |script| script.files);
    let file = |(name, text)| File { name, text };
    files.into_iter().map(file).collect()
}

/// What a script does, or the one of a job file.
fn evaluated(file: &File, beside: &dyn Beside) -> Option<shell::Script> {
    match kind(&file.name, &file.text) {
        Kind::Shell => Some(shell::evaluate(&file.text, beside)),
        Kind::Document => jobs::read(file).map(|job| shell::evaluate(&job.script.text, beside)),
        Kind::Python | Kind::Words => None,
    }
}

/// What words say, as a command or as a sentence.
pub fn words(text: &str, beside: &dyn Beside) -> Facts {
    command(text, beside).unwrap_or_else(|| sentence::read(text))
}

/// What words say if they are a command that trains.
pub fn command(text: &str, beside: &dyn Beside) -> Option<Facts> {
    let own = File {
        name: String::new(),
        text: text.into(),
    };
    let facts = (kind("", text) == Kind::Shell).then(|| file(&own, beside));
    facts.filter(|facts| facts.refused.is_none())
}

/// Whether a line is a command that may start a training program, behind variables of its own or not.
fn starts_a_program(line: &str) -> bool {
    const LAUNCHERS: &[&str] = &[
        "torchrun",
        "accelerate",
        "deepspeed",
        "python",
        "python3",
        "srun",
        "sbatch",
        "export",
        "uv",
        "tune",
        "trl",
        "llamafactory-cli",
        "swift",
        "megatron",
        "axolotl",
        "litgpt",
        "yolo",
        "composer",
        "xtuner",
        "ray",
        "bash",
        "sh",
        "nohup",
        "mpirun",
        "unsloth",
        "poetry",
        "conda",
        "nemo",
        "torchtitan",
        "docker",
        "singularity",
    ];
    let is_variable = |word: &&str| {
        let name = word.split_once('=').map_or("", |(name, _)| name);
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let mut words = line
        .split_whitespace()
        .skip_while(|word| matches!(*word, "$" | "!" | ">"));
    let own = words.by_ref().skip_while(is_variable);
    let mut own = own.peekable();
    let first = own.next().unwrap_or_default();
    let second = own.next().is_some();
    line.starts_with("#SBATCH") || (second && LAUNCHERS.contains(&first))
}

fn document(file: &File, beside: &dyn Beside) -> Facts {
    let Some(keys) = documents::read(&file.text) else {
        return Facts::refuse("it holds no settings");
    };
    let source = Source {
        name: &file.name,
        text: &file.text,
        form: Form::Document(keys),
        beside,
    };
    if let Some(facts) = of_programs(&source) {
        return facts;
    }
    let Form::Document(keys) = &source.form else {
        return Facts::refuse("it holds no settings");
    };
    parts::read(keys)
        .unwrap_or_else(|| Facts::unrecognised("no program is known that trains from such a file"))
}

/// The first program that reads it.
fn of_programs(source: &Source) -> Option<Facts> {
    let mut facts = PROGRAMS.iter().find_map(|program| (program.read)(source))?;
    if let (true, Form::Document(keys) | Form::Command { flags: keys, .. }) =
        (facts.unread.is_empty(), &source.form)
    {
        facts.unread = keys.unused();
    }
    Some(facts)
}

/// A script's run: that of the first of its commands that a program knows.
fn script(file: &File, beside: &dyn Beside) -> Facts {
    let script = shell::evaluate(&file.text, beside);
    let mut launched = run(file, &script, beside);
    if launched.refused.is_none() {
        if launched.gpu.is_unsaid() {
            launched.gpu = allocated(&script);
        }
        return launched;
    }
    // One that only keeps its command in variables, for others to run.
    match kept(&script) {
        Some(command) => run(file, &shell::evaluate(&command, beside), beside),
        None => launched,
    }
}

/// The card that a scheduler is asked for: `#SBATCH --gres=gpu:h100:8`, `--constraint=a100`.
fn allocated(script: &shell::Script) -> Fact<&'static str> {
    const OPTIONS: &[&str] = &[
        "gres",
        "gpus",
        "gpus-per-node",
        "gpus-per-task",
        "constraint",
        "C",
    ];
    let asked = script.directives.iter();
    let asked = asked.filter(|(option, _)| OPTIONS.contains(&option.replace('_', "-").as_str()));
    let mut cards = asked.filter_map(|(option, value)| {
        let mut words = value.split([':', ',', '&', '|', '"']);
        let card = words.find_map(|word| sentence::read(word).gpu.value().copied())?;
        Some(Fact::read(card, option.clone()))
    });
    cards.next().unwrap_or_default()
}

fn run(file: &File, script: &shell::Script, beside: &dyn Beside) -> Facts {
    let written = Written {
        files: &script.files,
        beside,
    };
    let launches: Vec<shell::Launch> = joined(&script.commands)
        .iter()
        .filter_map(|command| shell::launch(command, script, &written))
        .collect();
    let source = |launch: &shell::Launch| Source {
        name: &file.name,
        text: &file.text,
        form: Form::Command {
            flags: flags::keys(launch),
            launch: launch.clone(),
        },
        beside: &written,
    };
    for launch in &launches {
        if let Some(facts) = of_programs(&source(launch)) {
            return facts;
        }
        let path = &launch.program.text;
        let own = written.text(path).filter(|_| is_kind(path, &["py"]));
        let Some(text) = own else { continue };
        let own = File {
            name: path.clone(),
            text,
        };
        let words = launch.arguments.iter();
        let arguments: Vec<String> = words.map(|word| word.text.clone()).collect();
        let facts = module(&own, &arguments, Some(launch.clone()), &written);
        if facts.refused.is_none() {
            return facts;
        }
    }
    let last = launches
        .iter()
        .find_map(|launch| (LAST.read)(&source(launch)));
    last.unwrap_or_else(|| Facts::unrecognised("none of its commands trains with a known program"))
}

/// No program is called `--flag`: such a line goes on from the one before it, whose `\\` was lost on the way to a document.
fn joined(commands: &[shell::Command]) -> Vec<shell::Command> {
    let mut all: Vec<shell::Command> = Vec::with_capacity(commands.len());
    for command in commands {
        let first = command.words.first();
        let goes_on = first.is_some_and(|word| word.text.starts_with("--"));
        match all.last_mut() {
            Some(last) if goes_on => last.words.extend(command.words.iter().cloned()),
            _ => all.push(command.clone()),
        }
    }
    all
}

/// The command that a script's variables hold: one that begins with a launcher, and those that are its arguments.
fn kept(script: &shell::Script) -> Option<String> {
    const LAUNCHERS: &[&str] = &["torchrun", "accelerate", "deepspeed", "python"];
    let values = || script.variables.values().map(|word| word.text.trim());
    let is_launcher = |text: &&str| {
        let first = text.split_whitespace().next().unwrap_or_default();
        LAUNCHERS.contains(&first) && text.contains(' ')
    };
    let launcher = values().find(is_launcher)?;
    let arguments: Vec<&str> = values().filter(|text| text.starts_with("--")).collect();
    Some(format!("{launcher} {}", arguments.join(" ")))
}

fn module(
    file: &File,
    arguments: &[String],
    launch: Option<shell::Launch>,
    beside: &dyn Beside,
) -> Facts {
    let code = python::notebook(&file.text);
    let text = code.as_deref().unwrap_or(&file.text);
    let module = python::evaluate(text, arguments, beside);
    let (commands, files) = (module.commands.clone(), module.files.clone());
    let written = Written {
        files: &files,
        beside,
    };
    let source = Source {
        name: &file.name,
        text,
        form: Form::Python { module, launch },
        beside: &written,
    };
    if let Some(facts) = of_programs(&source) {
        return facts;
    }
    // A notebook, or a script that starts others.
    let started = commands.iter().find_map(|command| {
        let own = File {
            name: String::new(),
            text: command.clone(),
        };
        Some(script(&own, &written)).filter(|facts| facts.refused.is_none())
    });
    started.unwrap_or_else(|| Facts::unrecognised("it trains nothing with a known program"))
}

/// Files that are read together, and those beside them.
struct Together<'a> {
    files: &'a [File],
    beside: &'a dyn Beside,
}

impl Beside for Together<'_> {
    fn text(&self, path: &str) -> Option<String> {
        self.files.text(path).or_else(|| self.beside.text(path))
    }
}

/// Files that a script or a notebook writes before it starts a program, and those beside it.
struct Written<'a> {
    files: &'a [(String, String)],
    beside: &'a dyn Beside,
}

impl Beside for Written<'_> {
    fn text(&self, path: &str) -> Option<String> {
        let plain = |path: &str| path.trim_start_matches("./").to_string();
        let wanted = plain(path);
        let mut own = self.files.iter().rev();
        let own = own.find(|(name, _)| plain(name) == wanted);
        own.map(|(_, text)| text.clone())
            .or_else(|| self.beside.text(path))
    }
}
