//! The values of facts, in the words that an expert uses.

use std::fmt;

/// An enum whose variants have a word each.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            pub fn named(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.word() == word)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

words! {
    Task {
        Sft = "sft",
        Pretraining = "pretraining",
        MaskedLm = "masked-lm",
        Seq2Seq = "seq2seq",
        Classification = "classification",
        TokenClassification = "token-classification",
        Regression = "regression",
        QuestionAnswering = "question-answering",
        Contrastive = "contrastive",
        Reranking = "reranking",
        Reward = "reward",
        Dpo = "dpo",
        Kto = "kto",
        Orpo = "orpo",
        Cpo = "cpo",
        Simpo = "simpo",
        Grpo = "grpo",
        Rloo = "rloo",
        Ppo = "ppo",
        Distillation = "distillation",
        SelfDistillation = "self-distillation",
        Diffusion = "diffusion",
        Detection = "detection",
        Segmentation = "segmentation",
        Ctc = "ctc",
    }
}

words! {
    /// What the weights of the model, or of an adapter's base, are stored as.
    Weights {
        Fp32 = "fp32",
        Bf16 = "bf16",
        Fp16 = "fp16",
        Fp8 = "fp8",
        Int8 = "int8",
        Nf4 = "nf4",
        Fp4 = "fp4",
        Mxfp4 = "mxfp4",
        Int4 = "int4",
        Uint4 = "uint4",
        Uint3 = "uint3",
        Uint2 = "uint2",
        Int2 = "int2",
        GptqInt4 = "gptq int4",
        AwqInt4 = "awq int4",
    }
}

words! {
    /// The type that forward and backward run in.
    Compute {
        Fp32 = "fp32",
        Tf32 = "tf32",
        Bf16Autocast = "bf16 autocast",
        Fp16Autocast = "fp16 autocast",
        Bf16 = "bf16",
        Fp16 = "fp16",
        Bf16Fp8 = "bf16 with fp8 matmuls",
    }
}

words! {
    Adapter {
        Lora = "lora",
        /// LoRA on a base of four bits.
        Qlora = "qlora",
        Dora = "dora",
        Adalora = "adalora",
        Oft = "oft",
        Boft = "boft",
        Hra = "hra",
        Ia3 = "ia3",
        Lokr = "lokr",
        Loha = "loha",
        Vera = "vera",
        Prefix = "prefix tuning",
        PromptTuning = "prompt tuning",
        /// One low-rank map a decoder layer, on its residual stream.
        Control = "control adapter (per layer)",
        TextualInversion = "textual inversion",
    }
}

words! {
    Offload {
        None = "none",
        Optimizer = "optimizer",
        Parameters = "parameters",
        Both = "both",
    }
}

words! {
    Attention {
        Eager = "eager",
        Sdpa = "sdpa",
        Flash = "flash",
        Xformers = "xformers",
        Flex = "flex",
    }
}

words! {
    /// How copies of the model relate.
    DataParallel {
        /// One process.
        None = "none",
        Ddp = "ddp",
        /// FSDP of a version that is not said.
        Fsdp = "fsdp",
        Fsdp1 = "fsdp1",
        Fsdp2 = "fsdp2",
        Hsdp = "hsdp",
        Zero0 = "zero0",
        Zero1 = "zero1",
        Zero2 = "zero2",
        Zero3 = "zero3",
    }
}

impl DataParallel {
    /// Whether the memory of a GPU depends on their number.
    pub const fn shards(self) -> bool {
        !matches!(self, Self::None | Self::Ddp | Self::Zero0)
    }
}

/// How a job is spread over its GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strategy {
    pub data: DataParallel,
    pub tp: u64,
    pub pp: u64,
    pub cp: u64,
    pub ep: u64,
}

impl From<DataParallel> for Strategy {
    fn from(data: DataParallel) -> Self {
        Self {
            data,
            tp: 1,
            pp: 1,
            cp: 1,
            ep: 1,
        }
    }
}

impl Strategy {
    pub const fn shards(self) -> bool {
        self.data.shards() || self.tp > 1 || self.pp > 1 || self.cp > 1 || self.ep > 1
    }
}

/// As `zero1+tp2+pp4`.
impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("tp", self.tp),
            ("pp", self.pp),
            ("cp", self.cp),
            ("ep", self.ep),
        ];
        let mut parts = parts.iter().filter(|(_, size)| *size > 1).peekable();
        let mut plus = "";
        if self.data != DataParallel::None || parts.peek().is_none() {
            write!(f, "{}", self.data)?;
            plus = "+";
        }
        for (name, size) in parts {
            write!(f, "{plus}{name}{size}")?;
            plus = "+";
        }
        Ok(())
    }
}

/// Which weights have gradients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trained {
    All,
    Adapters,
    /// Adapters, and modules in full, such as `embed_tokens`.
    AdaptersAnd(Vec<String>),
    /// A part, in words.
    Part(String),
}

impl fmt::Display for Trained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Adapters => f.write_str("adapters"),
            Self::AdaptersAnd(modules) => write!(f, "adapters + {}", modules.join(" + ")),
            Self::Part(words) => f.write_str(words),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checkpointing {
    Off,
    On,
    /// Not every layer, or not every operation.
    Selective,
}

/// What a sentence asks for, besides whether the run fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Batch,
    Length,
    Cards,
    Cheapest,
}
