//! A command's flags as a document, for the readers of files.

use headroom_base::document::Document;
use headroom_scripts::shell::{Count, Launch};

/// A command's flags as the configuration that says the same: what the program's own name and launcher say stands in it.
pub(super) fn equivalent(launch: &Launch, mut flags: Document) -> Document {
    let program = launch.program.text.as_str();
    let first = launch
        .arguments
        .first()
        .map_or("", |word| word.text.as_str());
    let has = |flags: &Document, key: &str| flags.get(key).is_some();
    let set =
        |flags: &mut Document, path: &str, value: Document| *flags.at(path.split('.')) = value;
    let gpus = match launch.gpus {
        Count::Known(count) => Some(count),
        Count::Unknown(_) => None,
    };
    if program.contains("verl") || flags.get("actor_rollout_ref").is_some() {
        // The name of its configuration tells which engine trains the policy.
        let engine = launch
            .arguments
            .iter()
            .any(|word| word.text.contains("megatron_trainer"));
        if engine {
            set(
                &mut flags,
                "actor_rollout_ref.actor.strategy",
                "megatron".into(),
            );
        }
        if let Some(gpus) = gpus.filter(|gpus| *gpus > 1) {
            let nodes = launch.nodes.unwrap_or(1).max(1);
            set(&mut flags, "trainer.n_gpus_per_node", (gpus / nodes).into());
            set(&mut flags, "trainer.nnodes", nodes.into());
        }
        return flags;
    }
    let of_swift =
        program == "swift" || program.contains("swift/cli/") || program.starts_with("swift.cli");
    if of_swift && !has(&flags, "tuner_type") && !has(&flags, "train_type") {
        set(&mut flags, "tuner_type", "lora".into());
    }
    if program == "megatron" {
        set(&mut flags, "trainer", "megatron".into());
    }
    let name = if matches!(program, "trl" | "swift" | "megatron") {
        first
    } else {
        program
    };
    let name = name
        .rsplit('/')
        .next()
        .unwrap_or(name)
        .trim_end_matches(".py");
    let task = match name {
        "reward" | "reward_modeling" => Some("rm"),
        "dpo" | "grpo" | "kto" | "rloo" | "orpo" | "cpo" | "gkd" => Some(name),
        _ => None,
    };
    if let Some(task) = task {
        set(&mut flags, "rl", task.into());
    }
    for (key, count) in [("num_processes", gpus), ("num_machines", launch.nodes)] {
        if let Some(count) = count.filter(|count| *count > 1) {
            set(&mut flags, key, count.into());
        }
    }
    flags
}
