//! Flags of the systems' programs, one by one.

use super::Read;
use super::programs::{Program, To};

/// What starts the program: how many processes on how many machines.
pub(super) fn started(read: &mut Read, words: &[String]) {
    let number = |names: &[&str]| {
        let mut all = pairs(words);
        let found = all.find(|(name, _)| names.contains(&name.replace('-', "_").as_str()))?;
        found.1?.parse::<u32>().ok().filter(|count| *count > 0)
    };
    let nodes = number(&["__nnodes"]).unwrap_or(1);
    let each = number(&["__nproc_per_node"]).unwrap_or(1);
    let torchrun = words.iter().any(|word| {
        word.ends_with("torchrun") || word == "torch.distributed.run" || word == "accelerate"
    });
    if torchrun {
        read.set("hardware.gpus", &each.saturating_mul(nodes).to_string());
        read.set("hardware.nodes", &nodes.to_string());
    } else if read.imported.scenario.model.id != "dreams" {
        read.set("hardware.gpus", "1");
    }
}

/// The allocator's settings.
pub(super) fn environment(read: &mut Read, variables: &[(String, String)]) {
    let named = |name: &str| name == "PYTORCH_CUDA_ALLOC_CONF" || name == "PYTORCH_ALLOC_CONF";
    let set = variables.iter().filter(|(name, _)| named(name));
    for part in set.flat_map(|(_, value)| value.split(',')) {
        let (name, value) = part.split_once(':').unwrap_or((part, ""));
        match name.trim() {
            "expandable_segments" => {
                let on = value.trim().eq_ignore_ascii_case("true");
                read.set("runtime.expandable_segments", if on { "on" } else { "off" });
            }
            "max_split_size_mb" => read.set("runtime.max_split_size_mb", value.trim()),
            other => read.leave(other),
        }
    }
}

/// The program's own flags.
pub(super) fn read(read: &mut Read, program: &Program, words: &[String]) {
    (program.unsaid)(read);
    let all: Vec<(&str, Option<&str>)> = pairs(words).collect();
    for (name, value) in &all {
        let known = program.flags.iter().find(|(flag, _)| flag == name);
        match (known.map(|(_, to)| to), value) {
            (None, _) => read.leave(name),
            (Some(To::Nothing), _) => {}
            (Some(To::Is(field, word)), _) => read.set(field, word),
            (Some(To::Does(does)), value) => does(read, value.unwrap_or_default()),
            (Some(_), None) => read.wrong(name, "", "a value after it"),
            (Some(To::Field(field)), Some(value)) => read.set(field, value),
            (Some(To::Size(size)), Some(value)) => read.size(name, size, value),
        }
    }
    let given = |flag: &str| all.iter().any(|(name, _)| *name == flag);
    (program.after)(read, &given);
}

/// Flags with the word behind each, where that is no flag.
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
