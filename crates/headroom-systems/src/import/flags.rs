//! Reads the flags of the systems' programs.

use super::Builder;
use super::programs::{FlagTarget, Program};

/// Reads the launcher: how many processes on how many machines.
pub(super) fn launcher(run: &mut Builder, words: &[String]) {
    let number = |names: &[&str]| {
        let mut all = pairs(words);
        let found = all.find(|(name, _)| names.contains(&name.replace('-', "_").as_str()))?;
        found.1?.parse::<u32>().ok().filter(|count| *count > 0)
    };
    let nodes = number(&["__nnodes"]).unwrap_or(1);
    let each = number(&["__nproc_per_node"]).unwrap_or(1);
    let distributed = words.iter().any(|word| {
        word.ends_with("torchrun") || word == "torch.distributed.run" || word == "accelerate"
    });
    if distributed {
        run.set("hardware.gpus", &each.saturating_mul(nodes).to_string());
        run.set("hardware.nodes", &nodes.to_string());
    } else if run.imported.scenario.model.id != "dreams" {
        run.set("hardware.gpus", "1");
    }
}

/// The program's own flags.
pub(super) fn read(run: &mut Builder, program: &Program, words: &[String]) {
    (program.defaults)(run);
    let all: Vec<(&str, Option<&str>)> = pairs(words).collect();
    for (name, value) in &all {
        let known = program.flags.iter().find(|(flag, _)| flag == name);
        match (known.map(|(_, to)| to), value) {
            (None, _) => run.leave(name),
            (Some(FlagTarget::NoEffect), _) => {}
            (Some(FlagTarget::Apply(apply)), value) => apply(run, value.unwrap_or_default()),
            (Some(FlagTarget::SetTo(path, value)), _)
            | (Some(FlagTarget::Setting(path)), Some(value)) => run.set(path, value),
            (Some(_), None) => run.wrong(name, "", "a value after it"),
            (Some(FlagTarget::Dim(dim)), Some(value)) => run.size(name, dim, value),
        }
    }
    let has_flag = |flag: &str| all.iter().any(|(name, _)| *name == flag);
    (program.after)(run, &has_flag);
}

/// Flags, each with the word after it if that is no flag.
fn pairs(words: &[String]) -> impl Iterator<Item = (&str, Option<&str>)> {
    let flags = words.iter().enumerate();
    flags.filter_map(|(at, word)| {
        let flag = word.strip_prefix("--").filter(|flag| !flag.is_empty())?;
        if let Some((name, value)) = flag.split_once('=') {
            return Some((word.get(..name.len() + 2)?, Some(value)));
        }
        let next = words.get(at + 1).map(String::as_str);
        Some((word.as_str(), next.filter(|next| !next.starts_with("--"))))
    })
}
