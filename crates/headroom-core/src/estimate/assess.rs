//! Reads the estimate from a run and its replay through the allocator.

use std::collections::BTreeMap;

use super::engine::{self, STEPS};
use super::{
    Category, Doubt, Estimate, Growth, Part, Peaks, Phase, UncertaintySources, Unsupported,
    alive_at, by_category, by_module, device, divided, host, implementations, names, time,
};
use crate::step::Run;
use headroom_base::order::sorted;
use headroom_base::units::Bytes;
use headroom_catalog::ModelCategory;
use headroom_scenario::{Attention, Case, Compile, Scenario};

/// Phases whose peaks are listed.
const PHASES: [Phase; 7] = [
    Phase::Generation,
    Phase::Reference,
    Phase::Forward,
    Phase::Backward,
    Phase::Optimizer,
    Phase::Evaluation,
    Phase::Resume,
];

/// The estimate of this case's first steps; an error if nothing is trained.
pub(super) fn estimate(case: &Case, run: &Run, peaks: &Peaks) -> Result<Estimate, Unsupported> {
    let scenario = case.scenario;
    let steady = STEPS - 1;
    let highest = peaks.highest().copied();
    let Some(highest) = highest.filter(|_| run.trainable > 0) else {
        return Err(names::nothing_trained(case));
    };
    let alive = alive_at(&run.trace, &highest);
    let (host, disk) = host::host_and_disk(run, peaks.phases.last(), scenario);
    let recorded = engine::recorded(case).and_then(Result::ok);
    let left_out = recorded
        .as_ref()
        .map_or_else(Vec::new, |graph| graph.leaves_out.clone());
    let unruled = recorded.map_or_else(Vec::new, |graph| graph.unruled());
    let doubts = UncertaintySources {
        kernels_without_model: !unruled.is_empty(),
        compiled: scenario.training.compile != Compile::Nothing,
        ..UncertaintySources::of(run)
    };
    let of_reserved = UncertaintySources {
        reserved: true,
        ..doubts
    };
    let [allocated, reserved] = doubts.bands(Bytes::new(highest.bytes), Bytes::new(peaks.reserved));
    let device = device::band(case, reserved);
    let usable = device::usable(case);
    let growth = Growth::of(scenario);
    let grown = growth.map_or(Bytes::ZERO, Growth::by_the_end);
    let full_in_epoch = growth.zip(usable).and_then(|(growth, usable)| {
        let epoch = growth.full_in(usable.saturating_sub(device.expected))?;
        let last = growth.epochs;
        last.is_none_or(|last| epoch <= last.get()).then_some(epoch)
    });
    let breakdown = largest_first(with_rest(
        by_category(&run.trace, &alive),
        Category::Rounding,
        highest.bytes,
    ));
    Ok(Estimate {
        allocated,
        reserved,
        device,
        phase: highest.mark.phase,
        phases: PHASES
            .into_iter()
            .filter_map(|phase| {
                peaks.in_phase(steady, phase).map(|peak| Part {
                    what: phase,
                    bytes: Bytes::new(peak.bytes),
                })
            })
            .collect(),
        breakdown,
        modules: largest_first(with_rest(
            by_module(&run.trace, &alive),
            "the allocator".to_string(),
            highest.bytes,
        )),
        timeline: peaks.timeline(),
        between_steps: Bytes::new(peaks.phases.last().map_or(0, |peak| peak.end)),
        forward_end: Bytes::new(
            peaks
                .in_phase(steady, Phase::Forward)
                .map_or(0, |peak| peak.end),
        ),
        parameters: run.parameters,
        trainable: run.trainable,
        flops: time::flops(run, scenario),
        host,
        disk,
        usable,
        growth: grown,
        full_in_epoch,
        fits: usable.map(|usable| device.expected + grown <= usable),
        doubts: Doubt::all(of_reserved, Bytes::new(peaks.reserved), case),
        not_modelled: {
            let mut missing = not_modelled(run, doubts, scenario);
            missing.extend(implementations::not_followed(case));
            missing.extend(left_out);
            missing.extend(unruled.into_iter().map(|(name, count)| {
                format!("temporary memory of the {name} kernels ({count} calls); only their outputs are counted")
            }));
            missing
        },
    })
}

fn not_modelled(run: &Run, doubts: UncertaintySources, scenario: &Scenario) -> Vec<String> {
    let mut missing = doubts.not_modelled();
    missing.extend(divided::not_modelled(scenario));
    missing.extend(divided::not_split(run, scenario));
    let case = Case::of(scenario);
    let of_latents = case
        .listed_model()
        .is_some_and(|model| model.category == ModelCategory::Diffusion);
    if of_latents && case.listed_size("encoders").unwrap_or(0) == 0 {
        missing.push(
            "the VAE and text encoders: latents and texts are taken as encoded before training"
                .into(),
        );
    }
    if scenario.data.padding_mask && scenario.training.attention == Attention::Flash2 {
        missing.push("the copies that FlashAttention 2 makes to remove padding".into());
    }
    if scenario.training.fp8 {
        // ctx.save_for_backward(input_hp, weight_hp_t) in torchao/float8/float8_linear.py: the saved tensors are not fp8.
        missing.push(
            "fp8 activations of Transformer Engine: counted like torchao's, which are kept in 16 bits".into(),
        );
    }
    missing
}

/// Adds what the allocator hands out beyond the sum of the parts.
fn with_rest<K: Ord>(mut parts: BTreeMap<K, u64>, rest: K, whole: u64) -> BTreeMap<K, u64> {
    let sum = parts
        .values()
        .fold(0, |sum: u64, part| sum.saturating_add(*part));
    if whole > sum {
        parts.insert(rest, whole - sum);
    }
    parts
}

fn largest_first<K: Ord>(parts: BTreeMap<K, u64>) -> Vec<Part<K>> {
    let parts = parts.into_iter().map(|(what, bytes)| Part {
        what,
        bytes: Bytes::new(bytes),
    });
    // Equal parts keep the order of the map.
    sorted(parts, |a, b| b.bytes.cmp(&a.bytes))
}
