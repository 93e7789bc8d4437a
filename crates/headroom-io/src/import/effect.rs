//! Whether a key that no setting expresses changes memory.

use std::fmt;

/// What a key that no setting expresses means for the prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyEffect {
    /// It does not change memory.
    None,
    /// By its name it may.
    May,
    Unknown,
}

impl fmt::Display for KeyEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "it does not change memory",
            Self::May => "it may change memory, and is not modelled",
            Self::Unknown => "Headroom has no setting for it",
        })
    }
}

/// A key has no effect only if it, or a group that holds it, is known to have none: names are no proof
/// (`label_smoothing_factor` keeps log-probabilities).
pub fn effect_of_key(key: &str) -> KeyEffect {
    let key = key.to_ascii_lowercase();
    let mut words = key.split(|c: char| !c.is_ascii_alphanumeric());
    let mut parts = key.rsplit('.');
    let named = parts
        .next()
        .is_some_and(|name| WITHOUT_EFFECT.contains(&name));
    if named || parts.any(|group| GROUPS_WITHOUT_EFFECT.contains(&group)) {
        KeyEffect::None
    } else if words.any(|word| WITH_EFFECT.iter().any(|start| word.starts_with(start))) {
        KeyEffect::May
    } else {
        KeyEffect::Unknown
    }
}

/// Groups whose keys are all without effect.
const GROUPS_WITHOUT_EFFECT: &[&str] = &[
    "comet",
    "logger",
    "logging",
    "lr_scheduler",
    "metric_logger",
    "mlflow",
    "profiler",
    "profiling",
    "swanlab",
    "wandb",
];

/// Keys of names, logs, schedules and data.
const WITHOUT_EFFECT: &[&str] = &[
    "actor_learning_rate",
    "adam_beta1",
    "adam_beta2",
    "adam_epsilon",
    "betas",
    "chat_template",
    "checkpointer",
    "clip_ratio_high",
    "clip_ratio_low",
    "comet",
    "critic_learning_rate",
    "data_files",
    "data_seed",
    "dataset",
    "dataset_config",
    "dataset_dir",
    "dataset_name",
    "dataset_num_proc",
    "dataset_path",
    "dataset_prepared_path",
    "dataset_text_field",
    "datasets",
    "ddp_timeout",
    "debug",
    "disable_tqdm",
    "do_eval",
    "do_train",
    "early_stopping",
    "early_stopping_patience",
    "early_stopping_threshold",
    "entropy_coeff",
    "epochs",
    "experiment_name",
    "greater_is_better",
    "hub_model_id",
    "hub_private_repo",
    "hub_strategy",
    "hub_token",
    "ignore_data_skip",
    "init_lr",
    "kl_loss_coef",
    "label_names",
    "learning_rate",
    "length_column_name",
    "load_best_model_at_end",
    "log_dir",
    "log_every_n_steps",
    "log_interval",
    "log_level",
    "log_on_each_node",
    "logger",
    "logging",
    "logging_dir",
    "logging_first_step",
    "logging_nan_inf_filter",
    "logging_steps",
    "logging_strategy",
    "lora_alpha",
    "lr",
    "lr_scheduler",
    "lr_scheduler_kwargs",
    "lr_scheduler_type",
    "lr_warmup_fraction",
    "lr_warmup_steps",
    "lr_warmup_steps_ratio",
    "max_epochs",
    "max_samples",
    "max_steps",
    "max_steps_per_epoch",
    "max_train_epochs",
    "metric_for_best_model",
    "metric_logger",
    "min_epochs",
    "min_lr",
    "mlflow",
    "num_epochs",
    "num_train_epochs",
    "output_dir",
    "overwrite_output_dir",
    "preprocessing_num_workers",
    "profiler",
    "profiling",
    "project_name",
    "push_to_hub",
    "random_seed",
    "report_to",
    "rollout_batch_size",
    "run_name",
    "save_dir",
    "save_interval",
    "save_only_model",
    "save_safetensors",
    "save_steps",
    "save_strategy",
    "save_total_limit",
    "seed",
    "shuffle",
    "shuffle_dataset",
    "strict",
    "swanlab",
    "temperature",
    "template",
    "top_k",
    "top_p",
    "train_data_dir",
    "use_kl_loss",
    "val_set_size",
    "val_size",
    "wandb",
    "wandb_entity",
    "wandb_log_model",
    "wandb_name",
    "wandb_project",
    "wandb_run_id",
    "wandb_watch",
    "warmup_ratio",
    "warmup_steps",
    "weight_decay",
];

/// Beginnings of words that name things that add or remove tensors.
const WITH_EFFECT: &[&str] = &[
    "8bit",
    "adapter",
    "apollo",
    "attention",
    "attn",
    "batch",
    "cache",
    "checkpoint",
    "compil",
    "cut",
    "deepspeed",
    "ema",
    "expert",
    "fp8",
    "freeze",
    "frozen",
    "fsdp",
    "fused",
    "galore",
    "generations",
    "group",
    "image",
    "kernel",
    "length",
    "liger",
    "lora",
    "loss",
    "mm",
    "modules",
    "moe",
    "offload",
    "optim",
    "pack",
    "parallel",
    "plugin",
    "precision",
    "quant",
    "ref",
    "resize",
    "reward",
    "rl",
    "sequence",
    "smoothing",
    "spectrum",
    "stage",
    "target",
    "tokens",
    "tuner",
    "unfrozen",
    "vision",
    "vllm",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_keys_have_no_effect() {
        for key in ["learning_rate", "optimizer.params.lr", "wandb.group"] {
            assert_eq!(effect_of_key(key), KeyEffect::None, "{key}");
        }
        for key in [
            "label_smoothing_factor",
            "max_tokens_per_gpu",
            "parallelism.pipeline_parallel_schedule",
            "spectrum_config_path",
        ] {
            let effect = effect_of_key(key);
            assert_eq!(effect, KeyEffect::May, "{key}");
        }
        for key in ["base_url", "temperature_schedule_name"] {
            let effect = effect_of_key(key);
            assert_eq!(effect, KeyEffect::Unknown, "{key}");
        }
    }
}
