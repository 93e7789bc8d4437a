//! Everyday runs: what people ask about most, one line each over what most of them share.

use super::preset::Preset;

/// A preset over a base: card, model, micro-batch, sequence, precision, optimizer, checkpointing, accumulation, and
/// whatever else is said.
macro_rules! preset {
    ($id:literal, $title:literal, $about:literal, $gpu:literal, $model:literal, $batch:literal x $sequence:literal,
     $precision:literal, $optimizer:literal, $checkpointing:literal, $accumulation:literal $(, $path:literal = $value:literal)* $(,)?) => {
        Preset {
            id: $id,
            title: $title,
            about: $about,
            set: &[
                ("hardware.gpu", $gpu),
                ("hardware.gpus", "1"),
                ("model.id", $model),
                ("data.micro_batch", $batch),
                ("data.sequence", $sequence),
                ("training.precision", $precision),
                ("training.optimizer", $optimizer),
                ("training.attention", "sdpa"),
                ("training.checkpointing", $checkpointing),
                ("training.accumulation", $accumulation),
                $(($path, $value)),*
            ],
        }
    };
}

/// The same with four-bit weights under adapters on all projections, as QLoRA has it.
macro_rules! qlora {
    ($id:literal, $title:literal, $about:literal, $gpu:literal, $model:literal, $batch:literal x $sequence:literal, $accumulation:literal) => {
        preset!(
            $id, $title, $about, $gpu, $model, $batch x $sequence,
            "amp-bf16-on-bf16", "adamw-paged-8bit", "layers", $accumulation,
            "training.quantization" = "nf4-double",
            "training.lora" = "on",
            "training.lora.rank" = "16",
            "training.lora.targets" = "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj",
            "training.lora.dropout" = "0.05",
            "training.lora.fp32_adapters" = "on",
        )
    };
}

/// Adapters over a frozen base in bf16.
macro_rules! lora {
    ($id:literal, $title:literal, $about:literal, $gpu:literal, $model:literal, $batch:literal x $sequence:literal,
     $checkpointing:literal, $accumulation:literal, $targets:literal) => {
        preset!(
            $id, $title, $about, $gpu, $model, $batch x $sequence,
            "amp-bf16-on-bf16", "adamw-fused", $checkpointing, $accumulation,
            "training.lora" = "on",
            "training.lora.rank" = "16",
            "training.lora.targets" = $targets,
            "training.lora.dropout" = "0",
            "training.lora.fp32_adapters" = "on",
        )
    };
}

pub(super) const EVERYDAY: &[Preset] = &[
    preset!("gpt2-small", "GPT-2 small, full fine-tuning", "All 124 million weights of GPT-2 on one 24 GB card, in bf16 autocast with AdamW.",
        "rtx-4090", "gpt2", "8" x "1024", "amp-bf16", "adamw", "none", "1"),
    preset!("gpt2-medium-16gb", "GPT-2 medium on 16 GB", "Full fine-tuning of 355 million weights, with checkpointing to leave room for the batch.",
        "rtx-4080-16gb", "gpt2-medium", "4" x "1024", "amp-bf16", "adamw-fused", "layers", "4"),
    preset!("gpt2-xl-80gb", "GPT-2 XL on 80 GB", "Full fine-tuning of 1.5 billion weights kept in fp32.",
        "a100-sxm4-80gb", "gpt2-xl", "8" x "1024", "amp-bf16", "adamw", "layers", "4"),
    lora!("llama-1b-lora-8gb", "Llama 3.2 1B, LoRA on 8 GB", "Adapters on the attention layers of a small model on a small card.",
        "rtx-4060-8gb", "llama-3.2-1b", "1" x "1024", "layers", "16", "q_proj,k_proj,v_proj,o_proj"),
    preset!("llama-1b-full-24gb", "Llama 3.2 1B, full fine-tuning on 24 GB", "Everything in bf16, which halves weights, gradients and states.",
        "rtx-4090-24gb", "llama-3.2-1b", "1" x "2048", "bf16", "adamw-fused", "layers", "16"),
    lora!("llama-3b-lora-16gb", "Llama 3.2 3B, LoRA on 16 GB", "Adapters on the attention layers over a frozen base in bf16.",
        "rtx-4080-16gb", "llama-3.2-3b", "1" x "2048", "layers", "16", "q_proj,k_proj,v_proj,o_proj"),
    lora!("llama-8b-lora-24gb", "Llama 3.1 8B, LoRA on 24 GB", "The most asked question of all: 8 billion frozen weights in bf16 and adapters on one consumer card.",
        "rtx-4090-24gb", "llama-3.1-8b", "1" x "2048", "layers", "16", "q_proj,k_proj,v_proj,o_proj"),
    preset!("llama-8b-full-80gb", "Llama 3.1 8B, full fine-tuning on 80 GB", "Everything in bf16 on one H100, with the fused AdamW and checkpointing.",
        "h100-sxm5-80gb", "llama-3.1-8b", "1" x "4096", "bf16", "adamw-fused", "layers", "16"),
    lora!("mistral-7b-lora-24gb", "Mistral 7B, LoRA on 24 GB", "Adapters on the attention layers, two samples at a time.",
        "rtx-4090-24gb", "mistral-7b-v0.3", "2" x "2048", "layers", "8", "q_proj,k_proj,v_proj,o_proj"),
    preset!("qwen-0.5b-full-12gb", "Qwen2.5 0.5B, full fine-tuning on 12 GB", "A small model with a large vocabulary: the logits are what fills the card.",
        "rtx-3060-12gb", "qwen2.5-0.5b", "2" x "1024", "bf16", "adamw-fused", "layers", "8"),
    lora!("qwen-4b-lora-16gb", "Qwen3 4B, LoRA on 16 GB", "Adapters on the attention layers over a frozen base in bf16.",
        "rtx-4080-16gb", "qwen3-4b", "1" x "2048", "layers", "16", "q_proj,k_proj,v_proj,o_proj"),
    lora!("qwen-8b-lora-40gb", "Qwen3 8B, LoRA on 40 GB", "Four samples at a time on an A100.",
        "a100-sxm4-40gb", "qwen3-8b", "4" x "2048", "layers", "4", "q_proj,k_proj,v_proj,o_proj"),
    lora!("qwen-7b-lora-48gb", "Qwen2.5 7B, LoRA on 48 GB", "Four samples at a time on a workstation card.",
        "rtx-a6000-48gb", "qwen2.5-7b", "4" x "2048", "layers", "4", "q_proj,k_proj,v_proj,o_proj"),
    lora!("qwen-14b-lora-48gb", "Qwen2.5 14B, LoRA on 48 GB", "28 GB of frozen weights and room for two thousand tokens.",
        "rtx-a6000-48gb", "qwen2.5-14b", "1" x "2048", "layers", "16", "q_proj,k_proj,v_proj,o_proj"),
    lora!("qwen-32b-lora-80gb", "Qwen2.5 32B, LoRA on 80 GB", "61 GiB of frozen weights: what is left decides the sequence.",
        "h100-sxm5-80gb", "qwen2.5-32b", "1" x "1024", "layers", "16", "q_proj,k_proj,v_proj,o_proj"),
    preset!("smollm-135m-8gb", "SmolLM2 135M on 8 GB", "Full fine-tuning of a very small model; its activations are larger than it is.",
        "rtx-4060-8gb", "smollm2-135m", "2" x "1024", "amp-bf16", "adamw-fused", "none", "8"),
    preset!("bert-base-8gb", "BERT base, fine-tuning on 8 GB", "A classifier on short padded texts.",
        "rtx-4060-8gb", "bert-base-uncased", "32" x "128", "amp-bf16", "adamw", "none", "1", "data.padding_mask" = "on"),
    preset!("bert-large-16gb", "BERT large, fine-tuning on 16 GB", "A classifier on padded texts of up to 256 tokens.",
        "rtx-4080-16gb", "bert-large-uncased", "16" x "256", "amp-bf16", "adamw", "none", "1", "data.padding_mask" = "on"),
    preset!("roberta-large-24gb", "RoBERTa large, fine-tuning on 24 GB", "A classifier on padded texts of full length.",
        "rtx-4090-24gb", "roberta-large", "16" x "512", "amp-bf16", "adamw", "none", "1", "data.padding_mask" = "on"),
    lora!("mixtral-lora-141gb", "Mixtral 8×7B, LoRA on 141 GB", "47 billion frozen weights, of which a token meets 13, and adapters on attention.",
        "h200-sxm-141gb", "mixtral-8x7b", "1" x "1024", "layers", "1", "q_proj,k_proj,v_proj,o_proj"),
    preset!("t5-base-24gb", "T5 base, full fine-tuning on 24 GB", "An encoder-decoder with relative positions, on texts of 512 tokens.",
        "rtx-4090-24gb", "t5-base", "8" x "512", "amp-bf16", "adamw", "none", "1"),
    preset!("vit-base-24gb", "ViT-B/16, fine-tuning on 24 GB", "An image classifier at 224 pixels.",
        "rtx-4090-24gb", "vit-b16", "64" x "1", "amp-bf16", "adamw", "none", "1"),
    preset!("vit-large-24gb", "ViT-L/16, fine-tuning on 24 GB", "Three times the weights of the base model, half the batch.",
        "rtx-4090-24gb", "vit-l16", "32" x "1", "amp-bf16", "adamw", "none", "1"),
    preset!("resnet-50-16gb", "ResNet-50, training on 16 GB", "A convolutional classifier in channels-last order with SGD.",
        "rtx-4080-16gb", "resnet-50", "128" x "1", "amp-bf16", "sgd-momentum", "none", "1", "training.channels_last" = "on"),
    preset!("convnext-tiny-24gb", "ConvNeXt-T, training on 24 GB", "A modern convolutional classifier with AdamW.",
        "rtx-4090-24gb", "convnext-tiny", "64" x "1", "amp-bf16", "adamw", "none", "1"),
    preset!("clip-24gb", "CLIP ViT-B/32 on 24 GB", "Two towers and a contrastive loss over the batch.",
        "rtx-4090-24gb", "clip-vit-b32", "64" x "77", "amp-bf16", "adamw", "none", "1"),
    qlora!("llama-1b-qlora-8gb", "Llama 3.2 1B, QLoRA on 8 GB", "A small model in four bits, with long sequences on a small card.",
        "rtx-4060-8gb", "llama-3.2-1b", "1" x "2048", "16"),
    qlora!("mistral-7b-qlora-12gb", "Mistral 7B, QLoRA on 12 GB", "The recipe of the QLoRA paper on a mid-range card.",
        "rtx-3060-12gb", "mistral-7b-v0.3", "1" x "1024", "16"),
    qlora!("llama-8b-qlora-16gb", "Llama 3.1 8B, QLoRA on 16 GB", "The most asked question with four-bit weights: half the card is left for activations.",
        "rtx-4080-16gb", "llama-3.1-8b", "1" x "2048", "16"),
    qlora!("qwen-14b-qlora-24gb", "Qwen2.5 14B, QLoRA on 24 GB", "What LoRA in bf16 cannot hold on a consumer card, four bits can.",
        "rtx-4090-24gb", "qwen2.5-14b", "1" x "2048", "16"),
    qlora!("qwen-32b-qlora-48gb", "Qwen2.5 32B, QLoRA on 48 GB", "A large model on a workstation card.",
        "rtx-a6000-48gb", "qwen2.5-32b", "1" x "2048", "16"),
    qlora!("llama-70b-qlora-80gb", "Llama 3.1 70B, QLoRA on 80 GB", "Seventy billion weights on one data-centre card.",
        "h100-sxm5-80gb", "llama-3.1-70b", "1" x "2048", "16"),
    lora!("llama-13b-lora-48gb", "Llama 2 13B, LoRA on 48 GB", "Adapters on the attention layers over a frozen base in bf16.",
        "l40s-48gb", "llama-2-13b", "1" x "2048", "layers", "16", "q_proj,k_proj,v_proj,o_proj"),
    lora!("gemma-9b-lora-48gb", "Gemma 2 9B, LoRA on 48 GB", "A vocabulary of 256,000: the logits are as large as a layer's activations.",
        "rtx-6000-ada-48gb", "gemma-2-9b", "1" x "2048", "layers", "16", "q_proj,k_proj,v_proj,o_proj"),
    preset!("llama-3b-full-48gb", "Llama 3.2 3B, full fine-tuning on 48 GB", "All weights, gradients and states in bf16.",
        "rtx-a6000-48gb", "llama-3.2-3b", "1" x "2048", "bf16", "adamw-fused", "layers", "16"),
    preset!("gemma-270m-full-8gb", "Gemma 3 270M, full fine-tuning on 8 GB", "The smallest of its family: more than half of its weights are the vocabulary's.",
        "rtx-4060-8gb", "gemma-3-270m", "1" x "1024", "bf16", "adamw-fused", "layers", "16"),
    preset!("phi-2-full-80gb", "Phi-2, full fine-tuning on 80 GB", "2.8 billion weights kept in fp32 under autocast.",
        "a100-sxm4-80gb", "phi-2", "2" x "2048", "amp-bf16", "adamw-fused", "layers", "8"),
    lora!("sd-1.5-lora-8gb", "Stable Diffusion 1.5, LoRA on 8 GB", "Adapters on the U-Net's attention, from latents of 512² images.",
        "rtx-4060-8gb", "sd-1.5-unet", "1" x "77", "none", "4", "to_q,to_k,to_v"),
    preset!("sd-1.5-full-24gb", "Stable Diffusion 1.5, full fine-tuning on 24 GB", "The whole U-Net under autocast, from latents of 512² images.",
        "rtx-4090-24gb", "sd-1.5-unet", "1" x "77", "amp-fp16", "adamw-8bit", "layers", "4"),
    lora!("sdxl-lora-16gb", "Stable Diffusion XL, LoRA on 16 GB", "Adapters on the U-Net's attention, from latents of 1024² images.",
        "rtx-4080-16gb", "sdxl-unet", "1" x "77", "layers", "4", "to_q,to_k,to_v"),
    lora!("flux-lora-48gb", "FLUX.1-dev, LoRA on 48 GB", "Twelve billion frozen weights in bf16 and adapters on the attention.",
        "rtx-a6000-48gb", "flux.1-dev", "1" x "512", "layers", "4", "to_q,to_k,to_v"),
    preset!("whisper-small-16gb", "Whisper small, full fine-tuning on 16 GB", "Speech to text from windows of thirty seconds.",
        "rtx-4080-16gb", "whisper-small", "4" x "448", "amp-fp16", "adamw", "none", "4"),
    lora!("whisper-large-lora-16gb", "Whisper large-v3, LoRA on 16 GB", "Adapters on queries and values, the recipe of PEFT's example.",
        "rtx-4080-16gb", "whisper-large-v3", "2" x "448", "layers", "8", "q_proj,v_proj"),
    preset!("esm2-650m-24gb", "ESM-2 650M, fine-tuning on 24 GB", "A protein language model, all weights in fp32 under autocast.",
        "rtx-4090-24gb", "esm2-650m", "4" x "512", "amp-bf16", "adamw-fused", "layers", "4"),
    lora!("esm2-3b-lora-24gb", "ESM-2 3B, LoRA on 24 GB", "Adapters on a large protein model over a frozen base in bf16.",
        "rtx-4090-24gb", "esm2-3b", "2" x "512", "layers", "8", "query,key,value"),
    preset!("gcn-arxiv-8gb", "GCN on ogbn-arxiv, 8 GB", "A graph of 169,343 papers in one batch, three layers of graph convolution.",
        "rtx-4060-8gb", "gcn-arxiv", "1" x "1", "fp32", "adamw", "none", "1"),
    preset!("gat-arxiv-24gb", "GAT on ogbn-arxiv, 24 GB", "Attention over 1.2 million edges: each keeps a message for every head.",
        "rtx-4090-24gb", "gat-arxiv", "1" x "1", "fp32", "adamw", "none", "1"),
    preset!("lstm-wikitext2-8gb", "LSTM language model, 8 GB", "Two layers of 650 units, back-propagated through 35 steps.",
        "rtx-4060-8gb", "lstm-wikitext2", "20" x "35", "fp32", "sgd", "none", "1", "training.clip" = "on"),
];
