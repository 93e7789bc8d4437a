//! The command line's grammar, made of the table of commands: parsing, and what is wrong with arguments.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, ValueHint};

use super::answer::Refusal;
use super::args::Args;
use super::command::{Command, Opt};
use super::commands::COMMANDS;
use super::flags::{self, Which};
use headroom_scenario::{NameKind, Problem, settings};

/// What arguments ask for.
pub(super) enum Parsed {
    Run(&'static Command, Args),
    /// Help or the version, to be printed.
    Print(clap::builder::StyledStr),
}

/// Reads arguments, without the program's name.
pub(super) fn parse(given: &[String]) -> Result<Parsed, Refusal> {
    let named = given.iter().find_map(|word| find(word));
    // Without a command there is nothing to say but what is wrong.
    let settings = named.map_or(Settings::Common, Settings::Of);
    let words = std::iter::once("headroom").chain(given.iter().map(String::as_str));
    let matches = match program(&settings).try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(error) => {
            return match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                    Ok(Parsed::Print(error.render()))
                }
                _ => Err(problem(&error, named)),
            };
        }
    };
    let (command, matches) = matches
        .subcommand()
        .and_then(|(name, matches)| Some((find(name)?, matches)))
        .ok_or_else(|| unknown_command(""))?;
    Ok(Parsed::Run(command, args(command, matches)))
}

/// Which options of settings a grammar has: commands are many, and so are settings.
pub(super) enum Settings<'a> {
    /// All, of one command.
    Of(&'a Command),
    /// Of every command those that help shows.
    Common,
}

/// The grammar.
pub(super) fn program(settings: &Settings) -> clap::Command {
    let all = COMMANDS.iter().map(|command| {
        let which = match settings {
            Settings::Of(one) if one.name != command.name => None,
            Settings::Of(_) => Some(Which::All),
            Settings::Common => Some(Which::Common),
        };
        subcommand(command, which.filter(|_| command.takes_settings()))
    });
    clap::Command::new("headroom")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Does this training run fit on that GPU, what can I change, how do I run it?")
        .after_help(AFTER)
        .disable_help_subcommand(true)
        .subcommand_required(true)
        .subcommands(all)
}

/// The command with this name.
pub(super) fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name)
}

/// The problem of a name that no command has.
pub(super) fn unknown_command(given: &str) -> Problem {
    let names = COMMANDS.iter().map(|command| command.name);
    Problem::unknown_name(NameKind::Command, "command", given, names)
}

const AFTER: &str = "WHAT is a preset, a model's name, files (a scenario, a trainer's configuration, a script), a link, a \
     sentence in quotes, or - for standard input.\n`headroom help COMMAND` explains a command. Every command takes \
     --json.\n\nExit codes: 0 success (and it fits, for commands that check it), 1 does not fit, 2 bad input.\n\n\
     Examples:\n  headroom estimate llama-3.1-8b --gpu 4090 --batch 1 --seq 2048 --lora --checkpointing layers\n  headroom fit gpt2 --gpu 4090\n  \
     headroom check train.sh ds_z3.json --gpu a100-80gb";

fn subcommand(command: &Command, settings: Option<Which>) -> clap::Command {
    let detailed = settings.is_some();
    let words = command
        .words
        .iter()
        .map(|word| positional(command, word, detailed));
    let options = command.options.iter().map(option);
    let json = Arg::new("json")
        .long("json")
        .help("print JSON, also of what is wrong")
        .action(ArgAction::SetTrue);
    let own = clap::Command::new(command.name)
        .about(command.about)
        .args(words)
        .args(options)
        .arg(json);
    let Some(which) = settings else {
        return own;
    };
    let names = command.options.iter().map(|option| option.name);
    let taken: Vec<&str> = names.chain(["json", "help", "version"]).collect();
    flags::add(own, &taken, which).after_help(
        "Every field of a scenario is an option: `headroom schema` lists them, with their keys and values.",
    )
}

fn positional(command: &Command, word: &'static str, detailed: bool) -> Arg {
    let optional = word.starts_with('[');
    let repeats = word.ends_with('…');
    let arg = Arg::new(word)
        .value_name(word.trim_end_matches('…').trim_matches(['[', ']']))
        .value_hint(ValueHint::AnyPath);
    let arg = match meaning(word) {
        Some(meaning) => arg.help(meaning),
        None => arg,
    };
    let arg = if repeats {
        arg.num_args(1..).action(ArgAction::Append)
    } else {
        arg
    };
    if detailed && command.takes_run() {
        arg.required_unless_present("model.id")
    } else {
        arg.required(!optional)
    }
}

fn option(option: &Opt) -> Arg {
    let arg = Arg::new(option.name).long(option.name).help(option.about);
    if option.value.is_empty() {
        return arg.action(ArgAction::SetTrue);
    }
    arg.value_name(option.value)
        .action(ArgAction::Append)
        .allow_negative_numbers(true)
}

/// What was given, in the order in which it was given.
fn args(command: &'static Command, matches: &ArgMatches) -> Args {
    let values = |id: &str| -> Vec<(usize, String)> {
        let given = matches.try_get_many::<String>(id).ok().flatten();
        let places = matches.indices_of(id).into_iter().flatten();
        places.zip(given.into_iter().flatten().cloned()).collect()
    };
    let mut options = Vec::new();
    for option in command.options {
        if option.value.is_empty() {
            if matches.get_flag(option.name) {
                options.push((0, option.name, String::new()));
            }
            continue;
        }
        let given = values(option.name).into_iter();
        options.extend(given.map(|(at, value)| (at, option.name, value)));
    }
    let words = command.words.iter().flat_map(|word| values(word));
    let mut words: Vec<String> = words.map(|(_, word)| word).collect();
    if command.takes_settings() {
        for setting in settings::all() {
            let mut given = values(setting.path);
            if setting.path == "model.id" && words.is_empty() && command.takes_run() {
                words.extend(given.pop().map(|(_, model)| model));
            }
            let changes = given.into_iter();
            options.extend(changes.map(|(at, value)| (at, "set", flags::change(setting, &value))));
        }
    }
    options.sort_by_key(|(at, ..)| *at);
    let options = options.into_iter().map(|(_, name, value)| (name, value));
    Args {
        words,
        options: options.collect(),
        json: matches.get_flag("json"),
    }
}

/// What is wrong, and what to type instead.
fn problem(error: &clap::Error, command: Option<&Command>) -> Refusal {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        Some(ContextValue::Strings(texts)) => texts.first().map_or("", String::as_str),
        _ => "",
    };
    let given = text(ContextKind::InvalidArg);
    let line = match (error.kind(), command) {
        (ErrorKind::InvalidSubcommand, _) => {
            return unknown_command(text(ContextKind::InvalidSubcommand)).into();
        }
        (ErrorKind::MissingSubcommand, _) => {
            "a command is needed; `headroom help` lists them".into()
        }
        (ErrorKind::UnknownArgument, Some(command)) if !given.starts_with('-') => {
            let said = Problem::new("", given, "");
            format!(
                "`{}` is one word too many: {}",
                said.given(),
                usage(command)
            )
        }
        (ErrorKind::UnknownArgument, _) => return unknown_option(given, command).into(),
        (ErrorKind::MissingRequiredArgument, Some(command)) => {
            let word = command.words.first().copied().unwrap_or_default();
            let meant = meaning(word).map_or_else(String::new, |meaning| format!(", {meaning}"));
            let word = word.trim_end_matches('…');
            format!("{} needs {word}{meant}: {}", command.name, usage(command))
        }
        // `--set <path=value>` without a value.
        (ErrorKind::InvalidValue, _) => {
            let (flag, value) = given.split_once(' ').unwrap_or((given, "<VALUE>"));
            format!(
                "{flag} needs a value: {flag} {}",
                value.trim_matches(['<', '>'])
            )
        }
        _ => {
            let text = error.render().to_string();
            let line = text.lines().next().unwrap_or_default();
            let line = line.trim_start_matches("error: ");
            format!("{line}; `headroom help` shows what there is")
        }
    };
    Refusal(vec![line])
}

/// How a command is called, in a line.
fn usage(command: &Command) -> String {
    let words = [&["headroom", command.name], command.words].concat();
    format!(
        "`{}`; `headroom help {}` explains it",
        words.join(" "),
        command.name
    )
}

/// What is meant by a positional argument's name.
fn meaning(word: &str) -> Option<&'static str> {
    Some(match word {
        "WHAT…" => {
            "the run: a preset, a model's name, files, a link, a sentence in quotes, or - for standard input"
        }
        "FILE…" => {
            "files of one run, a folder of them, a command or a sentence in quotes, or - for standard input"
        }
        "LINK" => "as `headroom link` and the page's address have it",
        "[FILE]" => {
            "the failed run's log, or its error message in quotes; standard input without it"
        }
        "EVENTS.jsonl[.gz]" => "a recorded event stream",
        "PRESET" => "a preset with a guide",
        "SHELL" => "bash, zsh, fish or powershell",
        "[COMMAND]" => "the command to explain; all of them without it",
        "[gpus|models|stacks|methods|check]" => "one list, or whether every entry is whole",
        _ => return None,
    })
}

fn unknown_option(given: &str, command: Option<&Command>) -> Problem {
    let given = given.split('=').next().unwrap_or(given);
    let program = program(&command.map_or(Settings::Common, Settings::Of));
    let found = command.and_then(|command| program.find_subcommand(command.name));
    let of = found.unwrap_or(&program).get_arguments();
    let names = of.flat_map(|arg| {
        let more = arg.get_all_aliases().unwrap_or_default();
        let long = arg.get_long().into_iter();
        long.chain(more)
            .map(|name| format!("--{name}"))
            .collect::<Vec<_>>()
    });
    let always = ["--help", "--version"].map(String::from);
    let all: Vec<String> = names.chain(always).collect();
    let all = all.iter().map(String::as_str);
    Problem::unknown_name(NameKind::Option, "option", given, all)
}
