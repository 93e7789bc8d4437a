//! Words of these tools, and the settings they are.

/// Keys whose value is the setting's.
pub const COPIES: &[(&str, &str)] = &[
    ("per_device_train_batch_size", "data.micro_batch"),
    ("micro_batch_size", "data.micro_batch"),
    ("gradient_accumulation_steps", "training.accumulation"),
    ("accumulate_grad_batches", "training.accumulation"),
    ("max_length", "data.sequence"),
    ("max_seq_length", "data.sequence"),
    ("max_seq_len", "data.sequence"),
    ("sequence_len", "data.sequence"),
    ("cutoff_len", "data.sequence"),
    ("num_processes", "hardware.gpus"),
    ("num_machines", "hardware.nodes"),
    ("ddp_bucket_cap_mb", "parallel.bucket_mb"),
    ("dataloader_num_workers", "runtime.workers"),
    ("dataloader_prefetch_factor", "runtime.prefetch"),
    ("dataloader_pin_memory", "runtime.pin_memory"),
    ("per_device_eval_batch_size", "runtime.eval_batch"),
    ("save_total_limit", "runtime.save_keep"),
    ("tensor_parallel_size", "parallel.tp"),
    ("context_parallel_size", "parallel.cp"),
];

/// The same, where there are adapters.
pub const ADAPTERS: &[(&str, &str)] = &[
    ("lora_r", "training.lora.rank"),
    ("lora_rank", "training.lora.rank"),
    ("lora_dropout", "training.lora.dropout"),
    ("lora_target_modules", "training.lora.targets"),
    ("lora_target", "training.lora.targets"),
    ("target_modules", "training.lora.targets"),
    ("lora_exclude_modules", "training.lora.exclude"),
    ("lora_fp32", "training.lora.fp32_adapters"),
];

/// Words that turn adapters on or off, or imply them.
pub const SWITCHES: &[&str] = &[
    "use_peft",
    "adapter",
    "finetuning_type",
    "tuner_type",
    "train_type",
];

/// Keys of the precision, which several say together.
pub const PRECISION: &[&str] = &[
    "bf16",
    "fp16",
    "bfloat16",
    "float16",
    "pure_bf16",
    "dtype",
    "torch_dtype",
    "mixed_precision",
];

/// Keys that say nothing of memory.
pub const WITHOUT_EFFECT: &[&str] = &[
    "compute_environment",
    "dataset",
    "dataset_dir",
    "dataset_name",
    "dataset_prepared_path",
    "datasets",
    "do_train",
    "fsdp_config.auto_wrap_policy",
    "fsdp_config.cpu_ram_efficient_loading",
    "fsdp_config.fsdp_auto_wrap_policy",
    "fsdp_config.fsdp_cpu_ram_efficient_loading",
    "fsdp_config.fsdp_state_dict_type",
    "fsdp_config.state_dict_type",
    "deepspeed_config.zero3_init_flag",
    "deepspeed_config.zero3_save_16bit_model",
    "gradient_checkpointing_kwargs",
    "learning_rate",
    "logging_steps",
    "lora_alpha",
    "lr_scheduler",
    "lr_scheduler_type",
    "machine_rank",
    "main_training_function",
    "max_steps",
    "num_epochs",
    "num_train_epochs",
    "output_dir",
    "report_to",
    "save_strategy",
    "seed",
    "stage",
    "template",
    "train_file",
    "truncation_strategy",
    "use_cpu",
    "use_reentrant_gc",
    "val_set_size",
    "warmup_ratio",
    "warmup_steps",
    "weight_decay",
];
