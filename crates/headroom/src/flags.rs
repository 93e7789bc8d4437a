//! Settings as options: `--gpu h100`, `--batch 4`, `--lora`, from the table of settings.

use std::collections::BTreeSet;

use clap::{Arg, ArgAction};
use headroom_scenario::settings::{self, Setting, ValueType};

/// Which settings are options.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    All,
    /// Those that help shows.
    Common,
}

/// Adds the options of all settings to a command which has options of its own names.
pub(super) fn add(command: clap::Command, taken: &[&str], which: Which) -> clap::Command {
    let mut taken: BTreeSet<String> = taken.iter().map(ToString::to_string).collect();
    // The names that help shows come before other words for the same.
    let common = common().map(|(setting, long)| (setting, Some(long)));
    let is_other = |setting: &&Setting| {
        which == Which::All && !COMMON.iter().any(|(path, _)| *path == setting.path)
    };
    let others = settings::all().iter().filter(is_other);
    let all: Vec<_> = common
        .chain(others.map(|setting| (setting, None)))
        .collect();
    let keys: BTreeSet<String> = settings::all()
        .iter()
        .map(|setting| dashed(setting.key))
        .collect();
    let mut args: Vec<Arg> = Vec::new();
    for (setting, long) in all {
        let own = [
            long.unwrap_or(setting.key),
            setting.key,
            setting.name(),
            setting.path,
        ];
        let own = own.into_iter().chain(settings::aliases(setting.path));
        let mut names: Vec<String> = Vec::new();
        for name in own.flat_map(|name| [dashed(name), name.to_string()]) {
            let of_another = keys.contains(&name) && name != dashed(setting.key);
            let means = settings::typed(&name);
            let same = means.is_some_and(|means| means.path == setting.path);
            if !of_another && (same || long == Some(name.as_str())) && taken.insert(name.clone()) {
                names.push(name);
            }
        }
        let mut names = names.into_iter();
        let Some(first) = names.next() else {
            continue;
        };
        args.push(option(setting, first, long.is_some()).aliases(names));
    }
    command.args(args)
}

/// The option that sets a field, as it is typed.
pub(super) fn named(setting: &Setting) -> String {
    let common = COMMON.iter().find(|(path, _)| *path == setting.path);
    common.map_or_else(
        || format!("--{}", dashed(setting.key)),
        |(_, long)| format!("--{long}"),
    )
}

/// What a value given to an option is as a change: `path=value`.
pub(super) fn change(setting: &Setting, value: &str) -> String {
    format!("{}={value}", setting.path)
}

/// The settings that help shows, with the names of their options.
pub(super) fn common() -> impl Iterator<Item = (&'static Setting, &'static str)> {
    let found = |(path, long): &(&str, &'static str)| Some((settings::find(path)?, *long));
    COMMON.iter().filter_map(found)
}

/// The settings that help shows, and their names as options.
const COMMON: &[(&str, &str)] = &[
    ("model.id", "model"),
    ("hardware.gpu", "gpu"),
    ("hardware.gpus", "gpus"),
    ("hardware.nodes", "nodes"),
    ("hardware.memory_mib", "memory"),
    ("data.micro_batch", "batch"),
    ("data.sequence", "seq"),
    ("training.accumulation", "accumulation"),
    ("training.precision", "precision"),
    ("training.optimizer", "optimizer"),
    ("training.checkpointing", "checkpointing"),
    ("training.attention", "attention"),
    ("training.lora", "lora"),
    ("training.lora.rank", "lora-rank"),
    ("training.lora.targets", "lora-targets"),
    ("training.quantization", "quantization"),
    ("training.compile", "compile"),
    ("task.objective", "objective"),
    ("parallel.strategy", "strategy"),
    ("parallel.tp", "tp"),
    ("parallel.pp", "pp"),
    ("parallel.offload", "offload"),
    ("stack.trainer", "trainer"),
];

fn option(setting: &'static Setting, long: String, common: bool) -> Arg {
    let heading = if common {
        "Common settings"
    } else {
        "Settings"
    };
    let arg = Arg::new(setting.path)
        .long(long)
        .help(help(setting))
        .help_heading(heading)
        .action(ArgAction::Append)
        .allow_negative_numbers(true)
        .hide(!common);
    match setting.value_type {
        // `--lora` alone turns it on, and takes no word that follows.
        ValueType::Switch => arg
            .value_name("on|off")
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("on"),
        _ => arg.value_name(value_name(setting)),
    }
}

/// What it is, and what it accepts where these are few.
fn help(setting: &Setting) -> String {
    const MOST: usize = 12;
    let mut help = setting.help.to_string();
    if let ValueType::Choice(choices) = setting.value_type {
        let ids = choices.iter().map(|choice| choice.id);
        let shown: Vec<&str> = ids.take(MOST).collect();
        let more = if choices.len() > MOST { ", …" } else { "" };
        help.push_str(&format!(" [{}{more}]", shown.join(", ")));
    }
    help
}

fn value_name(setting: &Setting) -> &'static str {
    match setting.value_type {
        ValueType::Whole { .. } | ValueType::Number { .. } => "N",
        ValueType::Choice(_) => "CHOICE",
        ValueType::Gpu | ValueType::Model => "NAME",
        ValueType::Words | ValueType::Sizes => "LIST",
        ValueType::Network => "TEXT",
        ValueType::Version { .. } => "VERSION",
        ValueType::Switch => "on|off",
    }
}

fn dashed(name: &str) -> String {
    name.replace('_', "-")
}
