//! The settings themselves, in the order of the form.

use super::settings::{Access, Kind, Setting};
use super::{
    Attention, Checkpointing, Choice, Kernels, LossKernel, Optimizer, Precision, Quantization,
    Scenario,
};
use crate::catalog::Os;

/// Accessors for a field given by its path in the struct.
macro_rules! whole {
    ($($part:ident).+) => { Access::Whole(|s| u64::from(s.$($part).+), |s, it| s.$($part).+ = it.try_into().unwrap_or_default()) };
}
macro_rules! switch {
    ($($part:ident).+) => { Access::Switch(|s| s.$($part).+, |s, it| s.$($part).+ = it) };
}
macro_rules! choice {
    ($type:ident, $($part:ident).+) => {
        Access::Choice(
            |s| s.$($part).+.id(),
            |s, id| $type::from_id(id).map(|it| s.$($part).+ = it).is_some(),
        )
    };
}
macro_rules! text {
    ($($part:ident).+) => { Access::Text(|s| s.$($part).+.clone(), |s, it| s.$($part).+ = it) };
}
macro_rules! words {
    ($($part:ident).+) => { Access::Words(|s| s.$($part).+.clone(), |s, it| s.$($part).+ = it) };
}
/// Accessors for a field of the adapters, which exist only where asked for: writing one asks for them.
macro_rules! lora {
    ($access:ident, $field:ident) => {
        Access::$access(
            |s| s.training.lora.clone().unwrap_or_default().$field,
            |s, it| adapters(s).$field = it,
        )
    };
}

fn adapters(scenario: &mut Scenario) -> &mut super::Lora {
    scenario.training.lora.get_or_insert_default()
}

const SYSTEMS: [(Os, Choice); 3] = [
    (
        Os::Linux,
        Choice {
            id: "linux",
            label: "Linux",
        },
    ),
    (
        Os::Windows,
        Choice {
            id: "windows",
            label: "Windows",
        },
    ),
    (
        Os::Wsl,
        Choice {
            id: "wsl",
            label: "Windows, WSL 2",
        },
    ),
];

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        path: "hardware.gpu",
        key: "gpu",
        label: "GPU",
        unit: "",
        kind: Kind::Gpu,
        help: "The graphics card, by its catalogue id.",
        memory: "Decides how much memory there is and which attention kernels run.",
        access: text!(hardware.gpu),
        parent: None,
    },
    Setting {
        path: "hardware.gpus",
        key: "gpus",
        label: "GPUs",
        unit: "",
        kind: Kind::Whole {
            low: 1,
            high: 100_000,
        },
        help: "How many of them train together.",
        memory: "More GPUs multiply the effective batch; memory on each falls only where something is sharded.",
        access: whole!(hardware.gpus),
        parent: None,
    },
    Setting {
        path: "hardware.memory_mib",
        key: "mem",
        label: "Memory, where it is not the catalogue's",
        unit: "MiB",
        kind: Kind::Whole {
            low: 0,
            high: 100_000_000,
        },
        help: "What torch reports as the card's total memory; 0 takes the catalogue's value. A card of any name may be given with it.",
        memory: "The limit that the run is compared with; it changes nothing in what the run needs.",
        access: whole!(hardware.memory_mib),
        parent: None,
    },
    Setting {
        path: "hardware.os",
        key: "os",
        label: "Operating system",
        unit: "",
        kind: Kind::Choice(&[SYSTEMS[0].1, SYSTEMS[1].1, SYSTEMS[2].1]),
        help: "What the machine runs.",
        memory: "Windows shows programs another total than Linux does, and its desktop takes more of it.",
        access: Access::Choice(
            |s| match s.hardware.os {
                Os::Linux => SYSTEMS[0].1.id,
                Os::Windows => SYSTEMS[1].1.id,
                Os::Wsl => SYSTEMS[2].1.id,
            },
            |s, id| {
                let found = SYSTEMS.iter().find(|(_, choice)| choice.id == id);
                found.map(|(os, _)| s.hardware.os = *os).is_some()
            },
        ),
        parent: None,
    },
    Setting {
        path: "hardware.display",
        key: "display",
        label: "Drives a display",
        unit: "",
        kind: Kind::Switch,
        help: "Whether the desktop runs on the same card.",
        memory: "The desktop takes some hundred MiB that training cannot have.",
        access: switch!(hardware.display),
        parent: None,
    },
    Setting {
        path: "model.id",
        key: "model",
        label: "Model",
        unit: "",
        kind: Kind::Model,
        help: "The network, by its catalogue id.",
        memory: "Decides the weights and what every operation keeps for backward.",
        access: text!(model.id),
        parent: None,
    },
    Setting {
        path: "model.dims",
        key: "dims",
        label: "Changed dimensions",
        unit: "",
        kind: Kind::Sizes,
        help: "Dimensions that differ from the catalogue's, such as layers=2,vocab=1000.",
        memory: "A changed model: weights and activations are counted anew from its forward function.",
        access: Access::Sizes(|s| s.model.dims.clone(), |s, it| s.model.dims = it),
        parent: None,
    },
    Setting {
        path: "data.micro_batch",
        key: "mb",
        label: "Micro-batch",
        unit: "samples",
        kind: Kind::Whole {
            low: 1,
            high: 1_000_000,
        },
        help: "Samples in one forward pass on one GPU (per_device_train_batch_size).",
        memory: "Activations, logits and inputs grow in proportion; weights, gradients and optimizer states do not change.",
        access: whole!(data.micro_batch),
        parent: None,
    },
    Setting {
        path: "data.sequence",
        key: "seq",
        label: "Sequence length",
        unit: "tokens",
        kind: Kind::Whole {
            low: 1,
            high: 100_000_000,
        },
        help: "Tokens in a sample after padding or packing; images take their size from the model.",
        memory: "Activations grow in proportion; eager attention's scores grow with the square.",
        access: whole!(data.sequence),
        parent: None,
    },
    Setting {
        path: "data.padding_mask",
        key: "mask",
        label: "Padding mask",
        unit: "",
        kind: Kind::Switch,
        help: "Batches hold padding, so the model is given a mask.",
        memory: "A real mask takes SDPA off the flash kernel and materialises a bias of batch × sequence² in every layer.",
        access: switch!(data.padding_mask),
        parent: None,
    },
    Setting {
        path: "training.precision",
        key: "precision",
        label: "Precision",
        unit: "",
        kind: Kind::Choice(Precision::CHOICES),
        help: "In which number format weights live and operations run.",
        memory: "Mixed precision keeps fp32 weights and adds low-precision copies; pure bf16 halves weights, gradients and states.",
        access: choice!(Precision, training.precision),
        parent: None,
    },
    Setting {
        path: "training.optimizer",
        key: "optim",
        label: "Optimizer",
        unit: "",
        kind: Kind::Choice(Optimizer::CHOICES),
        help: "The optimizer and its implementation.",
        memory: "Adam keeps two states for each trained parameter; the foreach implementation also needs parameter-sized temporaries while it steps.",
        access: choice!(Optimizer, training.optimizer),
        parent: None,
    },
    Setting {
        path: "training.attention",
        key: "attn",
        label: "Attention",
        unit: "",
        kind: Kind::Choice(Attention::CHOICES),
        help: "How attention is computed (attn_implementation).",
        memory: "Eager attention keeps score matrices of batch × heads × sequence² in every layer; SDPA's fused kernels keep none.",
        access: choice!(Attention, training.attention),
        parent: None,
    },
    Setting {
        path: "training.checkpointing",
        key: "ckpt",
        label: "Activation checkpointing",
        unit: "",
        kind: Kind::Choice(Checkpointing::CHOICES),
        help: "Which activations are computed again during backward instead of kept.",
        memory: "Keeps one input for each layer and one layer's activations at a time, and runs each layer's forward twice.",
        access: choice!(Checkpointing, training.checkpointing),
        parent: None,
    },
    Setting {
        path: "training.checkpoint_every",
        key: "ckpt_every",
        label: "Layers for each checkpointed one",
        unit: "layers",
        kind: Kind::Whole {
            low: 1,
            high: 10_000,
        },
        help: "Checkpoint one layer of this many: 2 is every second layer.",
        memory: "Layers between keep all their activations.",
        access: whole!(training.checkpoint_every),
        parent: None,
    },
    Setting {
        path: "training.loss",
        key: "loss",
        label: "Loss of a language model",
        unit: "",
        kind: Kind::Choice(LossKernel::CHOICES),
        help: "How the cross-entropy is computed from the last hidden state.",
        memory: "All logits in fp32 cost twelve bytes for each token and vocabulary entry at the peak; chunks and fused kernels never hold them all.",
        access: choice!(LossKernel, training.loss),
        parent: None,
    },
    Setting {
        path: "training.loss_chunks",
        key: "loss_chunks",
        label: "Chunks of the loss",
        unit: "chunks",
        kind: Kind::Whole {
            low: 1,
            high: 4_096,
        },
        help: "Into how many parts a chunked loss cuts the tokens.",
        memory: "Temporaries of the loss shrink with their number.",
        access: whole!(training.loss_chunks),
        parent: None,
    },
    Setting {
        path: "training.kernels",
        key: "kernels",
        label: "Kernels",
        unit: "",
        kind: Kind::Choice(Kernels::CHOICES),
        help: "Whose kernels run norms, rotary embeddings and gated layers of a language model.",
        memory: "Liger's keep fewer tensors for backward than the library's Python.",
        access: choice!(Kernels, training.kernels),
        parent: None,
    },
    Setting {
        path: "training.optimizer_in_backward",
        key: "optim_in_backward",
        label: "Optimizer in backward",
        unit: "",
        kind: Kind::Switch,
        help: "Step each parameter as soon as its gradient is complete, and let the gradient go.",
        memory: "Never holds all gradients; impossible with accumulation and clipping.",
        access: switch!(training.optimizer_in_backward),
        parent: None,
    },
    Setting {
        path: "training.quantization",
        key: "quant",
        label: "Quantised base",
        unit: "",
        kind: Kind::Choice(Quantization::CHOICES),
        help: "How the frozen weights of linear layers are stored (QLoRA).",
        memory: "About half a byte for each weight, and a 16-bit copy of one matrix at a time while it is used.",
        access: choice!(Quantization, training.quantization),
        parent: None,
    },
    Setting {
        path: "training.accumulation",
        key: "accum",
        label: "Gradient accumulation",
        unit: "micro-batches",
        kind: Kind::Whole {
            low: 1,
            high: 1_000_000,
        },
        help: "Micro-batches added up before one optimizer step.",
        memory: "From two on, gradients stay alive through the next forward pass, which may raise the peak by their size.",
        access: whole!(training.accumulation),
        parent: None,
    },
    Setting {
        path: "training.lora",
        key: "lora",
        label: "LoRA adapters",
        unit: "",
        kind: Kind::Switch,
        help: "Train low-rank adapters and freeze the rest.",
        memory: "Gradients and optimizer states shrink to the adapters'; activations mostly stay.",
        access: Access::Switch(
            |s| s.training.lora.is_some(),
            |s, on| {
                if on {
                    adapters(s);
                } else {
                    s.training.lora = None;
                }
            },
        ),
        parent: None,
    },
    Setting {
        path: "training.lora.rank",
        key: "lora_rank",
        label: "Adapter rank",
        unit: "",
        kind: Kind::Whole {
            low: 1,
            high: 65_536,
        },
        help: "The inner dimension of each adapter (r).",
        memory: "Adapter weights grow in proportion; they are seldom what fills a GPU.",
        access: lora!(Whole, rank),
        parent: Some("training.lora"),
    },
    Setting {
        path: "training.lora.targets",
        key: "lora_targets",
        label: "Adapted layers",
        unit: "",
        kind: Kind::Words,
        help: "Linear layers whose last path part is one of these get an adapter (target_modules).",
        memory: "Each adapted layer keeps its input for the adapter's gradient, once more in fp32 where adapters are fp32.",
        access: lora!(Words, targets),
        parent: Some("training.lora"),
    },
    Setting {
        path: "training.lora.exclude",
        key: "lora_exclude",
        label: "Not adapted",
        unit: "",
        kind: Kind::Words,
        help: "Layers whose path contains one of these get no adapter (exclude_modules).",
        memory: "Takes the adapters of these layers away, with what they keep for backward.",
        access: lora!(Words, exclude),
        parent: Some("training.lora"),
    },
    Setting {
        path: "training.lora.dropout",
        key: "lora_dropout",
        label: "Adapter dropout",
        unit: "",
        kind: Kind::Number {
            low: 0.0,
            high: 1.0,
        },
        help: "The chance with which an adapter's input is dropped (lora_dropout).",
        memory: "Above zero, each adapted layer keeps a mask and a dropped copy of its input.",
        access: lora!(Number, dropout),
        parent: Some("training.lora"),
    },
    Setting {
        path: "training.lora.fp32_adapters",
        key: "lora_fp32",
        label: "fp32 adapters",
        unit: "",
        kind: Kind::Switch,
        help: "Keep adapters in fp32 over a 16-bit base, as PEFT does unless told otherwise (autocast_adapter_dtype).",
        memory: "Inputs of adapted layers are cast up and the copies kept for backward.",
        access: lora!(Switch, fp32_adapters),
        parent: Some("training.lora"),
    },
    Setting {
        path: "training.freeze",
        key: "freeze",
        label: "Frozen parts",
        unit: "",
        kind: Kind::Words,
        help: "Parameters whose path contains one of these are frozen.",
        memory: "Frozen parameters have no gradients or states, and below the first trained layer nothing is kept for backward.",
        access: words!(training.freeze),
        parent: None,
    },
    Setting {
        path: "training.train_only",
        key: "train_only",
        label: "Trained parts only",
        unit: "",
        kind: Kind::Words,
        help: "Where not empty, parameters whose path contains none of these are frozen.",
        memory: "As freezing: everything not named has no gradients and no states.",
        access: words!(training.train_only),
        parent: None,
    },
    Setting {
        path: "training.dropout",
        key: "dropout",
        label: "Dropout",
        unit: "",
        kind: Kind::Switch,
        help: "Whether the model's dropout layers drop (on: its own probabilities; off: all zero).",
        memory: "Each active dropout keeps a mask of one byte an element and writes a new tensor.",
        access: switch!(training.dropout),
        parent: None,
    },
    Setting {
        path: "training.clip",
        key: "clip",
        label: "Gradient clipping",
        unit: "",
        kind: Kind::Switch,
        help: "Clip the gradients' norm before the optimizer step (max_grad_norm).",
        memory: "Only one number for each tensor: next to nothing.",
        access: switch!(training.clip),
        parent: None,
    },
    Setting {
        path: "training.ema",
        key: "ema",
        label: "Moving average of weights",
        unit: "",
        kind: Kind::Switch,
        help: "Keep an exponential moving average of the weights on the GPU.",
        memory: "One more copy of the weights, all the time.",
        access: switch!(training.ema),
        parent: None,
    },
    Setting {
        path: "training.zero_to_none",
        key: "zero_none",
        label: "Drop gradients when zeroing",
        unit: "",
        kind: Kind::Switch,
        help: "zero_grad(set_to_none=True), PyTorch's default since 2.0.",
        memory: "Off keeps all gradients alive through the next forward pass.",
        access: switch!(training.zero_to_none),
        parent: None,
    },
    Setting {
        path: "training.keep_outputs",
        key: "keep_outputs",
        label: "Keep the model's output",
        unit: "",
        kind: Kind::Switch,
        help: "The loop holds the model's output object while backward runs.",
        memory: "The logits stay alive during backward: two or four bytes for each token and vocabulary entry.",
        access: switch!(training.keep_outputs),
        parent: None,
    },
    Setting {
        path: "training.use_cache",
        key: "use_cache",
        label: "Key-value cache on",
        unit: "",
        kind: Kind::Switch,
        help: "The model's use_cache is left on while training.",
        memory: "Keys and values of every layer stay alive until the output is dropped.",
        access: switch!(training.use_cache),
        parent: None,
    },
    Setting {
        path: "training.channels_last",
        key: "channels_last",
        label: "Channels last",
        unit: "",
        kind: Kind::Switch,
        help: "Images and convolutions in channels_last memory format.",
        memory: "Changes which convolution kernels run and whether they copy; sizes of activations stay.",
        access: switch!(training.channels_last),
        parent: None,
    },
    Setting {
        path: "stack.torch",
        key: "torch",
        label: "PyTorch",
        unit: "",
        kind: Kind::Version {
            low: (2, 0),
            high: (2, 15),
        },
        help: "PyTorch's version, major and minor, such as \"2.10\" (in files in quotes, or YAML reads 2.1).",
        memory: "Decides how much the CUDA context and the libraries take beside the allocator.",
        access: Access::Version(|s| s.stack.torch, |s, it| s.stack.torch = it),
        parent: None,
    },
    Setting {
        path: "runtime.expandable_segments",
        key: "expandable",
        label: "Expandable segments",
        unit: "",
        kind: Kind::Switch,
        help: "expandable_segments:True in PYTORCH_ALLOC_CONF.",
        memory: "The allocator grows one segment instead of many: reserved stays close to allocated.",
        access: switch!(runtime.expandable_segments),
        parent: None,
    },
];
