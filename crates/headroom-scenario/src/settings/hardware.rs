//! The machine.

use crate::Choice;
use crate::setting::{Access, Setting, ValueType};
use headroom_catalog::Os;

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
        value_type: ValueType::Gpu,
        help: "The GPU to train on: a name such as \"RTX 4090\" or a catalogue id.",
        memory: "Sets how much memory there is and which attention kernels run.",
        access: text!(hardware.gpu),
        parent: None,
    },
    Setting {
        path: "hardware.gpus",
        key: "gpus",
        label: "GPUs",
        unit: "",
        value_type: ValueType::Whole {
            low: 1,
            high: 100_000,
        },
        help: "How many GPUs train together.",
        memory: "More GPUs multiply the effective batch; memory per GPU falls only where something is sharded.",
        access: whole!(hardware.gpus),
        parent: None,
    },
    Setting {
        path: "hardware.nodes",
        key: "nodes",
        label: "Machines",
        unit: "",
        value_type: ValueType::Whole {
            low: 1,
            high: 10_000,
        },
        help: "How many machines (nodes) the GPUs are spread over, evenly.",
        memory: "Communication between machines is slower; what one GPU holds does not change.",
        access: whole!(hardware.nodes),
        parent: None,
    },
    Setting {
        path: "hardware.memory_mib",
        key: "mem",
        label: "Memory (override)",
        unit: "MiB",
        value_type: ValueType::Whole {
            low: 0,
            high: 100_000_000,
        },
        help: "The GPU's total memory as torch reports it; 0 uses the catalogue's value. Set it for a GPU the catalogue does not list.",
        memory: "The limit the run is compared with; what the run needs does not change.",
        access: unless_zero!(hardware.memory_mib),
        parent: None,
    },
    Setting {
        path: "hardware.capability",
        key: "cc",
        label: "Compute capability (override)",
        unit: "",
        value_type: ValueType::Version {
            low: (0, 0),
            high: (20, 9),
        },
        help: "NVIDIA's compute capability, such as \"8.9\"; \"0.0\" uses the catalogue's. For a GPU the catalogue does not list.",
        memory: "Sets which number formats and attention kernels run, and how much workspace cuBLAS takes.",
        access: unless_zeros!(hardware.capability),
        parent: None,
    },
    Setting {
        path: "hardware.bandwidth",
        key: "bw",
        label: "Memory bandwidth (override)",
        unit: "GB/s",
        value_type: ValueType::Whole {
            low: 0,
            high: 100_000,
        },
        help: "How fast the GPU reads its memory; 0 uses the catalogue's. For a GPU the catalogue does not list.",
        memory: "Changes the time of a step, not its memory.",
        access: unless_zero!(hardware.bandwidth),
        parent: None,
    },
    Setting {
        path: "hardware.tflops",
        key: "tflops",
        label: "Dense 16-bit throughput (override)",
        unit: "TFLOPS",
        value_type: ValueType::Whole {
            low: 0,
            high: 100_000,
        },
        help: "Tensor-core throughput in bf16 or fp16 without sparsity; 0 uses the catalogue's. For a GPU the catalogue does not list.",
        memory: "Changes the time of a step, not its memory.",
        access: unless_zero!(hardware.tflops),
        parent: None,
    },
    Setting {
        path: "hardware.os",
        key: "os",
        label: "Operating system",
        unit: "",
        value_type: ValueType::Choice(&[SYSTEMS[0].1, SYSTEMS[1].1, SYSTEMS[2].1]),
        help: "The operating system of the machine that trains.",
        memory: "Windows reports a different total to programs than Linux does, and its desktop uses more of it.",
        access: Access::Choice(
            |s| match s.hardware.os {
                Os::Linux => SYSTEMS[0].1.id,
                Os::Windows => SYSTEMS[1].1.id,
                Os::Wsl => SYSTEMS[2].1.id,
            },
            |s, id| {
                let found = SYSTEMS.iter().find(|(_, choice)| choice.id == id);
                s.hardware.os = found.map_or_else(Os::default, |(os, _)| *os);
            },
        ),
        parent: None,
    },
    Setting {
        path: "hardware.display",
        key: "display",
        label: "Drives a display",
        unit: "",
        value_type: ValueType::Switch,
        help: "Whether the desktop runs on the same GPU.",
        memory: "The desktop uses a few hundred MiB that training cannot have.",
        access: switch!(hardware.display),
        parent: None,
    },
];
