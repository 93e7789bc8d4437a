//! Each system's program: which settings its flags express, which of those need the patch, and where its code is.

use headroom_scenario::systems::{Checkout, Knob, System};

pub(super) const SYSTEMS: &[System] = &[
    System {
        preset: "dreams",
        target: "dreams",
        models: &["dreams"],
        knobs: &[
            flag("data.micro_batch"),
            flag("hardware.gpus"),
            flag_for("training.precision", &["fp32", "fp64"]),
            flag_for("training.freeze", &["", "backbone"]),
            flag("runtime.workers"),
            flag("runtime.save_keep"),
            flag("runtime.eval_interval"),
            patch("training.accumulation", "--accumulate_grad_batches"),
            patch("training.clip", "--gradient_clip_val"),
            patch("runtime.save_every", "--every_n_train_steps"),
            patch("runtime.eval_limit", "--limit_val_batches"),
            patch_for("runtime.eval_keeps", &["0"], "--reset_val_metrics"),
        ],
        dims: &["peaks"],
        code: Checkout {
            repository: "https://github.com/maxvdboom/DreaMS",
            commit: "757a414db1b8430e3ebed6665aa1f9d1b19eb376",
            also: &[],
            install: &["--editable", "."],
        },
    },
    System {
        preset: "gsa-512m",
        target: "gsa",
        models: &["gsa-512m", "gsa-512m-copy", "gsa-1b"],
        knobs: &[
            flag("data.micro_batch"),
            flag("data.sequence"),
            flag("hardware.gpus"),
            flag("hardware.nodes"),
            flag_for("training.precision", &["amp-bf16", "amp-fp16", "fp32"]),
            flag_for("training.checkpointing", &["none", "layers"]),
            flag("training.accumulation"),
            flag("training.clip"),
            flag("runtime.workers"),
            flag("runtime.save_every"),
            flag("runtime.max_steps"),
            patch_for("parallel.sync_each", &["off"], "training.no_sync"),
            patch("model.dims.tied", "model.tie_word_embeddings"),
        ],
        dims: &[
            "layers",
            "hidden",
            "heads",
            "kv",
            "ffn",
            "vocab",
            "ctx",
            "indexer",
            "indexer_heads",
            "k_base",
            "k_min",
            "k_max",
            "adaptive",
            "value_gate",
            "output_gate",
        ],
        code: Checkout {
            repository: "https://github.com/alfredcs/Gated-Sparse-Attention",
            commit: "b23ccad5031724946caf8c49f6a79f9bf4617bf0",
            also: &[
                "77c00d5", "33dfe55", "25fa4d4", "771602d", "eea3377", "305c539", "a96f25e",
                "f86e8da", "3a072c2", "2021660",
            ],
            // requirements.txt has more, flash-attn among it, which the trainer does not import.
            install: &[
                "torch>=2.2",
                "triton>=2.3",
                "omegaconf>=2.3",
                "numpy",
                "tqdm",
                "wandb",
            ],
        },
    },
    System {
        preset: "rna-3e-ffi",
        target: "rna-3e-ffi",
        models: &["rna-3e-ffi"],
        knobs: &[
            flag("data.micro_batch"),
            flag("training.dropout"),
            flag_for("runtime.workers", &["0", "1", "2"]),
            patch_for("training.precision", &["amp-fp16"], "--use_amp"),
            patch("training.accumulation", "--accumulation_steps"),
            patch("training.clip", "--grad_clip"),
            patch("data.batch_max", "--max_edges"),
            patch_for("training.checkpointing", &["layers"], "--recompute_layers"),
            patch("model.dims.multi_hop", "--no-use_multi_hop"),
        ],
        dims: &[
            "layers",
            "out",
            "0e",
            "1o",
            "2e",
            "bessel",
            "layer_norm",
            "nodes",
            "bonded",
            "nonbonded",
            "angles",
            "dihedrals",
        ],
        code: Checkout {
            repository: "https://github.com/SleepingLei/RNA-3E-FFI",
            commit: "6ccd5a7f17c3f08a46d2320655f3f1388fd6b795",
            also: &[
                "48f842b", "3bf6b0b", "a802727", "adfcd2a", "51b6750", "bd97635", "e6621e2",
                "957178f",
            ],
            // torch_geometric and pandas are imported and not listed there.
            install: &[
                "--requirement",
                "requirements.txt",
                "torch_geometric",
                "pandas",
                "tqdm",
            ],
        },
    },
    System {
        preset: "prs-med",
        target: "prs-med",
        models: &["prs-med"],
        knobs: &[
            flag("data.micro_batch"),
            flag("data.sequence"),
            flag("hardware.gpus"),
            flag_for("training.precision", &["amp-fp16", "fp32"]),
            flag("training.accumulation"),
            flag("training.lora.rank"),
            flag("training.lora.dropout"),
            flag_for("training.compile", &["model"]),
            flag_for("training.compile_mode", &["reduce-overhead"]),
            flag("runtime.workers"),
            patch_for(
                "training.checkpointing",
                &["layers"],
                "use_reentrant=False: without it no adapter of the language model trains any more",
            ),
            patch_for(
                "training.quantization",
                &["nf4", "nf4-double"],
                "--load_4bit",
            ),
            patch("training.lora.targets", "--lora_targets"),
            patch("model.dims.checkpoint_encoder", "--checkpoint_encoder"),
        ],
        dims: &[],
        code: Checkout {
            repository: "https://github.com/seanhuvaya/prs_med_mmrs",
            commit: "a75d09ab88bae8d6bb5dbded5b10bd1614645686",
            also: &["c9d6f16", "da02ef6", "8e4f58e", "1cdc50a", "c063fd5"],
            // Those of pyproject.toml that training imports, and what 4-bit weights need.
            install: &[
                "torch>=2.9",
                "torchvision>=0.24",
                "transformers>=4.57.1,<5",
                "peft>=0.17.1",
                "timm>=1.0.22",
                "accelerate",
                "bitsandbytes",
                "pandas",
                "pillow",
                "scipy",
                "sentencepiece",
                "tqdm",
            ],
        },
    },
    System {
        preset: "peptrm",
        target: "peptrm",
        models: &["peptrm"],
        knobs: &[
            flag("data.micro_batch"),
            flag_for("training.precision", &["amp-fp16", "fp32"]),
            patch_for(
                "training.precision",
                &["amp-bf16"],
                "training.autocast_as_named",
            ),
            flag("training.accumulation"),
            flag("training.ema"),
            flag("training.dropout"),
            flag_for("training.compile", &["model"]),
            flag("training.compile_mode"),
            flag("runtime.save_every"),
            flag("runtime.max_steps"),
            patch_for("training.checkpointing", &["layers"], "model.recompute"),
            patch("model.dims.bins", "training.bin_size, training.max_mz"),
        ],
        dims: &[
            "hidden",
            "heads",
            "encoder_layers",
            "decoder_layers",
            "peaks",
            "places",
            "supervision_steps",
            "latent_steps",
            "checkpoint_supervision",
        ],
        code: Checkout {
            repository: "https://github.com/jasegehring/pepTRM",
            commit: "143716f51da2bbfbc326e0a386880ab29b4920ab",
            also: &[],
            // ms2pip predicts the spectra that it trains on.
            install: &["--requirement", "requirements.txt", "ms2pip"],
        },
    },
];

/// A flag or key that sets this.
const fn flag(path: &'static str) -> Knob {
    flag_for(path, &[])
}

/// The same for these values only.
const fn flag_for(path: &'static str, values: &'static [&'static str]) -> Knob {
    patch_for(path, values, "")
}

/// One that the patch adds.
const fn patch(path: &'static str, patch: &'static str) -> Knob {
    patch_for(path, &[], patch)
}

const fn patch_for(
    path: &'static str,
    values: &'static [&'static str],
    patch: &'static str,
) -> Knob {
    Knob {
        path,
        values,
        patch,
    }
}
