//! diffusers' training scripts: adapters and all weights, of U-Nets by `examples/text_to_image`, of transformers by
//! `examples/dreambooth`, which read latents and texts from caches.

use super::common::learning_rate;
use super::diffusion::{self, Checkout, Run, Trainer};
use super::header::header;
use super::refuse;
use super::{Files, Target};
use headroom_catalog::ModelEntry;
use headroom_core::estimate::Estimate;
use headroom_reader::programs::diffusers::adapted;
use headroom_scenario::{Case, Parallelism, Precision, Problem, Quantization, Scenario};

pub(super) const TARGET: Target = Target {
    id: "diffusers",
    title: "diffusers' scripts",
    versions: "diffusers 58eb52c (August 2026)",
    differs: "",
    write,
};

const CHECKOUT: Checkout = Checkout {
    variable: "DIFFUSERS",
    folder: "diffusers",
    repository: "huggingface/diffusers",
    commit: "58eb52c0803ea9af3abec60841c2a093bdf1f951",
};

const ADAPTED: &[Precision] = &[
    Precision::AmpBf16OnBf16,
    Precision::AmpFp16OnFp16,
    Precision::Fp32,
];
/// Weights are loaded in fp32 where all are trained.
const FULL: &[Precision] = &[Precision::AmpBf16, Precision::AmpFp16, Precision::Fp32];

/// The scripts of a model, without their ending; without one for all weights it has adapters only.
struct Scripts {
    id: &'static str,
    lora: &'static str,
    full: Option<&'static str>,
}

const fn scripts(id: &'static str, lora: &'static str) -> Scripts {
    Scripts {
        id,
        lora,
        full: None,
    }
}

const fn both(id: &'static str, lora: &'static str, full: &'static str) -> Scripts {
    Scripts {
        id,
        lora,
        full: Some(full),
    }
}

const SD_3: [&str; 2] = ["train_dreambooth_lora_sd3", "train_dreambooth_sd3"];
const SD: [&str; 2] = ["train_text_to_image_lora", "train_text_to_image"];

const SCRIPTS: &[Scripts] = &[
    both("sd-1.5-unet", SD[0], SD[1]),
    both("sd-2.1-unet", SD[0], SD[1]),
    both(
        "sdxl-unet",
        "train_text_to_image_lora_sdxl",
        "train_text_to_image_sdxl",
    ),
    both("sd3-medium", SD_3[0], SD_3[1]),
    both("sd3.5-medium", SD_3[0], SD_3[1]),
    both("sd3.5-large", SD_3[0], SD_3[1]),
    both(
        "flux.1-dev",
        "train_dreambooth_lora_flux",
        "train_dreambooth_flux",
    ),
    scripts("flux.2-dev", "train_dreambooth_lora_flux2"),
    scripts("flux.2-klein-base-4b", "train_dreambooth_lora_flux2_klein"),
    scripts("flux.2-klein-base-9b", "train_dreambooth_lora_flux2_klein"),
    scripts("lumina-image-2.0", "train_dreambooth_lora_lumina2"),
    scripts("qwen-image", "train_dreambooth_lora_qwen_image"),
    scripts("sana-1.6b", "train_dreambooth_lora_sana"),
    scripts("z-image", "train_dreambooth_lora_z_image"),
];

/// What a script leaves on the GPU that is not predicted.
fn differs(script: &str) -> &'static str {
    match script {
        "train_text_to_image_lora" | "train_text_to_image" => {
            "the script keeps the VAE and the text encoder on the GPU, 0.4 to 0.8 GB in 16 bits, and runs them in each step"
        }
        "train_text_to_image_lora_sdxl" => {
            "the script keeps the VAE, in fp32, and the text encoders on the GPU, 2.0 GB together, and runs them in each step"
        }
        "train_dreambooth_sd3" | "train_dreambooth_flux" => {
            "the script keeps the VAE on the GPU, 0.2 GB in 16 bits, and runs it in each step"
        }
        _ => "",
    }
}

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let lora = scenario.training.lora.as_ref();
    let scripts = refuse::model_among(scenario, SCRIPTS, |scripts| scripts.id);
    let (scripts, mut problems) = match scripts {
        Ok(scripts) => (Some(scripts), Vec::new()),
        Err(problem) => (None, vec![problem]),
    };
    let full = scripts.and_then(|scripts| scripts.full);
    let script = match lora {
        Some(_) => scripts.map(|scripts| scripts.lora),
        None => full,
    }
    .unwrap_or_default();
    let texts = script.starts_with("train_text_to_image");
    problems.extend(fixed_by(scenario, script, texts));
    let trainer = Trainer {
        reader: "diffusers",
        settings: match (texts, lora.is_some()) {
            (true, true) => &[
                "training.lora.fp32_adapters",
                "runtime.workers",
                "runtime.save_every",
                "runtime.save_keep",
            ],
            (true, false) => &[
                "training.ema",
                "training.ema_on_host",
                "runtime.workers",
                "runtime.save_every",
                "runtime.save_keep",
            ],
            _ => &[
                "training.lora.fp32_adapters",
                "training.lora.dropout",
                "runtime.workers",
                "runtime.save_every",
                "runtime.save_keep",
            ],
        },
        adapted: ADAPTED,
        full: if full.is_some() { FULL } else { &[] },
        quantizations: &[Quantization::None],
        optimizers: &["adamw", "adamw8bit"],
        fused: false,
        any_layers: true,
        strategies: &[Parallelism::None, Parallelism::Ddp],
    };
    let run = diffusion::run(scenario, &trainer, problems)?;
    let differs = differs(script);
    let header = header(&Target { differs, ..TARGET }, scenario, estimate);
    let words = words(scenario, &run, script, texts);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let folder = if texts { "text_to_image" } else { "dreambooth" };
    let file = format!("examples/{folder}/{script}.py");
    let mixed = ["--mixed_precision", diffusion::mixed(scenario)];
    let launch = diffusion::launch(&header, scenario, &CHECKOUT, "", &mixed, &file, &words);
    Ok(vec![launch.map_err(|problem| vec![problem])?])
}

/// What the scripts leave no choice of.
fn fixed_by(scenario: &Scenario, script: &str, texts: bool) -> Vec<Problem> {
    let mut problems = Vec::new();
    problems.extend(diffusion::squares(scenario));
    let training = &scenario.training;
    if training.ema_on_host && script != "train_text_to_image" {
        problems.push(Problem::new(
            "training.ema_on_host",
            "on",
            "off for this target",
        ));
    }
    let Some(lora) = &training.lora else {
        return problems;
    };
    if texts && let Some(own) = adapted(script) {
        problems.extend(diffusion::same_layers(&Case::of(scenario), lora, own).err());
    }
    // `cast_training_params` is for fp16 alone; PEFT makes adapters in the type of their layer.
    let wanted = match training.precision {
        Precision::AmpBf16OnBf16 => false,
        Precision::AmpFp16OnFp16 => true,
        _ => return problems,
    };
    if lora.fp32_adapters != wanted {
        let [given, expected] =
            [lora.fp32_adapters, wanted].map(|on| if on { "on" } else { "off" });
        let expected = format!(
            "{expected} for this target in {}",
            diffusion::mixed(scenario)
        );
        problems.push(Problem::new("training.lora.fp32_adapters", given, expected));
    }
    problems
}

/// The script's arguments.
fn words(scenario: &Scenario, run: &Run, script: &str, texts: bool) -> Vec<String> {
    let training = &scenario.training;
    let mut words: Vec<String> = Vec::new();
    let mut flag = |name: &str, on: bool| words.extend(on.then(|| format!("--{name}")));
    flag("gradient_checkpointing", run.checkpointing);
    flag("use_8bit_adam", run.optimizer == "adamw8bit");
    flag("use_ema", training.ema);
    flag("offload_ema", training.ema_on_host);
    flag("cache_latents", !texts && training.lora.is_some());
    let mut option = |name: &str, value: String| words.extend([format!("--{name}"), value]);
    option(
        "pretrained_model_name_or_path",
        diffusion::repository(run.entry).into(),
    );
    if texts {
        option("train_data_dir", "images".into());
        option("caption_column", "text".into());
    } else {
        option("instance_data_dir", "images".into());
        option("instance_prompt", "a photo of sks".into());
    }
    option("output_dir", "out".into());
    option("resolution", run.height.to_string());
    option("train_batch_size", scenario.data.micro_batch.to_string());
    option(
        "gradient_accumulation_steps",
        training.accumulation.to_string(),
    );
    option("max_train_steps", diffusion::steps(scenario).to_string());
    option("learning_rate", format!("{:?}", learning_rate(scenario)));
    option("lr_scheduler", "constant".into());
    option("mixed_precision", diffusion::mixed(scenario).into());
    // An infinite limit clips nothing, and the norm is computed by `clip_grad_norm_` all the same.
    option(
        "max_grad_norm",
        if training.clip { "1.0" } else { "inf" }.into(),
    );
    option(
        "dataloader_num_workers",
        scenario.runtime.workers.to_string(),
    );
    if let Some(every) = scenario.runtime.save_every {
        option("checkpointing_steps", every.to_string());
    }
    if let Some(keep) = scenario.runtime.save_keep {
        option("checkpoints_total_limit", keep.to_string());
    }
    if let Some(lora) = &training.lora {
        option("rank", lora.rank.to_string());
        if !texts {
            option("lora_layers", lora.targets.join(","));
            option("lora_dropout", lora.dropout.to_string());
            if !matches!(
                script,
                "train_dreambooth_lora_sd3" | "train_dreambooth_lora_lumina2"
            ) {
                option("lora_alpha", lora.rank.to_string());
            }
        }
    }
    if !texts {
        option("max_sequence_length", text_length(run.entry).to_string());
    }
    words
}

/// Tokens of the longest text: of Stable Diffusion 3 those of T5, beside CLIP's.
fn text_length(entry: &ModelEntry) -> u64 {
    let all = entry.size("ctx_len").unwrap_or(512);
    if entry.arch == "sd3" {
        all.saturating_sub(77)
    } else {
        all
    }
}
