//! What people type for a setting where they do not know its key: words of other tools' flags.

use super::{Setting, all, named};

/// The setting that a person means: by path, link key, the end of its path, or a word that other tools have for it.
/// Dashes are as good as underscores.
pub fn typed(name: &str) -> Option<&'static Setting> {
    let name = name.replace('-', "_");
    let alias = || {
        let row = ALIASES.iter().find(|(alias, _)| *alias == name);
        named(row?.1)
    };
    named(&name).or_else(alias).or_else(|| by_end(&name))
}

/// Other words for a setting, by its path.
pub fn aliases(path: &str) -> impl Iterator<Item = &'static str> {
    let of = ALIASES.iter().filter(move |(_, own)| *own == path);
    of.map(|(alias, _)| *alias)
}

/// The only setting whose path ends with a name: `optimizer` is `training.optimizer`.
fn by_end(name: &str) -> Option<&'static Setting> {
    let mut ends = all().iter().filter(|setting| setting.name() == name);
    let first = ends.next();
    first.filter(|_| ends.next().is_none())
}

const ALIASES: &[(&str, &str)] = &[
    ("batch", "data.micro_batch"),
    ("batch_size", "data.micro_batch"),
    ("bs", "data.micro_batch"),
    ("micro_batch_size", "data.micro_batch"),
    ("per_device_train_batch_size", "data.micro_batch"),
    ("seq_len", "data.sequence"),
    ("seq_length", "data.sequence"),
    ("sequence_len", "data.sequence"),
    ("sequence_length", "data.sequence"),
    ("max_length", "data.sequence"),
    ("max_seq_len", "data.sequence"),
    ("max_seq_length", "data.sequence"),
    ("global_batch_size", "data.global_batch"),
    ("effective_batch", "data.global_batch"),
    ("num_gpus", "hardware.gpus"),
    ("n_gpus", "hardware.gpus"),
    ("num_nodes", "hardware.nodes"),
    ("nnodes", "hardware.nodes"),
    ("vram", "hardware.memory_mib"),
    ("memory", "hardware.memory_mib"),
    ("compute_capability", "hardware.capability"),
    ("dtype", "training.precision"),
    ("gradient_accumulation_steps", "training.accumulation"),
    ("grad_accum", "training.accumulation"),
    ("accumulate", "training.accumulation"),
    ("lora_r", "training.lora.rank"),
    ("lora_target_modules", "training.lora.targets"),
    ("attn_implementation", "training.attention"),
    ("tensor_parallel", "parallel.tp"),
    ("tensor_parallel_size", "parallel.tp"),
    ("pipeline_parallel", "parallel.pp"),
    ("pipeline_parallel_size", "parallel.pp"),
    ("expert_parallel", "parallel.ep"),
    ("context_parallel", "parallel.cp"),
    ("num_generations", "task.generations"),
    ("objective", "task.objective"),
    ("num_workers", "runtime.workers"),
];

#[cfg(test)]
mod tests {
    use super::{ALIASES, typed};
    use crate::settings::named;

    #[track_caller]
    fn check(name: &str, path: Option<&str>) {
        assert_eq!(typed(name).map(|setting| setting.path), path, "{name}");
    }

    #[test]
    fn what_other_tools_call_a_setting_is_that_setting() {
        check("mb", Some("data.micro_batch"));
        check("batch-size", Some("data.micro_batch"));
        check("seq_len", Some("data.sequence"));
        check("optimizer", Some("training.optimizer"));
        check("lora-rank", Some("training.lora.rank"));
        check("hardware.gpu", Some("hardware.gpu"));
        // Two paths end so; a key decides.
        check("dropout", Some("training.dropout"));
        check("colour", None);
    }

    #[test]
    fn aliases_are_no_names_of_settings() {
        for (alias, path) in ALIASES {
            assert!(named(alias).is_none(), "{alias}");
            assert!(named(path).is_some(), "{path}");
        }
    }
}
