//! What to change for each cause, and what would make the diagnosis more certain.

use super::{Cause, Findings, Ranked, Source};

/// A change that ends failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    SmallerBatch,
    ShorterLength,
    Checkpointing,
    SmallerOptimizer,
    Offload,
    RaiseLimit,
    LongestFirst,
    Detach,
    ExpandableSegments,
    NoGradient,
    LoadOnHost,
    StopOthers,
    ChooseDevice,
    HostMemory,
    SharedMemory,
    OtherVersion,
    CheckOnHost,
    CheckShapes,
    MetalLimit,
    OtherFramework,
    NewEvent,
    WholeError,
    BalanceStages,
    LeaveRoom,
    FirstError,
    SamplerShare,
}

impl Change {
    pub const fn text(self) -> &'static str {
        match self {
            Self::SmallerBatch => {
                "Use a smaller micro-batch and accumulate gradients to keep the effective batch; where one sample does not fit, a \
                 smaller model, adapters or a larger GPU."
            }
            Self::ShorterLength => {
                "Cap or bucket lengths or image sizes: cut long samples, or batch by total tokens instead of by samples."
            }
            Self::Checkpointing => "Turn on activation checkpointing.",
            Self::SmallerOptimizer => {
                "Use an optimizer with smaller states (8-bit, Adafactor), or divide them between GPUs (ZeRO, FSDP)."
            }
            Self::Offload => {
                "Gather and keep state dicts on the CPU (FSDP's offload_to_cpu, rank0_only), or save sharded; offload states."
            }
            Self::RaiseLimit => {
                "Raise or remove set_per_process_memory_fraction: that limit, not the GPU, refused the request."
            }
            Self::LongestFirst => {
                "Run the longest batch first: later batches reuse its blocks, and the run fails at once or not at all."
            }
            Self::Detach => {
                "Keep numbers, not tensors: `loss.item()` or `.detach().cpu()` in lists, logs and metrics; call backward in each \
                 step."
            }
            Self::ExpandableSegments => {
                "Set PYTORCH_CUDA_ALLOC_CONF and PYTORCH_ALLOC_CONF to expandable_segments:True; some versions read only one \
                 name. Not on Windows."
            }
            Self::NoGradient => {
                "Evaluate under torch.no_grad() with a batch size of its own, and move predictions to the CPU as they come."
            }
            Self::LoadOnHost => {
                "Load checkpoints with map_location=\"cpu\" and drop the dict after load_state_dict, so that it does not stay on \
                 the GPU."
            }
            Self::StopOthers => {
                "Stop or move the other process; a crashed run may still hold memory: nvidia-smi lists processes, fuser -v \
                 /dev/nvidia* finds hidden ones."
            }
            Self::ChooseDevice => {
                "Give each rank its own GPU: check the spelling of CUDA_VISIBLE_DEVICES, and call \
                 torch.cuda.set_device(local_rank) before anything else touches CUDA."
            }
            Self::HostMemory => {
                "Give the job more host memory, or lower the DataLoader's num_workers and prefetch_factor; bound what buffers and \
                 caches keep."
            }
            Self::SharedMemory => {
                "Raise the container's shared memory (docker run --shm-size=8g or --ipc=host), or lower num_workers."
            }
            Self::OtherVersion => {
                "Try another version of the driver, of PyTorch or of the library that fails; look for the error among its issues."
            }
            Self::CheckOnHost => {
                "Run one batch on the CPU, or with CUDA_LAUNCH_BLOCKING=1: ids must be below the vocabulary's size, labels below \
                 the number of classes."
            }
            Self::CheckShapes => {
                "Print the shapes before the line that fails: an index or a length holds a wrong number."
            }
            Self::MetalLimit => {
                "Close other programs, call torch.mps.empty_cache(), use a smaller model or batch; \
                 PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 lifts the limit at the system's risk."
            }
            Self::OtherFramework => {
                "Look in that framework's own documentation: it takes the whole GPU at its start unless it is told not to."
            }
            Self::NewEvent => {
                "Check what starts at this step: unfreezing, another loss, longer sequences, a copy of the weights (EMA), which \
                 may stay on the CPU."
            }
            Self::WholeError => {
                "Run again with CUDA_LAUNCH_BLOCKING=1 and paste the whole error message."
            }
            Self::BalanceStages => {
                "Give the fullest stage fewer layers (Megatron's --decoder-first-pipeline-num-layers, torchtitan's \
                 pipeline_parallel_first_stage_less_layers), or keep fewer micro-batches in flight."
            }
            Self::LeaveRoom => {
                "Leave NCCL room outside PyTorch's allocator: a lower set_per_process_memory_fraction or a smaller batch, \
                 torch.cuda.empty_cache() before a new group of ranks, a smaller NCCL_BUFFSIZE."
            }
            Self::SamplerShare => {
                "Give vLLM less of the GPU (gpu_memory_utilization; max_num_seqs and max_model_len bound its trial run), put it to \
                 sleep between rounds (vllm_enable_sleep_mode), or run it on a GPU of its own."
            }
            Self::FirstError => {
                "Look for the first error of any rank: the others fail in NCCL once one has died. NCCL_DEBUG=INFO says more."
            }
        }
    }
}

/// What to change for one cause, cheapest first.
fn of_cause(cause: Cause, findings: &Findings, uneven: bool) -> Vec<Change> {
    use Change::{
        BalanceStages, CheckOnHost, CheckShapes, Checkpointing, ChooseDevice, Detach,
        ExpandableSegments, FirstError, HostMemory, LeaveRoom, LoadOnHost, LongestFirst,
        MetalLimit, NewEvent, NoGradient, Offload, OtherFramework, OtherVersion, RaiseLimit,
        SamplerShare, SharedMemory, ShorterLength, SmallerBatch, SmallerOptimizer, StopOthers,
        WholeError,
    };
    let failure = findings.failure.as_ref();
    let on_mps = failure.is_some_and(|failure| failure.source == Source::Mps);
    let limited = failure.is_some_and(|failure| failure.allowed.is_some());
    let expandable = failure.is_some_and(|failure| failure.expandable);
    let in_nccl =
        findings.signs.nccl.is_some() && failure.is_none_or(|failure| failure.tried.is_none());
    let mut changes = match cause {
        Cause::Capacity if limited => vec![RaiseLimit, SmallerBatch],
        Cause::Capacity if findings.signs.sampler => vec![SamplerShare, SmallerBatch],
        Cause::Capacity if in_nccl => vec![LeaveRoom, SmallerBatch, ChooseDevice],
        Cause::Capacity if uneven => vec![BalanceStages, SmallerBatch, Checkpointing],
        Cause::Capacity => vec![SmallerBatch, ShorterLength, Checkpointing, SmallerOptimizer],
        Cause::Outlier => vec![ShorterLength, LongestFirst, SmallerBatch],
        Cause::Attention => vec![ShorterLength, SmallerBatch, CheckShapes],
        Cause::Leak => vec![Detach, NoGradient],
        Cause::Fragmentation if expandable => vec![SmallerBatch, LongestFirst],
        Cause::Fragmentation => vec![ExpandableSegments, LongestFirst, SmallerBatch],
        Cause::Evaluation => vec![NoGradient, ShorterLength, SmallerBatch],
        Cause::Checkpoint => vec![Offload, LoadOnHost],
        Cause::Schedule => vec![NewEvent, NoGradient, Offload],
        Cause::OptimizerStep => vec![SmallerOptimizer, Offload],
        Cause::OtherProcess => vec![StopOthers, ChooseDevice],
        Cause::WrongDevice => vec![ChooseDevice, LoadOnHost],
        Cause::HostMemory => vec![HostMemory],
        Cause::SharedMemory => vec![SharedMemory, HostMemory],
        Cause::LibraryBug => vec![OtherVersion],
        Cause::NotOutOfMemory if findings.signs.foreign.is_some() => vec![OtherFramework],
        Cause::NotOutOfMemory if in_nccl => vec![FirstError, ChooseDevice, OtherVersion],
        Cause::NotOutOfMemory => vec![CheckOnHost, CheckShapes, OtherVersion],
        Cause::Unknown => vec![WholeError, OtherVersion],
    };
    if on_mps {
        changes.insert(0, MetalLimit);
    }
    changes
}

/// What to change: for the first cause, and for those that may as well be it.
pub(super) fn recommended(ranking: &[Ranked], findings: &Findings, uneven: bool) -> Vec<Change> {
    const MOST: usize = 6;
    /// A cause with this much of the first one's share is worth a change too.
    const NEAR: f64 = 0.35;
    let first = ranking.first().map_or(0.0, |ranked| ranked.confidence);
    let mut all: Vec<Change> = Vec::new();
    for ranked in ranking
        .iter()
        .filter(|ranked| ranked.confidence >= NEAR * first)
    {
        for change in of_cause(ranked.cause, findings, uneven) {
            if !all.contains(&change) && all.len() < MOST {
                all.push(change);
            }
        }
    }
    all
}

/// What to find out, most informative first: one question is enough at a time.
pub(super) fn checks(cause: Cause, findings: &Findings, with_scenario: bool) -> Vec<String> {
    let mut all = Vec::new();
    let failure = findings.failure.as_ref();
    let on_host = matches!(cause, Cause::HostMemory | Cause::SharedMemory);
    if on_host {
        all.push(
            "The last lines of `dmesg`, and the size of /dev/shm (`df -h /dev/shm`).".to_string(),
        );
        return all;
    }
    if findings.signs.activities.is_empty() && findings.log.is_none() {
        all.push(
            "The last 20 lines of the traceback, and the step: they say what ran.".to_string(),
        );
    }
    if failure.is_none_or(|failure| failure.allocated.is_none()) && findings.summary.is_none() {
        all.push("The whole error message: its numbers, not only the first line.".to_string());
    }
    if findings.log.is_none() {
        all.push("Is torch.cuda.memory_allocated() between steps level? A probe log shows growth, jumps and batch sizes.".into());
    }
    if !with_scenario {
        all.push("The scenario: its predicted peak separates capacity from fragmentation.".into());
    }
    let elsewhere = matches!(
        cause,
        Cause::OtherProcess | Cause::WrongDevice | Cause::Unknown
    );
    if findings.smi.is_none() && elsewhere {
        all.insert(
            0,
            "nvidia-smi while the program runs: all processes and GPUs.".into(),
        );
    }
    all
}
