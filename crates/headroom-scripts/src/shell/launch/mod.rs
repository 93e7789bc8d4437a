//! Launchers: how many processes a command starts on which GPUs, and what it gives to the program.

mod accelerate;
mod deepspeed;
mod torchrun;

use super::options::Options;
use super::wrap::{self, has_extension};
use super::{Command, Script, Word, allocation, own};
use crate::Beside;
use accelerate::accelerate;
use deepspeed::deepspeed;
pub(super) use torchrun::torch_like;
use torchrun::torchrun;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// `python train.py`: one process.
    Python,
    Torchrun,
    Accelerate,
    Deepspeed,
    /// A program's own command, such as `axolotl train`, `llamafactory-cli train`, `swift sft`.
    Program,
    Srun,
    Ray,
}

/// A number of GPUs, as far as a command says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Count {
    Known(u64),
    /// Every visible GPU, or one that depends on what was not given: why.
    Unknown(String),
}

/// A command that starts a training program.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    pub launcher: Launcher,
    /// GPUs of the whole job.
    pub gpus: Count,
    pub nodes: Option<u64>,
    /// The program: a path such as `examples/run.py`, a module as `openrlhf.cli.train_ppo`, a command as `axolotl`.
    pub program: Word,
    /// What follows it.
    pub arguments: Vec<Word>,
    /// Accelerate's or DeepSpeed's file, where the launcher is given one.
    pub config: Option<Word>,
    /// The launcher's own options, such as accelerate's `--mixed_precision`, without dashes and with underscores; a variable
    /// that decides GPUs, such as `CUDA_VISIBLE_DEVICES`, by its name.
    pub options: Vec<(String, Word)>,
}

/// The launch in a command; `None` where it starts nothing that could train.
pub fn launch(command: &Command, script: &Script, beside: &dyn Beside) -> Option<Launch> {
    let mut words: Vec<Word> = Vec::with_capacity(command.within.len() + command.words.len());
    words.extend(command.within.iter().cloned());
    words.extend(command.words.iter().cloned());
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let mut at = 0;
    let mut around = allocation::Around::of(script);
    while let Some(rest) = texts.get(at..) {
        let length = wrap::skip(rest);
        if length == 0 || length >= rest.len() {
            break;
        }
        around.read(words.get(at..at + length)?);
        at += length;
    }
    let words = words.get(at..)?;
    let mut launch = program(command, words, script, beside, &around)?;
    if let Some(visible) = command.environment.get("CUDA_VISIBLE_DEVICES") {
        launch
            .options
            .push(("CUDA_VISIBLE_DEVICES".into(), visible.clone()));
    }
    around.decide(&mut launch);
    Some(launch)
}

/// The launch in the words behind all wrappers.
fn program(
    command: &Command,
    words: &[Word],
    script: &Script,
    beside: &dyn Beside,
    around: &allocation::Around,
) -> Option<Launch> {
    let (first, rest) = words.split_first()?;
    let name = first.text.rsplit('/').next().unwrap_or(&first.text);
    if name == "-m" || name == "--module" {
        return python(command, words, script, beside);
    }
    if is_python(name) {
        return python(command, rest, script, beside);
    }
    if first.unknown.is_some() && first.text.starts_with('$') && !first.text.contains('/') {
        return unknown_launcher(first, rest);
    }
    match name {
        "torchrun" | "torchx" => torchrun(command, rest),
        "accelerate" if rest.first()?.text == "launch" => {
            accelerate(command, rest.get(1..)?, script, beside)
        }
        "accelerate-launch" => accelerate(command, rest, script, beside),
        "deepspeed" | "ds" => deepspeed(command, rest, script, beside),
        // A script may start another command behind `--`, as `uv run job.py … -- torchrun …`.
        _ if has_extension(name, &["py"]) => {
            wrapped(command, first, rest, script, beside).or_else(|| Some(one_process(first, rest)))
        }
        _ if has_extension(name, &["sh"]) => own::script_of_mmengine(command, first, rest),
        "bash" | "sh" => {
            let at = rest.iter().position(|word| !word.text.starts_with('-'))?;
            own::script_of_mmengine(command, rest.get(at)?, rest.get(at + 1..)?)
        }
        _ => own::program(command, first, rest, around.runs_a_project),
    }
}

/// `$LAUNCHER train.py --batch_size 4`, of whose first word nothing is known.
fn unknown_launcher(first: &Word, rest: &[Word]) -> Option<Launch> {
    let why = first.unknown.clone().unwrap_or_default();
    let script = rest
        .iter()
        .position(|word| has_extension(&word.text, &["py"]));
    let options = rest.iter().any(|word| word.text.starts_with("--"));
    let (program, arguments) = match script {
        Some(at) => (rest.get(at)?, rest.get(at + 1..)?),
        None if options => (first, rest),
        None => return None,
    };
    Some(Launch {
        launcher: Launcher::Program,
        gpus: Count::Unknown(why),
        nodes: None,
        program: program.clone(),
        arguments: arguments.to_vec(),
        config: None,
        options: Vec::new(),
    })
}

fn is_python(name: &str) -> bool {
    let version = name
        .strip_prefix("python")
        .or_else(|| name.strip_prefix("pypy"));
    version.is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.'))
        || name == "ipython"
}

fn one_process(program: &Word, arguments: &[Word]) -> Launch {
    Launch {
        launcher: Launcher::Python,
        gpus: Count::Known(1),
        nodes: Some(1),
        program: program.clone(),
        arguments: arguments.to_vec(),
        config: None,
        options: Vec::new(),
    }
}

fn python(
    command: &Command,
    words: &[Word],
    script: &Script,
    beside: &dyn Beside,
) -> Option<Launch> {
    let mut at = 0;
    loop {
        let word = words.get(at)?;
        match word.text.as_str() {
            "-c" | "--version" | "-V" | "--help" => return None,
            "-W" | "-X" | "--check-hash-based-pycs" => at += 2,
            "-m" | "--module" => break,
            "-" => return Some(one_process(word, words.get(at + 1..)?)),
            text if text.starts_with('-') && text.contains('c') && text.len() == 3 => return None,
            text if text.starts_with("-m") && !text.starts_with("--") => return None,
            text if text.starts_with('-') => at += 1,
            _ => {
                let rest = words.get(at + 1..)?;
                return wrapped(command, word, rest, script, beside)
                    .or_else(|| Some(one_process(word, rest)));
            }
        }
    }
    let module = words.get(at + 1)?;
    let rest = words.get(at + 2..)?;
    match module.text.as_str() {
        "torch.distributed.launch" | "torch.distributed.run" | "torch.distributed.elastic" => {
            torchrun(command, rest)
        }
        "accelerate.commands.launch" => accelerate(command, rest, script, beside),
        "accelerate.commands.accelerate_cli" | "accelerate" => {
            accelerate(command, rest.strip_prefix_launch()?, script, beside)
        }
        "deepspeed" | "deepspeed.launcher.runner" | "deepspeed.launcher.launch" => {
            deepspeed(command, rest, script, beside)
        }
        "pip" | "venv" | "build" | "http.server" | "ipykernel" | "json.tool" | "pytest"
        | "unittest" | "virtualenv" | "ensurepip" | "nltk.downloader" | "spacy" | "zipfile"
        | "site" | "cProfile" => None,
        _ => Some(one_process(module, rest)),
    }
}

trait StripLaunch {
    fn strip_prefix_launch(&self) -> Option<&[Word]>;
}

impl StripLaunch for [Word] {
    fn strip_prefix_launch(&self) -> Option<&[Word]> {
        (self.first()?.text == "launch")
            .then(|| self.get(1..))
            .flatten()
    }
}

/// `python submit.py --gpus 8 --num_nodes 4 -- python train.py …`: a program that starts another one elsewhere.
fn wrapped(
    command: &Command,
    outer: &Word,
    words: &[Word],
    script: &Script,
    beside: &dyn Beside,
) -> Option<Launch> {
    let dashes = words.iter().position(|word| word.text == "--")?;
    let _ = outer;
    let options = Options::all(words.get(..dashes)?);
    let inner = words.get(dashes + 1..)?;
    // Several commands in a row; the last that launches is the job.
    let mut parts = inner.split(|word| matches!(word.text.as_str(), "&&" | ";" | "||"));
    let mut found = None;
    for part in &mut parts {
        let inner = Command {
            words: part.to_vec(),
            environment: command.environment.clone(),
            within: Vec::new(),
        };
        found = launch_once(&inner, script, beside).or(found);
    }
    let mut launch = found?;
    let nodes = options.number(&["num_nodes", "nnodes", "nodes"]);
    let gpus = options.number(&["gpus", "num_gpus", "gpus_per_node", "gpu_count", "ngpus"]);
    if let Some(nodes) = nodes {
        launch.nodes = Some(nodes);
    }
    if let (Some(gpus), Launcher::Python | Launcher::Program) = (gpus, launch.launcher) {
        launch.gpus = Count::Known(gpus.saturating_mul(nodes.unwrap_or(1)));
    } else if let (Some(gpus), Count::Unknown(_)) = (gpus, &launch.gpus) {
        launch.gpus = Count::Known(gpus.saturating_mul(nodes.unwrap_or(1)));
    }
    Some(launch)
}

/// The launch in a command that stands in another: one level only.
fn launch_once(command: &Command, script: &Script, beside: &dyn Beside) -> Option<Launch> {
    let nested = command.words.iter().any(|word| word.text == "--");
    if nested {
        return None;
    }
    launch(command, script, beside)
}

/// A count that an option gives, or why it cannot be known.
fn count(word: &Word) -> Result<u64, String> {
    if let Some(why) = &word.unknown {
        return Err(why.clone());
    }
    word.text.trim().parse().map_err(|_| word.text.clone())
}

/// GPUs that the environment shows, if it says so.
pub(super) fn visible(command: &Command) -> Option<Result<u64, String>> {
    let devices = command.environment.get("CUDA_VISIBLE_DEVICES")?;
    if let Some(why) = &devices.unknown {
        return Some(Err(why.clone()));
    }
    let count = devices
        .text
        .split(',')
        .filter(|device| !device.trim().is_empty())
        .count();
    (count > 0 && devices.text.trim() != "-1").then_some(Ok(count as u64))
}

/// Every visible GPU of a node.
pub(super) fn every_visible(command: &Command, why: &str) -> Result<u64, String> {
    visible(command).unwrap_or_else(|| Err(why.into()))
}

pub(super) fn product(per_node: Result<u64, String>, nodes: &Result<u64, String>) -> Count {
    match (per_node, nodes) {
        (Ok(gpus), Ok(nodes)) => Count::Known(gpus.saturating_mul(*nodes)),
        (Err(why), _) => Count::Unknown(why),
        (_, Err(why)) => Count::Unknown(why.clone()),
    }
}

/// A file that the script wrote, or one beside it.
fn file(path: &str, script: &Script, beside: &dyn Beside) -> Option<String> {
    let plain = path.trim_start_matches("./");
    let own = script
        .files
        .iter()
        .rev()
        .find(|(name, _)| name.trim_start_matches("./") == plain);
    own.map(|(_, text)| text.clone())
        .or_else(|| beside.text(path))
}

/// The number of a key at the top of a YAML file.
fn entry(text: &str, key: &str) -> Option<u64> {
    let line = |line: &str| {
        let rest = line.strip_prefix(key)?.trim_start().strip_prefix(':')?;
        let value = rest.split('#').next()?.trim();
        value.trim_matches(['"', '\'']).parse().ok()
    };
    text.lines().find_map(line)
}

/// The launches of a script, in the order of a run. A script that only defines a command, as variables for others to run, has
/// that.
pub fn launches(script: &Script, beside: &dyn Beside) -> Vec<Launch> {
    let found: Vec<Launch> = script
        .commands
        .iter()
        .filter_map(|command| launch(command, script, beside))
        .collect();
    if !found.is_empty() {
        return found;
    }
    let words = |text: &Word| -> Vec<Word> {
        let word = |part: &str| Word {
            text: part.into(),
            unknown: text.unknown.clone().filter(|_| part.contains(['$', '`'])),
        };
        text.text.split_whitespace().map(word).collect()
    };
    let starts = |text: &str| {
        let first = text.split_whitespace().next().unwrap_or_default();
        matches!(
            first,
            "torchrun" | "accelerate" | "deepspeed" | "python" | "python3"
        )
    };
    let mut held = script.variables.values().filter(|word| starts(&word.text));
    let Some(start) = held.next() else {
        return found;
    };
    let mut command = Command {
        words: words(start),
        ..Command::default()
    };
    for word in script.variables.values() {
        if word.text.starts_with("--") {
            command.words.extend(words(word));
        }
    }
    launch(&command, script, beside).into_iter().collect()
}
