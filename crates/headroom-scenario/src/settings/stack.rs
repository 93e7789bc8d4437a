//! The software.

use crate::Trainer;
use crate::setting::{Access, Setting, ValueType};

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        path: "stack.trainer",
        key: "trainer",
        label: "Trainer",
        unit: "",
        value_type: ValueType::Choice(Trainer::CHOICES),
        help: "The library that runs the training loop. Settings you leave out take its defaults.",
        memory: "Trainers differ in their defaults: checkpointing, fused optimizers, adapter dtype, how the loss is computed.",
        access: choice!(Trainer, stack.trainer),
        parent: None,
    },
    Setting {
        path: "stack.trainer_version",
        key: "trainer_version",
        label: "Trainer version",
        unit: "",
        value_type: ValueType::Version {
            low: (0, 0),
            high: (99, 99),
        },
        help: "The trainer's version, major and minor, in quotes; \"0.0\" is the newest that Headroom knows. Write 2026.10 as \"26.10\".",
        memory: "Defaults change between versions.",
        access: unless_zeros!(stack.trainer_version),
        parent: None,
    },
    Setting {
        path: "stack.torch",
        key: "torch",
        label: "PyTorch",
        unit: "",
        value_type: ValueType::Version {
            low: (1, 10),
            high: (2, 15),
        },
        help: "PyTorch's version, major and minor, such as \"2.10\".",
        memory: "Sets how much the CUDA context and libraries use outside the allocator. Before 2.5 cuBLAS keeps its workspace; AdamW steps with two lists of temporaries in 2.0 and tensor by tensor before; before 2.0 gradients are zeroed rather than freed; before 1.11 softmax saves its input.",
        access: Access::Version(|s| s.stack.torch, |s, new| s.stack.torch = new),
        parent: None,
    },
    Setting {
        path: "stack.transformers",
        key: "transformers",
        label: "transformers",
        unit: "",
        value_type: ValueType::Version {
            low: (4, 30),
            high: (5, 23),
        },
        help: "The version of Hugging Face transformers, major and minor, in quotes.",
        memory: "Before 4.46 a language model keeps its logits in fp32, and until 4.48 the loss makes another copy; before 5.0 checkpointing is re-entrant.",
        access: Access::Version(
            |s| s.stack.transformers,
            |s, new| s.stack.transformers = new,
        ),
        parent: None,
    },
    Setting {
        path: "stack.peft",
        key: "peft",
        label: "PEFT",
        unit: "",
        value_type: ValueType::Version {
            low: (0, 5),
            high: (0, 21),
        },
        help: "The version of PEFT, major and minor, in quotes.",
        memory: "Since 0.12 adapters are kept in fp32 by default.",
        access: Access::Version(|s| s.stack.peft, |s, new| s.stack.peft = new),
        parent: None,
    },
    Setting {
        path: "stack.bitsandbytes",
        key: "bitsandbytes",
        label: "bitsandbytes",
        unit: "",
        value_type: ValueType::Version {
            low: (0, 39),
            high: (0, 50),
        },
        help: "The version of bitsandbytes, major and minor, in quotes.",
        memory: "Before 0.43 every 4-bit layer saves its input for backward.",
        access: Access::Version(
            |s| s.stack.bitsandbytes,
            |s, new| s.stack.bitsandbytes = new,
        ),
        parent: None,
    },
    Setting {
        path: "stack.liger",
        key: "liger",
        label: "Liger kernel",
        unit: "",
        value_type: ValueType::Version {
            low: (0, 3),
            high: (0, 8),
        },
        help: "The version of liger-kernel, major and minor, in quotes.",
        memory: "Before 0.5 the fused linear cross-entropy casts each chunk of logits to fp32.",
        access: Access::Version(|s| s.stack.liger, |s, new| s.stack.liger = new),
        parent: None,
    },
];
