//! What to change for each cause, and what would make the diagnosis more certain.

use super::{Cause, Findings, Source};

/// What to change, cheapest first.
pub(super) fn changes(cause: Cause, findings: &Findings) -> Vec<String> {
    let failure = findings.failure.clone().unwrap_or_default();
    if failure.source == Source::Host {
        return own(&[
            "Give the job more host memory, or lower the DataLoader's num_workers and prefetch_factor.",
            "Include the copies that Lightning, Accelerate and offloading keep on the host.",
        ]);
    }
    let mut all = match cause {
        Cause::Capacity => own(&[
            "Use a smaller micro-batch and accumulate gradients to keep the effective batch.",
            "Turn on activation checkpointing, lower the precision, or use an optimizer with smaller states.",
            "Headroom's ladder lists which changes are enough for a given GPU, and what they cost.",
        ]),
        Cause::Outlier => own(&[
            "Run the longest batch first: the run then fails at once or not at all.",
            "Cap or bucket lengths, or batch by total tokens instead of by samples.",
            "Use a smaller micro-batch for the largest batches and accumulate.",
        ]),
        Cause::Leak => own(&[
            "Keep numbers, not tensors: `loss.item()` or `loss.detach().cpu()` in lists, logs and metrics.",
            "Move predictions to the CPU inside the loop, and reset metrics after each evaluation.",
            "Compare torch.cuda.memory_allocated() at the end of each step: it should stay constant.",
        ]),
        Cause::Fragmentation if failure.expandable => own(&[
            "Expandable segments are already on: the GPU is simply full. A slightly smaller batch helps.",
        ]),
        Cause::Fragmentation => own(&[
            "Set PYTORCH_CUDA_ALLOC_CONF and PYTORCH_ALLOC_CONF to expandable_segments:True; some versions read only one name. \
             Not on Windows.",
            "Run the longest batch first, so that later batches reuse its blocks.",
            "Where segments cannot expand, garbage_collection_threshold acts only with a memory fraction, and \
             max_split_size_mb often makes it worse.",
        ]),
        Cause::Schedule => own(&[
            "Check what starts at this step: evaluation, saving, unfreezing, another loss, longer sequences.",
            "Evaluate under torch.no_grad() with its own batch size, and move predictions to the CPU as they come.",
            "Keep copies of the weights (EMA, best model) on the CPU.",
        ]),
        Cause::OtherProcess => own(&[
            "Stop or move the other process, or ask the scheduler for exclusive use of the GPU.",
            "A crashed run may still hold memory: nvidia-smi lists processes, fuser -v /dev/nvidia* finds hidden ones.",
        ]),
        Cause::WrongDevice => own(&[
            "Select the GPU with CUDA_VISIBLE_DEVICES, and call torch.cuda.set_device(local_rank) before anything else \
             touches CUDA.",
            "Load checkpoints with map_location, so that no other rank creates a context on GPU 0.",
        ]),
        Cause::Unknown => {
            own(&["Run again with CUDA_LAUNCH_BLOCKING=1 and paste the whole error message."])
        }
    };
    if failure.allowed.is_some() && cause == Cause::Capacity {
        all.insert(
            0,
            "Raise or remove set_per_process_memory_fraction: that limit, not the GPU, refused the request."
                .into(),
        );
    }
    all
}

/// What to find out, most informative first.
pub(super) fn checks(cause: Cause, findings: &Findings, with_scenario: bool) -> Vec<String> {
    let mut all = Vec::new();
    let failure = findings.failure.as_ref();
    if failure.is_none_or(|failure| failure.allocated.is_none()) && findings.summary.is_none() {
        all.push("The whole error message: its numbers, not only the first line.".to_string());
    }
    if findings.log.is_none() {
        all.push("A probe log of the steps before: it shows growth, jumps and batch sizes.".into());
    }
    if findings.moment.step.is_none() {
        all.push("The step at which it failed: an early one suggests capacity, a late one an outlier batch, a leak or a schedule.".into());
    }
    if !with_scenario {
        all.push("The scenario: its predicted peak separates capacity from fragmentation.".into());
    }
    if findings.smi.is_none()
        && matches!(
            cause,
            Cause::OtherProcess | Cause::WrongDevice | Cause::Unknown
        )
    {
        all.push("nvidia-smi while the program runs: all processes and GPUs.".into());
    }
    all
}

fn own(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_string()).collect()
}
