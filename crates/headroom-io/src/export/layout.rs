//! How GPUs share the work, in the terms that several targets have for it.

use super::common::processes;
use headroom_core::World;
use headroom_scenario::{Case, PolicyType, Scenario, Toggle, Wrap};

/// What FSDP wraps and casts, including where the scenario leaves it to the trainer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    pub wrap: Wrap,
    pub param: PolicyType,
    pub reduce: PolicyType,
}

/// The policy that the prediction is of.
pub(super) fn policy(scenario: &Scenario) -> Policy {
    let world = World::of_case(&Case::of(scenario));
    Policy {
        wrap: world.wrap(),
        param: world.parallel.param_dtype,
        reduce: world.parallel.reduce_dtype,
    }
}

/// The number of copies of all shards.
pub(super) fn replicas(scenario: &Scenario) -> u32 {
    if processes(scenario) == 1 {
        return 1;
    }
    scenario.mesh().data
}

/// The sizes of ZeRO's buffers and the limits of stage 3, in elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct ZeroSizes {
    pub bucket: u64,
    pub prefetch: u64,
    pub persistence: u64,
    pub live: u64,
    pub reuse: u64,
    pub subgroup: u64,
}

/// The sizes that the prediction used: the scenario's, else what transformers makes of `auto`, else DeepSpeed's defaults.
pub(super) fn zero_sizes(scenario: &Scenario) -> ZeroSizes {
    let parallel = &scenario.parallel;
    let hidden = World::of_case(&Case::of(scenario)).auto_hidden();
    let size = |given: u64, auto: fn(u64) -> u64, default: u64| match (given, hidden) {
        (0, Some(hidden)) => auto(hidden),
        (0, None) => default,
        (given, _) => given,
    };
    let square = |hidden: u64| hidden.saturating_mul(hidden);
    ZeroSizes {
        bucket: size(parallel.zero_bucket, square, 500_000_000),
        prefetch: size(
            parallel.zero_prefetch,
            |hidden| hidden.saturating_mul(hidden) / 10 * 9,
            50_000_000,
        ),
        persistence: size(
            parallel.zero_persistence,
            |hidden| hidden.saturating_mul(10),
            100_000,
        ),
        live: size(parallel.zero_live, |_| 1_000_000_000, 1_000_000_000),
        reuse: size(parallel.zero_reuse, |_| 1_000_000_000, 1_000_000_000),
        subgroup: size(parallel.zero_subgroup, |_| 1_000_000_000, 1_000_000_000),
    }
}

/// Whether ZeRO reduces while backward goes on.
pub(super) fn zero_overlaps(scenario: &Scenario, stage: u8) -> bool {
    match scenario.parallel.zero_overlap {
        Toggle::Auto => stage == 3,
        toggle => toggle == Toggle::On,
    }
}
