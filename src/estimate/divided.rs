//! What sharding may save. Runs are gone through undivided: that is what their figures say, and how far below it a GPU may
//! come is said beside them.

use super::Category;
use super::outcome::{Band, Part};
use crate::scenario::{Offload, Parallelism, Scenario};
use crate::step::Run;
use crate::units::Bytes;

/// Of what is alive at the peak, the part that the layout keeps elsewhere. What gathers it for a moment is not taken off,
/// so a GPU saves this at most.
pub(super) fn elsewhere(breakdown: &[Part<Category>], scenario: &Scenario) -> Bytes {
    use Category::{Gradients, OptimizerStates, Parameters};
    let layout = &scenario.parallel;
    let divided: &[Category] = match layout.strategy {
        Parallelism::None | Parallelism::Ddp => return Bytes::ZERO,
        Parallelism::Zero1 => &[OptimizerStates],
        Parallelism::Zero2 => &[OptimizerStates, Gradients],
        _ => &[OptimizerStates, Gradients, Parameters],
    };
    let on_the_host = |what| match layout.offload {
        Offload::None => false,
        Offload::Optimizer => what == OptimizerStates,
        Offload::Parameters => divided.contains(&what),
    };
    let sharers = match layout.strategy {
        Parallelism::Hsdp => scenario.replicas() / u64::from(scenario.hardware.nodes.max(1)),
        _ => scenario.replicas(),
    };
    let parts = breakdown.iter().filter(|part| divided.contains(&part.what));
    parts.fold(Bytes::ZERO, |all, part| {
        let here = if on_the_host(part.what) {
            0
        } else {
            part.bytes.get().div_ceil(sharers.max(1))
        };
        all + part.bytes.saturating_sub(Bytes::new(here))
    })
}

/// A band that reaches down to what is left.
pub(super) fn widened(band: Band, elsewhere: Bytes) -> Band {
    Band {
        low: band.low.saturating_sub(elsewhere),
        ..band
    }
}

/// What the figures leave out, by the settings that ask for it.
pub(super) fn not_modelled(elsewhere: Bytes, scenario: &Scenario) -> Option<String> {
    (elsewhere > Bytes::ZERO).then(|| {
        let strategy = scenario.parallel.strategy.id();
        format!(
            "parallel.strategy {strategy}: weights, gradients and states are counted whole; each GPU holds up to {elsewhere} less"
        )
    })
}

/// The same of what one copy of the model is split over.
pub(super) fn not_split(run: &Run, scenario: &Scenario) -> Option<String> {
    let layout = &scenario.parallel;
    let tensor = if run.tensor_parallel > 1 {
        1
    } else {
        layout.tp
    };
    let degrees = [
        ("parallel.tp", tensor),
        ("parallel.pp", layout.pp),
        ("parallel.cp", layout.cp),
        ("parallel.ep", layout.ep),
    ];
    let asked = degrees.iter().filter(|(_, degree)| *degree > 1);
    let asked: Vec<String> = asked
        .map(|(name, degree)| format!("{name} {degree}"))
        .collect();
    (!asked.is_empty()).then(|| {
        format!(
            "{}: the model is counted on one GPU; each holds less",
            asked.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::estimate;
    use super::*;
    use crate::scenario::settings;

    #[test]
    fn a_divided_run_says_what_is_counted_whole() {
        #[track_caller]
        fn check(run: &str, saved: Option<f64>, expected: &str) {
            let mut scenario = Scenario::default();
            for word in run.split(' ') {
                let (name, value) = word.split_once('=').unwrap();
                settings::set(&mut scenario, name, value).unwrap();
            }
            let found = estimate(&scenario).unwrap();
            let said = found
                .not_modelled
                .iter()
                .any(|note| note.starts_with(expected));
            assert!(said, "{:?}", found.not_modelled);
            scenario.parallel = crate::scenario::Parallel {
                strategy: Parallelism::None,
                ..Default::default()
            };
            let whole = estimate(&scenario).unwrap();
            if let Some(saved) = saved {
                let less = whole.allocated.low.get() as f64 - found.allocated.low.get() as f64;
                let per_parameter = less / whole.parameters as f64;
                assert!((per_parameter - saved).abs() < 0.05, "{per_parameter}");
            }
        }
        // In fp32 with AdamW: weights and gradients 4 bytes each, states 8; the peak is in backward with all gradients but few.
        let run = "gpus=4 mb=1 seq=64 accum=2 precision=fp32";
        let with = |more: &str| format!("{run} {more}");
        check(&with("par=zero1"), Some(6.0), "parallel.strategy zero1: ");
        check(&with("par=zero2"), Some(9.0), "parallel.strategy zero2: ");
        check(&with("par=zero3"), Some(12.0), "parallel.strategy zero3: ");
        check(
            &with("par=fsdp2 offload=parameters"),
            Some(16.0),
            "parallel.strategy fsdp2: ",
        );
        check(&with("par=hsdp nodes=4"), None, "memory of other");
        check(&with("tp=2 pp=2"), None, "parallel.tp 2, parallel.pp 2: ");
    }
}
