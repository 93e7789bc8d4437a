//! What the user asked: one versioned, serialisable type.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    pub version: u32,
    pub hardware: Hardware,
    pub model: Model,
    pub data: Data,
    pub training: Training,
    pub runtime: Runtime,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hardware {
    /// A catalogue id, such as `a100-sxm4-80gb`.
    pub gpu: String,
    pub gpus: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Model {
    /// A catalogue id, such as `gpt2`.
    pub id: String,
    /// Dimensions that differ from the catalogue's (`layers`, `vocab`, `hidden`, ...).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub dims: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Data {
    pub micro_batch: u64,
    /// Tokens in a sample; images take their size from the model's dimensions.
    pub sequence: u64,
    /// Whether batches carry a real padding mask.
    pub padding_mask: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Training {
    pub precision: Precision,
    pub optimizer: Optimizer,
    pub attention: Attention,
    pub checkpointing: Checkpointing,
    /// Micro-batches added up before one optimizer step.
    pub accumulation: u64,
    /// Low-rank adapters; absent means every unfrozen weight is trained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lora: Option<Lora>,
    /// Parameters whose path contains one of these are frozen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub freeze: Vec<String>,
    /// Where not empty, parameters whose path contains none of these are frozen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub train_only: Vec<String>,
    pub dropout: bool,
    pub clip: bool,
    pub ema: bool,
    /// `zero_grad(set_to_none=True)`, PyTorch's default since 2.0.
    pub zero_to_none: bool,
    /// The model's output object is alive during backward.
    pub keep_outputs: bool,
    pub use_cache: bool,
    pub channels_last: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Lora {
    pub rank: u64,
    /// Linear layers whose last path part is one of these get an adapter.
    pub targets: Vec<String>,
    /// Layers whose path contains one of these get none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    pub dropout: f64,
    /// PEFT keeps adapters in fp32 unless told otherwise.
    pub fp32_adapters: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Runtime {
    /// `expandable_segments:True` in the allocator's settings.
    pub expandable_segments: bool,
}

macro_rules! choice {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $id:literal, $label:literal;)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$doc])* #[serde(rename = $id)] $variant,)+ }
        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];
            /// The name used in files, links and flags.
            pub const fn id(self) -> &'static str { match self { $(Self::$variant => $id,)+ } }
            /// The name shown to people.
            pub const fn label(self) -> &'static str { match self { $(Self::$variant => $label,)+ } }
            pub fn from_id(id: &str) -> Option<Self> { Self::ALL.iter().copied().find(|it| it.id() == id) }
        }
    };
}

choice! {
    /// In which number format weights live and operations run.
    Precision {
        Fp32 = "fp32", "fp32";
        /// `torch.autocast` in bf16 over fp32 weights.
        #[default]
        AmpBf16 = "amp-bf16", "bf16 mixed (autocast)";
        /// `torch.autocast` in fp16 over fp32 weights with a `GradScaler`.
        AmpFp16 = "amp-fp16", "fp16 mixed (autocast)";
        /// Everything in bf16: weights, gradients, optimizer states.
        Bf16 = "bf16", "pure bf16";
        Fp16 = "fp16", "pure fp16";
        /// Autocast in bf16 over a bf16 model: the usual adapter recipe.
        AmpBf16OnBf16 = "amp-bf16-on-bf16", "bf16 autocast over bf16 weights";
    }
}

choice! {
    Optimizer {
        /// The default on CUDA: all tensors in one list, with one parameter-sized temporary.
        #[default]
        AdamW = "adamw", "AdamW (foreach)";
        AdamWFused = "adamw-fused", "AdamW (fused)";
        AdamWLoop = "adamw-loop", "AdamW (for-loop)";
        Sgd = "sgd", "SGD";
        SgdMomentum = "sgd-momentum", "SGD with momentum";
        Adafactor = "adafactor", "Adafactor (torch)";
        AdafactorHf = "adafactor-hf", "Adafactor (transformers)";
        Lion = "lion", "Lion";
        LionForeach = "lion-foreach", "Lion (foreach)";
        Adagrad = "adagrad", "Adagrad";
        RmsProp = "rmsprop", "RMSprop";
        Muon = "muon", "Muon";
    }
}

choice! {
    Attention {
        /// `scaled_dot_product_attention`, whose back-end PyTorch chooses.
        #[default]
        Sdpa = "sdpa", "SDPA (flash where possible)";
        Eager = "eager", "eager";
    }
}

choice! {
    Checkpointing {
        #[default]
        None = "none", "none";
        /// Every layer, not re-entrant: what `gradient_checkpointing_enable` does today.
        Layers = "layers", "every layer";
    }
}

impl Default for Hardware {
    fn default() -> Self {
        Self {
            gpu: "rtx-4090".into(),
            gpus: 1,
        }
    }
}
impl Default for Model {
    fn default() -> Self {
        Self {
            id: "gpt2".into(),
            dims: BTreeMap::new(),
        }
    }
}
impl Default for Data {
    fn default() -> Self {
        Self {
            micro_batch: 8,
            sequence: 1024,
            padding_mask: false,
        }
    }
}
impl Default for Training {
    fn default() -> Self {
        Self {
            precision: Precision::default(),
            optimizer: Optimizer::default(),
            attention: Attention::default(),
            checkpointing: Checkpointing::default(),
            accumulation: 1,
            lora: None,
            freeze: Vec::new(),
            train_only: Vec::new(),
            dropout: true,
            clip: false,
            ema: false,
            zero_to_none: true,
            keep_outputs: false,
            use_cache: false,
            channels_last: false,
        }
    }
}
impl Default for Lora {
    fn default() -> Self {
        Self {
            rank: 16,
            targets: ["q_proj", "k_proj", "v_proj", "o_proj"]
                .map(String::from)
                .to_vec(),
            exclude: Vec::new(),
            dropout: 0.0,
            fp32_adapters: true,
        }
    }
}
impl Default for Runtime {
    fn default() -> Self {
        Self {
            expandable_segments: false,
        }
    }
}
