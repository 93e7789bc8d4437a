//! Ultralytics: a run's `args.yaml`, `yolo train key=value`, and `YOLO(…).train(…)`. Defaults are those of its
//! `cfg/default.yaml`.

use headroom_base::document::Document;

use super::calls;
use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::program::{Form, Program, Source};
use crate::words::{
    Checkpointing, Compute, DataParallel, Offload, Strategy, Task, Trained, Weights,
};

pub const PROGRAM: Program = Program {
    id: "ultralytics",
    name: "Ultralytics",
    read,
};

const DEFAULT: &str = "Ultralytics";

/// Keys that hardly another program has.
const MARKS: &[&str] = &[
    "imgsz",
    "close_mosaic",
    "mosaic",
    "lr0",
    "lrf",
    "hsv_h",
    "overlap_mask",
    "mask_ratio",
    "nbs",
    "copy_paste",
    "warmup_bias_lr",
    "single_cls",
    "retina_masks",
    "cos_lr",
];

/// Classes that have `train` (`ultralytics/models/`).
const CLASSES: &[&str] = &[
    "YOLO",
    "YOLOWorld",
    "YOLOE",
    "RTDETR",
    "NAS",
    "FastSAM",
    "YOLOv10",
];

fn read(source: &Source) -> Option<Facts> {
    match &source.form {
        Form::Document(keys) => {
            let marks = MARKS.iter().filter(|key| keys.has(key)).count();
            (marks >= 3 && keys.has("model")).then(|| facts(keys))
        }
        Form::Command { launch, flags } => {
            let program = launch.program.text.rsplit('/').next()?;
            if program == "yolo" || program == "ultralytics" {
                return Some(command(&launch.arguments, flags));
            }
            None
        }
        Form::Python { module, .. } => {
            let train = module.calls.iter().find(|call| {
                calls::is_method(module, call, CLASSES, "train")
                    && module
                        .imports
                        .iter()
                        .any(|name| name.starts_with("ultralytics"))
            })?;
            let mut keys = calls::keys(train);
            if !keys.has("model")
                && let Some(made) = calls::maker(module, train)
                && let Some(model) = made.args.first().or_else(|| calls::named(made, "model"))
            {
                calls::set(&mut keys, "model", model);
            }
            Some(facts(&keys))
        }
    }
}

/// `yolo [task] mode key=value …`
fn command(words: &[headroom_scripts::shell::Word], flags: &Keys) -> Facts {
    let mut keys = flags.clone();
    for word in words.iter().take_while(|word| !word.text.contains('=')) {
        match word.text.as_str() {
            mode @ ("train" | "val" | "predict" | "export" | "track" | "benchmark") => {
                keys.set("mode", mode.into());
            }
            task @ ("detect" | "segment" | "classify" | "pose" | "obb") => {
                keys.set("task", task.into());
            }
            _ => {}
        }
    }
    facts(&keys)
}

/// The package builds YOLOv5 with the head of v8, and fetches weights by that name (`check_yolov5u_filename` in
/// ultralytics/utils/downloads.py).
fn with_new_head(file: &str) -> String {
    let stem = file.split_once('.').map_or(file, |(stem, _)| stem);
    let scale = stem
        .strip_prefix("yolov5")
        .map(|rest| rest.trim_end_matches('6'));
    if matches!(scale, Some("n" | "s" | "m" | "l" | "x")) {
        file.replacen(stem, &format!("{stem}u"), 1)
    } else {
        file.to_string()
    }
}

fn facts(keys: &Keys) -> Facts {
    let mode = keys.text("mode").or_default("train".into(), DEFAULT);
    let mut facts = Facts::of(PROGRAM.id);
    if let Some(mode) = mode.value().filter(|mode| *mode != "train") {
        facts.refused = Some(format!("mode {mode} does not train"));
    }
    let model = keys.text("model");
    let named = model
        .value()
        .map(|name| name.to_ascii_lowercase())
        .unwrap_or_default();
    let task = keys.text("task").value().cloned();
    let task = task.unwrap_or_else(|| {
        let ends = [
            ("-seg", "segment"),
            ("-cls", "classify"),
            ("-pose", "pose"),
            ("-obb", "obb"),
        ];
        let end = ends.iter().find(|(end, _)| named.contains(end));
        end.map_or("detect", |(_, task)| *task).into()
    });
    let kind = match task.as_str() {
        "segment" => Task::Segmentation,
        "classify" => Task::Classification,
        _ => Task::Detection,
    };
    facts.task = Fact::follows(kind, format!("task {task}"));
    facts.model = model.map(|path| {
        let last = path.rsplit(['/', '\\']).next().unwrap_or(&path);
        // A run that goes on from its own weights names no network.
        with_new_head(last)
    });
    if let Some(name) = facts.model.value()
        && matches!(
            name.as_str(),
            "best.pt" | "last.pt" | "weights.pt" | "model.pt"
        )
    {
        facts.model = Fact::Unknown(format!("{name} are the weights of an earlier run"));
    }
    sizes(keys, &mut facts, kind);
    devices(keys, &mut facts);
    let amp = keys.switch("amp").or_default(true, DEFAULT);
    facts.compute = amp.map(|on| {
        if on {
            Compute::Fp16Autocast
        } else {
            Compute::Fp32
        }
    });
    facts.weights = Fact::default_of(Weights::Fp32, DEFAULT);
    facts.adapter = Fact::default_of(None, DEFAULT);
    facts.trained = match keys.largest("freeze") {
        Fact::Unsaid => Fact::default_of(Trained::All, DEFAULT),
        Fact::Known { value: 0, .. } => Fact::read(Trained::All, "freeze"),
        other => other.map(|layers| Trained::Part(format!("all but the first {layers} layers"))),
    };
    facts.offload = Fact::default_of(Offload::None, DEFAULT);
    facts.checkpointing = Fact::default_of(Checkpointing::Off, DEFAULT);
    facts.optimizer = optimizer(keys, &mut facts.notes);
    facts.evaluation = keys.switch("val").or_default(true, DEFAULT);
    facts.compile = match keys.text("compile").value().map(String::as_str) {
        None | Some("false") => Fact::default_of(false, DEFAULT),
        Some(_) => Fact::read(true, "compile"),
    };
    facts.ema = Fact::default_of(true, DEFAULT);
    if keys
        .number("multi_scale")
        .value()
        .is_some_and(|range| *range > 0.0)
        || keys.switch("multi_scale").value() == Some(&true)
    {
        let what = "multi_scale: images are up to half as large again";
        facts.not_modelled.push(what.into());
    }
    facts
}

/// Which of two `auto` means depends on how many steps a run has, so on the images: AdamW up to 10000, else MuSGD, with two buffers for
/// a matrix as AdamW has (`build_optimizer` in ultralytics/engine/trainer.py).
fn optimizer(keys: &Keys, notes: &mut Vec<String>) -> Fact<String> {
    let named = keys.text("optimizer").or_default("auto".into(), DEFAULT);
    if named
        .value()
        .is_some_and(|name| name.eq_ignore_ascii_case("auto"))
    {
        let note = "optimizer auto: AdamW for runs of up to 10000 steps, MuSGD with as many states for longer ones";
        notes.push(note.into());
    }
    named.map(|name| name.to_ascii_lowercase())
}

fn sizes(keys: &Keys, facts: &mut Facts, task: Task) {
    let batch = keys.number("batch").or_default(16.0, DEFAULT);
    let total = batch.and_then(|batch| (*batch >= 1.0).then_some(*batch as u64));
    facts.micro_batch = match total {
        Fact::Unknown(_) => Fact::Unknown("batch is measured on the GPU (AutoBatch)".into()),
        known => known,
    };
    let usual = if task == Task::Classification {
        224
    } else {
        640
    };
    let edge = keys.largest("imgsz").or_default(usual, DEFAULT);
    facts.height = edge.clone();
    facts.width = edge;
    let nominal = keys.whole("nbs").or_default(64, DEFAULT);
    if let (Some(nominal), Some(total)) = (nominal.value(), facts.micro_batch.value()) {
        // To the nearest, halves to even as Python's `round`.
        let steps = (*nominal as f64 / (*total).max(1) as f64)
            .round_ties_even()
            .max(1.0);
        facts.accumulation = Fact::follows(steps as u64, format!("nbs {nominal} over the batch"));
    }
}

/// `device`: one GPU without it; the batch is divided over several.
fn devices(keys: &Keys, facts: &mut Facts) {
    let device = match keys.get("device") {
        None => None,
        Some(Document::List(items)) => Some(items.len() as u64),
        Some(Document::Text(text)) => {
            let lower = text.to_ascii_lowercase();
            if lower == "cpu" || lower == "mps" {
                facts.refused = Some(format!("device is {lower}, so no GPU's memory is used"));
            }
            let inner = lower
                .trim_matches(['[', ']', '(', ')', ' '])
                .replace("cuda:", "");
            Some(
                inner
                    .split(',')
                    .filter(|part| !part.trim().is_empty())
                    .count() as u64,
            )
        }
        Some(_) => Some(1),
    };
    match device {
        Some(count) if count > 1 => {
            facts.gpus = Fact::read(count, "device");
            facts.strategy = Fact::read(Strategy::from(DataParallel::Ddp), "device");
            let share = std::mem::take(&mut facts.micro_batch);
            facts.micro_batch = share.map(|total| (total / count).max(1));
        }
        Some(_) => {
            facts.gpus = Fact::read(1, "device");
            facts.strategy = Fact::read(Strategy::from(DataParallel::None), "device");
        }
        None => {
            facts.gpus = Fact::default_of(1, DEFAULT);
            facts.strategy = Fact::default_of(Strategy::from(DataParallel::None), DEFAULT);
        }
    }
    facts.nodes = Fact::follows(1, "device");
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    const RUN: &str = "task: detect\nmode: train\nmodel: yolo11s.pt\nbatch: 32\nimgsz: 960\ndevice: 0,1\n\
                       amp: true\nlr0: 0.01\nlrf: 0.01\nmosaic: 1.0\nnbs: 64\noptimizer: SGD\nval: true\n";

    #[test]
    fn the_batch_is_divided_over_the_devices() {
        check(
            "args.yaml",
            RUN,
            &[
                ("outcome", "estimate"),
                ("micro_batch", "16"),
                ("gpus", "2"),
                ("strategy", "ddp"),
                ("height", "960"),
                ("compute", "fp16 autocast"),
                ("task", "detection"),
                ("optimizer", "sgd"),
                ("accumulation", "2"),
            ],
        );
    }

    #[test]
    fn a_cpu_has_no_gpus_memory_and_a_measured_batch_is_asked() {
        check(
            "args.yaml",
            &RUN.replace("0,1", "cpu"),
            &[("outcome", "refuse")],
        );
        check(
            "args.yaml",
            &RUN.replace("batch: 32", "batch: -1"),
            &[("asks", "batch")],
        );
        check(
            "args.yaml",
            &RUN.replace("mode: train", "mode: val"),
            &[("outcome", "refuse")],
        );
    }
}
