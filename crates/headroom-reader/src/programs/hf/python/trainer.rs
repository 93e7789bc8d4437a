//! The trainer that a script builds, and what its version does by default.

use headroom_catalog as catalog;
use headroom_scripts::Beside;
use headroom_scripts::python::{Call, Value};

use super::adapter;
use super::calls::{Calls, argument, ends_with, last};
use super::classes::{CLASSES, CONFIGURATIONS, Class};
use super::model::Model;
use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::names;
use crate::programs::hf::{arguments, precision};
use crate::programs::launched;
use crate::words::{Checkpointing, Compute, DataParallel, Offload, Task, Trained, Weights};

/// A version, as far as something pins it.
type Version = Option<(u32, u32)>;

pub struct Trainer<'a> {
    call: &'a Call,
    class: &'static Class,
    config: Option<&'a Call>,
}

impl<'a> Trainer<'a> {
    pub fn find(calls: &Calls<'a>) -> Option<Self> {
        // Lightning's `Trainer` is another one.
        let own = |call: &&&Call| {
            !call.path.starts_with("lightning") && !call.path.starts_with("pytorch_lightning")
        };
        let all: Vec<&'a Call> = calls.all().collect();
        let (call, class) = all.iter().rev().filter(own).find_map(|call| {
            let name = last(&call.path);
            let class = CLASSES.iter().find(|class| class.name == name);
            // A subclass of the script's own, such as `RewardTrainer(Trainer)` or `WeightedTrainer`.
            let own = CLASSES
                .iter()
                .rev()
                .find(|class| name.ends_with(class.name) && name.len() > class.name.len());
            Some((*call, class.or(own)?))
        })?;
        let config = argument(call, "args", 1).and_then(|value| calls.of(value));
        let config = config.filter(|config| CONFIGURATIONS.contains(&last(&config.path)));
        let config = config.or_else(|| calls.last(CONFIGURATIONS));
        Some(Self {
            call,
            class,
            config,
        })
    }

    /// The configuration's arguments, and over them those that older trainers took themselves.
    pub fn arguments(&self, calls: &Calls) -> Keys {
        let mut keys = self
            .config
            .map_or_else(Keys::default, |config| calls.keys(config));
        let own = calls.keys(self.call);
        for key in [
            "max_seq_length",
            "max_length",
            "packing",
            "max_prompt_length",
            "dataset_text_field",
        ] {
            if let Some(value) = own.peek(key) {
                keys.set(key, value.clone());
            } else if let Fact::Unknown(why) = own.text(key) {
                keys.set_unknown(key, why);
            }
        }
        keys
    }

    pub fn facts(&self, calls: &Calls<'a>, beside: &dyn Beside) -> Facts {
        let keys = self.arguments(calls);
        let unsloth = calls.imports("unsloth");
        let trainer = if unsloth {
            "unsloth"
        } else if self.class.trl {
            "trl"
        } else {
            "transformers"
        };
        let mut facts = Facts::of(trainer);
        // Trainers took it themselves until TRL 0.12.
        let of_config = |config| argument(config, "model_init_kwargs", usize::MAX);
        let init = self.config.and_then(of_config);
        let init = init.or_else(|| argument(self.call, "model_init_kwargs", usize::MAX));
        let mut model = Model::of(calls, argument(self.call, "model", 0), init);
        if model.name.is_unsaid() {
            // `model_init=function`.
            model = Model::of(calls, argument(self.call, "model_init", usize::MAX), None);
        }
        facts.model = std::mem::take(&mut model.name);
        if facts.model.is_unsaid() {
            facts.model = Fact::Unknown("the model is made elsewhere".into());
        }
        facts.task = match self.class.task {
            Some(task) => Fact::read(task, last(&self.call.path).to_string()),
            None => match model.task() {
                Some(task) => Fact::read(task, last(&model.class).to_string()),
                None if model.class.contains("Causal") || model.class.contains("LMHead") => {
                    Self::causal(calls)
                }
                None => Fact::follows(Task::Sft, "its Trainer"),
            },
        };
        if last(&self.call.path) == "RewardTrainer" {
            facts.task = Fact::read(Task::Reward, "RewardTrainer");
        }
        facts.weights = std::mem::take(&mut model.weights);
        if facts.weights.is_unsaid() {
            let by_name = facts
                .model
                .value()
                .and_then(|model| crate::names::named(model).weights);
            if let Some(weights) = by_name {
                facts.weights = Fact::follows(weights, "the checkpoint's name");
            }
        }
        facts.attention = precision::attention(&model.keys);
        adapter::apply(
            calls,
            argument(self.call, "peft_config", usize::MAX),
            model.wrapped,
            &mut facts,
        );
        arguments::apply(&keys, &mut facts);
        arguments::sequence(&keys, &mut facts);
        facts.samples = keys.whole("num_generations");
        Self::checkpointing(calls, &model, &mut facts);
        Self::frozen(calls, &mut facts);
        launched::deepspeed(&keys, beside, &mut facts);
        launched::fsdp(&keys, &mut facts);
        if unsloth {
            unsloth_model(calls, &model, &mut facts);
        }
        Self::lengths(calls, &model, &mut facts);
        facts
    }

    /// A language model in `Trainer` is pre-trained where its texts are joined to blocks, else it is fine-tuned.
    fn causal(calls: &Calls) -> Fact<Task> {
        let scratch = calls.any("from_config")
            || calls
                .all()
                .any(|call| last(&call.path).ends_with("LMHeadModel"));
        if scratch {
            Fact::follows(Task::Pretraining, "a model from a configuration")
        } else {
            Fact::follows(Task::Sft, "a causal language model in Trainer")
        }
    }

    fn checkpointing(calls: &Calls, model: &Model, facts: &mut Facts) {
        if facts.checkpointing.value() == Some(&Checkpointing::On) {
            return;
        }
        let enabled = calls
            .all()
            .any(|call| call.path.ends_with("gradient_checkpointing_enable"));
        if enabled {
            facts.checkpointing = Fact::read(Checkpointing::On, "gradient_checkpointing_enable()");
        } else if model.prepared == Some(true) {
            facts.checkpointing = Fact::follows(
                Checkpointing::On,
                "prepare_model_for_kbit_training turns it on",
            );
        }
        // Unsloth's `get_peft_model(use_gradient_checkpointing="unsloth")`.
        if let Some(wrapped) = model.wrapped {
            let keys = calls.keys(wrapped);
            let given = keys.text("use_gradient_checkpointing");
            match given.value().map(String::as_str) {
                Some("unsloth") => {
                    facts.checkpointing =
                        Fact::read(Checkpointing::On, "use_gradient_checkpointing");
                }
                Some(_) => {
                    if let Some(on) = keys.switch("use_gradient_checkpointing").value() {
                        let state = if *on {
                            Checkpointing::On
                        } else {
                            Checkpointing::Off
                        };
                        facts.checkpointing = Fact::read(state, "use_gradient_checkpointing");
                    }
                }
                None => {}
            }
        }
    }

    /// `param.requires_grad = False` somewhere, without adapters.
    fn frozen(calls: &Calls, facts: &mut Facts) {
        if facts.trained.is_known() || facts.adapter.value() != Some(&None) {
            return;
        }
        let written = |(name, value): &&(String, Value)| {
            name.ends_with("requires_grad") && matches!(value, Value::Bool(false))
        };
        facts.trained = if calls.module.assigned.iter().any(|pair| written(&pair)) {
            let thawed: Vec<String> = calls
                .module
                .assigned
                .iter()
                .filter(|(name, value)| {
                    name.ends_with("requires_grad") && matches!(value, Value::Bool(true))
                })
                .map(|(name, _)| name.trim_end_matches(".requires_grad").to_string())
                .collect();
            let words = if thawed.is_empty() {
                "a part of its weights".into()
            } else {
                thawed.join(", ")
            };
            Fact::read(Trained::Part(words), "requires_grad = False")
        } else {
            Fact::follows(Trained::All, "nothing is frozen")
        };
    }

    /// The length that tokenisation cuts to, where the trainer's own arguments name none.
    fn lengths(calls: &Calls, model: &Model, facts: &mut Facts) {
        if !facts.sequence.is_unsaid() {
            return;
        }
        let of = |call: &Call| {
            let keys = calls.keys(call);
            keys.whole("max_length")
                .or(keys.whole("max_seq_length"))
                .or(keys.whole("max_seq_len"))
        };
        let loader = model.keys.whole("max_seq_length");
        // What is generated is no training.
        let trains = |call: &&Call| !last(&call.path).starts_with("generate");
        let mut cut = calls.all().filter(trains).map(of);
        let cut = cut.find(Fact::is_known).unwrap_or_default();
        let tokenizer = calls
            .all()
            .rev()
            .map(|call| calls.keys(call).whole("model_max_length"))
            .find(Fact::is_known)
            .unwrap_or_default();
        // `model.max_seq_length = 256`, which Sentence Transformers read.
        let assigned = calls.module.assigned.iter().rev();
        let assigned = assigned
            .filter(|(name, _)| name.ends_with(".max_seq_length"))
            .find_map(|(_, value)| match value {
                Value::Int(length) => u64::try_from(*length).ok(),
                _ => None,
            });
        let assigned = assigned.map_or(Fact::Unsaid, |length| Fact::read(length, "max_seq_length"));
        facts.sequence = loader
            .or(assigned)
            .or(cut)
            .or(constant(calls))
            .or(tokenizer);
    }

    /// One `python` process, where no launcher is given: the script's own files may still name an engine.
    pub fn alone(facts: &mut Facts) {
        if facts.strategy.is_unsaid() {
            facts.strategy =
                Fact::follows(DataParallel::None.into(), "a script without a launcher");
            facts.gpus =
                std::mem::take(&mut facts.gpus).or_follows(1, "a script without a launcher");
        }
        facts.offload =
            std::mem::take(&mut facts.offload).or_follows(Offload::None, "nothing offloads");
    }

    fn version(calls: &Calls, package: &str) -> Version {
        let pins = calls.module.pins.iter().rev();
        let mut own = pins.filter(|(name, _)| name == package);
        let (_, version) = own.next()?;
        let mut parts = version.split('.').map(|part| part.parse().ok());
        Some((parts.next()??, parts.next().flatten().unwrap_or(0)))
    }

    /// Defaults of its version for what is still open.
    pub fn settle(&self, calls: &Calls, facts: &mut Facts) {
        use std::mem::take;
        if self.class.trl && facts.trainer.value() != Some(&"unsloth") {
            self.trl_defaults(calls, facts);
        }
        if facts.trainer.value() == Some(&"unsloth") {
            facts.compute = take(&mut facts.compute)
                .or_default(Compute::Bf16Autocast, "Unsloth: bf16 where the GPU has it");
        }
        limit(facts);
        if facts.task.value() == Some(&Task::Contrastive) && facts.sequence.is_unsaid() {
            facts.sequence = Fact::default_of(512, "the encoder's own max_seq_length");
        }
        facts.optimizer =
            take(&mut facts.optimizer).or_default("adamw".into(), "transformers' optim");
        arguments::defaults(facts);
        let loaded = facts.weights.value().copied();
        if facts.compute.is_unsaid() {
            // Without mixed precision it computes in what it was loaded as.
            facts.compute = match loaded {
                Some(Weights::Bf16) => {
                    Fact::follows(Compute::Bf16, "loaded in bf16, without mixed precision")
                }
                Some(Weights::Fp16) => {
                    Fact::follows(Compute::Fp16, "loaded in fp16, without mixed precision")
                }
                _ => Fact::default_of(Compute::Fp32, "transformers: neither bf16 nor fp16"),
            };
        }
        let by_engine = facts
            .strategy
            .value()
            .is_some_and(|known| known.data >= DataParallel::Zero0);
        if by_engine {
            precision::settle(facts, "DeepSpeed");
        }
        if facts.weights.is_unsaid() {
            facts.weights = Fact::default_of(Weights::Fp32, "from_pretrained without a dtype");
        }
    }

    /// Defaults of the TRL that a script is written for.
    fn trl_defaults(&self, calls: &Calls, facts: &mut Facts) {
        let pinned = Self::version(calls, "trl");
        let own = calls.keys(self.call);
        // Arguments that the trainer itself took until 0.12.
        let old = [
            "max_seq_length",
            "dataset_text_field",
            "packing",
            "tokenizer",
            "formatting_func",
            "dataset_batch_size",
        ]
        .iter()
        .filter(|key| own.has(key) || own.text(key) != Fact::Unsaid)
        .count();
        let by_config = self
            .config
            .is_some_and(|config| ends_with(&config.path, "TrainingArguments"));
        let old = pinned.is_none() && (old > 0 || by_config);
        let version = pinned.unwrap_or(if old { (0, 8) } else { (1, 0) });
        arguments::of_trl(version, !by_config, facts);
    }
}

/// What truncation cuts to where no length is given: as many tokens as an encoder has positions.
fn limit(facts: &mut Facts) {
    let encodes = matches!(
        facts.task.value(),
        Some(
            Task::Seq2Seq
                | Task::Classification
                | Task::TokenClassification
                | Task::QuestionAnswering
                | Task::MaskedLm
                | Task::Regression
        )
    );
    let (true, false, Some(model)) = (encodes, facts.sequence.is_known(), facts.model.value())
    else {
        return;
    };
    let entry = names::named(model).catalogue.and_then(catalog::model);
    let positions = entry.and_then(catalog::ModelEntry::longest);
    // T5 has no positions; its tokenizer cuts at 512.
    let positions = positions.or_else(|| model.contains("t5").then_some(512));
    if let Some(positions) = positions.filter(|positions| (1..=1024).contains(positions)) {
        facts.sequence = Fact::default_of(positions, "the tokenizer's limit");
    }
}

/// A constant of the module that is named as a length: texts are cut by slices of it.
fn constant(calls: &Calls) -> Fact<u64> {
    const NAMES: &[&str] = &[
        "max_length",
        "max_seq_length",
        "max_seq_len",
        "max_len",
        "cutoff_len",
        "block_size",
        "context_length",
        "seq_length",
        "seq_len",
        "sequence_length",
    ];
    let length = |(name, value): &(String, Value)| {
        let own = NAMES.contains(&name.to_ascii_lowercase().as_str());
        match value {
            Value::Int(value) if own => Some(Fact::read(u64::try_from(*value).ok()?, name.clone())),
            _ => None,
        }
    };
    calls
        .module
        .names
        .iter()
        .find_map(length)
        .unwrap_or_default()
}

/// What Unsloth's loader decides.
fn unsloth_model(calls: &Calls, model: &Model, facts: &mut Facts) {
    use std::mem::take;
    let full = model.keys.switch("full_finetuning").value() == Some(&true);
    let four_bits = model
        .keys
        .switch("load_in_4bit")
        .value()
        .copied()
        .unwrap_or(!full);
    if four_bits && !matches!(facts.weights.value(), Some(Weights::Int8)) {
        facts.weights = Fact::default_of(Weights::Nf4, "Unsloth's load_in_4bit");
        facts.double_quantised = Fact::default_of(true, "Unsloth's own quantisation");
    }
    facts.weights = take(&mut facts.weights).or_default(Weights::Bf16, "Unsloth's dtype");
    if facts.adapter.value().is_some_and(Option::is_some) && four_bits {
        facts.adapter = Fact::follows(Some(crate::words::Adapter::Qlora), "load_in_4bit");
    }
    let wrapped = model.wrapped.map(|call| calls.keys(call));
    let given = wrapped.is_some_and(|keys| keys.has("use_gradient_checkpointing"));
    if !given && model.wrapped.is_some() {
        facts.checkpointing =
            Fact::default_of(Checkpointing::On, "Unsloth's use_gradient_checkpointing");
    }
    facts.sequence = take(&mut facts.sequence)
        .or(model.keys.whole("max_seq_length"))
        .or_default(2048, "Unsloth's max_seq_length");
}
