//! Sentences as people write them, each followed by its facts. What follows from others is shown, too.

use super::*;
use crate::report;
use headroom_base::document::Document;
use headroom_testing::Dice;

/// The facts of a sentence in one line; the model by its entry if it has one.
fn shown(text: &str) -> String {
    let facts = read(text);
    let json = report::json(&facts);
    let mut parts = Vec::new();
    if let Some(Document::Map(entries)) = json.get("facts") {
        let listed = entries
            .iter()
            .any(|entry| entry.key == "catalogue" && entry.value != Document::Null);
        for entry in entries {
            let hidden = if listed { "model" } else { "catalogue" };
            if entry.key != hidden {
                parts.push(format!("{} {}", entry.key, value(&entry.value)));
            }
        }
    }
    if let Some(gib) = facts.card_gib.value() {
        parts.push(format!("card_gib {gib}"));
    }
    for (name, fact) in [
        ("optimizer_in_backward", &facts.optimizer_in_backward),
        ("sequence_parallel", &facts.sequence_parallel),
    ] {
        if let Some(value) = fact.value() {
            parts.push(format!("{name} {value}"));
        }
    }
    if let Some(wanted) = facts.wanted {
        parts.push(format!("wanted {wanted:?}").to_lowercase());
    }
    if !facts.not_modelled.is_empty() {
        parts.push(format!("not modelled: {}", facts.not_modelled.join("; ")));
    }
    if !facts.unread.is_empty() {
        parts.push(format!("unread: {}", facts.unread.join("; ")));
    }
    if facts.refused.is_some() {
        parts.push("refused".into());
    }
    parts.join(", ")
}

fn value(value: &Document) -> String {
    match value {
        Document::Null => "none".into(),
        Document::Bool(value) => value.to_string(),
        Document::Int(value) => value.to_string(),
        Document::Number(value) => value.to_string(),
        Document::Text(text) => text.clone(),
        Document::List(items) => items.iter().map(self::value).collect::<Vec<_>>().join("+"),
        Document::Map(_) => "…".into(),
    }
}

#[track_caller]
fn check(table: &str) {
    let mut lines = table.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut wrong = String::new();
    while let (Some(text), Some(expected)) = (lines.next(), lines.next()) {
        let found = shown(text);
        if found != expected {
            wrong += &format!("{text}\n    {found}\n");
        }
    }
    assert!(wrong.is_empty(), "these differ:\n{wrong}");
}

#[test]
fn short_sentences_name_model_card_and_method() {
    check(
        r"
        llama 3.1 8b qlora 24gb
            catalogue llama-3.1-8b, gpus 1, weights nf4, adapter qlora, trained adapters, card_gib 24
        Fine-tune Mistral 7B with LoRA r=16 on a single A100 40GB
            catalogue mistral-7b-v0.1, gpu a100-sxm4-40gb, gpus 1, adapter lora, rank 16, trained adapters
        finetune qwen3-8b full on 4xA100 80GB zero3 seq 4096 bs 1
            catalogue qwen3-8b, micro_batch 1, sequence 4096, gpu a100-sxm4-80gb, gpus 4, strategy zero3, adapter none, trained all
        Qwen2.5-72B-Instruct full SFT, 64 H100s, FSDP2, bf16, 8k context, flash attention
            catalogue qwen2.5-72b, task sft, sequence 8192, gpu h100-sxm5-80gb, gpus 64, strategy fsdp2, compute bf16 autocast, adapter none, trained all, attention flash
        can I train gemma-3-27b-it with qlora on a 3090?
            catalogue gemma-3-27b, gpu rtx-3090-24gb, gpus 1, weights nf4, adapter qlora, trained adapters
        gpt2 pretraining from scratch on a 3060 12gb batch 16 ctx 1024
            catalogue gpt2, task pretraining, micro_batch 16, sequence 1024, gpu rtx-3060-12gb, gpus 1, adapter none, trained all
        nanogpt gpt2 124m 8xA100 40GB batch 12 block size 1024 bf16 compile
            catalogue gpt2, trainer nanogpt, micro_batch 12, sequence 1024, gpu a100-sxm4-40gb, gpus 8, compute bf16 autocast, compile true
        deepseek-v3 full finetune how many H200?
            catalogue deepseek-v3, gpu h200-sxm-141gb, adapter none, trained all, wanted cards
        phi-4 lora rank 64 seq 4k batch 4 L40S
            catalogue phi-4, micro_batch 4, sequence 4096, gpu l40s-48gb, gpus 1, adapter lora, rank 64, trained adapters
        Llama-3.3-70B-Instruct DPO lora 4x H100 zero-3 batch 1 grad accum 8
            catalogue llama-3.3-70b, task dpo, micro_batch 1, accumulation 8, gpu h100-sxm5-80gb, gpus 4, strategy zero3, adapter lora, trained adapters
        grpo qwen2.5-7b 8 x a100-80gb vllm 16 generations prompt 512 completion 1024
            catalogue qwen2.5-7b, task grpo, sequence 1536, gpu a100-sxm4-80gb, gpus 8, samples 16
        bert-large fine tuning squad fp16 batch 32 seq 384 V100 16GB
            catalogue bert-large-uncased, task question-answering, micro_batch 32, sequence 384, gpu v100-sxm2-16gb, gpus 1, compute fp16 autocast
        roberta-base classification batch 64 length 256 rtx 3080
            catalogue roberta-base, task classification, micro_batch 64, sequence 256, gpu rtx-3080-10gb, gpus 1
        whisper large v3 lora 4090 batch 8
            catalogue whisper-large-v3, micro_batch 8, gpu rtx-4090-24gb, gpus 1, adapter lora, trained adapters
        sd 1.5 dreambooth 512x512 batch 1 8gb vram xformers 8bit adam
            catalogue sd-1.5-unet, task diffusion, micro_batch 1, height 512, width 512, gpus 1, optimizer adamw8bit, attention xformers, card_gib 8
        SDXL full fine-tune 1024x1024 batch 4 a100 bf16
            catalogue sdxl-unet, task diffusion, micro_batch 4, height 1024, width 1024, gpu a100-sxm4-80gb, gpus 1, compute bf16 autocast, adapter none, trained all
        flux.1-dev lora rank 16 fp8 base 1024 px on a 4060 ti 16gb
            catalogue flux.1-dev, task diffusion, height 1024, width 1024, gpu rtx-4060-ti-16gb, gpus 1, weights fp8, adapter lora, rank 16, trained adapters
        ViT-B/16 training on ImageNet, batch 512, 8x V100 32GB, DDP, AMP
            catalogue vit-b16, task classification, micro_batch 512, gpu v100-sxm2-32gb, gpus 8, strategy ddp, compute fp16 autocast
        resnet-50 ddp 4x 2080 ti batch 64 per gpu fp16
            catalogue resnet-50, micro_batch 64, gpu rtx-2080-ti-11gb, gpus 4, strategy ddp, compute fp16 autocast
        swin-t batch 128 4090 laptop
            catalogue swin-tiny, micro_batch 128, gpu rtx-4090-laptop-16gb, gpus 1
        llama-7b lora colab
            catalogue llama-7b, gpu t4-16gb, gpus 1, adapter lora, trained adapters
        mistral nemo 12b qlora rtx 4080 super 2k ctx
            catalogue mistral-nemo-12b, sequence 2048, gpu rtx-4080-super-16gb, gpus 1, weights nf4, adapter qlora, trained adapters
        smollm3 3b full ft 5070 ti
            catalogue smollm3-3b, gpu rtx-5070-ti-16gb, gpus 1, adapter none, trained all
        gemma 2 9b it dora r 32 rtx a5000
            catalogue gemma-2-9b, gpu rtx-a5000-24gb, gpus 1, adapter dora, rank 32, trained adapters
        2x3090 qlora 70b llama-2 fsdp 2k
            catalogue llama-2-70b, sequence 2048, gpu rtx-3090-24gb, gpus 2, strategy fsdp2, weights nf4, adapter qlora, trained adapters
        olmo 2 13b pretrain 16 nodes 8xH100 hsdp seq 4096 mbs 2
            catalogue olmo-2-13b, task pretraining, micro_batch 2, sequence 4096, gpu h100-sxm5-80gb, gpus 128, nodes 16, strategy hsdp, adapter none, trained all
        mixtral 8x22b qlora 8xa100 80gb
            catalogue mixtral-8x22b, gpu a100-sxm4-80gb, gpus 8, weights nf4, adapter qlora, trained adapters
        Qwen3-235B-A22B lora megatron tp4 ep8 pp2 32 H100
            catalogue qwen3-235b-a22b, trainer megatron, gpu h100-sxm5-80gb, gpus 32, strategy tp4+pp2+ep8, adapter lora, trained adapters
        t5-base seq2seq batch 16 512 tokens T4
            catalogue t5-base, task seq2seq, micro_batch 16, sequence 512, gpu t4-16gb, gpus 1
        flan-t5-xl lora int8 a10g
            catalogue flan-t5-xl, gpu a10g-24gb, gpus 1, weights int8, adapter lora, trained adapters
        esm2 3b lora 1024 aa a6000
            catalogue esm2-3b, sequence 1024, gpu rtx-a6000-48gb, gpus 1, adapter lora, trained adapters
        dinov2-vitl14 linear probe a5000 batch 256
            catalogue dinov2-vitl14, task classification, micro_batch 256, gpu rtx-a5000-24gb, gpus 1, adapter none, trained head
        mamba 1.4b pretrain seq 2048 batch 8 4090
            catalogue mamba-1.4b, task pretraining, micro_batch 8, sequence 2048, gpu rtx-4090-24gb, gpus 1, adapter none, trained all
        modernbert base mlm 8192 batch 4 H100
            catalogue modernbert-base, task masked-lm, micro_batch 4, sequence 8192, gpu h100-sxm5-80gb, gpus 1, adapter none, trained all
        bge large contrastive batch 128 seq 512 a100
            catalogue bge-large-en-v1.5, task contrastive, micro_batch 128, sequence 512, gpu a100-sxm4-80gb, gpus 1
        reward model llama 3 8b 4 x a6000 zero2 batch 2 2048
            catalogue llama-3-8b, task reward, micro_batch 2, sequence 2048, gpu rtx-a6000-48gb, gpus 4, strategy zero2
        kto mistral-7b-instruct-v0.2 l4
            catalogue mistral-7b-v0.1, task kto, gpu l4-24gb, gpus 1
        orpo llama-3-8b qlora unsloth 2048 batch 2 ga 4 T4
            catalogue llama-3-8b, trainer unsloth, task orpo, micro_batch 2, accumulation 4, sequence 2048, gpu t4-16gb, gpus 1, weights nf4, adapter qlora, trained adapters
        ppo llama 3.2 1b 4090 batch 8
            catalogue llama-3.2-1b, task ppo, micro_batch 8, gpu rtx-4090-24gb, gpus 1
        simpo gemma-2-9b 8 h100 zero3
            catalogue gemma-2-9b, task simpo, gpu h100-sxm5-80gb, gpus 8, strategy zero3
        distill llama 3.1 8b into 1b
            catalogue llama-3.1-8b, task distillation, unread: 1b
        codellama 34b qlora 2xA6000 4096
            catalogue codellama-34b, sequence 4096, gpu rtx-a6000-48gb, gpus 2, weights nf4, adapter qlora, trained adapters
        starcoder2-15b lora a100 80gb 8192 tokens
            catalogue starcoder2-15b, sequence 8192, gpu a100-sxm4-80gb, gpus 1, adapter lora, trained adapters
        llava 1.5 7b lora 2x4090
            catalogue llava-1.5-7b, gpu rtx-4090-24gb, gpus 2, adapter lora, trained adapters
        qwen2.5-vl-7b full finetune 8 h100 zero 3 freeze vision
            catalogue qwen2.5-vl-7b, gpu h100-sxm5-80gb, gpus 8, strategy zero3, adapter none, trained all, unread: freeze vision
        paligemma 3b 448px lora 3090
            catalogue paligemma-3b, height 448, width 448, gpu rtx-3090-24gb, gpus 1, adapter lora, trained adapters
        tinyllama 1.1b full finetune adafactor 8gb 2070 seq 512
            catalogue tinyllama-1.1b, sequence 512, gpu rtx-2070-8gb, gpus 1, adapter none, trained all, optimizer adafactor
        falcon 40b qlora a100
            catalogue falcon-40b, gpu a100-sxm4-80gb, gpus 1, weights nf4, adapter qlora, trained adapters
        pythia-1.4b pretrain adamw fp32 seq 2048 bs 4 v100
            catalogue pythia-1.4b, task pretraining, micro_batch 4, sequence 2048, gpu v100-sxm2-16gb, gpus 1, compute fp32, adapter none, trained all, optimizer adamw
        gpt-neox-20b zero3 offload 4x3090
            catalogue gpt-neox-20b, gpu rtx-3090-24gb, gpus 4, strategy zero3, offload both
        ",
    );
}

#[test]
fn questions_and_long_sentences() {
    check(
        r"
        what's the max batch size for llama 3.2 3b full finetune on a 4090 at 2k?
            catalogue llama-3.2-3b, sequence 2048, gpu rtx-4090-24gb, gpus 1, adapter none, trained all, wanted batch
        longest context for qlora qwen2.5-14b on 24GB?
            catalogue qwen2.5-14b, gpus 1, weights nf4, adapter qlora, trained adapters, card_gib 24, wanted length
        which gpu do I need for a 7B LoRA at 4096?
            sequence 4096, adapter lora, trained adapters, wanted cheapest
        how many A100 80GB to pretrain a llama 70b with 4k context, zero3?
            catalogue llama-3.1-70b, task pretraining, sequence 4096, gpu a100-sxm4-80gb, strategy zero3, adapter none, trained all, wanted cards
        Whats the cheapest card for sdxl lora?
            catalogue sdxl-unet, task diffusion, adapter lora, trained adapters, wanted cheapest
        What GPU should I buy to fine-tune Mistral-7B with QLoRA?
            catalogue mistral-7b-v0.1, weights nf4, adapter qlora, trained adapters, wanted cheapest
        will llama3 8b fit on my 12GB 4070 with 4-bit lora, batch size 1?
            catalogue llama-3-8b, micro_batch 1, gpu rtx-4070-12gb, gpus 1, weights nf4, adapter qlora, trained adapters
        lama 3.1 8b lora 4090
            catalogue llama-3.1-8b, gpu rtx-4090-24gb, gpus 1, adapter lora, trained adapters
        llama3.1-8b-instruct, lora (r=64, alpha=128), seq_len=8192, bs=2, grad_accum=8, 1xH100
            catalogue llama-3.1-8b, micro_batch 2, accumulation 8, sequence 8192, gpu h100-sxm5-80gb, gpus 1, adapter lora, rank 64, trained adapters
        LoRA r8 alpha 16 dropout 0.05 lr 2e-4 3 epochs llama-2-13b-chat-hf batch 4 1x A6000
            catalogue llama-2-13b, micro_batch 4, gpu rtx-a6000-48gb, gpus 1, adapter lora, rank 8, trained adapters
        qwen2.5 7b instrcut qlroa 3090 sequnce 4096
            catalogue qwen2.5-7b, sequence 4096, gpu rtx-3090-24gb, gpus 1, weights nf4, adapter qlora, trained adapters
        mistral 7b v0.3 fsdp 8xL4 bf16 4096 tokens micro batch 1 gradient acumulation 16
            catalogue mistral-7b-v0.3, micro_batch 1, accumulation 16, sequence 4096, gpu l4-24gb, gpus 8, strategy fsdp2, compute bf16 autocast
        Qwen3 32B full-parameter SFT on 2 nodes x 8 H200, ZeRO-3, 16k tokens
            catalogue qwen3-32b, task sft, sequence 16384, gpu h200-sxm-141gb, gpus 16, nodes 2, strategy zero3, adapter none, trained all
        pretrain 1.3b opt on h100x8 ddp batch=16 seq=2048
            catalogue opt-1.3b, task pretraining, micro_batch 16, sequence 2048, gpu h100-sxm5-80gb, gpus 8, strategy ddp, adapter none, trained all
        8 x mi300x llama-3.1-405b lora
            catalogue llama-3.1-405b, gpu mi300x-192gb, gpus 8, adapter lora, trained adapters
        llama 3 8b mi250x
            catalogue llama-3-8b, gpu mi250x-64gb-gcd, gpus 1
        meta-llama/Llama-3.1-8B-Instruct + peft + bitsandbytes 4bit on RTX 4070 Ti SUPER
            catalogue llama-3.1-8b, gpu rtx-4070-ti-super-16gb, gpus 1, weights nf4, adapter qlora, trained adapters
        google/gemma-2-27b-it sft trl deepspeed zero3 8xA100
            catalogue gemma-2-27b, trainer trl, task sft, gpu a100-sxm4-80gb, gpus 8, strategy zero3
        unsloth/mistral-7b-v0.3-bnb-4bit orpo 4096 rtx 3060
            catalogue mistral-7b-v0.3, task orpo, sequence 4096, gpu rtx-3060-12gb, gpus 1, weights nf4, adapter qlora, trained adapters
        TheBloke/Llama-2-7B-GPTQ lora t4
            catalogue llama-2-7b, gpu t4-16gb, gpus 1, weights gptq int4, adapter lora, trained adapters
        Qwen/Qwen2.5-7B-Instruct-AWQ lora 3090
            catalogue qwen2.5-7b, gpu rtx-3090-24gb, gpus 1, weights awq int4, adapter lora, trained adapters
        llama 3.2 1b gguf lora
            catalogue llama-3.2-1b, adapter lora, trained adapters, refused
        deepseek r1 distill qwen 7b grpo lora 2xA100-40GB
            catalogue qwen2.5-7b, task grpo, gpu a100-sxm4-40gb, gpus 2, adapter lora, trained adapters
        deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B grpo 8xH100
            catalogue deepseek-r1-distill-qwen-1.5b, task grpo, gpu h100-sxm5-80gb, gpus 8
        gpt-oss-120b lora 8xh100 fp8
            catalogue gpt-oss-120b, gpu h100-sxm5-80gb, gpus 8, compute bf16 with fp8 matmuls, adapter lora, trained adapters
        llama 4 scout lora 8xh100
            catalogue llama-4-scout, gpu h100-sxm5-80gb, gpus 8, adapter lora, trained adapters
        kimi k2 full finetune 256 H800 tp8 pp8 ep16
            catalogue kimi-k2, gpu h800-sxm5-80gb, gpus 256, strategy tp8+pp8+ep16, adapter none, trained all
        glm-4.5-air lora 4x h200
            catalogue glm-4.5-air, gpu h200-sxm-141gb, gpus 4, adapter lora, trained adapters
        Command R 35b qlora 48gb
            catalogue command-r-35b, gpus 1, weights nf4, adapter qlora, trained adapters, card_gib 48
        phi 3.5 mini full fine tuning paged adamw 8bit 24GB gradient checkpointing seq 2048 bs 8
            catalogue phi-3.5-mini, micro_batch 8, sequence 2048, gpus 1, adapter none, trained all, optimizer paged_adamw_8bit, checkpointing true, card_gib 24
        bert base mlm bs 256 seq 128 amp 8 gpus v100
            catalogue bert-base-uncased, task masked-lm, micro_batch 256, sequence 128, gpu v100-sxm2-16gb, gpus 8, compute fp16 autocast, adapter none, trained all
        xlm-roberta-large token classification batch 32 seq 256 3090 ti
            catalogue xlm-roberta-large, task token-classification, micro_batch 32, sequence 256, gpu rtx-3090-ti-24gb, gpus 1
        electra small pretrain batch 128 seq 128 t4 fp16
            catalogue electra-small, task pretraining, micro_batch 128, sequence 128, gpu t4-16gb, gpus 1, compute fp16 autocast, adapter none, trained all
        deberta v3 large fp16 batch 8 len 512 rtx 2080ti gradient checkpointing
            catalogue deberta-v3-large, micro_batch 8, sequence 512, gpu rtx-2080-ti-11gb, gpus 1, compute fp16 autocast, checkpointing true
        convnext-base batch 64 384px a100 ema
            catalogue convnext-base, micro_batch 64, height 384, width 384, gpu a100-sxm4-80gb, gpus 1, ema true
        efficientnet-b4 batch 32 380x380 rtx 3070
            catalogue efficientnet-b4, micro_batch 32, height 380, width 380, gpu rtx-3070-8gb, gpus 1
        dinov2 vit-l 518px batch 8 a6000
            catalogue dinov2-large, micro_batch 8, height 518, width 518, gpu rtx-a6000-48gb, gpus 1
        segment anything vit-b fine tuning 1024 v100 32gb
            catalogue sam-vit-b, height 1024, width 1024, gpu v100-sxm2-32gb, gpus 1
        clip vit-l/14 contrastive batch 256 8xA100 bf16
            catalogue clip-vit-l14, task contrastive, micro_batch 256, gpu a100-sxm4-80gb, gpus 8, compute bf16 autocast
        mae vit-b pretraining batch 512 a100
            catalogue mae-vit-b-pretrain, task pretraining, micro_batch 512, gpu a100-sxm4-80gb, gpus 1, adapter none, trained all
        wav2vec2 base ctc batch 8 fp16 t4
            catalogue wav2vec2-base, task ctc, micro_batch 8, gpu t4-16gb, gpus 1, compute fp16 autocast
        stable diffusion 3.5 large lora 1024 bf16 4090 gradient checkpointing
            catalogue sd3.5-large, task diffusion, height 1024, width 1024, gpu rtx-4090-24gb, gpus 1, compute bf16 autocast, adapter lora, trained adapters, checkpointing true
        flux dev full finetune 512 h100 adafactor cache latents
            catalogue flux.1-dev, task diffusion, height 512, width 512, gpu h100-sxm5-80gb, gpus 1, adapter none, trained all, optimizer adafactor, cached_latents true
        pixart sigma 1024 batch 8 a100 40gb
            catalogue pixart-sigma-xl-2-1024, task diffusion, micro_batch 8, height 1024, width 1024, gpu a100-sxm4-40gb, gpus 1
        sd 2.1 unet batch 4 768 fp16 3080 ti
            catalogue sd-2.1-unet, task diffusion, micro_batch 4, height 768, width 768, gpu rtx-3080-ti-12gb, gpus 1, compute fp16 autocast
        esm2 650m full batch 8 1022 residues a100 40 bf16
            catalogue esm2-650m, micro_batch 8, sequence 1022, gpu a100-sxm4-40gb, gpus 1, compute bf16 autocast, adapter none, trained all
        alphafold2 fine tuning crop 384 a100
            catalogue alphafold2-model1, sequence 384, gpu a100-sxm4-80gb, gpus 1
        mace mp0 medium batch 16 4090
            catalogue mace-mp0-medium, micro_batch 16, gpu rtx-4090-24gb, gpus 1
        openfold 8 a100 ddp bf16
            catalogue alphafold2-model1, gpu a100-sxm4-80gb, gpus 8, strategy ddp, compute bf16 autocast
        rwkv 169m pretrain 1024 tokens 3060
            catalogue rwkv-4-169m, task pretraining, sequence 1024, gpu rtx-3060-12gb, gpus 1, adapter none, trained all
        ",
    );
}

#[test]
fn cards_have_many_names() {
    check(
        r"
        256 H800 kimi k2 full finetune tp8 pp8 ep16
            catalogue kimi-k2, gpu h800-sxm5-80gb, gpus 256, strategy tp8+pp8+ep16, adapter none, trained all
        qwen3 8b 1024 tokens lora 3090
            catalogue qwen3-8b, sequence 1024, gpu rtx-3090-24gb, gpus 1, adapter lora, trained adapters
        qwen3 8b 8k lora 3090
            catalogue qwen3-8b, sequence 8192, gpu rtx-3090-24gb, gpus 1, adapter lora, trained adapters
        llama 3.1 8b unsloth qlora T4
            catalogue llama-3.1-8b, trainer unsloth, gpu t4-16gb, gpus 1, weights nf4, adapter qlora, trained adapters
        gemma-3-4b-it transformers full ft bf16 1024 4070
            catalogue gemma-3-4b, trainer transformers, sequence 1024, gpu rtx-4070-12gb, gpus 1, compute bf16 autocast, adapter none, trained all
        sdxl 1024 a100 lora
            catalogue sdxl-unet, task diffusion, height 1024, width 1024, gpu a100-sxm4-80gb, gpus 1, adapter lora, trained adapters
        512 v100 gpt-neox-20b pretraining megatron tp8 pp2
            catalogue gpt-neox-20b, trainer megatron, task pretraining, gpu v100-sxm2-16gb, gpus 512, strategy tp8+pp2, adapter none, trained all
        llama-3-8b-bnb-4bit 2048 unsloth colab T4 rank 16 batch 2
            catalogue llama-3-8b, trainer unsloth, micro_batch 2, sequence 2048, gpu t4-16gb, gpus 1, weights nf4, adapter qlora, rank 16, trained adapters
        llama3:8b lora
            catalogue llama-3-8b, adapter lora, trained adapters
        1x RTX PRO 6000 Blackwell gemma 3 27b lora
            catalogue gemma-3-27b, gpu rtx-pro-6000-blackwell-96gb, gpus 1, adapter lora, trained adapters
        RTX 6000 Ada qwen 32b qlora
            catalogue qwen2.5-32b, gpu rtx-6000-ada-48gb, gpus 1, weights nf4, adapter qlora, trained adapters
        rtx 6000 pro llama 70b qlora
            catalogue llama-3.1-70b, gpu rtx-pro-6000-blackwell-96gb, gpus 1, weights nf4, adapter qlora, trained adapters
        GH200 llama 3 8b full
            catalogue llama-3-8b, gpu gh200-96gb, gpus 1, adapter none, trained all
        GB200 x4 llama 70b fsdp full
            catalogue llama-3.1-70b, gpu gb200-186gb, gpus 4, strategy fsdp2, adapter none, trained all
        b200 x 8 qwen3 235b a22b lora
            catalogue qwen3-235b-a22b, gpu b200-180gb, gpus 8, adapter lora, trained adapters
        8xb300 deepseek v3
            catalogue deepseek-v3, gpu b300-288gb, gpus 8
        MI325X llama 70b lora
            catalogue llama-3.1-70b, gpu mi325x-256gb, gpus 1, adapter lora, trained adapters
        7900 xtx mistral 7b lora rocm
            catalogue mistral-7b-v0.1, gpu rx-7900-xtx-24gb, gpus 1, adapter lora, trained adapters
        rx 6900xt sd1.5 lora
            catalogue sd-1.5-unet, task diffusion, gpu rx-6900-xt-16gb, gpus 1, adapter lora, trained adapters
        arc a770 gemma 2b
            catalogue gemma-2b, gpu arc-a770-16gb, gpus 1
        M3 Max 128GB llama 8b lora
            catalogue llama-3.1-8b, gpu apple-m3-max-128gb, gpus 1, adapter lora, trained adapters
        macbook m2 max qlora 7b mistral
            catalogue mistral-7b-v0.1, gpu apple-m2-max-32gb, gpus 1, weights nf4, adapter qlora, trained adapters
        apple m4 pro smollm2 1.7b
            catalogue smollm2-1.7b, gpu apple-m4-pro-24gb, gpus 1
        tpu v4 t5 base
            catalogue t5-base, gpu tpu-v4, gpus 1
        tpu v5e-8 gemma 2b
            catalogue gemma-2b, gpu tpu-v5e, gpus 8
        laptop 4060 qwen2.5 1.5b qlora
            catalogue qwen2.5-1.5b, gpu rtx-4060-laptop-8gb, gpus 1, weights nf4, adapter qlora, trained adapters
        RTX 3060 laptop phi-2 lora
            catalogue phi-2, gpu rtx-3060-laptop-6gb, gpus 1, adapter lora, trained adapters
        4070 mobile lora sd15
            catalogue sd-1.5-unet, task diffusion, gpu rtx-4070-laptop-8gb, gpus 1, adapter lora, trained adapters
        jetson orin nano llama 3.2 1b lora
            catalogue llama-3.2-1b, adapter lora, trained adapters
        gtx 1080 ti resnet50 batch 64
            catalogue resnet-50, micro_batch 64, gpu gtx-1080-ti-11gb, gpus 1
        1660 ti bert base batch 8
            catalogue bert-base-uncased, micro_batch 8, gpu gtx-1660-ti-6gb, gpus 1
        titan rtx roberta large batch 16
            catalogue roberta-large, micro_batch 16, gpu titan-rtx-24gb, gpus 1
        titan v bert-large fp16
            catalogue bert-large-uncased, gpu titan-v-12gb, gpus 1, compute fp16 autocast
        p100 kaggle deberta v3 base batch 8
            catalogue deberta-v3-base, micro_batch 8, gpu p100-pcie-16gb, gpus 1
        2x T4 kaggle mistral 7b qlora
            catalogue mistral-7b-v0.1, gpu t4-16gb, gpus 2, weights nf4, adapter qlora, trained adapters
        T4 x2 qlora llama 8b ddp
            catalogue llama-3.1-8b, gpu t4-16gb, gpus 2, strategy ddp, weights nf4, adapter qlora, trained adapters
        quadro rtx 8000 llama 7b lora
            catalogue llama-7b, gpu quadro-rtx-8000-48gb, gpus 1, adapter lora, trained adapters
        quadro rtx 6000 bert large
            catalogue bert-large-uncased, gpu quadro-rtx-6000-24gb, gpus 1
        A4000 vit base batch 64
            catalogue vit-b16, micro_batch 64, gpu rtx-a4000-16gb, gpus 1
        a4500 whisper small
            catalogue whisper-small, gpu rtx-a4500-20gb, gpus 1
        a2000 12gb whisper medium lora
            catalogue whisper-medium, gpu rtx-a2000-12gb, gpus 1, adapter lora, trained adapters
        a16 resnet 18 batch 32
            catalogue resnet-18, micro_batch 32, gpu a16-16gb, gpus 1
        a30 24gb llama 3 8b qlora
            catalogue llama-3-8b, gpu a30-24gb, gpus 1, weights nf4, adapter qlora, trained adapters
        a40 llama 13b lora
            catalogue llama-13b, gpu a40-48gb, gpus 1, adapter lora, trained adapters
        a10 mistral 7b qlora
            catalogue mistral-7b-v0.1, gpu a10-24gb, gpus 1, weights nf4, adapter qlora, trained adapters
        L20 qwen2.5 14b lora
            catalogue qwen2.5-14b, gpu l20-48gb, gpus 1, adapter lora, trained adapters
        H20 x8 qwen2.5 72b full zero3
            catalogue qwen2.5-72b, gpu h20-96gb, gpus 8, strategy zero3, adapter none, trained all
        h800 deepseek v2 lite full
            catalogue deepseek-v2-lite, gpu h800-sxm5-80gb, gpus 1, adapter none, trained all
        A800 yi 34b lora
            catalogue yi-34b, gpu a800-sxm4-80gb, gpus 1, adapter lora, trained adapters
        H100 PCIe llama 3 8b
            catalogue llama-3-8b, gpu h100-pcie-80gb, gpus 1
        H100 NVL llama 70b qlora
            catalogue llama-3.1-70b, gpu h100-nvl-94gb, gpus 1, weights nf4, adapter qlora, trained adapters
        h100 96gb llama
            gpu h100-hbm2e-96gb, gpus 1, unread: llama
        v100 32gb x4 bloom 7b1 zero2 fp16
            catalogue bloom-7b1, gpu v100-sxm2-32gb, gpus 4, strategy zero2, compute fp16 autocast
        V100S llama 7b lora
            catalogue llama-7b, gpu v100s-pcie-32gb, gpus 1, adapter lora, trained adapters
        4x V100s gpt2 xl ddp
            catalogue gpt2-xl, gpu v100-sxm2-16gb, gpus 4, strategy ddp
        3090ti flux lora
            catalogue flux.1-dev, task diffusion, gpu rtx-3090-ti-24gb, gpus 1, adapter lora, trained adapters
        4090d qwen 14b qlora
            catalogue qwen2.5-14b, gpu rtx-4090-d-24gb, gpus 1, weights nf4, adapter qlora, trained adapters
        5060 ti 16gb sdxl lora
            catalogue sdxl-unet, task diffusion, gpu rtx-5060-ti-16gb, gpus 1, adapter lora, trained adapters
        5080 sdxl lora batch 2
            catalogue sdxl-unet, task diffusion, micro_batch 2, gpu rtx-5080-16gb, gpus 1, adapter lora, trained adapters
        5070 laptop sd15
            catalogue sd-1.5-unet, task diffusion, gpu rtx-5070-laptop-8gb, gpus 1
        5090 laptop llama 8b
            catalogue llama-3.1-8b, gpu rtx-5090-laptop-24gb, gpus 1
        g5.12xlarge llama 3 8b lora fsdp
            catalogue llama-3-8b, gpu a10g-24gb, gpus 4, strategy fsdp2, adapter lora, trained adapters
        p4d.24xlarge llama 2 70b qlora
            catalogue llama-2-70b, gpu a100-sxm4-40gb, gpus 8, weights nf4, adapter qlora, trained adapters
        p5.48xlarge llama 70b full fsdp
            catalogue llama-3.1-70b, gpu h100-sxm5-80gb, gpus 8, strategy fsdp2, adapter none, trained all
        g4dn.xlarge bert base batch 16
            catalogue bert-base-uncased, micro_batch 16, gpu t4-16gb, gpus 1
        g6e.xlarge llama 8b lora
            catalogue llama-3.1-8b, gpu l40s-48gb, gpus 1, adapter lora, trained adapters
        dgx a100 llama 2 13b full zero3
            catalogue llama-2-13b, gpu a100-sxm4-80gb, gpus 8, strategy zero3, adapter none, trained all
        dgx spark gpt-oss-20b lora
            catalogue gpt-oss-20b, adapter lora, trained adapters
        gaudi 2 llama 8b lora
            catalogue llama-3.1-8b, gpu gaudi2-96gb, gpus 1, adapter lora, trained adapters
        W7900 sdxl lora
            catalogue sdxl-unet, task diffusion, gpu radeon-pro-w7900-48gb, gpus 1, adapter lora, trained adapters
        9070 xt lora sdxl
            catalogue sdxl-unet, task diffusion, gpu rx-9070-xt-16gb, gpus 1, adapter lora, trained adapters
        A6000 ada llama 8b
            catalogue llama-3.1-8b, gpu rtx-6000-ada-48gb, gpus 1
        ",
    );
}

#[test]
fn programs_strategies_and_sizes() {
    check(
        r"
        apple m1 ultra 128gb llama 13b lora
            catalogue llama-13b, gpu apple-m1-ultra-128gb, gpus 1, adapter lora, trained adapters
        flux lora training, 16gb vram, 768 resolution
            catalogue flux.1-dev, task diffusion, height 768, width 768, gpus 1, adapter lora, trained adapters, card_gib 16
        Train SDXL LoRA at 1024x1024, batch size 2, network dim 64, kohya, RTX 3090
            catalogue sdxl-unet, trainer kohya, task diffusion, micro_batch 2, height 1024, width 1024, gpu rtx-3090-24gb, gpus 1, adapter lora, rank 64, trained adapters
        Full finetune of Llama 3 8B on 8 A100s (80GB) with DeepSpeed ZeRO Stage 2, sequence length 2048, per device batch size 2, gradient accumulation steps 8
            catalogue llama-3-8b, micro_batch 2, accumulation 8, sequence 2048, gpu a100-sxm4-80gb, gpus 8, strategy zero2, adapter none, trained all
        SFT Qwen/Qwen2.5-7B using TRL with packing, liger kernel and flash attention 2, max_seq_length=4096, per_device_train_batch_size=4 on 2x A100-SXM4-80GB
            catalogue qwen2.5-7b, trainer trl, task sft, micro_batch 4, sequence 4096, gpu a100-sxm4-80gb, gpus 2, attention flash, liger true, packing true
        llama factory lora qwen2.5-14b cutoff_len 2048 4x4090 ds z3
            catalogue qwen2.5-14b, trainer llamafactory, sequence 2048, gpu rtx-4090-24gb, gpus 4, strategy zero3, adapter lora, trained adapters
        axolotl fsdp qlora llama-3-70b 4x24GB sequence_len 4096 micro_batch_size 1
            catalogue llama-3-70b, trainer axolotl, micro_batch 1, sequence 4096, gpus 4, strategy fsdp2, weights nf4, adapter qlora, trained adapters, card_gib 24
        torchtune full finetune llama 3.2 3b 24GB optimizer in backward 8bit adam
            catalogue llama-3.2-3b, trainer torchtune, gpus 1, adapter none, trained all, optimizer adamw8bit, card_gib 24, optimizer_in_backward true
        ms-swift qwen2.5-vl-72b lora 8xA100 zero3 offload
            catalogue qwen2.5-vl-72b, trainer ms-swift, gpu a100-sxm4-80gb, gpus 8, strategy zero3, offload both, adapter lora, trained adapters
        torchtitan llama 3.1 8b 64 H100 fsdp2 float8 compile local batch size 2 seq 8192
            catalogue llama-3.1-8b, trainer torchtitan, micro_batch 2, sequence 8192, gpu h100-sxm5-80gb, gpus 64, strategy fsdp2, compute bf16 with fp8 matmuls, compile true
        verl grpo qwen2.5-32b 16xH100 rollout n=8
            catalogue qwen2.5-32b, trainer verl, task grpo, gpu h100-sxm5-80gb, gpus 16, samples 8
        openrlhf ppo llama-3-8b 8 gpus a100 80gb zero 3
            catalogue llama-3-8b, trainer openrlhf, task ppo, gpu a100-sxm4-80gb, gpus 8, strategy zero3
        litgpt pretrain tinyllama 1.1b 4xA100 bs 8
            catalogue tinyllama-1.1b, trainer litgpt, task pretraining, micro_batch 8, gpu a100-sxm4-80gb, gpus 4, adapter none, trained all
        lightning bert base classification batch 64 4 gpus t4
            catalogue bert-base-uncased, trainer lightning, task classification, micro_batch 64, gpu t4-16gb, gpus 4
        I have two 3090s, can I QLoRA a 70B llama at 4k?
            catalogue llama-3.1-70b, sequence 4096, gpu rtx-3090-24gb, gpus 2, weights nf4, adapter qlora, trained adapters
        Do 4x RTX A5000 fit full fine-tuning of phi-2 with seq 2048?
            catalogue phi-2, sequence 2048, gpu rtx-a5000-24gb, gpus 4, adapter none, trained all
        How long a sequence fits with llama 3.1 8b qlora on a 3090?
            catalogue llama-3.1-8b, gpu rtx-3090-24gb, gpus 1, weights nf4, adapter qlora, trained adapters, wanted length
        minimum GPUs to full finetune qwen2.5-32b with fsdp at 8k
            catalogue qwen2.5-32b, sequence 8192, strategy fsdp2, adapter none, trained all, wanted cards
        How much VRAM for Llama 3 8B full fine-tune?
            catalogue llama-3-8b, adapter none, trained all
        how much memory does lora on gemma 2b take with batch 8 and 512 tokens
            catalogue gemma-2b, micro_batch 8, sequence 512, adapter lora, trained adapters
        gpt2-xl, 16 gb, batch 4
            catalogue gpt2-xl, micro_batch 4, gpus 1, card_gib 16
        70B full FT 8xH100
            gpu h100-sxm5-80gb, gpus 8, adapter none, trained all
        QLoRA 8B 8GB
            gpus 1, weights nf4, adapter qlora, trained adapters, card_gib 8
        8x4096 llama 3 8b h100
            catalogue llama-3-8b, micro_batch 8, sequence 4096, gpu h100-sxm5-80gb, gpus 1
        batch 4x8192 tokens qwen3-4b full l40s
            catalogue qwen3-4b, micro_batch 4, sequence 8192, gpu l40s-48gb, gpus 1, adapter none, trained all
        no gradient checkpointing, llama 3.2 1b full, 4090, bs 4 x 2048
            catalogue llama-3.2-1b, micro_batch 4, sequence 2048, gpu rtx-4090-24gb, gpus 1, adapter none, trained all, checkpointing false
        gradient checkpointing off mistral 7b lora a100
            catalogue mistral-7b-v0.1, gpu a100-sxm4-80gb, gpus 1, adapter lora, trained adapters, checkpointing false
        llama 7B w/o lora 80gb
            catalogue llama-7b, gpus 1, adapter none, trained all, card_gib 80
        lora without flash attention llama-2-7b v100
            catalogue llama-2-7b, gpu v100-sxm2-16gb, gpus 1, adapter lora, trained adapters
        train mistral-7b in pure bf16 with adamw on h100 at 8192
            catalogue mistral-7b-v0.1, sequence 8192, gpu h100-sxm5-80gb, gpus 1, compute bf16, optimizer adamw
        mixed precision bert-large 3090 bs 16 x 512
            catalogue bert-large-uncased, micro_batch 16, sequence 512, gpu rtx-3090-24gb, gpus 1, compute bf16 autocast
        gemma-2b lora 4k ctx 1x16GB gpu
            catalogue gemma-2b, sequence 4096, gpus 1, adapter lora, trained adapters, card_gib 16
        llama-3.1-70b lora r=8 all-linear 2xH200 bf16 ctx 16384
            catalogue llama-3.1-70b, sequence 16384, gpu h200-sxm-141gb, gpus 2, compute bf16 autocast, adapter lora, rank 8, targets all-linear, trained adapters
        llama3 70b 2 nodes 8xA100-80G tp=8 pp=2 seq=4096 gbs=64 mbs=1
            catalogue llama-3-70b, micro_batch 1, accumulation 64, sequence 4096, gpu a100-sxm4-80gb, gpus 16, nodes 2, strategy tp8+pp2
        16xH100 (2 nodes) zero3 qwen2.5-72b 4096
            catalogue qwen2.5-72b, sequence 4096, gpu h100-sxm5-80gb, gpus 16, nodes 2, strategy zero3
        128 GPUs A100 80GB llama 2 70b pretraining tp 8 pp 4 dp 4
            catalogue llama-2-70b, task pretraining, gpu a100-sxm4-80gb, gpus 128, strategy tp8+pp4, adapter none, trained all
        tp4 pp4 dp8 gpt-neox 20b on a100
            catalogue gpt-neox-20b, gpu a100-sxm4-80gb, gpus 128, strategy tp4+pp4
        8 H100s across 2 nodes, llama 3 70b lora fsdp
            catalogue llama-3-70b, gpu h100-sxm5-80gb, gpus 8, nodes 2, strategy fsdp2, adapter lora, trained adapters
        4 nodes, 8 A100 each, olmo 2 32b, hsdp
            catalogue olmo-2-32b, gpu a100-sxm4-80gb, gpus 32, nodes 4, strategy hsdp
        qwen3-8b grpo 8 gens 1k prompt 4k completion bs 1 4xH100 vllm
            catalogue qwen3-8b, task grpo, micro_batch 1, sequence 1024, gpu h100-sxm5-80gb, gpus 4, samples 8
        GRPO llama 3.2 3b lora group size 16 max completion length 2048 l40s
            catalogue llama-3.2-3b, task grpo, gpu l40s-48gb, gpus 1, adapter lora, trained adapters, samples 16
        dpo zephyr 7b lora batch 2 len 1024 a10g
            catalogue mistral-7b-v0.1, task dpo, micro_batch 2, sequence 1024, gpu a10g-24gb, gpus 1, adapter lora, trained adapters
        reward modeling deberta-v3-large bs 16 3090
            catalogue deberta-v3-large, task reward, micro_batch 16, gpu rtx-3090-24gb, gpus 1
        sentence embeddings minilm batch 512 len 128 t4
            catalogue minilm-l6-v2, task contrastive, micro_batch 512, sequence 128, gpu t4-16gb, gpus 1
        ner distilbert batch 32 128 tokens gtx 1650
            catalogue distilbert-base, task token-classification, micro_batch 32, sequence 128, gpu gtx-1650-4gb, gpus 1
        summarization bart-large batch 8 1024 tokens rtx 3080 12gb
            catalogue bart-large, task seq2seq, micro_batch 8, sequence 1024, gpu rtx-3080-12gb, gpus 1
        translation opus-mt-en-de batch 64 2060
            catalogue opus-mt-en-de, task seq2seq, micro_batch 64, gpu rtx-2060-6gb, gpus 1
        ",
    );
}

#[test]
fn forms_that_people_use() {
    check(
        r"
        RTX 4090 mit 24 GB, LoRA auf Llama-3.1-8B, Kontext 4096
            catalogue llama-3.1-8b, sequence 4096, gpu rtx-4090-24gb, gpus 1, adapter lora, trained adapters
        LLama-3.1-8B / LoRA / 4090 / bs2 / 4k
            catalogue llama-3.1-8b, micro_batch 2, sequence 4096, gpu rtx-4090-24gb, gpus 1, adapter lora, trained adapters
        llama3.1:70b qlora on 1x80GB
            catalogue llama-3.1-70b, gpus 1, weights nf4, adapter qlora, trained adapters, card_gib 80
        L40S x2, Qwen2.5-Coder-14B, qlora r64, ctx 8k, bs 1, ga 16, paged adamw 8bit, unsloth
            catalogue qwen2.5-14b, trainer unsloth, micro_batch 1, accumulation 16, sequence 8192, gpu l40s-48gb, gpus 2, weights nf4, adapter qlora, rank 64, trained adapters, optimizer paged_adamw_8bit
        Nvidia A100 (40 GB): fine-tune T5-3B, batch 8, input 512
            catalogue t5-3b, micro_batch 8, sequence 512, gpu a100-sxm4-40gb, gpus 1
        fine tune bert
            catalogue bert-base-uncased
        llama
            unread: llama
        4090
            gpu rtx-4090-24gb, gpus 1
        lora
            adapter lora, trained adapters
        how many tokens can I fit with gemma 2 9b lora on an a100 80gb
            catalogue gemma-2-9b, gpu a100-sxm4-80gb, gpus 1, adapter lora, trained adapters, wanted length
        what's the largest llama I can full finetune on 8xH100?
            gpu h100-sxm5-80gb, gpus 8, adapter none, trained all, unread: largest llama
        What batch size for resnet-50 on 3060?
            catalogue resnet-50, gpu rtx-3060-12gb, gpus 1, wanted batch
        how big a batch can i use: sdxl lora 1024 4090
            catalogue sdxl-unet, task diffusion, height 1024, width 1024, gpu rtx-4090-24gb, gpus 1, adapter lora, trained adapters, wanted batch
        mistral-7b 3x3090 fsdp full shard cpu offload
            catalogue mistral-7b-v0.1, gpu rtx-3090-24gb, gpus 3, strategy fsdp2, offload both
        deepspeed offload optimizer zero2 llama 2 7b full 2x4090
            catalogue llama-2-7b, gpu rtx-4090-24gb, gpus 2, strategy zero2, offload optimizer, adapter none, trained all
        zero-infinity nvme llama 65b 1x3090
            catalogue llama-65b, gpu rtx-3090-24gb, gpus 1, strategy zero3, offload both
        deepspeed llama-2-7b 4x3090
            catalogue llama-2-7b, gpu rtx-3090-24gb, gpus 4
        ZeRO 1 gpt2-xl 4xV100-16GB fp16
            catalogue gpt2-xl, gpu v100-sxm2-16gb, gpus 4, strategy zero1, compute fp16 autocast
        distributed data parallel vit-h/14 8x a100
            catalogue vit-h14, gpu a100-sxm4-80gb, gpus 8, strategy ddp
        tensor parallel 2 pipeline parallel 2 llama 13b 4 x a6000
            catalogue llama-13b, gpu rtx-a6000-48gb, gpus 4, strategy tp2+pp2
        expert parallel 8 mixtral 8x7b full 16 h100 zero 1
            catalogue mixtral-8x7b, gpu h100-sxm5-80gb, gpus 16, strategy zero1+ep8, adapter none, trained all
        context parallel 4, 128k tokens, llama 3.1 8b, 8xH100
            catalogue llama-3.1-8b, sequence 131072, gpu h100-sxm5-80gb, gpus 8, strategy cp4
        1M context llama 3.1 8b 32 h100 cp 8
            catalogue llama-3.1-8b, sequence 1048576, gpu h100-sxm5-80gb, gpus 32, strategy cp8
        10k context mistral nemo lora a100
            catalogue mistral-nemo-12b, sequence 10000, gpu a100-sxm4-80gb, gpus 1, adapter lora, trained adapters
        32k tokens qwen2.5 7b full ft 8xh200 zero3 liger
            catalogue qwen2.5-7b, sequence 32768, gpu h200-sxm-141gb, gpus 8, strategy zero3, adapter none, trained all, liger true
        64k seq qwen3 8b lora h200
            catalogue qwen3-8b, sequence 65536, gpu h200-sxm-141gb, gpus 1, adapter lora, trained adapters
        2.5k ctx phi-4 mini qlora 3060
            catalogue phi-4-mini, sequence 2500, gpu rtx-3060-12gb, gpus 1, weights nf4, adapter qlora, trained adapters
        llama-3.2-3B-instruct 1,024 tokens lora 2070 super
            catalogue llama-3.2-3b, sequence 1024, gpu rtx-2070-super-8gb, gpus 1, adapter lora, trained adapters
        seq 4,096 batch 2 qwen3 1.7b 4060ti 8gb
            catalogue qwen3-1.7b, micro_batch 2, sequence 4096, gpu rtx-4060-ti-8gb, gpus 1
        max_length: 2048, micro_batch: 4, model: Qwen/Qwen3-4B, gpu: RTX 4090, lora_rank: 16
            catalogue qwen3-4b, micro_batch 4, sequence 2048, gpu rtx-4090-24gb, gpus 1, adapter lora, rank 16, trained adapters
        model=meta-llama/Llama-3.2-1B gpu=T4 batch=4 seq=1024 lora r=8
            catalogue llama-3.2-1b, micro_batch 4, sequence 1024, gpu t4-16gb, gpus 1, adapter lora, rank 8, trained adapters
        Llama-3.1-8B-Instruct-FP8 lora h100
            catalogue llama-3.1-8b, gpu h100-sxm5-80gb, gpus 1, weights fp8, adapter lora, trained adapters
        neuralmagic/Meta-Llama-3.1-70B-Instruct-FP8 lora 2xh100
            catalogue llama-3.1-70b, gpu h100-sxm5-80gb, gpus 2, weights fp8, adapter lora, trained adapters
        Qwen3-30B-A3B-Instruct-2507 qlora 4090
            catalogue qwen3-30b-a3b, gpu rtx-4090-24gb, gpus 1, weights nf4, adapter qlora, trained adapters
        Qwen/Qwen3-Coder-30B-A3B-Instruct sft lora 2 A100
            catalogue qwen3-30b-a3b, task sft, gpu a100-sxm4-80gb, gpus 2, adapter lora, trained adapters
        gemma 3 270m full finetune colab
            catalogue gemma-3-270m, gpu t4-16gb, gpus 1, adapter none, trained all
        gemma3 12b vision lora 4090
            catalogue gemma-3-12b, gpu rtx-4090-24gb, gpus 1, adapter lora, trained adapters, unread: vision
        llama 3.2 11b vision instruct qlora 24gb
            catalogue llama-3.2-11b-vision, gpus 1, weights nf4, adapter qlora, trained adapters, card_gib 24
        qwen2-vl 2b full ft batch 1 4090
            catalogue qwen2-vl-2b, micro_batch 1, gpu rtx-4090-24gb, gpus 1, adapter none, trained all
        smolvlm2 2.2b lora t4
            catalogue smolvlm2-2.2b, gpu t4-16gb, gpus 1, adapter lora, trained adapters
        florence 2 base finetune batch 8 4080
            catalogue florence2-base, micro_batch 8, gpu rtx-4080-16gb, gpus 1
        whisper small fine-tuning batch 16 fp16 gradient checkpointing t4
            catalogue whisper-small, micro_batch 16, gpu t4-16gb, gpus 1, compute fp16 autocast, checkpointing true
        wavlm base classification batch 8 3060
            catalogue wavlm-base, task classification, micro_batch 8, gpu rtx-3060-12gb, gpus 1
        hubert base batch 4 3090
            catalogue hubert-base-ls960, micro_batch 4, gpu rtx-3090-24gb, gpus 1
        stable diffusion xl dreambooth lora 16gb batch 1 prodigy
            catalogue sdxl-unet, task diffusion, micro_batch 1, gpus 1, adapter lora, trained adapters, optimizer prodigy, card_gib 16
        sd3.5 medium full finetune 1024 a100
            catalogue sd3.5-medium, task diffusion, height 1024, width 1024, gpu a100-sxm4-80gb, gpus 1, adapter none, trained all
        flux schnell lora 512px 12gb fp8
            catalogue flux.1-schnell, task diffusion, height 512, width 512, gpus 1, weights fp8, adapter lora, trained adapters, card_gib 12
        FLUX.2 klein lora 1024 24gb
            catalogue flux.2-klein-base-4b, task diffusion, height 1024, width 1024, gpus 1, adapter lora, trained adapters, card_gib 24
        flux 2 dev lora h100
            catalogue flux.2-dev, task diffusion, gpu h100-sxm5-80gb, gpus 1, adapter lora, trained adapters
        illustrious xl lora 3060
            catalogue sdxl-unet, task diffusion, gpu rtx-3060-12gb, gpus 1, adapter lora, trained adapters
        pony sdxl lora 8gb
            catalogue sdxl-unet, task diffusion, gpus 1, adapter lora, trained adapters, card_gib 8
        openhermes 2.5 mistral 7b lora 3090
            catalogue openhermes-2.5-mistral-7b, gpu rtx-3090-24gb, gpus 1, adapter lora, trained adapters
        OpenHermes-2.5-Mistral-7B lora 3090
            catalogue openhermes-2.5-mistral-7b, gpu rtx-3090-24gb, gpus 1, adapter lora, trained adapters
        dolphin 2.9 llama 3 8b qlora
            model dolphin 2.9 llama 3 8b, weights nf4, adapter qlora, trained adapters
        llama 3.1 tulu 3 8b sft
            catalogue llama-3.1-tulu-3-8b, task sft
        sam 2 large finetune
            catalogue sam2-hiera-large
        llama 3.2 3b vision lora
            model llama 3.2 3b vision, adapter lora, trained adapters
        qwen3 0.6b embedding contrastive
            model qwen3 0.6b embedding, task contrastive
        bge-m3 contrastive batch 32 512 tokens
            catalogue bge-m3, task contrastive, micro_batch 32, sequence 512
        r1 distill qwen 1.5b grpo
            catalogue deepseek-r1-distill-qwen-1.5b, task grpo
        codellama 7b lora
            catalogue codellama-7b, adapter lora, trained adapters
        codellama-13b-instruct qlora
            catalogue codellama-13b, weights nf4, adapter qlora, trained adapters
        mistral 2x3090 lora
            catalogue mistral-7b-v0.1, gpu rtx-3090-24gb, gpus 2, adapter lora, trained adapters
        llama 3 8b ds zero infinity 1x4090
            catalogue llama-3-8b, gpu rtx-4090-24gb, gpus 1, strategy zero3, offload both
        ",
    );
}

#[test]
fn models_of_all_kinds() {
    check(
        r"
        sft lora 2 A100
            task sft, gpu a100-sxm4-80gb, gpus 2, adapter lora, trained adapters
        lora 2 a100s
            gpu a100-sxm4-80gb, gpus 2, adapter lora, trained adapters
        qlora 4 h100 llama 3 8b
            catalogue llama-3-8b, gpu h100-sxm5-80gb, gpus 4, weights nf4, adapter qlora, trained adapters
        lora 16 4090 llama 3 8b
            catalogue llama-3-8b, gpu rtx-4090-24gb, gpus 1, adapter lora, rank 16, trained adapters
        llama 3 8b lora 64
            catalogue llama-3-8b, adapter lora, rank 64, trained adapters
        qlora 2 3090 llama 3 8b
            catalogue llama-3-8b, gpu rtx-3090-24gb, gpus 2, weights nf4, adapter qlora, trained adapters
        lora 512 sdxl 3060
            catalogue sdxl-unet, task diffusion, height 512, width 512, gpu rtx-3060-12gb, gpus 1, adapter lora, trained adapters
        llama 3 8b lora on my 3090 with 64gb of ram
            catalogue llama-3-8b, gpu rtx-3090-24gb, gpus 1, adapter lora, trained adapters
        llama3 8B, 4090 24G, lora rank=8, seq=2048, batch=1
            catalogue llama-3-8b, micro_batch 1, sequence 2048, gpu rtx-4090-24gb, gpus 1, adapter lora, rank 8, trained adapters
        Is 48GB enough for full fine-tuning Qwen2.5-3B with AdamW?
            catalogue qwen2.5-3b, gpus 1, adapter none, trained all, optimizer adamw, card_gib 48
        Can a single RTX 3090 (24GB) handle QLoRA finetuning of Llama-2-13B with a sequence length of 2048 and batch size of 4?
            catalogue llama-2-13b, micro_batch 4, sequence 2048, gpu rtx-3090-24gb, gpus 1, weights nf4, adapter qlora, trained adapters
        I want to fine-tune Phi-3-mini-128k-instruct on my RTX 4060 8GB laptop using LoRA, how long can the context be?
            catalogue phi-3-mini, gpu rtx-4060-laptop-8gb, gpus 1, adapter lora, trained adapters, wanted length
        How many 4090s for full fine tuning mistral 7B with ZeRO-3 and CPU offload?
            catalogue mistral-7b-v0.1, gpu rtx-4090-24gb, strategy zero3, offload both, adapter none, trained all, wanted cards
        We have 4 nodes with 8xA100 40GB each and want to pretrain a Llama-2-7B at 4096 tokens with FSDP
            catalogue llama-2-7b, task pretraining, sequence 4096, gpu a100-sxm4-40gb, gpus 32, nodes 4, strategy fsdp2, adapter none, trained all
        training esm-2 150M on 2 V100 with DDP, batch size 16, seq 1024, mixed precision
            catalogue esm2-150m, micro_batch 16, sequence 1024, gpu v100-sxm2-16gb, gpus 2, strategy ddp, compute fp16 autocast
        Fine-tune ViT-L/16 at 384 resolution with batch size 64 on an A6000 in fp16
            catalogue vit-l16, micro_batch 64, height 384, width 384, gpu rtx-a6000-48gb, gpus 1, compute fp16 autocast
        train resnet50 from scratch on imagenet with bs 1024 on 8 gpus (2080ti)
            catalogue resnet-50, task classification, micro_batch 1024, gpu rtx-2080-ti-11gb, gpus 8, adapter none, trained all
        SDXL LoRA, AdamW8bit, batch 4, 1024, gradient checkpointing, cached latents, 16GB 4080
            catalogue sdxl-unet, task diffusion, micro_batch 4, height 1024, width 1024, gpu rtx-4080-16gb, gpus 1, adapter lora, trained adapters, optimizer adamw8bit, checkpointing true, cached_latents true
        SD1.5 textual inversion 512 6gb 2060
            catalogue sd-1.5-unet, task diffusion, height 512, width 512, gpu rtx-2060-6gb, gpus 1
        wan 2.2 lora
            catalogue wan2.2-t2v-a14b, task diffusion, adapter lora, trained adapters
        qwen-image lora 5090
            catalogue qwen-image, task diffusion, gpu rtx-5090-32gb, gpus 1, adapter lora, trained adapters
        z-image turbo lora 3090
            catalogue z-image, task diffusion, gpu rtx-3090-24gb, gpus 1, adapter lora, trained adapters
        yolov8x training 640 batch 16 3080
            catalogue yolov8x, micro_batch 16, height 640, width 640, gpu rtx-3080-10gb, gpus 1
        unet segmentation 512x512 batch 8 rtx 2070
            task segmentation, micro_batch 8, height 512, width 512, gpu rtx-2070-8gb, gpus 1, unread: unet
        timesfm finetune 3060
            gpu rtx-3060-12gb, gpus 1, unread: timesfm
        gpt-j 6b zero 2 offload 3090
            catalogue gpt-j-6b, gpu rtx-3090-24gb, gpus 1, strategy zero2, offload optimizer
        galactica 6.7b lora
            model galactica 6.7b, adapter lora, trained adapters
        OPT-13b lora int8 a100 40gb
            catalogue opt-13b, gpu a100-sxm4-40gb, gpus 1, weights int8, adapter lora, trained adapters
        bloomz-7b1 lora 8bit 3090
            catalogue bloom-7b1, gpu rtx-3090-24gb, gpus 1, weights int8, adapter lora, trained adapters
        stablelm 2 1.6b full 3060
            catalogue stablelm-2-1.6b, gpu rtx-3060-12gb, gpus 1, adapter none, trained all
        internlm2 7b lora rank 8 xtuner 4090
            catalogue internlm2-7b, trainer xtuner, gpu rtx-4090-24gb, gpus 1, adapter lora, rank 8, trained adapters
        yi-34b-chat qlora a6000 2k
            catalogue yi-34b, sequence 2048, gpu rtx-a6000-48gb, gpus 1, weights nf4, adapter qlora, trained adapters
        baichuan2 13b lora
            model baichuan2 13b, adapter lora, trained adapters
        chatglm3 6b lora 3090
            model chatglm3 6b, gpu rtx-3090-24gb, gpus 1, adapter lora, trained adapters
        granite 3.1 8b sft l40s
            catalogue granite-3.1-8b, task sft, gpu l40s-48gb, gpus 1
        nemotron 70b instruct lora 8xh100
            model nemotron 70b, gpu h100-sxm5-80gb, gpus 8, adapter lora, trained adapters
        llama-3.3-nemotron-super-49b lora
            model llama-3.3-nemotron-super-49b, adapter lora, trained adapters
        deepseek coder 6.7b qlora 3090
            catalogue deepseek-coder-6.7b, gpu rtx-3090-24gb, gpus 1, weights nf4, adapter qlora, trained adapters
        deepseek-coder-v2-lite lora a100
            catalogue deepseek-v2-lite, gpu a100-sxm4-80gb, gpus 1, adapter lora, trained adapters
        qwen1.5-moe-a2.7b full 8xa100 zero2
            catalogue qwen1.5-moe-a2.7b, gpu a100-sxm4-80gb, gpus 8, strategy zero2, adapter none, trained all
        olmoe 1b-7b full 4xh100
            catalogue olmoe-1b-7b, gpu h100-sxm5-80gb, gpus 4, adapter none, trained all
        jamba v0.1 lora 8xa100
            catalogue jamba-v0.1, gpu a100-sxm4-80gb, gpus 8, adapter lora, trained adapters
        mamba2 2.7b pretrain 2048 h100
            catalogue mamba2-2.7b, task pretraining, sequence 2048, gpu h100-sxm5-80gb, gpus 1, adapter none, trained all
        gpt-oss 20b mxfp4 qlora 16gb
            catalogue gpt-oss-20b, gpus 1, weights mxfp4, adapter qlora, trained adapters, card_gib 16
        gemma-3n-e4b lora 4090
            catalogue gemma-3n-e4b, gpu rtx-4090-24gb, gpus 1, adapter lora, trained adapters
        gemma 4 e2b lora
            catalogue gemma-4-e2b, adapter lora, trained adapters
        llama 4 maverick lora 8xb200
            catalogue llama-4-maverick, gpu b200-180gb, gpus 8, adapter lora, trained adapters
        qwen3-next 80b lora 8xh100
            catalogue qwen3-next-80b-a3b, gpu h100-sxm5-80gb, gpus 8, adapter lora, trained adapters
        qwen3 vl 4b full ft h100
            catalogue qwen3-vl-4b, gpu h100-sxm5-80gb, gpus 1, adapter none, trained all
        ",
    );
}

#[test]
fn sentences_as_an_expert_writes_them() {
    check(
        r"
        Fine-tuning a 13B LLaMA 2 on four A100-80GB cards using FSDP with bf16 and a context of 4k
            catalogue llama-2-13b, sequence 4096, gpu a100-sxm4-80gb, gpus 4, strategy fsdp2, compute bf16 autocast
        LoRA on Mistral-7B, 2048 tokens, a batch of 4, single 3090
            catalogue mistral-7b-v0.1, micro_batch 4, sequence 2048, gpu rtx-3090-24gb, gpus 1, adapter lora, trained adapters
        QLoRA for Llama 3.1 70B with 2 A6000s
            catalogue llama-3.1-70b, gpu rtx-a6000-48gb, gpus 2, weights nf4, adapter qlora, trained adapters
        Full fine-tuning Qwen2.5 0.5B on a laptop with RTX 3060
            catalogue qwen2.5-0.5b, gpu rtx-3060-laptop-6gb, gpus 1, adapter none, trained all
        Pretraining GPT-2 medium on 2 RTX 3090 with seq len 1024
            catalogue gpt2-medium, task pretraining, sequence 1024, gpu rtx-3090-24gb, gpus 2, adapter none, trained all
        DPO on Llama 3 8B Instruct with LoRA rank 64, 1x A100 80GB, max length 1024, max prompt length 512
            catalogue llama-3-8b, task dpo, sequence 1024, gpu a100-sxm4-80gb, gpus 1, adapter lora, rank 64, trained adapters
        Gemma 2 2B SFT with Adafactor on T4
            catalogue gemma-2-2b, task sft, gpu t4-16gb, gpus 1, optimizer adafactor
        stable diffusion 1.5 lora, batch 4, 512, 3060
            catalogue sd-1.5-unet, task diffusion, micro_batch 4, height 512, width 512, gpu rtx-3060-12gb, gpus 1, adapter lora, trained adapters
        BERT-large MLM, 512 tokens, batch 32, V100-32GB, fp16
            catalogue bert-large-uncased, task masked-lm, micro_batch 32, sequence 512, gpu v100-sxm2-32gb, gpus 1, compute fp16 autocast, adapter none, trained all
        train vit-base on 4 x 2080 Ti, batch size 128, ddp
            catalogue vit-b16, micro_batch 128, gpu rtx-2080-ti-11gb, gpus 4, strategy ddp
        Llama-3.2-1B full finetune, 8-bit Adam, 12 GB
            catalogue llama-3.2-1b, gpus 1, adapter none, trained all, optimizer adamw8bit, card_gib 12
        phi-3-mini 4k instruct, qlora, 4060
            catalogue phi-3-mini, gpu rtx-4060-8gb, gpus 1, weights nf4, adapter qlora, trained adapters
        esm2_t33_650M_UR50D lora 1024 batch 8 A100
            catalogue esm2-650m, micro_batch 8, sequence 1024, gpu a100-sxm4-80gb, gpus 1, adapter lora, trained adapters
        t5-large fine-tuning on 16GB P100
            catalogue t5-large, gpu p100-pcie-16gb, gpus 1
        Yi-34B qlora single A100
            catalogue yi-34b, gpu a100-sxm4-80gb, gpus 1, weights nf4, adapter qlora, trained adapters
        Mixtral-8x7B-Instruct, LoRA, 4xH100, ZeRO-3, 4096
            catalogue mixtral-8x7b, sequence 4096, gpu h100-sxm5-80gb, gpus 4, strategy zero3, adapter lora, trained adapters
        falcon-7b lora int8 rtx 4080
            catalogue falcon-7b, gpu rtx-4080-16gb, gpus 1, weights int8, adapter lora, trained adapters
        starcoder2 3b full ft 2xL40S fsdp 8k
            catalogue starcoder2-3b, sequence 8192, gpu l40s-48gb, gpus 2, strategy fsdp2, adapter none, trained all
        can a 4080 super train sdxl lora batch 4 at 1024?
            catalogue sdxl-unet, task diffusion, micro_batch 4, height 1024, width 1024, gpu rtx-4080-super-16gb, gpus 1, adapter lora, trained adapters
        whats the longest seq for qwen3 4b full finetune on H100 with flash attention and gradient checkpointing
            catalogue qwen3-4b, gpu h100-sxm5-80gb, gpus 1, adapter none, trained all, checkpointing true, attention flash, wanted length
        max batch resnet152 4090 amp
            catalogue resnet-152, gpu rtx-4090-24gb, gpus 1, compute bf16 autocast, wanted batch
        how many 3090s for a 13b full finetune with zero3?
            gpu rtx-3090-24gb, strategy zero3, adapter none, trained all, wanted cards
        what's the cheapest GPU for QLoRA of Llama 3 8B at 2k
            catalogue llama-3-8b, sequence 2048, weights nf4, adapter qlora, trained adapters, wanted cheapest
        llama3.2-3b sft full bf16 adamw 4096 ctx 2 gpus a100 40gb fsdp
            catalogue llama-3.2-3b, task sft, sequence 4096, gpu a100-sxm4-40gb, gpus 2, strategy fsdp2, compute bf16 autocast, adapter none, trained all, optimizer adamw
        mistral small 24b lora 4096 2 x rtx 4090 fsdp qlora
            catalogue mistral-small-24b, sequence 4096, gpu rtx-4090-24gb, gpus 2, strategy fsdp2, weights nf4, adapter qlora, trained adapters
        deepspeed stage 2 llama 2 7b 8xV100 32GB fp16 batch 2 seq 1024
            catalogue llama-2-7b, micro_batch 2, sequence 1024, gpu v100-sxm2-32gb, gpus 8, strategy zero2, compute fp16 autocast
        qwen2.5-coder 32b qlora 4k 1xA100
            catalogue qwen2.5-32b, sequence 4096, gpu a100-sxm4-80gb, gpus 1, weights nf4, adapter qlora, trained adapters
        llama-3.1-8b, 4-bit, rank 8, 1k ctx, free colab
            catalogue llama-3.1-8b, sequence 1024, gpu t4-16gb, gpus 1, weights nf4, adapter qlora, rank 8, trained adapters
        gpt2 small, batch size 64, 1024 ctx, 4090, fp16, compile
            catalogue gpt2, micro_batch 64, sequence 1024, gpu rtx-4090-24gb, gpus 1, compute fp16 autocast, compile true
        grpo with 16 generations, qwen2.5 3b, 1xH100, lora
            catalogue qwen2.5-3b, task grpo, gpu h100-sxm5-80gb, gpus 1, adapter lora, trained adapters, samples 16
        reward model, llama 3.2 1b, batch 8, seq 1024, rtx 4070 ti
            catalogue llama-3.2-1b, task reward, micro_batch 8, sequence 1024, gpu rtx-4070-ti-12gb, gpus 1
        wav2vec2-base fine-tune, rtx 3060, batch 4
            catalogue wav2vec2-base, micro_batch 4, gpu rtx-3060-12gb, gpus 1
        sam vit-h fine tune a6000 batch 2
            catalogue sam-vit-h, micro_batch 2, gpu rtx-a6000-48gb, gpus 1
        flux lora 4090 512 rank 16
            catalogue flux.1-dev, task diffusion, height 512, width 512, gpu rtx-4090-24gb, gpus 1, adapter lora, rank 16, trained adapters
        sd3 medium lora 24gb 1024
            catalogue sd3-medium, task diffusion, height 1024, width 1024, gpus 1, adapter lora, trained adapters, card_gib 24
        dinov2-base frozen, linear classifier, batch 256, 3080
            catalogue dinov2-base, task classification, micro_batch 256, gpu rtx-3080-10gb, gpus 1, adapter none, trained head
        modernbert-large 2048 tokens batch 16 rtx 5090 bf16
            catalogue modernbert-large, micro_batch 16, sequence 2048, gpu rtx-5090-32gb, gpus 1, compute bf16 autocast
        smollm2-360m pretrain 2k ctx mbs 64 h100 compile
            catalogue smollm2-360m, task pretraining, micro_batch 64, sequence 2048, gpu h100-sxm5-80gb, gpus 1, adapter none, trained all, compile true
        olmo-2-1b full 4xL4 ddp 2048 mbs 1
            catalogue olmo-2-1b, micro_batch 1, sequence 2048, gpu l4-24gb, gpus 4, strategy ddp, adapter none, trained all
        bloom-560m 2 t4 ddp batch 8
            catalogue bloom-560m, micro_batch 8, gpu t4-16gb, gpus 2, strategy ddp
        gpt-neox 20b 8xa100-40 zero3 bf16 mbs 4
            catalogue gpt-neox-20b, micro_batch 4, gpu a100-sxm4-40gb, gpus 8, strategy zero3, compute bf16 autocast
        llama 65b qlora 48gb
            catalogue llama-65b, gpus 1, weights nf4, adapter qlora, trained adapters, card_gib 48
        opt 66b lora zero3 offload params 2 x a100 80gb
            catalogue opt-66b, gpu a100-sxm4-80gb, gpus 2, strategy zero3, offload parameters, adapter lora, trained adapters
        qwen3-235b-a22b qlora 8xh100 fsdp
            catalogue qwen3-235b-a22b, gpu h100-sxm5-80gb, gpus 8, strategy fsdp2, weights nf4, adapter qlora, trained adapters
        tinyllama full finetune rtx 2060 12gb adamw 8bit gradient checkpointing
            catalogue tinyllama-1.1b, gpu rtx-2060-12gb, gpus 1, adapter none, trained all, optimizer adamw8bit, checkpointing true
        hubert-base ctc 16gb v100
            catalogue hubert-base-ls960, task ctc, gpu v100-sxm2-16gb, gpus 1
        llama 8b on a 4090, r=32, bs=4, 2k context, unsloth, 4bit
            catalogue llama-3.1-8b, trainer unsloth, micro_batch 4, sequence 2048, gpu rtx-4090-24gb, gpus 1, weights nf4, adapter qlora, rank 32, trained adapters
        Llama 3 70B 4xMI300X full sft fsdp2 8k
            catalogue llama-3-70b, task sft, sequence 8192, gpu mi300x-192gb, gpus 4, strategy fsdp2, adapter none, trained all
        train mamba-130m from scratch on an rtx 4070, ctx 1024
            catalogue mamba-130m, task pretraining, sequence 1024, gpu rtx-4070-12gb, gpus 1, adapter none, trained all
        finetune florence-2 on 16 gb
            catalogue florence2-base, gpus 1, card_gib 16
        ",
    );
}

#[test]
fn no_text_is_too_odd() {
    let mut dice = Dice::new(28);
    let words = [
        "llama",
        "3.1",
        "8b",
        "x",
        "8",
        "h100",
        "4090",
        "lora",
        "=",
        "-",
        "×",
        "16",
        "k",
        "gb",
        "nodes",
        "of",
        "batch",
        "seq",
        ",",
        "70b",
        "qwen",
        "flux",
        "2",
        "how",
        "many",
        "tp",
        "é",
        "日本",
        "\u{0}",
        "1e999",
        "999999999999999999999",
        "0",
        "p5.48xlarge",
        "/",
        "a/b-1",
    ];
    for _ in 0..300 {
        let length = dice.index(30);
        let mut text = String::new();
        for _ in 0..length {
            text += dice.one_of(&words);
            text += dice.one_of(&["", " ", "  "]);
        }
        let _ = read(&text);
    }
    let _ = read(&"llama 8b ".repeat(5000));
    let _ = read(&"9".repeat(100_000));
    let _ = read(&"é".repeat(3999));
}
