//! The adapters that a script adds: PEFT's configuration, or Unsloth's arguments.

use headroom_scripts::python::{Call, Value};

use super::calls::{Calls, argument, ends_with, last};
use crate::fact::Fact;
use crate::facts::{Ask, Facts};
use crate::programs::hf::adapters;
use crate::words::{Adapter, Trained};

/// The default of `LoraConfig.r` and of Unsloth's `get_peft_model`.
const PEFT_RANK: u64 = 8;
const UNSLOTH_RANK: u64 = 16;

/// Fills in adapters, or that there are none. `config` is what the trainer gets, `wrapped` the call that wraps the model.
pub fn apply(calls: &Calls, config: Option<&Value>, wrapped: Option<&Call>, facts: &mut Facts) {
    let given = config.filter(|value| !matches!(value, Value::None));
    if let Some(call) = given.and_then(|value| calls.of(value)) {
        return of_config(calls, call, facts);
    }
    if let Some(Value::Unknown(why)) = given {
        facts.adapter = Fact::Unknown(why.clone());
        return;
    }
    let Some(wrapped) = wrapped else {
        facts.adapter = Fact::follows(None, "nothing adds adapters");
        return;
    };
    if ends_with(&wrapped.path, "from_pretrained") {
        facts.adapter = Fact::read(Some(Adapter::Lora), "PeftModel.from_pretrained");
        facts.trained = Fact::follows(Trained::Adapters, "PeftModel.from_pretrained");
        facts.ask(
            Ask::Adapter,
            "an adapter is loaded from a folder; its rank and targets stand there",
        );
        return;
    }
    match argument(wrapped, "peft_config", 1).and_then(|value| calls.of(value)) {
        Some(config) => of_config(calls, config, facts),
        // Unsloth's takes them as its own arguments.
        None => of_arguments(calls, wrapped, UNSLOTH_RANK, "Unsloth's r", facts),
    }
}

fn of_config(calls: &Calls, config: &Call, facts: &mut Facts) {
    let kind = match last(&config.path) {
        "AdaLoraConfig" => Some(Adapter::Adalora),
        "IA3Config" => Some(Adapter::Ia3),
        "OFTConfig" => Some(Adapter::Oft),
        "BOFTConfig" => Some(Adapter::Boft),
        "HRAConfig" => Some(Adapter::Hra),
        "LoKrConfig" => Some(Adapter::Lokr),
        "LoHaConfig" => Some(Adapter::Loha),
        "VeraConfig" => Some(Adapter::Vera),
        "PrefixTuningConfig" => Some(Adapter::Prefix),
        "PromptTuningConfig" => Some(Adapter::PromptTuning),
        // TRL's `get_peft_config(model_args)`: those of a `ModelConfig`.
        "get_peft_config" => {
            let model = argument(config, "model_args", 0).and_then(|value| calls.of(value));
            return match model {
                Some(model) => of_model_config(calls, model, facts),
                None => facts.adapter = Fact::Unknown("get_peft_config of what is not here".into()),
            };
        }
        _ => None,
    };
    of_arguments(calls, config, PEFT_RANK, "PEFT's r", facts);
    if let Some(kind) = kind {
        facts.adapter = Fact::read(Some(kind), last(&config.path).to_string());
        if kind == Adapter::Adalora {
            let keys = calls.keys(config);
            facts.rank = keys.whole("init_r").or_default(12, "PEFT's init_r");
        }
    }
}

fn of_model_config(calls: &Calls, model: &Call, facts: &mut Facts) {
    let keys = calls.keys(model);
    if keys.switch("use_peft").value() != Some(&true) {
        facts.adapter = Fact::follows(None, "ModelConfig without use_peft");
        return;
    }
    adapters::lora(&keys, facts, &["lora_r"], 16, "TRL's lora_r");
    facts.trained = Fact::follows(Trained::Adapters, "use_peft");
}

fn of_arguments(calls: &Calls, call: &Call, rank: u64, of: &'static str, facts: &mut Facts) {
    let keys = calls.keys(call);
    adapters::lora(&keys, facts, &["r"], rank, of);
    if keys.switch("use_dora").value() == Some(&true) {
        facts.adapter = Fact::read(Some(Adapter::Dora), "use_dora");
    }
    let saved = keys.list("modules_to_save");
    facts.trained = match saved.value() {
        Some(modules) if !modules.is_empty() => {
            Fact::read(Trained::AdaptersAnd(modules.clone()), "modules_to_save")
        }
        _ => Fact::follows(Trained::Adapters, "adapters on a frozen base"),
    };
}
