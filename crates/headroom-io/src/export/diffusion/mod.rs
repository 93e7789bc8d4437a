//! What the targets of image and video diffusion share: what of a run their trainers can express, and their words for it.

mod launch;
#[cfg(test)]
mod tests;

pub(super) use launch::{Checkout, alone, launch, steps};

use headroom_catalog::{ModelCategory, ModelEntry};
use headroom_core::estimate;
use headroom_reader::{draft, optimizers};
use headroom_scenario::{
    Attention, Case, Checkpointing, Lora, Parallelism, Precision, Problem, Quantization, Scenario,
    settings,
};

use super::common::processes;
use super::refuse::{self, Layout};

/// What a trainer can express besides batch, accumulation, learning rate, rank, clipping and what is not its own business.
pub(super) struct Trainer {
    /// Its name to the reader of its files, which knows the layers that it adapts.
    pub reader: &'static str,
    /// Settings that its files have, or that it always has as the scenario does.
    pub settings: &'static [&'static str],
    /// Precisions with adapters, and without.
    pub adapted: &'static [Precision],
    pub full: &'static [Precision],
    pub quantizations: &'static [Quantization],
    /// In the trainer's words.
    pub optimizers: &'static [&'static str],
    /// Whether its AdamW takes `fused`.
    pub fused: bool,
    /// Whether adapters go where the scenario wants them.
    pub any_layers: bool,
    pub strategies: &'static [Parallelism],
}

/// A run that a trainer can express.
pub(super) struct Run {
    pub entry: &'static ModelEntry,
    /// Pixels.
    pub height: u64,
    pub width: u64,
    pub frames: u64,
    /// In the trainer's word.
    pub optimizer: &'static str,
    pub fused: bool,
    pub checkpointing: bool,
}

/// Settings that are no trainer's business, that are in every trainer's files, or that their launch script sets.
const ANY: &[&str] = &[
    "data.micro_batch",
    "data.sequence",
    "data.height",
    "data.width",
    "data.frames",
    "data.mean",
    "data.p95",
    "data.max",
    "data.samples",
    "data.global_batch",
    "model.id",
    "model.network",
    "training.accumulation",
    "training.checkpointing",
    "training.clip",
    "training.dropout",
    "training.learning_rate",
    "training.lora",
    "training.lora.rank",
    "training.lora.targets",
    "training.optimizer",
    "training.precision",
    "training.quantization",
    "training.attention",
    "runtime.expandable_segments",
    "runtime.max_split_size_mb",
    "runtime.garbage_collection_threshold",
    "runtime.roundup_power2_divisions",
    "runtime.outside_mib",
    "runtime.kept_mib",
    "runtime.dataset_gib",
    "runtime.max_steps",
    "runtime.prefetch",
    "runtime.eval_every",
    "runtime.eval_interval",
    "runtime.eval_samples",
    "runtime.eval_limit",
    "parallel.strategy",
    "parallel.offload",
];

/// The run, or what the trainer cannot express of it; `more` are problems of its own.
pub(super) fn run(
    scenario: &Scenario,
    trainer: &Trainer,
    more: Vec<Problem>,
) -> Result<Run, Vec<Problem>> {
    let training = &scenario.training;
    let case = Case::of(scenario);
    let listed = case.listed_model();
    let entry = listed.filter(|entry| entry.category == ModelCategory::Diffusion);
    let mut problems = more;
    if entry.is_none() && !problems.iter().any(|problem| problem.field() == "model.id") {
        let expected = "a diffusion network of the catalogue, for this target";
        problems.push(Problem::new("model.id", &scenario.model.id, expected));
    }
    problems.extend(others(scenario, trainer));
    let known = match training.lora {
        Some(_) => trainer.adapted,
        None => trainer.full,
    };
    if known.is_empty() {
        let expected = "on for this target, which trains adapters of this model";
        problems.push(Problem::new("training.lora", "off", expected));
    } else {
        problems.extend(refuse::precision_among(scenario, known));
    }
    if !trainer.quantizations.contains(&training.quantization) {
        let ids = trainer.quantizations.iter().map(|known| known.id());
        let expected = format!("{} for this target", ids.collect::<Vec<_>>().join(" or "));
        let given = training.quantization.id();
        problems.push(Problem::new("training.quantization", given, expected));
    }
    problems.extend(refuse::plain_checkpointing(scenario));
    if training.attention != Attention::Sdpa {
        let given = training.attention.id();
        problems.push(Problem::new(
            "training.attention",
            given,
            "sdpa for this target",
        ));
    }
    let optimizer = optimizer(scenario, trainer).map_err(|problem| problems.push(problem));
    // Of a model that it does not have, nothing is known of its layers.
    let known = entry.filter(|_| !problems.iter().any(|problem| problem.field() == "model.id"));
    problems.extend(known.and_then(|entry| layers(&case, entry, trainer)));
    let layout = refuse::layout(scenario, trainer.strategies);
    let layout = layout.map_err(|problem| problems.push(problem));
    problems.extend(refuse::details(scenario, &[]));
    problems.extend(refuse::nvidia(scenario));
    let size = settings::resolution(scenario);
    match (entry, optimizer, layout, size) {
        (Some(entry), Ok((optimizer, fused)), Ok(_), Some((height, width)))
            if problems.is_empty() =>
        {
            Ok(Run {
                entry,
                height,
                width,
                frames: settings::frames(scenario).unwrap_or(1),
                optimizer,
                fused,
                checkpointing: training.checkpointing != Checkpointing::None,
            })
        }
        _ => Err(problems),
    }
}

/// Every other setting is at its default, the only value that the trainer supports.
fn others(scenario: &Scenario, trainer: &Trainer) -> Vec<Problem> {
    let several = processes(scenario) > 1;
    let open = |path: &str| {
        let section = path.split('.').next().unwrap_or_default();
        // How strategies work is asked where there is one.
        let layout =
            section == "parallel" && !["tp", "pp", "cp", "ep"].iter().any(|it| path.ends_with(it));
        matches!(section, "hardware" | "stack")
            || layout
            || ANY.contains(&path)
            || trainer.settings.contains(&path)
    };
    let paths: Vec<&str> = settings::all()
        .iter()
        .map(|setting| setting.path)
        .filter(|path| !open(path))
        .collect();
    let mut problems = refuse::fixed(scenario, &[&paths]);
    if several {
        problems.extend(refuse::buckets(scenario, Layout::Ddp, refuse::BUCKETS));
    }
    problems
}

/// The trainer's word for the optimizer, and whether it is told to be fused.
fn optimizer(scenario: &Scenario, trainer: &Trainer) -> Result<(&'static str, bool), Problem> {
    let wanted = scenario.training.optimizer.id();
    let named = |id: &str| {
        let mut names = trainer.optimizers.iter();
        names.find(|name| optimizers::setting(name) == Some(id))
    };
    if let Some(name) = named(wanted) {
        return Ok((name, false));
    }
    if let Some(name) = named("adamw").filter(|_| trainer.fused && wanted == "adamw-fused") {
        return Ok((name, true));
    }
    let mut ids: Vec<&str> = Vec::new();
    for id in trainer
        .optimizers
        .iter()
        .filter_map(|name| optimizers::setting(name))
    {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    if trainer.fused {
        ids.push("adamw-fused");
    }
    let expected = format!("{} for this target", ids.join(" or "));
    Err(Problem::new("training.optimizer", wanted, expected))
}

/// A problem if adapters are not where the trainer puts them.
fn layers(case: &Case, entry: &ModelEntry, trainer: &Trainer) -> Option<Problem> {
    let lora = case.scenario.training.lora.as_ref()?;
    let given = lora.targets.join(",");
    let plain = |name: &str| {
        name.chars()
            .all(|c| c.is_ascii_alphanumeric() || "_.".contains(c))
    };
    if trainer.any_layers {
        let odd = lora.targets.iter().any(|name| !plain(name));
        let expected = "names of layers";
        return odd.then(|| Problem::new("training.lora.targets", given, expected));
    }
    let own: Vec<&str> = draft::adapted_layers(trainer.reader, entry)
        .split(',')
        .collect();
    same_layers(case, lora, &own).err()
}

/// Whether adapters are on the same layers of a model as those of these names; else the problem, with the names that count.
pub(super) fn same_layers(case: &Case, lora: &Lora, own: &[&str]) -> Result<(), Problem> {
    let given: Vec<&str> = lora.targets.iter().map(String::as_str).collect();
    let equal = |a: &[&str], b: &[&str]| a.iter().all(|name| b.contains(name));
    if equal(&given, own) && equal(own, &given) {
        return Ok(());
    }
    let has = |name: &&&str| {
        let mut scenario = case.scenario.clone();
        if let Some(lora) = &mut scenario.training.lora {
            lora.targets = vec![(**name).to_string()];
        }
        estimate::unmatched(&Case::of(&scenario)).is_ok_and(|missing| missing.is_empty())
    };
    let known: Vec<&str> = own.iter().filter(has).copied().collect();
    if equal(&given, own) && equal(&known, &given) {
        return Ok(());
    }
    let expected = format!("{} for this target", known.join(","));
    Err(Problem::new(
        "training.lora.targets",
        given.join(","),
        expected,
    ))
}

/// A problem where a trainer picks layers by the beginning of a part of their path, and others begin so too.
pub(super) fn substrings(scenario: &Scenario) -> Option<Problem> {
    let lora = scenario.training.lora.as_ref()?;
    let case = Case::of(scenario);
    let diffuses = case.model?.category == ModelCategory::Diffusion;
    let layers = diffuses.then(|| estimate::linear_layers(&case).ok())??;
    let is_other = |layer: &&String| {
        let path = format!(".{layer}");
        let mut names = lora.targets.iter();
        let named = lora.targets.iter().any(|name| Lora::names(name, layer));
        !named && names.any(|name| path.contains(&format!(".{name}")))
    };
    let other = layers.iter().find(is_other)?;
    let expected = format!("a list with {other} for this target, which takes names for beginnings");
    let given = lora.targets.join(",");
    Some(Problem::new("training.lora.targets", given, expected))
}

/// A problem if a sample is no square, where a trainer has one side for both or an area.
pub(super) fn squares(scenario: &Scenario) -> Option<Problem> {
    let (height, width) = settings::resolution(scenario)?;
    let expected = format!("{width}, as data.width, for this target");
    (height != width).then(|| Problem::new("data.height", height.to_string(), expected))
}

/// The short name of the type that is computed in under autocast.
pub(super) fn mixed(scenario: &Scenario) -> &'static str {
    match scenario.training.precision {
        Precision::AmpBf16 | Precision::AmpBf16OnBf16 | Precision::Bf16 => "bf16",
        Precision::AmpFp16 | Precision::AmpFp16OnFp16 | Precision::Fp16 => "fp16",
        Precision::Fp32 | Precision::Fp64 => "no",
    }
}

/// The rank of the adapters, and `alpha` beside it: as large, so that the scale is one.
pub(super) fn rank(scenario: &Scenario) -> Option<u64> {
    scenario.training.lora.as_ref().map(|lora| lora.rank)
}

/// A model's name on the hub, without the part of it that is meant.
pub(super) fn repository(entry: &ModelEntry) -> &'static str {
    entry.hf_id.split(' ').next().unwrap_or_default()
}
