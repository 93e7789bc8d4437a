//! Which of its knobs do anything.

use super::super::{Knob, Wiring};

pub const KNOBS: &[Knob] = &[
    Knob {
        flag: "--use_multi_hop, --use_nonbonded, --use_gate",
        wiring: Wiring::Ignored,
        note: "store_true with default=True: leaving them out changes nothing, and they cannot be turned off.",
        patched: "--no-use_multi_hop",
        source: "scripts/04_train_model.py",
    },
    Knob {
        flag: "--use_layer_norm",
        wiring: Wiring::Exists,
        note: "Off unless given; worth 0.3 % of the peak.",
        patched: "",
        source: "scripts/04_train_model.py",
    },
    Knob {
        flag: "--hidden_irreps",
        wiring: Wiring::Exists,
        note: "The one knob of the guide that decides; quote it, for it holds blanks.",
        patched: "",
        source: "scripts/04_train_model.py",
    },
    Knob {
        flag: "--batch_size, --num_layers, --output_dim",
        wiring: Wiring::Exists,
        note: "Read as given.",
        patched: "",
        source: "scripts/04_train_model.py",
    },
    Knob {
        flag: "--num_workers",
        wiring: Wiring::Clamped,
        note: "min(n, 2); pin_memory is fixed to False to save GPU memory, which it does not use.",
        patched: "",
        source: "scripts/04_train_model.py: DataLoader",
    },
    Knob {
        flag: "--grad_clip",
        wiring: Wiring::Ignored,
        note: "clip_grad_norm_ is called with 1.0 whatever is given.",
        patched: "--grad_clip 0.5",
        source: "scripts/04_train_model.py: train_epoch",
    },
    Knob {
        flag: "--accumulation_steps, --use_amp",
        wiring: Wiring::NeedsPatch,
        note: "They do not exist at this commit; 078c38d has them, and --use_ddp.",
        patched: "--accumulation_steps 2 --use_amp",
        source: "scripts/04_train_model.py at 6ccd5a7 and at 078c38d",
    },
    Knob {
        flag: "torch 2.6 and newer",
        wiring: Wiring::Breaks,
        note: "The check of the graphs loads them with weights_only, which is on by default since 2.6 and refuses every graph; ReduceLROnPlateau no longer takes verbose. The patch mends both.",
        patched: "",
        source: "scripts/04_train_model.py: LigandEmbeddingDataset, main",
    },
    Knob {
        flag: "--resume",
        wiring: Wiring::Exists,
        note: "Loads to the GPU: a second copy of weights and states while it does.",
        patched: "--resume, to the host first",
        source: "scripts/04_train_model.py",
    },
    Knob {
        flag: "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,max_split_size_mb:128",
        wiring: Wiring::Exists,
        note: "The first is worth having; leave the second out.",
        patched: "",
        source: "pytorch docs/source/notes/cuda.rst",
    },
    Knob {
        flag: "an edge budget for batches",
        wiring: Wiring::NeedsPatch,
        note: "Batches are of two graphs whatever they hold; a sampler with a budget of edges never builds the pair that does not fit.",
        patched: "--max_edges 300000",
        source: "torch_geometric.loader.DynamicBatchSampler counts num_edges: bonded edges here, so count nonbonded_edge_index in the data",
    },
    Knob {
        flag: "a log of the memory of epochs",
        wiring: Wiring::NeedsPatch,
        note: "The loop prints none and never resets the peak's statistics.",
        patched: "LOG_MEMORY=1",
        source: "memory_log.py, which the patch adds",
    },
];
