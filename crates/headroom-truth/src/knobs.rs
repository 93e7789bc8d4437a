//! The settings of a run on a simulated GPU, named as its recorders name them.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::adapters::Adapters;
use super::record::Mixed;

/// The model's sizes.
pub type Dims = Map<String, Value>;

/// Settings of one GPU, of one rank of several, and of the trainers that recorders run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the recorders"
)]
pub struct Knobs {
    pub model: String,
    #[serde(rename = "impl")]
    pub implementation: String,
    pub engine: Option<String>,
    pub precision: String,
    /// The type of the weights, under autocast to `amp`.
    pub wdtype: Option<String>,
    pub base_dtype: String,
    pub amp: String,
    pub optim: String,
    pub opt_compile: bool,
    pub mb: Option<u64>,
    /// Rows of the passes that learn from a round of sampling.
    pub mb_train: Option<u64>,
    pub seq: Option<u64>,
    pub accum: Option<u64>,
    pub attn: Option<String>,
    pub mask: bool,
    pub ckpt: Mixed,
    pub lora: Option<Lora>,
    pub lora_bf16: bool,
    pub freeze: Vec<String>,
    pub dropout: Option<bool>,
    pub use_cache: bool,
    pub hold_outputs: bool,
    pub ema: Mixed,
    pub clip: bool,
    pub chlast: bool,
    pub zero_none: Option<bool>,
    pub zg_before_bwd: bool,
    pub train_mode: Option<bool>,
    /// Set by `steps.rs` once a schedule has added a loss.
    pub aux_loss: bool,
    pub norm: String,
    pub sm: u64,
    pub cudnn_ws: u64,
    pub compile: Mixed,
    pub mode: String,
    pub budget: Option<f64>,
    pub kernels: String,
    pub feature: String,
    pub fk: FeatureKnobs,

    pub strategy: Option<String>,
    pub dp: Option<u32>,
    pub fsdp: Option<u32>,
    pub hsdp: Option<u32>,
    pub tp: Option<u32>,
    pub pp: Option<u32>,
    pub cp: Option<u32>,
    pub ulysses: Option<u32>,
    pub ep: Option<u32>,
    pub vpp: Option<u32>,
    pub rank: u32,
    pub pp_stage: u32,
    pub pp_micro: Option<u64>,
    pub pp_sched: Option<String>,
    pub hold_pred: bool,
    pub bucket_mb: Option<u64>,
    pub gabv: bool,
    pub no_sync: Option<bool>,
    pub comm_hook: Option<String>,
    pub powersgd_rank: Option<u64>,
    pub wrap: Option<String>,
    pub reshard: Mixed,
    pub root_reshard: String,
    pub mp_param: Option<String>,
    pub mp_reduce: Option<String>,
    pub prefetch_fwd: u32,
    pub prefetch_bwd: u32,
    pub sp: bool,
    pub loss_parallel: bool,
    pub quant: Option<String>,
    pub quant_storage: String,
    pub cpu_offload: bool,
    pub offload_param: bool,
    pub offload_optimizer: bool,
    pub pin: Option<bool>,
    pub zero: u64,
    pub ds_cfg: DeepSpeed,
    /// Whether the model is made under ZeRO-3.
    pub ds_zinit: Option<bool>,
    pub mg: Megatron,

    pub trainer: Option<String>,
    /// A training loop written by hand.
    pub kind: Option<String>,
    pub steps: Option<u64>,
    pub args: TrainerArgs,
    pub data: String,
    pub lens: Vec<f64>,
    pub prompt: Option<u64>,
    pub completion: Option<u64>,
    pub num_gen: Option<u64>,
    #[serde(rename = "ref")]
    pub reference: bool,
    pub ref_dtype: String,
    pub teacher: Value,
    pub peft: Option<PeftConfig>,
    pub liger: bool,
}

impl Knobs {
    pub fn is_megatron(&self) -> bool {
        self.engine.as_deref() == Some("mg")
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Lora {
    pub r: Option<u64>,
    pub targets: Vec<String>,
    /// A regular expression around one module's name.
    pub exclude: Option<String>,
    pub drop: f64,
    pub prep: Option<bool>,
}

/// The settings of a `feature`, of an optimizer or of a loop.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the recorders"
)]
pub struct FeatureKnobs {
    pub kind: String,
    #[serde(flatten)]
    pub adapters: Adapters,
    pub autocast_adapter_dtype: Option<bool>,
    /// The hidden size of p-tuning's encoder.
    pub eh: Option<u64>,
    pub lib: String,
    pub bits: Option<u64>,
    pub dq: Option<bool>,
    pub prep: Option<bool>,
    pub recipe: String,
    pub style: String,
    pub mode: String,
    pub every: Option<u64>,
    pub fused_linear_cross_entropy: Option<bool>,
    pub cross_entropy: bool,
    /// The rank of GaLore and APOLLO.
    pub rank: Option<u64>,
    /// torchao's optimizer offloads gradients too.
    pub og: bool,
    pub old: bool,
    /// Whether accelerate prepares the models.
    pub accel: Option<bool>,
    pub ref_first: bool,
    pub hold_logits: bool,
    pub scores: bool,
    pub cache: String,
    pub num_return: Option<u64>,
    pub batches: Option<u64>,
    pub acc: Option<u64>,
    pub bf16: Option<bool>,
    pub metrics: Option<bool>,
    pub loss_only: bool,
    pub preprocess: bool,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Arguments of TRL's trainers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the recorders"
)]
pub struct TrainerArgs {
    pub optim: String,
    pub packing: bool,
    pub padding_free: bool,
    pub beta: Option<f64>,
    pub loss_type: Mixed,
    pub lmbda: f64,
    pub seq_kd: bool,
    pub precompute_ref_log_probs: bool,
    pub steps_per_generation: u64,
    pub num_iterations: Option<u64>,
    pub cast_lm_head_to_fp32: bool,
    pub activation_offloading: bool,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PeftConfig {
    #[serde(flatten)]
    pub adapters: Adapters,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Sizes may be "auto".
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct DeepSpeed {
    pub reduce_bucket_size: Mixed,
    pub stage3_prefetch_bucket_size: Mixed,
    pub stage3_param_persistence_threshold: Mixed,
    pub stage3_max_live_parameters: Mixed,
    pub stage3_max_reuse_distance: Mixed,
    pub sub_group_size: Mixed,
    pub zero_hpz_partition_size: Option<u32>,
    pub overlap_comm: Option<bool>,
    pub contiguous_gradients: Option<bool>,
    #[serde(rename = "_bf16")]
    pub bf16: DeepSpeedBf16,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct DeepSpeedBf16 {
    pub bf16_master_weights_and_grads: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Megatron {
    pub arch: String,
    pub attn: String,
    pub recompute: String,
    /// How recomputed layers are chosen, and how many.
    pub method: String,
    pub num: u64,
    pub untied: Option<bool>,
    pub gaf: Option<bool>,
    pub dropout: f64,
    pub dist_opt: Option<bool>,
    pub overlap_grad: Option<bool>,
    pub grad_fp32: Option<bool>,
}
