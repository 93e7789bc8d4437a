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
            pub fn from_id(id: &str) -> Option<Self> { Self::ALL.iter().copied().find(|choice| choice.id() == id) }
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
        /// Autocast in fp16 over an fp16 model: adapters on GPUs without bf16. The adapters are in fp32.
        AmpFp16OnFp16 = "amp-fp16-on-fp16", "fp16 autocast over fp16 weights";
        /// Everything in double precision (`model.double()`).
        Fp64 = "fp64", "fp64";
    }
}

impl Precision {
    /// Whether a `GradScaler` scales the loss, and looks at all gradients before the step.
    pub const fn scales_gradients(self) -> bool {
        matches!(self, Self::AmpFp16 | Self::AmpFp16OnFp16)
    }

    /// Whether forward runs under autocast.
    pub const fn autocasts(self) -> bool {
        matches!(
            self,
            Self::AmpBf16 | Self::AmpFp16 | Self::AmpBf16OnBf16 | Self::AmpFp16OnFp16
        )
    }
}

choice! {
    Optimizer {
        /// The default on CUDA: all tensors in one list, with one parameter-sized temporary.
        #[default]
        AdamW = "adamw", "AdamW (foreach)";
        /// As torch 2.0 and 2.1 step: roots and denominators of all tensors at once.
        AdamWTwoLists = "adamw-2.0", "AdamW (foreach, torch 2.0)";
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
        /// Matrices of the layers by Muon, the rest by AdamW.
        MuonAdamW = "muon-adamw", "Muon with AdamW";
        AdamW8bit = "adamw-8bit", "AdamW 8-bit (bitsandbytes)";
        /// States in managed memory, which the driver keeps on the host while the device is full.
        PagedAdamW = "adamw-paged", "Paged AdamW (bitsandbytes)";
        PagedAdamW8bit = "adamw-paged-8bit", "Paged AdamW 8-bit (bitsandbytes)";
        AdamW8bitAo = "adamw-8bit-ao", "AdamW 8-bit (torchao)";
        AdamW4bitAo = "adamw-4bit-ao", "AdamW 4-bit (torchao)";
        AdamWFp8Ao = "adamw-fp8-ao", "AdamW fp8 (torchao)";
        /// States and step on the host.
        AdamWOffload = "adamw-offload", "AdamW, states on the host (torchao)";
        /// The same; gradients leave the device as soon as they are made.
        AdamWOffloadGradients = "adamw-offload-gradients", "AdamW, states and gradients on the host (torchao)";
        /// Moments in fp32 whatever the weights' type (torchdistx).
        AnyPrecision = "adamw-anyprecision", "AnyPrecision AdamW (torchdistx)";
        /// One tensor after the other, as lion-pytorch does.
        LionLoop = "lion-loop", "Lion (lion-pytorch)";
        AdamMini = "adam-mini", "Adam-mini";
        ScheduleFree = "schedule-free", "Schedule-free AdamW";
        Adopt = "adopt", "ADOPT (pytorch-optimizer)";
        Came = "came", "CAME (pytorch-optimizer)";
        Lamb = "lamb", "LAMB (pytorch-optimizer)";
        /// Matrices projected to a low rank.
        GaLore = "galore", "GaLore AdamW";
        /// The same with eight-bit states of bitsandbytes, and with Adafactor.
        GaLore8bit = "galore-8bit", "GaLore AdamW 8-bit";
        GaLoreAdafactor = "galore-adafactor", "GaLore Adafactor";
        /// Gradients projected to a low rank only to be scaled.
        Apollo = "apollo", "APOLLO AdamW";
        /// As transformers makes it.
        Apollo128 = "apollo-128", "APOLLO AdamW (rank 128)";
        ApolloMini = "apollo-mini", "APOLLO-Mini AdamW (rank 1)";
        AdEmaMix = "ademamix", "AdEMAMix (bitsandbytes)";
        AdEmaMix8bit = "ademamix-8bit", "AdEMAMix 8-bit (bitsandbytes)";
        Lion8bit = "lion-8bit", "Lion 8-bit (bitsandbytes)";
        AdamWBnb = "adamw-bnb", "AdamW 32-bit (bitsandbytes)";
        PagedAdEmaMix = "ademamix-paged", "Paged AdEMAMix (bitsandbytes)";
        PagedAdEmaMix8bit = "ademamix-paged-8bit", "Paged AdEMAMix 8-bit (bitsandbytes)";
        LionBnb = "lion-bnb", "Lion 32-bit (bitsandbytes)";
        PagedLion = "lion-paged", "Paged Lion (bitsandbytes)";
        PagedLion8bit = "lion-paged-8bit", "Paged Lion 8-bit (bitsandbytes)";
        RmsPropBnb = "rmsprop-bnb", "RMSprop 32-bit (bitsandbytes)";
        RmsProp8bit = "rmsprop-8bit", "RMSprop 8-bit (bitsandbytes)";
        AdagradBnb = "adagrad-bnb", "Adagrad 32-bit (bitsandbytes)";
        Adagrad8bit = "adagrad-8bit", "Adagrad 8-bit (bitsandbytes)";
        ScheduleFreeRAdam = "schedule-free-radam", "Schedule-free RAdam";
        ScheduleFreeSgd = "schedule-free-sgd", "Schedule-free SGD";
        /// By Triton's kernels, which it takes where it can.
        StableAdamW = "stable-adamw", "StableAdamW (torch-optimi)";
        /// States on the host, each on the device for its parameter's turn.
        GrokAdamW = "grokadamw", "GrokAdamW";
        /// Each gradient is used up in backward.
        Lomo = "lomo", "LOMO";
        AdaLomo = "adalomo", "AdaLOMO";
        Soap = "soap", "SOAP (pytorch-optimizer)";
        Shampoo = "shampoo", "Shampoo (pytorch-optimizer)";
    }
}

choice! {
    Attention {
        /// `scaled_dot_product_attention`, whose back-end PyTorch chooses.
        #[default]
        Sdpa = "sdpa", "SDPA (flash where possible)";
        Eager = "eager", "eager";
        /// The flash-attn package: no mask is ever made, padding is left out.
        Flash2 = "flash_attention_2", "FlashAttention 2";
    }
}

choice! {
    Checkpointing {
        #[default]
        None = "none", "none";
        /// Every layer, not re-entrant: what `gradient_checkpointing_enable` does today.
        Layers = "layers", "full: every layer";
        /// Layers are run again but for their matrix products and attention.
        KeepMatmuls = "keep-matmuls", "selective: save matmuls and attention";
        /// The same, keeping every second product only: torchtitan's selective checkpointing per operation.
        KeepHalf = "keep-half", "selective: save every second matmul and attention";
        KeepAttention = "keep-attention", "selective: save attention";
        /// `torch.autograd.graph.save_on_cpu` around the forward pass.
        Offload = "offload", "offload activations to the host";
    }
}

choice! {
    /// How a language model's loss is computed from its last hidden state.
    LossKernel {
        /// All logits, in fp32: what the library does.
        #[default]
        Library = "library", "library default";
        /// All logits at once, the cross-entropy of one chunk of tokens after the other.
        ChunkedLoss = "chunked-loss", "chunked cross-entropy";
        /// Logits and cross-entropy of one chunk of tokens after the other.
        ChunkedHead = "chunked-head", "chunked logits and cross-entropy";
        /// The same, each chunk run again in backward.
        ChunkedCheckpoint = "chunked-checkpoint", "chunked logits and cross-entropy, checkpointed";
        /// Liger's: gradients are made in forward, chunk by chunk.
        LigerLinear = "liger-linear", "Liger fused linear cross-entropy";
        /// Liger's cross-entropy over all logits, whose gradient takes their place.
        Liger = "liger", "Liger cross-entropy";
        /// Apple's: one kernel computes each logit where it is needed, and computes it again in backward.
        CutLinear = "cut-linear", "cut cross-entropy";
    }
}

choice! {
    /// Whose kernels run norms, rotary embeddings and gated layers.
    Kernels {
        #[default]
        Library = "library", "library default";
        /// Norms and rotary embeddings only, as fms-acceleration and Unsloth fuse them.
        FusedNorms = "fused-norms", "fused norms and rotary embeddings";
        Liger = "liger", "Liger";
    }
}

choice! {
    /// What `torch.compile` is called on.
    Compile {
        #[default]
        Nothing = "nothing", "nothing";
        /// Each layer by itself (`layer.compile()`).
        Layers = "layers", "each layer";
        /// `torch.compile(model)`.
        Model = "model", "the whole model";
        /// The same with `torch._functorch.config.activation_memory_budget = 0`: its backward begins with all of its forward.
        ModelAgain = "model-recompute", "the whole model, recomputed (memory budget 0)";
    }
}

choice! {
    /// The `mode` of `torch.compile`.
    CompileMode {
        #[default]
        Default = "default", "default";
        /// CUDA graphs, whose memory is a pool of their own.
        ReduceOverhead = "reduce-overhead", "reduce-overhead (CUDA graphs)";
    }
}

choice! {
    /// Low-precision training recipes of torchao, other than tensorwise float8 (`training.fp8`).
    LowPrecision {
        #[default]
        None = "none", "none";
        /// torchao's float8 with a scale for each row.
        Rowwise = "float8-rowwise", "float8, rowwise scales";
        /// The same, with gradients of weights as products of 16 bits.
        RowwiseHigh = "float8-rowwise-gw-hp", "float8, rowwise scales, weight gradients in 16 bits";
        /// torchao's MXFP8: a scale for each 32 elements.
        MxFp8 = "mxfp8", "MXFP8";
        /// torchao's NVFP4, which saves four bits of each input.
        NvFp4 = "nvfp4", "NVFP4";
        /// torchao's int8 mixed precision: products of bytes over weights of the precision's type.
        Int8Mixed = "int8-mixed", "int8 products";
        /// torchao's BitNet b1.58: bytes times weights of three values.
        BitNet = "bitnet", "BitNet b1.58";
    }
}

choice! {
    /// How frozen weights of linear layers are stored.
    Quantization {
        #[default]
        None = "none", "none";
        /// Four bits and a scale for each 64 weights (bitsandbytes).
        Nf4 = "nf4", "NF4";
        /// The same with quantised scales.
        Nf4Double = "nf4-double", "NF4, double quantisation";
        /// The same in torchao's `NF4Tensor`, as torchtune has it.
        Nf4Ao = "nf4-ao", "NF4 (torchao)";
        /// Eight bits and a scale for each output (LLM.int8 of bitsandbytes).
        Int8 = "int8", "int8 (LLM.int8)";
        /// Four bits, a scale and a zero for each 64 weights (HQQ); each layer's input is kept.
        Hqq = "hqq", "HQQ, 4-bit";
        /// Four bits with a scale and a zero point per 128 weights (GPT-QModel's trainable layers); autograd saves dequantized weights.
        Gptq = "gptq", "GPTQ, 4-bit";
        /// The same in AWQ's format; each layer's input is kept.
        Awq = "awq", "AWQ, 4-bit";
        /// A byte a weight, cast to the computing type for each product.
        Fp8 = "fp8", "fp8 (e4m3)";
        /// One codebook of 65,536 entries for groups of eight weights: two bits each.
        Aqlm = "aqlm", "AQLM, 2-bit (1x16)";
    }
}

choice! {
    /// What is known of the lengths of samples, or of the sizes of graphs.
    Distribution {
        #[default]
        Fixed = "fixed", "fixed length";
        /// Shorter samples are padded to the sequence length, whatever the batch holds.
        PaddedToMax = "padded-to-max", "padded to the sequence length";
        /// Each batch is as long as its longest sample, or holds what its graphs hold.
        Varying = "varying", "varying length";
    }
}

choice! {
    /// How the GPUs that hold the same layers share weights, gradients and states.
    Parallelism {
        /// One process; further GPUs stay idle.
        None = "none", "none (single process)";
        #[default]
        Ddp = "ddp", "DDP";
        /// One process, which copies the model to all GPUs for each forward (`torch.nn.DataParallel`).
        DataParallel = "dp", "DataParallel (one process)";
        Fsdp1 = "fsdp1", "FSDP 1";
        Fsdp2 = "fsdp2", "FSDP 2";
        /// FSDP within a machine, replicas between machines.
        Hsdp = "hsdp", "HSDP: sharded within a node, replicated across";
        /// Every rank steps fp32 copies of all weights.
        Zero0 = "zero0", "DeepSpeed without ZeRO";
        Zero1 = "zero1", "ZeRO-1: shards optimizer states";
        Zero2 = "zero2", "ZeRO-2: shards states and gradients";
        Zero3 = "zero3", "ZeRO-3: shards states, gradients and weights";
    }
}

choice! {
    /// Which modules FSDP gathers and reshards as one; what is in none of them belongs to the root.
    Wrap {
        /// As the trainer does.
        #[default]
        Auto = "auto", "as the trainer does";
        Layers = "layers", "each layer";
        Embedding = "layers-embedding", "each layer and the input embedding";
        /// The final norm and the head are one unit, which stays gathered.
        Ends = "layers-ends", "each layer, the input embedding, and norm and head together";
        Root = "root", "the whole model as one";
    }
}

choice! {
    /// What DDP sends its buckets as (`register_comm_hook`).
    CommHook {
        #[default]
        None = "none", "as they are";
        Fp16 = "fp16", "in fp16";
        Bf16 = "bf16", "in bf16";
        PowerSgd = "powersgd", "as factors of low rank (PowerSGD)";
    }
}

choice! {
    /// A type of FSDP's mixed-precision policy.
    PolicyType {
        /// That of the run's precision, as the trainer sets it.
        #[default]
        Auto = "auto", "as the trainer sets it";
        /// That of the weights.
        Own = "own", "the weights' own";
        Fp32 = "fp32", "fp32";
        Bf16 = "bf16", "bf16";
        Fp16 = "fp16", "fp16";
    }
}

choice! {
    /// How GPUs that share a sequence attend to all of it.
    ContextParallel {
        /// Ring attention (PyTorch's `context_parallel`).
        #[default]
        Ring = "ring", "ring attention";
        /// Each GPU has all tokens of some heads while it attends.
        Ulysses = "ulysses", "all-to-all over heads (Ulysses)";
    }
}

choice! {
    /// The order of a pipeline's passes (`torch.distributed.pipelining`).
    Schedule {
        GPipe = "gpipe", "GPipe";
        #[default]
        OneForwardOneBackward = "1f1b", "1F1B";
        Interleaved = "interleaved", "interleaved 1F1B";
        LoopedBfs = "bfs", "looped breadth-first";
        ZeroBubble = "zero-bubble", "interleaved zero bubble";
        ZeroBubbleV = "zbv", "zero bubble, V-shaped";
        DualPipeV = "dualpipev", "DualPipeV";
    }
}

choice! {
    /// A switch that a program sets unless the user does.
    Toggle {
        #[default]
        Auto = "auto", "as the program sets it";
        On = "on", "on";
        Off = "off", "off";
    }
}

choice! {
    /// What ZeRO or FSDP keep in host memory.
    Offload {
        #[default]
        None = "none", "nothing";
        Optimizer = "optimizer", "optimizer states";
        /// Weights too.
        Parameters = "parameters", "weights and optimizer states";
    }
}

choice! {
    /// The program that trains.
    Trainer {
        /// A plain PyTorch loop.
        #[default]
        Torch = "torch", "PyTorch loop";
        Transformers = "transformers", "transformers Trainer";
        Trl = "trl", "TRL SFTTrainer";
        Axolotl = "axolotl", "Axolotl";
        LlamaFactory = "llama-factory", "LLaMA-Factory";
        Torchtune = "torchtune", "torchtune";
        Lightning = "lightning", "Lightning";
        Deepspeed = "deepspeed", "DeepSpeed";
        Unsloth = "unsloth", "Unsloth";
        Swift = "ms-swift", "ms-swift";
        Torchtitan = "torchtitan", "torchtitan";
        Megatron = "megatron", "Megatron-core";
        Verl = "verl", "verl";
    }
}

choice! {
    /// What a run trains its model to do, and whose trainer does it.
    Objective {
        /// The model's own loss in a plain PyTorch loop: pre-training and plain fine-tuning.
        #[default]
        Pretraining = "pretraining", "pre-training or plain fine-tuning";
        Sft = "sft", "supervised fine-tuning (TRL)";
        Dpo = "dpo", "DPO";
        Kto = "kto", "KTO";
        Orpo = "orpo", "ORPO";
        Cpo = "cpo", "CPO";
        SimPo = "simpo", "SimPO";
        Reward = "reward", "reward model";
        Grpo = "grpo", "GRPO";
        Rloo = "rloo", "RLOO";
        Ppo = "ppo", "PPO";
        Gkd = "gkd", "GKD (full logits)";
        Distillation = "distillation", "distillation (chunked)";
        /// A head for a class of each sequence (`…ForSequenceClassification`).
        Classification = "classification", "sequence classification";
        TokenClassification = "token-classification", "token classification";
        /// A number for each sequence.
        Regression = "regression", "regression";
        /// A number for each pair of a query and a passage (a cross-encoder).
        Reranking = "reranking", "reranking (cross-encoder)";
        /// Where an answer starts and ends.
        QuestionAnswering = "question-answering", "extractive question answering";
        /// Embeddings of queries against those of passages: all in the batch, and hard negatives (InfoNCE).
        Contrastive = "contrastive", "contrastive (InfoNCE)";
        /// Nothing is trained: completions are sampled.
        Generation = "generation", "generation";
        /// Nothing is trained: a forward pass over each batch, and metrics.
        Evaluation = "evaluation", "evaluation";
    }
}

choice! {
    /// From what a trainer after pre-training takes its log-probabilities.
    LmHead {
        /// Tiles of tokens and vocabulary, folded into running sums: TRL since its fused head.
        #[default]
        Fused = "fused", "fused head, no logits (TRL)";
        /// All logits, which accelerate casts to fp32: TRL before, and loops like it.
        Logits = "logits", "all logits in fp32";
        /// All logits in the type that the model gives them, and a log-softmax of each row: loops without accelerate.
        LogitsByRow = "logits-by-row", "all logits, their log-softmax row by row";
        /// All logits and their log-softmax: LLaMA-Factory's preference losses.
        LogSoftmax = "log-softmax", "all logits and their log-softmax";
        /// All logits in 16 bits, which the temperature divides and the gradient overwrites in place: verl, with flash-attn's loss.
        InPlace = "in-place", "all logits, overwritten by their gradient (verl)";
        /// Liger's chunked losses: gradients are made in forward.
        Liger = "liger", "Liger's chunked loss";
    }
}

choice! {
    /// What is in host memory while completions are sampled.
    SamplingOffload {
        #[default]
        None = "none", "nothing";
        Optimizer = "optimizer", "optimizer states";
        Parameters = "parameters", "parameters";
        Both = "both", "parameters and optimizer states";
    }
}

choice! {
    /// Where a reference's log-probabilities come from.
    Reference {
        /// The model with its adapters off where it has adapters, else a copy.
        #[default]
        Auto = "auto", "adapters off, or a copy";
        Copy = "copy", "a copy of the model";
        AdaptersOff = "adapters-off", "the model, its adapters off";
        /// They were computed before training; the copy that computed them stays where it was passed to the trainer.
        Precomputed = "precomputed", "computed before training";
        /// They were computed before training by the model itself, as it then was: no copy is made.
        ByItself = "precomputed-by-itself", "computed before training, by the model itself";
        None = "none", "no reference";
    }
}

choice! {
    /// The dtype of a reference or teacher model.
    ReferenceDtype {
        #[default]
        Same = "same", "as the trained model";
        Bf16 = "bf16", "bf16";
        Fp32 = "fp32", "fp32";
    }
}

choice! {
    /// What samples the completions that a run learns from.
    Sampler {
        /// `generate` of transformers with a cache that grows.
        #[default]
        Generate = "generate", "generate, growing cache";
        Static = "generate-static", "generate, static cache";
        /// vLLM in the same process, on the same card.
        Vllm = "vllm", "vLLM on the same GPU";
        VllmElsewhere = "vllm-server", "vLLM on another GPU";
    }
}

choice! {
    /// What an evaluation keeps of a batch on the device.
    EvaluationOutput {
        /// The loss alone.
        #[default]
        Loss = "loss", "the loss alone";
        /// All batches' logits, for metrics at the end.
        Logits = "logits", "logits of all batches";
        /// What `preprocess_logits_for_metrics` makes of them, such as the likeliest tokens.
        Preprocessed = "preprocessed", "predictions of all batches";
    }
}

choice! {
    /// How PEFT adapts a layer.
    AdapterMethod {
        #[default]
        Lora = "lora", "LoRA";
        /// The first matrix is frozen.
        LoraFa = "lora-fa", "LoRA-FA";
        Dora = "dora", "DoRA";
        AdaLora = "adalora", "AdaLoRA";
        Vera = "vera", "VeRA";
        RandLora = "randlora", "RandLoRA";
        LoHa = "loha", "LoHa";
        LoKr = "lokr", "LoKr";
        Miss = "miss", "MiSS";
        /// `init_weights="bat"`: each forward changes the weight block by block.
        MissBat = "miss-bat", "MiSS (bat)";
        /// Rotates pairs of outputs.
        Road = "road", "RoAd";
        /// Some entries of each weight are learned: as many as LoRA of that rank has.
        Shira = "shira", "SHiRA";
        DeLora = "delora", "DeLoRA";
        HiRa = "hira", "HiRA";
        GraLora = "gralora", "GraLoRA";
        PVera = "pvera", "PVeRA";
        VbLora = "vblora", "VB-LoRA";
        /// The low part of each weight's decomposition: the rank says how much of it is not trained.
        Osf = "osf", "OSF";
        /// Takes the layer's output out of a subspace, and puts something learned into it.
        Deft = "deft", "DEFT";
        /// `para=True`: only takes it out.
        DeftPara = "deft-para", "DEFT (PaRa)";
        /// Rotates the directions in which the weight is strongest: as many as the rank says.
        Psoft = "psoft", "PSOFT";
        /// Scales and shifts each weight by products of two matrices.
        GLora = "glora", "GLoRA";
        /// A small network computes the update from the weight.
        Peanut = "peanut", "PEANuT";
        /// Replaces each weight by a decomposition that layers of the same name share; it has no rank.
        Frod = "frod", "FRoD";
        /// Learns `rank` frequencies of each matrix.
        FourierFt = "fourierft", "FourierFT";
        WaveFt = "waveft", "WaveFT";
        Oft = "oft", "OFT";
        /// Rotates blocks of inputs, by a matrix as large as the layer is wide.
        Boft = "boft", "BOFT";
        /// Circulant blocks, multiplied by Fourier transforms.
        C3a = "c3a", "C3A";
        Ia3 = "ia3", "IA3";
        /// Norms alone are trained, in a copy of each.
        LnTuning = "ln", "LN tuning";
        /// Learned keys and values before each sample's own, in every layer: as many as the rank says.
        Prefix = "prefix", "prefix tuning";
        /// Rows of the embedding: as many as the rank says.
        TrainedTokens = "trainable-tokens", "trainable tokens";
    }
}

impl AdapterMethod {
    /// Whether it is modelled over quantized weights: not where it merges into the weight, or rotates inputs or outputs.
    pub const fn over_quantised(self) -> bool {
        !matches!(
            self,
            Self::Shira
                | Self::Boft
                | Self::C3a
                | Self::HiRa
                | Self::DeLora
                | Self::Osf
                | Self::Deft
                | Self::DeftPara
                | Self::Psoft
                | Self::GLora
                | Self::Peanut
                | Self::Frod
        )
    }
}

impl Optimizer {
    /// Whether it consumes each gradient during backward.
    pub const fn consumes_gradients(self) -> bool {
        matches!(self, Self::Lomo | Self::AdaLomo)
    }

    /// Whether bitsandbytes steps it.
    pub const fn is_of_bitsandbytes(self) -> bool {
        matches!(
            self,
            Self::AdamW8bit
                | Self::PagedAdamW
                | Self::PagedAdamW8bit
                | Self::AdEmaMix
                | Self::AdEmaMix8bit
                | Self::PagedAdEmaMix
                | Self::PagedAdEmaMix8bit
                | Self::AdamWBnb
                | Self::Lion8bit
                | Self::LionBnb
                | Self::PagedLion
                | Self::PagedLion8bit
                | Self::RmsPropBnb
                | Self::RmsProp8bit
                | Self::AdagradBnb
                | Self::Adagrad8bit
        )
    }
}
