//! kohya's musubi-tuner: adapters of video and image transformers; the commands that cache latents and texts come first.

use super::common::file;
use super::diffusion::{self, Checkout, Run, Trainer};
use super::header::header;
use super::{Files, Target, kohya, refuse, shell};
use headroom_base::document::{Document, toml};
use headroom_core::estimate::Estimate;
use headroom_scenario::{Parallelism, Precision, Quantization, Scenario};

pub(super) const TARGET: Target = Target {
    id: "musubi",
    title: "musubi-tuner",
    versions: "musubi-tuner 30c658c (June 2026)",
    differs: "",
    write,
};

const CHECKOUT: Checkout = Checkout {
    variable: "MUSUBI",
    folder: "musubi-tuner",
    repository: "kohya-ss/musubi-tuner",
    commit: "30c658c4f4b0bf05038b3346eff9670259b10fc7",
};

const TRAINER: Trainer = Trainer {
    reader: "kohya",
    settings: &[
        "training.block_swap",
        "training.lora.dropout",
        "training.lora.fp32_adapters",
        "runtime.workers",
        "runtime.save_every",
    ],
    adapted: &[Precision::AmpBf16OnBf16],
    full: &[],
    quantizations: &[Quantization::None, Quantization::Fp8],
    optimizers: &[
        "AdamW",
        "AdamW8bit",
        "bitsandbytes.optim.PagedAdamW",
        "bitsandbytes.optim.PagedAdamW8bit",
        "bitsandbytes.optim.Lion8bit",
        "Adafactor",
    ],
    fused: true,
    any_layers: false,
    strategies: &[Parallelism::None, Parallelism::Ddp],
};

/// A model and what its scripts are given.
struct Family {
    id: &'static str,
    /// The beginning of its scripts' names; empty for HunyuanVideo's caches.
    name: &'static str,
    script: &'static str,
    module: &'static str,
    weights: &'static str,
    vae: &'static str,
    /// The key that says its size, and the value.
    kind: Option<(&'static str, &'static str)>,
    /// Text encoders.
    texts: &'static [(&'static str, &'static str)],
    /// More words for the script that caches latents.
    latents: &'static [&'static str],
    shift: (&'static str, f64),
    differs: &'static str,
}

const SPLIT: &str =
    "queries, keys and values are one layer here, so its adapters have fewer weights";
const WAN_VAE: &str = "Wan2.1_VAE.pth";
const UMT5: &[(&str, &str)] = &[("t5", "models_t5_umt5-xxl-enc-bf16.pth")];
const CLIP: &str = "models_clip_open-clip-xlm-roberta-large-vit-huge-14.pth";

const fn wan(id: &'static str, task: &'static str, weights: &'static str) -> Family {
    Family {
        id,
        name: "wan_",
        script: "wan_train_network",
        module: "networks.lora_wan",
        weights,
        vae: WAN_VAE,
        kind: Some(("task", task)),
        texts: UMT5,
        latents: &[],
        shift: ("shift", 3.0),
        differs: "",
    }
}

const fn flux_2(id: &'static str, version: &'static str, weights: &'static str) -> Family {
    Family {
        id,
        name: "flux_2_",
        script: "flux_2_train_network",
        module: "networks.lora_flux_2",
        weights,
        vae: "ae.safetensors",
        kind: Some(("model_version", version)),
        texts: &[("text_encoder", "text_encoder.safetensors")],
        latents: &[],
        shift: ("flux2_shift", 1.0),
        differs: SPLIT,
    }
}

const FAMILIES: &[Family] = &[
    wan(
        "wan2.1-t2v-1.3b",
        "t2v-1.3B",
        "wan2.1_t2v_1.3B_bf16.safetensors",
    ),
    wan(
        "wan2.1-t2v-14b",
        "t2v-14B",
        "wan2.1_t2v_14B_bf16.safetensors",
    ),
    Family {
        latents: &["--i2v", "--clip", CLIP],
        ..wan(
            "wan2.1-i2v-14b",
            "i2v-14B",
            "wan2.1_i2v_480p_14B_bf16.safetensors",
        )
    },
    wan(
        "wan2.2-t2v-a14b",
        "t2v-A14B",
        "wan2.2_t2v_low_noise_14B_fp16.safetensors",
    ),
    Family {
        latents: &["--i2v"],
        ..wan(
            "wan2.2-i2v-a14b",
            "i2v-A14B",
            "wan2.2_i2v_low_noise_14B_fp16.safetensors",
        )
    },
    Family {
        name: "",
        script: "hv_train_network",
        module: "networks.lora",
        kind: None,
        texts: &[
            ("text_encoder1", "text_encoder"),
            ("text_encoder2", "text_encoder_2"),
        ],
        vae: "hunyuan-video-t2v-720p/vae/pytorch_model.pt",
        shift: ("shift", 7.0),
        differs: SPLIT,
        ..wan("hunyuanvideo", "", "mp_rank_00_model_states.pt")
    },
    Family {
        name: "qwen_image_",
        script: "qwen_image_train_network",
        module: "networks.lora_qwen_image",
        kind: Some(("model_version", "original")),
        texts: &[("text_encoder", "qwen_2.5_vl_7b.safetensors")],
        vae: "diffusion_pytorch_model.safetensors",
        shift: ("shift", 2.2),
        ..wan("qwen-image", "", "qwen_image_bf16.safetensors")
    },
    Family {
        name: "flux_kontext_",
        script: "flux_kontext_train_network",
        module: "networks.lora_flux",
        kind: None,
        texts: &[
            ("text_encoder1", "t5xxl_fp16.safetensors"),
            ("text_encoder2", "clip_l.safetensors"),
        ],
        vae: "ae.safetensors",
        shift: ("flux_shift", 1.0),
        differs: SPLIT,
        ..wan("flux.1-kontext-dev", "", "flux1-kontext-dev.safetensors")
    },
    flux_2("flux.2-dev", "dev", "flux2-dev.safetensors"),
    flux_2(
        "flux.2-klein-base-4b",
        "klein-base-4b",
        "flux-2-klein-base-4b.safetensors",
    ),
    flux_2(
        "flux.2-klein-base-9b",
        "klein-base-9b",
        "flux-2-klein-base-9b.safetensors",
    ),
    Family {
        name: "zimage_",
        script: "zimage_train_network",
        module: "networks.lora_zimage",
        kind: None,
        texts: &[("text_encoder", "qwen_3_4b.safetensors")],
        vae: "ae.safetensors",
        shift: ("shift", 2.0),
        differs: "the refiners' blocks have no adapters",
        ..wan("z-image", "", "z_image_bf16.safetensors")
    },
];

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let family = refuse::model_among(scenario, FAMILIES, |family| family.id);
    let (family, problems) = match family {
        Ok(family) => (Some(family), Vec::new()),
        Err(problem) => (None, vec![problem]),
    };
    let run = diffusion::run(scenario, &TRAINER, problems)?;
    let Some(family) = family else {
        return Err(Vec::new());
    };
    let differs = family.differs;
    let header = header(&Target { differs, ..TARGET }, scenario, estimate);
    let config = toml::write(&config(scenario, &run, family));
    let data = toml::write(&data(scenario, &run, family));
    let script = format!("src/musubi_tuner/{}.py", family.script);
    let mixed = ["--mixed_precision", diffusion::mixed(scenario)];
    let words = ["--config_file", "config.toml"];
    let before = caches(family);
    let launch = diffusion::launch(
        &header, scenario, &CHECKOUT, &before, &mixed, &script, &words,
    );
    let launch = launch.map_err(|problem| vec![problem])?;
    Ok(vec![
        file("config.toml", format!("{header}{config}")),
        file("dataset.toml", format!("{header}{data}")),
        launch,
    ])
}

/// The commands that write latents and text states to the disk; what is there already is skipped.
fn caches(family: &Family) -> String {
    let mut text = String::new();
    let kind = family.kind.filter(|(key, _)| *key == "model_version");
    let kind = kind.map(|(key, value)| [format!("--{key}"), value.to_string()]);
    let kind = kind.iter().flatten().map(String::as_str);
    let vae = [
        "--dataset_config",
        "dataset.toml",
        "--vae",
        family.vae,
        "--skip_existing",
    ];
    let latents: Vec<&str> = vae
        .iter()
        .chain(family.latents)
        .copied()
        .chain(kind.clone())
        .collect();
    let mut texts = vec![
        "--dataset_config".to_string(),
        "dataset.toml".into(),
        "--skip_existing".into(),
    ];
    for (key, path) in family.texts {
        texts.extend([format!("--{key}"), (*path).into()]);
    }
    let texts: Vec<&str> = texts.iter().map(String::as_str).chain(kind).collect();
    for (what, words) in [("latents", latents), ("text_encoder_outputs", texts)] {
        let script = format!("src/musubi_tuner/{}cache_{what}.py", family.name);
        let words = shell::command(&words);
        text.push_str(&format!(
            "python {} \\\n  {words}\n",
            CHECKOUT.path(&script)
        ));
    }
    text
}

fn config(scenario: &Scenario, run: &Run, family: &Family) -> Document {
    let (sampling, shift) = family.shift;
    let rank = diffusion::rank(scenario).unwrap_or_default();
    let mut document = Document::new();
    if let Some((key, value)) = family.kind {
        document = document.with(key, value);
    }
    document = document
        .with("dit", family.weights)
        .with("vae", family.vae)
        .with("dataset_config", "dataset.toml")
        .and(kohya::shared(scenario, run))
        .with("timestep_sampling", sampling)
        .with("weighting_scheme", "none");
    if sampling == "shift" {
        document = document.with("discrete_flow_shift", shift);
    }
    if scenario.training.quantization == Quantization::Fp8 {
        document = document.with("fp8_scaled", family.script != "hv_train_network");
    }
    document
        .with("network_module", family.module)
        .with("network_dim", rank)
        .with_note("network_alpha", rank, "as the rank: adapters count once")
        .and(kohya::dropout(scenario))
}

fn data(scenario: &Scenario, run: &Run, family: &Family) -> Document {
    let moving = run.frames > 1;
    let (folder, what) = if moving {
        ("video_directory", "videos, each with its text in a .txt")
    } else {
        ("image_directory", "pictures, each with its text in a .txt")
    };
    let mut set = Document::new()
        .with_note(folder, if moving { "videos" } else { "images" }, what)
        .with("cache_directory", "cache")
        .with("resolution", kohya::size(run))
        .with("batch_size", scenario.data.micro_batch)
        .with_note("enable_bucket", true, "other shapes, of no larger area");
    if moving {
        set = set
            .with("target_frames", Document::List(vec![run.frames.into()]))
            .with("frame_extraction", "head");
    }
    if family.id == "flux.1-kontext-dev" {
        set = set.with_note(
            "control_directory",
            "references",
            "pictures of the same names",
        );
    }
    Document::new()
        .with("general", Document::new().with("caption_extension", ".txt"))
        .with("datasets", Document::List(vec![set]))
}
