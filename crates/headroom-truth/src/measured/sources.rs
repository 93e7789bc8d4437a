//! What the scripts and lock files of each source set beyond its records.

use super::{Record, detection, diffusion, segmentation, torchtune};
use headroom_core::estimate::software;
use headroom_core::network::Libraries;
use headroom_scenario::Stack;

/// The versions that a record ran with.
pub(super) fn stack(record: &Record) -> Stack {
    let (framework, file) = (&record.framework, &record.file);
    let mut stack = Stack::default();
    // "torch 2.4.1", "transformers 4.48.1".
    for (name, place) in [
        ("torch ", &mut stack.torch),
        ("transformers ", &mut stack.transformers),
        ("bnb ", &mut stack.bitsandbytes),
        ("peft ", &mut stack.peft),
    ] {
        if let Some(version) = after(framework, name) {
            *place = version;
        }
    }
    if &*record.category == "vision_video" {
        // mmaction2's model zoo of 2020 and 2021.
        stack.torch = (1, 10);
    } else if segmentation::is_record(record) || detection::is_record(record) {
        // The model zoos of MMSegmentation, MMDetection and detectron2, 2019 to 2021.
        stack.torch = (1, 6);
    } else if framework.contains("may 2024") {
        // The newest release at the time.
        stack.torch = (2, 3);
    } else if framework.contains("litgpt 2024") {
        // LitGPT's pyproject.toml of 2024: bitsandbytes 0.42.0, torch 2.2 or newer.
        stack.torch = (2, 3);
        stack.bitsandbytes = (0, 42);
    } else if framework.contains("2022") {
        // transformers' text of January 2022; torch 1.10 was the newest.
        stack.torch = (1, 10);
        stack.transformers = (4, 36);
    } else if &*record.source_repo_or_url == "qwenlm/qwen" {
        // Its requirements.txt: transformers==4.32.0.
        stack.transformers = (4, 32);
    } else if framework.contains("1.13-2.0") {
        // fast-DiT's environment.yml requires 1.13 or newer; 2.0 was the newest release at the time.
        stack.torch = (2, 0);
    } else if framework.contains("nightly") {
        // Nightly builds of June 2023 step as torch 2.0 does: 2.1 came in October.
        stack.torch = (2, 0);
    } else if file.contains_any(&["a100_80gb_granite", "a100_80gb_liger"]) {
        // fms-acceleration, scripts/benchmarks/refs/requirements_granite.txt and requirements_liger.txt; its copy of
        // Liger's fused linear loss (plugins/fused-ops-and-kernels) is of a release before 0.5.
        stack.torch = (2, 4);
        stack.transformers = (4, 45);
        stack.bitsandbytes = (0, 43);
        stack.peft = (0, 13);
        stack.liger = (0, 4);
    }
    stack
}

/// How the libraries behave that a record ran with.
pub(super) fn libraries(record: &Record) -> Libraries {
    let mut libraries = Libraries {
        // By the cards of its GPTQ models: the main branch has no group size.
        four_bit_without_groups: record.model.starts_with("thebloke/"),
        ..torchtune::libraries(record, software::libraries(&stack(record)))
    };
    diffusion::amend_libraries(record, &mut libraries);
    libraries
}

/// Whether a record's script calls `zero_grad()` between forward and backward: rasbt's do, but where they accumulate, and fast-DiT's
/// train.py.
pub(super) fn zeroes_late(record: &Record) -> bool {
    let source = &record.source_repo_or_url;
    let by_source = source.starts_with("rasbt/") || source.ends_with("/fast-dit");
    by_source && record.grad_accum.number() == Some(1)
}

/// Whether a record's script set `expandable_segments:True`: torchtitan's run_train.sh does. Its tables of many GPUs were run with
/// multinode_trainer.slurm, which does not.
pub(super) fn expandable_segments(record: &Record) -> bool {
    let framework = &record.framework;
    framework.starts_with("torchtitan") && !framework.contains("torchtitan@9dec370")
}

/// The major and minor number after a name.
fn after(text: &str, name: &str) -> Option<(u8, u8)> {
    let (_, rest) = text.split_once(name)?;
    let mut parts = rest.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}
