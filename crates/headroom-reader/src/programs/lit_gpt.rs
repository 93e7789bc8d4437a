//! Scripts of Lit-GPT and lit-llama, such as TinyLlama's `pretrain/tinyllama.py`: constants, and a Fabric with FSDP.
//!
//! Sizes of its models are those of `lit_gpt/config.py` in TinyLlama; precision that of `lit_gpt/utils.py`.

use headroom_scripts::python::Value;

use super::common;
use crate::fact::Fact;
use crate::facts::Facts;
use crate::program::{Form, Program, Source};
use crate::shape::{Blocks, Shape};
use crate::words::{
    Attention, Checkpointing, Compute, DataParallel, Offload, Strategy, Task, Weights,
};

pub const PROGRAM: Program = Program {
    id: "lit-gpt",
    name: "Lit-GPT",
    read,
};

/// Networks of TinyLlama's own names: layers, width, heads, key heads, feed-forward, positions.
const MODELS: &[(&str, [u64; 6])] = &[
    ("tiny_LLaMA_1b", [22, 2048, 32, 4, 5632, 2048]),
    ("tiny_LLaMA_120M", [12, 768, 12, 1, 2048, 2048]),
    ("code_tiny_LLaMA_1b", [22, 2048, 32, 4, 5632, 8192]),
];

fn read(source: &Source) -> Option<Facts> {
    let Form::Python { module, .. } = &source.form else {
        return None;
    };
    let own = ["lit_gpt", "lit_llama", "lit_parrot"];
    let imports = |import: &String| own.iter().any(|name| import.starts_with(name));
    let script = Script {
        names: &module.names,
        text: source.text,
    };
    if !module.imports.iter().any(imports) || script.whole("micro_batch_size").is_unsaid() {
        return None;
    }
    Some(script.facts())
}

struct Script<'a> {
    names: &'a [(String, Value)],
    text: &'a str,
}

impl Script<'_> {
    fn value(&self, name: &str) -> Option<&Value> {
        let found = self.names.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, value)| value)
    }

    fn whole(&self, name: &str) -> Fact<u64> {
        match self.value(name) {
            Some(Value::Int(value)) => match u64::try_from(*value) {
                Ok(value) => Fact::read(value, name),
                Err(_) => Fact::Unknown(format!("{name} is {value}")),
            },
            Some(Value::Float(value)) if value.fract() == 0.0 && (0.0..1e15).contains(value) => {
                Fact::read(*value as u64, name)
            }
            Some(Value::Unknown(why)) => Fact::Unknown(why.clone()),
            _ => Fact::Unsaid,
        }
    }

    /// The default of an option of `setup`, which its command line decides: `devices: int = 8`.
    fn option(&self, name: &str) -> Option<&str> {
        let start = format!("{name}:");
        let line = self
            .text
            .lines()
            .map(str::trim)
            .find(|line| line.starts_with(&start))?;
        let (_, default) = line.split_once('=')?;
        Some(default.trim().trim_end_matches(',').trim())
    }

    fn facts(&self) -> Facts {
        let mut facts = Facts::of("lightning");
        self.model(&mut facts);
        let tuned = self.value("lora_r").is_some() || self.text.contains("finetune");
        facts.task = if tuned {
            Fact::follows(Task::Sft, "its script")
        } else {
            Fact::follows(Task::Pretraining, "its script")
        };
        facts.micro_batch = self.whole("micro_batch_size");
        let devices = self
            .option("devices")
            .and_then(|text| text.parse::<u64>().ok());
        facts.gpus = match (devices, self.whole("devices"), self.whole("num_of_devices")) {
            (Some(devices), ..) => Fact::default_of(devices, "its devices option"),
            (None, said, other) => {
                if said.is_known() {
                    said
                } else {
                    other
                }
            }
        };
        facts.nodes = Fact::default_of(1, "Fabric");
        let steps = self
            .whole("gradient_accumulation_steps")
            .or(self.whole("gradient_accumulation_iters"));
        facts.accumulation = match steps {
            known @ Fact::Known { .. } => known,
            _ => {
                let global = self.whole("global_batch_size").or(self.whole("batch_size"));
                let by = facts.gpus.value().zip(facts.micro_batch.value());
                common::divided(
                    &global,
                    by.map(|(gpus, micro)| gpus.saturating_mul(*micro)),
                    "global_batch_size",
                )
            }
        };
        self.spread(&mut facts);
        self.precision(&mut facts);
        if self.value("lora_r").is_some() {
            common::trains_lora(&mut facts, self.whole("lora_r"), "lora_r");
        } else {
            common::trains_all(&mut facts);
        }
        facts.optimizer = Fact::follows("adamw".into(), "its script");
        facts.attention = Fact::default_of(Attention::Flash, "Lit-GPT");
        facts.packing = Fact::follows(self.text.contains("PackedDataset"), "PackedDataset");
        let evaluated = self
            .option("val_data_dir")
            .is_some_and(|default| default != "None");
        facts.evaluation = Fact::default_of(evaluated, "its val_data_dir option");
        facts
    }

    fn model(&self, facts: &mut Facts) {
        let name = match self.value("model_name") {
            Some(Value::Text(name)) => name.clone(),
            Some(Value::Unknown(why)) => {
                facts.model = Fact::Unknown(why.clone());
                return;
            }
            _ => return,
        };
        if let Some((_, sizes)) = MODELS.iter().find(|(known, _)| *known == name) {
            let [layers, hidden, heads, kv, ffn, positions] = *sizes;
            facts.shape = Some(Shape {
                blocks: Blocks::Llama,
                layers,
                hidden,
                heads,
                kv: Some(kv),
                ffn: Some(ffn),
                vocabulary: Some(32_000),
                tied: Some(false),
                positions: Some(positions),
                experts: None,
            });
            facts.sequence = Fact::follows(positions, format!("block_size of {name}"));
        }
        facts.sequence = self
            .whole("block_size")
            .or(self.whole("max_seq_length"))
            .or(std::mem::take(&mut facts.sequence));
        facts.model = Fact::read(name, "model_name");
    }

    fn spread(&self, facts: &mut Facts) {
        let several = facts.gpus.value().is_some_and(|gpus| *gpus > 1);
        let fsdp = self.text.contains("FSDPStrategy(");
        let data = match (several, fsdp) {
            (false, _) => DataParallel::None,
            (true, true) => DataParallel::Fsdp1,
            (true, false) => DataParallel::Ddp,
        };
        facts.strategy = Fact::follows(Strategy::from(data), "its strategy");
        let on_host = self.text.contains("cpu_offload=True") && fsdp;
        facts.offload = Fact::follows(
            if on_host {
                Offload::Both
            } else {
                Offload::None
            },
            "its strategy",
        );
        let checkpointed = several
            && (self.text.contains("activation_checkpointing_policy={")
                || self.text.contains("activation_checkpointing=Block"));
        let checkpointing = if checkpointed {
            Checkpointing::On
        } else {
            Checkpointing::Off
        };
        facts.checkpointing = Fact::follows(checkpointing, "its strategy");
    }

    fn precision(&self, facts: &mut Facts) {
        let said = self
            .option("precision")
            .map(|text| text.trim_matches(['"', '\'']).to_string());
        let said = said.filter(|text| text != "None");
        let (compute, weights) = match said.as_deref() {
            Some("bf16-true") => (Compute::Bf16, Weights::Bf16),
            Some("16-true") => (Compute::Fp16, Weights::Fp16),
            Some("16-mixed") => (Compute::Fp16Autocast, Weights::Fp32),
            Some("32-true" | "32") => (Compute::Fp32, Weights::Fp32),
            _ => (Compute::Bf16Autocast, Weights::Fp32),
        };
        let why = "Lit-GPT's precision where the GPU has bf16";
        facts.compute = Fact::default_of(compute, why);
        facts.weights = Fact::default_of(weights, why);
    }
}

#[cfg(test)]
mod tests {
    use crate::programs::testing::check;

    #[test]
    fn constants_and_options_of_setup_decide() {
        let script = "
from lightning.fabric.strategies import FSDPStrategy
from lit_gpt.model import GPT, Block, Config

model_name = 'tiny_LLaMA_1b'
num_of_devices = 4
global_batch_size = 256
micro_batch_size = 8
batch_size = global_batch_size // num_of_devices
gradient_accumulation_steps = batch_size // micro_batch_size

def setup(
    devices: int = 4,
    precision: Optional[str] = None,
):
    strategy = FSDPStrategy(auto_wrap_policy={Block}, activation_checkpointing_policy=None)
";
        check(
            "pretrain.py",
            script,
            &[
                ("outcome", "estimate"),
                ("catalogue", "tinyllama-1.1b"),
                ("gpus", "4"),
                ("strategy", "fsdp1"),
                ("accumulation", "8"),
                ("checkpointing", "false"),
                ("sequence", "2048"),
            ],
        );
    }
}
