//! Law 2 of advice: what people published, for a model, a method and GPUs, is never faster than what is offered for them.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use headroom_advice::{Locks, plan};
use headroom_core::estimate::Prediction;
use headroom_scenario::{Scenario, settings};

/// A model with its method and GPUs, what the recipe sets, and where it was published.
const RECIPES: &[(&str, &str, &str)] = &[
    (
        "model=llama-3.1-8b gpu=rtx-4090-24gb mb=2 seq=2048 precision=bf16",
        "optim=adamw-paged-8bit optim_in_backward=on ckpt=layers loss=chunked-head",
        "torchtune, recipes/configs/llama3_1/8B_full_single_device.yaml",
    ),
    (
        "model=llama-3.1-8b gpu=rtx-4090-24gb mb=2 accum=8 seq=2048 precision=bf16 lora=on lora_rank=8",
        "ckpt=layers optim=adamw-fused loss=chunked-loss",
        "torchtune, recipes/configs/llama3_1/8B_lora_single_device.yaml",
    ),
    (
        "model=llama-30b gpu=rtx-a6000-48gb mb=16 seq=512 precision=amp-bf16-on-bf16 lora=on quant=nf4-double",
        "mb=1 accum=16 ckpt=layers optim=adamw-paged-8bit",
        "QLoRA (Dettmers et al. 2023), scripts/finetune_guanaco_33b.sh",
    ),
    (
        "model=llama-3-8b gpu=rtx-4090-24gb mb=2 accum=4 seq=4096 precision=amp-bf16-on-bf16 lora=on lora_rank=32 quant=nf4",
        "ckpt=layers optim=adamw-paged",
        "Axolotl, examples/llama-3/qlora.yml",
    ),
    (
        "model=llama-3-8b gpu=h100-sxm5-80gb mb=1 accum=8 seq=8192 precision=bf16",
        "ckpt=layers optim=adamw-paged-8bit",
        "Axolotl, examples/llama-3/fft-8b.yaml",
    ),
    (
        "model=mistral-7b-v0.1 gpu=a100-sxm4-80gb gpus=8 mb=16 seq=2048 precision=amp-bf16",
        "par=zero3 ckpt=layers optim=adamw-fused",
        "alignment-handbook, recipes/zephyr-7b-beta/sft/config_full.yaml",
    ),
    (
        "model=llama-3.1-8b gpu=h100-sxm5-80gb gpus=8 mb=1 seq=8192 precision=amp-bf16",
        "par=fsdp2 ckpt=keep-half optim=adamw-fused",
        "torchtitan, llama3_8b: FSDP 2 with selective checkpointing",
    ),
    (
        "model=llama-3-70b gpu=a100-sxm4-80gb gpus=8 mb=1 seq=4096 precision=amp-bf16-on-bf16 lora=on",
        "par=zero3 ckpt=layers",
        "LLaMA-Factory, examples/train_lora: llama3_lora_sft_ds3.yaml",
    ),
    (
        "model=llama-3.1-70b gpu=rtx-4090-24gb gpus=2 mb=1 seq=1024 precision=amp-bf16-on-bf16 lora=on quant=nf4",
        "par=fsdp1 shard_quantized=on offload=parameters ckpt=layers",
        "Answer.AI, fsdp_qlora: 70B on two cards of 24 GB",
    ),
    (
        "model=whisper-large-v3 gpu=rtx-4090-24gb mb=16 seq=448 precision=amp-fp16",
        "mb=4 accum=4 ckpt=layers optim=adamw-8bit",
        "Hugging Face audio course, fine-tuning Whisper large-v3 on one GPU",
    ),
    (
        "model=bert-large-uncased gpu=t4-16gb mb=32 seq=512 precision=amp-fp16",
        "mb=8 accum=4",
        "transformers, examples/pytorch/language-modeling/run_mlm.py",
    ),
];

fn with(mut scenario: Scenario, words: &str) -> Scenario {
    for word in words.split_whitespace() {
        let (name, value) = word.split_once('=').unwrap();
        settings::set(&mut scenario, name, value).unwrap();
    }
    scenario
}

/// As fast to a fiftieth, for a plan that is simpler.
const AS_FAST: f64 = 1.02;

#[test]
fn no_plan_is_slower_than_what_people_published() {
    let mut compared = 0;
    for (base, recipe, source) in RECIPES {
        let base = with(Scenario::default(), base);
        let prediction = Prediction::new(with(base.clone(), recipe));
        let fits = prediction.estimate().unwrap().fits == Some(true);
        // A recipe that is predicted not to fit is a question to the engine, not to the planner.
        if !fits {
            continue;
        }
        let published = prediction.step_time().unwrap().step.expected.get();
        let plans = plan(&base, Locks::default()).unwrap().plans;
        let fastest = plans.iter().map(|plan| plan.full.seconds);
        let fastest = fastest.fold(f64::INFINITY, f64::min);
        assert!(
            fastest <= published * AS_FAST,
            "{source}: {published}, and at best {fastest}"
        );
        compared += 1;
    }
    assert!(compared >= RECIPES.len() - 1, "{compared}");
}
