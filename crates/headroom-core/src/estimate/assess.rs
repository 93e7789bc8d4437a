//! The estimate, read from a run and the allocator's replay of it.

use super::engine::{self, STEPS};
use super::uncertainty::Uncertainty;
use super::{
    Category, Doubt, Doubts, Estimate, Growth, Part, Peaks, Phase, Unsupported, alive_at,
    by_category, by_module, device, divided, host, implementations, names, time,
};
use crate::step::Run;
use headroom_base::order::{Map, sorted};
use headroom_base::units::Bytes;
use headroom_scenario::{Attention, Case, Scenario};

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

/// What the first steps of this case need; refused where nothing is trained.
pub(super) fn estimate(case: &Case, run: &Run, peaks: &Peaks) -> Result<Estimate, Unsupported> {
    let scenario = case.scenario;
    let steady = STEPS - 1;
    let highest = peaks.highest().copied();
    let Some(highest) = highest.filter(|_| run.trainable > 0) else {
        return Err(names::nothing_trained(case));
    };
    let alive = alive_at(&run.trace, &highest);
    let (host, disk) = host::beside(run, peaks.phases.last(), scenario);
    // A declared network has no family of which anything is known.
    let architecture = case.listed_model().map_or("declared", |model| model.arch);
    let recorded = engine::recorded(case).and_then(Result::ok);
    let convolves = recorded.as_ref().is_some_and(|graph| graph.convolves());
    let left_out = recorded
        .as_ref()
        .map_or_else(Vec::new, |graph| graph.leaves_out.clone());
    let unruled = recorded.map_or_else(Vec::new, |graph| graph.unruled());
    let listed = Doubts::of(architecture);
    let doubts = Doubts {
        unruled: !unruled.is_empty(),
        convolutions: listed.convolutions || convolves,
        ..listed
    };
    let uncertainty = doubts.uncertainty();
    let of_reserved = Doubts {
        reserved: true,
        ..doubts
    };
    let [allocated, reserved] = doubts.bands(Bytes::new(highest.bytes), Bytes::new(peaks.reserved));
    let device = device::band(case, reserved);
    let usable = device::usable(case);
    let growth = Growth::of(scenario);
    let grown = growth.map_or(Bytes::ZERO, |growth| growth.after(growth.epochs));
    let full_in_epoch = growth.zip(usable).and_then(|(growth, usable)| {
        let epoch = growth.full_in(usable.saturating_sub(device.expected))?;
        let last = if growth.epochs == 0 {
            u64::MAX
        } else {
            growth.epochs
        };
        (epoch <= last).then_some(epoch)
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
            let mut missing = not_modelled(run, uncertainty, scenario);
            missing.extend(implementations::not_followed(case));
            missing.extend(left_out);
            missing.extend(unruled.into_iter().map(|(name, count)| {
                format!("what the kernels of {name} take besides their results ({count} calls)")
            }));
            missing
        },
    })
}

fn not_modelled(run: &Run, uncertainty: Uncertainty, scenario: &Scenario) -> Vec<String> {
    let mut missing = uncertainty.not_modelled();
    missing.extend(divided::not_modelled(scenario));
    missing.extend(divided::not_split(run, scenario));
    if scenario.data.padding_mask && scenario.training.attention == Attention::Flash2 {
        missing.push("the copies that FlashAttention 2 makes to leave padding out".into());
    }
    if scenario.training.fp8 {
        // ctx.save_for_backward(input_hp, weight_hp_t) in torchao/float8/float8_linear.py: what is kept is not fp8.
        missing.push(
            "what Transformer Engine saves less in fp8 than torchao, which keeps 16 bits".into(),
        );
    }
    missing
}

/// Adds what the allocator hands out beyond the sum of the parts.
fn with_rest<K: Ord>(mut parts: Map<K, u64>, rest: K, whole: u64) -> Map<K, u64> {
    let sum = parts
        .values()
        .fold(0, |sum: u64, part| sum.saturating_add(*part));
    if whole > sum {
        parts.insert(rest, whole - sum);
    }
    parts
}

fn largest_first<K: Ord>(parts: Map<K, u64>) -> Vec<Part<K>> {
    let parts = parts.into_iter().map(|(what, bytes)| Part {
        what,
        bytes: Bytes::new(bytes),
    });
    // Equal parts keep the order of the map.
    sorted(parts, |a, b| b.bytes.cmp(&a.bytes))
}
