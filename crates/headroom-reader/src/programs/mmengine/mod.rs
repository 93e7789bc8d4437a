//! MMEngine's configurations: MMPretrain, MMDetection, MMSegmentation. Defaults are those of `mmengine/runner/runner.py`.

pub mod config;
mod segmenter;
mod shipped;

use headroom_scripts::python::evaluate;

use self::config::Config;
use self::shipped::Said;
use super::launched;
use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::program::{Form, Program, Source};
use crate::words::{
    Checkpointing, Compute, DataParallel, Offload, Strategy, Task, Trained, Weights,
};

pub const PROGRAM: Program = Program {
    id: "mmengine",
    name: "MMEngine",
    read,
};

const DEFAULT: &str = "MMEngine";

fn read(source: &Source) -> Option<Facts> {
    match &source.form {
        Form::Python { module, .. } => {
            let config = Config::of(module, source.text, source.beside);
            let own = config.keys.has("train_dataloader") || config.keys.has("optim_wrapper");
            let chained = !config::bases(module, source.text).is_empty();
            let scripted = module
                .calls
                .iter()
                .any(|call| call.path.ends_with("Trainer"));
            if !chained && (!own || !config.keys.has("model") || scripted) {
                return None;
            }
            if tests_only(&config) {
                return Some(Facts::refuse(
                    "the configuration tests a model, and trains none",
                ));
            }
            Some(facts(&config, source.name, &Keys::default()))
        }
        Form::Command { launch, flags } => {
            let words: Vec<&str> = launch
                .arguments
                .iter()
                .map(|word| word.text.as_str())
                .collect();
            let script = launch.program.text.rsplit('/').next()?;
            let file = match script {
                // `tools/train.py CONFIG`, `tools/dist_train.sh CONFIG GPUS`, `mim train mmdet CONFIG`.
                "train.py" | "dist_train.sh" | "slurm_train.sh" | "mim" => {
                    words.iter().find(|word| super::calls::is_python(word))?
                }
                _ => return None,
            };
            let config = match source.beside.text(file) {
                Some(text) => {
                    let module = evaluate(&text, &[], source.beside);
                    Config::of(&module, &text, source.beside)
                }
                None if shipped::of_file(file.rsplit('/').next()?).batch.is_some() => Config {
                    keys: Keys::default(),
                    missing: vec![(*file).to_string()],
                },
                None => return None,
            };
            let mut facts = facts(&config, file, flags);
            if script == "dist_train.sh" {
                let count = words.iter().rev().find_map(|word| word.parse().ok());
                facts.gpus = count.map_or(Fact::Unsaid, |count| Fact::read(count, "dist_train.sh"));
            } else {
                launched::counts(launch, &mut facts);
            }
            Some(facts)
        }
        Form::Document(_) => None,
    }
}

/// Nothing says how to train: neither the file nor a base that may.
fn tests_only(config: &Config) -> bool {
    let trains = ["train_dataloader", "optim_wrapper", "train_cfg"];
    let tests = ["test_dataloader", "test_cfg", "test_evaluator"];
    let has = |keys: &[&str]| keys.iter().any(|key| config.keys.get(key).is_some());
    let open = config
        .missing
        .iter()
        .any(|base| !base.contains("default_runtime") && !base.contains("/models/"));
    has(&tests) && !has(&trains) && !open
}

fn facts(config: &Config, file: &str, flags: &Keys) -> Facts {
    let keys = &config.keys;
    let mut said: Vec<Said> = config
        .missing
        .iter()
        .map(|base| shipped::said(base))
        .collect();
    said.push(shipped::of_file(
        file.rsplit(['/', '\\'])
            .next()
            .unwrap_or(file)
            .rsplit("__")
            .next()
            .unwrap_or(file),
    ));
    let mut facts = Facts::of(PROGRAM.id);
    let task = task(keys, config);
    facts.task = Fact::follows(task, "the configuration's model");
    facts.model = model(keys, &said);
    if task == Task::Segmentation {
        facts.composed = segmenter::network(keys, &said);
    }
    facts.micro_batch = keys.whole("train_dataloader.batch_size");
    facts.micro_batch = std::mem::take(&mut facts.micro_batch).or(first(&said, |said| said.batch));
    facts.accumulation = keys
        .whole("optim_wrapper.accumulative_counts")
        .or_default(1, DEFAULT);
    let size = size(keys).or(first(&said, |said| said.size));
    facts.height = size.clone().map(|(height, _)| height);
    facts.width = size.map(|(_, width)| width);
    facts.strategy = Fact::default_of(Strategy::from(DataParallel::Ddp), "MMEngine's launcher");
    facts.offload = Fact::default_of(Offload::None, DEFAULT);
    precision(keys, flags, &mut facts);
    facts.adapter = Fact::default_of(None, DEFAULT);
    let frozen = keys
        .whole("model.backbone.frozen_stages")
        .value()
        .copied()
        .unwrap_or_default();
    facts.trained = if frozen > 0 {
        let words = format!("all but the backbone's stem and first {frozen} stages");
        Fact::read(Trained::Part(words), "model.backbone.frozen_stages")
    } else {
        Fact::default_of(Trained::All, DEFAULT)
    };
    let optimizer = keys.text("optim_wrapper.optimizer.type").map(|name| {
        name.rsplit('.')
            .next()
            .unwrap_or(&name)
            .to_ascii_lowercase()
    });
    facts.optimizer = optimizer.or(first(&said, |said| said.optimizer.map(String::from)));
    facts.checkpointing = match keys.switch("model.backbone.with_cp").value() {
        Some(true) => Fact::read(Checkpointing::On, "model.backbone.with_cp"),
        _ => Fact::default_of(Checkpointing::Off, DEFAULT),
    };
    let none = ["val_cfg", "val_dataloader"]
        .iter()
        .any(|key| keys.peek(key) == Some(&headroom_base::document::Document::Null));
    facts.evaluation = Fact::default_of(!none, DEFAULT);
    let hooks = keys.items("custom_hooks");
    let averaged = |hook: &Keys| {
        hook.text("type")
            .value()
            .is_some_and(|kind| kind.ends_with("EMAHook"))
    };
    if hooks.iter().any(averaged) {
        facts
            .not_modelled
            .push("EMAHook: a moving average of all weights".into());
    }
    if facts.height.is_unsaid() {
        facts.ask(
            crate::facts::Ask::Resolution,
            "no base that is known says the images' size",
        );
    }
    facts
}

fn first<T: std::fmt::Debug>(said: &[Said], of: impl Fn(&Said) -> Option<T>) -> Fact<T> {
    let found = said.iter().find_map(of);
    found.map_or(Fact::Unsaid, |value| {
        Fact::follows(value, "the name of the base or file")
    })
}

fn task(keys: &Keys, config: &Config) -> Task {
    let kind = keys.text("model.type");
    let kind = kind
        .value()
        .map(|kind| kind.rsplit('.').next().unwrap_or(kind).to_string());
    let kind = kind.unwrap_or_default();
    let bases = config.missing.join(" ");
    let scope = keys
        .text("default_scope")
        .value()
        .cloned()
        .unwrap_or_default();
    let distills = ["BYOL", "SimSiam", "BarlowTwins", "DINO"];
    let contrasts = ["MoCo", "SimCLR", "SwAV", "DenseCL", "MoCoV3"];
    if kind == "EncoderDecoder" || kind == "CascadeEncoderDecoder" || scope == "mmseg" {
        Task::Segmentation
    } else if kind == "ImageClassifier" || scope == "mmpretrain" || bases.contains("imagenet") {
        Task::Classification
    } else if distills.contains(&kind.as_str()) {
        Task::SelfDistillation
    } else if contrasts.contains(&kind.as_str()) {
        Task::Contrastive
    } else if kind.contains("CNN")
        || kind.contains("DETR")
        || kind.contains("RetinaNet")
        || scope == "mmdet"
        || bases.contains("coco_detection")
        || bases.contains("coco_instance")
    {
        Task::Detection
    } else if ["cityscapes", "ade20k", "pascal"]
        .iter()
        .any(|data| bases.contains(data))
    {
        Task::Segmentation
    } else {
        Task::Classification
    }
}

/// The network, by its backbone where the file describes one, else by the bases' names.
fn model(keys: &Keys, said: &[Said]) -> Fact<String> {
    let backbone = keys.text("model.backbone.type");
    let depth = keys.whole("model.backbone.depth").value().copied();
    let arch = keys.text("model.backbone.arch").value().cloned();
    let own = backbone.map(|kind| {
        let kind = kind.rsplit('.').next().unwrap_or(&kind).to_string();
        match (depth, &arch) {
            (Some(depth), _) if kind == "ResNet" => format!("ResNet-{depth}"),
            (Some(depth), _) => format!("{kind}-{depth}"),
            (None, Some(arch)) => format!("{kind}-{arch}"),
            (None, None) => kind,
        }
    });
    let kind = keys
        .text("model.type")
        .value()
        .map(|kind| kind.rsplit('.').next().unwrap_or(kind).to_string());
    let own = match kind {
        Some(kind) if kind != "ImageClassifier" => {
            own.map(|backbone| format!("{kind} on {backbone}"))
        }
        _ => own,
    };
    let named = first(said, |said| said.model.clone());
    // The base's network at another depth.
    let named = match depth {
        Some(depth) if own.is_unsaid() => named.map(|name| {
            let end = name.trim_end_matches(|c: char| c.is_ascii_digit());
            if end.len() < name.len() {
                format!("{end}{depth}")
            } else {
                name
            }
        }),
        _ => named,
    };
    own.or(named)
}

/// The size that the last of the steps of the data's pipeline leaves.
fn size(keys: &Keys) -> Fact<(u64, u64)> {
    let mut found = Fact::Unsaid;
    let steps = keys.items("train_dataloader.dataset.pipeline");
    let steps = if steps.is_empty() {
        keys.items("train_pipeline")
    } else {
        steps
    };
    for step in &steps {
        let kind = step.text("type");
        let Some(kind) = kind.value() else { continue };
        let kind = kind.rsplit('.').next().unwrap_or(kind);
        let key = match kind {
            "RandomResizedCrop" | "Resize" | "ResizeEdge" => "scale",
            "RandomCrop" | "CenterCrop" | "EfficientNetRandomCrop" | "EfficientNetCenterCrop" => {
                "crop_size"
            }
            _ => continue,
        };
        let own = super::diffusion::one_size(step, key);
        if own.is_known() {
            found = own.map(|(a, b)| (a.min(b), a.max(b)));
        }
    }
    found
}

fn precision(keys: &Keys, flags: &Keys, facts: &mut Facts) {
    let kind = keys.text("optim_wrapper.type");
    let amp = kind
        .value()
        .is_some_and(|kind| kind.ends_with("AmpOptimWrapper"))
        || flags.switch("amp").value() == Some(&true);
    facts.compute = if amp {
        let dtype = keys.text("optim_wrapper.dtype");
        match dtype.value().map(String::as_str) {
            Some("bfloat16") => Fact::read(Compute::Bf16Autocast, "optim_wrapper.dtype"),
            _ => Fact::read(Compute::Fp16Autocast, "AmpOptimWrapper"),
        }
    } else {
        Fact::default_of(Compute::Fp32, DEFAULT)
    };
    facts.weights = Fact::default_of(Weights::Fp32, DEFAULT);
}
