//! Defaults of fields that scripts branch on, where every version has the same one.

use super::value::V;

/// The value of a field that was not given.
pub fn of_field(class: &str, field: &str) -> Option<V> {
    let (_, class) = class.rsplit_once('.')?;
    let value = match (class, field) {
        (
            "TrainingArguments" | "Seq2SeqTrainingArguments",
            "gradient_checkpointing"
            | "fp16"
            | "do_train"
            | "do_eval"
            | "do_predict"
            | "overwrite_output_dir"
            | "push_to_hub"
            | "use_cpu"
            | "torch_compile"
            | "group_by_length"
            | "predict_with_generate",
        )
        | (
            "ModelConfig",
            "use_peft" | "load_in_4bit" | "load_in_8bit" | "use_rslora" | "use_dora"
            | "trust_remote_code",
        ) => V::Bool(false),
        (
            "TrainingArguments"
            | "Seq2SeqTrainingArguments"
            | "SFTConfig"
            | "DPOConfig"
            | "GRPOConfig"
            | "RewardConfig",
            "resume_from_checkpoint" | "deepspeed" | "hub_model_id" | "run_name",
        )
        | ("ModelConfig", "lora_target_modules" | "lora_modules_to_save" | "attn_implementation") => {
            V::None
        }
        ("ModelConfig", "lora_r") => V::Int(16),
        ("ModelConfig", "lora_alpha") => V::Int(32),
        ("ModelConfig", "lora_dropout") => V::Float(0.05),
        ("ModelConfig", "model_revision") => V::text("main"),
        ("ScriptArguments", "dataset_train_split") => V::text("train"),
        ("ScriptArguments", "dataset_test_split") => V::text("test"),
        _ => return None,
    };
    Some(value)
}
