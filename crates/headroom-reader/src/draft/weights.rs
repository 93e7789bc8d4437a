//! Types of weights and operations, and adapters.

use super::{Writer, is_diffusion};
use crate::fact::{self, Fact};
use crate::facts::Facts;
use crate::words::{Adapter, Compute, DataParallel, Trained, Weights};
use headroom_catalog::{ModelEntry, model};

impl Writer {
    /// Types of weights and operations.
    pub(super) fn numbers(&mut self, facts: &Facts) {
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
                // `to_nf4` of torchtune/modules/peft/lora.py is torchao's.
                Weights::Nf4 if facts.trainer.value() == Some(&"torchtune") => "nf4-ao",
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

    pub(super) fn adapters(&mut self, facts: &Facts) {
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
                if let Fact::Known { value, origin } = &facts.fp32_adapters {
                    let kind = if *value { "on" } else { "off" };
                    self.set("training.lora.fp32_adapters", kind, origin);
                }
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

    /// Where nothing says which layers of a diffusion network are adapted.
    pub(super) fn diffusion_targets(&mut self, facts: &Facts, origin: &fact::Origin) {
        let entry = facts
            .network()
            .and_then(model)
            .filter(|it| is_diffusion(it));
        let written = facts
            .targets
            .value()
            .is_some_and(|names| names.iter().all(|name| name != "all-linear"));
        let Some(entry) = entry.filter(|_| !written) else {
            return;
        };
        self.set(
            "training.lora.targets",
            adapted_layers(self.tool, entry),
            origin,
        );
    }
}

/// The layers of a diffusion network that a program adapts by default: all linear layers of its blocks, as trainers with files of
/// their own do, or attention's, as diffusers' scripts do.
pub fn adapted_layers(tool: &str, entry: &ModelEntry) -> &'static str {
    const ATTENTION: &str = "to_q,to_k,to_v,to_out.0";
    // `Transformer2DModel`, of which kohya's and OneTrainer's modules adapt every linear layer and 1 × 1 convolution.
    const OF_UNET: &str = "to_q,to_k,to_v,to_out.0,net.0.proj,net.2,proj_in,proj_out";
    const BLOCKS: &str = "to_q,to_k,to_v,to_out.0,add_q_proj,add_k_proj,add_v_proj,to_add_out,net.0.proj,net.2,w1,w2,w3";
    // With blocks that see texts and pictures as one sequence, whose names a last layer may have in other networks.
    const SINGLE_BLOCKS: &str = "to_q,to_k,to_v,to_out.0,add_q_proj,add_k_proj,add_v_proj,to_add_out,net.0.proj,net.2,\
                                 proj_mlp,proj_out,to_qkv_mlp_proj,to_out,linear_in,linear_out";
    let own = [
        "kohya",
        "musubi",
        "diffusion-pipe",
        "onetrainer",
        "ai-toolkit",
    ];
    if !own.iter().any(|name| tool.starts_with(name)) {
        ATTENTION
    } else if entry.arch == "unet" {
        OF_UNET
    } else if entry.size("single_layers").is_some() {
        SINGLE_BLOCKS
    } else {
        BLOCKS
    }
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
            | Weights::Int4
            | Weights::Fp8,
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
