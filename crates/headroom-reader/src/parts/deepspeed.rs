//! DeepSpeed's configuration.

use headroom_base::document::Document;

use crate::comments;
use crate::documents;
use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::words::{Compute, DataParallel, Offload, Strategy, Weights};
use headroom_scripts::Beside;

/// What it decides; `auto` leaves a value to the trainer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeepSpeed {
    pub stage: Fact<DataParallel>,
    pub offload: Fact<Offload>,
    /// The type of the model in the engine: both of weights and of what they compute; an fp32 copy is kept by the optimizer.
    pub compute: Fact<Compute>,
    pub optimizer: Fact<String>,
    pub micro_batch: Fact<u64>,
    pub accumulation: Fact<u64>,
}

impl DeepSpeed {
    /// The file of this path; where it is not at hand, what its name says.
    pub fn at(path: &str, beside: &dyn Beside) -> Self {
        let text = beside.text(path);
        let read = text
            .as_deref()
            .and_then(documents::read)
            .and_then(|keys| Self::read(&keys));
        read.unwrap_or_else(|| Self::named(path))
    }

    /// What the name of a file that is not at hand says: `zero3_bf16_cpuoffload_all.json`.
    fn named(path: &str) -> Self {
        let file = path.rsplit('/').next().unwrap_or(path);
        let lower = file.to_ascii_lowercase();
        let name = format!("the name of {file}");
        let short = |short: &str| {
            lower
                .split(|c: char| !c.is_alphanumeric())
                .any(|part| part == short)
        };
        let stage = comments::zero(file).or_else(|| {
            [
                ("z0", DataParallel::Zero0),
                ("z1", DataParallel::Zero1),
                ("z2", DataParallel::Zero2),
                ("z3", DataParallel::Zero3),
            ]
            .into_iter()
            .find(|(part, _)| short(part))
            .map(|(_, stage)| stage)
        });
        let Some(stage) = stage else {
            let unknown = format!("{path} is not here");
            return Self {
                stage: Fact::Unknown(unknown.clone()),
                ..Self::default()
            };
        };
        let offload = match (lower.contains("offload") || lower.contains("cpu"), stage) {
            (false, _) => Offload::None,
            (true, DataParallel::Zero3) if !lower.contains("optim") => Offload::Both,
            (true, _) => Offload::Optimizer,
        };
        Self {
            stage: Fact::follows(stage, name.clone()),
            offload: Fact::follows(offload, name),
            ..Self::default()
        }
    }

    pub fn read(keys: &Keys) -> Option<Self> {
        const MARKS: &[&str] = &[
            "zero_optimization",
            "train_micro_batch_size_per_gpu",
            "train_batch_size",
            "zero_allow_untested_optimizer",
            "steps_per_print",
            "wall_clock_breakdown",
        ];
        let marks = MARKS.iter().filter(|key| keys.has(key)).count();
        let own = keys.has("zero_optimization") || marks >= 2;
        (own && !keys.has("num_layers") && !keys.has("num-layers")).then(|| Self::of(keys, ""))
    }

    /// The same below a path of a larger file (`deepspeed_config`), or at its root.
    pub fn of(keys: &Keys, below: &str) -> Self {
        let at = |path: &str| {
            if below.is_empty() {
                path.to_string()
            } else {
                format!("{below}.{path}")
            }
        };
        let stage = keys
            .whole(&at("zero_optimization.stage"))
            .or(keys.whole(&at("zero_optimization_stage")));
        let stage = stage.and_then(|stage| stage_of(*stage));
        let section = at("zero_optimization");
        let stage = match keys.peek(&section) {
            None => stage.or_default(DataParallel::Zero0, "DeepSpeed"),
            Some(_) => stage.or_default(DataParallel::Zero0, "DeepSpeed's zero_optimization"),
        };
        let device = |part: &str| {
            let device = keys.text(&at(&format!("zero_optimization.{part}.device")));
            let old = match part {
                "offload_optimizer" => keys.switch(&at("zero_optimization.cpu_offload")),
                _ => keys.switch(&at("zero_optimization.cpu_offload_params")),
            };
            match device.value().map(String::as_str) {
                Some("cpu" | "nvme") => true,
                Some(_) => false,
                None => old.value() == Some(&true),
            }
        };
        let optimizer = device("offload_optimizer");
        // Parameters are offloaded by stage 3 only.
        let parameters = device("offload_param") && stage.value() == Some(&DataParallel::Zero3);
        let offload = match (optimizer, parameters) {
            (true, true) => Offload::Both,
            (true, false) => Offload::Optimizer,
            (false, true) => Offload::Parameters,
            (false, false) => Offload::None,
        };
        let offload = if optimizer || parameters {
            Fact::read(offload, section)
        } else {
            Fact::default_of(offload, "DeepSpeed")
        };
        let enabled = |part: &str| on(keys, &at(&format!("{part}.enabled")));
        let compute = if enabled("bf16") == Some(true) || enabled("bfloat16") == Some(true) {
            Fact::read(Compute::Bf16, at("bf16"))
        } else if enabled("fp16") == Some(true) {
            Fact::read(Compute::Fp16, at("fp16"))
        } else {
            Fact::Unsaid
        };
        let optimizer = keys
            .text(&at("optimizer.type"))
            .map(|name| name.to_ascii_lowercase());
        Self {
            stage,
            offload,
            compute,
            optimizer,
            micro_batch: auto(keys, &at("train_micro_batch_size_per_gpu")),
            accumulation: auto(keys, &at("gradient_accumulation_steps")),
        }
    }

    /// Fills what is still open.
    pub fn apply(self, facts: &mut Facts) {
        use std::mem::take;
        facts.strategy = take(&mut facts.strategy).or(self.stage.map(Strategy::from));
        facts.offload = take(&mut facts.offload).or(self.offload);
        facts.micro_batch = take(&mut facts.micro_batch).or(self.micro_batch);
        facts.accumulation = take(&mut facts.accumulation).or(self.accumulation);
        facts.optimizer = take(&mut facts.optimizer).or(self.optimizer);
        let weights = self.compute.clone().and_then(|compute| match compute {
            Compute::Bf16 => Some(Weights::Bf16),
            Compute::Fp16 => Some(Weights::Fp16),
            _ => None,
        });
        facts.compute = take(&mut facts.compute).or(self.compute);
        facts.weights = take(&mut facts.weights).or(weights);
    }
}

pub fn stage_of(stage: u64) -> Option<DataParallel> {
    Some(match stage {
        0 => DataParallel::Zero0,
        1 => DataParallel::Zero1,
        2 => DataParallel::Zero2,
        3 => DataParallel::Zero3,
        _ => return None,
    })
}

/// A switch that may be `auto`.
fn on(keys: &Keys, path: &str) -> Option<bool> {
    match keys.peek(path) {
        Some(Document::Text(text)) if text == "auto" => None,
        Some(_) => keys.switch(path).value().copied(),
        None => None,
    }
}

fn auto(keys: &Keys, path: &str) -> Fact<u64> {
    match keys.peek(path) {
        Some(Document::Text(text)) if text == "auto" => Fact::Unsaid,
        _ => keys.whole(path),
    }
}
