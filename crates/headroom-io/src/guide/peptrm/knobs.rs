//! Which of its knobs do anything.

use super::super::{Knob, Wiring};

pub const KNOBS: &[Knob] = &[
    Knob {
        flag: "training.amp_dtype",
        wiring: Wiring::Ignored,
        note: "Printed; autocast is hard-coded as fp16, with a GradScaler.",
        patched: "training.autocast_as_named: true",
        source: "src/training/trainer_optimized.py",
    },
    Knob {
        flag: "training.warmup_steps",
        wiring: Wiring::Ignored,
        note: "The scheduler is a plain cosine.",
        patched: "training.count_updates: true",
        source: "src/training/trainer_optimized.py",
    },
    Knob {
        flag: "training.gradient_accumulation_steps",
        wiring: Wiring::Exists,
        note: "Works for memory. max_steps, curriculum and logging count micro-steps, scheduler and moving average optimizer steps: at 2 there are half the updates and the cosine only gets half way.",
        patched: "training.count_updates: true",
        source: "src/training/trainer_optimized.py",
    },
    Knob {
        flag: "training.batch_size, training.use_ema, training.use_amp",
        wiring: Wiring::Exists,
        note: "Read as written; validation always takes a batch of 64.",
        patched: "",
        source: "scripts/train_optimized.py",
    },
    Knob {
        flag: "training.use_compile, training.compile_mode",
        wiring: Wiring::Exists,
        note: "reduce-overhead keeps pools of CUDA graphs: its own YAML says that a smaller batch may be needed.",
        patched: "",
        source: "configs/optimized_extended.yaml",
    },
    Knob {
        flag: "training.use_curriculum",
        wiring: Wiring::Breaks,
        note: "The first step ends in a TypeError: the curriculum passes clean_data_ratio to MS2PIPSyntheticDataset.set_difficulty, which does not take it. The patch takes it and leaves that share of the samples without noise, as the repository's other dataset does.",
        patched: "clean_data_ratio in set_difficulty",
        source: "src/training/curriculum_delayed_spectrum.py; src/data/ms2pip_dataset.py",
    },
    Knob {
        flag: "training.spectrum_weight, above zero",
        wiring: Wiring::Breaks,
        note: "At the guide's own commit the loss passes sequence_mask to a function that does not take it; the Gaussian loss it describes is the one in losses_old_gaussian_only.py.",
        patched: "training.rendered_spectra: true",
        source: "src/training/losses.py; src/data/ion_types.py",
    },
    Knob {
        flag: "bin_size, max_mz, sigma",
        wiring: Wiring::NeedsPatch,
        note: "Constants of the constructor, not keys of the YAML.",
        patched: "training.bin_size: 0.2, training.max_mz: 1500.0",
        source: "src/training/losses_old_gaussian_only.py",
    },
    Knob {
        flag: "checkpointing of latent steps",
        wiring: Wiring::NeedsPatch,
        note: "There is no such option; it is one call.",
        patched: "model.recompute: latent",
        source: "src/model/decoder.py",
    },
    Knob {
        flag: "an unknown key under model or training",
        wiring: Wiring::Breaks,
        note: "Both sections become dataclasses: one key too many is a TypeError.",
        patched: "",
        source: "scripts/train_optimized.py",
    },
    Knob {
        flag: "--resume_from",
        wiring: Wiring::Exists,
        note: "The only flag; the configuration's path is fixed.",
        patched: "--config FILE",
        source: "scripts/train_optimized.py",
    },
    Knob {
        flag: "a log of the memory of steps",
        wiring: Wiring::NeedsPatch,
        note: "The loop prints none and never resets the peak's statistics.",
        patched: "LOG_MEMORY=1",
        source: "memory_log.py, which the patch adds",
    },
];
