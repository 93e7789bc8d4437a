//! What follows from what was read, whatever the program.

use std::mem::take;

use super::fact::Fact;
use super::facts::Facts;
use super::names;
use super::words::{Adapter, Compute, DataParallel, Offload, Weights};

pub fn apply(facts: &mut Facts) {
    batch(facts);
    if let Some(reason) = facts
        .model
        .value()
        .and_then(|model| names::named(model).refused)
    {
        facts.refused = Some(reason.into());
    }
    let four_bits = matches!(facts.weights.value(), Some(Weights::Nf4 | Weights::Fp4));
    if four_bits && facts.adapter.value() == Some(&Some(Adapter::Lora)) {
        facts.adapter = Fact::follows(Some(Adapter::Qlora), "LoRA on a base of four bits");
    }
    let data = facts.strategy.value().map(|strategy| strategy.data);
    // Those shard by FSDP, whose SHARD_GRAD_OP is ZeRO-2 under autocast.
    let by_fsdp = matches!(facts.trainer.value(), Some(&("olmo" | "llm-foundry")));
    let zero = matches!(
        data,
        Some(DataParallel::Zero0 | DataParallel::Zero1 | DataParallel::Zero2 | DataParallel::Zero3)
    );
    if zero && !by_fsdp {
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

/// A batch of the whole job is divided over GPUs and accumulation.
fn batch(facts: &mut Facts) {
    let Some(strategy) = facts.strategy.value() else {
        return;
    };
    let model = [strategy.tp, strategy.pp, strategy.cp]
        .iter()
        .fold(1u64, |all, size| all.saturating_mul(*size));
    let ranks = facts.gpus.value().map(|gpus| (gpus / model.max(1)).max(1));
    let (Some(batch), Some(ranks)) = (facts.batch_of_all.value().copied(), ranks) else {
        return;
    };
    let why = format!("a batch of {batch} over {ranks} data-parallel ranks");
    match (facts.micro_batch.value(), facts.accumulation.value()) {
        (None, Some(steps)) if facts.micro_batch.is_unsaid() => {
            let micro = batch / ranks.saturating_mul(*steps).max(1);
            facts.micro_batch = Fact::follows(micro.max(1), why);
        }
        (Some(micro), None) if facts.accumulation.is_unsaid() => {
            let steps = batch / ranks.saturating_mul(*micro).max(1);
            facts.accumulation = Fact::follows(steps.max(1), why);
        }
        _ => {}
    }
}
