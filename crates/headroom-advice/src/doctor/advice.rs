//! What to change for each cause, and what would make the diagnosis more certain.

use super::{Activity, Cause, Findings, PredictedUsage, Ranked, Source};

/// A change that fixes a failure.
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
    FusedLoss,
    ResetMetrics,
    BoundBoxes,
}

impl Change {
    pub const fn text(self) -> &'static str {
        match self {
            Self::SmallerBatch => {
                "Use a smaller micro-batch and accumulate gradients to keep the effective batch; if a single sample does \
                 not fit, use a smaller model, adapters or a larger GPU."
            }
            Self::ShorterLength => {
                "Cap or bucket sequence lengths or image sizes: truncate long samples, or batch by total tokens instead of by samples."
            }
            Self::Checkpointing => "Turn on activation checkpointing.",
            Self::SmallerOptimizer => {
                "Use an optimizer with smaller states (8-bit, Adafactor), or shard them across GPUs (ZeRO, FSDP)."
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
                "Store numbers, not tensors: use `loss.item()` or `.detach().cpu()` in lists, logs and metrics, and call \
                 backward in every step."
            }
            Self::ExpandableSegments => {
                "Set PYTORCH_CUDA_ALLOC_CONF and PYTORCH_ALLOC_CONF to expandable_segments:True; some versions read only \
                 one of them. Not available on Windows."
            }
            Self::NoGradient => {
                "Evaluate under torch.no_grad() with its own batch size, and move predictions to the CPU batch by batch."
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
                "Give the job more host memory, or lower the DataLoader's num_workers and prefetch_factor; bound the size \
                 of buffers and caches."
            }
            Self::SharedMemory => {
                "Raise the container's shared memory (docker run --shm-size=8g or --ipc=host), or lower num_workers."
            }
            Self::OtherVersion => {
                "Try another version of the driver, PyTorch or the failing library, and search its issues for the error."
            }
            Self::CheckOnHost => {
                "Run one batch on the CPU, or with CUDA_LAUNCH_BLOCKING=1: token ids must be below the vocabulary size, \
                 labels below the number of classes."
            }
            Self::CheckShapes => {
                "Print the shapes before the failing line: an index or a length is wrong."
            }
            Self::MetalLimit => {
                "Close other programs, call torch.mps.empty_cache(), use a smaller model or batch; \
                 PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 lifts the limit, but can make the system unstable."
            }
            Self::OtherFramework => {
                "See that framework's documentation: by default it preallocates most of the GPU."
            }
            Self::NewEvent => {
                "Check what starts at this step: unfreezing, another loss, longer sequences, or an EMA copy of the \
                 weights, which can stay on the CPU."
            }
            Self::WholeError => {
                "Run again with CUDA_LAUNCH_BLOCKING=1 and paste the whole error message."
            }
            Self::BalanceStages => {
                "Give the fullest pipeline stage fewer layers (Megatron's --decoder-first-pipeline-num-layers, \
                 torchtitan's pipeline_parallel_first_stage_less_layers), or keep fewer micro-batches in flight."
            }
            Self::LeaveRoom => {
                "Leave NCCL room outside PyTorch's allocator: a lower set_per_process_memory_fraction or a smaller batch, \
                 torch.cuda.empty_cache() before a new group of ranks, a smaller NCCL_BUFFSIZE."
            }
            Self::SamplerShare => {
                "Give vLLM less of the GPU (gpu_memory_utilization; max_num_seqs and max_model_len bound its profiling \
                 run), put it to sleep between rounds (vllm_enable_sleep_mode), or run it on a GPU of its own."
            }
            Self::FusedLoss => {
                "Compute the loss without whole logits: a fused or chunked cross-entropy (Liger Kernel, torchtune's \
                 LinearCrossEntropyLoss, Cut Cross-Entropy), which keeps a few rows of the vocabulary at a time."
            }
            Self::ResetMetrics => {
                "Reset the metrics after each evaluation (reset-metrics: `self.val_metrics.reset()`): they keep the predictions \
                 of every evaluation."
            }
            Self::BoundBoxes => {
                "Limit the boxes of an image, or assign them on the CPU or in chunks (gpu_assign_thr in MMDetection's \
                 assigners)."
            }
            Self::FirstError => {
                "Look for the first error of any rank: once one dies, the others fail in NCCL. NCCL_DEBUG=INFO prints more."
            }
        }
    }
}

/// What to change for one cause, cheapest first.
fn of_cause(cause: Cause, findings: &Findings, expected: Option<PredictedUsage>) -> Vec<Change> {
    use Change::{
        BalanceStages, BoundBoxes, CheckOnHost, CheckShapes, Checkpointing, ChooseDevice, Detach,
        ExpandableSegments, FirstError, FusedLoss, HostMemory, LeaveRoom, LoadOnHost, LongestFirst,
        MetalLimit, NewEvent, NoGradient, Offload, OtherFramework, OtherVersion, RaiseLimit,
        ResetMetrics, SamplerShare, SharedMemory, ShorterLength, SmallerBatch, SmallerOptimizer,
        StopOthers, WholeError,
    };
    let uneven = expected.is_some_and(|expected| expected.uneven.is_some());
    let grows = expected.is_some_and(|expected| expected.growth.is_some());
    let boxes = findings.signs.activity() == Some(Activity::Boxes);
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
        Cause::Outlier if boxes => vec![BoundBoxes, ShorterLength, SmallerBatch],
        Cause::Outlier => vec![ShorterLength, LongestFirst, SmallerBatch],
        Cause::Attention => vec![ShorterLength, SmallerBatch, CheckShapes],
        Cause::Logits => vec![FusedLoss, SmallerBatch, ShorterLength],
        Cause::Leak if grows => vec![ResetMetrics, Detach],
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

/// The changes for the first cause and for those about as likely.
pub(super) fn recommended(
    ranking: &[Ranked],
    findings: &Findings,
    expected: Option<PredictedUsage>,
) -> Vec<Change> {
    const MOST: usize = 6;
    /// Causes with at least this part of the first one's share get changes too.
    const NEAR: f64 = 0.35;
    let first = ranking.first().map_or(0.0, |ranked| ranked.confidence);
    let mut all: Vec<Change> = Vec::new();
    for ranked in ranking
        .iter()
        .filter(|ranked| ranked.confidence >= NEAR * first)
    {
        for change in of_cause(ranked.cause, findings, expected) {
            if !all.contains(&change) && all.len() < MOST {
                all.push(change);
            }
        }
    }
    all
}

/// What to find out, most informative first.
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
    if findings.signs.activity().is_none() && !findings.signs.traced && findings.log.is_none() {
        all.push(
            "The last 20 lines of the traceback, and the step: they show what was running."
                .to_string(),
        );
    }
    if failure.is_none_or(|failure| failure.allocated.is_none()) && findings.summary.is_none() {
        all.push("The whole error message: its numbers, not only the first line.".to_string());
    }
    if findings.log.is_none() {
        all.push("Is torch.cuda.memory_allocated() constant between steps? A probe log shows growth, jumps and batch sizes.".into());
    }
    if !with_scenario {
        all.push(
            "The scenario: its predicted peak tells too large a run from fragmentation.".into(),
        );
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
