//! Which of its flags do anything.

use super::super::{Knob, Wiring};

pub const KNOBS: &[Knob] = &[
    Knob {
        flag: "--use_amp, --no-use_amp",
        wiring: Wiring::Exists,
        note: "On unless turned off.",
        patched: "",
        source: "train_prs_med.py: set_defaults(use_amp=True)",
    },
    Knob {
        flag: "--gradient_checkpointing",
        wiring: Wiring::Breaks,
        note: "Silently stops the language model's adapters from learning: re-entrant checkpoints over a frozen base get no gradient (0 of 42 adapters in three layers, 42 of 42 without re-entry). The encoder is never checkpointed.",
        patched: "--gradient_checkpointing --checkpoint_encoder",
        source: "train_prs_med.py; transformers 4.57.1 with PEFT 0.17.1",
    },
    Knob {
        flag: "--gradient_accumulation_steps",
        wiring: Wiring::Exists,
        note: "Without no_sync: gradients are reduced at every micro-batch. The losses it logs are multiplied by the steps.",
        patched: "",
        source: "train_prs_med.py",
    },
    Knob {
        flag: "--compile_model",
        wiring: Wiring::Exists,
        note: "mode='reduce-overhead': pools for CUDA graphs, and graph breaks at the processor on the host.",
        patched: "",
        source: "train_prs_med.py",
    },
    Knob {
        flag: "--image_size",
        wiring: Wiring::Breaks,
        note: "Anything but 1024 ends at an assertion.",
        patched: "",
        source: "tiny_vit_sam.py",
    },
    Knob {
        flag: "--learning_rate",
        wiring: Wiring::Clamped,
        note: "Multiplied by the number of processes.",
        patched: "--no-scale_lr",
        source: "train_prs_med.py",
    },
    Knob {
        flag: "torchrun",
        wiring: Wiring::Breaks,
        note: "find_unused_parameters=False, but to_seg_channels and the adapters of the last CLIP layer get no gradient: DDP ends in its second iteration.",
        patched: "--find_unused_parameters",
        source: "train_prs_med.py: DistributedDataParallel",
    },
    Knob {
        flag: "--load_4bit",
        wiring: Wiring::NeedsPatch,
        note: "use_8bit and use_4bit exist in the class and not on the command line.",
        patched: "--load_4bit nf4",
        source: "models/mllm/llava_med_mllm.py",
    },
    Knob {
        flag: "target_modules",
        wiring: Wiring::NeedsPatch,
        note: "A list in the class.",
        patched: "--lora_targets q_proj,v_proj",
        source: "models/mllm/llava_med_lora_adapter.py",
    },
    Knob {
        flag: "--lora_rank, --lora_alpha, --lora_dropout",
        wiring: Wiring::Exists,
        note: "Suffixes match the projections of CLIP too: 44.3 million weights, 2.4 million of them there.",
        patched: "",
        source: "models/mllm/llava_med_lora_adapter.py",
    },
    Knob {
        flag: "to_seg_channels",
        wiring: Wiring::Ignored,
        note: "4.5 million trained weights whose output no loss uses.",
        patched: "",
        source: "models/mllm/llava_med_mllm.py",
    },
    Knob {
        flag: "saving",
        wiring: Wiring::Exists,
        note: "The whole state of 7.6 billion parameters each time, 15 GB on the disk.",
        patched: "",
        source: "train_prs_med.py: torch.save",
    },
    Knob {
        flag: "a log of the memory of epochs",
        wiring: Wiring::NeedsPatch,
        note: "The loop prints none and never resets the peak's statistics.",
        patched: "LOG_MEMORY=1",
        source: "memory_log.py, which the patch adds",
    },
];
