//! What is read from files and commands is the run that they start: settings, one by one.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use headroom_io::import::{self, Input};
use headroom_scenario::resolve::resolve;
use headroom_scenario::settings;
use headroom_scripts::{Alone, File};

#[track_caller]
fn check(name: &str, text: &str, expected: &[(&str, &str)]) {
    headroom_systems::install();
    let file = File {
        name: name.into(),
        text: text.into(),
    };
    is(&import::files(&[file], &Alone, None), expected);
}

#[track_caller]
fn said(text: &str, expected: &[(&str, &str)]) {
    headroom_systems::install();
    is(&import::words(text, &Alone), expected);
}

#[track_caller]
fn is(input: &Input, expected: &[(&str, &str)]) {
    assert_eq!(input.refused, None);
    assert_eq!(input.asks, vec![]);
    assert_eq!(input.problems, vec![]);
    let scenario = resolve(&input.draft).scenario;
    assert_eq!(scenario.check(), vec![]);
    for (setting, value) in expected {
        let setting = settings::named(setting).unwrap();
        let wanted = setting.parse(value).unwrap();
        assert_eq!(setting.value(&scenario), wanted, "{}", setting.path);
    }
}

#[test]
fn trls_commands_have_trls_defaults() {
    let command = |task: &str, more: &str| {
        format!(
            "CUDA_VISIBLE_DEVICES=0 trl {task} --model_name_or_path Qwen/Qwen3-4B --dataset_name d {more}\n"
        )
    };
    check(
        "a.sh",
        &command("sft", ""),
        &[
            ("task", "sft"),
            ("seq", "1024"),
            ("precision", "amp-bf16"),
            ("ckpt", "layers"),
            ("loss", "library"),
        ],
    );
    // Liger's forward takes the place of the fused head.
    check(
        "a.sh",
        &command("sft", "--use_liger_kernel true"),
        &[("task", "pretraining"), ("loss", "liger-linear")],
    );
    check(
        "a.sh",
        &command("dpo", "--use_liger_kernel true"),
        &[("task", "dpo"), ("task_head", "liger"), ("loss", "library")],
    );
}

#[test]
fn what_is_no_reason_for_no_answer_is_left_out_and_said() {
    // Compiled graphs of this network are not modelled; a reward model has no choice of a head.
    let gemma = "base_model: google/gemma-3-4b-it\nadapter: lora\nlora_r: 8\nlora_target_linear: true\nsequence_len: 2048\n\
         micro_batch_size: 1\ngradient_accumulation_steps: 2\noptimizer: adamw_torch\nbf16: true\ntorch_compile: true\n\
         datasets: [{path: d}]\nlearning_rate: 1e-4\nnum_epochs: 1\n";
    check("a.yaml", gemma, &[("compile", "nothing")]);
    let reward = "base_model: Qwen/Qwen2.5-0.5B\nreward_model: true\nchat_template: tokenizer_default\nsequence_len: 1024\n\
         micro_batch_size: 2\ngradient_accumulation_steps: 1\noptimizer: adamw_torch\nbf16: true\n\
         datasets: [{path: d}]\nlearning_rate: 1e-5\nnum_epochs: 1\n";
    check("a.yaml", reward, &[("task", "reward")]);
}

#[test]
fn a_trainer_trains_on_the_models_own_loss() {
    check(
        "a.sh",
        "torchrun --nproc_per_node 1 run_clm.py --model_name_or_path meta-llama/Llama-3.2-1B --block_size 2048 --bf16 true \
         --per_device_train_batch_size 2 --output_dir o --learning_rate 1e-5 --num_train_epochs 1\n",
        &[("task", "pretraining"), ("mb", "2"), ("loss", "library")],
    );
}

#[test]
fn without_autocast_weights_compute_in_their_own_type() {
    check(
        "a.sh",
        "accelerate launch --num_processes 1 --mixed_precision no train_sft.py --model_name_or_path Qwen/Qwen3-0.6B \
         --torch_dtype bfloat16 --per_device_train_batch_size 2 --max_length 512 --output_dir o --learning_rate 1e-5 \
         --num_train_epochs 1 --logging_steps 1\n",
        &[("precision", "bf16")],
    );
}

#[test]
fn a_program_that_could_swap_blocks_reads_networks_that_cannot() {
    let command = "accelerate launch sdxl_train_network.py --pretrained_model_name_or_path=stabilityai/stable-diffusion-xl-base-1.0 \
         --train_batch_size=2 --resolution=1024,1024 --network_module=networks.lora --network_dim=32 --mixed_precision=bf16 \
         --optimizer_type=AdamW8bit --gradient_checkpointing --cache_latents --network_train_unet_only --train_data_dir=/data\n";
    check(
        "a.sh",
        command,
        &[
            ("model", "sdxl-unet"),
            ("mb", "2"),
            ("lora_rank", "32"),
            ("precision", "amp-bf16-on-bf16"),
        ],
    );
}

#[test]
fn verl_frees_vllm_and_the_reference_for_the_update() {
    let run = |more: &str| {
        format!(
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=256 data.max_prompt_length=512 \
             data.max_response_length=512 actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct \
             actor_rollout_ref.actor.strategy=fsdp2 actor_rollout_ref.actor.ppo_mini_batch_size=64 \
             actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 actor_rollout_ref.actor.use_kl_loss=True \
             actor_rollout_ref.rollout.n=8 actor_rollout_ref.rollout.name=vllm \
             actor_rollout_ref.rollout.tensor_model_parallel_size=2 actor_rollout_ref.rollout.gpu_memory_utilization=0.6 \
             actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=8 trainer.n_gpus_per_node=8 trainer.nnodes=1 {more}\n"
        )
    };
    let own = [
        ("trainer", "verl"),
        ("task_head", "in-place"),
        ("reference", "copy"),
        ("sampler", "vllm"),
        ("vllm_share", "0.6"),
        ("vllm_tp", "2"),
        ("vllm_sleep", "on"),
        ("scored_rows", "8"),
        ("sync_each", "on"),
        ("reduce_dtype", "fp32"),
    ];
    check("run.sh", &run(""), &own);
    check(
        "run.sh",
        &run(
            "actor_rollout_ref.actor.fsdp_config.param_offload=True actor_rollout_ref.actor.fsdp_config.optimizer_offload=True",
        ),
        &[("sampling_offload", "both")],
    );
    check(
        "run.sh",
        &run("actor_rollout_ref.rollout.free_cache_engine=False"),
        &[("vllm_sleep", "off")],
    );
}

#[test]
fn gpus_that_only_generate_shard_nothing() {
    let run = |more: &str| {
        format!(
            "ray job submit -- python3 -m openrlhf.cli.train_ppo_ray --actor_num_gpus_per_node 4 --ref_num_gpus_per_node 4 \
             --vllm_num_engines 2 --vllm_tensor_parallel_size 2 --advantage_estimator group_norm --pretrain Qwen/Qwen3-4B \
             --micro_train_batch_size 2 --train_batch_size 64 --prompt_max_len 512 --generate_max_len 512 --zero_stage 3 --bf16 \
             --flash_attn --n_samples_per_prompt 8 {more}\n"
        )
    };
    check(
        "run.sh",
        &run(""),
        &[
            ("gpus", "4"),
            ("sampler", "vllm-server"),
            ("reference", "none"),
        ],
    );
    check(
        "run.sh",
        &run(
            "--colocate_all_models --vllm_enable_sleep --deepspeed_enable_sleep --vllm_gpu_memory_utilization 0.5 --init_kl_coef 1e-3",
        ),
        &[
            ("gpus", "4"),
            ("sampler", "vllm"),
            ("vllm_sleep", "on"),
            ("sampling_offload", "both"),
            ("reference", "copy"),
        ],
    );
}

#[test]
fn a_critic_leaves_its_parameters_and_states_beside_the_policy() {
    let run = |more: &str| {
        format!(
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=gae data.max_prompt_length=512 data.max_response_length=512 \
             actor_rollout_ref.model.path=Qwen/Qwen2.5-0.5B-Instruct actor_rollout_ref.actor.strategy=fsdp2 \
             actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 \
             actor_rollout_ref.rollout.name=vllm trainer.n_gpus_per_node=4 trainer.nnodes=1 {more}\n"
        )
    };
    // Twelve bytes of each of 494 million parameters, a quarter of them on each of four GPUs.
    check("run.sh", &run(""), &[("task", "grpo"), ("kept", "1414")]);
    let offloaded = "critic.model.fsdp_config.param_offload=True critic.model.fsdp_config.optimizer_offload=True";
    check(
        "run.sh",
        &run(offloaded),
        &[("task", "grpo"), ("kept", "0")],
    );
}

#[test]
fn rows_that_are_no_groups_are_read_as_rows() {
    check(
        "a.sh",
        "CUDA_VISIBLE_DEVICES=0 trl grpo --model_name_or_path Qwen/Qwen3-0.6B --dataset_name d --num_generations 16 \
         --per_device_train_batch_size 3 --max_prompt_length 128 --max_completion_length 128\n",
        &[("generations", "1"), ("mb", "3")],
    );
}

#[test]
fn a_sentence_that_names_its_program_needs_no_batch() {
    said(
        "qwen3 4b lora 4090 unsloth",
        &[
            ("trainer", "unsloth"),
            ("gpu", "rtx-4090-24gb"),
            ("mb", "1"),
        ],
    );
    said(
        "resnet50 linear probe on T4 batch 256",
        &[("train_only", "fc"), ("mb", "256")],
    );
    said(
        "GRPO Qwen2.5-1.5B 4090 8 generations",
        &[("generations", "8"), ("mb", "8")],
    );
}

#[test]
fn a_classifier_is_read_by_its_constructor() {
    check(
        "a.py",
        "import torch, torchvision\nfrom torchvision import transforms as T\n\
         cut = T.RandomResizedCrop(160)\nmodel = torchvision.models.resnet50(weights=None).cuda()\n\
         opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)\n\
         loader = torch.utils.data.DataLoader(ds, batch_size=64)\nfor x, y in loader:\n    model(x).sum().backward()\n    opt.step()\n",
        &[("model", "resnet-50"), ("mb", "64"), ("dims", "img=160")],
    );
}

#[test]
fn a_segmenter_is_read_by_its_backbone_and_heads() {
    let of = |model: &str| {
        format!(
            "model = dict(type='EncoderDecoder', {model})\n\
             train_dataloader = dict(batch_size=2, dataset=dict(pipeline=[dict(type='RandomCrop', crop_size=(512, 1024))]))\n\
             optim_wrapper = dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.01, momentum=0.9))\n"
        )
    };
    let head =
        |kind: &str| format!("decode_head=dict(type='{kind}', channels=512, num_classes=150)");
    let trunk = |kind: &str, depth: u64, strides: &str| {
        format!("backbone=dict(type='{kind}', depth={depth}, strides={strides})")
    };
    check(
        "a.py",
        &of(&format!(
            "{}, {}",
            trunk("ResNetV1c", 101, "(1, 2, 1, 1)"),
            head("PSPHead")
        )),
        &[
            ("model", "pspnet-r50-d8"),
            ("dims", "classes=150,depths_2=23,img=512,img_w=1024"),
            ("mb", "2"),
        ],
    );
    check(
        "a.py",
        &of(&format!(
            "{}, {}",
            trunk("ResNet", 50, "(1, 2, 2, 2)"),
            head("UPerHead")
        )),
        &[
            ("model", "upernet-r50"),
            ("dims", "classes=150,deep_stem=0,img=512,img_w=1024"),
        ],
    );
}

#[test]
fn a_scheduler_names_the_card() {
    check(
        "a.sh",
        "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gres=gpu:h100:8\nsrun torchrun --nnodes 2 --nproc_per_node 8 run_clm.py \
         --model_name_or_path mistralai/Mistral-7B-v0.3 --per_device_train_batch_size 2 --bf16 --block_size 4096 --output_dir o \
         --dataset_name wikitext --learning_rate 1e-5\n",
        &[
            ("gpu", "h100-sxm5-80gb"),
            ("gpus", "16"),
            ("trainer", "transformers"),
        ],
    );
}

#[test]
fn lightnings_trainer_is_read_where_a_script_calls_it() {
    check(
        "a.py",
        "import lightning as L, torch\nfrom transformers import AutoModelForMaskedLM\nclass M(L.LightningModule):\n    \
         def __init__(self):\n        super().__init__()\n        \
         self.model = AutoModelForMaskedLM.from_pretrained('answerdotai/ModernBERT-base')\n    \
         def training_step(self, b, i):\n        return self.model(**b).loss\n    def configure_optimizers(self):\n        \
         return torch.optim.AdamW(self.parameters(), lr=1e-4)\n\
         trainer = L.Trainer(devices=4, strategy='ddp', precision='bf16-mixed', accumulate_grad_batches=2)\n\
         loader = torch.utils.data.DataLoader(ds, batch_size=32)\nmax_length = 512\ntrainer.fit(M(), loader)\n",
        &[
            ("gpus", "4"),
            ("par", "ddp"),
            ("precision", "amp-bf16"),
            ("accum", "2"),
            ("mb", "32"),
            ("seq", "512"),
        ],
    );
}

#[test]
fn fsdp_1_around_several_models_is_taken_as_fsdp_2() {
    check(
        "a.sh",
        "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=256 data.max_prompt_length=512 \
         data.max_response_length=512 actor_rollout_ref.model.path=Qwen/Qwen2.5-1.5B-Instruct \
         actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 \
         actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.gpu_memory_utilization=0.6 \
         actor_rollout_ref.rollout.n=4 trainer.n_gpus_per_node=8 trainer.nnodes=1\n",
        &[("task", "grpo"), ("par", "fsdp2"), ("gpus", "8")],
    );
}

#[test]
fn adapters_on_every_layer_leave_a_frozen_tower() {
    check(
        "a.yaml",
        "model_name_or_path: Qwen/Qwen2.5-VL-7B-Instruct\nstage: sft\ndo_train: true\nfinetuning_type: lora\n\
         lora_target: all\ndataset: d\ntemplate: qwen2_vl\ncutoff_len: 2048\noutput_dir: o\n\
         per_device_train_batch_size: 1\nlearning_rate: 1.0e-4\nbf16: true\n",
        &[("lora_exclude", "visual")],
    );
}
