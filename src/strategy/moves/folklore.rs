//! Folklore: advice that is given often and does not do what is said.

/// One piece of it: what is claimed, what it really does, and why it is not offered.
#[derive(Clone, Copy, Debug)]
pub struct Folklore {
    pub id: &'static str,
    pub title: &'static str,
    pub claim: &'static str,
    pub truth: &'static str,
    pub source: &'static str,
}

const NOTES: &str = "https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management";

pub const FOLKLORE: &[Folklore] = &[
    Folklore {
        id: "empty-cache",
        title: "torch.cuda.empty_cache() each step",
        claim: "Frees memory for the next step.",
        truth: "It hands blocks that nothing uses back to the driver, for other processes. This one could have used them anyway; it must now wait for the card and ask the driver again. The peak of a step does not change.",
        source: NOTES,
    },
    Folklore {
        id: "gc-collect",
        title: "gc.collect() each step",
        claim: "Frees tensors that Python has forgotten.",
        truth: "Tensors go with their last reference, at once. The collector matters only for reference cycles, which a training loop should not make; where it helps, something keeps tensors and should be found.",
        source: "https://docs.python.org/3/library/gc.html; https://docs.pytorch.org/docs/stable/notes/faq.html",
    },
    Folklore {
        id: "del-everything",
        title: "del of every tensor in the loop",
        claim: "Saves memory.",
        truth: "A name that is bound again frees what it held before at that moment. Only names that hold something large through the peak matter, such as the model's output: that move is offered.",
        source: "https://docs.pytorch.org/docs/stable/notes/faq.html",
    },
    Folklore {
        id: "memory-fraction",
        title: "set_per_process_memory_fraction",
        claim: "Makes PyTorch use less memory.",
        truth: "It is a limit: what needs more fails earlier. It serves to share a card with another process, not to fit.",
        source: "https://docs.pytorch.org/docs/stable/generated/torch.cuda.memory.set_per_process_memory_fraction.html",
    },
    Folklore {
        id: "pin-memory",
        title: "pin_memory=False to save GPU memory",
        claim: "Pinned batches take GPU memory.",
        truth: "Pinned memory is page-locked memory of the host. It makes copies faster and takes nothing on the card.",
        source: "https://docs.pytorch.org/docs/stable/data.html#memory-pinning",
    },
    Folklore {
        id: "fewer-workers",
        title: "fewer DataLoader workers to save GPU memory",
        claim: "Each worker takes GPU memory.",
        truth: "Workers hold batches in host memory: workers x prefetch x batch. On the card there is what the loop has moved there, unless workers themselves touch CUDA.",
        source: "https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading",
    },
    Folklore {
        id: "max-split-size",
        title: "max_split_size_mb",
        claim: "Cures fragmentation.",
        truth: "A last resort for loads with many inactive split blocks, by its own documentation; it costs speed. Expandable segments do better, and the two together are redundant.",
        source: "https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf",
    },
    Folklore {
        id: "inplace-relu",
        title: "inplace=True everywhere",
        claim: "Halves activations.",
        truth: "It saves where backward needs the result only (ReLU). Where backward needs the input (SiLU, hardswish), autograd clones it first, and nothing is saved.",
        source: "recorded steps of torch 2.15; https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-operations-with-autograd",
    },
    Folklore {
        id: "compile-reduce-overhead",
        title: "torch.compile(mode=\"reduce-overhead\")",
        claim: "Saves memory by fusing.",
        truth: "Fusion can save activations, but this mode records CUDA graphs, whose pools keep their memory for good.",
        source: "https://docs.pytorch.org/docs/stable/generated/torch.compile.html",
    },
    Folklore {
        id: "cudnn-benchmark",
        title: "cudnn.benchmark = False",
        claim: "Saves workspaces.",
        truth: "The search tries algorithms with workspaces of up to what is free, and gives them back. The chosen algorithm may need one; turning the search off picks by heuristics, which may need one too.",
        source: "https://docs.pytorch.org/docs/stable/backends.html#torch.backends.cudnn.torch.backends.cudnn.benchmark",
    },
    Folklore {
        id: "amp-halves",
        title: "mixed precision halves memory",
        claim: "Everything takes half.",
        truth: "Weights, gradients and states stay in fp32, copies of weights come on top, and norms, softmax and losses keep fp32. What it saves here is computed by the move.",
        source: "aten/src/ATen/autocast_mode.cpp; recorded steps of torch 2.15",
    },
    Folklore {
        id: "accumulation-saves",
        title: "gradient accumulation saves memory",
        claim: "More accumulation, less memory.",
        truth: "Only the smaller micro-batch saves. Accumulation itself keeps all gradients alive through the next forward pass and may raise the peak by their size.",
        source: "recorded steps of torch 2.15",
    },
    Folklore {
        id: "larger-card-count",
        title: "more GPUs with DDP",
        claim: "Spreads the model over the cards.",
        truth: "Each card holds the whole model, all gradients and all states. Memory falls only where something is divided: ZeRO, FSDP, tensor or pipeline parallelism.",
        source: "https://docs.pytorch.org/docs/stable/notes/ddp.html",
    },
];
