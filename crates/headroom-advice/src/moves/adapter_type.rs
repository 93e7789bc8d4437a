//! Adapters in bf16.

use super::{Cost, Group, Move, Results, own_loss, with};
use headroom_scenario::Precision;

pub const MOVE: Move = Move {
    id: "bf16-adapters",
    title: "adapters in bf16",
    group: Group::AdapterType,
    what: "Keeps adapters in the base's dtype, so their inputs are not cast to fp32 and saved a second time.",
    needs: "fp32 adapters on a 16-bit base, in a custom training loop.",
    cost: Cost::Results,
    results: Results::Changes,
    never_worse: true,
    speed: "Slightly faster.",
    quality: "Small adapter updates are lost to rounding.",
    source: "peft tuners_utils.py (autocast_adapter_dtype)",
    caveat: "",
    code: "get_peft_model(model, config, autocast_adapter_dtype=False)",
    apply: |run| {
        let wide = run
            .training
            .lora
            .as_ref()
            .is_some_and(|lora| lora.fp32_adapters);
        // A gradient scaler refuses gradients in fp16.
        let scaled = run.training.precision == Precision::AmpFp16OnFp16;
        // Post-training trainers leave them in PEFT's fp32.
        (wide && own_loss(run) && !scaled).then(|| {
            with(run, |changed| {
                if let Some(lora) = &mut changed.training.lora {
                    lora.fp32_adapters = false;
                }
            })
        })
    },
};
