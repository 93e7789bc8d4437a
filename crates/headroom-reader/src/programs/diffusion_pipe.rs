//! diffusion-pipe (tdrussell): a TOML, and one of its dataset beside it. Defaults are those of `train.py` and
//! `utils/dataset.py`; the models' keys are in its `docs/supported_models.md`.

use super::diffusion::{named, pure, size, weights};
use crate::documents;
use crate::fact::Fact;
use crate::facts::{Ask, Facts};
use crate::keys::Keys;
use crate::program::{Program, Source};
use crate::words::{
    Adapter, Checkpointing, DataParallel, Offload, Strategy, Task, Trained, Weights,
};

pub const PROGRAM: Program = Program {
    id: "diffusion-pipe",
    name: "diffusion-pipe",
    read,
};

const DEFAULT: &str = "diffusion-pipe";

/// `model.type`, whether it has frames, and the network where the type alone decides it.
const TYPES: &[(&str, bool, Option<&str>)] = &[
    (
        "sdxl",
        false,
        Some("stabilityai/stable-diffusion-xl-base-1.0"),
    ),
    ("flux", false, Some("black-forest-labs/FLUX.1-dev")),
    ("flux2", false, None),
    ("ltx-video", true, Some("Lightricks/LTX-Video")),
    ("ltx2", true, None),
    ("hunyuan-video", true, Some("tencent/HunyuanVideo")),
    ("hunyuan_video_15", true, Some("tencent/HunyuanVideo-1.5")),
    ("hunyuan_image", false, Some("tencent/HunyuanImage-2.1")),
    ("cosmos", true, None),
    ("cosmos_predict2", false, None),
    ("lumina_2", false, Some("Alpha-VLLM/Lumina-Image-2.0")),
    ("wan", true, None),
    ("chroma", false, Some("lodestones/Chroma")),
    ("hidream", false, Some("HiDream-ai/HiDream-I1-Full")),
    ("sd3", false, None),
    ("omnigen2", false, Some("OmniGen2/OmniGen2")),
    ("qwen_image", false, Some("Qwen/Qwen-Image")),
    ("auraflow", false, Some("fal/AuraFlow-v0.3")),
    ("z_image", false, Some("Tongyi-MAI/Z-Image")),
    ("anima", false, Some("circlestone-labs/Anima")),
    ("ernie_image", false, Some("baidu/ERNIE-Image")),
    ("ideogram4", false, Some("ideogram-ai/ideogram-4")),
    ("krea2", false, Some("krea/Krea-2-Raw")),
    ("minimax_h3", true, Some("MiniMaxAI/MiniMax-H3")),
];

/// The network of a `model.type` that has one.
pub fn network(kind: &str) -> Option<&'static str> {
    let known = TYPES.iter().find(|(name, ..)| *name == kind);
    known.and_then(|(.., network)| *network)
}

/// Where the diffusion model's own weights are, the most specific first.
const PATHS: &[&str] = &[
    "model.diffusion_model",
    "model.transformer_path",
    "model.checkpoint_path",
    "model.single_file_path",
    "model.ckpt_path",
    "model.diffusers_path",
];

fn read(source: &Source) -> Option<Facts> {
    let keys = source.document()?;
    if !keys.has("model") {
        return alone(keys);
    }
    let kind = keys.text("model.type");
    let kind = kind.value()?;
    let own = [
        "micro_batch_size_per_gpu",
        "pipeline_stages",
        "activation_checkpointing",
    ];
    if !own.iter().any(|key| keys.has(key)) && !keys.has("save_every_n_epochs") {
        return None;
    }
    let known = TYPES.iter().find(|(name, ..)| name == kind);
    let (_, video, network) = known.copied().unwrap_or((kind, false, None));
    let mut facts = Facts::of(PROGRAM.id);
    facts.task = Fact::follows(Task::Diffusion, "diffusion-pipe trains diffusion models");
    facts.model = model(keys, kind, network);
    facts.micro_batch = keys
        .largest("micro_batch_size_per_gpu")
        .or_default(1, DEFAULT);
    facts.accumulation = keys
        .whole("gradient_accumulation_steps")
        .or_default(1, DEFAULT);
    let stages = keys.whole("pipeline_stages").or_default(1, DEFAULT);
    facts.strategy = stages.map(|stages| Strategy {
        pp: stages.max(1),
        ..Strategy::from(if stages > 1 {
            DataParallel::None
        } else {
            DataParallel::Ddp
        })
    });
    facts.offload = Fact::default_of(Offload::None, DEFAULT);
    precision(keys, &mut facts);
    adapter(keys, &mut facts);
    facts.checkpointing = match keys.text("activation_checkpointing").value() {
        Some(text) if text == "false" => Fact::read(Checkpointing::Off, "activation_checkpointing"),
        Some(text) => {
            if text == "unsloth" {
                let what = "activation_checkpointing unsloth: what is kept lies on the host";
                facts.not_modelled.push(what.into());
            }
            Fact::read(Checkpointing::On, "activation_checkpointing")
        }
        None => Fact::default_of(Checkpointing::Off, DEFAULT),
    };
    facts.blocks_swapped = keys.whole("blocks_to_swap").or_default(0, DEFAULT);
    facts.compile = keys.switch("compile").or_default(false, DEFAULT);
    facts.text_encoders_trained = Fact::default_of(false, DEFAULT);
    facts.cached_latents = Fact::default_of(true, DEFAULT);
    facts.cached_text = keys
        .switch("model.cache_text_embeddings")
        .or_default(true, DEFAULT);
    facts.evaluation = if keys.items("eval_datasets").is_empty() {
        Fact::default_of(false, DEFAULT)
    } else {
        Fact::read(true, "eval_datasets")
    };
    data(source, keys, video, &mut facts);
    for (key, what) in [
        (
            "optimizer.gradient_release",
            "each gradient is freed once it is used",
        ),
        (
            "image_micro_batch_size_per_gpu",
            "images have a batch of their own",
        ),
        (
            "eval_micro_batch_size_per_gpu",
            "evaluation has a batch of its own",
        ),
        ("model.merge_adapters", "adapters are merged first"),
        ("model.cfg", "a second forward without the prompt"),
    ] {
        let same = keys.peek(key) == keys.peek("micro_batch_size_per_gpu");
        if keys.get(key).is_some() && !same {
            facts.not_modelled.push(format!("{key}: {what}"));
        }
    }
    Some(facts)
}

fn model(keys: &Keys, kind: &str, network: Option<&str>) -> Fact<String> {
    let path = PATHS
        .iter()
        .map(|path| keys.text(path))
        .find(|path| !path.is_unsaid());
    match (path.map(|path| named(&path, kind)), network) {
        (Some(known @ Fact::Known { .. }), None) => known,
        (Some(Fact::Known { value, origin }), Some(_)) => Fact::Known { value, origin },
        (_, Some(network)) => Fact::follows(network.into(), format!("model.type {kind}")),
        (Some(other), None) => other,
        (None, None) => Fact::Unknown(format!("model.type {kind} comes in several sizes")),
    }
}

fn precision(keys: &Keys, facts: &mut Facts) {
    let dtype = keys
        .text("model.dtype")
        .or_default("bfloat16".into(), DEFAULT);
    let dtype = dtype.and_then(|name| weights(name));
    facts.compute = dtype.clone().and_then(|dtype| pure(*dtype));
    let own = keys
        .text("model.transformer_dtype")
        .or(keys.text("model.diffusion_model_dtype"))
        .or(keys.text("model.unet_dtype"));
    facts.weights = own.and_then(|name| weights(name)).or(dtype);
    facts.optimizer =
        keys.text("optimizer.type")
            .map(|name| match name.to_ascii_lowercase().as_str() {
                "adamw8bitkahan" => "adamw8bit kahan".into(),
                "adamw" if keys.switch("optimizer.fused").value() == Some(&true) => {
                    "adamw_fused".into()
                }
                lower => lower.into(),
            });
}

fn adapter(keys: &Keys, facts: &mut Facts) {
    if !keys.has("adapter") {
        facts.adapter = Fact::follows(None, "no [adapter]");
        facts.trained = Fact::follows(Trained::All, "no [adapter]");
        return;
    }
    let kind = keys.text("adapter.type").or_default("lora".into(), DEFAULT);
    let quantized = facts.weights.value() == Some(&Weights::Nf4);
    facts.adapter = kind.and_then(|kind| match kind.as_str() {
        "lora" if quantized => Some(Some(Adapter::Qlora)),
        "lora" => Some(Some(Adapter::Lora)),
        "lokr" => Some(Some(Adapter::Lokr)),
        _ => None,
    });
    facts.rank = keys.whole("adapter.rank");
    // What modulates the blocks is in them too, unless it is excluded.
    if !keys.has("adapter.exclude_modules") {
        facts.targets = Fact::default_of(vec!["all-linear".into()], DEFAULT);
    }
    let own = keys.text("adapter.dtype").or(keys.text("model.dtype"));
    facts.fp32_adapters = own.map(|name| weights(&name) == Some(Weights::Fp32));
    facts.trained = Fact::follows(Trained::Adapters, "[adapter]");
    facts.base_dtype = facts.weights.clone();
}

/// Sizes and frames, which are in the dataset's own file.
fn data(source: &Source, keys: &Keys, video: bool, facts: &mut Facts) {
    let path = keys.text("dataset");
    let data = path.value().and_then(|path| source.beside.text(path));
    let Some(data) = data.as_deref().and_then(documents::read) else {
        let file = path
            .value()
            .cloned()
            .unwrap_or_else(|| "the dataset's file".into());
        let why = format!("it is in {file}");
        facts.height = Fact::Unknown(why.clone());
        if video {
            facts.ask(Ask::Frames, why);
        }
        return;
    };
    of_file(&data, video, facts);
}

/// A dataset's file without its run.
fn alone(keys: &Keys) -> Option<Facts> {
    let marks = [
        "resolutions",
        "size_buckets",
        "frame_buckets",
        "enable_ar_bucket",
    ];
    if !keys.has("directory") || !marks.iter().any(|key| keys.has(key)) {
        return None;
    }
    let mut facts = Facts::of(PROGRAM.id);
    facts.task = Fact::follows(Task::Diffusion, "diffusion-pipe trains diffusion models");
    of_file(keys, keys.has("frame_buckets"), &mut facts);
    facts.ask(Ask::Model, "the file is of a dataset, for any model");
    Some(facts)
}

/// The largest of the sizes, and the most frames.
fn of_file(data: &Keys, video: bool, facts: &mut Facts) {
    let folders = data.items("directory");
    let mut all: Vec<&Keys> = folders.iter().collect();
    all.push(data);
    let sizes = all
        .iter()
        .flat_map(|keys| ["resolutions", "size_buckets"].map(|path| size(keys, path)));
    let largest = sizes.max_by_key(|size| {
        size.value()
            .map_or(0, |(height, width)| height.saturating_mul(*width))
    });
    let largest = largest.unwrap_or_default();
    facts.height = largest.clone().map(|(height, _)| height);
    facts.width = largest.map(|(_, width)| width);
    if video {
        let frames = all.iter().map(|keys| keys.largest("frame_buckets"));
        let frames = frames.max_by_key(|frames| frames.value().copied());
        facts.frames = frames.unwrap_or_default().or_default(1, DEFAULT);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, check_beside};

    const RUN: &str = "output_dir = '/data/out'
dataset = 'data/mine.toml'
micro_batch_size_per_gpu = 2
pipeline_stages = 1
activation_checkpointing = true
save_every_n_epochs = 2
blocks_to_swap = 10

[model]
type = 'wan'
ckpt_path = '/models/Wan2.1-T2V-1.3B'
dtype = 'bfloat16'
transformer_dtype = 'float8'

[adapter]
type = 'lora'
rank = 8

[optimizer]
type = 'adamw_optimi'
lr = 1e-4
";

    #[test]
    fn sizes_are_asked_where_the_datasets_file_is_not_there() {
        check(
            "run.toml",
            RUN,
            &[
                ("outcome", "question"),
                ("asks", "resolution frames"),
                ("model", "Wan2.1-T2V-1.3B (type wan)"),
                ("weights", "fp8"),
                ("compute", "bf16"),
                ("strategy", "ddp"),
                ("blocks_swapped", "10"),
                ("micro_batch", "2"),
            ],
        );
    }

    #[test]
    fn the_datasets_file_says_sizes_and_frames() {
        let data =
            "resolutions = [[832, 480], 512]\nframe_buckets = [1, 33]\n[[directory]]\npath = 'x'\n";
        check_beside(
            &[("run.toml", RUN), ("data/mine.toml", data)],
            &[
                ("outcome", "estimate"),
                ("height", "480"),
                ("width", "832"),
                ("frames", "33"),
            ],
        );
    }

    #[test]
    fn a_datasets_file_alone_asks_for_its_model() {
        let data = "resolutions = [512]\nframe_buckets = [1, 33]\n[[directory]]\npath = 'x'\n";
        check(
            "d.toml",
            data,
            &[("outcome", "question"), ("height", "512"), ("frames", "33")],
        );
    }

    #[test]
    fn without_an_adapter_all_weights_are_trained_in_the_models_type() {
        let full = RUN.replace("[adapter]\ntype = 'lora'\nrank = 8\n", "");
        let full = full.replace("transformer_dtype = 'float8'\n", "");
        check("r.toml", &full, &[("trained", "all"), ("weights", "bf16")]);
    }
}
