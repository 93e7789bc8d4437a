use super::super::testing::{check, check_beside};

const RUN: &str = "accelerate launch --num_processes 1 sdxl_train_network.py \\
  --pretrained_model_name_or_path=models/mine.safetensors --dataset_config=data.toml \\
  --network_module=networks.lora --network_dim=24 --optimizer_type=Prodigy \\
  --mixed_precision=bf16 --gradient_checkpointing --cache_latents --fp8_base --xformers
";

#[test]
fn sizes_are_in_the_datasets_file() {
    check(
        "run.sh",
        RUN,
        &[
            ("outcome", "question"),
            ("asks", "batch resolution"),
            ("model", "stabilityai/stable-diffusion-xl-base-1.0"),
            ("strategy", "none"),
            ("rank", "24"),
            ("weights", "fp8"),
            ("compute", "bf16 autocast"),
            ("optimizer", "prodigy"),
            ("text_encoders_trained", "true"),
            ("attention", "xformers"),
        ],
    );
    let data = "[general]\nbatch_size = 2\n[[datasets]]\nresolution = [832, 1216]\n\
                [[datasets.subsets]]\nimage_dir = 'a'\n[[datasets]]\nresolution = 512\nbatch_size = 6\n";
    check_beside(
        &[("run.sh", RUN), ("data.toml", data)],
        &[
            ("outcome", "estimate"),
            ("micro_batch", "6"),
            ("height", "1216"),
            ("width", "832"),
        ],
    );
}

#[test]
fn full_training_keeps_fp32_weights_unless_told() {
    let text = "accelerate launch train_db.py --pretrained_model_name_or_path=x/y \\
      --train_data_dir=a --resolution=512,768 --train_batch_size=3 --mixed_precision=fp16\n";
    check(
        "run.sh",
        text,
        &[
            ("weights", "fp32"),
            ("compute", "fp16 autocast"),
            ("trained", "all of the unet and the text encoders"),
            ("height", "768"),
            ("micro_batch", "3"),
            ("strategy", "ddp"),
        ],
    );
    let pure = text.replace(
        "--mixed_precision=fp16",
        "--mixed_precision=bf16 --full_bf16",
    );
    check("run.sh", &pure, &[("weights", "bf16")]);
}

#[test]
fn lines_that_lost_their_backslashes_belong_together() {
    let text = "accelerate launch fine_tune.py\n  --pretrained_model_name_or_path=a/b\n  --train_data_dir=x\n  \
                --resolution=512 --use_8bit_adam\n";
    check(
        "run.sh",
        text,
        &[("outcome", "estimate"), ("optimizer", "adamw8bit")],
    );
}

#[test]
fn the_size_of_wan_is_its_task() {
    let text = "accelerate launch src/musubi_tuner/wan_train_network.py --task t2v-1.3B \\
      --dit a.safetensors --dataset_config d.toml --mixed_precision bf16 --blocks_to_swap 20 \\
      --network_module networks.lora_wan --network_dim 32\n";
    check(
        "run.sh",
        text,
        &[
            ("asks", "batch resolution frames"),
            ("model", "Wan-AI/Wan2.1-T2V-1.3B"),
            ("blocks_swapped", "20"),
            ("text_encoders_trained", "false"),
        ],
    );
}

#[test]
fn the_same_flags_are_a_file_of_settings() {
    let text = "[model]\npretrained_model_name_or_path = 'a/b'\n[network]\nnetwork_module = 'networks.lora_flux'\n\
                network_dim = 8\n[train]\ntrain_data_dir = 'x'\nresolution = '1024,1024'\nmixed_precision = 'bf16'\n\
                optimizer_type = 'AdamW8bit'\nnetwork_train_unet_only = true\n";
    check(
        "config.toml",
        text,
        &[
            ("outcome", "estimate"),
            ("model", "black-forest-labs/FLUX.1-dev"),
            ("optimizer", "adamw8bit"),
            ("height", "1024"),
        ],
    );
}
