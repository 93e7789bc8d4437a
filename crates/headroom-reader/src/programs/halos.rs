//! HALOs: `accelerate launch … launch.py loss=dpo model=llama ++model.batch_size=32`.
//!
//! Defaults are those of `config/config.yaml`, `config/model/*.yaml`, `config/loss/*.yaml` and `accelerate_config/*.yaml`.

use super::{common, launched};
use crate::fact::Fact;
use crate::facts::{Ask, Facts};
use crate::program::{Form, Program, Source};
use crate::words::{Attention, Compute, DataParallel, Offload, Strategy, Task, Weights};

pub const PROGRAM: Program = Program {
    id: "halos",
    name: "HALOs",
    read,
};

fn read(source: &Source) -> Option<Facts> {
    let Form::Command { launch, flags } = &source.form else {
        return None;
    };
    if !launch.program.text.ends_with("launch.py") || !flags.has("loss") && !flags.has("loss.beta")
    {
        return None;
    }
    // `loss=dpo` beside `++loss.beta=…`: the last of both words is a section, so the plain word is looked for.
    let plain = |name: &str| {
        launch.arguments.iter().find_map(|word| {
            let word = word.text.trim_start_matches('+');
            word.strip_prefix(name)?
                .strip_prefix('=')
                .map(str::to_string)
        })
    };
    let loss = plain("loss")?;
    let kind = plain("model").unwrap_or_default();
    let mut facts = Facts::of("torch");
    facts.task = match loss.as_str() {
        "dpo" | "cdpo" | "ipo" | "slic" => Fact::read(Task::Dpo, "loss"),
        "kto" => Fact::read(Task::Kto, "loss"),
        "simpo" => Fact::read(Task::Simpo, "loss"),
        "grpo" => Fact::read(Task::Grpo, "loss"),
        "ppo" => Fact::read(Task::Ppo, "loss"),
        "bradley-terry" => Fact::read(Task::Reward, "loss"),
        "sft" | "csft" => Fact::read(Task::Sft, "loss"),
        other => Fact::Unknown(format!("loss={other} is not known")),
    };
    facts.model = flags.text("model.name_or_path");
    if facts.model.is_unsaid() {
        facts.model = flags
            .text("model.load_from")
            .or(flags.text("model.from_checkpoint"));
    }
    facts.sequence = flags
        .whole("model.max_length")
        .or_default(1250, "HALOs' max_length");
    facts.accumulation = flags
        .whole("model.gradient_accumulation_steps")
        .or_default(1, "HALOs' gradient_accumulation_steps");
    facts.batch_of_all = flags
        .whole("model.batch_size")
        .or_default(32, "HALOs' batch_size");
    config(
        launch.config.as_ref().map(|word| word.text.as_str()),
        &mut facts,
    );
    launched::apply(launch, flags, source.beside, &mut facts);
    facts.compute = Fact::default_of(Compute::Bf16, "HALOs' policy_dtype");
    facts.weights = flags
        .text("model.policy_dtype")
        .or_default("bfloat16".into(), "HALOs' policy_dtype")
        .and_then(|name| {
            Some(match name.as_str() {
                "bfloat16" => Weights::Bf16,
                "float16" => Weights::Fp16,
                "float32" => Weights::Fp32,
                _ => return None,
            })
        });
    if flags.switch("model.use_peft").value() == Some(&true) {
        let rank = flags
            .whole("model.peft.lora_r")
            .or_default(64, "HALOs' lora_r");
        common::trains_lora(&mut facts, rank, "model.use_peft");
        facts.targets = flags
            .list("model.peft.target_modules")
            .or_default(vec!["all-linear".into()], "HALOs' target_modules");
    } else {
        common::trains_all(&mut facts);
    }
    facts.optimizer = flags
        .text("optimizer")
        .map(|name| name.to_ascii_lowercase())
        .or_default("adamw".into(), "HALOs' optimizer");
    facts.checkpointing = common::checkpointing(
        flags
            .switch("model.activation_checkpointing")
            .or_default(true, "HALOs' activation_checkpointing"),
    );
    let flash = matches!(kind.as_str(), "llama" | "mistral" | "qwen");
    let attention = flags.text("model.attn_implementation");
    facts.attention = attention
        .and_then(|name| match name.as_str() {
            "flash_attention_2" => Some(Attention::Flash),
            "sdpa" => Some(Attention::Sdpa),
            "eager" => Some(Attention::Eager),
            _ => None,
        })
        .or_default(
            if flash {
                Attention::Flash
            } else {
                Attention::Eager
            },
            "HALOs' attn_implementation for this model",
        );
    facts.liger = Fact::default_of(false, "HALOs");
    facts.packing = Fact::default_of(false, "HALOs");
    facts.evaluation = Fact::default_of(true, "HALOs");
    if facts.batch_of_all.is_unsaid() {
        facts.ask(Ask::Batch, "model.batch_size is not said");
    }
    Some(facts)
}

/// HALOs' own files for Accelerate are called `fsdp_4gpu.yaml`, `fsdp_2x8gpu.yaml`.
fn config(path: Option<&str>, facts: &mut Facts) {
    let Some(file) = path.and_then(|path| path.rsplit('/').next()) else {
        return;
    };
    let Some(sizes) = file
        .strip_prefix("fsdp_")
        .and_then(|rest| rest.split("gpu").next())
    else {
        return;
    };
    let (nodes, each) = sizes.split_once('x').unwrap_or(("1", sizes));
    let (Ok(nodes), Ok(each)) = (nodes.parse::<u64>(), each.parse::<u64>()) else {
        return;
    };
    facts.gpus = Fact::follows(nodes.saturating_mul(each), format!("the name of {file}"));
    facts.nodes = Fact::follows(nodes, format!("the name of {file}"));
    facts.strategy = Fact::follows(
        Strategy::from(DataParallel::Fsdp1),
        format!("the name of {file}"),
    );
    facts.offload = Fact::default_of(Offload::None, "HALOs' accelerate_config");
}

#[cfg(test)]
mod tests {
    use crate::programs::testing::check;

    #[test]
    fn the_global_batch_is_divided_over_gpus() {
        let run = "
#SBATCH --gres=gpu:8
BETA=$1
accelerate launch --config_file accelerate_config/fsdp_8gpu.yaml launch.py loss=kto model=mistral \\
  ++model.name_or_path=mistralai/Mistral-7B-v0.1 ++loss.beta=${BETA} ++model.batch_size=64 ++model.gradient_accumulation_steps=2
";
        check(
            "run.sh",
            run,
            &[
                ("outcome", "estimate"),
                ("task", "kto"),
                ("gpus", "8"),
                ("micro_batch", "4"),
                ("accumulation", "2"),
                ("strategy", "fsdp1"),
                ("weights", "bf16"),
                ("sequence", "1250"),
            ],
        );
    }
}
