//! A plain PyTorch loop, or a script whose trainer is not built where it can be seen: read for what it shows.

use headroom_catalog::{self as catalog, ModelCategory};
use headroom_scripts::python::{Call, Value};

use super::hf::python::{Calls, adapter, argument, last, model::Model};
use super::hf::{arguments, precision};
use super::{launched, lightning};
use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::program::{Form, Program, Source};
use crate::words::{Checkpointing, Compute, DataParallel, Offload, Task, Trained, Weights};

pub const PROGRAM: Program = Program {
    id: "torch",
    name: "PyTorch",
    read,
};

const OPTIMIZERS: &[&str] = &[
    "AdamW",
    "Adam",
    "SGD",
    "RMSprop",
    "Adagrad",
    "Adafactor",
    "Lion",
    "Muon",
    "AdamW8bit",
    "Adam8bit",
    "PagedAdamW",
    "PagedAdamW8bit",
    "NAdam",
    "RAdam",
    "Adamax",
    "LBFGS",
    "FusedAdam",
    "DeepSpeedCPUAdam",
];

fn read(source: &Source) -> Option<Facts> {
    let Form::Python { module, launch } = &source.form else {
        return None;
    };
    let calls = Calls::new(module);
    let imports_torch = [
        "torch",
        "accelerate",
        "transformers",
        "trl",
        "pytorch_lightning",
        "lightning",
    ]
    .iter()
    .any(|name| calls.imports(name));
    let optimizer = calls
        .all()
        .rev()
        .find(|call| OPTIMIZERS.contains(&last(&call.path)));
    let backward = calls.all().any(|call| last(&call.path) == "backward");
    let trainer = ["trl.SFTTrainer", "transformers.Trainer"]
        .iter()
        .any(|name| source.text.contains(last(name)));
    // Lightning calls backward itself.
    let fits = calls.imports("lightning") || calls.imports("pytorch_lightning");
    let trains = (optimizer.is_some() && (backward || fits || source.text.contains(".backward(")))
        || (trainer && imports_torch);
    if !imports_torch || !trains {
        return None;
    }
    let mut facts = Facts::of("torch");
    if optimizer.is_none() && trainer {
        facts = Facts::of(if calls.imports("trl") {
            "trl"
        } else {
            "transformers"
        });
    }
    let mut model = Model::of(&calls, None, None);
    facts.model = std::mem::take(&mut model.name);
    if facts.model.is_unsaid() {
        classifier(&calls, &mut facts);
    }
    if facts.model.is_unsaid() {
        facts.model = Fact::Unknown("its model is a class of its own".into());
    }
    facts.task = std::mem::take(&mut facts.task).or(model
        .task()
        .map_or(Fact::Unsaid, |task| Fact::read(task, model.class.clone())));
    if facts.task.is_unsaid() && (model.class.contains("Causal") || trainer) {
        facts.task = Fact::follows(Task::Sft, "a causal language model");
    }
    facts.weights = std::mem::take(&mut model.weights);
    facts.attention = precision::attention(&model.keys);
    adapter::apply(&calls, None, model.wrapped, &mut facts);
    if facts.adapter.value() == Some(&None) {
        facts.trained = Fact::follows(Trained::All, "nothing adds adapters");
    }
    if calls.any("LoraConfig") && facts.adapter.value() == Some(&None) {
        let config = calls.last(&["LoraConfig"]);
        let at = config.and_then(|config| {
            module
                .calls
                .iter()
                .position(|call| std::ptr::eq(call, config))
        });
        adapter::apply(&calls, at.map(Value::Object).as_ref(), None, &mut facts);
    }
    facts.micro_batch = batch(&calls);
    facts.sequence = length(&calls);
    if let Some(optimizer) = optimizer {
        facts.optimizer = Fact::read(last(&optimizer.path).to_string(), optimizer.path.clone());
    }
    facts.accumulation = accumulation(&calls);
    numbers(&calls, source.text, &mut facts);
    let checkpoints = calls
        .all()
        .any(|call| call.path.ends_with("gradient_checkpointing_enable"));
    facts.checkpointing = if checkpoints {
        Fact::read(Checkpointing::On, "gradient_checkpointing_enable()")
    } else if calls.any("checkpoint") {
        Fact::read(Checkpointing::Selective, "torch.utils.checkpoint")
    } else {
        Fact::follows(Checkpointing::Off, "nothing checkpoints")
    };
    spread(&calls, &mut facts);
    let of_lightning = |call: &&Call| {
        let root = call.path.split('.').next().unwrap_or_default();
        matches!(root, "lightning" | "pytorch_lightning") && last(&call.path) == "Trainer"
    };
    if let Some(call) = calls.all().find(of_lightning) {
        lightning::of_call(calls.keys(call).tree().clone(), &mut facts);
    } else if let Some(launch) = launch {
        launched::apply(launch, &Keys::default(), source.beside, &mut facts);
    } else if facts.strategy.is_unsaid() && !calls.imports("accelerate") {
        facts.strategy = Fact::follows(DataParallel::None.into(), "a script without a launcher");
        facts.gpus = Fact::follows(1, "a script without a launcher");
    }
    facts.offload =
        std::mem::take(&mut facts.offload).or_follows(Offload::None, "nothing offloads");
    if optimizer.is_none() {
        arguments::defaults(&mut facts);
        facts.micro_batch = Fact::Unknown("its trainer is not built here".into());
    }
    Some(facts)
}

/// A network of torchvision or timm by its constructor, with the size that its images are cut to.
fn classifier(calls: &Calls, facts: &mut Facts) {
    const CUTS: &[&str] = &["RandomResizedCrop", "CenterCrop", "RandomCrop", "Resize"];
    let text = |value: Option<&Value>| match value {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    };
    let network = |name: &str| crate::names::named(name).catalogue.and_then(catalog::model);
    let built = calls.all().find_map(|call| {
        let name = match call.path.as_str() {
            "timm.create_model" | "torchvision.models.get_model" => {
                text(argument(call, "model_name", 0))?
            }
            path => path.strip_prefix("torchvision.models.")?.to_string(),
        };
        let name = last(&name).to_string();
        let entry = network(&name).filter(|entry| entry.category == ModelCategory::Vision)?;
        Some((name, entry, call.path.clone()))
    });
    let Some((name, entry, path)) = built else {
        return;
    };
    facts.model = Fact::read(name, path.clone());
    facts.task = Fact::read(Task::Classification, path);
    let side = |call: &Call| match argument(call, "size", 0) {
        Some(Value::Int(side)) => u64::try_from(*side).ok(),
        _ => None,
    };
    let cut = |name: &&str| {
        let mut cuts = calls.all().filter(|call| last(&call.path) == *name);
        cuts.find_map(side)
    };
    let side = match CUTS.iter().find_map(cut) {
        Some(side) => Fact::read(side, "the images' transforms"),
        None => Fact::default_of(entry.size("img").unwrap_or(224), "the network's own images"),
    };
    (facts.height, facts.width) = (side.clone(), side);
}

/// The training loader's batch: the first one that shuffles, or the first.
fn batch(calls: &Calls) -> Fact<u64> {
    let loaders: Vec<&Call> = calls
        .all()
        .filter(|call| last(&call.path) == "DataLoader")
        .collect();
    let shuffles = |call: &&&Call| matches!(argument(call, "shuffle", 2), Some(Value::Bool(true)));
    let loader = loaders.iter().find(shuffles).or_else(|| loaders.first());
    let Some(loader) = loader else {
        return Fact::Unknown("no DataLoader is seen".into());
    };
    match argument(loader, "batch_size", 1) {
        Some(Value::Int(size)) => match u64::try_from(*size) {
            Ok(size) => Fact::read(size, "DataLoader(batch_size)"),
            Err(_) => Fact::Unknown("the batch is negative".into()),
        },
        Some(Value::Unknown(why)) => Fact::Unknown(why.clone()),
        Some(_) => Fact::Unknown("the batch is made elsewhere".into()),
        None => Fact::default_of(1, "DataLoader's batch_size"),
    }
}

fn length(calls: &Calls) -> Fact<u64> {
    let of = |call: &Call| {
        let keys = calls.keys(call);
        [
            "max_length",
            "max_seq_length",
            "max_seq_len",
            "seq_len",
            "block_size",
            "context_length",
        ]
        .iter()
        .fold(Fact::Unsaid, |fact: Fact<u64>, key| {
            fact.or(keys.whole(key))
        })
    };
    let trains = |call: &&Call| !last(&call.path).starts_with("generate");
    calls
        .all()
        .filter(trains)
        .map(of)
        .find(Fact::is_known)
        .unwrap_or_default()
        .or(constant(calls))
}

/// A constant of the script that is named as the length of its sequences.
fn constant(calls: &Calls) -> Fact<u64> {
    const NAMES: &[&str] = &[
        "max_length",
        "max_seq_length",
        "max_seq_len",
        "seq_len",
        "sequence_length",
        "block_size",
        "context_length",
    ];
    let names = calls.module.names.iter();
    let mut lengths = names.filter_map(|(name, value)| match value {
        Value::Int(length) if NAMES.contains(&name.to_ascii_lowercase().as_str()) => {
            Some(Fact::read(u64::try_from(*length).ok()?, name.clone()))
        }
        _ => None,
    });
    lengths.next().unwrap_or_default()
}

/// Constants that are named as gradient accumulation.
fn accumulation(calls: &Calls) -> Fact<u64> {
    const NAMES: &[&str] = &[
        "gradient_accumulation_steps",
        "accumulation_steps",
        "grad_accum_steps",
        "grad_accum",
        "accum_steps",
        "accumulate_grad_batches",
    ];
    let steps = |(name, value): &(String, Value)| {
        let own = NAMES.contains(&name.to_ascii_lowercase().as_str());
        match value {
            Value::Int(value) if own => Some(Fact::read(u64::try_from(*value).ok()?, name.clone())),
            _ => None,
        }
    };
    let by_accelerate = calls
        .last(&["Accelerator"])
        .map(|call| calls.keys(call).whole("gradient_accumulation_steps"))
        .unwrap_or_default();
    let named = calls
        .module
        .names
        .iter()
        .find_map(steps)
        .unwrap_or_default();
    by_accelerate
        .or(named)
        .or_follows(1, "each batch is a step")
}

fn numbers(calls: &Calls, text: &str, facts: &mut Facts) {
    let accelerate = calls.last(&["Accelerator"]).map(|call| calls.keys(call));
    let mixed = accelerate
        .map(|keys| keys.text("mixed_precision"))
        .unwrap_or_default();
    let autocast = calls.all().find(|call| last(&call.path) == "autocast");
    let half = |name: &str| match name {
        "bf16" | "bfloat16" => Some(Compute::Bf16Autocast),
        "fp16" | "float16" | "half" => Some(Compute::Fp16Autocast),
        _ => None,
    };
    facts.compute = mixed.and_then(|name| half(name).or((name == "no").then_some(Compute::Fp32)));
    if facts.compute.is_unsaid()
        && let Some(call) = autocast
    {
        let dtype = argument(call, "dtype", 1);
        let named = match dtype {
            Some(Value::Name(name)) => half(last(name)),
            // On CUDA autocast's own type is fp16.
            _ => Some(Compute::Fp16Autocast),
        };
        facts.compute = named.map_or(Fact::Unsaid, |compute| Fact::read(compute, "autocast"));
    }
    let weights = facts.weights.value().copied();
    facts.compute = std::mem::take(&mut facts.compute).or(match weights {
        Some(Weights::Bf16) => Fact::follows(Compute::Bf16, "loaded in bf16"),
        Some(Weights::Fp16) => Fact::follows(Compute::Fp16, "loaded in fp16"),
        _ if text.contains("bfloat16") && text.contains(".to(") => Fact::Unsaid,
        _ => Fact::follows(Compute::Fp32, "no autocast"),
    });
    facts.weights =
        std::mem::take(&mut facts.weights).or_follows(Weights::Fp32, "no other type is asked for");
}

/// Wrappers that the script applies itself.
fn spread(calls: &Calls, facts: &mut Facts) {
    let known = [
        ("fully_shard", DataParallel::Fsdp2),
        ("FullyShardedDataParallel", DataParallel::Fsdp1),
        ("FSDP", DataParallel::Fsdp1),
        ("DistributedDataParallel", DataParallel::Ddp),
        ("DDP", DataParallel::Ddp),
    ];
    let found = known
        .iter()
        .find(|(name, _)| calls.all().any(|call| last(&call.path) == *name));
    if let Some((name, strategy)) = found {
        facts.strategy = Fact::read((*strategy).into(), *name);
    }
}
