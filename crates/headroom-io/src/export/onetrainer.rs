//! OneTrainer (Nerogar): its configuration as JSON, on one GPU.

use super::common::{file, learning_rate};
use super::diffusion::{self, Checkout, Run, Trainer};
use super::header::header;
use super::{Files, Target, refuse};
use headroom_base::document::{Document, json};
use headroom_core::estimate::Estimate;
use headroom_scenario::{Parallelism, Precision, Problem, Quantization, Scenario, settings};

pub(super) const TARGET: Target = Target {
    id: "onetrainer",
    title: "OneTrainer",
    versions: "OneTrainer 23df383 (August 2026)",
    differs: "",
    write,
};

const CHECKOUT: Checkout = Checkout {
    variable: "ONETRAINER",
    folder: "OneTrainer",
    repository: "Nerogar/OneTrainer",
    commit: "23df3832e8f213d64c337e39f9365ba46e99fed0",
};

const TRAINER: Trainer = Trainer {
    reader: "onetrainer",
    settings: &[
        "training.lora.fp32_adapters",
        "runtime.epochs",
        "runtime.workers",
        "runtime.save_every",
    ],
    adapted: &[
        Precision::AmpBf16OnBf16,
        Precision::AmpFp16OnFp16,
        Precision::Fp32,
    ],
    full: &[
        Precision::AmpBf16,
        Precision::AmpFp16,
        Precision::AmpBf16OnBf16,
        Precision::Fp32,
    ],
    quantizations: &[
        Quantization::None,
        Quantization::Nf4,
        Quantization::Int8,
        Quantization::Fp8,
    ],
    optimizers: &[
        "ADAMW",
        "ADAMW_8BIT",
        "LION_8BIT",
        "ADAFACTOR",
        "SCHEDULE_FREE_ADAMW",
    ],
    fused: true,
    any_layers: true,
    strategies: &[Parallelism::None],
};

/// `config_version` of `modules/util/config/TrainConfig.py`: older files are migrated.
const VERSION: u64 = 11;

/// Models and their `ModelType`.
const MODELS: &[(&str, &str)] = &[
    ("sd-1.5-unet", "STABLE_DIFFUSION_15"),
    ("sd-2.1-unet", "STABLE_DIFFUSION_21"),
    ("sdxl-unet", "STABLE_DIFFUSION_XL_10_BASE"),
    ("sd3-medium", "STABLE_DIFFUSION_3"),
    ("sd3.5-medium", "STABLE_DIFFUSION_35"),
    ("sd3.5-large", "STABLE_DIFFUSION_35"),
    ("pixart-alpha-xl-2-1024", "PIXART_ALPHA"),
    ("pixart-sigma-xl-2-1024", "PIXART_SIGMA"),
    ("flux.1-dev", "FLUX_DEV_1"),
    ("flux.2-dev", "FLUX_2"),
    ("chroma1-hd", "CHROMA_1"),
    ("sana-1.6b", "SANA"),
    ("qwen-image", "QWEN"),
    ("z-image", "Z_IMAGE"),
    ("hunyuanvideo", "HUNYUAN_VIDEO"),
];

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let model = refuse::model_among(scenario, MODELS, |(id, _)| id);
    let (kind, mut problems) = match model {
        Ok((_, kind)) => (*kind, Vec::new()),
        Err(problem) => ("", vec![problem]),
    };
    problems.extend(diffusion::squares(scenario));
    problems.extend(diffusion::substrings(scenario));
    problems.extend(without_steps(scenario));
    let run = diffusion::run(scenario, &TRAINER, problems)?;
    let header = header(&TARGET, scenario, estimate);
    let config = json::write(&config(scenario, &run, kind));
    let words = ["--config-path", "config.json"];
    let launch = diffusion::alone(&header, scenario, &CHECKOUT, "scripts/train.py", &words);
    Ok(vec![file("config.json", config), launch])
}

/// It counts epochs, and quantizes what adapters are on.
fn without_steps(scenario: &Scenario) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Some(steps) = scenario.runtime.max_steps {
        let expected = "0 for this target, which counts runtime.epochs";
        problems.push(Problem::new(
            "runtime.max_steps",
            steps.to_string(),
            expected,
        ));
    }
    let training = &scenario.training;
    if training.lora.is_none() && training.quantization != Quantization::None {
        let given = training.quantization.id();
        problems.push(Problem::new(
            "training.quantization",
            given,
            "none without adapters",
        ));
    }
    problems
}

/// Its words for types.
fn types(scenario: &Scenario) -> [&'static str; 2] {
    let training = &scenario.training;
    let [train, own] = match training.precision {
        Precision::AmpBf16 => ["BFLOAT_16", "FLOAT_32"],
        Precision::AmpFp16 => ["FLOAT_16", "FLOAT_32"],
        Precision::AmpBf16OnBf16 | Precision::Bf16 => ["BFLOAT_16", "BFLOAT_16"],
        Precision::AmpFp16OnFp16 | Precision::Fp16 => ["FLOAT_16", "FLOAT_16"],
        Precision::Fp32 | Precision::Fp64 => ["FLOAT_32", "FLOAT_32"],
    };
    match training.quantization {
        Quantization::Nf4 => [train, "NFLOAT_4"],
        Quantization::Int8 => [train, "INT_8"],
        Quantization::Fp8 => [train, "FLOAT_8"],
        _ => [train, own],
    }
}

fn config(scenario: &Scenario, run: &Run, kind: &str) -> Document {
    let training = &scenario.training;
    let [train, weights] = types(scenario);
    let part = if run.entry.arch == "unet" {
        "unet"
    } else {
        "transformer"
    };
    let trained = Document::new()
        .with("train", true)
        .with("weight_dtype", weights)
        .with("gradient_checkpointing", run.checkpointing);
    let frozen = || Document::new().with("train", false);
    let text = Document::new().with("prompt_source", "sample");
    let concept = Document::new()
        .with("name", "data")
        .with("path", "images")
        .with("enabled", true)
        .with("text", text);
    let mut document = Document::new()
        .with("__version", VERSION)
        .with("model_type", kind)
        .with("base_model_name", diffusion::repository(run.entry))
        .with(
            "training_method",
            if training.lora.is_some() {
                "LORA"
            } else {
                "FINE_TUNE"
            },
        )
        .with("workspace_dir", "workspace")
        .with("cache_dir", "cache")
        .with("output_model_destination", "out/headroom.safetensors")
        .with("output_model_format", "SAFETENSORS")
        .with("output_dtype", "BFLOAT_16")
        .with("concepts", Document::List(vec![concept]))
        .with("samples", Document::List(Vec::new()))
        .with("latent_caching", true)
        .with("aspect_ratio_bucketing", true)
        .with("resolution", run.height.to_string());
    if settings::frames(scenario).is_some() {
        document = document.with("frames", run.frames.to_string());
    }
    document = document
        .with("batch_size", scenario.data.micro_batch)
        .with("gradient_accumulation_steps", training.accumulation)
        .with(
            "epochs",
            scenario.runtime.epochs.map_or(100, std::num::NonZero::get),
        )
        .with("learning_rate", learning_rate(scenario))
        .with("learning_rate_scheduler", "CONSTANT")
        .with(
            "clip_grad_norm",
            if training.clip {
                1.0.into()
            } else {
                Document::Null
            },
        )
        .with("attention_mechanism", "SDP")
        .with("dataloader_threads", scenario.runtime.workers.max(1))
        .with("ema", "OFF")
        .with("train_dtype", train)
        .with(part, trained);
    for other in ["text_encoder", "text_encoder_2", "text_encoder_3"] {
        document = document.with(other, frozen());
    }
    if let Some(lora) = &training.lora {
        let names: Vec<String> = lora.targets.iter().map(|name| format!(".{name}")).collect();
        document = document
            .with("peft_type", "LORA")
            .with("lora_rank", lora.rank)
            .with("lora_alpha", lora.rank)
            .with(
                "lora_weight_dtype",
                if lora.fp32_adapters {
                    "FLOAT_32"
                } else {
                    train
                },
            )
            .with("layer_filter", names.join(","))
            .with("layer_filter_preset", "custom");
    }
    // Its own default for AdamW is a loop over weights, with nothing beside them.
    let plain = run.optimizer == "ADAMW";
    let optimizer = Document::new()
        .with("optimizer", run.optimizer)
        .with("fused", run.fused)
        .with("foreach", plain && !run.fused)
        .with("fused_back_pass", false)
        .with("stochastic_rounding", false)
        .with("weight_decay", 0.01);
    document = document.with("optimizer", optimizer);
    if let Some(every) = scenario.runtime.save_every {
        document = document
            .with("save_every", every.get())
            .with("save_every_unit", "STEP");
    }
    document
}
