//! `deepspeed`, with its hostfile.

use super::{Count, Launch, Launcher};
use super::{count, every_visible, file, product};
use crate::Beside;
use crate::shell::options::Options;
use crate::shell::{Command, Script, Word};

const DEEPSPEED_SWITCHES: &[&str] = &[
    "module",
    "m",
    "no_python",
    "no_local_rank",
    "no_ssh_check",
    "no_ssh",
    "force_multi",
    "save_pid",
    "bind_cores_to_rank",
    "detect_nvlink_pairs",
    "elastic_training",
];

pub(super) fn deepspeed(
    command: &Command,
    words: &[Word],
    script: &Script,
    beside: &dyn Beside,
) -> Option<Launch> {
    let (options, program, arguments) = Options::before_program(words, DEEPSPEED_SWITCHES)?;
    let per_node = options.get(&["num_gpus"]).map(count);
    let asked = options.get(&["num_nodes"]).map(count);
    let hosts = options
        .get(&["hostfile", "H"])
        .and_then(|path| file(&path.text, script, beside))
        .map(|text| slots(&text));
    let included = options
        .get(&["include", "i"])
        .map(|word| match &word.unknown {
            Some(why) => Err(why.clone()),
            None => included(&word.text).ok_or_else(|| format!("--include {}", word.text)),
        });
    let (gpus, nodes) = match (included, per_node, hosts) {
        (Some(Ok((gpus, nodes))), _, _) => (Count::Known(gpus), Some(nodes)),
        (Some(Err(why)), _, _) => (Count::Unknown(why), None),
        (None, per_node, Some((gpus, nodes))) if nodes > 0 => match (per_node, asked) {
            (Some(Ok(per_node)), asked) => {
                let nodes = asked.and_then(Result::ok).unwrap_or(nodes);
                (Count::Known(per_node.saturating_mul(nodes)), Some(nodes))
            }
            _ => (Count::Known(gpus), Some(nodes)),
        },
        (None, Some(per_node), _) if !matches!(per_node, Ok(0)) => {
            let elsewhere = options
                .get(&["hostfile", "H"])
                .map(|word| word.text.clone());
            let nodes = asked.unwrap_or_else(|| elsewhere.map_or(Ok(1), Err));
            (product(per_node, &nodes), nodes.ok())
        }
        _ => {
            let why = match (&options.bundle, options.get(&["hostfile", "H"])) {
                (Some(why), _) => why.clone(),
                (None, Some(file)) => format!("GPUs stand in {}", file.text),
                (None, None) => "deepspeed takes every visible GPU".into(),
            };
            let nodes = asked.unwrap_or(Ok(1));
            let known = options.get(&["num_nodes"]).is_some();
            let gpus = product(every_visible(command, &why), &nodes);
            let single = known || matches!(gpus, Count::Known(_));
            (gpus, if single { nodes.ok() } else { None })
        }
    };
    Some(Launch {
        launcher: Launcher::Deepspeed,
        gpus,
        nodes,
        program,
        arguments,
        config: None,
        options: options.all,
    })
}

/// GPUs and nodes of `localhost:0,1@worker-1:2`.
fn included(text: &str) -> Option<(u64, u64)> {
    let mut gpus = 0u64;
    let mut nodes = 0u64;
    for host in text.split('@') {
        let (_, slots) = host.split_once(':')?;
        gpus += slots
            .split(',')
            .filter(|slot| !slot.trim().is_empty())
            .count() as u64;
        nodes += 1;
    }
    (gpus > 0).then_some((gpus, nodes))
}

/// GPUs and nodes of a hostfile.
fn slots(text: &str) -> (u64, u64) {
    let mut all = (0u64, 0u64);
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let slots = line
            .split_whitespace()
            .find_map(|word| word.strip_prefix("slots="));
        if let Some(Ok(slots)) = slots.map(str::parse::<u64>) {
            all = (all.0.saturating_add(slots), all.1 + 1);
        }
    }
    all
}
