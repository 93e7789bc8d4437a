//! Lightning's command line: YAML with `trainer`, `model` and `data`, each a class and its arguments.
//!
//! Defaults are those of `lightning.pytorch.Trainer`.

use headroom_base::document::Document;

use super::common;
use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::program::{Program, Source};
use crate::words::{Checkpointing, Compute, DataParallel, Offload, Strategy, Weights};

pub const PROGRAM: Program = Program {
    id: "lightning",
    name: "Lightning",
    read,
};

/// Arguments of `Trainer` that no other program's `trainer` has together.
const OWN: &[&str] = &[
    "devices",
    "accelerator",
    "precision",
    "max_epochs",
    "max_steps",
    "accumulate_grad_batches",
    "num_nodes",
    "gradient_clip_val",
    "strategy",
    "callbacks",
    "check_val_every_n_epoch",
];

fn read(source: &Source) -> Option<Facts> {
    let keys = source.document()?;
    let marks = OWN
        .iter()
        .filter(|key| keys.has(&format!("trainer.{key}")))
        .count();
    let shaped =
        keys.has("model.class_path") || keys.has("model.init_args") || keys.has("data.class_path");
    (marks >= 2 && (shaped || keys.has("seed_everything"))).then(|| of(keys))
}

fn of(keys: &Keys) -> Facts {
    let mut facts = Facts::of("lightning");
    facts.model = named(keys);
    let first = |names: &[&str]| {
        names.iter().fold(Fact::Unsaid, |said: Fact<u64>, name| {
            said.or(keys.whole(&format!("data.init_args.{name}")))
                .or(keys.whole(&format!("data.{name}")))
                .or(keys.whole(&format!("model.init_args.{name}")))
        })
    };
    facts.micro_batch = first(&[
        "batch_size",
        "train_batch_size",
        "micro_batch_size",
        "per_device_batch_size",
    ]);
    facts.sequence = first(&[
        "max_seq_length",
        "max_length",
        "block_size",
        "seq_len",
        "max_seq_len",
    ]);
    trained(keys, &mut facts);
    common::trains_all(&mut facts);
    let optimizer = keys
        .text("optimizer.class_path")
        .or(keys.text("model.init_args.optimizer.class_path"));
    facts.optimizer = optimizer.map(|name| {
        let last = name.rsplit('.').next().unwrap_or(&name);
        last.to_ascii_lowercase()
    });
    facts
}

/// A script's call of `Trainer`, by its arguments.
pub fn of_call(arguments: Document, facts: &mut Facts) {
    facts.trainer = Fact::follows("lightning", "its Trainer");
    trained(&Keys::new(Document::map([("trainer", arguments)])), facts);
}

/// What `Trainer` decides.
fn trained(keys: &Keys, facts: &mut Facts) {
    facts.accumulation = keys
        .whole("trainer.accumulate_grad_batches")
        .or_default(1, "Lightning's accumulate_grad_batches");
    spread(keys, facts);
    precision(keys, facts);
}

/// A model's name where an argument gives one; else what is known is its class.
fn named(keys: &Keys) -> Fact<String> {
    const NAMES: &[&str] = &[
        "model_name_or_path",
        "model_name",
        "pretrained_model_name_or_path",
        "model_id",
        "hf_model",
        "backbone",
    ];
    let said = NAMES.iter().fold(Fact::Unsaid, |said: Fact<String>, name| {
        said.or(keys.text(&format!("model.init_args.{name}")))
            .or(keys.text(&format!("model.{name}")))
    });
    match (said, keys.text("model.class_path").value()) {
        (Fact::Unsaid, Some(class)) => Fact::Unknown(format!("{class} is a class of its own")),
        (said, _) => said,
    }
}

fn spread(keys: &Keys, facts: &mut Facts) {
    facts.nodes = keys
        .whole("trainer.num_nodes")
        .or_default(1, "Lightning's num_nodes");
    let nodes = facts.nodes.value().copied().unwrap_or(1);
    let devices = match keys.peek("trainer.devices") {
        Some(Document::List(all)) => Fact::read(all.len() as u64, "trainer.devices"),
        Some(Document::Text(text)) if text == "auto" || text == "-1" => {
            Fact::Unknown("trainer.devices takes every GPU".into())
        }
        None | Some(Document::Null) => Fact::Unknown("Lightning takes every GPU".into()),
        Some(Document::Int(-1)) => Fact::Unknown("trainer.devices takes every GPU".into()),
        Some(_) => keys.whole("trainer.devices"),
    };
    facts.gpus = devices.map(|devices| devices.saturating_mul(nodes));
    let one = facts.gpus.value() == Some(&1);
    let said = keys
        .text("trainer.strategy")
        .or(keys.text("trainer.strategy.class_path"));
    let name = said
        .value()
        .cloned()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let staged = keys
        .whole("trainer.strategy.init_args.stage")
        .value()
        .copied();
    let data = match name.as_str() {
        _ if one && !name.contains("deepspeed") => DataParallel::None,
        name if name.contains("deepspeed") => match staged.or_else(|| stage(name)) {
            Some(1) => DataParallel::Zero1,
            Some(3) => DataParallel::Zero3,
            _ => DataParallel::Zero2,
        },
        name if name.contains("modelparallel") => DataParallel::Fsdp2,
        name if name.contains("fsdp") => DataParallel::Fsdp1,
        _ => DataParallel::Ddp,
    };
    facts.strategy = if said.is_known() {
        Fact::read(Strategy::from(data), "trainer.strategy")
    } else {
        Fact::default_of(Strategy::from(data), "Lightning's strategy")
    };
    let on_host = name.contains("offload")
        || keys
            .switch("trainer.strategy.init_args.offload_optimizer")
            .value()
            == Some(&true);
    let both = keys
        .switch("trainer.strategy.init_args.cpu_offload")
        .value()
        == Some(&true)
        || keys
            .switch("trainer.strategy.init_args.offload_parameters")
            .value()
            == Some(&true);
    facts.offload = match (both, on_host) {
        (true, _) => Fact::read(Offload::Both, "trainer.strategy"),
        (false, true) => Fact::read(Offload::Optimizer, "trainer.strategy"),
        (false, false) => Fact::default_of(Offload::None, "Lightning"),
    };
    if keys.has("trainer.strategy.init_args.activation_checkpointing_policy") {
        facts.checkpointing = Fact::read(Checkpointing::On, "trainer.strategy");
    }
}

/// `deepspeed_stage_3_offload`.
fn stage(name: &str) -> Option<u64> {
    let (_, rest) = name.split_once("stage_")?;
    rest.chars().next()?.to_digit(10).map(u64::from)
}

fn precision(keys: &Keys, facts: &mut Facts) {
    let said = keys
        .text("trainer.precision")
        .or_default("32-true".into(), "Lightning's precision");
    facts.compute = said.clone().and_then(|name| {
        Some(match name.as_str() {
            "bf16-mixed" | "bf16" => Compute::Bf16Autocast,
            "16-mixed" | "16" => Compute::Fp16Autocast,
            "bf16-true" => Compute::Bf16,
            "16-true" => Compute::Fp16,
            "32-true" | "32" => Compute::Fp32,
            "transformer-engine" => Compute::Bf16Fp8,
            _ => return None,
        })
    });
    facts.weights = said.map(|name| match name.as_str() {
        "bf16-true" => Weights::Bf16,
        "16-true" => Weights::Fp16,
        _ => Weights::Fp32,
    });
}

#[cfg(test)]
mod tests {
    use crate::programs::testing::check;

    #[test]
    fn the_trainers_arguments_decide_devices_and_precision() {
        let run = "
seed_everything: 1
trainer: {accelerator: gpu, devices: 4, num_nodes: 2, strategy: deepspeed_stage_3_offload, precision: bf16-mixed, accumulate_grad_batches: 2}
model: {class_path: own.Tuner, init_args: {model_name: gpt2}}
data: {class_path: own.Data, init_args: {batch_size: 8, max_length: 512}}
";
        check(
            "config.yaml",
            run,
            &[
                ("outcome", "estimate"),
                ("model", "gpt2"),
                ("gpus", "8"),
                ("strategy", "zero3"),
                ("micro_batch", "8"),
                ("accumulation", "2"),
                ("sequence", "512"),
                ("compute", "bf16"),
            ],
        );
        let own = run.replace("init_args: {model_name: gpt2}", "init_args: {width: 3}");
        check(
            "config.yaml",
            &own,
            &[("outcome", "question"), ("asks", "model")],
        );
    }
}
