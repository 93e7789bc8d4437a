//! XTuner: configurations in Python on MMEngine, and `xtuner train CONFIG --flags`. Defaults are those of
//! `xtuner/model/sft.py` and `xtuner/tools/train.py`.

use headroom_scripts::python::evaluate;

use super::launched;
use super::mmengine::config::Config;
use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::parts::DeepSpeed;
use crate::program::{Form, Program, Source};
use crate::words::{
    Adapter, Attention, Checkpointing, Compute, DataParallel, Offload, Strategy, Task, Trained,
    Weights,
};

pub const PROGRAM: Program = Program {
    id: "xtuner",
    name: "XTuner",
    read,
};

const DEFAULT: &str = "XTuner";

fn read(source: &Source) -> Option<Facts> {
    match &source.form {
        Form::Python { module, .. } => {
            let imported = module.imports.iter().any(|name| name.starts_with("xtuner"));
            if !imported || !module.names.iter().any(|(name, _)| name == "model") {
                return None;
            }
            let config = Config::of(module, source.text, source.beside);
            let mut facts = facts(&config.keys);
            finish(&mut facts);
            Some(facts)
        }
        Form::Command { launch, flags } => {
            if launch.program.text.rsplit('/').next()? != "xtuner" {
                return None;
            }
            let mut words = launch
                .arguments
                .iter()
                .filter(|word| !word.text.starts_with('-'));
            let mode = words.next()?;
            if mode.text != "train" {
                return Some(Facts::refuse(format!(
                    "xtuner {} does not train",
                    mode.text
                )));
            }
            let name = words
                .next()
                .map(|word| word.text.clone())
                .unwrap_or_default();
            let text = source
                .beside
                .text(&name)
                .or_else(|| source.beside.text(&format!("{name}.py")));
            let mut facts = match text {
                Some(text) => {
                    let module = evaluate(&text, &[], source.beside);
                    facts(&Config::of(&module, &text, source.beside).keys)
                }
                None => named(&name),
            };
            if let Some(config) = flags.text("deepspeed").value() {
                DeepSpeed::at(config, source.beside).apply(&mut facts);
            }
            launched::counts(launch, &mut facts);
            finish(&mut facts);
            Some(facts)
        }
        Form::Document(_) => None,
    }
}

/// The launcher is the command's; without DeepSpeed each GPU has a copy.
fn finish(facts: &mut Facts) {
    if facts.strategy.is_unsaid() {
        facts.strategy = Fact::default_of(Strategy::from(DataParallel::Ddp), DEFAULT);
    }
    if facts.offload.is_unsaid() {
        facts.offload = Fact::default_of(Offload::None, DEFAULT);
    }
}

/// A configuration that XTuner ships: its name says the model, the method and the data.
fn named(name: &str) -> Facts {
    let mut facts = Facts::of(PROGRAM.id);
    let why = format!("it is in {name}");
    facts.model = Fact::Unknown(why.clone());
    facts.micro_batch = Fact::Unknown(why.clone());
    facts.sequence = Fact::Unknown(why.clone());
    let quantized = name.contains("qlora");
    if quantized || name.contains("lora") {
        let adapter = if quantized {
            Adapter::Qlora
        } else {
            Adapter::Lora
        };
        facts.adapter = Fact::follows(Some(adapter), why);
        facts.trained = Fact::follows(Trained::Adapters, "the configuration's name");
    }
    facts
}

fn facts(keys: &Keys) -> Facts {
    let mut facts = Facts::of(PROGRAM.id);
    let class = |path: &str| {
        let name = keys.text(path);
        name.value()
            .map(|name| name.rsplit('.').next().unwrap_or(name).to_string())
    };
    let kind = class("model.type").unwrap_or_default();
    let task = match kind.as_str() {
        "DPO" => Task::Dpo,
        "ORPO" => Task::Orpo,
        "RewardModel" => Task::Reward,
        _ => Task::Sft,
    };
    facts.task = Fact::follows(task, "model.type");
    facts.model = keys
        .text("model.llm.pretrained_model_name_or_path")
        .or(keys.text("model.model_path"))
        .or(keys.text("llm_name_or_path"))
        .or(keys.text("pretrained_model_name_or_path"));
    facts.micro_batch = keys
        .whole("train_dataloader.batch_size")
        .or(keys.whole("batch_size"));
    facts.accumulation = keys
        .whole("optim_wrapper.accumulative_counts")
        .or_default(1, DEFAULT);
    facts.sequence = keys
        .whole("train_dataloader.dataset.max_length")
        .or(keys.whole("train_dataloader.dataset.max_packed_length"))
        .or(keys.whole("max_length"))
        .or(keys.whole("max_position_embeddings"));
    let parallel = keys.whole("sequence_parallel_size");
    if let Some(parts) = parallel.value().filter(|parts| **parts > 1) {
        let mut strategy = Strategy::from(DataParallel::Ddp);
        strategy.cp = *parts;
        facts.strategy = Fact::read(strategy, "sequence_parallel_size");
    }
    facts.packing = keys
        .switch("train_dataloader.dataset.pack_to_max_length")
        .or(keys.switch("pack_to_max_length"))
        .or_default(false, DEFAULT);
    facts.optimizer = match class("optim_wrapper.optimizer.type") {
        Some(name) => Fact::read(name.to_ascii_lowercase(), "optim_wrapper.optimizer.type"),
        None => Fact::Unsaid,
    };
    facts.checkpointing = keys
        .switch("model.use_activation_checkpointing")
        .map(|on| {
            if on {
                Checkpointing::On
            } else {
                Checkpointing::Off
            }
        })
        .or_default(Checkpointing::On, DEFAULT);
    facts.liger = Fact::default_of(false, DEFAULT);
    let validated = keys.get("val_dataloader").is_some() && keys.get("val_cfg").is_some();
    facts.evaluation = Fact::read(validated, "val_dataloader");
    precision(keys, class("optim_wrapper.type").as_deref(), &mut facts);
    adapter(keys, &mut facts);
    if keys.has("model.visual_encoder") || kind.starts_with("InternVL") {
        facts
            .not_modelled
            .push("model.visual_encoder: an image encoder beside the model".into());
    }
    facts
}

fn precision(keys: &Keys, wrapper: Option<&str>, facts: &mut Facts) {
    let on = |key: &str| {
        keys.switch(&format!("model.llm.quantization_config.{key}"))
            .value()
            == Some(&true)
    };
    let dtype = keys
        .text("model.llm.torch_dtype")
        .or(keys.text("model.llm.dtype"));
    let plain = dtype.and_then(|name| super::diffusion::weights(name));
    let kind = keys.text("model.llm.quantization_config.bnb_4bit_quant_type");
    let whole = keys.switch("model.quantization_llm").value() == Some(&true);
    facts.weights = if whole {
        Fact::read(Weights::Nf4, "model.quantization_llm")
    } else if on("load_in_4bit") {
        match kind.value().map(String::as_str) {
            Some("nf4") => Fact::read(Weights::Nf4, "quantization_config"),
            _ => Fact::read(Weights::Fp4, "quantization_config"),
        }
    } else if on("load_in_8bit") {
        Fact::read(Weights::Int8, "quantization_config")
    } else {
        plain.clone()
    };
    let amp = wrapper.is_some_and(|name| name.starts_with("Amp"));
    let name = keys.text("optim_wrapper.dtype");
    facts.compute = match (amp, name.value().map(String::as_str)) {
        (true, Some("bfloat16" | "torch.bfloat16")) => {
            Fact::read(Compute::Bf16Autocast, "optim_wrapper.dtype")
        }
        (true, _) => Fact::read(Compute::Fp16Autocast, "AmpOptimWrapper"),
        (false, _) => plain.and_then(|weights| super::diffusion::pure(*weights)),
    };
    let attention = keys.text("model.llm.attn_implementation");
    facts.attention = attention.and_then(|name| match name.as_str() {
        "flash_attention_2" => Some(Attention::Flash),
        "sdpa" => Some(Attention::Sdpa),
        "eager" => Some(Attention::Eager),
        _ => None,
    });
}

fn adapter(keys: &Keys, facts: &mut Facts) {
    let lora = if keys.get("model.lora").is_some() {
        "model.lora"
    } else {
        "model.llm_lora"
    };
    if keys.get(lora).is_none() {
        facts.adapter = Fact::follows(None, "no model.lora");
        let frozen = keys.switch("model.freeze_llm").value() == Some(&true);
        facts.trained = if frozen {
            Fact::read(Trained::Part("the projector".into()), "model.freeze_llm")
        } else if keys.switch("model.freeze_visual_encoder").value() == Some(&true) {
            let words = "language model + projector (vision tower frozen)";
            Fact::read(Trained::Part(words.into()), "model.freeze_visual_encoder")
        } else {
            Fact::follows(Trained::All, "no model.lora")
        };
        return;
    }
    let four = facts.weights.value() == Some(&Weights::Nf4);
    let adapter = if keys.switch(&format!("{lora}.use_dora")).value() == Some(&true) {
        Adapter::Dora
    } else if four {
        Adapter::Qlora
    } else {
        Adapter::Lora
    };
    facts.adapter = Fact::read(Some(adapter), lora);
    // `LoraConfig.r` of PEFT.
    facts.rank = keys
        .whole(&format!("{lora}.r"))
        .or_default(8, "PEFT's LoraConfig");
    facts.targets = keys
        .list(&format!("{lora}.target_modules"))
        .or_default(vec!["all-linear".into()], DEFAULT);
    facts.base_dtype = facts.weights.clone();
    facts.trained = match keys.list(&format!("{lora}.modules_to_save")).value() {
        Some(modules) if !modules.is_empty() => Fact::read(
            Trained::AdaptersAnd(modules.clone()),
            format!("{lora}.modules_to_save"),
        ),
        // A projector between image and text is always trained.
        _ if keys.has("model.visual_encoder") => {
            Fact::read(Trained::AdaptersAnd(vec!["projector".into()]), lora)
        }
        _ => Fact::read(Trained::Adapters, lora),
    };
}
