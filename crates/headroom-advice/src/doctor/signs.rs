//! Words that tell a cause: what ran when the error came, and errors that are not the GPU's memory.

use serde::Serialize;

use super::vocabulary::Found;

/// What the program did, by the last words of a log or a traceback that say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    Evaluation,
    Checkpoint,
    OptimizerStep,
}

/// How NCCL failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NcclError {
    OutOfMemory,
    /// Two ranks are on one GPU.
    OneCard,
    Other,
}

/// What the words of a text say, without its numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a sign of its own")]
pub struct Signs {
    /// Another framework's error, by its name.
    pub foreign: Option<&'static str>,
    /// Data loader workers have no room to pass batches.
    pub shared_memory: bool,
    /// The host's memory is full, or a process was killed for it.
    pub host: bool,
    /// An index is out of range, or cuBLAS could not be set up, which looks alike.
    pub index: bool,
    /// The error came from the driver, outside PyTorch's allocator.
    pub driver: bool,
    /// A collective failed.
    pub nccl: Option<NcclError>,
    /// GPUs were chosen by hand.
    pub device_chosen: bool,
    /// A model was being loaded.
    pub loading: bool,
    /// Attention was being computed.
    pub attention: bool,
    /// Memory is said to have grown while the program ran.
    pub growing: bool,
    /// The program that samples completions beside the training failed.
    pub sampler: bool,
    /// The activities that the text names, the last one first.
    pub activities: Vec<Activity>,
}

/// Marks of other frameworks' errors.
const FOREIGN: &[(&str, &str)] = &[
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
const SHARED_MEMORY: &[&str] = &[
    "bus error",
    "shared memory (shm)",
    "out of shared memory",
    "/dev/shm",
    "unable to open shared memory",
    "unable to mmap",
    // The files that batches are passed in.
    "file </torch_",
    "torch_shm_manager",
];
const HOST: &[&str] = &[
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
];
const INDEX: &[&str] = &[
    "device-side assert",
    "index out of range",
    "indexselectlargeindex",
    "srcindex < srcselectdimsize",
    "resource allocation failed",
    "cublas_status_alloc_failed",
    "cublas_status_not_initialized",
    "cublas_status_execution_failed",
];
const DRIVER: &[&str] = &[
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
const NCCL: &[&str] = &[
    "nccl error",
    "ncclunhandledcudaerror",
    "ncclsystemerror",
    "ncclinternalerror",
    "ncclremoteerror",
    "ncclinvalidusage",
    ONE_CARD,
];
const ONE_CARD: &str = "duplicate gpu detected";
const OUT_OF_MEMORY: &str = "out of memory";
const DEVICE: &[&str] = &[
    "cuda_visible_devices",
    "set_device",
    "device_map",
    "local_rank",
];
const LOADING: &[&str] = &[
    "from_pretrained",
    "load_model",
    "loading checkpoint shards",
    ".to(device)",
    ".cuda()",
];
const ATTENTION: &[&str] = &[
    "attn",
    "attention",
    "torch.bmm",
    "energy",
    "scores",
    "baddbmm",
    "softmax",
    "max_position",
];
const GROWTH: &[&str] = &[
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
/// What one says to have grown, in the same sentence.
const MEMORY: &[&str] = &["memory", "vram", "gpu usage", "gpu mem"];
/// Advice and settings that speak of more without growth.
const NO_GROWTH: &[&str] = &[
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
const SAMPLER: &[&str] = &["vllm/", "cache blocks", "`gpu_memory_utilization`"];
/// Frames and log lines by activity, in PyTorch, Transformers, Lightning, Accelerate, DeepSpeed, MMEngine and plain scripts.
const ACTIVITIES: &[(Activity, &[&str])] = &[
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

/// Every word that is looked for.
fn vocabulary() -> impl Iterator<Item = &'static str> {
    let foreign = FOREIGN.iter().map(|(mark, _)| *mark);
    let lists = [
        SHARED_MEMORY,
        HOST,
        INDEX,
        DRIVER,
        NCCL,
        DEVICE,
        LOADING,
        ATTENTION,
        GROWTH,
        SAMPLER,
    ];
    let activities = ACTIVITIES.iter().map(|(_, words)| *words);
    let listed = lists.into_iter().chain(activities).flatten().copied();
    foreign.chain(listed).chain([OUT_OF_MEMORY])
}

impl Signs {
    pub fn parse(text: &str) -> Self {
        let lowered = text.to_ascii_lowercase();
        let found = Found::in_text(&lowered, vocabulary());
        let killed = text.lines().any(|line| line.trim() == "Killed");
        let mut activities: Vec<(usize, Activity)> = ACTIVITIES
            .iter()
            .filter_map(|(activity, words)| Some((found.last_of(words)?, *activity)))
            .collect();
        activities.sort_unstable_by_key(|(at, _)| std::cmp::Reverse(*at));
        Self {
            foreign: FOREIGN
                .iter()
                .find(|(mark, _)| found.has(mark))
                .map(|(_, name)| *name),
            shared_memory: found.has_any(SHARED_MEMORY),
            host: killed || found.has_any(HOST),
            index: found.has_any(INDEX),
            driver: found.has_any(DRIVER),
            nccl: found.has_any(NCCL).then(|| {
                if found.has(ONE_CARD) {
                    NcclError::OneCard
                } else if found.has(OUT_OF_MEMORY) {
                    NcclError::OutOfMemory
                } else {
                    NcclError::Other
                }
            }),
            device_chosen: found.has_any(DEVICE),
            loading: found.has_any(LOADING),
            attention: found.has_any(ATTENTION),
            growing: found.has_any(GROWTH) && lowered.split(['\n', ';']).any(says_growth),
            sampler: found.has_any(SAMPLER),
            activities: activities
                .into_iter()
                .map(|(_, activity)| activity)
                .collect(),
        }
    }

    pub fn activity(&self) -> Option<Activity> {
        self.activities.first().copied()
    }

    /// Whether the words alone tell of a failure.
    pub fn tell(&self) -> bool {
        let errors = [self.shared_memory, self.host, self.index, self.driver];
        self.foreign.is_some() || self.nccl.is_some() || errors.contains(&true)
    }
}

/// Whether a line says that memory grew.
fn says_growth(line: &str) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
    has(MEMORY) && has(GROWTH) && !has(NO_GROWTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_name_the_activity() {
        #[track_caller]
        fn check(text: &str, activity: Option<Activity>) {
            assert_eq!(Signs::parse(text).activity(), activity, "{text}");
        }
        check("in training_step\nloss.backward()", None);
        check("train.py, in validate", Some(Activity::Evaluation));
        check(
            "_maybe_log_save_evaluate\n in _save_checkpoint\n full_state_dict",
            Some(Activity::Checkpoint),
        );
        check(
            "state['exp_avg'] = torch.zeros_like(p)",
            Some(Activity::OptimizerStep),
        );
    }

    #[test]
    fn growth_is_said_in_one_sentence() {
        #[track_caller]
        fn check(text: &str, growing: bool) {
            assert_eq!(Signs::parse(text).growing, growing, "{text}");
        }
        check(
            "nvidia-smi shows a slow and steady increase of GPU memory",
            true,
        );
        check(
            "GPU memory went from 9 GB at step 2k to 20 GB at step 15k",
            true,
        );
        check("the loss is increasing\nCUDA out of memory", false);
        check("Try increasing the memory of the container", false);
    }

    #[test]
    fn errors_of_others_are_known() {
        let signs =
            Signs::parse("jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory");
        assert_eq!(signs.foreign, Some("JAX or TensorFlow"));
        assert!(Signs::parse("loading\nKilled\n").host);
        assert!(!Signs::parse("torch.OutOfMemoryError: CUDA out of memory.").host);
        assert!(Signs::parse("worker is killed by signal: Bus error.").shared_memory);
    }
}
