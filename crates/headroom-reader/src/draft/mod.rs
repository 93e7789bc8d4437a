//! Facts as a draft of a scenario: each mapped to its settings in one place, whatever the program.

mod task;
mod weights;

pub use self::weights::adapted_layers;
use headroom_catalog::{Class, Gpu, ModelCategory, ModelEntry, Vendor, gpus, model};
use headroom_scenario::resolve::Origin;
use headroom_scenario::{Draft, settings};

use crate::fact::{self, Fact};
use crate::facts::Facts;
use crate::optimizers;
use crate::words::{Attention, Checkpointing, DataParallel, Offload};

/// A draft, and what it cannot say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drafted {
    pub draft: Draft,
    /// Facts that no setting expresses, in words.
    pub left: Vec<String>,
    /// What a reader of the answer should know.
    pub notes: Vec<String>,
}

/// The draft of what was read, over what is said already.
pub fn draft(facts: &Facts, over: Draft) -> Drafted {
    let mut writer = Writer {
        tool: facts.trainer.value().copied().unwrap_or("sentence"),
        drafted: Drafted {
            draft: over,
            left: Vec::new(),
            notes: Vec::new(),
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
            if let Some(composed) = facts.composed.as_ref().filter(|one| !one.sizes.is_empty()) {
                self.set("model.dims", composed.dims(), origin);
            }
        } else if let Some(sized) = facts.sized() {
            self.set("model.id", sized.model, origin);
            self.set("model.dims", sized.dims(), origin);
        }
    }

    /// Pixels and frames of a diffusion network; for another, the sides of its images, or where it has one the side of a square with as
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
        let oblong = entry.is_some_and(|entry| entry.size("img_w").is_some());
        if sized {
            let pixels = if oblong {
                format!("img={height},img_w={width}")
            } else {
                format!("img={side}")
            };
            let composed = facts.composed.as_ref().filter(|one| !one.sizes.is_empty());
            let dims = composed.map_or_else(
                || pixels.clone(),
                |composed| format!("{},{pixels}", composed.dims()),
            );
            self.set("model.dims", dims, origin);
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
            ("verl", "verl"),
            ("alignment-handbook", "trl"),
            ("open-instruct", "transformers"),
        ];
        if let Fact::Known { value, origin } = &facts.gpu {
            self.set("hardware.gpu", value, origin);
        } else if let Fact::Known { value, origin } = &facts.card_gib {
            self.unnamed_card(*value, origin);
        }
        self.gpus(facts);
        if let Fact::Known { value, origin } = &facts.trainer
            && let Some((_, id)) = TRAINERS.iter().find(|(name, _)| name == value)
        {
            self.set("stack.trainer", id, origin);
        }
    }

    /// The GPUs that train: what is on others is another question.
    fn gpus(&mut self, facts: &Facts) {
        let all = facts.gpus.value().copied();
        let Some(trained_on) = facts.trained_on.value().filter(|own| Some(**own) < all) else {
            self.whole("hardware.gpus", &facts.gpus);
            self.whole("hardware.nodes", &facts.nodes);
            return;
        };
        self.whole("hardware.gpus", &facts.trained_on);
        // Machines of as many GPUs as all of them have.
        let machines = facts.nodes.value().zip(all);
        let each = machines.map_or(8, |(nodes, all)| (all / (*nodes).max(1)).max(1));
        if *trained_on > each && trained_on.is_multiple_of(each) {
            let by = fact::Origin::Follows(format!("{each} GPUs in a machine"));
            self.set("hardware.nodes", (trained_on / each).to_string(), &by);
        }
        let others = all.unwrap_or(0).saturating_sub(*trained_on);
        self.drafted.notes.push(format!(
            "the estimate is of the {trained_on} GPUs that train; {others} others generate, or hold models that judge"
        ));
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

    fn rest(&mut self, facts: &Facts) {
        if facts
            .blocks_swapped
            .value()
            .is_some_and(|blocks| *blocks > 0)
        {
            self.whole("training.block_swap", &facts.blocks_swapped);
        }
        if let Fact::Known { value, origin } = &facts.optimizer {
            match optimizers::of_program(self.tool, value) {
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
        self.whole("training.checkpoint_span", &facts.checkpoint_span);
        self.whole("training.checkpoint_every", &facts.checkpoint_every);
        self.whole("training.checkpoint_first", &facts.checkpoint_first);
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
        } = &facts.cut_cross_entropy
        {
            self.set("training.loss", "cut-linear", origin);
        }
        if let Fact::Known {
            value: true,
            origin,
        } = &facts.compile
        {
            // These compile each layer by itself (`compile_model` in torchtune/training/_compile.py, `apply_compile` in
            // torchtitan/models/llama3/parallelize.py).
            let by_layer = ["torchtitan", "torchtune"];
            let trainer = facts.trainer.value();
            let by_layer = trainer.is_some_and(|trainer| by_layer.contains(trainer));
            let what = if by_layer { "layers" } else { "model" };
            self.set("training.compile", what, origin);
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
