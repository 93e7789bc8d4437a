//! What the way a program is started says: GPUs, nodes, and how the run is spread over them.

use headroom_scripts::Beside;
use headroom_scripts::shell::{Count, Launch, Launcher};

use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::parts::{Accelerate, DeepSpeed};
use crate::words::{Compute, DataParallel, Offload, Strategy};

/// Fills in what the launcher and its files decide, for programs on Accelerate or transformers: `flags` are the program's own.
pub fn apply(launch: &Launch, flags: &Keys, beside: &dyn Beside, facts: &mut Facts) {
    deepspeed(flags, beside, facts);
    fsdp(flags, facts);
    if launch.launcher == Launcher::Accelerate {
        accelerate(launch, beside, facts);
    }
    counts(launch, facts);
}

/// GPUs, nodes and, where nothing divides the model, one copy on each GPU.
pub fn counts(launch: &Launch, facts: &mut Facts) {
    use std::mem::take;
    if let Some(nodes) = launch.nodes {
        facts.nodes = take(&mut facts.nodes).or(Fact::read(nodes, "the launcher"));
    }
    let count = match &launch.gpus {
        Count::Known(count) => Fact::read(*count, "the launcher"),
        Count::Unknown(why) => Fact::Unknown(why.clone()),
    };
    if launch.launcher != Launcher::Accelerate || count.is_known() {
        facts.gpus = take(&mut facts.gpus).or(count);
    }
    let one = facts.gpus.value() == Some(&1);
    if facts.strategy.is_unsaid() {
        let (strategy, why) = if one {
            (DataParallel::None, "one process")
        } else if launch.launcher == Launcher::Accelerate && !facts.gpus.is_known() {
            return;
        } else {
            (
                DataParallel::Ddp,
                "several processes, and nothing divides the model",
            )
        };
        facts.strategy = Fact::follows(strategy.into(), why);
    }
    facts.offload = take(&mut facts.offload).or_default(Offload::None, "the launcher");
}

/// `--deepspeed FILE`.
pub fn deepspeed(flags: &Keys, beside: &dyn Beside, facts: &mut Facts) {
    for key in ["deepspeed", "deepspeed_config", "deepspeed_config_file"] {
        match flags.text(key) {
            Fact::Known { value, .. } if value == "true" => {}
            Fact::Known { value, .. }
                if matches!(value.as_str(), "None" | "none" | "null" | "false" | "False") => {}
            Fact::Known { value, .. } => DeepSpeed::at(&value, beside).apply(facts),
            Fact::Unknown(why) => {
                facts.strategy = std::mem::take(&mut facts.strategy).or(Fact::Unknown(why));
            }
            Fact::Unsaid => {}
        }
    }
}

/// Trainer's `--fsdp "full_shard auto_wrap offload"`.
pub fn fsdp(flags: &Keys, facts: &mut Facts) {
    use std::mem::take;
    let words = match flags.list("fsdp") {
        Fact::Known { value, .. } => value,
        Fact::Unknown(why) => {
            facts.strategy = take(&mut facts.strategy).or(Fact::Unknown(why));
            return;
        }
        Fact::Unsaid => return,
    };
    let has = |word: &str| words.iter().any(|known| known.eq_ignore_ascii_case(word));
    if words.is_empty() || has("false") || has("none") {
        return;
    }
    let second = ["version", "fsdp_version"]
        .iter()
        .any(|key| flags.whole(&format!("fsdp_config.{key}")).value() == Some(&2))
        || flags.whole("fsdp_version").value() == Some(&2);
    let strategy = if has("hybrid_shard") || has("hybrid_shard_zero2") {
        DataParallel::Hsdp
    } else if has("no_shard") {
        DataParallel::Ddp
    } else if second {
        DataParallel::Fsdp2
    } else {
        DataParallel::Fsdp1
    };
    facts.strategy = take(&mut facts.strategy).or(Fact::read(Strategy::from(strategy), "fsdp"));
    let on_host = ["offload_params", "fsdp_offload_params"]
        .iter()
        .any(|key| flags.switch(&format!("fsdp_config.{key}")).value() == Some(&true));
    facts.offload = take(&mut facts.offload).or(if has("offload") || on_host {
        Fact::read(Offload::Both, "fsdp")
    } else {
        Fact::default_of(Offload::None, "FSDP")
    });
}

fn accelerate(launch: &Launch, beside: &dyn Beside, facts: &mut Facts) {
    let mut options = Keys::default();
    for (name, word) in &launch.options {
        let key = name.replace('-', "_");
        let text = if word.text.is_empty() {
            "true"
        } else {
            &word.text
        };
        options.set(&key, text.into());
        if let Some(why) = &word.unknown {
            options.set_unknown(&key, format!("`{}` depends on {why}", word.text));
        }
    }
    // Options of the command line are stronger than the file.
    Accelerate::of(&options).apply(facts);
    match &launch.config {
        Some(word) => match &word.unknown {
            None => Accelerate::at(&word.text, beside).apply(facts),
            Some(why) => {
                let why = format!("`{}` depends on {why}", word.text);
                facts.strategy = std::mem::take(&mut facts.strategy).or(Fact::Unknown(why));
            }
        },
        // Without a file and options it starts one process and computes in fp32, unless the machine has a file of its own.
        None if launch.options.is_empty() => {}
        None => {
            facts.compute =
                std::mem::take(&mut facts.compute).or_default(Compute::Fp32, "Accelerate");
        }
    }
}
