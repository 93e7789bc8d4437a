//! Folklore: advice that is often given and does not do what it promises.

/// One piece of folklore: what it claims, and what it really does.
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
        truth: "It returns unused cached blocks to the driver, for other processes. This process could have reused them; now it has to synchronize and ask the driver again. The peak of a step does not change.",
        source: NOTES,
    },
    Folklore {
        id: "gc-collect",
        title: "gc.collect() each step",
        claim: "Frees tensors that Python no longer needs.",
        truth: "A tensor is freed as soon as its last reference is gone. The collector matters only for reference cycles, which a training loop should not create; if it helps, find what keeps the tensors.",
        source: "https://docs.python.org/3/library/gc.html; https://docs.pytorch.org/docs/stable/notes/faq.html",
    },
    Folklore {
        id: "del-everything",
        title: "del of every tensor in the loop",
        claim: "Saves memory.",
        truth: "Rebinding a name frees what it held before. Only names that hold something large through the peak matter, such as the model's output: there is a move for that.",
        source: "https://docs.pytorch.org/docs/stable/notes/faq.html",
    },
    Folklore {
        id: "memory-fraction",
        title: "set_per_process_memory_fraction",
        claim: "Makes PyTorch use less memory.",
        truth: "It is a limit: a run that needs more fails earlier. It is for sharing a GPU with another process, not for fitting a run.",
        source: "https://docs.pytorch.org/docs/stable/generated/torch.cuda.memory.set_per_process_memory_fraction.html",
    },
    Folklore {
        id: "pin-memory",
        title: "pin_memory=False to save GPU memory",
        claim: "Pinned batches take GPU memory.",
        truth: "Pinned memory is page-locked host memory. It makes copies faster and takes nothing on the GPU.",
        source: "https://docs.pytorch.org/docs/stable/data.html#memory-pinning",
    },
    Folklore {
        id: "fewer-workers",
        title: "fewer DataLoader workers to save GPU memory",
        claim: "Each worker takes GPU memory.",
        truth: "Workers hold batches in host memory: workers x prefetch x batch. The GPU holds only what the loop has moved there, unless the workers themselves use CUDA.",
        source: "https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading",
    },
    Folklore {
        id: "max-split-size",
        title: "max_split_size_mb",
        claim: "Cures fragmentation.",
        truth: "By its own documentation it is a last resort for workloads with many inactive split blocks, and it costs speed. Expandable segments do better; the two together are redundant.",
        source: "https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf",
    },
    Folklore {
        id: "inplace-relu",
        title: "inplace=True everywhere",
        claim: "Halves activations.",
        truth: "It saves memory where backward needs only the result (ReLU). Where backward needs the input (SiLU, hardswish), autograd clones it first, and nothing is saved.",
        source: "recorded steps of torch 2.15; https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-operations-with-autograd",
    },
    Folklore {
        id: "compile-reduce-overhead",
        title: "torch.compile(mode=\"reduce-overhead\")",
        claim: "Saves memory by fusing.",
        truth: "Fusion can save activations, but this mode records CUDA graphs, whose memory pools are never released.",
        source: "https://docs.pytorch.org/docs/stable/generated/torch.compile.html",
    },
    Folklore {
        id: "cudnn-benchmark",
        title: "cudnn.benchmark = False",
        claim: "Saves workspaces.",
        truth: "The search tries algorithms with workspaces of up to the free memory and releases them. The chosen algorithm may need one; so may the one that heuristics pick with the search off.",
        source: "https://docs.pytorch.org/docs/stable/backends.html#torch.backends.cudnn.torch.backends.cudnn.benchmark",
    },
    Folklore {
        id: "amp-halves",
        title: "mixed precision halves memory",
        claim: "Everything takes half the memory.",
        truth: "Weights, gradients and states stay in fp32, 16-bit copies of the weights are added, and norms, softmax and losses stay in fp32. The move computes what it saves in this run.",
        source: "aten/src/ATen/autocast_mode.cpp; recorded steps of torch 2.15",
    },
    Folklore {
        id: "accumulation-saves",
        title: "gradient accumulation saves memory",
        claim: "More accumulation, less memory.",
        truth: "Only the smaller micro-batch saves memory. Accumulation itself keeps all gradients alive through the next forward pass and may raise the peak by their size.",
        source: "recorded steps of torch 2.15",
    },
    Folklore {
        id: "larger-card-count",
        title: "more GPUs with DDP",
        claim: "Splits the model across GPUs.",
        truth: "Each GPU holds the whole model, all gradients and all states. Memory falls only if something is sharded: ZeRO, FSDP, tensor or pipeline parallelism.",
        source: "https://docs.pytorch.org/docs/stable/notes/ddp.html",
    },
];
