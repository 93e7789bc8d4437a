//! Adapters on the attention layers only.

use super::attention_layers;
use super::{Cost, Group, Move, Results, with};

pub const MOVE: Move = Move {
    id: "fewer-adapters",
    title: "adapters on the attention layers only",
    group: Group::AdapterTargets,
    what: "Removes the adapters from the feed-forward layers, and with them the wide inputs saved for backward.",
    needs: "LoRA on attention and other layers.",
    cost: Cost::Results,
    results: Results::Changes,
    never_worse: true,
    speed: "Faster.",
    quality: "Adapting all linear layers trains better at equal rank.",
    source: "arXiv 2305.14314 figure 2 (all layers matter); peft LoraConfig",
    caveat: "",
    code: "LoraConfig(target_modules=[\"q_proj\", \"k_proj\", \"v_proj\", \"o_proj\"])",
    apply: |run| {
        let lora = run.training.lora.as_ref()?;
        let attention = attention_layers(run)?;
        let (kept, rest): (Vec<String>, Vec<String>) = lora
            .targets
            .iter()
            .cloned()
            .partition(|target| attention.contains(target));
        (!kept.is_empty() && !rest.is_empty()).then(|| {
            with(run, |changed| {
                if let Some(lora) = &mut changed.training.lora {
                    lora.targets = kept;
                }
            })
        })
    },
};
