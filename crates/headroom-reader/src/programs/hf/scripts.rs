//! Scripts behind a launcher that parse `TrainingArguments`, and TRL's own commands.

use crate::documents;
use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::program::{Source, is_kind};
use crate::programs::launched;
use crate::words::{Compute, Task, Trained, Weights};
use headroom_scripts::shell::Launch;

use super::{adapters, arguments, known, precision, yaml};

/// The TRL whose commands are meant, unless a file says otherwise.
const TRL: (u32, u32) = (1, 0);

pub fn read(source: &Source, launch: &Launch, flags: &Keys) -> Option<Facts> {
    const OWN: &[&str] = &[
        "per_device_train_batch_size",
        "gradient_accumulation_steps",
        "num_train_epochs",
        "output_dir",
        "learning_rate",
        "gradient_checkpointing",
        "bf16",
        "fp16",
        "lr_scheduler_type",
        "warmup_ratio",
        "logging_steps",
        "save_steps",
    ];
    let program = launch.program.text.as_str();
    // A script that is at hand is evaluated itself.
    let own = source
        .beside
        .text(program)
        .is_some_and(|text| !text.is_empty());
    if own && is_kind(program, &["py"]) && known::find(program, flags).is_none() {
        return None;
    }
    if let Some(facts) = configured(source, launch, flags) {
        return Some(facts);
    }
    let known = known::find(program, flags);
    let count = OWN.iter().filter(|key| flags.has(key)).count();
    let command = command(launch);
    let enough = command.is_some() || count >= 5 || (count >= 3 && names_model(flags));
    if known.is_none() && !enough {
        return None;
    }
    let defaulted;
    let keys = match known {
        Some(known) => {
            defaulted = flags.clone().with_defaults(known.defaults, known.name);
            &defaulted
        }
        None => flags,
    };
    let program = command.unwrap_or(program);
    let task = task(program, keys);
    let trl = known.is_none()
        && (command.is_some()
            || is_trl(program)
            || keys.has("use_peft")
            || (keys.has("dataset_name") && task.is_some()));
    let mut facts = match known {
        Some(known) => Facts::of(known.trainer),
        None => Facts::of(if trl { "trl" } else { "transformers" }),
    };
    facts.model = [
        "model_name_or_path",
        "model_name",
        "model_id",
        "base_model",
        "model_path",
        "model",
    ]
    .iter()
    .fold(Fact::Unsaid, |fact: Fact<String>, key| {
        fact.or(keys.name(key))
    });
    facts.task = match (known, task) {
        (Some(known), _) => Fact::default_of(known.task, known.name),
        (None, Some(task)) => Fact::follows(task, format!("the name of {program}")),
        (None, None) => Fact::follows(Task::Sft, "its arguments"),
    };
    launched::deepspeed(keys, source.beside, &mut facts);
    launched::fsdp(keys, &mut facts);
    launched::apply(launch, keys, source.beside, &mut facts);
    arguments::apply(keys, &mut facts);
    arguments::sequence(keys, &mut facts);
    facts.samples = keys.whole("num_generations");
    if let Some(known) = known {
        (known.apply)(keys, &mut facts);
    }
    method(keys, &mut facts, if trl { 16 } else { 8 });
    if command.is_some() {
        arguments::of_trl(TRL, true, &mut facts);
    }
    arguments::defaults(&mut facts);
    if facts.compute.is_unsaid() {
        facts.compute = Fact::default_of(Compute::Fp32, "neither bf16 nor fp16");
    }
    weights(keys, &mut facts);
    Some(facts)
}

fn names_model(flags: &Keys) -> bool {
    [
        "model_name_or_path",
        "model_name",
        "model_id",
        "base_model",
        "model_path",
        "model",
    ]
    .iter()
    .any(|key| flags.has(key))
}

/// `--config recipe.yaml`, alone or with flags over it.
fn configured(source: &Source, launch: &Launch, flags: &Keys) -> Option<Facts> {
    let given = flags.text("config").or(flags.text("config_file"));
    let file = given.value().cloned().or_else(|| {
        let first = launch.arguments.first()?;
        let is_yaml = is_kind(&first.text, &["yaml", "yml"]);
        is_yaml.then(|| first.text.clone())
    })?;
    let text = source.beside.text(&file)?;
    let mut keys = documents::read(&text)?;
    keys.overlay(flags);
    let mut facts = yaml::read(&keys, source.beside)?;
    let program = command(launch).unwrap_or(&launch.program.text);
    if let Some(task) = task(program, &keys) {
        facts.task = Fact::follows(task, format!("the name of {program}"));
    }
    launched::apply(launch, &keys, source.beside, &mut facts);
    precision::settle(&mut facts, "transformers");
    Some(facts)
}

/// The name of one of TRL's own commands: `trl sft`, or the module that it starts.
fn command(launch: &Launch) -> Option<&str> {
    let program = launch.program.text.as_str();
    if program == "trl" {
        return launch.arguments.first().map(|first| first.text.as_str());
    }
    let module = program.strip_prefix("trl.scripts.");
    module.or_else(|| program.split_once("trl/scripts/").map(|(_, file)| file))
}

fn is_trl(program: &str) -> bool {
    program.contains("trl/") || program.contains("open_r1") || program.contains("alignment")
}

/// The task that a script's name says: `examples/scripts/dpo.py`, `run_sft.py`, `trl grpo`.
fn task(program: &str, keys: &Keys) -> Option<Task> {
    let file = program
        .rsplit('/')
        .next()
        .unwrap_or(program)
        .to_ascii_lowercase();
    let stem = file.trim_end_matches(".py");
    let has = |word: &str| {
        stem.split(|c: char| !c.is_alphanumeric())
            .any(|part| part == word)
    };
    let by_name = [
        ("sft", Task::Sft),
        ("dpo", Task::Dpo),
        ("kto", Task::Kto),
        ("orpo", Task::Orpo),
        ("cpo", Task::Cpo),
        ("simpo", Task::Simpo),
        ("grpo", Task::Grpo),
        ("rloo", Task::Rloo),
        ("ppo", Task::Ppo),
        ("reward", Task::Reward),
        ("rm", Task::Reward),
        ("gkd", Task::Distillation),
    ];
    let named = by_name
        .iter()
        .find(|(word, _)| has(word))
        .map(|(_, task)| *task);
    named.or_else(|| keys.has("num_generations").then_some(Task::Grpo))
}

/// Adapters by the flags that most scripts share, where the script itself has not decided.
fn method(keys: &Keys, facts: &mut Facts, rank: u64) {
    if !facts.adapter.is_unsaid() {
        return;
    }
    let on = |key: &str| keys.switch(key).value() == Some(&true);
    let switches = [
        "use_peft",
        "use_lora",
        "lora",
        "use_peft_lora",
        "lora_enable",
        "use_qlora",
        "peft",
    ];
    let quantised = precision::quantised(keys);
    let has_rank = ["lora_r", "lora_rank", "peft_lora_r"]
        .iter()
        .any(|key| keys.has(key));
    let off = switches
        .iter()
        .any(|key| keys.switch(key).value() == Some(&false));
    if switches.iter().any(|key| on(key)) || (has_rank && !off) {
        facts.weights = std::mem::take(&mut facts.weights).or(quantised);
        let of = if rank == 16 {
            "TRL's lora_r"
        } else {
            "PEFT's r"
        };
        adapters::lora(
            keys,
            facts,
            &["lora_r", "lora_rank", "peft_lora_r"],
            rank,
            of,
        );
        facts.trained = Fact::follows(Trained::Adapters, "its LoRA");
    } else {
        facts.adapter = Fact::follows(None, "no flag of an adapter");
        facts.trained =
            std::mem::take(&mut facts.trained).or_follows(Trained::All, "no flag of an adapter");
    }
}

/// What the weights are loaded as where no flag says it: `from_pretrained`'s fp32, which DeepSpeed's engine casts.
fn weights(keys: &Keys, facts: &mut Facts) {
    let loaded = precision::loaded(keys);
    facts.weights = std::mem::take(&mut facts.weights).or(loaded);
    let by_engine = facts
        .strategy
        .value()
        .is_some_and(|strategy| strategy.data >= crate::words::DataParallel::Zero0);
    if by_engine {
        precision::settle(facts, "DeepSpeed");
    } else if facts.strategy.is_known() {
        let by_name = facts
            .model
            .value()
            .and_then(|model| crate::names::named(model).weights);
        if let Some(weights) = by_name {
            facts.weights =
                std::mem::take(&mut facts.weights).or_follows(weights, "the checkpoint's name");
        }
        facts.weights = std::mem::take(&mut facts.weights)
            .or_default(Weights::Fp32, "from_pretrained without a dtype");
    }
}
