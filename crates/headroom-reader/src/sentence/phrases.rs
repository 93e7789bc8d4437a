//! The phrases of sentences, each with what it says: a table.

use super::vocabulary::{Number, Say};
use crate::words::{
    Adapter, Attention, Checkpointing, Compute, DataParallel, Offload, Task, Wanted, Weights,
};

/// Phrases by what they say; the longest that matches counts.
pub(super) const PHRASES: &[(Say, &str)] = &[
    (
        Say::Full,
        "full|fully|full parameter|full param|full parameters|full weight|full weights|full model|all parameters|all weights|all params|fft|full rank|non lora",
    ),
    (
        Say::Adapter(Adapter::Qlora),
        "qlora|q lora|qlo ra|quantized lora|quantised lora|qdora",
    ),
    (
        Say::Adapter(Adapter::Lora),
        "lora|lo ra|loras|low rank adaptation|low rank adapters|low rank adapter|rslora|rs lora|pissa|loraplus|lora plus|locon|peft",
    ),
    (Say::Adapter(Adapter::Dora), "dora"),
    (Say::Adapter(Adapter::Adalora), "adalora|ada lora"),
    (Say::Adapter(Adapter::Oft), "oft"),
    (Say::Adapter(Adapter::Boft), "boft"),
    (Say::Adapter(Adapter::Ia3), "ia 3"),
    (Say::Adapter(Adapter::Lokr), "lokr"),
    (Say::Adapter(Adapter::Loha), "loha"),
    (Say::Adapter(Adapter::Vera), "vera"),
    (
        Say::Adapter(Adapter::Prefix),
        "prefix tuning|prefix tune|p tuning",
    ),
    (
        Say::Adapter(Adapter::PromptTuning),
        "prompt tuning|soft prompt|soft prompts",
    ),
    (
        Say::Weights(Weights::Nf4),
        "4 bit|4 bits|4 b quant|nf 4|four bit|bnb 4 bit|load in 4 bit|4 bit base|4 bit quantized|bitsandbytes 4 bit|4 bit quantization|4 bit quant|bnb",
    ),
    (
        Say::Weights(Weights::Int8),
        "8 bit|8 bits|int 8|load in 8 bit|llm int 8|8 bit base|8 bit quantized",
    ),
    (Say::Weights(Weights::Int4), "int 4"),
    (Say::Weights(Weights::Fp4), "fp 4"),
    (Say::Weights(Weights::Mxfp4), "mxfp 4"),
    (Say::Weights(Weights::GptqInt4), "gptq"),
    (Say::Weights(Weights::AwqInt4), "awq"),
    (
        Say::Weights(Weights::Bf16),
        "bf 16 weights|bf 16 base|bfloat 16 weights",
    ),
    (
        Say::Weights(Weights::Fp16),
        "fp 16 weights|fp 16 base|float 16 weights",
    ),
    (
        Say::Weights(Weights::Fp32),
        "fp 32 weights|fp 32 master weights|fp 32 base|fp 32 master",
    ),
    (
        Say::Weights(Weights::Fp8),
        "fp 8 base|fp 8 weights|fp 8 quantized",
    ),
    (
        Say::Compute(Compute::Bf16Autocast),
        "bf 16|bfloat 16|bf 16 amp|amp bf 16|bf 16 mixed|bf 16 mixed precision|mixed precision bf 16|bf 16 autocast|autocast bf 16|mixed bf 16|b float 16|brain float 16",
    ),
    (
        Say::Compute(Compute::Fp16Autocast),
        "fp 16|float 16|fp 16 amp|amp fp 16|fp 16 mixed|fp 16 mixed precision|mixed precision fp 16|fp 16 autocast|half precision|mixed fp 16|f 16|16 bit|16 bit mixed",
    ),
    (
        Say::Compute(Compute::Bf16),
        "pure bf 16|bf 16 only|bf 16 true|true bf 16|pure bfloat 16|all bf 16|bf 16 pure",
    ),
    (Say::Compute(Compute::Fp16), "pure fp 16|fp 16 true"),
    (
        Say::Compute(Compute::Fp32),
        "fp 32|float 32|full precision|single precision|32 bit|f 32|no amp|no mixed precision|without amp",
    ),
    (Say::Compute(Compute::Tf32), "tf 32"),
    (
        Say::Compute(Compute::Bf16Fp8),
        "fp 8|fp 8 training|transformer engine|fp 8 matmul|fp 8 matmuls|float 8",
    ),
    (Say::MixedPrecision, "amp|mixed precision|autocast|mixed"),
    (
        Say::Task(Task::Sft),
        "sft|supervised fine tuning|supervised finetuning|instruction tuning|instruct tuning|instruction tune|instruction finetuning|instruction fine tuning|chat tuning",
    ),
    (
        Say::Task(Task::Pretraining),
        "pretrain|pretraining|pre train|pre training|pretrained from scratch|from scratch|continued pretraining|continual pretraining|continued pre training|continue pretraining|cpt|causal lm training|next token prediction",
    ),
    (
        Say::Task(Task::MaskedLm),
        "mlm|masked lm|masked language modeling|masked language modelling|masked language model|masked lm pretraining|mlm pretraining|masked token prediction",
    ),
    (
        Say::Task(Task::Seq2Seq),
        "seq 2 seq|summarization|summarisation|translation|sequence to sequence",
    ),
    (
        Say::Task(Task::Classification),
        "classification|classifier|sequence classification|text classification|image classification|classify|sentiment|glue|sst 2|mnli|imagenet|imagenet 1 k|cifar|cifar 10|cifar 100",
    ),
    (
        Say::Task(Task::TokenClassification),
        "token classification|ner|named entity recognition|pos tagging|token classifier",
    ),
    (Say::Task(Task::Regression), "regression"),
    (
        Say::Task(Task::QuestionAnswering),
        "question answering|squad|extractive qa",
    ),
    (
        Say::Task(Task::Contrastive),
        "contrastive|contrastive learning|embedding training|sentence embeddings|sentence embedding|infonce|info nce|mnrl|simcse|embedding finetune|embedding model|retrieval training|multiple negatives ranking",
    ),
    (
        Say::Task(Task::Reranking),
        "reranking|reranker|re ranking|cross encoder",
    ),
    (
        Say::Task(Task::Reward),
        "reward model|reward modeling|reward modelling|reward training|rm training|reward",
    ),
    (
        Say::Task(Task::Dpo),
        "dpo|direct preference optimization|preference tuning|ipo",
    ),
    (Say::Task(Task::Kto), "kto"),
    (Say::Task(Task::Orpo), "orpo"),
    (Say::Task(Task::Cpo), "cpo"),
    (Say::Task(Task::Simpo), "simpo"),
    (Say::Task(Task::Grpo), "grpo|dapo|dr grpo|rlvr|gspo"),
    (Say::Task(Task::Rloo), "rloo"),
    (Say::Task(Task::Ppo), "ppo|rlhf"),
    (
        Say::Task(Task::Distillation),
        "distillation|distill|distilling|knowledge distillation|gkd|on policy distillation",
    ),
    (Say::Task(Task::SelfDistillation), "self distillation"),
    (
        Say::Task(Task::Detection),
        "object detection|detection|coco detection",
    ),
    (
        Say::Task(Task::Segmentation),
        "segmentation|semantic segmentation|instance segmentation",
    ),
    (Say::Task(Task::Ctc), "ctc|asr ctc"),
    (
        Say::Task(Task::Diffusion),
        "diffusion|dreambooth|dream booth|text to image|textual inversion",
    ),
    (
        Say::Data(DataParallel::Ddp),
        "ddp|data parallel|distributed data parallel",
    ),
    (
        Say::Data(DataParallel::Fsdp),
        "fsdp|fully sharded data parallel|fully sharded|full shard|fully shard",
    ),
    (Say::Data(DataParallel::Fsdp1), "fsdp 1|fsdp v 1"),
    (Say::Data(DataParallel::Fsdp2), "fsdp 2|fsdp v 2"),
    (
        Say::Data(DataParallel::Hsdp),
        "hsdp|hybrid shard|hybrid sharding|hybrid sharded",
    ),
    (Say::Data(DataParallel::Zero0), "zero 0|zero stage 0"),
    (
        Say::Data(DataParallel::Zero1),
        "zero 1|zero stage 1|deepspeed 1|deepspeed z 1|ds z 1|z 1|stage 1|zero one|deepspeed stage 1|ds 1|ds stage 1|distributed optimizer",
    ),
    (
        Say::Data(DataParallel::Zero2),
        "zero 2|zero stage 2|deepspeed 2|deepspeed z 2|ds z 2|z 2|stage 2|zero two|deepspeed stage 2|ds 2|ds stage 2",
    ),
    (
        Say::Data(DataParallel::Zero3),
        "zero 3|zero stage 3|deepspeed 3|deepspeed z 3|ds z 3|z 3|stage 3|zero three|deepspeed stage 3|ds 3|ds stage 3",
    ),
    (Say::DeepSpeed, "deepspeed|deep speed|ds|zero"),
    (
        Say::Offload(Offload::Both),
        "offload|offloading|cpu offload|cpu offloading|offloaded|offload to cpu|full offload|offload everything|nvme|infinity|nvme offload|ram offload",
    ),
    (
        Say::Offload(Offload::Optimizer),
        "optimizer offload|offload optimizer|optimizer offloading|optim offload|optimizer cpu offload|cpu offload optimizer|offload optimizer states|optimizer state offload|optimizer states offload|cpu adam|optimizer on cpu|offloaded optimizer|offload the optimizer|cpu optimizer",
    ),
    (
        Say::Offload(Offload::Parameters),
        "param offload|parameter offload|offload params|offload parameters|offload param|params offload|weight offload|offload weights",
    ),
    (Say::Trainer("unsloth"), "unsloth"),
    (
        Say::Trainer("trl"),
        "trl|sfttrainer|dpotrainer|grpotrainer|sft trainer|dpo trainer|grpo trainer|ppo trainer",
    ),
    (Say::Trainer("axolotl"), "axolotl"),
    (Say::Trainer("llamafactory"), "llama factory|llamafactory"),
    (Say::Trainer("ms-swift"), "ms swift|swift|modelscope swift"),
    (Say::Trainer("torchtune"), "torchtune|torch tune"),
    (Say::Trainer("torchtitan"), "torchtitan|torch titan"),
    (
        Say::Trainer("lightning"),
        "lightning|pytorch lightning|pl trainer",
    ),
    (Say::Trainer("litgpt"), "litgpt|lit gpt"),
    (
        Say::Trainer("transformers"),
        "transformers|hf trainer|huggingface trainer|hugging face trainer|hf transformers|trainer",
    ),
    (Say::Trainer("verl"), "verl"),
    (Say::Trainer("openrlhf"), "openrlhf|open rlhf"),
    (Say::Trainer("nemo-rl"), "nemo rl"),
    (Say::Trainer("skyrl"), "skyrl"),
    (Say::Trainer("prime-rl"), "prime rl"),
    (Say::Trainer("open-instruct"), "open instruct"),
    (
        Say::Trainer("megatron"),
        "megatron|megatron lm|megatron core|mcore|megatron bridge",
    ),
    (Say::Trainer("nanotron"), "nanotron"),
    (Say::Trainer("llm-foundry"), "llm foundry|composer"),
    (Say::Trainer("gpt-neox"), "gpt neox library"),
    (Say::Trainer("levanter"), "levanter"),
    (Say::Trainer("nanogpt"), "nanogpt|nano gpt|nanochat"),
    (Say::Trainer("diffusers"), "diffusers"),
    (
        Say::Trainer("kohya"),
        "kohya|kohya ss|sd scripts|kohya sd scripts",
    ),
    (
        Say::Trainer("ai-toolkit"),
        "ai toolkit|ostris|ostris ai toolkit",
    ),
    (Say::Trainer("musubi"), "musubi|musubi tuner"),
    (Say::Trainer("diffusion-pipe"), "diffusion pipe"),
    (Say::Trainer("simpletuner"), "simpletuner|simple tuner"),
    (Say::Trainer("onetrainer"), "onetrainer|one trainer"),
    (Say::Trainer("xtuner"), "xtuner"),
    (
        Say::Trainer("mmengine"),
        "mmengine|mmdetection|mmdet|mmseg|mmsegmentation|mmpretrain",
    ),
    (Say::Trainer("timm"), "timm"),
    (Say::Trainer("ultralytics"), "ultralytics"),
    (
        Say::Trainer("sentence-transformers"),
        "sentence transformers|sbert",
    ),
    (Say::Trainer("open-clip"), "open clip|openclip"),
    (Say::Trainer("alignment-handbook"), "alignment handbook"),
    (Say::Trainer("accelerate"), "accelerate"),
    (
        Say::Trainer("torch"),
        "plain pytorch|pure pytorch|pytorch loop|plain torch|raw pytorch",
    ),
    (
        Say::Optimizer("adamw"),
        "adamw|adam|adam w|adamw torch|torch adamw",
    ),
    (
        Say::Optimizer("adamw_torch_fused"),
        "fused adamw|adamw fused|fused adam|adamw torch fused|adam fused",
    ),
    (
        Say::Optimizer("adamw8bit"),
        "adamw 8 bit|adam 8 bit|8 bit adam|8 bit adamw|8 bit optimizer|bnb adamw|adamw bnb 8 bit|8 bit optim|8 bit bnb adamw|optimizer 8 bit|bitsandbytes adam|bitsandbytes adamw|bnb 8 bit adam|adamw in 8 bit|8 bit optimizer states",
    ),
    (
        Say::Optimizer("paged_adamw_32bit"),
        "paged adamw|paged adam|paged adamw 32 bit|paged optimizer",
    ),
    (
        Say::Optimizer("paged_adamw_8bit"),
        "paged adamw 8 bit|paged 8 bit adamw|paged adam 8 bit|8 bit paged adamw|paged 8 bit adam",
    ),
    (Say::Optimizer("sgd"), "sgd|plain sgd"),
    (
        Say::Optimizer("sgd_momentum"),
        "sgd momentum|sgd with momentum|momentum sgd",
    ),
    (Say::Optimizer("adafactor"), "adafactor|ada factor"),
    (Say::Optimizer("lion"), "lion"),
    (Say::Optimizer("lion_8bit"), "lion 8 bit|8 bit lion"),
    (
        Say::Optimizer("paged_lion_8bit"),
        "paged lion 8 bit|paged lion",
    ),
    (Say::Optimizer("muon"), "muon"),
    (Say::Optimizer("galore_adamw"), "galore|ga lore"),
    (
        Say::Optimizer("galore_adamw_8bit"),
        "galore 8 bit|8 bit galore|q galore",
    ),
    (Say::Optimizer("apollo_adamw"), "apollo"),
    (Say::Optimizer("lomo"), "lomo"),
    (Say::Optimizer("adalomo"), "adalomo"),
    (Say::Optimizer("came"), "came optimizer"),
    (Say::Optimizer("soap"), "soap"),
    (Say::Optimizer("rmsprop"), "rmsprop"),
    (Say::Optimizer("adagrad"), "adagrad"),
    (Say::Optimizer("ademamix"), "ademamix"),
    (
        Say::Optimizer("schedule_free_adamw"),
        "schedule free|schedulefree|schedule free adamw",
    ),
    (Say::Optimizer("prodigy"), "prodigy"),
    (Say::Optimizer("lamb"), "lamb"),
    (Say::Optimizer("sophia"), "sophia"),
    (Say::Optimizer("shampoo"), "shampoo"),
    (
        Say::Checkpointing(Checkpointing::On),
        "gradient checkpointing|grad checkpointing|grad checkpoint|gradient checkpoint|grad ckpt|activation checkpointing|activation checkpoint|act ckpt|checkpointing|ckpt|recompute|recomputation|activation recomputation|activation recompute|gradient ckpt|gc|full recompute|act checkpointing|full ac|rematerialization|remat",
    ),
    (
        Say::Checkpointing(Checkpointing::Selective),
        "selective checkpointing|selective activation checkpointing|selective ac|selective recompute|selective recomputation|sac",
    ),
    (
        Say::Attention(Attention::Flash),
        "flash attention|flash attn|flashattention|flashattn|flash attention 2|flash attn 2|flash attention 3|flash attn 3|fa 2|fa 3|flash attention v 2|flashattention 2|flash",
    ),
    (
        Say::Attention(Attention::Sdpa),
        "sdpa|torch sdpa|scaled dot product attention|mem efficient attention|memory efficient attention",
    ),
    (Say::Attention(Attention::Xformers), "xformers|x formers"),
    (
        Say::Attention(Attention::Eager),
        "eager attention|eager|vanilla attention|naive attention",
    ),
    (
        Say::Attention(Attention::Flex),
        "flex attention|flexattention",
    ),
    (Say::Liger, "liger|liger kernel|liger kernels"),
    (
        Say::Compile,
        "torch compile|compile|compiled|inductor|torch compiled|with compile|torchcompile|compiling",
    ),
    (
        Say::Packing,
        "packing|packed|sample packing|sequence packing|packed sequences|multipack|pack",
    ),
    (
        Say::Part("head"),
        "linear probe|linear probing|linear head|frozen backbone|frozen encoder|freeze backbone|freeze encoder|freeze the backbone|head only|only the head|classifier only|classification head only|backbone frozen|encoder frozen|frozen features|last layer only|only last layer|freezing the backbone|just the head|linear eval|linear evaluation|linear classifier|frozen|frozen base model",
    ),
    (
        Say::Targets("all-linear"),
        "all linear|all linear layers|target all linear|all linear modules|on all linear|all layers lora|every linear",
    ),
    (
        Say::Targets("q_proj v_proj"),
        "q proj v proj|qv only|q v only|q and v only|q v",
    ),
    (
        Say::Targets("q_proj k_proj v_proj o_proj"),
        "qkvo|attention only|attn only|attention layers only|q proj k proj v proj o proj|qkv o",
    ),
    (
        Say::Wanted(Wanted::Batch),
        "max batch|max batch size|maximum batch|maximum batch size|biggest batch|biggest batch size|largest batch|largest batch size|what batch size|what batch|which batch size|how large a batch|how big a batch|how big of a batch|best batch size|highest batch size|highest batch|batch size can|optimal batch size|max bs|max micro batch|what micro batch|what bs|how many samples per gpu|largest micro batch",
    ),
    (
        Say::Wanted(Wanted::Length),
        "max context|max sequence|max sequence length|max seq|max seq length|max seq len|max length|max context length|maximum context|maximum context length|maximum sequence length|maximum sequence|longest context|longest sequence|longest sequence length|largest context|largest context length|largest sequence length|how long a context|how long a sequence|how long|what context|what context length|what sequence length|what length|which context length|how much context|how many tokens|biggest context|longest context length|longest seq|what seq len|what ctx|max ctx|longest ctx|what sequence|highest context|how long of a context",
    ),
    (
        Say::Wanted(Wanted::Cards),
        "how many gpus|how many gpu|how many cards|how many|number of gpus|how much hardware|minimum number of gpus|fewest gpus|how few gpus|min gpus|minimum gpus|minimum gpu count|gpu count",
    ),
    (
        Say::Wanted(Wanted::Cheapest),
        "cheapest gpu|cheapest card|cheapest|which gpu|what gpu|which card|what card|which gpus|what gpus|smallest gpu|smallest card|what hardware|which hardware|cheapest way|gpu recommendation|which graphics card|what graphics card|least expensive|recommend a gpu|minimum gpu|what gpu do i need|min gpu|cheapest hardware|lowest cost|budget gpu|cheapest setup",
    ),
    (
        Say::Vllm,
        "vllm|colocated vllm|vllm colocate|with vllm|vllm colocated",
    ),
    (
        Say::TextEncoder,
        "train text encoder|text encoder training|training text encoder|train te|with text encoder|text encoder too|text encoders too|and text encoder|te training|unet and text encoder",
    ),
    (
        Say::CachedLatents,
        "cache latents|cached latents|latents cached|latent caching|caching latents",
    ),
    (
        Say::InBackward,
        "optimizer in backward|optim in backward|optimizer in the backward|fused backward|fused backward pass|optimizer step in backward|in backward optimizer|optimizer fused into backward|optimizer in bwd|fused optimizer in backward",
    ),
    (
        Say::Unmodelled("the sequence over GPUs"),
        "ulysses|deepspeed ulysses",
    ),
    (Say::Ema, "ema|with ema|exponential moving average|use ema"),
    (
        Say::SequenceParallel,
        "sequence parallel|sequence parallelism|with sp",
    ),
    (
        Say::Number(Number::Length),
        "seq|seqlen|seq len|seq length|sequence|sequence length|sequence len|sequences of|max seq length|max seq len|max length|max len|context|context length|context len|context window|context size|ctx|ctx len|ctx length|cutoff len|cutoff length|cutoff|block size|tokens|token|tok|toks|residues|residue|aa|amino acids|amino acid|base pairs|bp|long|length|len|max tokens|max seq|token context|token sequences|token seqs|token samples|tokens long|tokens context|word pieces|max sequence length|max context|max context length|n ctx|input|input length|inputs|crop|crop size|seqs of|tokens per sequence|token length",
    ),
    (
        Say::Number(Number::Prompt),
        "prompt|prompt length|prompt len|max prompt length|prompt tokens|max prompt|token prompt|token prompts|prompts of",
    ),
    (
        Say::Number(Number::Completion),
        "completion|completion length|completion len|max completion length|completion tokens|response length|response|max response length|max new tokens|max completion|token completion|token completions|completions of|response tokens|token responses|token response|new tokens|generated tokens",
    ),
    (
        Say::Number(Number::Batch),
        "batch|batch size|batchsize|bs|mbs|micro batch|microbatch|micro batch size|microbatch size|micro bs|mb|per device batch|per device batch size|per gpu batch|per gpu batch size|batch of|batches of|batch per gpu|batch size per gpu|per device train batch size|train batch size|per device bs|batch per device|images per gpu|samples per gpu|sequences per gpu|imgs per gpu|local batch size|local batch",
    ),
    (
        Say::Number(Number::GlobalBatch),
        "global batch|global batch size|gbs|effective batch|effective batch size|total batch|total batch size|eff batch|overall batch|effective bs|global bs|total bs",
    ),
    (
        Say::Number(Number::Accumulation),
        "gradient accumulation|grad accum|grad acc|grad accumulation|accumulation|accum|ga|gas|gradient accumulation steps|grad accum steps|accumulation steps|accumulate|accumulate grad batches|gradient acc|acc steps|gradient accumulation of|gradient accum",
    ),
    (
        Say::Number(Number::Rank),
        "r|rank|lora rank|lora r|lora dim|network dim|rank of|dim|lora rank of|ranks",
    ),
    (
        Say::Number(Number::Samples),
        "generations|generation|gens|gen|num generations|completions|samples per prompt|rollouts|rollout|group size|group|responses|completions per prompt|generations per prompt|rollouts per prompt|n generations|responses per prompt|rollout n|candidates",
    ),
    (Say::Number(Number::Frames), "frames|frame|num frames|f"),
    (
        Say::Number(Number::Pixels),
        "px|pixels|pixel|resolution|res|image size|img size|imgsz|image resolution|input size|img|images at|p",
    ),
    (
        Say::Number(Number::Nodes),
        "nodes|node|machines|machine|hosts|servers",
    ),
    (
        Say::Number(Number::Gpus),
        "gpus|gpu|cards|card|gpus total|devices|accelerators|graphics cards|ranks total|world size",
    ),
    (
        Say::Number(Number::PerNode),
        "gpus per node|gpus each|gpus a node|gpu per node|per node|gpu nodes|gpu node|gpus node|way nodes|cards per node|cards each|gpu machines|gpu servers",
    ),
    (
        Say::Number(Number::Tensor),
        "tp|tensor parallel|tensor parallelism|tp size|tensor parallel size|tensor parallel degree|way tensor parallel",
    ),
    (
        Say::Number(Number::Pipeline),
        "pp|pipeline parallel|pipeline parallelism|pp size|pipeline stages|pipeline parallel size",
    ),
    (
        Say::Number(Number::Context),
        "cp|context parallel|context parallelism|cp size|context parallel size|ring attention",
    ),
    (
        Say::Number(Number::Data),
        "dp|dp size|data parallel size|data parallel degree",
    ),
    (
        Say::Number(Number::Expert),
        "ep|expert parallel|expert parallelism|ep size|expert parallel size",
    ),
    (
        Say::Number(Number::BlocksSwapped),
        "blocks swapped|blocks to swap|block swap|blocks swap|swap blocks|block swaps",
    ),
    (
        Say::Number(Number::Nothing),
        "epochs|epoch|steps|step|lr|learning rate|alpha|lora alpha|dropout|lora dropout|warmup|weight decay|wd|beta|seed|samples|examples|rows|images|hours|days|minutes|weeks|sec|seconds|workers|num workers|s|fps|max steps|warmup steps|temperature|temp|billion tokens|torch version|python",
    ),
    (
        Say::Across,
        "across|spread over|spread across|over|distributed over|distributed across|in total|total",
    ),
    (Say::Colab, "colab|google colab|free colab|colab free"),
    (Say::Dgx, "dgx|hgx"),
    (
        Say::Nothing,
        "hugging face|huggingface|pytorch|torch|cuda|linux|windows|wsl|ubuntu|fine tune|fine tuning|finetune|finetuning|fine tuned|finetuned|ft|train|training|trained|tune|tuning|tuned|run|running|inference free|runpod|lambda labs|vast|vast ai|aws|gcp|azure|modal|sagemaker|slurm|nvlink|infiniband|pcie|sxm|nvl|vram|memory|gpu memory|video memory|ram|dataset|data|adapters|adapter|text only|cosine|multi gpu|single gpu|one gpu|multi node|single node|per device|per gpu|alpaca|wikitext|openwebtext|c 4|fineweb|the pile|ultrachat|ultrafeedback|gsm 8 k|laion|oasst|guanaco|imagenet pretrained|style|character|subject|base model|pretrained|pre trained|checkpoint|weights|quantized|quantised|quantization|optimizer|precision|attention|kernel|kernels|distributed|parallel|strategy",
    ),
];

/// Words without content.
pub(super) const STOP: &str = "\
    laptop notebook handle mit auf und der die das ein eine fur pour avec sur con en \
    a able about across after against all also am an and another any anyone approx approximately are \
    around as ask at available be been before between big bigger both but buy by calculate can card \
    cards cloud code colab config configuration could currently d default defaults desktop different \
    do does doing don during each else enough estimate etc even ever every experiment finetune fit \
    fits fitting for from geforce get getting given go going good got gpu gpus had has have having \
    hello help here hey hi home how i if in inference instead into is it its job just kaggle know \
    large later least let like ll llm llms local locally mac macbook machine machines make many max \
    maximum may maybe me memory min minus model models more most much my need needed needs new no \
    normal not now nvidia o of off ok old on one ones only oom optimal or our out over own pc per \
    please pls plus plz possible probably project question re recommended rent required rig rocm \
    roughly rtx s same script server servers set setup should since size so some someone something \
    standard still studio suggest t take takes taking tell than thank thanks that the their them \
    then there think this to today together too total try trying under up us use using usual v ve \
    version via vram vs w wanna want was way we what when where which while who will with within \
    without work working works workstation would x yes you your";
