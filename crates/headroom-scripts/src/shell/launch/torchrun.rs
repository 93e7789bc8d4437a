//! `torchrun`, and what is started like it.

use super::{Launch, Launcher};
use super::{count, every_visible, product};
use crate::shell::options::Options;
use crate::shell::{Command, Word};

const TORCHRUN_SWITCHES: &[&str] = &[
    "standalone",
    "use_env",
    "m",
    "module",
    "no_python",
    "run_path",
    "nnodes_only",
    "use_agent_store",
];

pub(super) fn torchrun(command: &Command, words: &[Word]) -> Option<Launch> {
    let (options, program, arguments) = Options::before_program(words, TORCHRUN_SWITCHES)?;
    Some(torch_like(
        command,
        options,
        program,
        arguments,
        Launcher::Torchrun,
    ))
}

/// A launch by options that are torchrun's.
pub(in crate::shell) fn torch_like(
    command: &Command,
    options: Options,
    program: Word,
    arguments: Vec<Word>,
    launcher: Launcher,
) -> Launch {
    let environment = |name: &str| command.environment.get(name).cloned();
    let nodes = options.get(&["nnodes"]).cloned();
    let nodes = match nodes.or_else(|| environment("PET_NNODES")) {
        None => Ok(1),
        Some(word) => match word.text.split_once(':') {
            Some((least, most)) if word.unknown.is_none() && least == most => {
                most.parse().map_err(|_| word.text.clone())
            }
            Some(_) if word.unknown.is_none() => Err(format!("nnodes {}", word.text)),
            _ => count(&word),
        },
    };
    let per_node = options
        .get(&["nproc_per_node", "nproc-per-node"])
        .cloned()
        .or_else(|| environment("PET_NPROC_PER_NODE"));
    let per_node = match per_node {
        Some(word) if matches!(word.text.as_str(), "gpu" | "auto") => every_visible(
            command,
            &format!("nproc_per_node is {}: every visible GPU", word.text),
        ),
        Some(word) => count(&word),
        None => match &options.bundle {
            Some(why) => Err(why.clone()),
            None => Ok(1),
        },
    };
    let nodes = match (&options.bundle, nodes) {
        (Some(why), Ok(1)) if options.get(&["nnodes"]).is_none() => Err(why.clone()),
        (_, nodes) => nodes,
    };
    Launch {
        launcher,
        gpus: product(per_node, &nodes),
        nodes: nodes.ok(),
        program,
        arguments,
        config: None,
        options: options.all,
    }
}
