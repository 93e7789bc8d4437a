//! diffusion-pipe (tdrussell): its settings as TOML, and those of its data; DeepSpeed starts it.

use super::common::{exports, file, learning_rate, processes, script};
use super::diffusion::{self, Checkout, Run, Trainer};
use super::header::header;
use super::{Files, Target, refuse, shell};
use headroom_base::document::{Document, toml};
use headroom_core::estimate::Estimate;
use headroom_scenario::{Parallelism, Precision, Problem, Quantization, Scenario};

pub(super) const TARGET: Target = Target {
    id: "diffusion-pipe",
    title: "diffusion-pipe",
    versions: "diffusion-pipe 8f83dbf (August 2026)",
    differs: "",
    write,
};

const CHECKOUT: Checkout = Checkout {
    variable: "DIFFUSION_PIPE",
    folder: "diffusion-pipe",
    repository: "tdrussell/diffusion-pipe",
    commit: "8f83dbf25d03219df705570ec03e62be04bc402f",
};

const TRAINER: Trainer = Trainer {
    reader: "diffusion-pipe",
    settings: &[
        "training.block_swap",
        "training.lora.dropout",
        "training.lora.fp32_adapters",
        "runtime.epochs",
        "runtime.save_every",
    ],
    // Networks are in the type that is computed in.
    adapted: &[Precision::Bf16],
    full: &[Precision::Bf16],
    quantizations: &[Quantization::None, Quantization::Fp8],
    optimizers: &["adamw", "adamw8bit", "stableadamw"],
    fused: true,
    any_layers: false,
    strategies: &[Parallelism::None, Parallelism::Ddp],
};

/// A model: its `type`, and the keys of its files.
struct Family {
    id: &'static str,
    kind: &'static str,
    paths: &'static [(&'static str, &'static str)],
    /// The key of the type of the network's weights.
    dtype: &'static str,
    differs: &'static str,
}

const fn family(
    id: &'static str,
    kind: &'static str,
    paths: &'static [(&'static str, &'static str)],
) -> Family {
    Family {
        id,
        kind,
        paths,
        dtype: "transformer_dtype",
        differs: "",
    }
}

const SPLIT: &str =
    "queries, keys and values are one layer here, so its adapters have fewer weights";

const FAMILIES: &[Family] = &[
    family(
        "flux.1-dev",
        "flux",
        &[("diffusers_path", "black-forest-labs/FLUX.1-dev")],
    ),
    family(
        "flux.1-kontext-dev",
        "flux",
        &[("diffusers_path", "black-forest-labs/FLUX.1-Kontext-dev")],
    ),
    Family {
        differs: SPLIT,
        ..family(
            "chroma1-hd",
            "chroma",
            &[
                ("diffusers_path", "black-forest-labs/FLUX.1-dev"),
                ("transformer_path", "Chroma1-HD.safetensors"),
            ],
        )
    },
    family(
        "sd3-medium",
        "sd3",
        &[("diffusers_path", "stabilityai/stable-diffusion-3-medium")],
    ),
    family(
        "sd3.5-medium",
        "sd3",
        &[("diffusers_path", "stabilityai/stable-diffusion-3.5-medium")],
    ),
    family(
        "sd3.5-large",
        "sd3",
        &[("diffusers_path", "stabilityai/stable-diffusion-3.5-large")],
    ),
    family(
        "qwen-image",
        "qwen_image",
        &[("diffusers_path", "Qwen/Qwen-Image")],
    ),
    family(
        "ltx-video-2b",
        "ltx-video",
        &[("diffusers_path", "Lightricks/LTX-Video")],
    ),
    Family {
        differs: SPLIT,
        ..family(
            "hunyuanvideo",
            "hunyuan-video",
            &[
                (
                    "transformer_path",
                    "hunyuan_video_720_cfgdistill_bf16.safetensors",
                ),
                ("vae_path", "hunyuan_video_vae_bf16.safetensors"),
                ("llm_path", "llava-llama-3-8b-text-encoder-tokenizer"),
                ("clip_path", "clip-vit-large-patch14"),
            ],
        )
    },
    family(
        "wan2.1-t2v-1.3b",
        "wan",
        &[("ckpt_path", "Wan2.1-T2V-1.3B")],
    ),
    family("wan2.1-t2v-14b", "wan", &[("ckpt_path", "Wan2.1-T2V-14B")]),
    family(
        "wan2.1-i2v-14b",
        "wan",
        &[("ckpt_path", "Wan2.1-I2V-14B-480P")],
    ),
    family("wan2.2-ti2v-5b", "wan", &[("ckpt_path", "Wan2.2-TI2V-5B")]),
];

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let family = refuse::model_among(scenario, FAMILIES, |family| family.id);
    let (family, mut problems) = match family {
        Ok(family) => (Some(family), Vec::new()),
        Err(problem) => (None, vec![problem]),
    };
    problems.extend(of_adapters(scenario));
    let run = diffusion::run(scenario, &TRAINER, problems)?;
    let Some(family) = family else {
        return Err(Vec::new());
    };
    let differs = family.differs;
    let header = header(&Target { differs, ..TARGET }, scenario, estimate);
    let config = toml::write(&config(scenario, &run, family));
    let data = toml::write(&data(&run));
    let gpus = processes(scenario).to_string();
    let launch = format!(
        "{}{}{}exec deepspeed --num_gpus {gpus} {} {} \"$@\"\n",
        shell::opening(&header),
        exports(scenario),
        CHECKOUT.lines(),
        CHECKOUT.path("train.py"),
        shell::command(&["--deepspeed", "--config", "config.toml"]),
    );
    Ok(vec![
        file("config.toml", format!("{header}{config}")),
        file("dataset.toml", format!("{header}{data}")),
        script("launch.sh", launch),
    ])
}

/// What it can do with adapters alone, and on one machine.
fn of_adapters(scenario: &Scenario) -> Vec<Problem> {
    let training = &scenario.training;
    let mut problems = Vec::new();
    if training.lora.is_none() && training.quantization != Quantization::None {
        let given = training.quantization.id();
        problems.push(Problem::new(
            "training.quantization",
            given,
            "none without adapters",
        ));
    }
    if scenario.hardware.nodes > 1 {
        let given = scenario.hardware.nodes.to_string();
        problems.push(Problem::new("hardware.nodes", given, "1 for this target"));
    }
    problems
}

fn config(scenario: &Scenario, run: &Run, family: &Family) -> Document {
    let training = &scenario.training;
    let epochs = scenario.runtime.epochs.map_or(1000, std::num::NonZero::get);
    let every = scenario
        .runtime
        .save_every
        .map_or(250, std::num::NonZero::get);
    let mut document = Document::new()
        .with("output_dir", "out")
        .with("dataset", "dataset.toml")
        .with("epochs", epochs)
        .with("max_steps", diffusion::steps(scenario))
        .with("micro_batch_size_per_gpu", scenario.data.micro_batch)
        .with("pipeline_stages", 1_u64)
        .with("gradient_accumulation_steps", training.accumulation)
        .with_note(
            "gradient_clipping",
            if training.clip { 1.0 } else { 0.0 },
            "0: no clipping",
        )
        .with("activation_checkpointing", run.checkpointing)
        .with("save_every_n_steps", every)
        .with("save_dtype", "bfloat16")
        .with("caching_batch_size", 1_u64);
    if training.block_swap > 0 {
        document = document.with("blocks_to_swap", training.block_swap);
    }
    let mut model = Document::new().with("type", family.kind);
    for (key, path) in family.paths {
        model = model.with(*key, *path);
    }
    model = model.with("dtype", "bfloat16");
    if training.quantization == Quantization::Fp8 {
        model = model.with(family.dtype, "float8");
    }
    document = document.with("model", model);
    if let Some(lora) = &training.lora {
        let kind = if lora.fp32_adapters {
            "float32"
        } else {
            "bfloat16"
        };
        let mut adapter = Document::new()
            .with("type", "lora")
            .with("rank", lora.rank)
            .with("dtype", kind)
            .with_note(
                "exclude_modules",
                EXCLUDED,
                "no adapters on what modulates the blocks",
            );
        if lora.dropout > 0.0 {
            adapter = adapter.with("dropout", lora.dropout);
        }
        document = document.with("adapter", adapter);
    }
    let mut optimizer = Document::new()
        .with("type", run.optimizer)
        .with_note("lr", learning_rate(scenario), "yours to choose")
        .with("betas", Document::List(vec![0.9.into(), 0.99.into()]))
        .with("weight_decay", 0.01);
    if run.fused {
        optimizer = optimizer.with("fused", true);
    }
    document.with("optimizer", optimizer)
}

/// Layers of its blocks that are made of the time step.
const EXCLUDED: &str = ".*(norm|_mod|modulation|adaLN).*";

fn data(run: &Run) -> Document {
    let size = Document::List(vec![run.width.into(), run.height.into()]);
    let folder = Document::new()
        .with_note(
            "path",
            "data",
            "pictures or videos, each with its text in a .txt",
        )
        .with("num_repeats", 1_u64);
    Document::new()
        .with_note(
            "resolutions",
            Document::List(vec![size]),
            "areas: other shapes have as many pixels",
        )
        .with("enable_ar_bucket", true)
        .with("min_ar", 0.5)
        .with("max_ar", 2.0)
        .with("num_ar_buckets", 7_u64)
        .with("frame_buckets", Document::List(vec![run.frames.into()]))
        .with("directory", Document::List(vec![folder]))
}
