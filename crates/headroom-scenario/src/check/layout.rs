//! Checks how the GPUs share the work, and the effective batch against the wanted one.

use super::{Case, Problems};
use crate::{
    Checkpointing, CommHook, Compile, Offload, Parallelism, Precision, Quantization, Schedule,
    Trainer,
};

pub(super) fn check(case: &Case, problems: &mut Problems) {
    division(case, problems);
    sharding(case, problems);
    one_process(case, problems);
    batch(case, problems);
}

/// Whether each part of the layout divides what it is to divide.
fn division(case: &Case, problems: &mut Problems) {
    let layout = &case.scenario.parallel;
    let [tp, pp, cp, ep] = [layout.tp, layout.pp, layout.cp, layout.ep].map(u64::from);
    let gpus = u64::from(case.scenario.hardware.gpus);
    let shared = tp.saturating_mul(pp).saturating_mul(cp);
    if shared > 1 && !gpus.is_multiple_of(shared.max(1)) {
        let expected = format!(
            "a multiple of {shared}, the GPUs of one copy (tensor {tp} × pipeline {pp} × context {cp})"
        );
        problems.refuse("hardware.gpus", expected);
    }
    if tp > 1 {
        match (case.size("heads"), case.size("kv")) {
            (Some(heads), _) if !heads.is_multiple_of(tp) => {
                let expected = format!("a divisor of the model's {heads} attention heads");
                problems.refuse("parallel.tp", expected);
            }
            (_, Some(kv)) if !kv.is_multiple_of(tp) && !tp.is_multiple_of(kv.max(1)) => {
                let expected =
                    format!("a divisor or a multiple of the model's {kv} key-value heads");
                problems.refuse("parallel.tp", expected);
            }
            _ => {}
        }
        let on_a_machine = gpus / u64::from(case.scenario.hardware.nodes.max(1));
        if tp > on_a_machine.max(1) {
            let expected = format!(
                "at most {on_a_machine}, the GPUs of one machine: between machines it is slow"
            );
            problems.warn("parallel.tp", expected);
        }
    }
    if let Some(layers) = case.size("layers").filter(|_| pp > 1) {
        if pp > layers {
            let expected = format!("at most the model's {layers} layers");
            problems.refuse("parallel.pp", expected);
        } else if !layers.is_multiple_of(pp) {
            let expected = format!(
                "a divisor of the model's {layers} layers, or one GPU holds more than another"
            );
            problems.warn("parallel.pp", expected);
        }
        if case.scenario.training.accumulation < pp {
            let expected = format!(
                "at least {pp}, one micro-batch for each stage, or stages wait for each other"
            );
            problems.warn("training.accumulation", expected);
        }
        // `ScheduleInterleaved1F1B` and `ScheduleInterleavedZeroBubble` go through the stages in rounds.
        let in_rounds = matches!(
            layout.schedule,
            Schedule::Interleaved | Schedule::ZeroBubble
        );
        let micro_batches = case.scenario.training.accumulation;
        let rounds = (micro_batches / pp).max(1);
        if in_rounds && !micro_batches.is_multiple_of(rounds) {
            let expected = format!(
                "a multiple of {rounds}: this schedule runs micro-batches in rounds of that size"
            );
            problems.refuse("training.accumulation", expected);
        }
    }
    let selective = matches!(
        case.scenario.training.checkpointing,
        Checkpointing::KeepAttention | Checkpointing::KeepHalf | Checkpointing::KeepMatmuls
    );
    if layout.splits_backward() && selective {
        problems.refuse(
            "training.checkpointing",
            "none or layers: this schedule splits backward in two, which selective checkpointing does not allow",
        );
    }
    let sequence = case.scenario.data.sequence;
    if cp > 1 && !sequence.is_multiple_of(cp.saturating_mul(2)) {
        let expected = format!("a multiple of {}, twice parallel.cp", cp.saturating_mul(2));
        problems.refuse("data.sequence", expected);
    }
    if ep > 1 {
        match case.size("experts") {
            None | Some(0) => problems.refuse("parallel.ep", "1: the model has no experts"),
            Some(experts) if !experts.is_multiple_of(ep) => {
                let expected = format!("a divisor of the model's {experts} experts");
                problems.refuse("parallel.ep", expected);
            }
            Some(_) if !(gpus / pp.max(1)).is_multiple_of(ep) => {
                problems.refuse("parallel.ep", "a divisor of the GPUs of one pipeline stage");
            }
            Some(_) => {}
        }
    }
}

/// What does not go together with divided states, gradients or weights.
fn sharding(case: &Case, problems: &mut Problems) {
    use Parallelism::{DataParallel, Ddp, Fsdp1, Fsdp2, Hsdp, None, Zero0, Zero1, Zero2, Zero3};
    let layout = &case.scenario.parallel;
    let training = &case.scenario.training;
    let several = case.scenario.hardware.gpus > 1;
    match (layout.offload, layout.strategy) {
        (Offload::None, _) => {}
        (_, None | Ddp | DataParallel | Zero0) => problems.refuse(
            "parallel.offload",
            "none: only ZeRO and FSDP keep anything on the host (for one GPU, see adamw-offload)",
        ),
        (Offload::Parameters, Zero1 | Zero2) => problems.refuse(
            "parallel.offload",
            "none or optimizer: ZeRO keeps weights on the host at stage 3 only",
        ),
        (Offload::Optimizer, Fsdp1 | Fsdp2 | Hsdp) => problems.warn(
            "parallel.offload",
            "parameters: FSDP keeps weights, gradients and states on the host together",
        ),
        _ => {}
    }
    // bitsandbytes-foundation/bitsandbytes#89 and #1633, pytorch/torchtune#1856.
    let bitsandbytes = training.optimizer.is_of_bitsandbytes();
    if several && training.optimizer.consumes_gradients() {
        problems.refuse(
            "training.optimizer",
            "another: LOMO on several GPUs is not modelled",
        );
    }
    if several && bitsandbytes && matches!(layout.strategy, Fsdp1 | Fsdp2 | Hsdp) {
        problems.refuse(
            "training.optimizer",
            "adamw-fused, adamw-8bit-ao or another: bitsandbytes' optimizers do not run on FSDP's sharded weights",
        );
    }
    let zero = matches!(layout.strategy, Zero0 | Zero1 | Zero2 | Zero3);
    if several && zero && training.optimizer_in_backward {
        problems.refuse(
            "training.optimizer_in_backward",
            "off: ZeRO steps its own parts",
        );
    }
    if several && zero && layout.zero_bf16_master {
        let half = matches!(
            training.precision,
            Precision::AmpBf16 | Precision::Bf16 | Precision::AmpBf16OnBf16
        );
        if !half || layout.offload != Offload::None {
            problems.refuse(
                "parallel.zero_bf16_master",
                "off, or bf16 precision without offload",
            );
        }
    }
    let hooked = layout.strategy == Ddp && layout.comm_hook != CommHook::None;
    if several && hooked && training.optimizer_in_backward {
        problems.refuse(
            "training.optimizer_in_backward",
            "off: communication hooks return a bucket's gradients only after those steps",
        );
    }
    let fully = matches!(layout.strategy, Fsdp2 | Hsdp | Zero3) && layout.reshard_to > 0;
    let shards = case.scenario.mesh().shard;
    if several && fully && !shards.is_multiple_of(layout.reshard_to) {
        let expected =
            format!("0, or a divisor of the {shards} GPUs that weights are sharded over");
        problems.refuse("parallel.reshard_to", expected);
    }
    if several && layout.strategy == Hsdp && case.scenario.hardware.nodes < 2 {
        problems.warn(
            "parallel.strategy",
            "fsdp2: with one machine there is nothing to replicate between",
        );
    }
    if !several
        && layout.tp.max(layout.pp).max(layout.cp) == 1
        && layout.strategy != Ddp
        && layout.strategy != None
    {
        problems.warn(
            "parallel.strategy",
            "none: one GPU needs no data parallelism (or hardware.gpus above 1)",
        );
    }
}

/// What does not go together with one process for all GPUs.
fn one_process(case: &Case, problems: &mut Problems) {
    let scenario = case.scenario;
    let (layout, training) = (&scenario.parallel, &scenario.training);
    if layout.strategy != Parallelism::DataParallel || scenario.hardware.gpus < 2 {
        return;
    }
    if scenario.hardware.nodes > 1 {
        let expected = "1 under DataParallel: one process has the GPUs of its own machine";
        problems.refuse("hardware.nodes", expected);
    }
    for (path, ways) in case.within_a_model() {
        if ways > 1 {
            problems.refuse(path, "1: DataParallel replicates whole models (use ddp)");
        }
    }
    // `Trainer._wrap_model` leaves such a model on one GPU; copies of its weights lose their scales (`replicate`).
    if training.quantization != Quantization::None {
        let expected = "none: DataParallel cannot copy quantised weights (ddp can, with torchrun)";
        problems.refuse("training.quantization", expected);
    }
    if training.checkpointing == Checkpointing::Offload {
        let expected = "none or layers: saved-tensor hooks are thread-local, and DataParallel replicas run in other threads";
        problems.refuse("training.checkpointing", expected);
    }
    if training.compile != Compile::Nothing {
        let expected = "nothing: copies of compiled modules under DataParallel are not modelled";
        problems.refuse("training.compile", expected);
    }
    if training.channels_last {
        let expected = "off: DataParallel sends weights as rows, and that is not modelled";
        problems.refuse("training.channels_last", expected);
    }
    let autocast = training.precision.autocasts();
    // `accelerator.prepare` is not called on a wrapped model (`_prepare_for_training`), and it is that which adds autocast.
    if autocast && scenario.stack.trainer != Trainer::Torch {
        let expected = "fp32, bf16 or fp16: under DataParallel transformers' Trainer sets no autocast (ddp does, with torchrun)";
        problems.refuse("training.precision", expected);
    } else if autocast && !training.precision.scales_gradients() {
        let expected =
            "amp-fp16: DataParallel's threads do not inherit autocast's type, and compute in fp16";
        problems.warn("training.precision", expected);
    }
    problems.warn(
        "parallel.strategy",
        "ddp, a process for each GPU: under DataParallel the first GPU holds the model, all gradients and all outputs, and is slower",
    );
}

/// Checks that accumulation reaches the wanted global batch as closely as possible.
fn batch(case: &Case, problems: &mut Problems) {
    let batch = case.scenario.batch();
    let Some(nearest) = batch.nearest_accumulation() else {
        return;
    };
    let best = crate::Batch {
        accumulation: nearest,
        ..batch
    };
    if batch.accumulation != nearest {
        problems.warn(
            "training.accumulation",
            format!("{nearest} for the wanted batch: {best}"),
        );
    } else if batch.wanted != Some(batch.samples()) {
        let once = batch.micro_batch.saturating_mul(batch.replicas);
        let expected = format!(
            "a multiple of {once}, which accumulation can meet exactly: {best} is the nearest"
        );
        problems.warn("data.global_batch", expected);
    }
}
