//! One rank of several GPUs: how its trainer changes what is trained, and what of it is not modelled.

use super::knobs::Knobs;
use super::post;
use headroom_scenario::{
    Checkpointing, Data, Objective, Precision, Quantization, Sampler, Training,
};

/// What a record uses that is not modelled.
fn not_modelled(knobs: &Knobs) -> Vec<&'static str> {
    let schedule = knobs.pp_sched.as_deref().unwrap_or_default();
    let splits_backward = matches!(schedule, "zb" | "zbv" | "dualpipev");
    let is_selective = matches!(knobs.ckpt.text(), "sac_op" | "sac_2");
    let mg = &knobs.mg;
    [
        (
            "selective checkpointing under a backward in two parts",
            splits_backward && is_selective,
        ),
        (
            "recomputation of several layers at once",
            knobs.is_megatron() && mg.method != "block" && mg.num > 1,
        ),
    ]
    .into_iter()
    .filter_map(|(name, is_used)| is_used.then_some(name))
    .collect()
}

pub fn apply(knobs: &Knobs, data: &mut Data, training: &mut Training) -> Result<(), String> {
    let Some(strategy) = knobs.strategy.as_deref() else {
        return Ok(());
    };
    let missing = not_modelled(knobs);
    if !missing.is_empty() {
        return Err(format!("not modelled: {}", missing.join(", ")));
    }
    let trainer = knobs.trainer.as_deref().unwrap_or_default();
    if post::is_trainer(knobs) {
        training.task = post::task(knobs, training.lora.is_some())?;
        training.task.sampler = Sampler::VllmElsewhere;
        data.padding_mask = false;
    } else if trainer == "sft" {
        // Its loop projects only rows with a label, and the recorder's device returns zeros to the host: it counts none.
        training.task.objective = Objective::Sft;
        training.task.labelled = 0.0;
        // A mask of zeros is not all ones, so that it is not left out.
        data.padding_mask = true;
    }
    if !trainer.is_empty() && matches!(strategy, "fsdp1" | "fsdp2") {
        // `precision` is not the trainer's: the weights are loaded in one type, and autocast computes in another.
        training.precision = match (knobs.base_dtype.as_str(), knobs.amp.as_str()) {
            ("bf16", "bf16") => Precision::AmpBf16OnBf16,
            ("bf16", _) => Precision::Bf16,
            (_, "bf16") => Precision::AmpBf16,
            _ => Precision::Fp32,
        };
    }
    if let Some(quant) = knobs.quant.as_deref() {
        training.quantization = match quant {
            "nf4" => Quantization::Nf4,
            "nf4-dq" => Quantization::Nf4Double,
            "int8" => Quantization::Int8,
            other => return Err(format!("quantisation to {other} is not modelled")),
        };
        let is_prepared = knobs.lora.as_ref().and_then(|lora| lora.prep) != Some(false);
        if is_prepared && training.precision == Precision::AmpBf16OnBf16 {
            // `prepare_model_for_kbit_training`: whatever is not quantised is cast up.
            training.precision = Precision::AmpBf16;
        }
    }
    if strategy == "ds" && knobs.precision != "fp32" {
        // The weights are in 16 bits, and the optimizer has a copy in 32.
        training.precision = match knobs.precision.as_str() {
            "fp16" => Precision::Fp16,
            _ => Precision::Bf16,
        };
        if let Some(lora) = training.lora.as_mut() {
            lora.fp32_adapters &= knobs.ds_zinit != Some(false);
        }
    }
    if knobs.is_megatron() {
        if knobs.mg.recompute == "full" {
            training.checkpointing = Checkpointing::Layers;
            if knobs.mg.method == "block" {
                training.checkpoint_first = knobs.mg.num;
            }
        }
        training.accumulation = knobs.pp_micro.unwrap_or(1);
    } else if knobs.pp > Some(1) {
        training.accumulation = knobs.pp_micro.unwrap_or(1);
        training.keep_outputs = knobs.hold_pred;
    }
    Ok(())
}

/// Whether the record is of the script with its own loop, which counts the gradients in its last step and still holds the last of
/// them when it reads what is allocated.
pub fn looks_at_gradients(knobs: &Knobs) -> bool {
    knobs.strategy.is_some() && knobs.engine.is_none() && knobs.trainer.is_none()
}
