//! AI Toolkit (ostris): one YAML a job. Keys and defaults are those of its `toolkit/config_modules.py`.

use super::diffusion::{autocast, size, weights};
use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::program::{Program, Source};
use crate::words::{
    Adapter, Checkpointing, DataParallel, Offload, Strategy, Task, Trained, Weights,
};

pub const PROGRAM: Program = Program {
    id: "ai-toolkit",
    name: "AI Toolkit",
    read,
};

const DEFAULT: &str = "AI Toolkit";

/// Processes that train (`extensions_built_in/*/__init__.py`, `jobs/TrainJob.py`).
const TRAINERS: &[&str] = &[
    "sd_trainer",
    "diffusion_trainer",
    "ui_trainer",
    "slider",
    "slider_old",
    "ultimate_slider_trainer",
    "image_reference_slider_trainer",
    "reference_slider_trainer",
    "concept_replacer",
    "concept_slider",
    "textual_inversion_trainer",
    "fine_tune",
];

/// Jobs that are none of training (`toolkit/job.py`).
const OTHERS: &[(&str, &str)] = &[
    ("extract", "it extracts an adapter from a model"),
    ("generate", "it generates images"),
    ("mod", "it rescales an adapter's file"),
];

/// Architectures with frames.
const VIDEO: &[&str] = &[
    "wan",
    "ltx",
    "hunyuan_video",
    "hunyuanvideo",
    "cosmos_video",
];

/// What changes memory of a process and has no setting.
const NOT_MODELLED: &[(&str, &str)] = &[
    (
        "model.low_vram",
        "keeps the model on the host while it is quantized and sampled",
    ),
    ("model.layer_offloading", "keeps layers on the host"),
    (
        "model.split_model_over_gpus",
        "divides the layers over the GPUs",
    ),
    ("model.assistant_lora_path", "a second adapter is loaded"),
    (
        "model.accuracy_recovery_adapter",
        "a second adapter is loaded",
    ),
    ("model.refiner_name_or_path", "a refiner is loaded"),
    (
        "train.diff_output_preservation",
        "a second forward without the adapter",
    ),
    (
        "train.blank_prompt_preservation",
        "a second forward without the adapter",
    ),
    (
        "train.do_prior_divergence",
        "a second forward without the adapter",
    ),
    ("train.do_cfg", "a second forward without the prompt"),
    (
        "train.do_guidance_loss",
        "a second forward without the prompt",
    ),
    (
        "train.short_and_long_captions",
        "every image counts twice in a batch",
    ),
    (
        "train.adapter_assist_name_or_path",
        "an assisting adapter is loaded",
    ),
    (
        "train.diffusion_feature_extractor_path",
        "a feature extractor is loaded",
    ),
    (
        "train.latent_feature_extractor_path",
        "a feature extractor is loaded",
    ),
    ("adapter", "an image adapter and its encoder are loaded"),
    ("embedding", "a learned embedding"),
];

fn read(source: &Source) -> Option<Facts> {
    let keys = source.document()?;
    let job = keys.text("job");
    let job = job.value()?.to_ascii_lowercase();
    let processes = keys.items("config.process");
    if processes.is_empty() {
        return None;
    }
    keys.ignore("config");
    keys.ignore("meta");
    if let Some((_, why)) = OTHERS.iter().find(|(name, _)| *name == job) {
        return Some(Facts::refuse(*why));
    }
    let trains = |process: &&Keys| {
        let kind = process.text("type");
        kind.value()
            .is_some_and(|kind| TRAINERS.contains(&kind.as_str()))
    };
    let Some(process) = processes.iter().find(trains) else {
        return Some(Facts::refuse("none of its processes trains"));
    };
    Some(process_facts(process))
}

fn process_facts(keys: &Keys) -> Facts {
    let mut facts = Facts::of(PROGRAM.id);
    facts.task = Fact::follows(Task::Diffusion, "AI Toolkit trains diffusion models");
    facts.model = keys.text("model.name_or_path");
    if facts.model.is_unsaid() {
        facts.model = Fact::Unknown("model.name_or_path is required".into());
    }
    facts.gpus = Fact::follows(1, "AI Toolkit trains on one GPU");
    facts.nodes = Fact::follows(1, "AI Toolkit trains on one GPU");
    facts.strategy = Fact::follows(Strategy::from(DataParallel::None), "one GPU");
    facts.offload = Fact::default_of(Offload::None, DEFAULT);
    if let Some(device) = keys.text("device").value()
        && device.starts_with("cpu")
    {
        return Facts {
            refused: Some("device is cpu, so no GPU's memory is used".into()),
            ..facts
        };
    }
    sizes(keys, &mut facts);
    precision(keys, &mut facts);
    network(keys, &mut facts);
    facts.optimizer = keys
        .text("train.optimizer")
        .map(|name| {
            let fused = keys.switch("train.optimizer_params.fused").value() == Some(&true);
            match name.to_ascii_lowercase().as_str() {
                "adamw" if fused => "adamw_fused".into(),
                name => name.into(),
            }
        })
        .or_default("adamw".into(), DEFAULT);
    facts.checkpointing = keys
        .switch("train.gradient_checkpointing")
        .map(|on| {
            if on {
                Checkpointing::On
            } else {
                Checkpointing::Off
            }
        })
        .or_default(Checkpointing::On, DEFAULT);
    let samples = keys.has("sample.prompts") || keys.has("sample.samples");
    facts.evaluation = match keys.switch("train.disable_sampling").value() {
        Some(true) => Fact::read(false, "train.disable_sampling"),
        _ => Fact::read(samples, "sample"),
    };
    let full = facts.adapter.value() == Some(&None);
    if full && keys.switch("train.ema_config.use_ema").value() == Some(&true) {
        facts
            .not_modelled
            .push("train.ema_config: a moving average of all weights".into());
    }
    for (key, what) in NOT_MODELLED {
        let off = keys.switch(key).value() == Some(&false);
        if keys.get(key).is_some() && !off {
            facts.not_modelled.push(format!("{key}: {what}"));
        }
    }
    facts
}

/// Batch, accumulation, and the largest of the sizes that the datasets are trained at.
fn sizes(keys: &Keys, facts: &mut Facts) {
    facts.micro_batch = keys.whole("train.batch_size").or_default(1, DEFAULT);
    let steps = keys.whole("train.gradient_accumulation_steps");
    let accumulation = keys.whole("train.gradient_accumulation");
    facts.accumulation = match accumulation.value() {
        Some(count) if *count > 1 => accumulation,
        _ => steps.or(accumulation).or_default(1, DEFAULT),
    };
    let datasets = keys.items("datasets");
    let mut largest: Fact<(u64, u64)> = Fact::Unsaid;
    let mut frames: Fact<u64> = Fact::Unsaid;
    for dataset in &datasets {
        let own = size(dataset, "resolution").or_default((512, 512), DEFAULT);
        if area(&own) > area(&largest) {
            largest = own;
        }
        let own = dataset.whole("num_frames").or_default(1, DEFAULT);
        if own.value() > frames.value() {
            frames = own;
        }
        if dataset.get("control_path").is_some() {
            let what = "datasets.control_path: the condition's tokens stand beside the image's";
            facts.not_modelled.push(what.into());
        }
    }
    if largest.is_unsaid() && keys.has("slider") {
        largest = match size(keys, "slider.resolutions") {
            Fact::Unsaid => Fact::default_of((512, 512), DEFAULT),
            said => said,
        };
    }
    facts.height = largest.clone().map(|(height, _)| height);
    facts.width = largest.map(|(_, width)| width);
    let arch = keys.text("model.arch");
    let name = facts.model.value().map(|name| name.to_ascii_lowercase());
    let arch = arch.value().cloned().or(name).unwrap_or_default();
    if VIDEO.iter().any(|video| arch.contains(video)) {
        facts.frames = frames;
    }
    // Cached where every dataset says so.
    let all = |key: &str| {
        let on = |set: &Keys| set.switch(key).value() == Some(&true);
        !datasets.is_empty() && datasets.iter().all(on)
    };
    facts.cached_latents = Fact::read(
        all("cache_latents_to_disk") || all("cache_latents"),
        "datasets.cache_latents_to_disk",
    );
    let on = |key: &str| keys.switch(key).value() == Some(&true);
    facts.cached_text = Fact::read(
        on("train.unload_text_encoder")
            || on("train.cache_text_embeddings")
            || all("cache_text_embeddings"),
        "train.cache_text_embeddings",
    );
}

fn area(size: &Fact<(u64, u64)>) -> u64 {
    size.value()
        .map_or(0, |(height, width)| height.saturating_mul(*width))
}

fn precision(keys: &Keys, facts: &mut Facts) {
    let dtype = keys.text("train.dtype").or_default("fp32".into(), DEFAULT);
    facts.compute = dtype.clone().and_then(|name| autocast(name));
    let plain = dtype.and_then(|name| weights(name));
    facts.weights = if keys.switch("model.quantize").value() == Some(&true) {
        keys.text("model.qtype")
            .or_default("qfloat8".into(), DEFAULT)
            // An adapter that recovers accuracy may follow: `uint3|owner/file`.
            .and_then(|name| weights(name.split('|').next().unwrap_or(name)))
    } else {
        plain
    };
}

fn network(keys: &Keys, facts: &mut Facts) {
    facts.text_encoders_trained = keys
        .switch("train.train_text_encoder")
        .or_default(false, DEFAULT);
    if !keys.has("network") {
        facts.adapter = Fact::follows(None, "no network");
        facts.trained = match keys.get("adapter") {
            Some(_) => Fact::read(Trained::Part("the image adapter".into()), "adapter"),
            None if keys.has("embedding") => {
                Fact::read(Trained::Part("the embedding".into()), "embedding")
            }
            None => Fact::follows(Trained::All, "no network"),
        };
        return;
    }
    let kind = keys.text("network.type").or_default("lora".into(), DEFAULT);
    let adapter = kind.and_then(|kind| match kind.to_ascii_lowercase().as_str() {
        "lora" | "lierla" | "locon" | "lycoris" | "lorm" => Some(Adapter::Lora),
        "lokr" => Some(Adapter::Lokr),
        "loha" => Some(Adapter::Loha),
        "dora" => Some(Adapter::Dora),
        "oft" => Some(Adapter::Oft),
        _ => None,
    });
    let full_lokr = adapter.value() == Some(&Adapter::Lokr)
        && keys.switch("network.lokr_full_rank").value() != Some(&false);
    if !full_lokr {
        facts.rank = keys
            .whole("network.rank")
            .or(keys.whole("network.linear"))
            .or_default(4, DEFAULT);
    }
    // A part of a layer's path; with a dot before it, the beginning of a name.
    let only = keys.list("network.network_kwargs.only_if_contains");
    facts.targets = only.map(|names| {
        let bare = names
            .iter()
            .map(|name| name.trim_start_matches('.').to_string());
        bare.collect()
    });
    if let Fact::Unknown(why) = &adapter {
        facts.trained = Fact::Unknown(why.clone());
    } else {
        facts.trained = Fact::follows(Trained::Adapters, "network");
        facts.base_dtype = facts.weights.clone();
    }
    if facts.weights.value() == Some(&Weights::Nf4) && adapter.value() == Some(&Adapter::Lora) {
        facts.adapter = adapter.map(|_| Some(Adapter::Qlora));
    } else {
        facts.adapter = adapter.map(Some);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    const JOB: &str = "---
job: extension
config:
  name: mine
  process:
    - type: diffusion_trainer
      device: cuda:0
      network: {type: lora, linear: 24, linear_alpha: 24}
      datasets:
        - {folder_path: a, resolution: [640, 896], cache_latents_to_disk: true}
        - {folder_path: b, resolution: 512, num_frames: 9, cache_latents_to_disk: true}
      train: {batch_size: 2, gradient_accumulation: 3, optimizer: adamw8bit, dtype: bf16}
      model: {name_or_path: Wan-AI/Wan2.1-T2V-1.3B-Diffusers, arch: wan21, quantize: true}
";

    #[test]
    fn the_largest_size_of_all_datasets_decides() {
        check(
            "job.yaml",
            JOB,
            &[
                ("outcome", "estimate"),
                ("height", "896"),
                ("frames", "9"),
                ("micro_batch", "2"),
                ("accumulation", "3"),
                ("rank", "24"),
                ("weights", "fp8"),
                ("compute", "bf16 autocast"),
                ("checkpointing", "true"),
                ("cached_latents", "true"),
                ("cached_text", "false"),
                ("trained", "adapters"),
            ],
        );
    }

    #[test]
    fn without_a_network_all_weights_are_trained() {
        let full = JOB.replace(
            "      network: {type: lora, linear: 24, linear_alpha: 24}\n",
            "",
        );
        check(
            "job.yaml",
            &full.replace(", quantize: true", ""),
            &[("trained", "all"), ("adapter", "null"), ("weights", "bf16")],
        );
    }

    #[test]
    fn jobs_that_do_not_train_are_refused() {
        check(
            "e.yaml",
            &JOB.replace("extension", "extract"),
            &[("outcome", "refuse")],
        );
    }
}
