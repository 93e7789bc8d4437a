//! How it is trained.

use crate::task::Task;
use crate::{
    AdapterMethod, Attention, Checkpointing, Compile, CompileMode, Kernels, LossKernel,
    LowPrecision, Optimizer, Precision, Quantization,
};

#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the training loop, free of the others"
)]
pub struct Training {
    /// What the model is trained to do; in files a section of its own.
    pub task: Task,
    pub precision: Precision,
    /// Linear layers multiply in fp8.
    pub fp8: bool,
    /// Inputs and weights of linear layers are rounded as if quantised (torchao's QAT).
    pub qat: bool,
    /// The low-precision recipe of linear layers (other than `fp8`).
    pub low_precision: LowPrecision,
    pub optimizer: Optimizer,
    pub attention: Attention,
    pub checkpointing: Checkpointing,
    /// Of how many layers one is checkpointed.
    pub checkpoint_every: u64,
    /// How many layers are checkpointed together: only the input of the first is kept.
    pub checkpoint_span: u64,
    /// How many layers of a pipeline's stage are checkpointed, from its first on; 0 for all.
    pub checkpoint_first: u64,
    /// Micro-batches added up before one optimizer step.
    pub accumulation: u64,
    pub loss: LossKernel,
    /// Into how many parts a chunked loss cuts the tokens.
    pub loss_chunks: u64,
    pub kernels: Kernels,
    /// What `torch.compile` is called on.
    pub compile: Compile,
    pub compile_mode: CompileMode,
    /// `activation_memory_budget`: the share of what a compiled graph would keep that it may.
    pub memory_budget: f64,
    /// Each parameter is stepped as soon as its gradient is complete.
    pub optimizer_in_backward: bool,
    pub quantization: Quantization,
    /// Blocks of a diffusion network whose frozen weights wait in host memory (`blocks_to_swap`).
    pub block_swap: u64,
    /// Low-rank adapters; absent means every unfrozen weight is trained.
    pub lora: Option<Lora>,
    /// Parameters whose path contains one of these are frozen.
    pub freeze: Vec<String>,
    /// Where not empty, parameters whose path contains none of these are frozen.
    pub train_only: Vec<String>,
    pub dropout: bool,
    /// The peak learning rate; `None` where it is the program's own.
    pub learning_rate: Option<f64>,
    pub clip: bool,
    pub ema: bool,
    /// The moving average lives in the host's memory.
    pub ema_on_host: bool,
    /// Learned tokens before each sample, which are all that is trained (prompt tuning).
    pub prompt_tokens: u64,
    /// The width of the network that these come out of (p-tuning); zero where the tokens are learned directly.
    pub prompt_hidden: u64,
    /// Norms are cast up to fp32 over a quantised base (`prepare_model_for_kbit_training` of PEFT).
    pub fp32_norms: bool,
    /// `zero_grad(set_to_none=True)`, PyTorch's default since 2.0.
    pub zero_to_none: bool,
    /// `zero_grad()` is called between forward and backward: gradients live through the forward pass.
    pub zero_late: bool,
    /// The model's output object is alive during backward.
    pub keep_outputs: bool,
    pub use_cache: bool,
    pub channels_last: bool,
}

impl Training {
    /// Whether what a compiled graph of this architecture keeps is known. Within a budget it is of Llama in bf16: under autocast, and
    /// with dropout, PyTorch keeps less than the cuts here.
    pub fn budget_is_known(&self, architecture: &str) -> bool {
        let within = self.memory_budget > 0.0 && self.memory_budget < 1.0;
        !within || self.precision == Precision::Bf16 && architecture == "llama"
    }
}

impl Default for Training {
    fn default() -> Self {
        Self {
            task: Task::default(),
            precision: Precision::default(),
            fp8: false,
            qat: false,
            low_precision: LowPrecision::default(),
            optimizer: Optimizer::default(),
            attention: Attention::default(),
            checkpointing: Checkpointing::default(),
            checkpoint_every: 1,
            checkpoint_span: 1,
            checkpoint_first: 0,
            loss: LossKernel::default(),
            loss_chunks: 8,
            kernels: Kernels::default(),
            compile: Compile::default(),
            compile_mode: CompileMode::default(),
            memory_budget: 1.0,
            optimizer_in_backward: false,
            quantization: Quantization::default(),
            block_swap: 0,
            accumulation: 1,
            lora: None,
            freeze: Vec::new(),
            train_only: Vec::new(),
            dropout: true,
            learning_rate: None,
            clip: false,
            ema: false,
            ema_on_host: false,
            prompt_tokens: 0,
            prompt_hidden: 0,
            fp32_norms: false,
            zero_to_none: true,
            zero_late: false,
            keep_outputs: false,
            use_cache: false,
            channels_last: false,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Lora {
    pub method: AdapterMethod,
    pub rank: u64,
    /// Linear layers whose last path part is one of these get an adapter.
    pub targets: Vec<String>,
    /// Layers whose path contains one of these get none.
    pub exclude: Vec<String>,
    /// The blocks of OFT, BOFT and C3A; 0 for the method's own size.
    pub block: u64,
    /// Modules whose path ends in one of these are kept, and a copy of each is fully trained.
    pub modules_to_save: Vec<String>,
    /// The targets whose input IA3 scales; where empty, those that PEFT knows.
    pub feed_forward: Vec<String>,
    pub dropout: f64,
    /// Adapters in fp32 over a 16-bit base, PEFT's default.
    pub fp32_adapters: bool,
}

impl Lora {
    /// Whether a target names the module at this path: it is the path's end, such as `q_proj` or `to_out.0`.
    pub fn names(target: &str, path: &str) -> bool {
        let before = path.strip_suffix(target);
        before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
    }

    /// How large the blocks are that it turns or multiplies by.
    pub fn block(&self) -> u64 {
        match (self.block, self.method) {
            // `boft_block_size`, C3A's `block_size` and `oft_block_size` by default.
            (0, AdapterMethod::Boft) => 4,
            (0, AdapterMethod::C3a) => 256,
            (0, _) => 32,
            (block, _) => block,
        }
    }
}

impl Default for Lora {
    fn default() -> Self {
        Self {
            method: AdapterMethod::default(),
            rank: 16,
            targets: ["q_proj", "k_proj", "v_proj", "o_proj"]
                .map(String::from)
                .to_vec(),
            exclude: Vec::new(),
            block: 0,
            modules_to_save: Vec::new(),
            feed_forward: Vec::new(),
            dropout: 0.0,
            fp32_adapters: true,
        }
    }
}
