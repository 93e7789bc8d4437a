//! Which of its knobs do anything.

use super::super::{Knob, Wiring};

pub const KNOBS: &[Knob] = &[
    Knob {
        flag: "training.global_batch_size",
        wiring: Wiring::Ignored,
        note: "Never read: micro batch, accumulation and the number of ranks decide.",
        patched: "",
        source: "training/train.py",
    },
    Knob {
        flag: "logging.log_interval, eval_interval, save_interval",
        wiring: Wiring::Ignored,
        note: "The trainer looks for them under `training`, so that 10, 1000 and 5000 hold wherever they are not given there; nothing uses eval_interval.",
        patched: "",
        source: "training/train.py; training/trainer.py",
    },
    Knob {
        flag: "training.optimizer, training.lr_scheduler",
        wiring: Wiring::Ignored,
        note: "AdamW and a cosine are built in.",
        patched: "",
        source: "training/optimizer.py",
    },
    Knob {
        flag: "training.indexer_warmup_steps",
        wiring: Wiring::Ignored,
        note: "Stored and not used; no gradient reaches the indexer at all.",
        patched: "",
        source: "training/trainer.py",
    },
    Knob {
        flag: "training.max_seq_len",
        wiring: Wiring::Clamped,
        note: "Cuts packed rows of 4096 tokens: at 1024 three quarters of the tokens are thrown away.",
        patched: "",
        source: "training/data.py",
    },
    Knob {
        flag: "training.gradient_accumulation_steps",
        wiring: Wiring::Exists,
        note: "Works, and reduces the gradients over all ranks in every micro-step, for it never enters no_sync.",
        patched: "training.no_sync: true",
        source: "training/trainer.py",
    },
    Knob {
        flag: "training.precision: fp16",
        wiring: Wiring::Exists,
        note: "Adds a GradScaler; saves nothing against bf16.",
        patched: "",
        source: "training/trainer.py",
    },
    Knob {
        flag: "model.gsa.k_base, model.gsa.k_min",
        wiring: Wiring::Exists,
        note: "Read, and without effect on memory while use_adaptive_k is on.",
        patched: "",
        source: "gsa/attention/adaptive_topk.py",
    },
    Knob {
        flag: "tie_word_embeddings",
        wiring: Wiring::NeedsPatch,
        note: "The configuration class has it, the YAML's is not passed on; tied, 77.8 M weights with their gradients and states would go.",
        patched: "model.tie_word_embeddings: true",
        source: "training/train.py",
    },
    Knob {
        flag: "model.*, model.gsa.*",
        wiring: Wiring::Breaks,
        note: "Every key is required: leaving one out ends the run.",
        patched: "",
        source: "training/train.py",
    },
    Knob {
        flag: "--local_rank",
        wiring: Wiring::Ignored,
        note: "Accepted and not used.",
        patched: "",
        source: "training/train.py",
    },
    Knob {
        flag: "--resume_from",
        wiring: Wiring::Exists,
        note: "Every rank loads the file to the device it was saved from, so that the first card holds it once for each rank.",
        patched: "--resume_from, to the host first",
        source: "gsa/utils/checkpoint.py",
    },
    Knob {
        flag: "a log of the memory of steps",
        wiring: Wiring::NeedsPatch,
        note: "The loop prints none and never resets the peak's statistics.",
        patched: "LOG_MEMORY=1",
        source: "memory_log.py, which the patch adds",
    },
];
