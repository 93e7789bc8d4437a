//! The choices a scenario makes: each an enum whose variants carry the name in files and the name shown.

/// One entry of a list to choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The name used in files, links and flags.
    pub id: &'static str,
    /// The name shown to people.
    pub label: &'static str,
}

macro_rules! choice {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $id:literal, $label:literal;)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$doc])* $variant,)+ }
        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];
            /// The name used in files, links and flags.
            pub const fn id(self) -> &'static str { match self { $(Self::$variant => $id,)+ } }
            /// The name shown to people.
            pub const fn label(self) -> &'static str { match self { $(Self::$variant => $label,)+ } }
            /// Every choice as data: what forms and messages list.
            pub const CHOICES: &'static [Choice] = &[$(Choice { id: $id, label: $label },)+];
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
