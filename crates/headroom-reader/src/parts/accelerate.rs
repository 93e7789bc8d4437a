//! Accelerate's configuration: `accelerate config`'s file, and the same as options of `accelerate launch`.

use crate::documents;
use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::parts::deepspeed::{DeepSpeed, stage_of};
use crate::words::{Checkpointing, Compute, DataParallel, Offload, Strategy};
use headroom_scripts::Beside;

/// What it decides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Accelerate {
    pub gpus: Fact<u64>,
    pub nodes: Fact<u64>,
    pub strategy: Fact<DataParallel>,
    pub offload: Fact<Offload>,
    /// `mixed_precision`.
    pub compute: Fact<Compute>,
    pub checkpointing: Fact<Checkpointing>,
    pub accumulation: Fact<u64>,
    deepspeed: Option<DeepSpeed>,
    /// The file of DeepSpeed that it names.
    pub deepspeed_file: Fact<String>,
}

impl Accelerate {
    /// The file of this path; where it is not at hand, what its name says.
    pub fn at(path: &str, beside: &dyn Beside) -> Self {
        let text = beside.text(path);
        let read = text
            .as_deref()
            .and_then(documents::read)
            .and_then(|keys| Self::read(&keys));
        let Some(mut read) = read else {
            return Self::named(path);
        };
        if let Some(file) = read.deepspeed_file.value() {
            read.deepspeed = Some(DeepSpeed::at(file, beside));
        }
        read
    }

    fn named(path: &str) -> Self {
        let file = path.rsplit('/').next().unwrap_or(path);
        let lower = file.to_ascii_lowercase();
        let why = format!("the name of {file}");
        let strategy = if let Some(stage) = crate::comments::zero(file) {
            Fact::follows(stage, why.clone())
        } else if lower.contains("fsdp2") {
            Fact::follows(DataParallel::Fsdp2, why.clone())
        } else if lower.contains("multi_gpu") || lower.contains("ddp") {
            Fact::follows(DataParallel::Ddp, why.clone())
        } else if lower.contains("single_gpu") {
            Fact::follows(DataParallel::None, why.clone())
        } else {
            Fact::Unknown(format!("{path} is not here"))
        };
        let gpus = if lower.contains("single_gpu") {
            Fact::follows(1, why)
        } else {
            Fact::Unknown(format!("{path} is not here"))
        };
        Self {
            gpus,
            strategy,
            ..Self::default()
        }
    }

    pub fn read(keys: &Keys) -> Option<Self> {
        let own = keys.has("distributed_type") || keys.has("compute_environment");
        own.then(|| Self::of(keys))
    }

    /// From its keys, which are the launcher's options too.
    pub fn of(keys: &Keys) -> Self {
        let kind = keys.text("distributed_type");
        let is = |name: &str| {
            kind.value()
                .is_some_and(|kind| kind.eq_ignore_ascii_case(name))
        };
        let gpus = keys.whole("num_processes");
        let nodes = keys.whole("num_machines");
        let compute = keys.text("mixed_precision").and_then(|name| {
            Some(match name.as_str() {
                "bf16" => Compute::Bf16Autocast,
                "fp16" => Compute::Fp16Autocast,
                "fp8" => Compute::Bf16Fp8,
                "no" | "false" | "None" => Compute::Fp32,
                _ => return None,
            })
        });
        let mut found = Self {
            gpus,
            nodes,
            compute,
            accumulation: keys.whole("gradient_accumulation_steps"),
            ..Self::default()
        };
        if is("DEEPSPEED") || keys.switch("use_deepspeed").value() == Some(&true) {
            found.deepspeed(keys);
        } else if is("FSDP") || keys.switch("use_fsdp").value() == Some(&true) {
            found.fsdp(keys);
        } else if found.gpus.value() == Some(&1) || is("NO") {
            found.strategy = Fact::read(DataParallel::None, "distributed_type");
            found.gpus = found.gpus.or_follows(1, "distributed_type NO");
        } else if is("MULTI_GPU")
            || keys.switch("multi_gpu").value() == Some(&true)
            || found.gpus.is_known()
        {
            found.strategy = Fact::read(DataParallel::Ddp, "distributed_type");
        }
        found
    }

    fn deepspeed(&mut self, keys: &Keys) {
        let at = |key: &str| {
            let nested = format!("deepspeed_config.{key}");
            if keys.has(&nested) {
                nested
            } else {
                key.to_string()
            }
        };
        self.deepspeed_file = keys.text(&at("deepspeed_config_file"));
        let stage = keys
            .whole(&at("zero_stage"))
            .and_then(|stage| stage_of(*stage));
        if self.deepspeed_file.is_unsaid() {
            // Accelerate's own default (`utils/dataclasses.py`, DeepSpeedPlugin.zero_stage).
            self.strategy = stage.or_default(DataParallel::Zero2, "Accelerate's DeepSpeed");
        } else {
            self.strategy = stage;
        }
        let on_host = |key: &str| {
            let device = keys.text(&at(key));
            device
                .value()
                .is_some_and(|device| matches!(device.as_str(), "cpu" | "nvme"))
        };
        let (optimizer, parameters) = (
            on_host("offload_optimizer_device"),
            on_host("offload_param_device"),
        );
        self.offload = match (optimizer, parameters) {
            (true, true) => Fact::read(Offload::Both, at("offload_param_device")),
            (true, false) => Fact::read(Offload::Optimizer, at("offload_optimizer_device")),
            (false, true) => Fact::read(Offload::Parameters, at("offload_param_device")),
            (false, false) if self.deepspeed_file.is_unsaid() => {
                Fact::default_of(Offload::None, "Accelerate")
            }
            (false, false) => Fact::Unsaid,
        };
        self.accumulation = keys
            .whole(&at("gradient_accumulation_steps"))
            .or(std::mem::take(&mut self.accumulation));
        // DeepSpeed's engine casts the model itself.
        self.compute = std::mem::take(&mut self.compute).map(|compute| match compute {
            Compute::Bf16Autocast => Compute::Bf16,
            Compute::Fp16Autocast => Compute::Fp16,
            other => other,
        });
    }

    fn fsdp(&mut self, keys: &Keys) {
        let at = |key: &str| {
            let nested = format!("fsdp_config.{key}");
            if keys.has(&nested) {
                nested
            } else {
                key.to_string()
            }
        };
        let version = keys.whole(&at("fsdp_version"));
        let second = version.value() == Some(&2);
        let sharding = keys.text(&at("fsdp_sharding_strategy"));
        let sharding = sharding.value().map(|name| name.to_ascii_uppercase());
        let strategy = match sharding.as_deref() {
            Some("NO_SHARD" | "3") => DataParallel::Ddp,
            Some("HYBRID_SHARD" | "HYBRID_SHARD_ZERO2" | "4" | "5") => DataParallel::Hsdp,
            _ if second => DataParallel::Fsdp2,
            _ => DataParallel::Fsdp1,
        };
        self.strategy = Fact::read(strategy, "fsdp_config");
        let offload = keys.switch(&at("fsdp_offload_params"));
        self.offload = match offload.value() {
            Some(true) => Fact::read(Offload::Both, at("fsdp_offload_params")),
            _ => Fact::default_of(Offload::None, "Accelerate's FSDP"),
        };
        if keys.switch(&at("fsdp_activation_checkpointing")).value() == Some(&true) {
            self.checkpointing = Fact::read(Checkpointing::On, at("fsdp_activation_checkpointing"));
        }
    }

    /// Fills what is still open.
    pub fn apply(self, facts: &mut Facts) {
        use std::mem::take;
        facts.gpus = take(&mut facts.gpus).or(self.gpus);
        facts.nodes = take(&mut facts.nodes).or(self.nodes);
        facts.strategy = take(&mut facts.strategy).or(self.strategy.map(Strategy::from));
        facts.offload = take(&mut facts.offload).or(self.offload);
        if facts.checkpointing.value() != Some(&Checkpointing::On) && self.checkpointing.is_known()
        {
            facts.checkpointing = self.checkpointing;
        }
        facts.accumulation = take(&mut facts.accumulation).or(self.accumulation);
        facts.compute = take(&mut facts.compute).or(self.compute);
        if let Some(deepspeed) = self.deepspeed {
            deepspeed.apply(facts);
        }
    }
}
