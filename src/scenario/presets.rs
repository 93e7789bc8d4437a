//! Scenarios with a name: data over the settings, each value said so that no changed default changes it.

use super::everyday::EVERYDAY;
use super::{Scenario, settings, systems};

/// A named scenario.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The name in commands and links.
    pub id: &'static str,
    pub title: &'static str,
    /// What the run is for, in a sentence.
    pub about: &'static str,
    /// Paths and values, as `--set` takes them.
    pub set: &'static [(&'static str, &'static str)],
}

/// All presets, in the order of the gallery.
pub fn all() -> &'static [Preset] {
    &ALL
}

/// The preset with this id.
pub fn find(id: &str) -> Option<&'static Preset> {
    all().iter().find(|preset| preset.id == id)
}

impl Preset {
    pub fn scenario(&self) -> Scenario {
        let mut scenario = Scenario::default();
        for (path, value) in self.set {
            // A test holds every preset to be made of known paths and values.
            let _ = settings::set(&mut scenario, path, value);
        }
        scenario
    }
}

/// The two lists as one.
static ALL: [Preset; PRESETS.len() + EVERYDAY.len()] = {
    let [first, ..] = PRESETS else {
        panic!("there are presets")
    };
    let mut all = [*first; PRESETS.len() + EVERYDAY.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < PRESETS.len() {
            PRESETS[at]
        } else {
            EVERYDAY[at - PRESETS.len()]
        };
        at += 1;
    }
    all
};

const PRESETS: &[Preset] = &[
    systems::DREAMS,
    systems::GSA,
    systems::PRS_MED,
    systems::RNA_3E_FFI,
    systems::PEPTRM,
    Preset {
        id: "gpt2-small",
        title: "GPT-2 small, full fine-tuning",
        about: "All 124 million weights of GPT-2 on one 24 GB card, in bf16 autocast with AdamW.",
        set: &[
            ("hardware.gpu", "rtx-4090"),
            ("hardware.gpus", "1"),
            ("model.id", "gpt2"),
            ("data.micro_batch", "8"),
            ("data.sequence", "1024"),
            ("training.precision", "amp-bf16"),
            ("training.optimizer", "adamw"),
            ("training.attention", "sdpa"),
            ("training.checkpointing", "none"),
            ("training.accumulation", "1"),
        ],
    },
    Preset {
        id: "gpt2-medium-16gb",
        title: "GPT-2 medium on 16 GB",
        about: "Full fine-tuning of 355 million weights, with checkpointing to leave room for the batch.",
        set: &[
            ("hardware.gpu", "rtx-4080-16gb"),
            ("hardware.gpus", "1"),
            ("model.id", "gpt2-medium"),
            ("data.micro_batch", "4"),
            ("data.sequence", "1024"),
            ("training.precision", "amp-bf16"),
            ("training.optimizer", "adamw-fused"),
            ("training.attention", "sdpa"),
            ("training.checkpointing", "layers"),
            ("training.accumulation", "4"),
        ],
    },
    Preset {
        id: "gpt2-xl-80gb",
        title: "GPT-2 XL on 80 GB",
        about: "Full fine-tuning of 1.5 billion weights kept in fp32.",
        set: &[
            ("hardware.gpu", "a100-sxm4-80gb"),
            ("hardware.gpus", "1"),
            ("model.id", "gpt2-xl"),
            ("data.micro_batch", "8"),
            ("data.sequence", "1024"),
            ("training.precision", "amp-bf16"),
            ("training.optimizer", "adamw"),
            ("training.attention", "sdpa"),
            ("training.checkpointing", "layers"),
            ("training.accumulation", "4"),
        ],
    },
    Preset {
        id: "llama-1b-lora-8gb",
        title: "Llama 3.2 1B, LoRA on 8 GB",
        about: "Adapters on the attention layers of a small model on a small card.",
        set: &[
            ("hardware.gpu", "rtx-4060-8gb"),
            ("hardware.gpus", "1"),
            ("model.id", "llama-3.2-1b"),
            ("data.micro_batch", "1"),
            ("data.sequence", "1024"),
            ("training.precision", "amp-bf16-on-bf16"),
            ("training.optimizer", "adamw-fused"),
            ("training.attention", "sdpa"),
            ("training.checkpointing", "layers"),
            ("training.accumulation", "16"),
            ("training.lora", "on"),
            ("training.lora.rank", "16"),
            ("training.lora.targets", "q_proj,k_proj,v_proj,o_proj"),
            ("training.lora.dropout", "0"),
            ("training.lora.fp32_adapters", "on"),
        ],
    },
    Preset {
        id: "llama-1b-full-24gb",
        title: "Llama 3.2 1B, full fine-tuning on 24 GB",
        about: "Everything in bf16, which halves weights, gradients and states.",
        set: &[
            ("hardware.gpu", "rtx-4090-24gb"),
            ("hardware.gpus", "1"),
            ("model.id", "llama-3.2-1b"),
            ("data.micro_batch", "1"),
            ("data.sequence", "2048"),
            ("training.precision", "bf16"),
            ("training.optimizer", "adamw-fused"),
            ("training.attention", "sdpa"),
            ("training.checkpointing", "layers"),
            ("training.accumulation", "16"),
        ],
    },
    Preset {
        id: "llama-3b-lora-16gb",
        title: "Llama 3.2 3B, LoRA on 16 GB",
        about: "Adapters on the attention layers over a frozen base in bf16.",
        set: &[
            ("hardware.gpu", "rtx-4080-16gb"),
            ("hardware.gpus", "1"),
            ("model.id", "llama-3.2-3b"),
            ("data.micro_batch", "1"),
            ("data.sequence", "2048"),
            ("training.precision", "amp-bf16-on-bf16"),
            ("training.optimizer", "adamw-fused"),
            ("training.attention", "sdpa"),
            ("training.checkpointing", "layers"),
            ("training.accumulation", "16"),
            ("training.lora", "on"),
            ("training.lora.rank", "16"),
            ("training.lora.targets", "q_proj,k_proj,v_proj,o_proj"),
            ("training.lora.dropout", "0"),
            ("training.lora.fp32_adapters", "on"),
        ],
    },
    Preset {
        id: "llama-8b-lora-24gb",
        title: "Llama 3.1 8B, LoRA on 24 GB",
        about: "The most asked question of all: 8 billion frozen weights in bf16 and adapters on one consumer card.",
        set: &[
            ("hardware.gpu", "rtx-4090-24gb"),
            ("hardware.gpus", "1"),
            ("model.id", "llama-3.1-8b"),
            ("data.micro_batch", "1"),
            ("data.sequence", "2048"),
            ("training.precision", "amp-bf16-on-bf16"),
            ("training.optimizer", "adamw-fused"),
            ("training.attention", "sdpa"),
            ("training.checkpointing", "layers"),
            ("training.accumulation", "16"),
            ("training.lora", "on"),
            ("training.lora.rank", "16"),
            ("training.lora.targets", "q_proj,k_proj,v_proj,o_proj"),
            ("training.lora.dropout", "0"),
            ("training.lora.fp32_adapters", "on"),
        ],
    },
    Preset {
        id: "llama-8b-full-80gb",
        title: "Llama 3.1 8B, full fine-tuning on 80 GB",
        about: "Everything in bf16 on one H100, with the fused AdamW and checkpointing.",
        set: &[
            ("hardware.gpu", "h100-sxm5-80gb"),
            ("hardware.gpus", "1"),
            ("model.id", "llama-3.1-8b"),
            ("data.micro_batch", "1"),
            ("data.sequence", "4096"),
            ("training.precision", "bf16"),
            ("training.optimizer", "adamw-fused"),
            ("training.attention", "sdpa"),
            ("training.checkpointing", "layers"),
            ("training.accumulation", "16"),
        ],
    },
    Preset {
        id: "mistral-7b-lora-24gb",
        title: "Mistral 7B, LoRA on 24 GB",
        about: "Adapters on the attention layers, two samples at a time.",
        set: &[
            ("hardware.gpu", "rtx-4090-24gb"),
            ("hardware.gpus", "1"),
            ("model.id", "mistral-7b-v0.3"),
            ("data.micro_batch", "2"),
            ("data.sequence", "2048"),
            ("training.precision", "amp-bf16-on-bf16"),
            ("training.optimizer", "adamw-fused"),
            ("training.attention", "sdpa"),
            ("training.checkpointing", "layers"),
            ("training.accumulation", "8"),
            ("training.lora", "on"),
            ("training.lora.rank", "16"),
            ("training.lora.targets", "q_proj,k_proj,v_proj,o_proj"),
            ("training.lora.dropout", "0"),
            ("training.lora.fp32_adapters", "on"),
        ],
    },
    Preset {
        id: "qwen-0.5b-full-12gb",
        title: "Qwen2.5 0.5B, full fine-tuning on 12 GB",
        about: "A small model with a large vocabulary: the logits are what fills the card.",
        set: &[
            ("hardware.gpu", "rtx-3060-12gb"),
            ("hardware.gpus", "1"),
            ("model.id", "qwen2.5-0.5b"),
            ("data.micro_batch", "2"),
            ("data.sequence", "1024"),
            ("training.precision", "bf16"),
            ("training.optimizer", "adamw-fused"),
            ("training.attention", "sdpa"),
            ("training.checkpointing", "layers"),
            ("training.accumulation", "8"),
        ],
    },
    Preset {
        id: "qwen-4b-lora-16gb",
        title: "Qwen3 4B, LoRA on 16 GB",
        about: "Adapters on the attention layers over a frozen base in bf16.",
        set: &[
            ("hardware.gpu", "rtx-4080-16gb"),
            ("hardware.gpus", "1"),
            ("model.id", "qwen3-4b"),
            ("data.micro_batch", "1"),
            ("data.sequence", "2048"),
            ("training.precision", "amp-bf16-on-bf16"),
            ("training.optimizer", "adamw-fused"),
            ("training.attention", "sdpa"),
            ("training.checkpointing", "layers"),
            ("training.accumulation", "16"),
            ("training.lora", "on"),
            ("training.lora.rank", "16"),
            ("training.lora.targets", "q_proj,k_proj,v_proj,o_proj"),
            ("training.lora.dropout", "0"),
            ("training.lora.fp32_adapters", "on"),
        ],
    },
    Preset {
        id: "qwen-8b-lora-40gb",
        title: "Qwen3 8B, LoRA on 40 GB",
        about: "Four samples at a time on an A100.",
        set: &[
            ("hardware.gpu", "a100-sxm4-40gb"),
            ("hardware.gpus", "1"),
            ("model.id", "qwen3-8b"),
            ("data.micro_batch", "4"),
            ("data.sequence", "2048"),
            ("training.precision", "amp-bf16-on-bf16"),
            ("training.optimizer", "adamw-fused"),
            ("training.attention", "sdpa"),
            ("training.checkpointing", "layers"),
            ("training.accumulation", "4"),
            ("training.lora", "on"),
            ("training.lora.rank", "16"),
            ("training.lora.targets", "q_proj,k_proj,v_proj,o_proj"),
            ("training.lora.dropout", "0"),
            ("training.lora.fp32_adapters", "on"),
        ],
    },
    Preset {
        id: "qwen-7b-lora-48gb",
        title: "Qwen2.5 7B, LoRA on 48 GB",
        about: "Four samples at a time on a workstation card.",
        set: &[
            ("hardware.gpu", "rtx-a6000-48gb"),
            ("hardware.gpus", "1"),
            ("model.id", "qwen2.5-7b"),
            ("data.micro_batch", "4"),
            ("data.sequence", "2048"),
            ("training.precision", "amp-bf16-on-bf16"),
            ("training.optimizer", "adamw-fused"),
            ("training.attention", "sdpa"),
            ("training.checkpointing", "layers"),
            ("training.accumulation", "4"),
            ("training.lora", "on"),
            ("training.lora.rank", "16"),
            ("training.lora.targets", "q_proj,k_proj,v_proj,o_proj"),
            ("training.lora.dropout", "0"),
            ("training.lora.fp32_adapters", "on"),
        ],
    },
    Preset {
        id: "qwen-14b-lora-48gb",
        title: "Qwen2.5 14B, LoRA on 48 GB",
        about: "28 GB of frozen weights and room for two thousand tokens.",
        set: &[
            ("hardware.gpu", "rtx-a6000-48gb"),
            ("hardware.gpus", "1"),
            ("model.id", "qwen2.5-14b"),
            ("data.micro_batch", "1"),
            ("data.sequence", "2048"),
            ("training.precision", "amp-bf16-on-bf16"),
            ("training.optimizer", "adamw-fused"),
            ("training.attention", "sdpa"),
            ("training.checkpointing", "layers"),
            ("training.accumulation", "16"),
            ("training.lora", "on"),
            ("training.lora.rank", "16"),
            ("training.lora.targets", "q_proj,k_proj,v_proj,o_proj"),
            ("training.lora.dropout", "0"),
            ("training.lora.fp32_adapters", "on"),
        ],
    },
    Preset {
        id: "qwen-32b-lora-80gb",
        title: "Qwen2.5 32B, LoRA on 80 GB",
        about: "61 GiB of frozen weights: what is left decides the sequence.",
        set: &[
            ("hardware.gpu", "h100-sxm5-80gb"),
            ("hardware.gpus", "1"),
            ("model.id", "qwen2.5-32b"),
            ("data.micro_batch", "1"),
            ("data.sequence", "1024"),
            ("training.precision", "amp-bf16-on-bf16"),
            ("training.optimizer", "adamw-fused"),
            ("training.attention", "sdpa"),
            ("training.checkpointing", "layers"),
            ("training.accumulation", "16"),
            ("training.lora", "on"),
            ("training.lora.rank", "16"),
            ("training.lora.targets", "q_proj,k_proj,v_proj,o_proj"),
            ("training.lora.dropout", "0"),
            ("training.lora.fp32_adapters", "on"),
        ],
    },
    Preset {
        id: "smollm-135m-8gb",
        title: "SmolLM2 135M on 8 GB",
        about: "Full fine-tuning of a very small model; its activations are larger than it is.",
        set: &[
            ("hardware.gpu", "rtx-4060-8gb"),
            ("hardware.gpus", "1"),
            ("model.id", "smollm2-135m"),
            ("data.micro_batch", "2"),
            ("data.sequence", "1024"),
            ("training.precision", "amp-bf16"),
            ("training.optimizer", "adamw-fused"),
            ("training.attention", "sdpa"),
            ("training.checkpointing", "none"),
            ("training.accumulation", "8"),
        ],
    },
    Preset {
        id: "bert-base-8gb",
        title: "BERT base, fine-tuning on 8 GB",
        about: "A classifier on short padded texts.",
        set: &[
            ("hardware.gpu", "rtx-4060-8gb"),
            ("hardware.gpus", "1"),
            ("model.id", "bert-base-uncased"),
            ("data.micro_batch", "32"),
            ("data.sequence", "128"),
            ("data.padding_mask", "on"),
            ("training.precision", "amp-bf16"),
            ("training.optimizer", "adamw"),
            ("training.attention", "sdpa"),
            ("training.checkpointing", "none"),
            ("training.accumulation", "1"),
        ],
    },
    Preset {
        id: "bert-large-16gb",
        title: "BERT large, fine-tuning on 16 GB",
        about: "A classifier on padded texts of up to 256 tokens.",
        set: &[
            ("hardware.gpu", "rtx-4080-16gb"),
            ("hardware.gpus", "1"),
            ("model.id", "bert-large-uncased"),
            ("data.micro_batch", "16"),
            ("data.sequence", "256"),
            ("data.padding_mask", "on"),
            ("training.precision", "amp-bf16"),
            ("training.optimizer", "adamw"),
            ("training.attention", "sdpa"),
            ("training.checkpointing", "none"),
            ("training.accumulation", "1"),
        ],
    },
    Preset {
        id: "roberta-large-24gb",
        title: "RoBERTa large, fine-tuning on 24 GB",
        about: "A classifier on padded texts of full length.",
        set: &[
            ("hardware.gpu", "rtx-4090-24gb"),
            ("hardware.gpus", "1"),
            ("model.id", "roberta-large"),
            ("data.micro_batch", "16"),
            ("data.sequence", "512"),
            ("data.padding_mask", "on"),
            ("training.precision", "amp-bf16"),
            ("training.optimizer", "adamw"),
            ("training.attention", "sdpa"),
            ("training.checkpointing", "none"),
            ("training.accumulation", "1"),
        ],
    },
    Preset {
        id: "mixtral-lora-141gb",
        title: "Mixtral 8×7B, LoRA on 141 GB",
        about: "47 billion frozen weights, of which a token meets 13, and adapters on attention.",
        set: &[
            ("hardware.gpu", "h200-sxm-141gb"),
            ("hardware.gpus", "1"),
            ("model.id", "mixtral-8x7b"),
            ("data.micro_batch", "1"),
            ("data.sequence", "1024"),
            ("training.precision", "amp-bf16-on-bf16"),
            ("training.optimizer", "adamw-fused"),
            ("training.attention", "sdpa"),
            ("training.checkpointing", "layers"),
            ("training.accumulation", "1"),
            ("training.lora", "on"),
            ("training.lora.rank", "16"),
            ("training.lora.targets", "q_proj,k_proj,v_proj,o_proj"),
            ("training.lora.dropout", "0"),
            ("training.lora.fp32_adapters", "on"),
        ],
    },
    Preset {
        id: "t5-base-24gb",
        title: "T5 base, full fine-tuning on 24 GB",
        about: "An encoder-decoder with relative positions, on texts of 512 tokens.",
        set: &[
            ("hardware.gpu", "rtx-4090-24gb"),
            ("hardware.gpus", "1"),
            ("model.id", "t5-base"),
            ("data.micro_batch", "8"),
            ("data.sequence", "512"),
            ("training.precision", "amp-bf16"),
            ("training.optimizer", "adamw"),
            ("training.attention", "sdpa"),
            ("training.checkpointing", "none"),
            ("training.accumulation", "1"),
        ],
    },
    Preset {
        id: "vit-base-24gb",
        title: "ViT-B/16, fine-tuning on 24 GB",
        about: "An image classifier at 224 pixels.",
        set: &[
            ("hardware.gpu", "rtx-4090-24gb"),
            ("hardware.gpus", "1"),
            ("model.id", "vit-b16"),
            ("data.micro_batch", "64"),
            ("data.sequence", "1"),
            ("training.precision", "amp-bf16"),
            ("training.optimizer", "adamw"),
            ("training.attention", "sdpa"),
            ("training.checkpointing", "none"),
            ("training.accumulation", "1"),
        ],
    },
    Preset {
        id: "vit-large-24gb",
        title: "ViT-L/16, fine-tuning on 24 GB",
        about: "Three times the weights of the base model, half the batch.",
        set: &[
            ("hardware.gpu", "rtx-4090-24gb"),
            ("hardware.gpus", "1"),
            ("model.id", "vit-l16"),
            ("data.micro_batch", "32"),
            ("data.sequence", "1"),
            ("training.precision", "amp-bf16"),
            ("training.optimizer", "adamw"),
            ("training.attention", "sdpa"),
            ("training.checkpointing", "none"),
            ("training.accumulation", "1"),
        ],
    },
    Preset {
        id: "resnet-50-16gb",
        title: "ResNet-50, training on 16 GB",
        about: "A convolutional classifier in channels-last order with SGD.",
        set: &[
            ("hardware.gpu", "rtx-4080-16gb"),
            ("hardware.gpus", "1"),
            ("model.id", "resnet-50"),
            ("data.micro_batch", "128"),
            ("data.sequence", "1"),
            ("training.precision", "amp-bf16"),
            ("training.optimizer", "sgd-momentum"),
            ("training.attention", "sdpa"),
            ("training.checkpointing", "none"),
            ("training.accumulation", "1"),
            ("training.channels_last", "on"),
        ],
    },
    Preset {
        id: "convnext-tiny-24gb",
        title: "ConvNeXt-T, training on 24 GB",
        about: "A modern convolutional classifier with AdamW.",
        set: &[
            ("hardware.gpu", "rtx-4090-24gb"),
            ("hardware.gpus", "1"),
            ("model.id", "convnext-tiny"),
            ("data.micro_batch", "64"),
            ("data.sequence", "1"),
            ("training.precision", "amp-bf16"),
            ("training.optimizer", "adamw"),
            ("training.attention", "sdpa"),
            ("training.checkpointing", "none"),
            ("training.accumulation", "1"),
        ],
    },
    Preset {
        id: "clip-24gb",
        title: "CLIP ViT-B/32 on 24 GB",
        about: "Two towers and a contrastive loss over the batch.",
        set: &[
            ("hardware.gpu", "rtx-4090-24gb"),
            ("hardware.gpus", "1"),
            ("model.id", "clip-vit-b32"),
            ("data.micro_batch", "64"),
            ("data.sequence", "77"),
            ("training.precision", "amp-bf16"),
            ("training.optimizer", "adamw"),
            ("training.attention", "sdpa"),
            ("training.checkpointing", "none"),
            ("training.accumulation", "1"),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::estimate;

    #[test]
    fn presets_are_valid_and_named_once() {
        for (at, preset) in all().iter().enumerate() {
            let twice = all()[..at].iter().any(|other| other.id == preset.id);
            assert!(!twice, "{} twice", preset.id);
            for (path, value) in preset.set {
                settings::set(&mut Scenario::default(), path, value).unwrap();
            }
            let scenario = preset.scenario();
            assert_eq!(scenario.check(), vec![], "{}", preset.id);
            let estimate = estimate(&scenario).unwrap();
            assert_eq!(estimate.fits, Some(true), "{}", preset.id);
        }
    }
}
