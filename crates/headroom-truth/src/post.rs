//! Trainers of TRL and loops written by hand: `trainer` or `kind`, with weights and autocast in types of their own.

use super::knobs::Knobs;
use super::record::refuse;
use headroom_core::network::Libraries;
use headroom_scenario::{
    AdapterMethod, Checkpointing, Data, EvaluationOutput, Kernels, LmHead, Objective, Optimizer,
    Precision, Reference, ReferenceDtype, Sampler, Task, Training,
};

/// The precision of weights kept in one type under autocast to another.
pub fn precision(weights: &str, autocast: &str) -> Result<Precision, String> {
    Ok(match (weights, autocast) {
        ("bf16", "") => Precision::Bf16,
        ("fp32", "") => Precision::Fp32,
        ("fp32", "bf16") => Precision::AmpBf16,
        ("bf16", "bf16") => Precision::AmpBf16OnBf16,
        ("fp16", "fp16") => Precision::AmpFp16OnFp16,
        ("fp16", "") => Precision::Fp16,
        _ => {
            return Err(format!(
                "weights in `{weights}` under `{autocast}` are not known"
            ));
        }
    })
}

/// The type of autocast. TRL's trainers run with `bf16=True`, and so does transformers' evaluation.
pub fn autocast(knobs: &Knobs) -> &str {
    match (knobs.trainer.is_some(), knobs.kind.as_deref()) {
        (false, Some("eval")) if knobs.fk.bf16 == Some(false) => "",
        (true, _) | (_, Some("eval")) => "bf16",
        _ => &knobs.amp,
    }
}

/// What TRL's trainers do by themselves.
pub fn libraries(knobs: &Knobs) -> Libraries {
    let is_trl = is_trainer(knobs);
    Libraries {
        fp32_embedding_states: is_trl,
        offloads_as_trl: is_trl,
        ..Libraries::NEWEST
    }
}

/// Whether one of TRL's trainers runs and its data is read back from the device.
pub fn is_trainer(knobs: &Knobs) -> bool {
    match &knobs.strategy {
        Some(_) => objective(knobs).is_ok_and(|objective| objective != Objective::Sft),
        None => knobs.wdtype.is_some() && knobs.trainer.is_some(),
    }
}

pub fn steps(knobs: &Knobs) -> u32 {
    let is_task = knobs.wdtype.is_some() && (knobs.trainer.is_some() || knobs.kind.is_some());
    match knobs.steps {
        Some(steps) if is_task => steps.clamp(2, 3) as u32,
        None if is_task => 2,
        _ => 3,
    }
}

pub fn apply(knobs: &Knobs, data: &mut Data, training: &mut Training) -> Result<(), String> {
    if knobs.wdtype.is_none() {
        return Ok(());
    }
    if knobs.trainer.is_some() {
        of_trainer(knobs, data, training)?;
    } else if let Some(kind) = &knobs.kind {
        by_hand(knobs, kind, data, training)?;
    } else {
        return Ok(());
    }
    training.clip = true;
    Ok(())
}

fn of_trainer(knobs: &Knobs, data: &mut Data, training: &mut Training) -> Result<(), String> {
    let args = &knobs.args;
    if let Some(peft) = &knobs.peft {
        refuse(&peft.rest, &["lora_alpha", "task_type"])?;
        training.lora = Some(peft.adapters.recorded(AdapterMethod::Lora));
    }
    data.packing = args.packing || args.padding_free;
    data.padding_mask = !knobs.lens.is_empty() && !data.packing;
    training.task = task(knobs, training.lora.is_some())?;
    if knobs.liger {
        training.kernels = Kernels::Liger;
    }
    if args.activation_offloading {
        if training.checkpointing != Checkpointing::None {
            return Err("offloaded activations of checkpointed layers are not modelled".into());
        }
        training.checkpointing = Checkpointing::Offload;
    }
    training.optimizer = match args.optim.as_str() {
        "" | "adamw_torch_fused" => Optimizer::AdamWFused,
        "adamw_torch" => Optimizer::AdamW,
        "adafactor" => Optimizer::AdafactorHf,
        "adamw_8bit" | "adamw_bnb_8bit" => Optimizer::AdamW8bit,
        "paged_adamw" | "paged_adamw_32bit" => Optimizer::PagedAdamW,
        "paged_adamw_8bit" => Optimizer::PagedAdamW8bit,
        "lion_8bit" => Optimizer::Lion8bit,
        "sgd" => Optimizer::Sgd,
        other => return Err(format!("the optimizer `{other}` is not modelled")),
    };
    Ok(())
}

pub fn objective(knobs: &Knobs) -> Result<Objective, String> {
    Ok(match knobs.trainer.as_deref().unwrap_or_default() {
        "cpo" if knobs.args.loss_type.text() == "simpo" => Objective::SimPo,
        "distill" => Objective::Distillation,
        other => Objective::from_id(other)
            .ok_or_else(|| format!("the trainer `{other}` is not modelled"))?,
    })
}

/// What a trainer of TRL trains for.
pub fn task(knobs: &Knobs, has_adapters: bool) -> Result<Task, String> {
    let args = &knobs.args;
    refuse(
        &args.rest,
        &[
            "assistant_only_loss",
            "cpo_alpha",
            "loss_weights",
            "max_grad_norm",
            "max_length",
            "temperature",
            "use_weighting",
        ],
    )?;
    let objective = objective(knobs)?;
    let (prompt, completion) = (knobs.prompt.unwrap_or(1), knobs.completion.unwrap_or(1));
    // The prompt of a conversation has a token more, with which the answer begins.
    let begins = match (objective, knobs.data.as_str()) {
        (Objective::Sft | Objective::Gkd, "conv") => prompt + 1,
        (Objective::Sft | Objective::Gkd, "pc") => prompt,
        (Objective::Sft, _) => 0,
        (Objective::Gkd, _) => prompt + 1,
        _ => prompt,
    };
    let answer = 1.0 - begins as f64 / knobs.seq.unwrap_or(1).max(1) as f64;
    // The mean of the lengths that rows are cut to, as shares of the sequence.
    let lengths = knobs.lens.len().max(1) as f64;
    let length = match knobs.lens.iter().sum::<f64>() / lengths {
        0.0 => 1.0,
        mean => mean,
    };
    let samples = matches!(objective, Objective::Grpo | Objective::Rloo);
    let no_penalty = match args.beta {
        Some(beta) => beta == 0.0,
        None => objective == Objective::Grpo,
    };
    Ok(Task {
        objective,
        labelled: answer * length,
        reference: if args.precompute_ref_log_probs {
            Reference::Precomputed
        } else if no_penalty && samples {
            Reference::None
        } else if has_adapters {
            Reference::AdaptersOff
        } else {
            Reference::Copy
        },
        reference_type: match knobs.ref_dtype.as_str() {
            "bf16" => ReferenceDtype::Bf16,
            "fp32" => ReferenceDtype::Fp32,
            // By name a reference is loaded in fp32.
            _ if samples => ReferenceDtype::Fp32,
            _ if objective.has_teacher() => ReferenceDtype::Bf16,
            _ => ReferenceDtype::Same,
        },
        teacher: knobs.teacher["model"].as_str().unwrap_or_default().into(),
        on_policy: args.lmbda >= 1.0 || args.seq_kd,
        prompt: if objective == Objective::Gkd {
            prompt + 1
        } else {
            prompt
        },
        completion,
        generations: knobs.num_gen.unwrap_or(1),
        generation_batches: args.steps_per_generation,
        iterations: args.num_iterations.unwrap_or(1),
        fp32_head: args.cast_lm_head_to_fp32,
        ..Task::default()
    })
}

/// Loops over library models (`hand.py`).
fn by_hand(
    knobs: &Knobs,
    kind: &str,
    data: &mut Data,
    training: &mut Training,
) -> Result<(), String> {
    let fk = &knobs.fk;
    refuse(&fk.rest, &["full", "sample", "temp"])?;
    let objective = match kind {
        "dpo_logits" | "liger_dpo" => Objective::Dpo,
        "grpo_logits" | "liger_grpo" => Objective::Grpo,
        "liger_orpo" => Objective::Orpo,
        "liger_cpo" => Objective::Cpo,
        "liger_simpo" => Objective::SimPo,
        "ppo" => Objective::Ppo,
        "gen" => Objective::Generation,
        "eval" => Objective::Evaluation,
        other => return Err(format!("the loop `{other}` is not modelled")),
    };
    let batches = fk.batches.unwrap_or(4);
    training.task = Task {
        objective,
        head: if kind.starts_with("liger") {
            LmHead::Liger
        } else if fk.accel == Some(false) {
            LmHead::LogitsByRow
        } else {
            LmHead::Logits
        },
        reference: if knobs.reference {
            Reference::Copy
        } else {
            Reference::None
        },
        prompt: knobs.prompt.unwrap_or(1),
        completion: knobs.completion.unwrap_or(1),
        iterations: if fk.old { 2 } else { 1 },
        sampler: match (objective, fk.cache.as_str()) {
            (Objective::Generation, "static") => Sampler::Static,
            (Objective::Generation, "") | (Objective::Ppo, _) => Sampler::Generate,
            (Objective::Generation, other) => {
                return Err(format!("the cache `{other}` is not modelled"));
            }
            // The recorder supplies the completions.
            _ => Sampler::VllmElsewhere,
        },
        reference_first: fk.ref_first,
        keeps_logits: fk.hold_logits,
        keeps_scores: fk.scores,
        evaluated: if fk.loss_only || fk.metrics == Some(false) {
            EvaluationOutput::Loss
        } else if fk.preprocess {
            EvaluationOutput::Preprocessed
        } else {
            EvaluationOutput::Logits
        },
        evaluation_batches: fk.acc.unwrap_or(batches).min(batches),
        ..Task::default()
    };
    if let (Objective::Ppo, Some(rows)) = (objective, knobs.mb_train) {
        let rounds = (data.micro_batch / rows.max(1)).max(1);
        data.micro_batch = rows;
        training.accumulation = rounds;
        training.task.generation_batches = rounds;
    }
    if objective == Objective::Generation {
        data.micro_batch *= fk.num_return.unwrap_or(1);
    }
    Ok(())
}
