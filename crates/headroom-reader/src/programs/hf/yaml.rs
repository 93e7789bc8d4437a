//! YAML and JSON of `TrainingArguments` keys: TRL's `--config`, alignment-handbook's recipes, a script's arguments.

use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::words::{Task, Trained};
use headroom_scripts::Beside;

use super::{adapters, arguments, precision};
use crate::programs::launched;

pub fn read(keys: &Keys, beside: &dyn Beside) -> Option<Facts> {
    const OWN: &[&str] = &[
        "per_device_train_batch_size",
        "gradient_accumulation_steps",
        "num_train_epochs",
        "learning_rate",
        "output_dir",
        "gradient_checkpointing",
        "bf16",
        "torch_dtype",
        "attn_implementation",
        "lr_scheduler_type",
    ];
    let own = OWN.iter().filter(|key| keys.has(key)).count();
    if !(keys.has("model_name_or_path") || keys.has("model_id") || keys.has("model_name"))
        || own < 2
    {
        return None;
    }
    let trl = keys.has("use_peft")
        || [
            "dataset_name",
            "dataset_mixer",
            "dataset_mixture",
            "dataset_id_or_path",
            "dataset_train_split",
        ]
        .iter()
        .any(|key| keys.has(key));
    let mut facts = Facts::of(if trl { "trl" } else { "transformers" });
    facts.model = keys
        .text("model_name_or_path")
        .or(keys.text("model_id"))
        .or(keys.text("model_name"));
    facts.task = task(keys);
    arguments::apply(keys, &mut facts);
    arguments::sequence(keys, &mut facts);
    facts.samples = keys.whole("num_generations");
    let quantised = precision::quantised(keys);
    if keys.switch("use_peft").value() == Some(&true) || keys.has("lora_r") {
        facts.weights = quantised.or(precision::loaded(keys));
        adapters::lora(keys, &mut facts, &["lora_r"], 16, "TRL's lora_r");
        let saved = keys.list("lora_modules_to_save");
        facts.trained = match saved.value() {
            Some(modules) if !modules.is_empty() => Fact::read(
                Trained::AdaptersAnd(modules.clone()),
                "lora_modules_to_save",
            ),
            _ => Fact::follows(Trained::Adapters, "use_peft"),
        };
    } else {
        facts.adapter = Fact::follows(None, "no `use_peft`");
        facts.weights = precision::loaded(keys);
        facts.trained = if keys.has("spectrum_config_path") {
            Fact::Unknown("Spectrum trains what another file lists".into())
        } else {
            Fact::follows(Trained::All, "no `use_peft`")
        };
    }
    launched::deepspeed(keys, beside, &mut facts);
    launched::fsdp(keys, &mut facts);
    arguments::defaults(&mut facts);
    if facts.strategy.is_known() {
        precision::settle(&mut facts, "transformers");
    }
    Some(facts)
}

/// The trainer that such keys are for.
fn task(keys: &Keys) -> Fact<Task> {
    let has = |key: &str| keys.has(key);
    if has("num_generations") || has("max_completion_length") {
        Fact::follows(Task::Grpo, "num_generations")
    } else if has("gamma_beta_ratio") || has("simpo_gamma") {
        Fact::follows(Task::Simpo, "gamma_beta_ratio")
    } else if has("desirable_weight") {
        Fact::follows(Task::Kto, "desirable_weight")
    } else if has("center_rewards_coefficient") {
        Fact::follows(Task::Reward, "center_rewards_coefficient")
    } else if has("beta") && (has("max_prompt_length") || has("loss_type") || has("dataset_mixer"))
    {
        Fact::follows(Task::Dpo, "beta")
    } else {
        Fact::follows(Task::Sft, "its keys")
    }
}
