//! The keywords of signs, in lower case.

use super::activity::Activity;

/// Marks of other frameworks' errors.
pub(super) const FOREIGN: &[(&str, &str)] = &[
    ("resource_exhausted", "JAX or TensorFlow"),
    ("xlaruntimeerror", "JAX"),
    ("jaxlib", "JAX"),
    ("tensorflow", "TensorFlow"),
    ("bfc_allocator", "TensorFlow or JAX"),
    ("oom when allocating tensor", "TensorFlow"),
    ("from device: cuda_error_out_of_memory", "TensorFlow"),
    ("mxnet", "MXNet"),
    ("check failed: err == cu", "MXNet"),
    ("paddle", "PaddlePaddle"),
    ("onnxruntime", "ONNX Runtime"),
    ("cupy.cuda", "CuPy"),
    ("ggml", "ggml"),
    ("cudamalloc failed: out of memory", "ggml"),
];
pub(super) const SHARED_MEMORY: &[&str] = &[
    "bus error",
    "shared memory (shm)",
    "out of shared memory",
    "/dev/shm",
    "shared memory segment",
    "unable to open shared memory",
    "unable to mmap",
    // The files through which batches are passed.
    "file </torch_",
    "torch_shm_manager",
];
pub(super) const HOST: &[&str] = &[
    "killed by signal: killed",
    "oom-kill",
    "oom kill",
    "out of memory: kill",
    "out-of-memory: killed",
    "sigkill",
    "signal 9",
    "code = -9",
    "code -9",
    "code: -9",
    "exitcode: -9",
    "exit code 137",
    "defaultcpuallocator",
    "cannot allocate memory",
    " memoryerror",
    "bad_alloc",
    "unable to allocate",
    "ran out of memory on the host",
    "worker exited unexpectedly",
    "exited unexpectedly",
    // Ray's memory monitor, Kubernetes, Slurm and control groups.
    "killed due to the node running low on memory",
    "killed due to memory pressure",
    "system memory low at node",
    // Notebooks.
    "after using all available ram",
    "tried to allocate more memory than is available",
    "exceeds the memory usage threshold",
    "ray.exceptions.outofmemoryerror",
    "oomkilled",
    "oom killed",
    "oom_kill",
    "oom killer",
    "exceeded job memory limit",
    "exceeded memory limit",
    "memory cgroup out of memory",
    "exited (137)",
    "exit status 137",
    "error 137",
    "std::bad_alloc",
    "not enough memory: you tried to allocate",
];
pub(super) const INDEX: &[&str] = &[
    "resource allocation failed",
    "cublas_status_execution_failed",
    "cublas_status_internal_error",
    "cublas_status_invalid_value",
];
/// Handles and workspaces of libraries, which the driver allocates beside PyTorch.
pub(super) const LIBRARY_MEMORY: &[&str] = &[
    "cublas_status_alloc_failed",
    "cublas_status_not_initialized",
    "cudnn_status_alloc_failed",
    "cudnn_status_not_initialized",
    "cusolver_status_alloc_failed",
    "cusparse_status_alloc_failed",
    "unable to find a valid cudnn algorithm",
    "unable to find an engine to execute this computation",
];
pub(super) const DRIVER: &[&str] = &[
    "cuda error: out of memory",
    "cuda driver error",
    "cuda runtime error (2)",
    "hip error: out of memory",
    "hiperroroutofmemory",
    "cudaerrormemoryallocation",
    "cuda_error_out_of_memory",
    "error=2 : out of memory",
    "cuda failure",
    "cudnn_status_alloc_failed",
    "nccl error",
    "ncclunhandledcudaerror",
];
pub(super) const NCCL: &[&str] = &[
    "nccl error",
    "ncclunhandledcudaerror",
    "ncclsystemerror",
    "ncclinternalerror",
    "ncclremoteerror",
    "ncclinvalidusage",
    ONE_CARD,
];
pub(super) const ONE_CARD: &str = "duplicate gpu detected";
/// How NCCL says that an allocation failed.
pub(super) const NCCL_MEMORY: &[&str] = &[
    "out of memory",
    "failed to cuda calloc",
    "failed to cuda malloc",
    "failed to cuda host alloc",
];
pub(super) const DEVICE: &[&str] = &[
    "cuda_visible_devices",
    "set_device",
    "device_map",
    "local_rank",
];
pub(super) const LOADING: &[&str] = &[
    "from_pretrained",
    "load_model",
    "loading checkpoint shards",
    "loading weights",
    "loading model",
    "loading pipeline components",
    ".to(device)",
    ".cuda()",
];
pub(super) const ATTENTION: &[&str] = &[
    "attn",
    "attention",
    "torch.bmm",
    "energy",
    "scores",
    "baddbmm",
    "softmax",
    "max_position",
];
pub(super) const GROWTH: &[&str] = &[
    "increas",
    "growing",
    "grows",
    "grew ",
    "grow ",
    "rising",
    "rises",
    "climb",
    "creep",
    "went from",
    "goes up",
    "went up",
    "going up",
    "leak",
];
/// What grows, in the same sentence.
pub(super) const MEMORY: &[&str] = &["memory", "vram", "gpu usage", "gpu mem"];
/// Advice and settings that mention an increase without growth.
pub(super) const NO_GROWTH: &[&str] = &[
    "try ",
    "increase the",
    "increasing the",
    "allow_growth",
    "memory_growth",
    "please",
    "avoid ",
    "resource_tracker",
    "leaked shared_memory",
];
/// Frames of vLLM, and its errors.
pub(super) const SAMPLER: &[&str] = &[
    "vllm/",
    "cache blocks",
    "`gpu_memory_utilization`",
    "desired gpu memory utilization",
];
/// Frames and log lines by activity, in PyTorch, Transformers, Lightning, Accelerate, DeepSpeed, MMEngine and plain scripts.
pub(super) const ACTIVITIES: &[(Activity, &[&str])] = &[
    (
        Activity::Evaluation,
        &[
            "in evaluate",
            "evaluate(",
            "evaluation",
            "evaluating",
            "in eval",
            "eval_",
            "_eval",
            "do_eval",
            "validat",
            "valid (",
            "(valid)",
            "valid:",
            "epochval",
            "val_epoch",
            "val_loop",
            "val_step",
            "in val",
            "in predict",
            ".predict(",
            "prediction_loop",
            "prediction_step",
            "predictions",
            "in test",
            "test_epoch",
            "test_step",
            "testing",
            "generate(",
            "in generate",
            "generation",
            "sample_image",
            "log_images",
            "inference",
            "beam_search",
            "compute_metrics",
            "nested_concat",
            "phase: eval",
            "phase=eval",
            "in sample",
        ],
    ),
    (
        Activity::Checkpoint,
        &[
            "save_",
            "saving",
            "torch.save",
            "state_dict",
            "torch.load(",
            "load_checkpoint",
            "load checkpoint",
            "resuming",
            "resume from",
            "from_checkpoint",
            "train_runtime",
            "load_ckpt",
            "deepcopy",
        ],
    ),
    (
        Activity::OptimizerStep,
        &[
            "optimizer.step",
            "optim/",
            "exp_avg",
            "initialize_optimizer_states",
            "_init_group",
            "init_state",
            "adam.py",
            "adamw.py",
            "in step",
            "optimizer states",
        ],
    ),
];

/// Index errors that later calls report as other errors.
pub(super) const ASSERTS: &[&str] = &[
    "device-side assert",
    "index out of range",
    "indexselect",
    "srcindex < srcselectdimsize",
    "assertion `t >= 0",
    "assertion `index",
];
/// In a line of the environment, which the error's own advice is not.
pub(super) const EXPANDABLE: &str = "alloc_conf: expandable_segments:true";
