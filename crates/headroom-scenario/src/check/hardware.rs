//! Whether the card, the system and the allocator can do what is asked.

use super::{Case, Problems};
use crate::problem::one_of;
use crate::{Attention, LowPrecision, Precision, Quantization};
use headroom_catalog::{self as catalog, MethodKind, Os, Vendor};

pub(super) fn check(case: &Case, problems: &mut Problems) {
    card(case, problems);
    capability(case, problems);
    machines(case, problems);
    allocator(case, problems);
}

fn card(case: &Case, problems: &mut Problems) {
    let hardware = &case.scenario.hardware;
    if case.gpu.is_none() && hardware.memory_mib == 0 {
        let expected = match one_of(&catalog::gpus_near(&hardware.gpu)) {
            Some(near) => format!("a known GPU; did you mean {near}?"),
            None => "a GPU of `headroom catalog`, or hardware.memory_mib beside it".into(),
        };
        problems.refuse("hardware.gpu", expected);
    }
    if let Some(gpu) = case.gpu
        && hardware.memory_mib == 0
        && gpu.usable_bytes(hardware.os).is_none()
    {
        let expected = format!(
            "what torch reports as the total memory of {}: nobody has published it",
            gpu.name
        );
        problems.warn("hardware.memory_mib", expected);
    }
}

/// What a number format, a kernel or a library needs of the card.
fn capability(case: &Case, problems: &mut Problems) {
    let training = &case.scenario.training;
    let bf16 = matches!(
        training.precision,
        Precision::AmpBf16 | Precision::Bf16 | Precision::AmpBf16OnBf16
    );
    if bf16 && !case.has((8, 0), |gpu| gpu.bf16) {
        let expected = format!("fp32, amp-fp16 or fp16: {} has no bf16", case.card());
        problems.refuse("training.precision", expected);
    }
    if training.fp8 && !case.has((8, 9), |gpu| gpu.fp8) {
        let expected = format!(
            "off: {} has no fp8, which came with Ada and Hopper",
            case.card()
        );
        problems.refuse("training.fp8", expected);
    }
    low_precision(case, problems);
    if training.attention == Attention::Flash2 {
        if !case.has((8, 0), |gpu| gpu.flash2) {
            let expected = format!(
                "sdpa or eager: FlashAttention 2 needs Ampere or newer, which {} is not",
                case.card()
            );
            problems.refuse("training.attention", expected);
        }
        if matches!(training.precision, Precision::Fp32 | Precision::Fp64) {
            problems.refuse(
                "training.attention",
                "sdpa or eager: FlashAttention 2 computes in fp16 and bf16 only",
            );
        }
    }
    let quantization = training.quantization;
    let methods = [
        (
            MethodKind::Optimizer,
            "training.optimizer",
            training.optimizer.id(),
        ),
        (
            MethodKind::Adapter,
            "training.quantization",
            quantization.id(),
        ),
    ];
    for (kind, path, id) in methods {
        let Some(method) = catalog::method(kind, id) else {
            continue;
        };
        let (major, minor) = method.capability;
        if (major, minor) != (0, 0) && !case.has((major, minor), |gpu| method.runs_on(gpu)) {
            let expected = format!(
                "another: {} needs compute capability {major}.{minor}, which {} has not",
                method.name,
                case.card()
            );
            problems.refuse(path, expected);
        }
        let torch = method.torch;
        if torch > case.scenario.stack.torch {
            let expected = format!(
                "{}.{} or newer: {} came with it",
                torch.0, torch.1, method.name
            );
            problems.refuse("stack.torch", expected);
        }
    }
    if case
        .capability()
        .is_some_and(|capability| capability >= (10, 0))
        && case.scenario.stack.torch < (2, 7)
    {
        let expected = format!("2.7 or newer, the first built for {}", case.card());
        problems.refuse("stack.torch", expected);
    }
    if quantization != Quantization::None && case.gpu.is_some_and(|gpu| gpu.vendor == Vendor::Apple)
    {
        problems.refuse(
            "training.quantization",
            "none: bitsandbytes has no kernels for Apple's GPUs",
        );
    }
}

fn machines(case: &Case, problems: &mut Problems) {
    let hardware = &case.scenario.hardware;
    if hardware.nodes > hardware.gpus {
        let expected = format!("at most {}, the number of GPUs", hardware.gpus);
        problems.refuse("hardware.nodes", expected);
    } else if !hardware.gpus.is_multiple_of(hardware.nodes.max(1)) {
        let expected = format!("a divisor of {} GPUs", hardware.gpus);
        problems.refuse("hardware.nodes", expected);
    }
    if hardware.os == Os::Windows && hardware.gpus > 1 {
        problems.warn(
            "hardware.os",
            "linux or wsl for several GPUs: PyTorch on Windows has no NCCL",
        );
    }
}

/// What PyTorch refuses in the allocator's settings (c10/core/AllocatorConfig.cpp), and what has no effect.
fn allocator(case: &Case, problems: &mut Problems) {
    let runtime = &case.scenario.runtime;
    if (1..20).contains(&runtime.max_split_size_mb) {
        problems.refuse("runtime.max_split_size_mb", "0 or at least 20");
    }
    let threshold = runtime.garbage_collection_threshold;
    if threshold >= 1.0 {
        problems.refuse("runtime.garbage_collection_threshold", "a number below 1");
    }
    if threshold > 0.0 && runtime.memory_fraction >= 1.0 {
        problems.warn(
            "runtime.garbage_collection_threshold",
            "runtime.memory_fraction below 1 beside it: without one it does nothing",
        );
    }
    let divisions = runtime.roundup_power2_divisions;
    if divisions != 0 && !divisions.is_power_of_two() {
        problems.refuse("runtime.roundup_power2_divisions", "0 or a power of two");
    }
    if runtime.memory_fraction <= 0.0 {
        problems.refuse("runtime.memory_fraction", "a number above 0");
    }
    if runtime.expandable_segments && case.scenario.hardware.os == Os::Windows {
        problems.warn(
            "runtime.expandable_segments",
            "off: PyTorch on Windows ignores it",
        );
    }
}

/// What the kernels of a recipe need of the card.
fn low_precision(case: &Case, problems: &mut Problems) {
    let recipe = case.scenario.training.low_precision;
    let (least, name) = match recipe {
        LowPrecision::None => return,
        // CUTLASS's kernels with a scale for each row.
        LowPrecision::Rowwise | LowPrecision::RowwiseHigh => ((9, 0), "Hopper"),
        LowPrecision::MxFp8 | LowPrecision::NvFp4 => ((10, 0), "Blackwell"),
        LowPrecision::Int8Mixed | LowPrecision::BitNet => ((8, 0), "Ampere"),
    };
    if !case.has(least, |gpu| gpu.is_at_least(least.0, least.1)) {
        let expected = format!(
            "another: {} needs {name} or newer, which {} is not",
            recipe.label(),
            case.card()
        );
        problems.refuse("training.low_precision", expected);
    }
}
