//! Facts as a draft of a scenario: each mapped to its settings in one place, whatever the program.

use headroom_catalog::{Class, Gpu, ModelCategory, ModelEntry, Vendor, gpus, model};
use headroom_scenario::resolve::Origin;
use headroom_scenario::{Draft, settings};

use super::fact::{self, Fact};
use super::facts::Facts;
use super::optimizers;
use super::words::{
    Adapter, Attention, Checkpointing, Compute, DataParallel, Offload, Task, Trained, Weights,
};

/// A draft, and what it cannot say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drafted {
    pub draft: Draft,
    /// Facts that no setting expresses, in words.
    pub left: Vec<String>,
}

/// The draft of what was read, over what is said already.
pub fn draft(facts: &Facts, over: Draft) -> Drafted {
    let mut writer = Writer {
        tool: facts.trainer.value().copied().unwrap_or("sentence"),
        drafted: Drafted {
            draft: over,
            left: Vec::new(),
        },
        brings_loss: false,
    };
    writer.model(facts);
    writer.image(facts);
    writer.machine(facts);
    writer.batch(facts);
    writer.task(facts);
    writer.numbers(facts);
    writer.adapters(facts);
    writer.rest(facts);
    writer.loss(facts);
    writer.spread(facts);
    writer
        .drafted
        .left
        .extend(facts.not_modelled.iter().cloned());
    writer.drafted
}

struct Writer {
    tool: &'static str,
    drafted: Drafted,
    /// Whether the task has a loss of its own.
    brings_loss: bool,
}

impl Writer {
    fn set(&mut self, path: &str, text: impl AsRef<str>, origin: &fact::Origin) {
        let Some(setting) = settings::find(path) else {
            return;
        };
        let origin = match origin {
            fact::Origin::Read(key) => Origin::File {
                tool: self.tool,
                key: key.clone(),
            },
            other => Origin::Assumed(other.to_string()),
        };
        self.drafted.draft.read(setting, text.as_ref(), origin);
    }

    fn whole(&mut self, path: &str, fact: &Fact<u64>) {
        if let Fact::Known { value, origin } = fact {
            self.set(path, value.to_string(), origin);
        }
    }

    fn leave(&mut self, what: impl Into<String>) {
        self.drafted.left.push(what.into());
    }

    fn model(&mut self, facts: &Facts) {
        let Fact::Known { origin, .. } = &facts.model else {
            return;
        };
        if let Some(id) = facts.network() {
            self.set("model.id", id, origin);
        } else if let Some(sized) = facts.sized() {
            self.set("model.id", sized.model, origin);
            self.set("model.dims", sized.dims(), origin);
        }
    }

    /// Pixels and frames of a diffusion network; for another, the side of its images, of which it has one: that of a square with as
    /// many pixels.
    fn image(&mut self, facts: &Facts) {
        let (
            Fact::Known {
                value: height,
                origin,
            },
            Some(width),
        ) = (&facts.height, facts.width.value())
        else {
            return;
        };
        let entry = facts.network().and_then(model);
        if let Some(entry) = entry.filter(|entry| is_diffusion(entry)) {
            self.set("data.height", height.to_string(), origin);
            self.set("data.width", width.to_string(), origin);
            if entry.size("frames").is_some() {
                self.whole("data.frames", &facts.frames);
            }
            return;
        }
        let side = ((*height as f64) * (*width as f64)).sqrt().round() as u64;
        let sized =
            entry.is_some_and(|entry| entry.graph.is_empty() && entry.size("img").is_some());
        if sized {
            self.set("model.dims", format!("img={side}"), origin);
        } else {
            self.leave(format!("images of {width} × {height} pixels"));
        }
        if facts.frames.value().is_some_and(|frames| *frames > 1) {
            self.leave("frames of a video");
        }
    }

    fn machine(&mut self, facts: &Facts) {
        const TRAINERS: &[(&str, &str)] = &[
            ("transformers", "transformers"),
            ("trl", "trl"),
            ("axolotl", "axolotl"),
            ("llamafactory", "llama-factory"),
            ("unsloth", "unsloth"),
            ("ms-swift", "ms-swift"),
            ("torchtune", "torchtune"),
            ("torchtitan", "torchtitan"),
            ("lightning", "lightning"),
            ("megatron", "megatron"),
            ("alignment-handbook", "trl"),
            ("open-instruct", "transformers"),
        ];
        if let Fact::Known { value, origin } = &facts.gpu {
            self.set("hardware.gpu", value, origin);
        } else if let Fact::Known { value, origin } = &facts.card_gib {
            self.unnamed_card(*value, origin);
        }
        self.whole("hardware.gpus", &facts.gpus);
        self.whole("hardware.nodes", &facts.nodes);
        if let Fact::Known { value, origin } = &facts.trainer
            && let Some((_, id)) = TRAINERS.iter().find(|(name, _)| name == value)
        {
            self.set("stack.trainer", id, origin);
        }
    }

    /// A card of which the memory alone is said: what the least of consumers' cards with as much shows.
    fn unnamed_card(&mut self, gib: u64, origin: &fact::Origin) {
        let same = gpus()
            .iter()
            .filter(|gpu| u64::from(gpu.memory.marketing_gb) == gib);
        let cuda = same.filter(|gpu| gpu.vendor == Vendor::Nvidia);
        let shown = |gpu: &Gpu| gpu.memory.torch_total.get().map(|mib| mib as u64);
        let consumer = cuda
            .clone()
            .filter(|gpu| gpu.class == Class::Consumer)
            .filter_map(shown)
            .min();
        let mib = consumer
            .or_else(|| cuda.filter_map(shown).min())
            .unwrap_or(gib * 1000);
        self.set("hardware.gpu", format!("{gib} GB"), origin);
        self.set("hardware.memory_mib", mib.to_string(), origin);
    }

    fn batch(&mut self, facts: &Facts) {
        self.whole("data.micro_batch", &facts.micro_batch);
        self.whole("training.accumulation", &facts.accumulation);
        self.whole("data.sequence", &facts.sequence);
        if let Fact::Known { value, origin } = &facts.packing {
            self.set(
                "data.padding_mask",
                if *value { "off" } else { "on" },
                origin,
            );
        }
    }

    fn task(&mut self, facts: &Facts) {
        let Fact::Known { value, origin } = &facts.task else {
            return;
        };
        let category = facts.network().and_then(model).map(|model| model.category);
        let of_text = category.is_some_and(|category| {
            use ModelCategory::{Decoders, Encoders, TextEncoders};
            matches!(category, Decoders | Encoders | TextEncoders)
        });
        // The head of a causal language model alone is fused with its loss.
        let fuses = matches!(self.tool, "trl" | "unsloth" | "sentence")
            && category.is_none_or(|category| category == ModelCategory::Decoders);
        let objective = match value {
            Task::Sft if fuses => "sft",
            Task::Dpo => "dpo",
            Task::Kto => "kto",
            Task::Orpo => "orpo",
            Task::Cpo => "cpo",
            Task::Simpo => "simpo",
            Task::Reward => "reward",
            Task::Grpo => "grpo",
            Task::Rloo => "rloo",
            Task::Ppo => "ppo",
            Task::Distillation => "distillation",
            // The model's own loss.
            Task::Pretraining
            | Task::MaskedLm
            | Task::Diffusion
            | Task::SelfDistillation
            | Task::Seq2Seq
            | Task::Sft
            | Task::Ctc => "pretraining",
            // A network of images has its classes' head and loss.
            Task::Classification if category == Some(ModelCategory::Vision) => "pretraining",
            Task::Classification
            | Task::TokenClassification
            | Task::Regression
            | Task::QuestionAnswering
            | Task::Reranking
            | Task::Contrastive
                if of_text =>
            {
                value.word()
            }
            other => {
                self.leave(format!("task: {other}"));
                return;
            }
        };
        self.set("task.objective", objective, origin);
        self.brings_loss = objective != "pretraining";
        if matches!(value, Task::Grpo | Task::Rloo | Task::Ppo) {
            self.whole("task.prompt", &facts.prompt);
            self.whole("task.completion", &facts.completion);
            self.generations(facts);
            if let Fact::Known {
                value: Some(share),
                origin,
            } = &facts.vllm
            {
                self.set("task.sampler", "vllm", origin);
                self.set("task.vllm_share", share.to_string(), origin);
            }
        }
    }

    /// Completions of a prompt: programs whose micro-batches are rows of any group need no whole groups.
    fn generations(&mut self, facts: &Facts) {
        let whole = |fact: &Fact<u64>| fact.value().copied().unwrap_or(1).max(1);
        let samples = whole(&facts.samples);
        let rows = [&facts.micro_batch, &facts.accumulation, &facts.gpus].map(whole);
        let rows = rows.into_iter().fold(1, u64::saturating_mul);
        let groups = matches!(facts.task.value(), Some(Task::Grpo | Task::Rloo));
        if groups && (facts.micro_batch.is_unsaid() || rows.is_multiple_of(samples)) {
            self.whole("task.generations", &facts.samples);
        } else if groups {
            self.set(
                "task.generations",
                "1",
                &fact::Origin::Follows(format!("{rows} rows are no groups of {samples}")),
            );
        }
    }

    /// The loss of a trainer after pre-training is its task's, by Liger or not.
    fn loss(&mut self, facts: &Facts) {
        const CHUNKED: &[Task] = &[Task::Dpo, Task::Orpo, Task::Cpo, Task::Simpo, Task::Grpo];
        let (true, Some(task)) = (self.brings_loss, facts.task.value()) else {
            return;
        };
        let (liger, by) = match &facts.liger {
            Fact::Known { value, origin } => (*value, origin.clone()),
            _ => (false, fact::Origin::Follows("its own loss".into())),
        };
        if liger && *task == Task::Sft {
            // Its forward takes the place of the fused head.
            let by = fact::Origin::Follows("Liger's forward has the loss".into());
            self.set("task.objective", "pretraining", &by);
            return;
        }
        if liger && CHUNKED.contains(task) {
            self.set("task.head", "liger", &by);
        }
        self.set("training.loss", "library", &by);
    }

    /// Types of weights and operations.
    fn numbers(&mut self, facts: &Facts) {
        if let Fact::Known {
            value: compute,
            origin,
        } = &facts.compute
        {
            let data = facts
                .strategy
                .value()
                .map_or(DataParallel::None, |strategy| strategy.data);
            let precision = precision(facts.weights.value().copied(), *compute, data);
            self.set("training.precision", precision, origin);
            if *compute == Compute::Bf16Fp8 {
                self.set("training.fp8", "on", origin);
            }
        }
        if let Fact::Known { value, origin } = &facts.weights {
            let kind = match value {
                Weights::Nf4 if facts.double_quantised.value() == Some(&true) => "nf4-double",
                Weights::Nf4 => "nf4",
                Weights::Int8 => "int8",
                Weights::GptqInt4 => "gptq",
                Weights::AwqInt4 => "awq",
                Weights::Fp8 => "fp8",
                Weights::Fp32 | Weights::Bf16 | Weights::Fp16 => return,
                other => return self.leave(format!("weights in {other}")),
            };
            self.set("training.quantization", kind, origin);
        }
    }

    fn adapters(&mut self, facts: &Facts) {
        match &facts.adapter {
            Fact::Known {
                value: Some(adapter),
                origin,
            } => {
                self.set("training.lora", "on", origin);
                let method = match adapter {
                    Adapter::Lora | Adapter::Qlora => "lora",
                    Adapter::Dora => "dora",
                    Adapter::Adalora => "adalora",
                    Adapter::Oft => "oft",
                    Adapter::Boft => "boft",
                    Adapter::Ia3 => "ia3",
                    Adapter::Lokr => "lokr",
                    Adapter::Loha => "loha",
                    Adapter::Vera => "vera",
                    Adapter::Prefix => "prefix",
                    other => return self.leave(format!("adapter: {other}")),
                };
                self.set("training.lora.method", method, origin);
                self.whole("training.lora.rank", &facts.rank);
                if let Fact::Known { value, origin } = &facts.targets
                    && value.iter().all(|name| {
                        name.chars()
                            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'))
                    })
                {
                    self.set("training.lora.targets", value.join(","), origin);
                }
                self.diffusion_targets(facts, origin);
                if let Fact::Known {
                    value: Trained::AdaptersAnd(modules),
                    origin,
                } = &facts.trained
                {
                    self.set("training.lora.modules_to_save", modules.join(","), origin);
                }
            }
            Fact::Known {
                value: None,
                origin,
            } => self.set("training.lora", "off", origin),
            _ => {}
        }
        if let Fact::Known {
            value: Trained::Part(words),
            ..
        } = &facts.trained
        {
            self.leave(format!("what is trained: {words}"));
        }
    }

    /// Where nothing says which layers of a diffusion network are adapted: all linear layers of its blocks, as trainers with
    /// files of their own do, or attention's, as diffusers' scripts do.
    fn diffusion_targets(&mut self, facts: &Facts, origin: &fact::Origin) {
        const ATTENTION: &str = "to_q,to_k,to_v,to_out.0";
        const ALL: &str = "to_q,to_k,to_v,to_out.0,add_q_proj,add_k_proj,add_v_proj,to_add_out,net.0.proj,net.2,proj_mlp,\
                           proj_out,to_qkv_mlp_proj,to_out,linear_in,linear_out,w1,w2,w3";
        let diffusion = facts.network().and_then(model).is_some_and(is_diffusion);
        let written = facts
            .targets
            .value()
            .is_some_and(|names| names.iter().all(|name| name != "all-linear"));
        if !diffusion || written {
            return;
        }
        let own = [
            "kohya",
            "musubi",
            "diffusion-pipe",
            "onetrainer",
            "ai-toolkit",
        ];
        let names = if own.iter().any(|name| self.tool.starts_with(name)) {
            ALL
        } else {
            ATTENTION
        };
        self.set("training.lora.targets", names, origin);
    }

    fn rest(&mut self, facts: &Facts) {
        self.whole("training.block_swap", &facts.blocks_swapped);
        if let Fact::Known { value, origin } = &facts.optimizer {
            match optimizers::setting(value) {
                Some(id) => self.set("training.optimizer", id, origin),
                None => self.leave(format!("optimizer: {value}")),
            }
        }
        let mut switch = |path, fact: &Fact<bool>| {
            if let Fact::Known { value, origin } = fact {
                self.set(path, if *value { "on" } else { "off" }, origin);
            }
        };
        switch(
            "training.optimizer_in_backward",
            &facts.optimizer_in_backward,
        );
        switch("training.ema", &facts.ema);
        switch("parallel.sequence_parallel", &facts.sequence_parallel);
        if let Fact::Known { value, origin } = &facts.checkpointing {
            let kind = match value {
                Checkpointing::Off => "none",
                Checkpointing::On => "layers",
                Checkpointing::Selective => "keep-matmuls",
            };
            self.set("training.checkpointing", kind, origin);
        }
        if let Fact::Known { value, origin } = &facts.attention {
            let kind = match value {
                Attention::Eager => "eager",
                Attention::Sdpa | Attention::Xformers | Attention::Flex => "sdpa",
                Attention::Flash => "flash_attention_2",
            };
            self.set("training.attention", kind, origin);
        }
        if let Fact::Known {
            value: true,
            origin,
        } = &facts.liger
        {
            self.set("training.kernels", "liger", origin);
            self.set("training.loss", "liger-linear", origin);
        }
        if let Fact::Known {
            value: true,
            origin,
        } = &facts.compile
        {
            self.set("training.compile", "model", origin);
        }
    }

    fn spread(&mut self, facts: &Facts) {
        let Fact::Known { value, origin } = &facts.strategy else {
            if facts.gpus.value().is_some_and(|gpus| *gpus > 1) {
                let why = "several GPUs, and nothing divides the model";
                self.set(
                    "parallel.strategy",
                    "ddp",
                    &fact::Origin::Follows(why.into()),
                );
            }
            return;
        };
        let strategy = match value.data {
            DataParallel::None => "none",
            DataParallel::Ddp => "ddp",
            // A task's models in DeepSpeed's engine are modelled with its stages only.
            DataParallel::Zero0 if self.brings_loss => "ddp",
            DataParallel::Zero0 => "zero0",
            DataParallel::Fsdp | DataParallel::Fsdp2 => "fsdp2",
            DataParallel::Fsdp1 => "fsdp1",
            DataParallel::Hsdp => "hsdp",
            DataParallel::Zero1 => "zero1",
            DataParallel::Zero2 => "zero2",
            DataParallel::Zero3 => "zero3",
        };
        if self.brings_loss && value.data == DataParallel::Fsdp1 {
            // Its flat parameters around several models are not modelled.
            let why = "FSDP 1 around this task's models is taken as FSDP 2";
            let by = fact::Origin::Follows(why.into());
            self.set("parallel.strategy", "fsdp2", &by);
        } else {
            self.set("parallel.strategy", strategy, origin);
        }
        for (path, size) in [
            ("parallel.tp", value.tp),
            ("parallel.pp", value.pp),
            ("parallel.cp", value.cp),
            ("parallel.ep", value.ep),
        ] {
            if size > 1 {
                self.set(path, size.to_string(), origin);
            }
        }
        if let Fact::Known { value, origin } = &facts.offload {
            let kind = match value {
                Offload::None => "none",
                Offload::Optimizer => "optimizer",
                // Parameters on the host bring their states with them.
                Offload::Parameters | Offload::Both => "parameters",
            };
            self.set("parallel.offload", kind, origin);
        }
    }
}

/// Whether a network has sizes in pixels.
fn is_diffusion(entry: &ModelEntry) -> bool {
    entry.category == ModelCategory::Diffusion && entry.graph.is_empty()
}

/// The setting for a pair of types. Engines that keep an fp32 copy of what they compute in bf16 are mixed precision.
fn precision(weights: Option<Weights>, compute: Compute, data: DataParallel) -> &'static str {
    let half = |weights: Option<Weights>, of: Weights| match weights {
        // The parts of a quantised base that stay are of the type that is computed in.
        Some(
            Weights::Nf4
            | Weights::Fp4
            | Weights::Int8
            | Weights::GptqInt4
            | Weights::AwqInt4
            | Weights::Int4,
        ) => true,
        Some(weights) => weights == of,
        None => false,
    };
    let engine = data >= DataParallel::Zero0;
    match compute {
        // Without autocast, weights compute in their own type.
        Compute::Fp32 if weights == Some(Weights::Bf16) && !engine => "bf16",
        Compute::Fp32 if weights == Some(Weights::Fp16) && !engine => "fp16",
        Compute::Fp32 | Compute::Tf32 => "fp32",
        Compute::Bf16 | Compute::Bf16Fp8 if engine => "amp-bf16",
        Compute::Fp16 if engine => "amp-fp16",
        Compute::Bf16 | Compute::Bf16Fp8 if half(weights, Weights::Bf16) => "bf16",
        Compute::Bf16Autocast if half(weights, Weights::Bf16) => "amp-bf16-on-bf16",
        Compute::Bf16 | Compute::Bf16Fp8 | Compute::Bf16Autocast => "amp-bf16",
        Compute::Fp16 if half(weights, Weights::Fp16) => "fp16",
        Compute::Fp16Autocast if half(weights, Weights::Fp16) => "amp-fp16-on-fp16",
        Compute::Fp16 | Compute::Fp16Autocast => "amp-fp16",
    }
}
