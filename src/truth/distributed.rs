//! Records of one rank of a run on several GPUs: what of it is modelled, and how it was run.

use serde_json::{Map, Value};

use super::simulated;
use super::world::world;
use crate::step::{self, RunPlan};

type Object = Map<String, Value>;

/// What a record may use that is not modelled, each by the name that a refusal gives it.
const NOT_MODELLED: &[(&str, fn(&Object) -> bool)] = &[
    ("FSDP 1", |knobs| is(knobs, "strategy", "fsdp1")),
    ("FSDP 2", |knobs| {
        is(knobs, "strategy", "fsdp2") || beyond(knobs, "fsdp")
    }),
    ("ZeroRedundancyOptimizer", |knobs| {
        is(knobs, "strategy", "zero1_torch")
    }),
    ("DeepSpeed", |knobs| is(knobs, "strategy", "ds")),
    ("context parallel", |knobs| beyond(knobs, "cp")),
    ("Ulysses", |knobs| beyond(knobs, "ulysses")),
    ("pipeline parallel", |knobs| beyond(knobs, "pp")),
    ("expert parallel", |knobs| beyond(knobs, "ep")),
    ("Megatron-Core", |knobs| is(knobs, "engine", "mg")),
    ("TRL", |knobs| is(knobs, "trainer", "sft")),
];

/// Runs three steps of a recorded rank.
pub fn run(knobs: &Object, dims: &Object) -> Result<step::Run, String> {
    let missing: Vec<&str> = NOT_MODELLED
        .iter()
        .filter(|(_, uses)| uses(knobs))
        .map(|(name, _)| *name)
        .collect();
    if !missing.is_empty() {
        return Err(format!("not modelled: {}", missing.join(", ")));
    }
    let (data, training) = simulated::settings(knobs)?;
    let plan = RunPlan {
        world: world(knobs)?,
        ..RunPlan::first_steps(3)
    };
    simulated::run_with(knobs, dims, &data, &training, plan)
}

fn is(knobs: &Object, name: &str, value: &str) -> bool {
    knobs.get(name).and_then(Value::as_str) == Some(value)
}

fn beyond(knobs: &Object, degree: &str) -> bool {
    knobs.get(degree).and_then(Value::as_u64) > Some(1)
}
