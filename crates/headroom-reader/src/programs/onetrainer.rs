//! OneTrainer (Nerogar): a JSON of settings or a preset. Defaults are those of `modules/util/config/TrainConfig.py`.

use super::diffusion::{autocast, one_size, weights};
use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::program::{Program, Source};
use crate::words::{
    Adapter, Attention, Checkpointing, DataParallel, Offload, Strategy, Task, Trained, Weights,
};

pub const PROGRAM: Program = Program {
    id: "onetrainer",
    name: "OneTrainer",
    read,
};

const DEFAULT: &str = "OneTrainer";

/// Keys that hardly another program has.
const MARKS: &[&str] = &[
    "training_method",
    "model_type",
    "base_model_name",
    "train_dtype",
    "output_dtype",
    "output_model_format",
    "latent_caching",
    "concept_file_name",
    "optimizer_defaults",
    "dataloader_threads",
    "fallback_train_dtype",
];

fn read(source: &Source) -> Option<Facts> {
    let keys = source.document()?;
    let marks = MARKS.iter().filter(|key| keys.has(key)).count();
    (marks >= 3 && (keys.has("training_method") || keys.has("train_dtype"))).then(|| facts(keys))
}

fn facts(keys: &Keys) -> Facts {
    let mut facts = Facts::of(PROGRAM.id);
    facts.task = Fact::follows(Task::Diffusion, "OneTrainer trains diffusion models");
    let kind = keys
        .text("model_type")
        .or_default("STABLE_DIFFUSION_15".into(), DEFAULT);
    let kind = kind.value().cloned().unwrap_or_default();
    facts.model = match keys.text("base_model_name") {
        Fact::Unsaid => Fact::follows(kind.clone(), "model_type"),
        said => said,
    };
    facts.micro_batch = keys.whole("batch_size").or_default(1, DEFAULT);
    facts.accumulation = keys
        .whole("gradient_accumulation_steps")
        .or_default(1, DEFAULT);
    // Several resolutions stand between commas; `512x768` is one.
    let text = keys.text("resolution").or_default("512".into(), DEFAULT);
    let size = text.and_then(|text| {
        let one = |part: &str| {
            let mut sides = part
                .trim()
                .split('x')
                .map(|side| side.trim().parse::<u64>().ok());
            let width = sides.next()??;
            Some((sides.next().flatten().unwrap_or(width), width))
        };
        text.split(',')
            .filter_map(one)
            .max_by_key(|(height, width)| height.saturating_mul(*width))
    });
    let size = size.or(one_size(keys, "resolution"));
    facts.height = size.clone().map(|(height, _)| height);
    facts.width = size.map(|(_, width)| width);
    if kind.contains("VIDEO") || kind.contains("WAN") || kind.contains("LTX") {
        facts.frames = keys.largest("frames").or_default(25, DEFAULT);
    }
    spread(keys, &mut facts);
    let network = if keys.has("unet") || kind.contains("STABLE_DIFFUSION_1") || kind.contains("XL")
    {
        "unet"
    } else {
        "transformer"
    };
    precision(keys, network, &mut facts);
    method(keys, network, &mut facts);
    facts.optimizer = keys
        .text("optimizer.optimizer")
        .or(keys.text("optimizer"))
        .map(|name| {
            let fused = keys.switch("optimizer.fused").value() == Some(&true);
            match name.to_ascii_lowercase().as_str() {
                "adamw" if fused => "adamw_fused".into(),
                name => name.into(),
            }
        })
        .or_default("adamw".into(), DEFAULT);
    checkpointing(keys, network, &mut facts);
    facts.attention = keys
        .text("attention_mechanism")
        .and_then(|name| match name.as_str() {
            "SDP" => Some(Attention::Sdpa),
            "XFORMERS" => Some(Attention::Xformers),
            "FLASH" => Some(Attention::Flash),
            _ => None,
        })
        .or_default(Attention::Sdpa, DEFAULT);
    facts.cached_latents = keys.switch("latent_caching").or_default(true, DEFAULT);
    let text_trained = facts.text_encoders_trained.value() == Some(&true);
    let cached = facts.cached_latents.clone();
    facts.cached_text = cached.map(|cached| cached && !text_trained);
    facts.compile = keys.switch("compile").or_default(false, DEFAULT);
    if keys.text("ema").value().is_some_and(|place| place == "GPU") {
        facts
            .not_modelled
            .push("ema: a moving average of what is trained".into());
    }
    for (key, what) in [
        (
            "optimizer.fused_back_pass",
            "each gradient is freed once it is used",
        ),
        (
            "enable_async_offloading",
            "layers are copied while others compute",
        ),
        ("masked_training", "the loss is masked"),
        ("prior.train", "a prior is trained beside"),
    ] {
        if keys.switch(key).value() == Some(&true) {
            facts.not_modelled.push(format!("{key}: {what}"));
        }
    }
    for key in [
        "layer_offload_fraction",
        "transformer.offload_fraction",
        "unet.offload_fraction",
    ] {
        if keys.number(key).value().is_some_and(|part| *part > 0.0) {
            facts
                .not_modelled
                .push(format!("{key}: that part of the layers is on the host"));
        }
    }
    facts
}

fn spread(keys: &Keys, facts: &mut Facts) {
    facts.offload = Fact::default_of(Offload::None, DEFAULT);
    if keys.switch("multi_gpu").value() == Some(&true) {
        let devices = keys.list("device_indexes");
        facts.gpus = devices.and_then(|all| (!all.is_empty()).then_some(all.len() as u64));
        facts.strategy = Fact::read(Strategy::from(DataParallel::Ddp), "multi_gpu");
    } else {
        facts.gpus = Fact::default_of(1, DEFAULT);
        facts.strategy = Fact::default_of(Strategy::from(DataParallel::None), DEFAULT);
    }
}

fn precision(keys: &Keys, network: &str, facts: &mut Facts) {
    let train = keys
        .text("train_dtype")
        .or_default("FLOAT_16".into(), DEFAULT);
    facts.compute = train.and_then(|name| autocast(name));
    let own = keys.text(&format!("{network}.weight_dtype"));
    let own = match own.value().map(String::as_str) {
        Some("NONE") | None => Fact::Unsaid,
        Some(_) => own,
    };
    facts.weights = own
        .or(keys.text("weight_dtype"))
        .or_default("FLOAT_32".into(), DEFAULT)
        .and_then(|name| weights(name));
}

fn method(keys: &Keys, network: &str, facts: &mut Facts) {
    let method = keys
        .text("training_method")
        .or_default("FINE_TUNE".into(), DEFAULT);
    let lora = method.value().is_some_and(|method| method == "LORA");
    let text = [
        "text_encoder.train",
        "text_encoder_2.train",
        "text_encoder_3.train",
    ]
    .iter()
    .any(|key| keys.switch(key).value() == Some(&true));
    let silent = keys.switch("text_encoder.train").is_unsaid();
    facts.text_encoders_trained = if silent {
        Fact::default_of(true, DEFAULT)
    } else {
        Fact::read(text, "text_encoder.train")
    };
    if !lora {
        facts.adapter = Fact::follows(None, "training_method");
        let with_text = facts.text_encoders_trained.value() == Some(&true);
        let words = match method.value().map(String::as_str) {
            Some("EMBEDDING") => "the embeddings of new tokens".into(),
            Some("FINE_TUNE_VAE") => "all of the VAE".into(),
            _ if with_text => format!("all of the {network} and the text encoders"),
            _ => format!("all of the {network}"),
        };
        facts.trained = method.map(|_| Trained::Part(words));
        return;
    }
    let kind = keys.text("peft_type").or_default("LORA".into(), DEFAULT);
    let decomposed = keys.switch("lora_decompose").value() == Some(&true);
    let four = facts.weights.value() == Some(&Weights::Nf4);
    facts.adapter = kind.and_then(|kind| {
        Some(Some(match kind.as_str() {
            "LORA" if decomposed => Adapter::Dora,
            "LORA" if four => Adapter::Qlora,
            "LORA" => Adapter::Lora,
            "LOHA" => Adapter::Loha,
            "LOKR" => Adapter::Lokr,
            "OFT" | "OFT_2" => Adapter::Oft,
            _ => return None,
        }))
    });
    facts.rank = keys.whole("lora_rank").or_default(16, DEFAULT);
    let own = keys.text("lora_weight_dtype");
    let own = own.or_default("FLOAT_32".into(), DEFAULT);
    facts.fp32_adapters = own.map(|name| weights(&name) == Some(Weights::Fp32));
    // Parts of paths; with a dot before them, beginnings of names. Full paths are not understood.
    let filter = keys.list("layer_filter");
    let bare = |names: Vec<String>| -> Vec<String> {
        let names = names.iter().flat_map(|name| name.split(','));
        let names = names.map(|name| name.trim().trim_start_matches('.').to_string());
        names.filter(|name| !name.is_empty()).collect()
    };
    let names = filter.map(bare);
    if names.value().is_some_and(|names| !names.is_empty()) {
        facts.targets = names;
    }
    facts.trained = Fact::read(Trained::Adapters, "training_method");
    facts.base_dtype = facts.weights.clone();
}

fn checkpointing(keys: &Keys, network: &str, facts: &mut Facts) {
    // A setting of each part since version 11 of the files, of all before.
    let own = keys.text(&format!("{network}.gradient_checkpointing"));
    let how = own.or(keys.text("gradient_checkpointing"));
    facts.checkpointing = match how.value().map(|how| how.to_ascii_uppercase()).as_deref() {
        None => Fact::default_of(Checkpointing::On, DEFAULT),
        Some("OFF" | "FALSE") => Fact::read(Checkpointing::Off, "gradient_checkpointing"),
        Some(how) => {
            if how == "CPU_OFFLOADED" {
                let what = "gradient_checkpointing CPU_OFFLOADED: what is kept lies on the host";
                facts.not_modelled.push(what.into());
            }
            Fact::read(Checkpointing::On, "gradient_checkpointing")
        }
    };
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    #[test]
    fn the_largest_of_several_resolutions_decides() {
        let text = r#"{
            "base_model_name": "black-forest-labs/FLUX.1-dev", "model_type": "FLUX_DEV_1",
            "training_method": "LORA", "batch_size": 2, "resolution": "512,768", "train_dtype": "BFLOAT_16",
            "output_dtype": "BFLOAT_16", "transformer": {"train": true, "weight_dtype": "NFLOAT_4"},
            "text_encoder": {"train": false}, "optimizer": {"optimizer": "PRODIGY"}
        }"#;
        check(
            "preset.json",
            text,
            &[
                ("outcome", "estimate"),
                ("height", "768"),
                ("weights", "nf4"),
                ("compute", "bf16 autocast"),
                ("adapter", "qlora"),
                ("rank", "16"),
                ("optimizer", "prodigy"),
                ("checkpointing", "true"),
            ],
        );
        let full = text
            .replace("LORA", "FINE_TUNE")
            .replace("NFLOAT_4", "FLOAT_32");
        check(
            "preset.json",
            &full,
            &[("trained", "all of the transformer"), ("weights", "fp32")],
        );
    }
}
