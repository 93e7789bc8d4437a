//! A training script that is not here and that no program knows: its common flags are read, and the rest is asked for.

use headroom_scripts::shell::Launcher;

use super::hf::precision;
use super::launched;
use crate::fact::Fact;
use crate::facts::Facts;
use crate::program::{Form, Program, Source, is_kind};
use crate::words::Checkpointing;

pub const PROGRAM: Program = Program {
    id: "a script",
    name: "a script",
    read,
};

/// Words in the name of a script that trains.
const NAMES: &[&str] = &[
    "train",
    "finetune",
    "fine_tune",
    "finetuning",
    "pretrain",
    "sft",
    "clm",
    "mlm",
    "dpo",
    "grpo",
    "ppo",
    "lora",
];

/// Words in the name of one that does something else with a model.
const OTHERS: &[&str] = &[
    "merge",
    "eval",
    "evaluate",
    "infer",
    "inference",
    "generate",
    "convert",
    "export",
    "serve",
    "prepare",
    "preprocess",
    "benchmark",
    "test",
    "demo",
    "chat",
    "download",
    "tokenize",
    "tokenizer",
    "upload",
    "plot",
];

const MODELS: &[&str] = &[
    "model_name_or_path",
    "model_name",
    "model_id",
    "base_model",
    "model_path",
    "pretrained_path",
    "model",
    "model_size",
];
const BATCHES: &[&str] = &[
    "per_device_train_batch_size",
    "train_batch_size",
    "micro_batch_size",
    "batch_size",
    "train_micro_batch_size",
    "batch_size_per_gpu",
];
const LENGTHS: &[&str] = &[
    "max_length",
    "max_seq_length",
    "max_seq_len",
    "model_max_length",
    "block_size",
    "seq_len",
    "seq_length",
    "cutoff_len",
    "context_length",
];

fn read(source: &Source) -> Option<Facts> {
    let Form::Command { launch, flags } = &source.form else {
        return None;
    };
    let program = launch.program.text.to_ascii_lowercase();
    let stem = program
        .rsplit('/')
        .next()
        .unwrap_or(&program)
        .trim_end_matches(".py");
    let mut parts = stem.split(|c: char| !c.is_alphanumeric());
    if parts.any(|part| OTHERS.contains(&part)) {
        return None;
    }
    let named = stem
        .split(|c: char| !c.is_alphanumeric())
        .any(|part| NAMES.iter().any(|name| part.starts_with(name)))
        || stem.contains("finetun")
        || stem.contains("train");
    let is_python = is_kind(&program, &["py"]) || launch.launcher != Launcher::Program;
    let distributed = matches!(
        launch.launcher,
        Launcher::Torchrun | Launcher::Accelerate | Launcher::Deepspeed
    );
    let tells = [
        MODELS,
        BATCHES,
        &[
            "learning_rate",
            "lr",
            "num_epochs",
            "epochs",
            "num_train_epochs",
            "total_steps",
        ],
    ];
    let told = tells
        .iter()
        .filter(|keys| keys.iter().any(|key| flags.has(key)))
        .count();
    // A name alone may be that of a tool that prepares data.
    if !is_python || !named || !(distributed || told >= 1) {
        return None;
    }
    let mut facts = Facts::of("a script");
    facts.trainer = Fact::Unsaid;
    let why = || format!("{} is not here", launch.program.text);
    let first = |keys: &[&str]| {
        keys.iter().fold(Fact::Unsaid, |fact: Fact<u64>, key| {
            fact.or(flags.whole(key))
        })
    };
    facts.model = MODELS.iter().fold(Fact::Unsaid, |fact: Fact<String>, key| {
        fact.or(flags.name(key))
    });
    facts.micro_batch = first(BATCHES);
    facts.sequence = first(LENGTHS);
    facts.accumulation = first(&[
        "gradient_accumulation_steps",
        "accumulation_steps",
        "grad_accum",
    ]);
    facts.rank = first(&["lora_r", "lora_rank"]);
    precision::amp(flags, &mut facts);
    facts.checkpointing = flags.switch("gradient_checkpointing").map(|on| {
        if on {
            Checkpointing::On
        } else {
            Checkpointing::Off
        }
    });
    launched::apply(launch, flags, source.beside, &mut facts);
    if facts.model.is_unsaid() {
        facts.model = Fact::Unknown(why());
    }
    if facts.micro_batch.is_unsaid() {
        facts.micro_batch = Fact::Unknown(why());
    }
    if facts.sequence.is_unsaid() {
        facts.sequence = Fact::Unknown(why());
    }
    Some(facts)
}
