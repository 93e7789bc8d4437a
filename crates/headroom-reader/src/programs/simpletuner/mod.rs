//! SimpleTuner (bghira): a JSON or YAML of options, and a list of data backends beside it. Defaults are those of its
//! `simpletuner_sdk/server/services/field_registry/sections/`.

mod families;

pub use families::flavours;

use headroom_base::document::{Document, json};

use super::diffusion::{autocast, weights};
use crate::documents;
use crate::fact::Fact;
use crate::facts::{Ask, Facts};
use crate::keys::Keys;
use crate::program::{Form, Program, Source};
use crate::words::{
    Adapter, Checkpointing, Compute, DataParallel, Offload, Strategy, Task, Trained, Weights,
};

pub const PROGRAM: Program = Program {
    id: "simpletuner",
    name: "SimpleTuner",
    read,
};

const DEFAULT: &str = "SimpleTuner";

const MARKS: &[&str] = &[
    "model_family",
    "data_backend_config",
    "base_model_precision",
    "lora_type",
    "model_flavour",
    "quantize_via",
    "validation_prompt_library",
    "lycoris_config",
    "disable_bucket_pruning",
];

/// What changes memory and has no setting.
const NOT_MODELLED: &[(&str, &str)] = &[
    (
        "ramtorch",
        "weights stay on the host and are copied layer by layer",
    ),
    ("enable_group_offload", "groups of layers stay on the host"),
    (
        "controlnet",
        "a ControlNet is trained beside the frozen model",
    ),
    ("tread_config", "tokens are routed past layers"),
    ("fuse_optimizer", "each gradient is freed once it is used"),
    (
        "optimizer_release_gradients",
        "each gradient is freed once it is used",
    ),
    (
        "optimizer_cpu_offload_method",
        "the optimizer's state is on the host",
    ),
    (
        "gradient_checkpointing_offload_attention",
        "what is kept of attention is on the host",
    ),
    (
        "diffusion_blocks_config",
        "only some blocks are trained at a time",
    ),
    ("distillation_method", "a teacher is beside the student"),
    ("use_text_encoder_cache", "text is encoded while training"),
    ("vae_cache_disable", "the VAE stays on the GPU"),
    (
        "validation_using_datasets",
        "validation is as large as the data",
    ),
];

fn read(source: &Source) -> Option<Facts> {
    let keys = match &source.form {
        Form::Document(keys) => {
            let inner = keys.has("config.--model_family") || keys.has("config.model_family");
            let tree = if inner {
                keys.get("config")?
            } else {
                keys.tree()
            };
            Keys::new(without_dashes(tree))
        }
        Form::Command { launch, flags } => {
            let named = launch.program.text.contains("simpletuner");
            if !named && !flags.has("data_backend_config") {
                return None;
            }
            flags.clone()
        }
        Form::Python { .. } => return None,
    };
    let marks = MARKS.iter().filter(|key| keys.has(key)).count();
    let sure = keys.has("model_family") && keys.has("model_type");
    (sure || marks >= 3).then(|| facts(source, &keys))
}

/// Options are also written with their dashes.
fn without_dashes(tree: &Document) -> Document {
    match tree {
        Document::Map(entries) => entries
            .iter()
            .map(|entry| {
                let key = entry.key.trim_start_matches('-').to_string();
                (key, entry.value.clone())
            })
            .collect(),
        other => other.clone(),
    }
}

fn facts(source: &Source, keys: &Keys) -> Facts {
    let mut facts = Facts::of(PROGRAM.id);
    facts.task = Fact::follows(Task::Diffusion, "SimpleTuner trains diffusion models");
    let family = keys.text("model_family");
    let flavour = keys.text("model_flavour");
    facts.model = keys
        .text("pretrained_model_name_or_path")
        .or(families::model(&family, &flavour));
    facts.micro_batch = keys.whole("train_batch_size").or_default(4, DEFAULT);
    facts.accumulation = keys
        .whole("gradient_accumulation_steps")
        .or_default(1, DEFAULT);
    spread(keys, &mut facts);
    precision(keys, &mut facts);
    adapter(source, keys, &mut facts);
    let interval = keys.whole("gradient_checkpointing_interval");
    let stride = keys.whole("gradient_checkpointing_segment_stride");
    match family.value().map(|family| families::checkpoints(family)) {
        Some(families::Interval::OfSegments) => {
            facts.checkpoint_span = interval;
            facts.checkpoint_every = stride;
        }
        Some(families::Interval::OfBlocks) | None => facts.checkpoint_every = interval,
        Some(families::Interval::Ignored) => {}
    }
    facts.checkpointing = match keys.switch("gradient_checkpointing").value() {
        Some(false) => Fact::read(Checkpointing::Off, "gradient_checkpointing"),
        Some(true) => Fact::read(Checkpointing::On, "gradient_checkpointing"),
        None => Fact::default_of(Checkpointing::On, DEFAULT),
    };
    facts.optimizer = keys
        .text("optimizer")
        .or_default("adamw_bf16".into(), DEFAULT);
    facts.text_encoders_trained = keys.switch("train_text_encoder").or_default(false, DEFAULT);
    facts.cached_latents = keys
        .switch("vae_cache_disable")
        .map(|off| !off)
        .or_default(true, DEFAULT);
    facts.cached_text = Fact::default_of(true, DEFAULT);
    facts.evaluation = keys
        .switch("validation_disable")
        .map(|off| !off)
        .or_default(true, DEFAULT);
    facts.blocks_swapped = keys.whole("musubi_blocks_to_swap").or_default(0, DEFAULT);
    facts.attention = families::attention(&keys.text("attention_mechanism"));
    let video = family
        .value()
        .is_some_and(|family| families::is_video(family));
    data(source, keys, video, &mut facts);
    for (key, what) in NOT_MODELLED {
        let off = keys.switch(key).value() == Some(&false);
        if keys.get(key).is_some() && !off {
            facts.not_modelled.push(format!("{key}: {what}"));
        }
    }
    let moving = keys.switch("use_ema").value() == Some(&true);
    let on_gpu = keys
        .text("ema_device")
        .value()
        .is_some_and(|device| device == "accelerator");
    if moving && on_gpu {
        facts
            .not_modelled
            .push("use_ema: a moving average of what is trained".into());
    }
    facts
}

fn spread(keys: &Keys, facts: &mut Facts) {
    facts.gpus = keys
        .whole("num_processes")
        .or(keys.whole("--num_processes"));
    facts.nodes = keys.whole("num_machines");
    facts.offload = Fact::default_of(Offload::None, DEFAULT);
    let on = |key: &str| keys.switch(key).value() == Some(&true);
    facts.strategy = if on("fsdp_enable") {
        let version = keys.whole("fsdp_version");
        let data = match version.value() {
            Some(1) => DataParallel::Fsdp1,
            _ => DataParallel::Fsdp2,
        };
        Fact::read(Strategy::from(data), "fsdp_enable")
    } else if keys.get("deepspeed_config").is_some() {
        Fact::Unknown("deepspeed_config: its stage is not understood".into())
    } else if facts.gpus.value() == Some(&1) {
        Fact::read(Strategy::from(DataParallel::None), "num_processes")
    } else {
        Fact::default_of(Strategy::from(DataParallel::Ddp), DEFAULT)
    };
}

fn precision(keys: &Keys, facts: &mut Facts) {
    let mixed = keys
        .text("mixed_precision")
        .or_default("bf16".into(), DEFAULT);
    let trained = keys
        .text("base_model_default_dtype")
        .or_default("bf16".into(), DEFAULT);
    let plain = trained.and_then(|name| weights(name));
    // Weights in bf16 need no autocast; with a base of fp32 it is used.
    facts.compute = match (mixed.value().map(String::as_str), plain.value()) {
        (Some("bf16"), Some(Weights::Fp32)) => mixed.map(|_| Compute::Bf16Autocast),
        (Some("bf16"), _) => mixed.map(|_| Compute::Bf16),
        _ => mixed.and_then(|name| autocast(name)),
    };
    let base = keys.text("base_model_precision");
    facts.weights = match base.value().map(String::as_str) {
        None | Some("no_change") => plain,
        Some(_) => base.and_then(|name| weights(name)),
    };
}

fn adapter(source: &Source, keys: &Keys, facts: &mut Facts) {
    let kind = keys.text("model_type").or_default("full".into(), DEFAULT);
    match kind.value().map(String::as_str) {
        Some("lora") => {}
        Some("full" | "deepfloyd-full") => {
            facts.adapter = kind.map(|_| None);
            facts.trained = Fact::follows(Trained::All, "model_type full");
            return;
        }
        _ => {
            facts.adapter = kind.and_then(|_| None);
            return;
        }
    }
    facts.trained = Fact::follows(Trained::Adapters, "model_type lora");
    facts.base_dtype = facts.weights.clone();
    facts.targets = keys.list("peft_lora_target_modules");
    // PEFT makes them in the type of their layer.
    facts.fp32_adapters = facts
        .compute
        .clone()
        .map(|compute| compute != Compute::Bf16);
    let style = keys
        .text("lora_type")
        .or_default("standard".into(), DEFAULT);
    let lycoris = style.value().is_some_and(|style| style == "lycoris");
    facts.adapter = if lycoris {
        of_lycoris(source, keys).map(Some)
    } else if keys.switch("use_dora").value() == Some(&true) {
        Fact::read(Some(Adapter::Dora), "use_dora")
    } else {
        let quantized = facts.weights.value() == Some(&Weights::Nf4);
        let adapter = if quantized {
            Adapter::Qlora
        } else {
            Adapter::Lora
        };
        style.map(|_| Some(adapter))
    };
    if !lycoris {
        facts.rank = keys.whole("lora_rank").or_default(16, DEFAULT);
    }
}

/// The algorithm of LyCORIS, which its own file says; else its name does.
fn of_lycoris(source: &Source, keys: &Keys) -> Fact<Adapter> {
    let path = keys.text("lycoris_config");
    let named = |name: &str| {
        let name = name.to_ascii_lowercase();
        let all = [
            ("lokr", Adapter::Lokr),
            ("loha", Adapter::Loha),
            ("locon", Adapter::Lora),
            ("lora", Adapter::Lora),
            ("boft", Adapter::Boft),
            ("oft", Adapter::Oft),
            ("ia3", Adapter::Ia3),
        ];
        all.iter()
            .find(|(part, _)| name.contains(part))
            .map(|(_, adapter)| *adapter)
    };
    let file = path.value().and_then(|path| source.beside.text(path));
    if let Some(own) = file.as_deref().and_then(documents::read) {
        return own.text("algo").and_then(|algorithm| named(algorithm));
    }
    path.and_then(|path| named(path))
}

/// The largest resolution and the most frames of the data backends.
fn data(source: &Source, keys: &Keys, video: bool, facts: &mut Facts) {
    let path = keys.text("data_backend_config");
    let file = path.value().and_then(|path| source.beside.text(path));
    let Some(Ok(Document::List(backends))) = file.as_deref().map(json::read) else {
        let file = path
            .value()
            .cloned()
            .unwrap_or_else(|| "the data backends' file".into());
        let why = format!("it is in {file}");
        facts.height = Fact::Unknown(why.clone());
        if video {
            facts.ask(Ask::Frames, why);
        }
        return;
    };
    let mut edge: Fact<u64> = Fact::Unsaid;
    let mut frames: Fact<u64> = Fact::Unsaid;
    for backend in backends.into_iter().map(Keys::new) {
        let kind = backend.text("dataset_type");
        let of_text = |kind: &String| kind.contains("embeds");
        if kind.value().is_some_and(of_text) || backend.switch("disabled").value() == Some(&true) {
            continue;
        }
        let size = backend
            .number("resolution")
            .or(keys.number("resolution"))
            .or_default(1024.0, DEFAULT);
        // `area` counts megapixels.
        let own = size.map(|size| if size < 64.0 { (size * 1_048_576.0).sqrt() } else { size } as u64);
        if own.value() > edge.value() {
            edge = own;
        }
        let own = backend.whole("video.num_frames");
        if own.value() > frames.value() {
            frames = own;
        }
    }
    facts.height = edge.clone();
    facts.width = edge;
    if video {
        facts.frames = frames.or_default(125, DEFAULT);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, check_beside};

    const RUN: &str = r#"{
        "model_family": "sdxl", "model_type": "lora", "lora_type": "standard", "lora_rank": 32,
        "base_model_precision": "int8-quanto", "mixed_precision": "bf16", "train_batch_size": 2,
        "data_backend_config": "config/data.json", "optimizer": "adamw_bf16"
    }"#;

    #[test]
    fn the_resolution_is_in_the_data_backends_file() {
        let facts: &[(&str, &str)] = &[
            ("outcome", "question"),
            ("asks", "resolution"),
            ("model", "stabilityai/stable-diffusion-xl-base-1.0"),
            ("weights", "int8"),
            ("compute", "bf16"),
            ("rank", "32"),
            ("strategy", "ddp"),
        ];
        check("config.json", RUN, facts);
        let data = r#"[{"id": "a", "resolution": 1, "resolution_type": "area"},
                       {"id": "b", "dataset_type": "text_embeds"}]"#;
        let found: &[(&str, &str)] = &[("outcome", "estimate"), ("height", "1024")];
        check_beside(&[("config.json", RUN), ("config/data.json", data)], found);
    }

    #[test]
    fn lycoris_has_no_rank_of_its_own() {
        let text = RUN.replace("standard", "lycoris").replace(
            "\"lora_rank\": 32",
            "\"lora_rank\": 32, \"lycoris_config\": \"config/lokr.json\"",
        );
        check("c.json", &text, &[("adapter", "lokr"), ("rank", "unsaid")]);
    }

    #[test]
    fn an_interval_counts_what_its_family_says() {
        let with = |family: &str| {
            let keys = "\"gradient_checkpointing_interval\": 2, \"gradient_checkpointing_segment_stride\": 4, \"lora_rank\"";
            RUN.replace("sdxl", family).replace("\"lora_rank\"", keys)
        };
        let segments: &[(&str, &str)] = &[("checkpoint_span", "2"), ("checkpoint_every", "4")];
        check("c.json", &with("flux"), segments);
        check("c.json", &with("chroma"), &[("checkpoint_every", "2")]);
        check("c.json", &with("sdxl"), &[("checkpoint_every", "unsaid")]);
    }

    #[test]
    fn videos_have_frames_to_ask_for() {
        let text = RUN.replace("sdxl", "wan");
        check("c.json", &text, &[("asks", "resolution frames")]);
    }
}
