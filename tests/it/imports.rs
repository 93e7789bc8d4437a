//! What examples of training programs say, read by hand: each row has an example's keys that matter, in words of our own, and the
//! model, trainer, batch, length, precision, adapters and layout that a person reads from them.

#![allow(clippy::unwrap_used)]

use headroom_io::import;
use headroom_scenario::resolve::resolve;
use headroom_scenario::settings;
use headroom_scripts::{Alone, File};

#[track_caller]
fn check(text: &str, expected: &str) {
    let file = File {
        name: String::new(),
        text: text.into(),
    };
    let brought = import::files(&[file], &Alone, None);
    assert_eq!(brought.refused, None, "{text}");
    assert_eq!(brought.problems, vec![], "{text}");
    let scenario = resolve(&brought.draft).scenario;
    for word in expected.split_whitespace() {
        let (name, value) = word.split_once('=').unwrap();
        let setting = settings::named(name).unwrap();
        assert_eq!(setting.get(&scenario), value, "{name} of {text}");
    }
}

const LINEAR: &str = "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj";

#[test]
fn axolotl() {
    let bf16 = "trainer=axolotl precision=amp-bf16-on-bf16";
    for (text, expected) in [
        (
            "base_model: Qwen/Qwen3-30B-A3B-Instruct-2507\nsequence_len: 2048\nsample_packing: true\nmicro_batch_size: 1\n\
          optimizer: adamw_torch_8bit\nbf16: true\ngradient_checkpointing: true\nflash_attention: true",
            "model=qwen3-30b-a3b mb=1 seq=2048 lora=off ckpt=layers attn=flash_attention_2",
        ),
        (
            "base_model: stabilityai/stablelm-2-1_6b\nload_in_8bit: true\nsequence_len: 4096\nadapter: lora\nlora_r: 32\n\
          lora_target_linear: true\nmicro_batch_size: 1\nbf16: auto",
            "model=stablelm-2-1.6b mb=1 seq=4096 lora_rank=32 quant=int8",
        ),
        (
            "base_model: meta-llama/Llama-3.2-1B\nsequence_len: 512\ngradient_accumulation_steps: 4\nmicro_batch_size: 4\n\
          optimizer: adamw_8bit\nbf16: auto\nattn_implementation: sdpa",
            "model=llama-3.2-1b mb=4 accum=4 seq=512 lora=off attn=sdpa",
        ),
        (
            "base_model: Qwen/Qwen3-8B\nload_in_4bit: true\nsequence_len: 2048\nadapter: qlora\nlora_r: 32\n\
          lora_target_linear: true\nmicro_batch_size: 1\nbf16: auto\nfsdp: [full_shard, auto_wrap]\n\
          fsdp_config: {fsdp_offload_params: true, fsdp_sharding_strategy: FULL_SHARD}",
            "model=qwen3-8b mb=1 seq=2048 lora_rank=32 quant=nf4-double par=fsdp1 offload=parameters",
        ),
        (
            "base_model: Qwen/Qwen2.5-0.5B\nsequence_len: 2048\nmicro_batch_size: 4\nbf16: auto\ngradient_checkpointing: false\n\
          fsdp_config: {fsdp_version: 2, fsdp_reshard_after_forward: true}",
            "model=qwen2.5-0.5b mb=4 seq=2048 lora=off par=fsdp2 ckpt=none",
        ),
        (
            "base_model: Qwen/Qwen2.5-0.5B\nreward_model: true\nnum_labels: 1\nsequence_len: 2048\nmicro_batch_size: 2\nbf16: true",
            "model=qwen2.5-0.5b mb=2 seq=2048 task=reward",
        ),
        (
            "base_model: mistralai/Mistral-7B-v0.1\nload_in_4bit: true\nadapter: qlora\nsequence_len: 8192\nlora_r: 32\n\
          lora_target_linear: true\nlora_target_modules:\nmicro_batch_size: 2\nbf16: auto",
            "model=mistral-7b-v0.1 mb=2 seq=8192 lora_rank=32 quant=nf4-double",
        ),
        (
            "base_model: NousResearch/Llama-2-7b-hf\nadapter:\nlora_r:\nsequence_len: 4096\nmicro_batch_size: 1\nbf16: auto",
            "model=llama-2-7b mb=1 seq=4096 lora=off",
        ),
        (
            "base_model: deepseek-ai/DeepSeek-V2-Lite\nsequence_len: 2048\nmicro_batch_size: 1\ngradient_accumulation_steps: 8\n\
          bf16: auto\nfsdp: [full_shard]\nfsdp_config: {fsdp_offload_params: true}",
            "model=deepseek-v2-lite mb=1 accum=8 seq=2048 par=fsdp1 offload=parameters",
        ),
        (
            "base_model: microsoft/phi-1_5\nadapter:\nsequence_len: 2048\nmicro_batch_size: 2\nbf16: auto\nmax_grad_norm: 1.0",
            "model=phi-1.5 mb=2 seq=2048 lora=off clip=on",
        ),
        (
            "base_model: Qwen/Qwen2.5-72B\nsequence_len: 4096\nmicro_batch_size: 8\nbf16: true\nfsdp_version: 2\n\
          liger_fused_linear_cross_entropy: true\nfsdp_config: {reshard_after_forward: true, activation_checkpointing: true}",
            "model=qwen2.5-72b mb=8 seq=4096 par=fsdp2 ckpt=layers loss=liger-linear",
        ),
        (
            "base_model: Qwen/Qwen3-8B\nload_in_4bit: false\nsequence_len: 4096\nadapter: lora\nlora_r: 32\nlora_dropout: 0.0\n\
          lora_target_linear: true\nfused_attn_kernel: true\ngradient_accumulation_steps: 4\nmicro_batch_size: 1\nbf16: auto",
            "model=qwen3-8b mb=1 accum=4 seq=4096 lora_rank=32 quant=none",
        ),
        (
            "base_model: mhenrichsen/gemma-7b\nload_in_4bit: true\nadapter: qlora\nlora_r: 32\nlora_target_linear: true\n\
          sequence_len: 4096\ngradient_accumulation_steps: 3\nmicro_batch_size: 2\noptimizer: adamw_bnb_8bit\nbf16: auto",
            "model=gemma-7b mb=2 accum=3 seq=4096 lora_rank=32 quant=nf4-double optim=adamw-8bit",
        ),
    ] {
        check(text, &format!("{bf16} {expected}"));
    }
}

#[test]
fn llama_factory() {
    for (text, expected) in [
        (
            "model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct\nstage: sft\nfinetuning_type: full\ncutoff_len: 2048\n\
          per_device_train_batch_size: 1\npure_bf16: true",
            "model=llama-3-8b mb=1 seq=2048 precision=bf16 lora=off",
        ),
        (
            "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: full\ndeepspeed: ds_z0_config.json\n\
          cutoff_len: 2048\nper_device_train_batch_size: 4\ngradient_accumulation_steps: 8\nbf16: true",
            "model=qwen2.5-7b mb=4 accum=8 seq=2048 precision=amp-bf16 lora=off par=zero0",
        ),
        (
            "model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct\nstage: sft\nfinetuning_type: lora\nlora_rank: 8\n\
          lora_target: all\nquantization_bit: 4\nquantization_method: bnb\ncutoff_len: 2048\nper_device_train_batch_size: 1\nbf16: true",
            "model=llama-3-8b mb=1 precision=amp-bf16-on-bf16 lora_rank=8 quant=nf4-double",
        ),
        (
            "model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct\nstage: sft\nfinetuning_type: full\ncutoff_len: 1024\n\
          per_device_train_batch_size: 1\nbf16: true\nfsdp: full_shard auto_wrap",
            "model=llama-3-8b mb=1 seq=1024 par=fsdp1",
        ),
        (
            "model: Qwen/Qwen3-4B\nmodel_class: llm\npeft_config: {name: lora, r: 16, lora_dropout: 0.05, target_modules: all}\n\
          dist_config: {name: fsdp2}\nmicro_batch_size: 1\ncutoff_len: 2048\nbf16: true",
            "model=qwen3-4b mb=1 seq=2048 precision=bf16 lora_rank=16 par=fsdp2 ckpt=layers",
        ),
        (
            "model: Qwen/Qwen3-0.6B\nmodel_class: llm\npeft_config: {name: lora, r: 16, target_modules: all}\n\
          dist_config: {name: fsdp2}\nquant_config: {name: bnb, quantization_bit: 4}\nmicro_batch_size: 1\ncutoff_len: 2048",
            "model=qwen3-0.6b mb=1 seq=2048 lora_rank=16 quant=nf4-double par=fsdp2",
        ),
        (
            "model: Qwen/Qwen3-0.6B\nmodel_class: llm\nkernel_config: {name: auto}\n\
          dist_config: {name: deepspeed, config_file: examples/deepspeed/ds_z3_config.json}\nmicro_batch_size: 2\ncutoff_len: 2048",
            "model=qwen3-0.6b mb=2 precision=bf16 lora=off par=zero3",
        ),
        (
            "model_name_or_path: Qwen/Qwen3-235B-A22B-Instruct-2507\nstage: sft\nfinetuning_type: lora\nlora_rank: 8\nlora_target: all\n\
          cutoff_len: 2048\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 8\nbf16: true",
            "model=qwen3-235b-a22b mb=1 accum=8 seq=2048 lora_rank=8 precision=amp-bf16-on-bf16",
        ),
        (
            "model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct\nstage: sft\nfinetuning_type: lora\nlora_rank: 8\n\
          lora_target: all\npissa_init: true\ncutoff_len: 2048\nper_device_train_batch_size: 1\nbf16: true",
            "model=llama-3-8b mb=1 seq=2048 lora_rank=8",
        ),
    ] {
        check(text, &format!("trainer=llama-factory {expected}"));
    }
}

#[test]
fn trl() {
    for (text, expected) in [
        (
            "model_name_or_path: mistralai/Mistral-7B-v0.1\ntorch_dtype: bfloat16\nattn_implementation: flash_attention_2\n\
          dataset_mixture: {seed: 0}\nbf16: true\ngradient_accumulation_steps: 4\ngradient_checkpointing: true\n\
          max_seq_length: 2048\nper_device_train_batch_size: 8",
            "model=mistral-7b-v0.1 mb=8 accum=4 seq=2048 precision=amp-bf16-on-bf16 lora=off ckpt=layers",
        ),
        (
            "model_name_or_path: mistralai/Mistral-7B-v0.1\ntorch_dtype: bfloat16\nload_in_4bit: true\nuse_peft: true\nlora_r: 16\n\
          lora_target_modules: [q_proj, v_proj]\nbf16: true\nmax_seq_length: 2048\nper_device_train_batch_size: 4",
            "model=mistral-7b-v0.1 mb=4 seq=2048 lora_rank=16 lora_targets=q_proj,v_proj quant=nf4",
        ),
        (
            "model_name_or_path: HuggingFaceTB/SmolLM3-3B\ntorch_dtype: bfloat16\ndataset_mixture: {seed: 0}\nbf16: true\n\
          packing: true\nmax_length: 32768\nper_device_train_batch_size: 1\nuse_liger_kernel: true",
            "model=smollm3-3b mb=1 seq=32768 loss=liger-linear",
        ),
        (
            "model_name_or_path: HuggingFaceTB/SmolLM3-3B\ntorch_dtype: bfloat16\ndataset_mixture: {seed: 0}\nbf16: true\n\
          beta: 0.05\nloss_type: apo_zero\nmax_length: 2048\nper_device_train_batch_size: 2",
            "model=smollm3-3b mb=2 task=dpo",
        ),
        (
            "model_name_or_path: bigcode/starcoder2-15b\ntorch_dtype: bfloat16\ndataset_mixture: {seed: 0}\nbf16: true\n\
          max_seq_length: 2048\nper_device_train_batch_size: 8\nsave_strategy: \"no\"",
            "model=starcoder2-15b mb=8 seq=2048 save_every=0",
        ),
        (
            "model_name_or_path:\n  Qwen/Qwen2.5-0.5B\ndataset_name:\n  stanfordnlp/imdb\nlearning_rate:\n  0.0001",
            "model=qwen2.5-0.5b lora=off",
        ),
    ] {
        check(text, &format!("trainer=trl {expected}"));
    }
}

#[test]
fn torchtune() {
    for (text, expected) in [
        (
            "model: {_component_: torchtune.models.gemma2.gemma2_9b}\nbatch_size: 1\noptimizer: {_component_: torch.optim.AdamW, fused: true}\n\
          enable_activation_checkpointing: true\ndtype: bf16\ndataset: {packed: false}",
            "model=gemma-2-9b mb=1 precision=bf16 lora=off ckpt=layers optim=adamw-fused",
        ),
        (
            "model: {_component_: torchtune.models.gemma2.lora_gemma2_2b, lora_attn_modules: [q_proj, v_proj, output_proj],\n  \
          apply_lora_to_mlp: true, lora_rank: 64}\nbatch_size: 8\ngradient_accumulation_steps: 8\ndtype: bf16",
            "model=gemma-2-2b mb=8 accum=8 lora_rank=64 lora_targets=q_proj,v_proj,o_proj,gate_proj,up_proj,down_proj lora_fp32=off",
        ),
        (
            "model: {_component_: torchtune.models.llama3_3.qlora_llama3_3_70b, lora_attn_modules: [q_proj, v_proj, output_proj],\n  \
          apply_lora_to_mlp: true, lora_rank: 16}\nbatch_size: 2\ndtype: bf16",
            "model=llama-3.3-70b mb=2 lora_rank=16 quant=nf4-ao",
        ),
        (
            "model: {_component_: torchtune.models.qwen3.qwen3_4b_instruct}\nbatch_size: 2\ndtype: bf16\ntokenizer: {max_seq_len: 4096}",
            "model=qwen3-4b mb=2 seq=4096 lora=off",
        ),
        (
            "model: {_component_: torchtune.models.llama3_2.llama3_2_3b}\nbatch_size: 4\ngradient_accumulation_steps: 8\ndtype: bf16",
            "model=llama-3.2-3b mb=4 accum=8",
        ),
        (
            "model: {_component_: torchtune.models.llama2.llama2_7b}\nbatch_size: 2\ndtype: bf16\nfsdp_cpu_offload: true",
            "model=llama-2-7b mb=2 par=fsdp2 offload=parameters",
        ),
    ] {
        check(text, &format!("trainer=torchtune {expected}"));
    }
}

#[test]
fn ms_swift() {
    for (text, expected) in [
        (
            "nproc_per_node=4\nPYTORCH_CUDA_ALLOC_CONF='expandable_segments:True' NPROC_PER_NODE=$nproc_per_node swift sft \
          --model LLM-Research/Meta-Llama-3.1-8B-Instruct --tuner_type lora --torch_dtype bfloat16 --per_device_train_batch_size 1 \
          --lora_rank 8 --target_modules all-linear --gradient_accumulation_steps $(expr 16 / $nproc_per_node) --max_length 2048 \
          --deepspeed zero2",
            "model=llama-3.1-8b mb=1 accum=4 seq=2048 gpus=4 par=zero2 lora_rank=8 precision=amp-bf16-on-bf16 expandable=on",
        ),
        (
            "NPROC_PER_NODE=8 swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-32B-Instruct --use_vllm true --vllm_mode server \
          --tuner_type full --torch_dtype bfloat16 --max_completion_length 2048 --per_device_train_batch_size 1 \
          --num_generations 8 --deepspeed zero3 --beta 0.0",
            "model=qwen2.5-32b task=grpo completion=2048 mb=1 gpus=8 par=zero3 lora=off",
        ),
        (
            "swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora --packing true --torch_dtype bfloat16 --attn_impl flash_attn \
          --per_device_train_batch_size 1 --gradient_accumulation_steps 4 --max_length 2048",
            "model=qwen2.5-7b mb=1 accum=4 seq=2048 lora_rank=8 attn=flash_attention_2 gpus=1",
        ),
        (
            "swift sft --model \"Qwen/Qwen2.5-0.5B-Instruct\" --tuner_type \"lora\" --torch_dtype \"bfloat16\" \
          --per_device_train_batch_size \"1\" --lora_rank \"8\" --gradient_accumulation_steps \"16\" --max_length \"2048\"",
            "model=qwen2.5-0.5b mb=1 accum=16 seq=2048 lora_rank=8",
        ),
        (
            "NPROC_PER_NODE=4 swift sft --model Qwen/Qwen2.5-7B --tuner_type full --torch_dtype bfloat16 --per_device_train_batch_size 1 \
          --packing true --max_length 8192 --deepspeed zero3 --use_liger_kernel true --attn_impl flash_attn",
            "model=qwen2.5-7b mb=1 seq=8192 gpus=4 par=zero3 lora=off loss=liger-linear",
        ),
        (
            "swift sft --model Qwen/Qwen2.5-7B-Instruct --quant_bits 4 --quant_method bnb --torch_dtype bfloat16 \
          --per_device_train_batch_size 1 --max_length 2048",
            "model=qwen2.5-7b quant=nf4-double lora_rank=8",
        ),
        (
            "NPROC_PER_NODE=2 swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type full --per_device_train_batch_size 1 \
          --save_total_limit -1 --max_length 1024 --deepspeed zero2",
            "model=qwen2.5-7b gpus=2 par=zero2 save_keep=0",
        ),
        (
            "MAX_PIXELS=1003520 swift sft --model Qwen/Qwen2-VL-7B-Instruct --tuner_type lora --torch_dtype bfloat16 \
          --per_device_train_batch_size 1 --lora_rank 8 --gradient_accumulation_steps 16 --max_length 2048",
            "model=qwen2-vl-7b mb=1 accum=16 seq=2048 lora_rank=8",
        ),
        (
            "NPROC_PER_NODE=4 swift rlhf --rlhf_type dpo --model Qwen/Qwen2.5-VL-3B-Instruct --tuner_type full --torch_dtype bfloat16 \
          --per_device_train_batch_size 1 --gradient_accumulation_steps 8 --deepspeed zero3 --attn_impl flash_attn",
            "model=qwen2.5-vl-3b mb=1 accum=8 gpus=4 par=zero3 lora=off attn=flash_attention_2",
        ),
    ] {
        check(text, &format!("trainer=ms-swift {expected}"));
    }
    for (text, expected) in [
        (
            "NPROC_PER_NODE=4 megatron sft --model Qwen/Qwen3-30B-A3B-Base --tuner_type lora --lora_rank 32 \
          --target_modules all-linear --expert_model_parallel_size 4 --micro_batch_size 1 --global_batch_size 16 \
          --recompute_granularity full --recompute_method uniform --recompute_num_layers 1 --packing true --max_length 8192",
            "model=qwen3-30b-a3b mb=1 seq=8192 gpus=4 ep=4 lora_rank=32 ckpt=layers",
        ),
        (
            "NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen3-30B-A3B-Instruct-2507 --tensor_model_parallel_size 4 \
          --expert_model_parallel_size 4 --pipeline_model_parallel_size 2 --micro_batch_size 1 --global_batch_size 8 \
          --max_length 8192 --tuner_type full --recompute_granularity selective",
            "model=qwen3-30b-a3b mb=1 seq=8192 gpus=8 tp=4 pp=2 ep=4 lora=off ckpt=none",
        ),
    ] {
        check(text, &format!("trainer=megatron {expected}"));
    }
}

#[test]
fn litgpt() {
    for (text, expected) in [
        (
            "checkpoint_dir: checkpoints/meta-llama/Meta-Llama-3-8B\nprecision: bf16-true\ndevices: 1\nlora_r: 32\nlora_dropout: 0.05\n\
          lora_query: true\nlora_key: false\nlora_value: true\nlora_mlp: false\n\
          train: {global_batch_size: 8, micro_batch_size: 1, max_seq_length: 512}\noptimizer: {class_path: torch.optim.AdamW}",
            "model=llama-3-8b mb=1 accum=8 seq=512 precision=bf16 lora_rank=32 lora_targets=q_proj,v_proj lora_fp32=off gpus=1",
        ),
        (
            "checkpoint_dir: checkpoints/meta-llama/Meta-Llama-3-8B\nprecision: bf16-true\nquantize: bnb.nf4\nlora_r: 32\n\
          lora_query: true\nlora_value: true\ntrain: {global_batch_size: 8, micro_batch_size: 2, max_seq_length: 512}",
            "model=llama-3-8b mb=2 accum=4 quant=nf4 lora_rank=32",
        ),
        (
            "checkpoint_dir: checkpoints/meta-llama/Meta-Llama-3-8B\nprecision: bf16-true\ndevices: 4\n\
          train: {global_batch_size: 64, micro_batch_size: 4, max_seq_length: 512}",
            "model=llama-3-8b mb=4 accum=4 gpus=4 par=fsdp1 lora=off ckpt=layers",
        ),
        (
            "checkpoint_dir: checkpoints/google/gemma-2b\nprecision: bf16-true\ndevices: 1\n\
          train: {global_batch_size: 16, micro_batch_size: 1, max_seq_length: 512, max_norm: 1.0}",
            "model=gemma-2b mb=1 accum=16 clip=on",
        ),
        (
            "model_name: tiny-llama-1.1b\nprecision: bf16-mixed\ndevices: 8\ntrain: {global_batch_size: 512, micro_batch_size: 4, max_seq_length: 2048}",
            "model=tinyllama-1.1b mb=4 accum=16 seq=2048 precision=amp-bf16 gpus=8 par=fsdp1 ckpt=none",
        ),
    ] {
        check(text, expected);
    }
}

#[test]
fn verl() {
    for (text, expected) in [
        (
            "nproc_per_gpu=16\npython3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=${nproc_per_gpu} \
          data.max_prompt_length=512 data.max_response_length=1024 actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct \
          actor_rollout_ref.model.lora_rank=32 actor_rollout_ref.model.target_modules=all-linear \
          actor_rollout_ref.actor.ppo_micro_batch_size=${nproc_per_gpu} trainer.n_gpus_per_node=1 trainer.nnodes=1",
            "model=qwen2.5-7b mb=16 seq=1536 lora_rank=32 gpus=1 precision=amp-bf16",
        ),
        (
            "python3 -m verl.trainer.main_ppo data.max_prompt_length=512 data.max_response_length=512 \
          actor_rollout_ref.model.path=deepseek-ai/deepseek-llm-7b-chat actor_rollout_ref.actor.use_dynamic_bsz=True \
          actor_rollout_ref.actor.ppo_max_token_len_per_gpu=24000 trainer.n_gpus_per_node=8 trainer.nnodes=1",
            "model=deepseek-llm-7b mb=1 seq=24000 gpus=8 par=fsdp2 lora=off",
        ),
        (
            "python3 -m verl.trainer.main_ppo data.max_prompt_length=512 data.max_response_length=1024 \
          actor_rollout_ref.model.path=Qwen/Qwen2-7B-Instruct actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=40 \
          trainer.n_gpus_per_node=8 trainer.nnodes=4",
            "model=qwen2-7b mb=40 seq=1536 gpus=32 nodes=4 par=fsdp2",
        ),
        (
            "train_tp=4\nEP=4\npython3 -m verl.trainer.main_ppo --config-name='ppo_megatron_trainer.yaml' data.max_prompt_length=2048 \
          data.max_response_length=8192 actor_rollout_ref.model.path=m/Qwen3-30B-A3B-Base \
          actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 actor_rollout_ref.actor.megatron.tensor_model_parallel_size=${train_tp} \
          actor_rollout_ref.actor.megatron.expert_model_parallel_size=$EP trainer.n_gpus_per_node=8 trainer.nnodes=2",
            "model=qwen3-30b-a3b mb=1 seq=10240 gpus=16 tp=4 ep=4 precision=amp-bf16 trainer=megatron",
        ),
        (
            "python3 -m verl.trainer.main_ppo data.max_prompt_length=512 data.max_response_length=1024 \
          actor_rollout_ref.model.path=Qwen/Qwen2.5-3B-Instruct actor_rollout_ref.model.lora_adapter_path=adapters/one \
          actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=40 trainer.n_gpus_per_node=8 trainer.nnodes=1",
            "model=qwen2.5-3b mb=40 seq=1536 lora=on gpus=8 par=fsdp2",
        ),
        (
            "NNODES=${NNODES:-2}\npython3 -m verl.trainer.main_ppo data.max_prompt_length=2048 data.max_response_length=8192 \
          actor_rollout_ref.model.path=Qwen/Qwen2.5-32B actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 \
          actor_rollout_ref.actor.fsdp_config.param_offload=True trainer.n_gpus_per_node=8 trainer.nnodes=\"${NNODES}\"",
            "model=qwen2.5-32b mb=1 seq=10240 gpus=16 nodes=2 par=fsdp2 offload=none",
        ),
    ] {
        check(text, expected);
    }
}

/// A script as Unsloth's notebooks are, of the values that differ.
fn unsloth_script(model: &str, length: u32, four_bits: &str, rank: u32, trainer: &str) -> String {
    format!(
        "from unsloth import FastLanguageModel\nmax_seq_length = {length}\n\
         model, tokenizer = FastLanguageModel.from_pretrained(\n    model_name = \"{model}\",\n    max_seq_length = max_seq_length,\n    \
         load_in_4bit = {four_bits},\n)\nmodel = FastLanguageModel.get_peft_model(\n    model,\n    r = {rank},\n    \
         target_modules = [\"q_proj\", \"k_proj\", \"v_proj\", \"o_proj\", \"gate_proj\", \"up_proj\", \"down_proj\",],\n    \
         use_gradient_checkpointing = \"unsloth\",\n)\n{trainer}\n"
    )
}

#[test]
fn unsloth() {
    let tuned = |batch: u32| {
        format!(
            "from trl import SFTTrainer, SFTConfig\ntrainer = SFTTrainer(\n    model = model,\n    args = SFTConfig(\n        \
             per_device_train_batch_size = {batch},\n        gradient_accumulation_steps = 4,\n        optim = \"adamw_8bit\",\n    ),\n)"
        )
    };
    for (script, expected) in [
        (
            unsloth_script("unsloth/llama-3-8b-bnb-4bit", 2048, "True", 16, &tuned(2)),
            "model=llama-3-8b mb=2 seq=2048 lora_rank=16 quant=nf4-double",
        ),
        (
            unsloth_script("unsloth/gpt-oss-20b", 1024, "True", 8, &tuned(1)),
            "model=gpt-oss-20b mb=1 seq=1024 lora_rank=8 quant=nf4-double",
        ),
        (
            unsloth_script("unsloth/Qwen2.5-7B", 2048, "True", 16, &tuned(2)),
            "model=qwen2.5-7b mb=2 seq=2048 lora_rank=16 quant=nf4-double",
        ),
        (
            unsloth_script(
                "unsloth/mistral-7b-instruct-v0.3-bnb-4bit",
                1024,
                "False",
                32,
                &tuned(4),
            ),
            "model=mistral-7b-v0.3 mb=4 seq=1024 lora_rank=32",
        ),
    ] {
        let linear = format!("lora_targets={LINEAR}");
        check(
            &script,
            &format!("trainer=unsloth accum=4 optim=adamw-8bit {linear} {expected}"),
        );
    }
}
