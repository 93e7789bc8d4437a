//! qlora-pipe (tdrussell) and qlora-pipe-lite (jukofyork): language models on DeepSpeed's pipeline engine, a TOML a run.
//! Defaults are those of `train.py`, `training/engine.py` and `training/model_factory.py` of the latter.

use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::program::{Program, Source};
use crate::words::{
    Adapter, Checkpointing, Compute, DataParallel, Offload, Strategy, Task, Trained, Weights,
};

pub const PROGRAM: Program = Program {
    id: "qlora-pipe",
    name: "qlora-pipe",
    read,
};

const DEFAULT: &str = "qlora-pipe";

fn read(source: &Source) -> Option<Facts> {
    let keys = source.document()?;
    let lite = keys.has("model_dir");
    let own = [
        "lora_rank",
        "load_in_4bit",
        "full_fine_tune",
        "use_control_adapters",
        "pipeline_stages",
    ];
    let named = lite || keys.has("model");
    if !named || !keys.has("datasets") || own.iter().filter(|key| keys.has(key)).count() < 2 {
        return None;
    }
    let mut facts = Facts::of("torch");
    facts.model = keys.text("model_dir").or(keys.text("model"));
    facts.task = match keys.text("rlhf.method").value().map(String::as_str) {
        Some("dpo") => Fact::read(Task::Dpo, "rlhf.method"),
        Some("kto") => Fact::read(Task::Kto, "rlhf.method"),
        _ => Fact::follows(Task::Pretraining, "texts are cut into sequences"),
    };
    // The lite form has a batch of one sequence.
    facts.micro_batch = if lite {
        Fact::default_of(1, "qlora-pipe-lite")
    } else {
        keys.whole("micro_batch_size_per_gpu")
            .or_default(1, DEFAULT)
    };
    facts.accumulation = keys
        .whole("gradient_accumulation_steps")
        .or_default(1, DEFAULT);
    facts.sequence = keys.whole("sequence_len");
    let stages = keys.whole("pipeline_stages").or_default(1, DEFAULT);
    facts.strategy = stages.map(|stages| Strategy {
        pp: stages.max(1),
        ..Strategy::from(if stages > 1 {
            DataParallel::None
        } else {
            DataParallel::Ddp
        })
    });
    facts.offload = Fact::default_of(Offload::None, DEFAULT);
    let checkpointing = if lite {
        Fact::default_of(Checkpointing::On, "qlora-pipe-lite")
    } else {
        match keys
            .text("activation_checkpointing")
            .value()
            .map(String::as_str)
        {
            None | Some("false") => Fact::default_of(Checkpointing::Off, DEFAULT),
            Some(_) => Fact::read(Checkpointing::On, "activation_checkpointing"),
        }
    };
    if lite
        || keys
            .text("activation_checkpointing")
            .value()
            .is_some_and(|how| how == "unsloth")
    {
        let what = "checkpoints of activations lie on the host (unsloth)";
        facts.not_modelled.push(what.into());
    }
    facts.checkpointing = checkpointing;
    facts.packing = Fact::follows(true, "texts are cut into sequences");
    let share = keys.number("eval_fraction");
    facts.evaluation = match share.value() {
        Some(share) => Fact::read(*share > 0.0, "eval_fraction"),
        None if lite => Fact::default_of(true, "qlora-pipe-lite"),
        None => Fact::read(keys.has("eval_datasets"), "eval_datasets"),
    };
    facts.optimizer = if lite {
        Fact::default_of("adam (optimi)".into(), "qlora-pipe-lite")
    } else {
        keys.text("optimizer.type")
            .map(|name| name.to_ascii_lowercase())
            .or_default("adamw_kahan".into(), DEFAULT)
    };
    facts.compute = Fact::default_of(Compute::Bf16, DEFAULT);
    adapter(keys, &mut facts);
    Some(facts)
}

fn adapter(keys: &Keys, facts: &mut Facts) {
    let on = |key: &str| keys.switch(key).value() == Some(&true);
    let full = on("full_fine_tune") || (!keys.has("lora_rank") && !on("use_control_adapters"));
    let bits = on("load_in_4bit") || on("quantization.bnb.load_in_4bit");
    facts.weights = if full {
        Fact::default_of(Weights::Bf16, DEFAULT)
    } else if bits {
        Fact::read(Weights::Nf4, "load_in_4bit")
    } else if on("quantization.bnb.load_in_8bit") || on("load_in_8bit") {
        Fact::read(Weights::Int8, "load_in_8bit")
    } else if keys.has("quantization.hqq") {
        Fact::Unknown("quantization.hqq is not understood".into())
    } else {
        Fact::default_of(Weights::Bf16, DEFAULT)
    };
    if full {
        facts.adapter = Fact::read(None, "full_fine_tune");
        facts.trained = match keys.text("layers_to_transform").value() {
            Some(layers) => Fact::read(
                Trained::Part(format!("layers {layers}")),
                "layers_to_transform",
            ),
            None => Fact::read(Trained::All, "full_fine_tune"),
        };
        return;
    }
    let kind = if on("use_control_adapters") {
        Fact::read(Adapter::Control, "use_control_adapters")
    } else if bits {
        Fact::read(Adapter::Qlora, "load_in_4bit")
    } else {
        Fact::read(Adapter::Lora, "lora_rank")
    };
    facts.adapter = kind.map(Some);
    facts.rank = keys.whole("lora_rank");
    facts.targets = keys
        .list("target_modules")
        .or_default(vec!["all-linear".into()], DEFAULT);
    facts.base_dtype = facts.weights.clone();
    facts.trained = Fact::follows(Trained::Adapters, "lora_rank");
    if keys.has("layers_to_transform") {
        let what = "layers_to_transform: the other layers have no adapters";
        facts.not_modelled.push(what.into());
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    #[test]
    fn the_lite_form_has_a_batch_of_one_and_checkpoints_always() {
        let text = "model_dir = 'Qwen/Qwen2.5-7B'
output_dir = 'out'
load_in_4bit = true
lora_rank = 16
sequence_len = 2048
pipeline_stages = 1
gradient_accumulation_steps = 4

[[datasets]]
dataset_path = 'a.txt'
";
        check(
            "q.toml",
            text,
            &[
                ("outcome", "estimate"),
                ("micro_batch", "1"),
                ("sequence", "2048"),
                ("weights", "nf4"),
                ("adapter", "qlora"),
                ("checkpointing", "true"),
                ("strategy", "ddp"),
            ],
        );
        let full = text.replace(
            "load_in_4bit = true\nlora_rank = 16",
            "full_fine_tune = true",
        );
        check(
            "f.toml",
            &full,
            &[("trained", "all"), ("adapter", "null"), ("weights", "bf16")],
        );
    }
}
