//! SimpleTuner: its options as JSON, and the list of its data.

use super::common::{file, learning_rate, machines, script};
use super::diffusion::{self, Run, Trainer};
use super::header::header;
use super::{Files, Target, common, refuse, shell};
use std::sync::OnceLock;

use headroom_base::document::{Document, json};
use headroom_catalog as catalog;
use headroom_core::estimate::Estimate;
use headroom_reader::programs::simpletuner::flavours;
use headroom_scenario::{Parallelism, Precision, Problem, Quantization, Scenario, settings};

pub(super) const TARGET: Target = Target {
    id: "simpletuner",
    title: "SimpleTuner",
    versions: "simpletuner bc8e6ab (August 2026)",
    differs: "",
    write,
};

const TRAINER: Trainer = Trainer {
    reader: "simpletuner",
    settings: &[
        "training.block_swap",
        "training.checkpoint_every",
        "training.checkpoint_span",
        "training.lora.dropout",
        "training.lora.fp32_adapters",
        "runtime.save_every",
        "runtime.save_keep",
    ],
    // Weights and adapters are of the type that is computed in, without autocast.
    adapted: &[Precision::Bf16],
    full: &[Precision::Bf16],
    quantizations: &[Quantization::None, Quantization::Fp8, Quantization::Nf4],
    optimizers: &[
        "torch-adamw",
        "bnb-adamw8bit",
        "bnb-adamw8bit-paged",
        "bnb-lion8bit",
        "bnb-lion8bit-paged",
        "ao-adamw8bit",
        "adamw_bf16",
    ],
    fused: false,
    any_layers: true,
    strategies: &[Parallelism::None, Parallelism::Ddp],
};

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let model = refuse::model_among(scenario, models(), |(id, ..)| id);
    let (model, mut problems) = match model {
        Ok(model) => (Some(model), Vec::new()),
        Err(problem) => (None, vec![problem]),
    };
    problems.extend(diffusion::squares(scenario));
    problems.extend(adapters(scenario));
    problems.extend(segments(scenario));
    let run = diffusion::run(scenario, &TRAINER, problems)?;
    let Some((_, family, flavour)) = model else {
        return Err(Vec::new());
    };
    let header = header(&TARGET, scenario, estimate);
    let all = machines(scenario).map_err(|problem| vec![problem])?;
    let config = json::write(&config(scenario, &run, family, flavour));
    let data = json::write(&data(scenario, &run));
    let processes = all.nodes.saturating_mul(all.each);
    let launch = format!(
        "{}{}# pip install simpletuner; it reads config.json of this folder\nexport TRAINING_NUM_PROCESSES={processes}\n\
         exec simpletuner train \"$@\"\n",
        shell::opening(&header),
        common::exports(scenario),
    );
    Ok(vec![
        file("config.json", config),
        file("multidatabackend.json", data),
        script("launch.sh", launch),
    ])
}

/// A model of the catalogue, and its family and flavour here.
type Flavour = (&'static str, &'static str, &'static str);

/// The models that it has: of several flavours its own name for a model comes before those of its finetunes.
fn models() -> &'static [Flavour] {
    static MODELS: OnceLock<Vec<Flavour>> = OnceLock::new();
    MODELS.get_or_init(|| {
        let known = flavours().filter_map(|(family, flavour, path)| {
            let entry = catalog::model_named(path)?;
            let own = diffusion::repository(entry).eq_ignore_ascii_case(path);
            Some((entry.id, !own, family, flavour))
        });
        let mut all: Vec<_> = known.collect();
        all.sort_by_key(|(id, other, ..)| (*id, *other));
        all.dedup_by_key(|(id, ..)| *id);
        all.into_iter()
            .map(|(id, _, family, flavour)| (id, family, flavour))
            .collect()
    })
}

fn adapters(scenario: &Scenario) -> Option<Problem> {
    let training = &scenario.training;
    let Some(lora) = &training.lora else {
        let quantized = training.quantization != Quantization::None;
        let given = training.quantization.id();
        return quantized
            .then(|| Problem::new("training.quantization", given, "none without adapters"));
    };
    lora.fp32_adapters.then(|| {
        let expected = "off for this target: adapters are in bf16";
        Problem::new("training.lora.fp32_adapters", "on", expected)
    })
}

/// Its stride counts segments of several blocks.
fn segments(scenario: &Scenario) -> Option<Problem> {
    let training = &scenario.training;
    let every = training.checkpoint_every;
    let single = every > 1 && training.checkpoint_span <= 1;
    single.then(|| {
        let expected = "1, or training.checkpoint_span above 1, for this target";
        Problem::new("training.checkpoint_every", every.to_string(), expected)
    })
}

fn config(scenario: &Scenario, run: &Run, family: &str, flavour: &str) -> Document {
    let training = &scenario.training;
    let lora = training.lora.as_ref();
    let base = match training.quantization {
        Quantization::Fp8 => "fp8-quanto",
        Quantization::Nf4 => "nf4-bnb",
        _ => "no_change",
    };
    let mut document = Document::new()
        .with("model_family", family)
        .with("model_flavour", flavour)
        .with("model_type", if lora.is_some() { "lora" } else { "full" })
        .with("output_dir", "out")
        .with("data_backend_config", "multidatabackend.json")
        .with("train_batch_size", scenario.data.micro_batch)
        .with("gradient_accumulation_steps", training.accumulation)
        .with("max_train_steps", diffusion::steps(scenario))
        .with("num_train_epochs", 0_u64)
        .with("learning_rate", learning_rate(scenario))
        .with("lr_scheduler", "constant")
        .with("optimizer", run.optimizer)
        // A norm that nothing reaches clips nothing.
        .with("max_grad_norm", if training.clip { 1.0 } else { 1e9 })
        .with("mixed_precision", "bf16")
        .with("base_model_precision", base)
        .with("base_model_default_dtype", "bf16")
        .with("gradient_checkpointing", run.checkpointing)
        .with("attention_mechanism", "diffusers")
        .with("num_processes", super::common::processes(scenario))
        .with("use_ema", false)
        .with("validation_disable", true)
        .with("report_to", "none")
        .with("seed", 42_u64);
    if let Some(lora) = lora {
        document = document
            .with("lora_type", "standard")
            .with("lora_rank", lora.rank)
            .with("lora_alpha", lora.rank)
            .with("lora_dropout", lora.dropout)
            .with("peft_lora_target_modules", lora.targets.clone());
    }
    if training.checkpoint_span > 1 {
        document = document.with("gradient_checkpointing_interval", training.checkpoint_span);
    }
    if training.checkpoint_every > 1 {
        document = document.with(
            "gradient_checkpointing_segment_stride",
            training.checkpoint_every,
        );
    }
    if training.block_swap > 0 {
        document = document.with("musubi_blocks_to_swap", training.block_swap);
    }
    if let Some(every) = scenario.runtime.save_every {
        document = document.with("checkpoint_step_interval", every.get());
    }
    if let Some(keep) = scenario.runtime.save_keep {
        document = document.with("checkpoints_total_limit", keep.get());
    }
    document
}

fn data(scenario: &Scenario, run: &Run) -> Document {
    let moving = settings::frames(scenario).is_some() && run.frames > 1;
    let (kind, folder) = if moving {
        ("video", "videos")
    } else {
        ("image", "images")
    };
    let mut set = Document::new()
        .with("id", "data")
        .with("type", "local")
        .with("dataset_type", kind)
        .with("instance_data_dir", folder)
        .with("caption_strategy", "textfile")
        .with("cache_dir_vae", "cache/vae")
        .with("resolution", run.height)
        .with("resolution_type", "pixel_area")
        .with("crop", false)
        .with("minimum_image_size", 0_u64);
    if moving {
        let video = Document::new()
            .with("num_frames", run.frames)
            .with("min_frames", run.frames);
        set = set.with("video", video);
    }
    let texts = Document::new()
        .with("id", "texts")
        .with("type", "local")
        .with("dataset_type", "text_embeds")
        .with("default", true)
        .with("cache_dir", "cache/text");
    Document::List(vec![set, texts])
}
