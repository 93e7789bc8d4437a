//! What several targets share: the launch script, its environment, and names that are safe everywhere.

use super::{File, shell};
use headroom_scenario::{Case, Parallelism, Problem, Scenario};

/// A text file.
pub fn file(name: &'static str, contents: String) -> File {
    File {
        name,
        contents,
        executable: false,
    }
}

/// `launch.sh`: the allocator's settings and one command, to which the script's own arguments are added.
pub(super) fn launch(header: &str, scenario: &Scenario, words: &[&str]) -> File {
    let mut contents = shell::opening(header);
    contents.push_str(&exports(scenario));
    contents.push_str(&format!("exec {} \"$@\"\n", shell::command(words)));
    script("launch.sh", contents)
}

/// The machine's rank and the first machine's address as options of `torchrun`; only the user knows them.
pub(super) const PLACE: &str = "--node-rank \"${NODE_RANK:?}\" --master-addr \"${MASTER_ADDR:?}\" \\\n  \
                                --master-port \"${MASTER_PORT:-29500}\"";

/// The same as variables.
pub(super) const PLACE_IN_VARIABLES: &str = "NODE_RANK=\"${NODE_RANK:?}\" MASTER_ADDR=\"${MASTER_ADDR:?}\" \\\n  \
                                             MASTER_PORT=\"${MASTER_PORT:-29500}\"";

/// `launch.sh` of a launcher that is told which machine it is on: `place` says that in the shell's words, and is left out where
/// there is one machine.
pub(super) fn launch_on_each(
    header: &str,
    scenario: &Scenario,
    launcher: &[&str],
    place: &str,
    words: &[&str],
) -> File {
    let place = if scenario.hardware.nodes > 1 {
        format!("{place} \\\n  ")
    } else {
        String::new()
    };
    let mut command = String::from("exec ");
    for part in [shell::command(launcher), place, shell::command(words)] {
        command.push_str(&part);
        if !part.is_empty() && !part.ends_with(' ') {
            command.push(' ');
        }
    }
    let contents = format!(
        "{}{}{command}\"$@\"\n",
        shell::opening(header),
        exports(scenario)
    );
    script("launch.sh", contents)
}

/// `launch.sh` that starts these words once for each GPU; with several machines it is run on each of them.
pub(super) fn launch_torchrun(
    header: &str,
    scenario: &Scenario,
    machines: &Machines,
    words: &[String],
) -> File {
    let Machines { nodes, each } = machines;
    let torchrun = if *nodes == 1 {
        format!("torchrun --standalone --nproc-per-node {each}")
    } else {
        // Only the user knows the machine's rank and the first machine's address.
        format!(
            "torchrun --nnodes {nodes} --nproc-per-node {each} --node-rank \"${{NODE_RANK:?}}\" \\\n  \
             --master-addr \"${{MASTER_ADDR:?}}\" --master-port \"${{MASTER_PORT:-29500}}\""
        )
    };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let command = shell::command(&words);
    let contents = format!(
        "{}{}exec {torchrun} {command} \"$@\"\n",
        shell::opening(header),
        exports(scenario)
    );
    script("launch.sh", contents)
}

/// `launch.sh` that starts these words in one process that has all GPUs of the run.
pub(super) fn launch_alone(header: &str, scenario: &Scenario, words: &[&str]) -> File {
    let gpus = (0..scenario.hardware.gpus).map(|gpu| gpu.to_string());
    let gpus: Vec<String> = gpus.collect();
    let seen = format!("CUDA_VISIBLE_DEVICES={}", gpus.join(","));
    let words = [&["env", seen.as_str(), "python"], words].concat();
    launch(header, scenario, &words)
}

/// A script that may be run.
pub fn script(name: &'static str, contents: String) -> File {
    File {
        name,
        contents,
        executable: true,
    }
}

/// The lines of a script that set the environment.
pub fn exports(scenario: &Scenario) -> String {
    allocator(scenario).map_or(String::new(), |settings| shell::allocator(&settings))
}

/// The environment that every process of the run needs: names and values.
pub(super) fn environment(scenario: &Scenario) -> Vec<(&'static str, String)> {
    // The same value under both names is right for every version; different ones would not be.
    let both = |conf: String| shell::ALLOCATOR_NAMES.map(|name| (name, conf.clone()));
    allocator(scenario)
        .map(both)
        .into_iter()
        .flatten()
        .collect()
}

/// The allocator's settings that are not its defaults.
fn allocator(scenario: &Scenario) -> Option<String> {
    let runtime = &scenario.runtime;
    let mut settings = Vec::new();
    if runtime.expandable_segments {
        settings.push("expandable_segments:True".to_string());
    }
    if let Some(size) = runtime.max_split_size_mb {
        settings.push(format!("max_split_size_mb:{size}"));
    }
    if let Some(threshold) = runtime.garbage_collection_threshold {
        settings.push(format!("garbage_collection_threshold:{threshold}"));
    }
    if let Some(divisions) = runtime.roundup_power2_divisions {
        settings.push(format!("roundup_power2_divisions:{divisions}"));
    }
    (!settings.is_empty()).then(|| settings.join(","))
}

/// The number of machines, and of processes on each: one for each GPU.
#[derive(Debug)]
pub struct Machines {
    pub nodes: u32,
    pub each: u32,
}

/// The scenario's machines; their GPUs must divide evenly.
pub fn machines(scenario: &Scenario) -> Result<Machines, Problem> {
    let nodes = scenario.hardware.nodes.max(1);
    let processes = processes(scenario);
    if !processes.is_multiple_of(nodes) {
        let expected = format!("a number that divides hardware.gpus ({processes})");
        return Err(Problem::new("hardware.nodes", nodes.to_string(), expected));
    }
    Ok(Machines {
        nodes,
        each: processes / nodes,
    })
}

/// The number of processes: one for each GPU, or one for all.
pub(super) fn processes(scenario: &Scenario) -> u32 {
    let parallel = &scenario.parallel;
    match parallel.strategy {
        // Those that share one copy of the model.
        Parallelism::None => [parallel.tp, parallel.pp, parallel.cp]
            .iter()
            .fold(1, |all: u32, &part| all.saturating_mul(part.max(1))),
        Parallelism::DataParallel => 1,
        _ => scenario.hardware.gpus.max(1),
    }
}

/// The run's learning rate, or where people begin: adapters take about ten times that of all weights.
pub(super) fn learning_rate(scenario: &Scenario) -> f64 {
    let usual = if scenario.training.lora.is_some() {
        2e-4
    } else {
        2e-5
    };
    scenario.training.learning_rate.unwrap_or(usual)
}

/// A job's name from the model's: lower-case letters, digits and dashes, which every scheduler accepts.
pub(super) fn job_name(scenario: &Scenario) -> String {
    let mut name = String::from("headroom");
    for c in scenario.model.id.chars() {
        if name.len() >= 40 {
            break;
        }
        if c.is_ascii_alphanumeric() {
            if name == "headroom" {
                name.push('-');
            }
            name.push(c.to_ascii_lowercase());
        } else if !name.ends_with('-') {
            name.push('-');
        }
    }
    name.trim_end_matches('-').into()
}

/// The model's name on the hub, if the catalogue knows it.
pub(super) fn hub_name(scenario: &Scenario) -> &str {
    match Case::of(scenario).model {
        Some(model) if !model.hf_id.is_empty() => model.hf_id,
        _ => &scenario.model.id,
    }
}
