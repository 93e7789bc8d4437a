//! How lists are ordered and grouped: by what people own, rent and start with.

use crate::text;
use headroom_catalog::{self as catalog, Class, Gpu, ModelCategory};
use headroom_io::export::Target;
use headroom_scenario::{Case, Optimizer, Scenario, systems};

/// What people own or rent most, the most common first.
const COMMON_GPUS: &[&str] = &[
    "rtx-4090-24gb",
    "rtx-3090-24gb",
    "rtx-5090-32gb",
    "h100-sxm5-80gb",
    "a100-sxm4-80gb",
    "h200-sxm-141gb",
    "b200-180gb",
    "l40s-48gb",
    "a10g-24gb",
    "l4-24gb",
    "t4-16gb",
    "rtx-a6000-48gb",
    "rtx-6000-ada-48gb",
    "rtx-pro-6000-blackwell-96gb",
    "a100-sxm4-40gb",
    "v100-sxm2-32gb",
    "h100-pcie-80gb",
    "a100-pcie-80gb",
    "a100-pcie-40gb",
    "a40-48gb",
    "mi300x-192gb",
    "rtx-4080-super-16gb",
    "rtx-4070-ti-super-16gb",
    "rtx-4060-ti-16gb",
    "rtx-5070-ti-16gb",
    "rtx-5080-16gb",
    "rtx-3060-12gb",
    "rtx-4070-12gb",
    "rtx-3080-10gb",
    "rtx-2080-ti-11gb",
];

/// All GPUs in the order of lists: the common ones, then each class.
pub fn gpus() -> Vec<&'static Gpu> {
    let mut all: Vec<&Gpu> = COMMON_GPUS
        .iter()
        .filter_map(|id| catalog::gpu(id))
        .collect();
    for class in [
        Class::Consumer,
        Class::Datacenter,
        Class::Workstation,
        Class::Laptop,
        Class::Unified,
    ] {
        let others = catalog::gpus().iter().filter(|gpu| gpu.class == class);
        all.extend(others.filter(|gpu| !COMMON_GPUS.contains(&gpu.id)));
    }
    all
}

/// The heading of a GPU's group.
pub fn gpu_group(gpu: &Gpu) -> &'static str {
    if COMMON_GPUS.contains(&gpu.id) {
        return text::COMMON_GPUS;
    }
    match gpu.class {
        Class::Consumer => text::CONSUMER,
        Class::Datacenter => text::DATACENTER,
        Class::Workstation => text::WORKSTATION,
        Class::Laptop => text::LAPTOP,
        Class::Unified => text::UNIFIED,
    }
}

/// The gigabytes that a typed text names (`12 GB`, `80gb`), and the text without them.
pub fn memory_in(typed: &str) -> Option<(u32, String)> {
    let lower = typed.to_ascii_lowercase();
    let unit = lower.find("gib").or_else(|| lower.find("gb"))?;
    let before = lower.get(..unit)?.trim_end();
    let digits = before.len() - before.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (rest, number) = before.split_at(before.len() - digits);
    let after = lower.get(unit..)?.trim_start_matches(['g', 'i', 'b']);
    Some((
        number.parse().ok()?,
        format!("{rest} {after}").trim().to_string(),
    ))
}

/// The heading of a preset's group, by its scenario.
pub fn preset_group(scenario: &Scenario) -> &'static str {
    if systems::of(scenario).is_some() {
        return text::RESEARCH;
    }
    if let Some(group) = text::objective_group(scenario.training.task.objective) {
        return group;
    }
    let model = Case::of(scenario).listed_model();
    match model.map(|model| model.category) {
        Some(ModelCategory::Systems) => text::RESEARCH,
        Some(
            ModelCategory::Decoders | ModelCategory::EncoderDecoders | ModelCategory::StateSpace,
        ) => text::LANGUAGE,
        Some(ModelCategory::Encoders | ModelCategory::TextEncoders) => text::ENCODERS,
        Some(ModelCategory::VisionLanguage) => text::VISION_LANGUAGE,
        Some(ModelCategory::Diffusion | ModelCategory::Vision) => text::IMAGES,
        Some(ModelCategory::Speech) => text::SPEECH,
        Some(ModelCategory::Graphs | ModelCategory::Proteins | ModelCategory::Series) | None => {
            text::SCIENCE
        }
    }
}

/// The heading of a program's group.
pub fn program_group(target: &Target) -> &'static str {
    match target.id {
        "plain" | "hf" | "accelerate" | "deepspeed" | "lightning" => text::OWN_LOOP,
        "trl" | "axolotl" | "llama-factory" | "swift" | "unsloth" | "torchtune" => text::TUNING,
        "verl" => text::REINFORCEMENT,
        "kohya" | "diffusers" | "musubi" | "ai-toolkit" | "simpletuner" | "diffusion-pipe"
        | "onetrainer" => text::DIFFUSION,
        "torchtitan" | "megatron" => text::PRETRAINING,
        "dreams" | "gsa" | "peptrm" | "prs-med" | "rna-3e-ffi" => text::RESEARCH,
        _ => text::STARTERS,
    }
}

/// Whether an optimizer is among the usual ones.
pub fn is_usual_optimizer(id: &str) -> bool {
    const USUAL: [Optimizer; 8] = [
        Optimizer::AdamWFused,
        Optimizer::AdamW,
        Optimizer::AdamW8bit,
        Optimizer::PagedAdamW8bit,
        Optimizer::Adafactor,
        Optimizer::Sgd,
        Optimizer::Lion,
        Optimizer::Muon,
    ];
    USUAL.iter().any(|optimizer| optimizer.id() == id)
}

/// Items in groups; a group stands where its first item stood.
pub fn grouped<T>(
    items: impl IntoIterator<Item = T>,
    group: impl Fn(&T) -> &'static str,
) -> Vec<(&'static str, Vec<T>)> {
    let mut groups: Vec<(&'static str, Vec<T>)> = Vec::new();
    for item in items {
        let name = group(&item);
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, all)) => all.push(item),
            None => groups.push((name, vec![item])),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_io::export;
    use headroom_scenario::presets;

    #[test]
    fn every_gpu_is_listed_once_and_common_ones_first() {
        let all = gpus();
        assert_eq!(all.len(), catalog::gpus().len());
        assert_eq!(all[0].id, COMMON_GPUS[0]);
        for id in COMMON_GPUS {
            assert!(catalog::gpu(id).is_some(), "{id}");
        }
    }

    #[test]
    fn memory_is_read_from_what_is_typed() {
        let check = |typed: &str, expected: Option<(u32, &str)>| {
            let expected = expected.map(|(gb, rest)| (gb, rest.to_string()));
            assert_eq!(memory_in(typed), expected, "{typed}");
        };
        check("12 GB", Some((12, "")));
        check("A100 40GB", Some((40, "a100")));
        check("80gb h100", Some((80, "h100")));
        check("h100", None);
        check("gb200", None);
    }

    #[test]
    fn every_preset_and_program_has_a_group() {
        headroom_systems::install();
        let scenarios = presets::all().iter().map(presets::Preset::scenario);
        let groups = grouped(scenarios, preset_group);
        assert!(groups.len() > 5);
        let research = groups.iter().find(|(name, _)| *name == text::RESEARCH);
        let research = research.map_or(0, |(_, all)| all.len());
        assert!(research >= 5, "{research}");
        let programs = grouped(export::targets(), |target| program_group(target));
        assert!(programs.iter().any(|(name, _)| *name == text::STARTERS));
    }

    #[test]
    fn usual_optimizers_are_choices() {
        assert!(is_usual_optimizer("adamw") && !is_usual_optimizer("nonsense"));
    }
}
