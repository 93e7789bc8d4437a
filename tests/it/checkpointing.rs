//! A checkpointing mode never computes again what another mode's name says it keeps: laws over every preset and every model
//! of the catalogue.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use headroom_catalog as catalog;
use headroom_core::estimate::estimate;
use headroom_scenario::{Scenario, presets, settings};
use headroom_testing::slow;

/// Architectures without a block that could be checkpointed; Ultralytics' trainer checkpoints nothing.
const NO_BLOCKS: [&str; 15] = [
    "gat",
    "gcn",
    "lstm",
    "mpnet",
    "vgg",
    "yolo11",
    "yolo11_cls",
    "yolo11_seg",
    "yolo26",
    "yolov5",
    "yolov5_seg",
    "yolov5u",
    "yolov8",
    "yolov8_cls",
    "yolov8_seg",
];

/// Architectures whose blocks hold nothing that a selective policy names: every projection has a bias (`addmm`, where the
/// policies list `mm`), and attention is written out operation by operation.
const NOTHING_TO_KEEP: [&str; 11] = [
    "bloom",
    "blip",
    "deberta",
    "gpt_oss",
    "layoutlmv3",
    "longformer",
    "mobilevit",
    "peptrm",
    "speecht5",
    "tinysam",
    "xlnet",
];

/// Every preset and every model, made smaller where that leaves its blocks as they are.
fn cases() -> Vec<(String, Scenario)> {
    headroom_systems::install();
    let models = catalog::models().iter().map(Scenario::of_model);
    let presets = presets::all().iter().map(presets::Preset::scenario);
    let mut all = Vec::new();
    for mut scenario in presets.chain(models) {
        let entry = catalog::model(&scenario.model.id).unwrap();
        for (name, most) in [("layers", 3), ("vocab", 8_000)] {
            if entry.size(name).is_some_and(|size| size > most) {
                scenario.model.dims.insert(name.into(), most);
            }
        }
        scenario.data.micro_batch = 1;
        scenario.data.sequence = scenario.data.sequence.min(64);
        all.push((entry.arch.to_string(), scenario));
    }
    all
}

/// The arithmetic of a step; `None` where the scenario is refused.
fn flops(scenario: &Scenario, mode: &str) -> Option<f64> {
    let mut scenario = scenario.clone();
    settings::set(&mut scenario, "ckpt", mode).unwrap();
    if !scenario.check().is_empty() {
        return None;
    }
    Some(estimate(&scenario).ok()?.flops.get())
}

#[test]
fn modes_compute_again_only_what_they_do_not_keep() {
    let mut broken = Vec::new();
    let (mut compared, mut strictly) = (0, 0);
    let every = if slow() { 1 } else { 5 };
    for (arch, scenario) in cases().into_iter().step_by(every) {
        let modes = ["none", "offload", "keep-matmuls", "keep-half", "layers"];
        let all = modes.map(|mode| flops(&scenario, mode));
        let [
            Some(none),
            Some(offload),
            Some(matmuls),
            Some(half),
            Some(layers),
        ] = all
        else {
            continue;
        };
        let listed = |list: &[&str]| list.contains(&arch.as_str());
        let keeps = !listed(&NO_BLOCKS) && !listed(&NOTHING_TO_KEEP);
        let laws = [
            (
                "offload computes nothing again",
                none.to_bits() == offload.to_bits(),
            ),
            (
                "each keeps more than the next",
                none <= matmuls && matmuls <= half && half <= layers,
            ),
            (
                "layers are computed again",
                (none < layers) != listed(&NO_BLOCKS),
            ),
            ("products are kept", (matmuls < layers) == keeps),
        ];
        for (law, _) in laws.iter().filter(|(_, holds)| !holds) {
            broken.push(format!("{} ({arch}): {law}: {all:?}", scenario.model.id));
        }
        compared += 1;
        strictly += usize::from(keeps);
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    let least = |all: usize| if every == 1 { all } else { all / (every + 1) };
    assert!(compared >= least(330), "{compared}");
    assert!(strictly >= least(310), "{strictly}");
}
