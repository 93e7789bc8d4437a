//! AI Toolkit (ostris): one YAML for the job, on one GPU.

use super::common::{file, learning_rate};
use super::diffusion::{self, Checkout, Run, Trainer};
use super::header::header;
use super::{Files, Target, refuse};
use headroom_base::document::{Document, yaml};
use headroom_core::estimate::Estimate;
use headroom_scenario::{Parallelism, Precision, Problem, Quantization, Scenario, settings};

pub(super) const TARGET: Target = Target {
    id: "ai-toolkit",
    title: "AI Toolkit",
    versions: "ai-toolkit 27a03a9 (August 2026)",
    differs: "",
    write,
};

const CHECKOUT: Checkout = Checkout {
    variable: "AI_TOOLKIT",
    folder: "ai-toolkit",
    repository: "ostris/ai-toolkit",
    commit: "27a03a91f23eb1b757d5ec2e80ee3e129cfcc350",
};

const TRAINER: Trainer = Trainer {
    reader: "ai-toolkit",
    settings: &[
        "training.lora.dropout",
        "runtime.workers",
        "runtime.save_every",
        "runtime.save_keep",
    ],
    adapted: &[
        Precision::AmpBf16OnBf16,
        Precision::AmpFp16OnFp16,
        Precision::Fp32,
    ],
    full: &[Precision::AmpBf16OnBf16, Precision::Fp32],
    quantizations: &[Quantization::None, Quantization::Fp8],
    optimizers: &["adamw", "adamw8bit", "lion8bit"],
    fused: true,
    any_layers: true,
    strategies: &[Parallelism::None],
};

/// Models and its `arch` for them; `toolkit/config_modules.py`, `extensions_built_in/diffusion_models`, `toolkit/models`.
const MODELS: &[(&str, &str)] = &[
    ("sd-1.5-unet", "sd1"),
    ("sd-2.1-unet", "sd2"),
    ("sdxl-unet", "sdxl"),
    ("sd3-medium", "sd3"),
    ("sd3.5-medium", "sd3"),
    ("sd3.5-large", "sd3"),
    ("pixart-alpha-xl-2-1024", "pixart"),
    ("pixart-sigma-xl-2-1024", "pixart_sigma"),
    ("flux.1-dev", "flux"),
    ("flux.1-schnell", "flux"),
    ("flux.1-kontext-dev", "flux_kontext"),
    ("flux.2-dev", "flux2"),
    ("flux.2-klein-base-4b", "flux2_klein_4b"),
    ("flux.2-klein-base-9b", "flux2_klein_9b"),
    ("chroma1-hd", "chroma"),
    ("cogview4-6b", "cogview4"),
    ("lumina-image-2.0", "lumina2"),
    ("qwen-image", "qwen_image"),
    ("qwen-image-edit", "qwen_image_edit"),
    ("z-image", "zimage"),
    ("wan2.1-t2v-1.3b", "wan21"),
    ("wan2.1-t2v-14b", "wan21"),
    ("wan2.1-i2v-14b", "wan21_i2v"),
    ("wan2.2-t2v-a14b", "wan22_14b"),
    ("wan2.2-i2v-a14b", "wan22_14b_i2v"),
    ("wan2.2-ti2v-5b", "wan22_5b"),
];

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let model = refuse::model_among(scenario, MODELS, |(id, _)| id);
    let (arch, mut problems) = match model {
        Ok((_, arch)) => (*arch, Vec::new()),
        Err(problem) => ("", vec![problem]),
    };
    problems.extend(diffusion::squares(scenario));
    problems.extend(diffusion::substrings(scenario));
    problems.extend(quantized(scenario));
    let run = diffusion::run(scenario, &TRAINER, problems)?;
    let differs = match arch {
        "wan22_14b" | "wan22_14b_i2v" => "both experts are loaded, one on the GPU at a time",
        _ => "",
    };
    let header = header(&Target { differs, ..TARGET }, scenario, estimate);
    let job = yaml::write(&job(scenario, &run, arch));
    let launch = diffusion::alone(&header, scenario, &CHECKOUT, "run.py", &["job.yaml"]);
    Ok(vec![file("job.yaml", format!("{header}{job}")), launch])
}

fn quantized(scenario: &Scenario) -> Option<Problem> {
    let training = &scenario.training;
    let wrong = training.lora.is_none() && training.quantization != Quantization::None;
    let given = training.quantization.id();
    wrong.then(|| Problem::new("training.quantization", given, "none without adapters"))
}

fn job(scenario: &Scenario, run: &Run, arch: &str) -> Document {
    let training = &scenario.training;
    let mixed = match diffusion::mixed(scenario) {
        "no" => "fp32",
        mixed => mixed,
    };
    let mut process = Document::new()
        .with("type", "sd_trainer")
        .with("training_folder", "out")
        .with("device", "cuda:0");
    if let Some(lora) = &training.lora {
        let only: Vec<String> = lora.targets.iter().map(|name| format!(".{name}")).collect();
        let mut network = Document::new()
            .with("type", "lora")
            .with("linear", lora.rank)
            .with_note(
                "linear_alpha",
                lora.rank,
                "as the rank: adapters count once",
            );
        if lora.dropout > 0.0 {
            network = network.with("dropout", lora.dropout);
        }
        let only = Document::new().with("only_if_contains", only);
        process = process.with("network", network.with("network_kwargs", only));
    }
    let every = scenario
        .runtime
        .save_every
        .map_or(250, std::num::NonZero::get);
    let keep = scenario.runtime.save_keep.map_or(4, std::num::NonZero::get);
    let save = Document::new()
        .with("dtype", "float16")
        .with("save_every", every)
        .with("max_step_saves_to_keep", keep);
    let mut data = Document::new()
        .with_note(
            "folder_path",
            "images",
            "pictures or videos, each with its text in a .txt",
        )
        .with("caption_ext", "txt")
        .with("cache_latents_to_disk", true)
        .with("num_workers", scenario.runtime.workers)
        .with("resolution", Document::List(vec![run.height.into()]));
    if settings::frames(scenario).is_some() {
        data = data.with("num_frames", run.frames);
    }
    let flow = if run.entry.arch == "unet" {
        "ddpm"
    } else {
        "flowmatch"
    };
    let mut train = Document::new()
        .with("batch_size", scenario.data.micro_batch)
        .with("steps", diffusion::steps(scenario))
        .with("gradient_accumulation", training.accumulation)
        .with("train_unet", true)
        .with("train_text_encoder", false)
        .with_note(
            "cache_text_embeddings",
            true,
            "the text encoders leave the GPU",
        )
        .with("gradient_checkpointing", run.checkpointing)
        .with("noise_scheduler", flow)
        .with("optimizer", run.optimizer)
        .with_note("lr", learning_rate(scenario), "yours to choose")
        .with_note(
            "max_grad_norm",
            if training.clip { 1.0 } else { f64::INFINITY },
            "infinite: no clipping",
        )
        .with("disable_sampling", true)
        .with("dtype", mixed);
    if run.fused {
        train = train.with("optimizer_params", Document::new().with("fused", true));
    }
    let mut model = Document::new()
        .with("name_or_path", diffusion::repository(run.entry))
        .with("arch", arch);
    if training.quantization == Quantization::Fp8 {
        model = model.with("quantize", true).with("qtype", "qfloat8");
    }
    let process = process
        .with("save", save)
        .with("datasets", Document::List(vec![data]))
        .with("train", train)
        .with("model", model);
    let config = Document::new()
        .with("name", "headroom")
        .with("process", Document::List(vec![process]));
    Document::new()
        .with("job", "extension")
        .with("config", config)
}
