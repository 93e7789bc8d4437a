//! What is exported to trainers of images and videos is read back as the same run, or refused by name.

use std::collections::BTreeSet;

use headroom_core::estimate::{Estimate, quick_peak};
use headroom_scenario::resolve::resolve;
use headroom_scenario::{Problem, Scenario, presets, settings};
use headroom_scripts::{Alone, File};

use super::super::{target, targets};
use crate::import;

const UNET: &str = "to_q,to_k,to_v,to_out.0,net.0.proj,net.2,proj_in,proj_out";
const FLUX: &str = "to_q,to_k,to_v,to_out.0,add_q_proj,add_k_proj,add_v_proj,to_add_out,net.0.proj,net.2,proj_mlp,proj_out";
const JOINT: &str =
    "to_q,to_k,to_v,to_out.0,add_q_proj,add_k_proj,add_v_proj,to_add_out,net.0.proj,net.2";
const WAN: &str = "to_q,to_k,to_v,to_out.0,net.0.proj,net.2";

/// `preset changes`: the scenario.
fn scenario(words: &str) -> Scenario {
    let mut words = words.split_whitespace();
    let preset = match words.next() {
        Some("sd") => "sd-1.5-lora-8gb",
        Some("sdxl") => "sdxl-lora-16gb",
        Some("full") => "sd-1.5-full-24gb",
        _ => "flux-lora-48gb",
    };
    let mut scenario = presets::find(preset).unwrap().scenario();
    for word in words {
        let (name, value) = word.split_once('=').unwrap();
        let value = match value {
            "UNET" => UNET,
            "FLUX" => FLUX,
            "JOINT" => JOINT,
            "WAN" => WAN,
            value => value,
        };
        settings::set(&mut scenario, name, value).unwrap();
    }
    assert_eq!(
        scenario
            .check()
            .iter()
            .find(|it| it.field().starts_with("model")),
        None
    );
    scenario
}

/// Every row: a program, a run; what its files hold.
const ROWS: &[&str] = &[
    "kohya sdxl save_every=100 workers=2 -> sdxl_train_network.py|networks.lora\"|network_dim = 16|save_every_n_steps = 100|optimizer_args = [\"fused=True\"]",
    "kohya sdxl quant=fp8 lora_fp32=off height=1216 width=832 -> fp8_base = true|full_bf16 = true|resolution = [832, 1216]",
    "kohya sd lora_targets=UNET optim=adamw-8bit -> train_network.py|AdamW8bit|Not as predicted: its text encoder",
    "kohya full -> train_db.py|stop_text_encoder_training = -1|mixed_precision = \"fp16\"",
    "kohya full model=sdxl-unet precision=amp-bf16-on-bf16 optim=adafactor-hf -> sdxl_train.py|relative_step=False|full_bf16",
    "kohya flux lora_targets=FLUX training.block_swap=10 quant=fp8 -> flux_train_network.py|split_qkv=True|blocks_to_swap = 10",
    "kohya flux model=sd3.5-medium lora_targets=JOINT gpus=2 par=ddp -> sd3_train_network.py|--multi_gpu|--num_processes 2",
    "diffusers sdxl lora_targets=to_q,to_k,to_v,to_out.0 optim=adamw lora_fp32=off -> train_text_to_image_lora_sdxl.py|--rank 16|keeps the VAE",
    "diffusers sd optim=adamw-8bit precision=amp-fp16-on-fp16 -> train_text_to_image_lora.py|--use_8bit_adam|--mixed_precision fp16",
    "diffusers full ema=on -> train_text_to_image.py|--use_ema",
    "diffusers flux optim=adamw lora_fp32=off -> train_dreambooth_lora_flux.py|--lora_layers to_q,to_k,to_v,to_out.0|--cache_latents",
    "diffusers flux model=qwen-image optim=adamw lora_fp32=off gpus=2 par=ddp -> train_dreambooth_lora_qwen_image.py|--max_sequence_length",
    "diffusers flux model=sd3.5-medium optim=adamw lora_fp32=off height=512 width=512 -> train_dreambooth_lora_sd3.py|--resolution 512",
    "musubi flux model=wan2.1-t2v-1.3b lora_targets=WAN frames=33 training.block_swap=5 -> wan_train_network.py|task = \"t2v-1.3B\"|target_frames = [33]|wan_cache_latents.py",
    "musubi flux model=wan2.1-i2v-14b lora_targets=JOINT frames=17 -> --i2v|wan_cache_text_encoder_outputs.py",
    "musubi flux model=qwen-image lora_targets=JOINT quant=fp8 -> networks.lora_qwen_image|fp8_scaled = true|--model_version original",
    "musubi flux model=flux.1-kontext-dev lora_targets=FLUX -> control_directory|fewer weights",
    "musubi flux model=hunyuanvideo lora_targets=FLUX frames=33 height=544 width=960 -> hv_train_network.py|discrete_flow_shift = 7.0",
    "ai-toolkit sdxl -> arch: sdxl|only_if_contains|fused: true",
    "ai-toolkit flux quant=fp8 optim=adamw-8bit -> arch: flux|quantize: true|noise_scheduler: flowmatch|optimizer: adamw8bit",
    "ai-toolkit flux model=wan2.1-t2v-1.3b lora_targets=WAN frames=33 height=480 width=480 -> num_frames: 33|resolution: [480]",
    "simpletuner sdxl precision=bf16 optim=adamw lora_fp32=off -> \"model_family\": \"sdxl\"|\"lora_rank\": 16|\"optimizer\": \"torch-adamw\"",
    "simpletuner flux precision=bf16 optim=adamw-8bit lora_fp32=off quant=nf4 -> nf4-bnb|\"model_flavour\": \"dev\"",
    "simpletuner flux model=wan2.1-t2v-1.3b precision=bf16 optim=adamw-8bit lora_fp32=off frames=33 height=480 width=480 training.block_swap=4 -> \"musubi_blocks_to_swap\": 4|\"num_frames\": 33",
    "simpletuner full precision=bf16 optim=adamw gpus=2 par=ddp -> \"model_type\": \"full\"|TRAINING_NUM_PROCESSES=2",
    "diffusion-pipe flux lora_targets=FLUX precision=bf16 -> type = \"flux\"|dtype = \"float32\"|frame_buckets = [1]",
    "diffusion-pipe flux lora_targets=FLUX precision=bf16 lora_fp32=off quant=fp8 training.block_swap=8 optim=adamw-8bit gpus=2 par=ddp -> blocks_to_swap = 8|--num_gpus 2",
    "diffusion-pipe flux model=wan2.1-t2v-1.3b lora_targets=WAN frames=33 precision=bf16 lora_fp32=off -> ckpt_path|frame_buckets = [33]",
    "onetrainer sdxl quant=nf4 optim=adamw-8bit -> NFLOAT_4|STABLE_DIFFUSION_XL_10_BASE|ADAMW_8BIT",
    "onetrainer flux lora_fp32=off quant=int8 -> FLUX_DEV_1|\"lora_weight_dtype\": \"BFLOAT_16\"|INT_8",
    "onetrainer full optim=adafactor-hf precision=amp-bf16-on-bf16 epochs=7 -> \"training_method\": \"FINE_TUNE\"|ADAFACTOR|\"epochs\": 7",
];

#[test]
fn what_is_written_is_read_back_as_the_same_run() {
    let mut programs = BTreeSet::new();
    for row in ROWS {
        let (run, parts) = row.split_once(" -> ").unwrap();
        let (id, run) = run.split_once(' ').unwrap();
        programs.insert(id);
        let scenario = scenario(run);
        let target = target(id).unwrap();
        let files = (target.write)(&scenario, &Estimate::default());
        let files = files.unwrap_or_else(|problems| panic!("{row}: {problems:?}"));
        let text: String = files.iter().map(|file| file.contents.as_str()).collect();
        for part in parts.split('|') {
            assert!(text.contains(part), "{row}: {part} is not in\n{text}");
        }
        // Without their link, and on the same GPU, which few programs are told.
        let bare = |text: &str| {
            let lines = text
                .lines()
                .filter(|line| !line.starts_with("# Scenario: "));
            lines.fold(String::new(), |all, line| all + line + "\n")
        };
        let files: Vec<File> = files
            .iter()
            .map(|file| File {
                name: file.name.into(),
                text: bare(&file.contents),
            })
            .collect();
        let brought = import::files(&files, &Alone, None);
        assert_eq!((brought.refused, brought.asks.len()), (None, 0), "{row}");
        let mut read = resolve(&brought.draft).scenario;
        read.hardware.gpu.clone_from(&scenario.hardware.gpu);
        let (peak, wanted) = (quick_peak(&read), quick_peak(&scenario));
        assert_eq!(peak.unwrap(), wanted.unwrap(), "{row}\n{text}");
    }
    assert_eq!(programs.len(), 7);
}

#[test]
fn what_a_trainer_of_images_cannot_express_is_refused_by_name() {
    #[track_caller]
    fn check(id: &str, run: &str, fields: &str) {
        let problems = target(id).unwrap().problems(&scenario(run));
        let found: Vec<&str> = problems.iter().map(Problem::field).collect();
        assert_eq!(found.join(" "), fields, "{id} {run}");
    }
    check("kohya", "flux", "training.lora.targets");
    check("kohya", "sdxl lora_method=dora", "training.lora.method");
    check(
        "kohya",
        "sdxl ema=on optim=muon",
        "training.ema training.optimizer",
    );
    check("kohya", "sdxl gpus=2 par=fsdp2", "parallel.strategy");
    check("kohya", "full lora=off quant=fp8", "training.quantization");
    check("kohya", "flux model=qwen-image", "model.id");
    check("diffusers", "sd optim=adamw", "training.lora.fp32_adapters");
    check(
        "diffusers",
        "flux optim=adamw lora_fp32=off height=512",
        "data.height",
    );
    check(
        "diffusers",
        "flux model=z-image lora=off precision=bf16 optim=adamw",
        "training.lora",
    );
    check(
        "musubi",
        "flux model=qwen-image lora_targets=JOINT compile=model",
        "training.compile",
    );
    check("ai-toolkit", "flux gpus=2 par=ddp", "parallel.strategy");
    check(
        "ai-toolkit",
        "flux model=flux.2-klein-base-4b",
        "training.lora.targets",
    );
    check(
        "simpletuner",
        "sdxl optim=adamw lora_fp32=off",
        "training.precision",
    );
    check("diffusion-pipe", "sdxl precision=bf16", "model.id");
    check("onetrainer", "sdxl max_steps=10", "runtime.max_steps");
    // Networks of language have other trainers.
    let llama = presets::find("llama-8b-lora-24gb").unwrap().scenario();
    for target in targets() {
        let written = (target.write)(&llama, &Estimate::default()).is_ok();
        assert!(
            !(written
                && ROWS
                    .iter()
                    .any(|row| row.starts_with(&format!("{} ", target.id))))
        );
    }
}

#[test]
fn a_run_is_changed_to_what_a_trainer_can_start() {
    #[track_caller]
    fn check(id: &str, run: &str, changes: &[&str]) {
        let found = target(id).unwrap().startable(&scenario(run)).unwrap();
        assert_eq!(found.changes, changes, "{id} {run}");
    }
    let layers = format!("Adapted layers: {FLUX}");
    check("kohya", "flux", &[layers.as_str()]);
    check("kohya", "sdxl", &[]);
    check("diffusers", "flux optim=adamw", &["fp32 adapters: off"]);
    check("ai-toolkit", "flux height=512 width=768", &["Height: 768"]);
}
