//! What a training run needs: GPU memory, host memory, disk and time.
//!
//! [`Prediction`] answers all questions about one scenario and runs the engine once for each distinct one; [`estimate`] and
//! [`quick_peak`] are for searches, which need one figure of many scenarios.

mod alive;
mod alloc_conf;
mod assess;
mod batch_sizes;
mod card;
mod category_timeline;
mod device;
mod disk;
mod divided;
mod engine;
mod expand;
mod explain;
mod figures;
mod growth;
pub mod halves;
mod host;
mod host_use;
mod implementations;
mod inputs;
mod many_steps;
mod names;
mod outcome;
mod prediction;
mod quick;
mod ranks;
mod replay;
mod requests;
mod resume;
mod scan;
mod size_distribution;
pub mod software;
pub mod time;
mod uncertainty;
mod unsupported;
mod vllm;
mod work;

pub use crate::tape::{Category, Phase};
pub use alive::{AliveTensors, TensorKind};
pub use batch_sizes::{deciding, edges, frequent, own_card, sized};
pub use card::SmallestCard;
pub use disk::Disk;
pub use engine::STEPS;
#[cfg(any(test, feature = "testing"))]
pub use engine::counting::runs_of;
pub use expand::{ExpandedEvent, Expansion};
pub use explain::{TensorDetail, TensorGroup};
pub use figures::{Band, Instant, Part};
pub use growth::Growth;
pub use host::{Host, HostPart};
pub use host_use::HostUse;
pub use inputs::{Input, inputs};
pub use many_steps::{Evaluations, LoopOptions, ManySteps, Retained, StepMemory, StepSequence};
pub use names::{attention_projections, linear_layers, unmatched};
pub use outcome::{Estimate, Fit};
pub use prediction::{At, Prediction};
pub use ranks::{QuickStep, RankMemory, quick_step};
pub use requests::{StepRequest, StepRequests};
pub use scan::{Alive, Peaks, PhasePeak, alive_at, by_category, by_module};
pub use size_distribution::{Collation, SizeDistribution, at_least_once};
pub use uncertainty::{Doubt, UncertaintySources};
pub use unsupported::Unsupported;
pub use vllm::least_vllm_share;

use crate::step::Detail;
use headroom_base::units::Bytes;
use headroom_scenario::{Case, Scenario};

/// The estimate of a training step of this scenario.
pub fn estimate(scenario: &Scenario) -> Result<Estimate, Unsupported> {
    let decides = deciding(scenario);
    let case = Case::of(&decides);
    ranks::fullest(&case, Detail::Kernels)?.estimate(&case)
}

/// Whether a run of a recorded model can be replayed at all: proposals leave out what its recording does not hold for.
pub fn is_replayed(scenario: &Scenario) -> bool {
    engine::is_replayed(&Case::of(scenario))
}

/// Only the allocated peak, for searches over thousands of scenarios. It simulates one steady-state step of each pipeline stage;
/// some rank of `Prediction::ranks` allocates no less, and more only by the allocator's rounding of large blocks. `estimate` is
/// of the rank that reserves most, which may allocate less than another.
pub fn quick_peak(scenario: &Scenario) -> Result<Bytes, Unsupported> {
    ranks::quick_peak(&Case::of(&deciding(scenario)))
}

/// The most that torch may allocate: what is usable, less the context, the libraries and what evaluations leave behind;
/// `None` if the GPU's memory is unknown. A run whose allocated peak is above this does not fit.
pub fn allocatable(scenario: &Scenario) -> Option<Bytes> {
    let case = Case::of(scenario);
    let growth = Growth::of(scenario).map_or(Bytes::ZERO, Growth::by_the_end);
    Some(device::usable(&case)? - device::overhead(&case) - growth)
}

/// What a run's GPU offers to programs; `None` if its memory is unknown.
pub fn usable(scenario: &Scenario) -> Option<Bytes> {
    device::usable(&Case::of(scenario))
}

/// The same for the first rank only.
pub fn quick_peak_of_first_rank(scenario: &Scenario) -> Result<Bytes, Unsupported> {
    Ok(ranks::quick_peak_of(&Case::of(&deciding(scenario)))?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpt2(change: impl FnOnce(&mut Scenario)) -> Estimate {
        let mut scenario = Scenario::default();
        change(&mut scenario);
        estimate(&scenario).unwrap()
    }

    #[test]
    fn the_timeline_reaches_the_peak() {
        let estimate = gpt2(|_| {});
        assert_eq!(estimate.parameters, 124_439_808);
        let top = estimate.timeline.iter().map(|instant| instant.bytes).max();
        assert_eq!(top, Some(estimate.allocated.expected));
    }

    #[test]
    fn the_quick_peak_is_the_estimate_without_rounding() {
        for &optimizer in headroom_scenario::Optimizer::ALL {
            for keep in [false, true] {
                let mut scenario = Scenario::default();
                scenario.training.optimizer = optimizer;
                scenario.training.keep_outputs = keep;
                scenario.runtime.expandable_segments = true;
                let full = estimate(&scenario).unwrap().allocated.expected;
                let quick = quick_peak(&scenario).unwrap();
                assert!(
                    quick <= full && full - quick < Bytes::mib(4),
                    "{optimizer:?} {quick} {full}"
                );
            }
        }
    }

    #[test]
    fn the_same_scenario_gives_the_same_bytes() {
        assert_eq!(gpt2(|_| {}), gpt2(|_| {}));
    }
}
