//! kohya's sd-scripts: Stable Diffusion, SDXL, SD 3 and FLUX, LoRA and all weights; its settings as TOML and those of its data.

use super::common::{file, learning_rate};
use super::diffusion::{self, Checkout, Run, Trainer};
use super::header::header;
use super::refuse;
use super::{Files, Target};
use headroom_base::document::{Document, toml};
use headroom_core::estimate::Estimate;
use headroom_scenario::{Parallelism, Precision, Problem, Quantization, Scenario};

pub(super) const TARGET: Target = Target {
    id: "kohya",
    title: "kohya's sd-scripts",
    versions: "sd-scripts 48d368f (February 2026)",
    differs: "",
    write,
};

const CHECKOUT: Checkout = Checkout {
    variable: "SD_SCRIPTS",
    folder: "sd-scripts",
    repository: "kohya-ss/sd-scripts",
    commit: "48d368fa557731ad0488c07304dfeba8c07910eb",
};

/// Names of `get_optimizer` in library/train_util.py, of both trainers of kohya's.
pub(super) const OPTIMIZERS: &[&str] = &[
    "AdamW",
    "AdamW8bit",
    "PagedAdamW",
    "PagedAdamW8bit",
    "Lion",
    "Lion8bit",
    "PagedLion8bit",
    "Adafactor",
    "AdamWScheduleFree",
];

const TRAINER: Trainer = Trainer {
    reader: "kohya",
    settings: &[
        "training.block_swap",
        "training.lora.dropout",
        "training.lora.fp32_adapters",
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
    quantizations: &[Quantization::None, Quantization::Fp8],
    optimizers: OPTIMIZERS,
    fused: true,
    any_layers: false,
    strategies: &[Parallelism::None, Parallelism::Ddp],
};

/// A family of models and its scripts.
struct Family {
    id: &'static str,
    /// The scripts for adapters and for all weights.
    scripts: [&'static str; 2],
    module: &'static str,
    /// Its weights, and the files of its other parts.
    weights: &'static str,
    parts: &'static [(&'static str, &'static str)],
}

const FLUX_PARTS: &[(&str, &str)] = &[
    ("clip_l", "clip_l.safetensors"),
    ("t5xxl", "t5xxl_fp16.safetensors"),
    ("ae", "ae.safetensors"),
];
const SD3_PARTS: &[(&str, &str)] = &[
    ("clip_l", "clip_l.safetensors"),
    ("clip_g", "clip_g.safetensors"),
    ("t5xxl", "t5xxl_fp16.safetensors"),
];

const fn family(id: &'static str, scripts: [&'static str; 2], weights: &'static str) -> Family {
    Family {
        id,
        scripts,
        module: "networks.lora",
        weights,
        parts: &[],
    }
}

const fn flux(id: &'static str, weights: &'static str) -> Family {
    Family {
        module: "networks.lora_flux",
        parts: FLUX_PARTS,
        ..family(id, ["flux_train_network", "flux_train"], weights)
    }
}

const fn sd3(id: &'static str, weights: &'static str) -> Family {
    Family {
        module: "networks.lora_sd3",
        parts: SD3_PARTS,
        ..family(id, ["sd3_train_network", "sd3_train"], weights)
    }
}

const FAMILIES: &[Family] = &[
    family(
        "sd-1.5-unet",
        ["train_network", "train_db"],
        "stable-diffusion-v1-5/stable-diffusion-v1-5",
    ),
    family(
        "sd-2.1-unet",
        ["train_network", "train_db"],
        "stabilityai/stable-diffusion-2-1",
    ),
    family(
        "sdxl-unet",
        ["sdxl_train_network", "sdxl_train"],
        "stabilityai/stable-diffusion-xl-base-1.0",
    ),
    flux("flux.1-dev", "flux1-dev.safetensors"),
    sd3("sd3-medium", "sd3_medium.safetensors"),
    sd3("sd3.5-medium", "sd3.5_medium.safetensors"),
    sd3("sd3.5-large", "sd3.5_large.safetensors"),
];

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let family = refuse::model_among(scenario, FAMILIES, |family| family.id);
    let (family, mut problems) = match family {
        Ok(family) => (Some(family), Vec::new()),
        Err(problem) => (None, vec![problem]),
    };
    problems.extend(with_all_weights(scenario));
    let run = diffusion::run(scenario, &TRAINER, problems)?;
    let Some(family) = family else {
        return Err(Vec::new());
    };
    let trained = family.scripts[usize::from(scenario.training.lora.is_none())];
    let differs = match family.id {
        "sd-1.5-unet" | "sd-2.1-unet" => "its text encoder stays on the GPU: 0.3 to 0.7 GB",
        _ => "",
    };
    let header = header(&Target { differs, ..TARGET }, scenario, estimate);
    let config = toml::write(&config(scenario, &run, family));
    let data = toml::write(&data(scenario, &run));
    let script = format!("{trained}.py");
    let words = ["--config_file", "config.toml"];
    let mixed = ["--mixed_precision", diffusion::mixed(scenario)];
    let launch = diffusion::launch(&header, scenario, &CHECKOUT, "", &mixed, &script, &words);
    let launch = launch.map_err(|problem| vec![problem])?;
    Ok(vec![
        file("config.toml", format!("{header}{config}")),
        file("dataset.toml", format!("{header}{data}")),
        launch,
    ])
}

/// What only its scripts for adapters can do.
fn with_all_weights(scenario: &Scenario) -> Option<Problem> {
    let training = &scenario.training;
    let refused = training.lora.is_none() && training.quantization != Quantization::None;
    let given = training.quantization.id();
    refused.then(|| Problem::new("training.quantization", given, "none without adapters"))
}

/// The arguments of its scripts, which read them from a file by the same names.
fn config(scenario: &Scenario, run: &Run, family: &Family) -> Document {
    let mut document = Document::new().with_note(
        "pretrained_model_name_or_path",
        family.weights,
        "a file, a folder or a name on the hub",
    );
    for (key, path) in family.parts {
        document = document.with(*key, *path);
    }
    if family.id == "sd-2.1-unet" {
        document = document.with("v2", true).with("v_parameterization", true);
    }
    if family.id == "flux.1-dev" {
        document = document
            .with_note("guidance_scale", 1.0, "what FLUX.1-dev is trained with")
            .with("timestep_sampling", "flux_shift")
            .with("model_prediction_type", "raw");
    }
    let document = document
        .with("dataset_config", "dataset.toml")
        .and(shared(scenario, run))
        .with("save_model_as", "safetensors")
        .with("cache_latents", true);
    let texts = family.module != "networks.lora" || family.id == "sdxl-unet";
    let document = if texts {
        document.with("cache_text_encoder_outputs", true)
    } else {
        document
    };
    let split = family.module != "networks.lora";
    match &scenario.training.lora {
        Some(_) => {
            let document = document.and(network(scenario, family.module, split));
            document.with_note(
                "network_train_unet_only",
                true,
                "no adapters on the text encoders",
            )
        }
        None if family.scripts[1] == "train_db" => {
            let steps = Document::Int(-1);
            document.with_note(
                "stop_text_encoder_training",
                steps,
                "the text encoder is not trained",
            )
        }
        None => document,
    }
}

/// LoRA's arguments; `split`: queries, keys and values are one layer here, and adapted each by itself.
fn network(scenario: &Scenario, module: &str, split: bool) -> Document {
    let rank = diffusion::rank(scenario).unwrap_or_default();
    let mut document = Document::new()
        .with("network_module", module)
        .with("network_dim", rank)
        .with_note("network_alpha", rank, "as the rank: adapters count once");
    if split {
        let arguments: &[&str] = match module {
            "networks.lora_flux" => &[
                "split_qkv=True",
                "img_mod_dim=0",
                "txt_mod_dim=0",
                "single_mod_dim=0",
            ],
            _ => &["split_qkv=True", "context_mod_dim=0", "x_mod_dim=0"],
        };
        let arguments: Vec<String> = arguments.iter().map(|it| (*it).to_string()).collect();
        document = document.with_note(
            "network_args",
            arguments,
            "none on what modulates the blocks",
        );
    }
    document.and(dropout(scenario))
}

pub(super) fn dropout(scenario: &Scenario) -> Document {
    match &scenario.training.lora {
        Some(lora) if lora.dropout > 0.0 => Document::new().with("network_dropout", lora.dropout),
        _ => Document::new(),
    }
}

/// What both of kohya's trainers have.
pub(super) fn shared(scenario: &Scenario, run: &Run) -> Document {
    let training = &scenario.training;
    let mut document = Document::new()
        .with("output_dir", "out")
        .with("output_name", "headroom")
        .with("max_train_steps", diffusion::steps(scenario))
        .with_note("learning_rate", learning_rate(scenario), "yours to choose")
        .with("optimizer_type", run.optimizer);
    if run.fused {
        document = document.with("optimizer_args", vec!["fused=True".to_string()]);
    } else if run.optimizer == "Adafactor" {
        let arguments = [
            "relative_step=False",
            "scale_parameter=False",
            "warmup_init=False",
        ];
        document = document.with("optimizer_args", arguments.map(String::from).to_vec());
    }
    document = document
        .with_note(
            "max_grad_norm",
            if training.clip { 1.0 } else { 0.0 },
            "0: no clipping",
        )
        .with("mixed_precision", diffusion::mixed(scenario))
        .with("gradient_accumulation_steps", training.accumulation)
        .with("gradient_checkpointing", run.checkpointing)
        .with("sdpa", true)
        .with("max_data_loader_n_workers", scenario.runtime.workers);
    let lora = training.lora.as_ref();
    let full = match lora {
        Some(lora) => !lora.fp32_adapters && training.precision != Precision::Fp32,
        None => training.precision == Precision::AmpBf16OnBf16,
    };
    if full {
        let key = format!("full_{}", diffusion::mixed(scenario));
        let why = match lora {
            Some(_) => "adapters are of that type too",
            None => "weights are of that type too",
        };
        document = document.with_note(key, true, why);
    }
    if training.quantization == Quantization::Fp8 {
        document = document.with("fp8_base", true);
    }
    if training.block_swap > 0 {
        document = document.with("blocks_to_swap", training.block_swap);
    }
    if let Some(every) = scenario.runtime.save_every {
        document = document.with("save_every_n_steps", every.get());
    }
    document
}

fn data(scenario: &Scenario, run: &Run) -> Document {
    let subset = Document::new()
        .with_note(
            "image_dir",
            "images",
            "pictures, each with its text in a .txt",
        )
        .with("num_repeats", 1_u64);
    let set = Document::new()
        .with("resolution", size(run))
        .with("batch_size", scenario.data.micro_batch)
        .with_note("enable_bucket", true, "other shapes, of no larger area")
        .with(
            "max_bucket_reso",
            run.height.max(run.width).saturating_mul(2),
        )
        .with("subsets", Document::List(vec![subset]));
    Document::new()
        .with("general", Document::new().with("caption_extension", ".txt"))
        .with("datasets", Document::List(vec![set]))
}

/// Width and height.
pub(super) fn size(run: &Run) -> Document {
    Document::List(vec![run.width.into(), run.height.into()])
}
