//! Adapters in bf16.

use super::{Cost, Group, Move, with};

pub const MOVE: Move = Move {
    id: "bf16-adapters",
    title: "adapters in bf16",
    group: Group::AdapterType,
    what: "Adapters in the base's type, so that their inputs are not cast up and kept once more.",
    needs: "fp32 adapters over a 16-bit base.",
    cost: Cost::Results,
    never_worse: true,
    speed: "A little faster.",
    quality: "Small updates of adapters are lost to rounding.",
    source: "peft tuners_utils.py (autocast_adapter_dtype)",
    caveat: "",
    code: "get_peft_model(model, config, autocast_adapter_dtype=False)",
    apply: |s| {
        let wide = s.training.lora.as_ref().is_some_and(|it| it.fp32_adapters);
        wide.then(|| {
            with(s, |it| {
                if let Some(lora) = &mut it.training.lora {
                    lora.fp32_adapters = false;
                }
            })
        })
    },
};
