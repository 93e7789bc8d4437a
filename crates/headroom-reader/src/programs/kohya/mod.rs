//! kohya's sd-scripts and musubi-tuner: `accelerate launch SCRIPT --flags`, a TOML of the same flags, or the GUI's JSON;
//! sizes are in a dataset's TOML. Defaults are those of `library/train_util.py`, `train_network.py` and, for musubi-tuner,
//! `src/musubi_tuner/hv_train_network.py`.

mod data;
mod scripts;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use headroom_base::document::Document;
use headroom_scripts::Beside;

use self::scripts::{Kind, Script};
use super::diffusion::{autocast, weights};
use super::launched;
use crate::documents;
use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::names;
use crate::outcome::is_placeholder;
use crate::program::{Form, Program, Source};
use crate::words::{
    Adapter, Attention, Checkpointing, Compute, DataParallel, Offload, Strategy, Task, Trained,
    Weights,
};

pub const PROGRAM: Program = Program {
    id: "kohya",
    name: "kohya's sd-scripts",
    read,
};

const DEFAULT: &str = "sd-scripts";

/// Flags by which a file of settings is known to be one of these scripts'.
const MARKS: &[&str] = &[
    "network_module",
    "network_dim",
    "train_data_dir",
    "max_bucket_reso",
    "min_bucket_reso",
    "cache_latents_to_disk",
    "save_model_as",
    "save_every_n_epochs",
    "caption_extension",
    "dataset_config",
    "network_alpha",
    "optimizer_type",
    "LoRA_type",
    "unet_lr",
    "noise_offset",
    "clip_skip",
    "reg_data_dir",
    "keep_tokens",
    "shuffle_caption",
];

/// What changes memory and has no setting.
const NOT_MODELLED: &[(&str, &str)] = &[
    (
        "fused_backward_pass",
        "each gradient is freed once it is used",
    ),
    (
        "blockwise_fused_optimizers",
        "each block's gradients are freed once they are used",
    ),
    (
        "fused_optimizer_groups",
        "each group's gradients are freed once they are used",
    ),
    (
        "cpu_offload_checkpointing",
        "what is kept for backward is on the host",
    ),
    ("lowram", "weights are loaded to the GPU at once"),
    ("highvram", "caches of the allocator are kept"),
    (
        "split_mode",
        "one half of the network is on the GPU at a time",
    ),
    ("split_attn", "attention is computed image by image"),
    ("base_weights", "adapters are merged first"),
    ("vae_chunk_size", "the VAE works in parts"),
    ("mem_eff_attn", "attention is computed in parts"),
    ("weighting_scheme_cache", "a cache of weights"),
    ("img_in_txt_in_offloading", "embedders are on the host"),
];

fn read(source: &Source) -> Option<Facts> {
    match &source.form {
        Form::Command { launch, flags } => {
            let name = launch.program.text.rsplit(['/', '.']);
            let name = name.clone().find(|part| *part != "py").unwrap_or_default();
            let script = scripts::named(name)?;
            let keys = with_file(flags, source.beside);
            let own = MARKS.iter().any(|key| keys.has(key)) || keys.has("dit");
            // A name that other programs use as well needs one of its flags.
            if script.common
                && !own
                && !keys.has("pretrained_model_name_or_path")
                && launch.arguments.len() > 1
            {
                return None;
            }
            if script.common && keys.has("dataset_name") {
                return None;
            }
            let mut facts = facts(source, &keys, script);
            launched::apply(launch, &Keys::default(), source.beside, &mut facts);
            finish(&mut facts);
            Some(facts)
        }
        Form::Document(keys) => {
            let keys = flat(keys);
            let marks = MARKS.iter().filter(|key| keys.has(key)).count();
            if marks < 3 || !keys.has("pretrained_model_name_or_path") && !keys.has("dit") {
                return data::alone(&source.document()?.clone());
            }
            let mut facts = facts(source, &keys, scripts::of_settings(&keys));
            finish(&mut facts);
            Some(facts)
        }
        Form::Python { .. } => None,
    }
}

fn finish(facts: &mut Facts) {
    if facts.strategy.is_unsaid() {
        facts.strategy = Fact::default_of(Strategy::from(DataParallel::Ddp), "accelerate launch");
    }
    if facts.offload.is_unsaid() {
        facts.offload = Fact::default_of(Offload::None, DEFAULT);
    }
}

/// The flags over those of `--config_file`, whose sections only order them.
fn with_file(flags: &Keys, beside: &dyn Beside) -> Keys {
    let path = flags.text("config_file");
    let file = path.value().and_then(|path| beside.text(path));
    let Some(mut keys) = file
        .as_deref()
        .and_then(documents::read)
        .map(|keys| flat(&keys))
    else {
        return flags.clone();
    };
    keys.overlay(flags);
    keys
}

/// Sections only order the settings.
fn flat(keys: &Keys) -> Keys {
    let Document::Map(entries) = keys.tree() else {
        return Keys::default();
    };
    let mut all = BTreeMap::new();
    for entry in entries {
        let inner = match &entry.value {
            Document::Map(inner) => inner.as_slice(),
            _ => std::slice::from_ref(entry),
        };
        for entry in inner {
            all.insert(entry.key.replace('.', "_"), entry.value.clone());
        }
    }
    Keys::new(all.into_iter().collect())
}

fn facts(source: &Source, keys: &Keys, script: Script) -> Facts {
    let mut facts = Facts::of(PROGRAM.id);
    facts.task = Fact::follows(Task::Diffusion, "sd-scripts train diffusion models");
    facts.model = model(keys, script);
    facts.accumulation = keys
        .whole("gradient_accumulation_steps")
        .or_default(1, DEFAULT);
    data::sizes(source, keys, script.video, &mut facts);
    trained(keys, script, &mut facts);
    precision(keys, script, &mut facts);
    let on = |key: &str| keys.switch(key).value() == Some(&true);
    facts.checkpointing = keys
        .switch("gradient_checkpointing")
        .map(|on| {
            if on {
                Checkpointing::On
            } else {
                Checkpointing::Off
            }
        })
        .or_default(Checkpointing::Off, DEFAULT);
    facts.optimizer = if on("use_8bit_adam") {
        Fact::read("adamw8bit".into(), "use_8bit_adam")
    } else if on("use_lion_optimizer") {
        Fact::read("lion".into(), "use_lion_optimizer")
    } else {
        let arguments = keys.list("optimizer_args");
        let fused = arguments
            .value()
            .is_some_and(|all| all.iter().any(|it| it == "fused=True"));
        keys.text("optimizer_type")
            .or(keys.text("optimizer"))
            .map(|name| {
                let name = name.rsplit('.').next().unwrap_or(&name);
                let name = name.to_ascii_lowercase();
                if fused && name == "adamw" {
                    "adamw_fused".into()
                } else {
                    name
                }
            })
            .or_default("adamw".into(), DEFAULT)
    };
    facts.attention = attention(keys);
    let cached = ["cache_latents", "cache_latents_to_disk"]
        .iter()
        .any(|key| on(key));
    facts.cached_latents = Fact::read(cached || script.musubi, "cache_latents");
    let text = [
        "cache_text_encoder_outputs",
        "cache_text_encoder_outputs_to_disk",
    ];
    let cached = text.iter().any(|key| on(key));
    facts.cached_text = Fact::read(cached || script.musubi, "cache_text_encoder_outputs");
    facts.blocks_swapped = keys.whole("blocks_to_swap").or_default(0, DEFAULT);
    let samples = ["sample_every_n_steps", "sample_every_n_epochs"];
    let samples = samples
        .iter()
        .any(|key| keys.whole(key).value().is_some_and(|n| *n > 0));
    facts.evaluation = Fact::read(samples, "sample_every_n_epochs");
    for (key, what) in NOT_MODELLED {
        let off = keys.switch(key).value() == Some(&false);
        if keys.get(key).is_some() && !off {
            facts.not_modelled.push(format!("{key}: {what}"));
        }
    }
    facts
}

/// Scripts of one network need no name; Stable Diffusion 1, 2 and 3 do.
fn model(keys: &Keys, script: Script) -> Fact<String> {
    let path = keys
        .text("pretrained_model_name_or_path")
        .or(keys.text("dit"));
    let flavour = keys.text("model_type");
    if script.network == scripts::FLUX && flavour.value().is_some_and(|kind| kind == "chroma") {
        return Fact::follows("lodestones/Chroma1-HD".into(), "model_type chroma");
    }
    if let Some(family) = script.sized {
        let task = keys.text("task").or(keys.text("model_version"));
        let task = task.or_default(family.usual.into(), "musubi-tuner");
        return task.map(|task| scripts::of_task(family, &task));
    }
    if !script.network.is_empty() {
        return Fact::follows(script.network.into(), format!("{} trains it", script.name));
    }
    match path {
        Fact::Unsaid => Fact::Unknown("pretrained_model_name_or_path is not given".into()),
        Fact::Known { value, origin } => {
            let last = value
                .rsplit(['/', '\\'])
                .next()
                .unwrap_or(&value)
                .to_string();
            let id = value.split('/').count() == 2 && !value.starts_with(['.', '/', '~']);
            let name = if id { value.clone() } else { last };
            if is_placeholder(&value) && is_placeholder(&name) || !name.is_ascii() {
                return Fact::Unknown(format!("`{value}` stands for a name"));
            }
            // The script builds Stable Diffusion 1 for any file, and 2 for `--v2`.
            let file = !id && script.unet && script.common;
            if file && names::named(&name).catalogue.is_none() {
                let second = keys.switch("v2").value() == Some(&true);
                let (network, why) = if second {
                    ("stabilityai/stable-diffusion-2-1", "v2")
                } else {
                    ("stable-diffusion-v1-5/stable-diffusion-v1-5", "no --v2")
                };
                return Fact::follows(network.into(), format!("{why}, and the file {name}"));
            }
            Fact::Known {
                value: name,
                origin,
            }
        }
        unknown @ Fact::Unknown(_) => unknown,
    }
}

fn trained(keys: &Keys, script: Script, facts: &mut Facts) {
    let on = |key: &str| keys.switch(key).value() == Some(&true);
    let text = match script.kind {
        Kind::Network => {
            let only = on("network_train_unet_only") || script.musubi;
            Fact::read(!only, "network_train_unet_only")
        }
        Kind::DreamBooth => match keys.text("stop_text_encoder_training").value() {
            Some(never) if never == "-1" => Fact::read(false, "stop_text_encoder_training"),
            _ => Fact::default_of(true, "train_db.py"),
        },
        _ => keys.switch("train_text_encoder").or_default(false, DEFAULT),
    };
    match script.kind {
        Kind::Network => {
            facts.adapter = adapter(keys).map(Some);
            facts.trained = Fact::follows(Trained::Adapters, script.name);
            let module = keys.text("network_module");
            let full = module.value().is_some_and(|name| name.ends_with("lora_fa"));
            let dim = keys.whole("network_dim").or_default(4, DEFAULT);
            facts.rank = if full { keys.whole("network_dim") } else { dim };
        }
        Kind::ControlNet => {
            facts.adapter = Fact::follows(None, script.name);
            facts.trained = Fact::follows(Trained::Part("the ControlNet".into()), script.name);
        }
        Kind::TextualInversion => {
            facts.adapter = Fact::follows(None, script.name);
            let words = "the embeddings of new tokens";
            facts.trained = Fact::follows(Trained::Part(words.into()), script.name);
        }
        Kind::Full | Kind::DreamBooth => {
            facts.adapter = Fact::follows(None, script.name);
            let network = if script.unet { "unet" } else { "transformer" };
            let words = match text.value() {
                Some(true) => format!("all of the {network} and the text encoders"),
                _ => format!("all of the {network}"),
            };
            facts.trained = Fact::follows(Trained::Part(words), script.name);
        }
    }
    facts.text_encoders_trained = text;
}

/// `--network_module`, and LyCORIS' algorithm in `--network_args`.
fn adapter(keys: &Keys) -> Fact<Adapter> {
    let module = keys.text("network_module").or(keys.text("LoRA_type"));
    let module = module.or_default("networks.lora".into(), DEFAULT);
    let arguments = keys.list("network_args");
    let algorithm = arguments
        .value()
        .into_iter()
        .flatten()
        .find_map(|argument| {
            let (name, value) = argument.split_once('=')?;
            (name == "algo").then(|| value.to_ascii_lowercase())
        });
    module.and_then(|module| {
        let lower = module.to_ascii_lowercase();
        let name = if lower.contains("lycoris") {
            algorithm.unwrap_or(lower)
        } else {
            lower
        };
        let all = [
            ("lokr", Adapter::Lokr),
            ("loha", Adapter::Loha),
            ("boft", Adapter::Boft),
            ("oft", Adapter::Oft),
            ("dora", Adapter::Dora),
            ("ia3", Adapter::Ia3),
            ("full", Adapter::Lora),
            ("lo", Adapter::Lora),
            ("standard", Adapter::Lora),
            ("lycoris", Adapter::Lora),
        ];
        all.iter()
            .find(|(part, _)| name.contains(part))
            .map(|(_, adapter)| *adapter)
    })
}

fn precision(keys: &Keys, script: Script, facts: &mut Facts) {
    let on = |key: &str| keys.switch(key).value() == Some(&true);
    let mixed = keys
        .text("mixed_precision")
        .or_default("no".into(), DEFAULT);
    facts.compute = mixed.clone().and_then(|name| autocast(name));
    let short = mixed.and_then(|name| weights(name));
    let eight = ["fp8_base", "fp8_base_unet", "fp8_scaled"]
        .iter()
        .find(|key| on(key));
    let pure = if on("full_bf16") {
        Some((Weights::Bf16, Compute::Bf16Autocast))
    } else if on("full_fp16") {
        Some((Weights::Fp16, Compute::Fp16Autocast))
    } else {
        None
    };
    if script.kind == Kind::Full
        || script.kind == Kind::DreamBooth
        || script.kind == Kind::ControlNet
    {
        facts.weights = match pure {
            Some((weights, _)) => Fact::read(weights, "full_bf16"),
            None => Fact::default_of(Weights::Fp32, DEFAULT),
        };
        return;
    }
    if pure.is_some() {
        facts.fp32_adapters = Fact::read(false, "full_bf16");
    }
    // What is frozen is in the type of autocast.
    facts.weights = match (eight, pure) {
        (Some(key), _) => Fact::read(Weights::Fp8, *key),
        (None, Some((weights, _))) => Fact::read(weights, "full_bf16"),
        (None, None) => short,
    };
    facts.base_dtype = facts.weights.clone();
}

fn attention(keys: &Keys) -> Fact<Attention> {
    let on = |key: &str| keys.switch(key).value() == Some(&true);
    let text = |key: &str| keys.text(key).value().cloned();
    let chosen = text("attn_mode").or_else(|| text("xformers").filter(|how| how.len() > 4));
    match chosen.as_deref() {
        Some("torch" | "sdpa") => return Fact::read(Attention::Sdpa, "attn_mode"),
        Some("xformers") => return Fact::read(Attention::Xformers, "attn_mode"),
        Some(mode) if mode.starts_with("flash") => {
            return Fact::read(Attention::Flash, "attn_mode");
        }
        _ => {}
    }
    for (key, how) in [
        ("xformers", Attention::Xformers),
        ("diffusers_xformers", Attention::Xformers),
        ("sdpa", Attention::Sdpa),
        ("flash_attn", Attention::Flash),
        ("use_flash_attn", Attention::Flash),
        ("flash3", Attention::Flash),
    ] {
        if on(key) {
            return Fact::read(how, key);
        }
    }
    Fact::Unsaid
}
