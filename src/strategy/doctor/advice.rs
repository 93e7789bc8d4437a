//! What to change for each cause, and what would make the diagnosis surer.

use super::{Cause, Findings, Source};

/// What to change, cheapest first.
pub(super) fn changes(cause: Cause, findings: &Findings) -> Vec<String> {
    let failure = findings.failure.clone().unwrap_or_default();
    if failure.source == Source::Host {
        return own(&[
            "Give the job more host memory, or lower the data loader's workers and prefetch_factor.",
            "Lightning, Accelerate and offloading keep copies on the host: count them in.",
        ]);
    }
    let mut all = match cause {
        Cause::Capacity => own(&[
            "Make the micro-batch smaller and accumulate gradients to keep the effective batch.",
            "Switch on checkpointing, or a lower precision, or an optimizer with smaller states.",
            "Headroom's ladder lists what is enough for a given card, with what it costs.",
        ]),
        Cause::Outlier => own(&[
            "Run the longest batch first: it then fails at once or never.",
            "Cap or bucket lengths, or batch by total size instead of by count.",
            "Make the micro-batch smaller for the largest batches and accumulate.",
        ]),
        Cause::Leak => own(&[
            "Keep numbers, not tensors: `loss.item()` or `loss.detach().cpu()` in lists, logs and metrics.",
            "Move predictions to the host inside the loop, and reset metrics after each evaluation.",
            "Compare torch.cuda.memory_allocated() at the end of each step: it must stay level.",
        ]),
        Cause::Fragmentation if failure.expandable => own(&[
            "Expandable segments are on already: what is left is a card filled to the brim. A slightly smaller batch helps.",
        ]),
        Cause::Fragmentation => own(&[
            "Set PYTORCH_CUDA_ALLOC_CONF and PYTORCH_ALLOC_CONF to expandable_segments:True; some versions read only one name. \
             Not on Windows.",
            "Run the longest batch first, so that its blocks are there to be reused.",
            "Where segments cannot expand, garbage_collection_threshold acts only with a memory fraction, and \
             max_split_size_mb often makes it worse.",
        ]),
        Cause::Schedule => own(&[
            "Look at what begins at this step: evaluation, saving, unfreezing, another loss, longer sequences.",
            "Evaluate under torch.no_grad() with a batch of its own, and bring predictions to the host as they come.",
            "Keep copies of the weights (EMA, best model) on the host.",
        ]),
        Cause::OtherProcess => own(&[
            "End or move the other process, or ask the scheduler for the card alone.",
            "A crashed run may still hold memory: nvidia-smi lists processes, fuser -v /dev/nvidia* finds hidden ones.",
        ]),
        Cause::WrongDevice => own(&[
            "Choose the card with CUDA_VISIBLE_DEVICES, and call torch.cuda.set_device(local_rank) before anything else \
             touches the GPU.",
            "Load checkpoints with map_location, so that no rank opens a context on GPU 0.",
        ]),
        Cause::Unknown => {
            own(&["Run again with CUDA_LAUNCH_BLOCKING=1 and paste the whole error."])
        }
    };
    if failure.allowed.is_some() && cause == Cause::Capacity {
        all.insert(
            0,
            "Raise or remove set_per_process_memory_fraction: the limit, not the card, refused."
                .into(),
        );
    }
    all
}

/// What to find out, the most telling first.
pub(super) fn checks(cause: Cause, findings: &Findings, with_scenario: bool) -> Vec<String> {
    let mut all = Vec::new();
    let failure = findings.failure.as_ref();
    if failure.is_none_or(|it| it.allocated.is_none()) && findings.summary.is_none() {
        all.push("The whole error: its numbers, not only its first line.".to_string());
    }
    if findings.log.is_none() {
        all.push(
            "A probe log of the steps before: it shows growth, jumps and the size of each batch."
                .into(),
        );
    }
    if findings.place.step.is_none() {
        all.push("The step at which it failed: early speaks for capacity, late for one batch, a leak or a schedule.".into());
    }
    if !with_scenario {
        all.push(
            "The scenario: with its predicted peak, need and fragmentation are told apart.".into(),
        );
    }
    if findings.smi.is_none()
        && matches!(
            cause,
            Cause::OtherProcess | Cause::WrongDevice | Cause::Unknown
        )
    {
        all.push("nvidia-smi while the program runs: every process and card.".into());
    }
    all
}

fn own(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|it| (*it).to_string()).collect()
}
