//! What follows from what was read, whatever the program.

use std::mem::take;

use super::fact::Fact;
use super::facts::Facts;
use super::words::{Compute, DataParallel, Offload};

pub fn apply(facts: &mut Facts) {
    let data = facts.strategy.value().map(|strategy| strategy.data);
    if matches!(
        data,
        Some(DataParallel::Zero0 | DataParallel::Zero1 | DataParallel::Zero2 | DataParallel::Zero3)
    ) {
        // DeepSpeed's engine casts the module itself; there is no autocast.
        facts.compute = take(&mut facts.compute).map(|compute| match compute {
            Compute::Bf16Autocast => Compute::Bf16,
            Compute::Fp16Autocast => Compute::Fp16,
            other => other,
        });
    }
    if data.is_some() {
        facts.offload = take(&mut facts.offload).or_follows(Offload::None, "nothing offloads");
    }
    if facts
        .strategy
        .value()
        .is_some_and(|strategy| !strategy.shards() && strategy.data == DataParallel::None)
    {
        facts.gpus = match take(&mut facts.gpus) {
            Fact::Unsaid => Fact::follows(1, "one process"),
            known => known,
        };
    }
}
