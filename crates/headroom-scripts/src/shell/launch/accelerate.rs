//! `accelerate launch`, with its configuration file.

use super::{Count, Launch, Launcher};
use super::{count, entry, every_visible, file};
use crate::Beside;
use crate::shell::options::Options;
use crate::shell::{Command, Script, Word};

const ACCELERATE_SWITCHES: &[&str] = &[
    "multi_gpu",
    "cpu",
    "use_deepspeed",
    "use_fsdp",
    "use_megatron_lm",
    "tpu",
    "mps",
    "quiet",
    "q",
    "debug",
    "m",
    "module",
    "no_python",
    "same_network_flag",
    "use_xpu",
    "tpu_use_cluster",
    "tpu_use_sudo",
    "use_parallelism_config",
    "use_cpu",
    "no_tpu_cluster",
    "dynamo_use_fullgraph",
    "dynamo_use_dynamic",
    "dynamo_use_regional_compilation",
    "ipex",
    "enable_cpu_affinity",
    "downcast_bf16",
];

pub(super) fn accelerate(
    command: &Command,
    words: &[Word],
    script: &Script,
    beside: &dyn Beside,
) -> Option<Launch> {
    let (options, program, arguments) = Options::before_program(words, ACCELERATE_SWITCHES)?;
    let config = options.get(&["config_file"]).cloned();
    let text = config
        .as_ref()
        .and_then(|word| file(&word.text, script, beside));
    let in_file = |key: &str| text.as_deref().and_then(|text| entry(text, key));
    let machines = match options.get(&["num_machines"]) {
        Some(word) => Ok(count(word)),
        None => in_file("num_machines").ok_or(()).map(Ok),
    };
    let processes = match options.get(&["num_processes"]) {
        Some(word) => count(word),
        None => match in_file("num_processes") {
            Some(count) => Ok(count),
            None => match (&config, options.get(&["gpu_ids"]), &options.bundle) {
                (_, _, Some(why)) => Err(why.clone()),
                (Some(file), _, _) => {
                    every_visible(command, &format!("num_processes stands in {}", file.text))
                }
                (None, Some(ids), _) if ids.unknown.is_none() && ids.text != "all" => {
                    Ok(ids.text.split(',').count() as u64)
                }
                _ => every_visible(
                    command,
                    "no --num_processes: accelerate's own configuration decides",
                ),
            },
        },
    };
    let nodes = match machines {
        Ok(count) => count.ok(),
        // One machine is the default, where no file says otherwise.
        Err(()) => (config.is_none() && options.bundle.is_none() && processes.is_ok()).then_some(1),
    };
    Some(Launch {
        launcher: Launcher::Accelerate,
        gpus: processes.map_or_else(Count::Unknown, Count::Known),
        nodes,
        program,
        arguments,
        config: config.or_else(|| options.get(&["deepspeed_config_file"]).cloned()),
        options: options.all,
    })
}
