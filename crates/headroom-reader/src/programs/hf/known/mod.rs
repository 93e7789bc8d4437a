//! Scripts that many people start: what their own parsers and code decide and no flag says.
//!
//! Each entry names its file; values are those of its main branch, where a commit is not given.

mod rules;

use crate::facts::Facts;
use crate::keys::Keys;
use crate::words::Task;

/// A script, or several with one parser.
pub struct Known {
    /// In messages: `QLoRA's qlora.py`.
    pub name: &'static str,
    /// The end of its path.
    pub paths: &'static [&'static str],
    /// A flag that it has and scripts of the same name have not; empty where the path is enough.
    pub flag: &'static str,
    pub trainer: &'static str,
    pub task: Task,
    /// Defaults of its parser that differ from `TrainingArguments`, by flag.
    pub defaults: &'static [(&'static str, &'static str)],
    /// What its code does besides.
    pub apply: fn(&Keys, &mut Facts),
}

pub fn find(program: &str, flags: &Keys) -> Option<&'static Known> {
    let path = program.replace('.', "/").replace("/py", ".py");
    KNOWN
        .iter()
        .chain(crate::programs::hf::examples::EXAMPLES)
        .find(|known| {
            let named = known
                .paths
                .iter()
                .any(|end| program.ends_with(end) || path.ends_with(end));
            named && (known.flag.is_empty() || flags.has(known.flag))
        })
}

const KNOWN: &[Known] = &[
    Known {
        name: "QLoRA's qlora.py",
        paths: &["qlora.py"],
        flag: "",
        trainer: "transformers",
        task: Task::Sft,
        defaults: &[
            ("bits", "4"),
            ("quant_type", "nf4"),
            ("lora_r", "64"),
            ("source_max_len", "1024"),
            ("target_max_len", "256"),
            ("optim", "paged_adamw_32bit"),
            ("gradient_checkpointing", "True"),
            ("per_device_train_batch_size", "1"),
            ("gradient_accumulation_steps", "16"),
            ("full_finetune", "False"),
        ],
        apply: rules::qlora,
    },
    Known {
        name: "FastChat's train_lora.py",
        paths: &["fastchat/train/train_lora.py", "train_lora.py"],
        flag: "data_path",
        trainer: "transformers",
        task: Task::Sft,
        defaults: &[
            ("model_max_length", "512"),
            ("lora_r", "8"),
            ("lora_target_modules", "q_proj,v_proj"),
            ("optim", "adamw_torch"),
        ],
        apply: rules::fastchat_lora,
    },
    Known {
        name: "FastChat's train.py",
        paths: &[
            "fastchat/train/train.py",
            "fastchat/train/train_mem.py",
            "fastchat/train/train_xformers.py",
            "fastchat/train/train_baichuan.py",
            "fastchat/train/train_yuan2.py",
            "fastchat/train/train_with_template.py",
        ],
        flag: "",
        trainer: "transformers",
        task: Task::Sft,
        defaults: &[("model_max_length", "512"), ("optim", "adamw_torch")],
        apply: rules::fp32_weights,
    },
    Known {
        name: "FastChat's train_flant5.py",
        paths: &["fastchat/train/train_flant5.py"],
        flag: "",
        trainer: "transformers",
        task: Task::Seq2Seq,
        defaults: &[("model_max_length", "2048"), ("optim", "adamw_torch")],
        apply: rules::fp32_weights,
    },
    Known {
        name: "Qwen's finetune.py",
        paths: &["finetune.py"],
        flag: "lazy_preprocess",
        trainer: "transformers",
        task: Task::Sft,
        defaults: &[
            ("model_max_length", "8192"),
            ("lora_r", "64"),
            ("optim", "adamw_torch"),
            ("lora_target_modules", "c_attn,c_proj,w1,w2"),
        ],
        apply: rules::qwen,
    },
    Known {
        name: "LLaVA's train.py",
        paths: &[
            "llava/train/train_mem.py",
            "llava/train/train_xformers.py",
            "llava/train/train.py",
        ],
        flag: "",
        trainer: "transformers",
        task: Task::Sft,
        defaults: &[
            ("model_max_length", "512"),
            ("lora_r", "64"),
            ("optim", "adamw_torch"),
            ("bits", "16"),
        ],
        apply: rules::llava,
    },
    Known {
        name: "InternVL's internvl_chat_finetune.py",
        paths: &[
            "internvl_chat_finetune.py",
            "internvl_chat_pretrain.py",
            "internvl_chat_mpo.py",
        ],
        flag: "",
        trainer: "transformers",
        task: Task::Sft,
        defaults: &[
            // Of its `zero_stage1_config.json`.
            ("optim", "adamw"),
            ("max_seq_length", "2048"),
            ("grad_checkpoint", "True"),
            ("use_llm_lora", "0"),
            ("use_backbone_lora", "0"),
        ],
        apply: rules::internvl,
    },
    Known {
        name: "Qwen-VL-Series-Finetune",
        paths: &[
            "src/train/train_sft.py",
            "src/training/train.py",
            "src/train/train_dpo.py",
            "src/train/train_grpo.py",
        ],
        flag: "freeze_llm",
        trainer: "transformers",
        task: Task::Sft,
        defaults: &[
            ("max_seq_length", "32768"),
            ("lora_rank", "128"),
            ("optim", "adamw_torch"),
            ("bits", "16"),
            ("num_generations", "8"),
            ("max_prompt_length", "512"),
            ("max_completion_length", "256"),
        ],
        apply: rules::qwen_vl_series,
    },
    Known {
        name: "PEFT's examples/sft/train.py",
        paths: &["train.py"],
        flag: "use_peft_lora",
        trainer: "trl",
        task: Task::Sft,
        defaults: &[
            ("max_seq_length", "512"),
            ("lora_r", "64"),
            ("bnb_4bit_quant_type", "nf4"),
            (
                "lora_target_modules",
                "q_proj,k_proj,v_proj,o_proj,down_proj,up_proj,gate_proj",
            ),
            ("optim", "adamw"),
        ],
        apply: rules::peft_sft,
    },
    Known {
        name: "LESS's train",
        paths: &["less/train/train", "less.train.train"],
        flag: "",
        trainer: "transformers",
        task: Task::Sft,
        defaults: &[
            ("max_seq_length", "512"),
            ("lora_r", "8"),
            ("lora_target_modules", "q_proj,k_proj,v_proj,o_proj"),
            ("optim", "adamw_torch"),
        ],
        apply: rules::less,
    },
    Known {
        name: "LMFlow's reward_modeling.py",
        paths: &["reward_modeling.py"],
        flag: "",
        trainer: "transformers",
        task: Task::Reward,
        defaults: &[("max_length", "512"), ("optim", "adamw_torch")],
        apply: rules::lmflow_reward,
    },
    Known {
        name: "LMFlow's finetune.py",
        paths: &["examples/finetune.py", "finetune.py"],
        flag: "dataset_path",
        trainer: "transformers",
        task: Task::Sft,
        defaults: &[
            ("block_size", "512"),
            ("lora_r", "8"),
            ("optim", "adamw_torch"),
        ],
        apply: rules::lmflow,
    },
    Known {
        name: "Alpaca's train.py",
        paths: &[
            "train.py",
            "train_mem.py",
            "train_alpaca.py",
            "train_math.py",
            "finetune_deepseekcoder.py",
            "train_freeform.py",
            "train_wizardcoder.py",
            "train_freeform_multiturn.py",
        ],
        flag: "data_path",
        trainer: "transformers",
        task: Task::Sft,
        defaults: &[("model_max_length", "512"), ("optim", "adamw_torch")],
        apply: rules::fp32_weights,
    },
    Known {
        name: "LongWriter's train/main.py",
        paths: &["main.py"],
        flag: "train_file",
        trainer: "transformers",
        task: Task::Sft,
        defaults: &[("optim", "adamw_torch"), ("batch_method", "naive")],
        apply: rules::longwriter,
    },
    Known {
        name: "fsdp_qlora's train.py",
        paths: &["train.py"],
        flag: "train_type",
        trainer: "torch",
        task: Task::Sft,
        defaults: &[
            ("train_type", "qlora"),
            ("batch_size", "1"),
            ("context_length", "512"),
            ("gradient_accumulation_steps", "1"),
            ("precision", "bf16"),
            ("lora_rank", "64"),
            ("optimizer", "adamw"),
            ("use_gradient_checkpointing", "True"),
            ("use_cpu_offload", "True"),
            ("sharding_strategy", "full_shard"),
        ],
        apply: rules::fsdp_qlora,
    },
];
