//! Scripts that call Unsloth.

use super::call::Call;
use headroom_base::document::Document;

/// The equivalent file of `unsloth train`.
pub fn document(
    model: &Call,
    adapters: Option<&Call>,
    config: Option<&Call>,
    trainer: Option<&Call>,
) -> Document {
    let argument = |call: Option<&Call>, key: &str| call.and_then(|call| call.get(key)).cloned();
    let length = argument(Some(model), "max_seq_length")
        .or_else(|| argument(config, "max_length"))
        .or_else(|| argument(config, "max_seq_length"))
        .or_else(|| argument(trainer, "max_seq_length"));
    let full = argument(Some(model), "full_finetuning") == Some(Document::Bool(true));
    // Weights are loaded in four bits by default.
    let other = ["load_in_8bit", "load_in_16bit", "load_in_fp8"];
    let other = other.map(|key| argument(Some(model), key) == Some(Document::Bool(true)));
    let four =
        argument(Some(model), "load_in_4bit").unwrap_or(Document::Bool(!other.contains(&true)));
    let checkpointing = match argument(adapters, "use_gradient_checkpointing") {
        Some(Document::Text(value)) if value == "unsloth" || value == "True" => "true".into(),
        Some(Document::Text(value)) => Document::Text(value),
        Some(Document::Bool(false)) => "none".into(),
        _ => "true".into(),
    };
    let mut training = Document::new()
        .with("training_type", if full { "full" } else { "lora" })
        .with("gradient_checkpointing", checkpointing);
    if !full {
        training = training.with("load_in_4bit", four);
    }
    for (key, value) in [
        ("max_seq_length", length),
        (
            "batch_size",
            argument(config, "per_device_train_batch_size"),
        ),
        (
            "gradient_accumulation_steps",
            argument(config, "gradient_accumulation_steps"),
        ),
        ("optim", argument(config, "optim")),
        (
            "packing",
            argument(config, "packing").or_else(|| argument(trainer, "packing")),
        ),
    ] {
        if let Some(value) = value {
            training = training.with(key, value);
        }
    }
    let mut document = Document::new();
    let name = argument(Some(model), "model_name").or_else(|| model.positional.first().cloned());
    document = document.with("model", name.unwrap_or_else(|| "".into()));
    if let Some(task) = trainer.and_then(Call::task) {
        document = document.with("task", task);
        for key in [
            "num_generations",
            "max_completion_length",
            "max_prompt_length",
            "num_iterations",
            "steps_per_generation",
            "generation_batch_size",
            "beta",
            "precompute_ref_log_probs",
        ] {
            if let Some(value) = argument(config, key) {
                document = document.with(key, value);
            }
        }
        if argument(Some(model), "fast_inference") == Some(Document::Bool(true)) {
            // vLLM in the same process, with half of the GPU by default (unsloth/models/loader.py).
            let share = argument(Some(model), "gpu_memory_utilization");
            document = document
                .with("use_vllm", true)
                .with("vllm_mode", "colocate")
                .with(
                    "vllm_gpu_memory_utilization",
                    share.unwrap_or(Document::Number(0.5)),
                );
        }
    }
    document = document.with("training", training);
    if full {
        return document;
    }
    let mut lora = Document::new();
    for (to, from, usual) in [
        // The defaults of get_peft_model (unsloth/models/llama.py).
        ("lora_r", "r", Some(Document::Int(16))),
        ("lora_dropout", "lora_dropout", None),
        ("target_modules", "target_modules", None),
    ] {
        let usual = usual.filter(|_| adapters.is_some());
        if let Some(value) = argument(adapters, from).or(usual) {
            lora = lora.with(to, value);
        }
    }
    if lora == Document::new() {
        return document;
    }
    document.with("lora", lora)
}
