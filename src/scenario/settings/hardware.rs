//! The machine.

use crate::catalog::Os;
use crate::scenario::Choice;
use crate::scenario::setting::{Access, Setting, ValueType};

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
        value_type: ValueType::Whole {
            low: 1,
            high: 100_000,
        },
        help: "How many of them train together.",
        memory: "More GPUs multiply the effective batch; memory on each falls only where something is sharded.",
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
        help: "Over how many machines the GPUs are spread, evenly.",
        memory: "Between machines the same bytes travel more slowly; what one GPU holds does not change.",
        access: whole!(hardware.nodes),
        parent: None,
    },
    Setting {
        path: "hardware.memory_mib",
        key: "mem",
        label: "Memory, where it is not the catalogue's",
        unit: "MiB",
        value_type: ValueType::Whole {
            low: 0,
            high: 100_000_000,
        },
        help: "What torch reports as the card's total memory; 0 takes the catalogue's value. A card of any name may be given with it.",
        memory: "The limit that the run is compared with; it changes nothing in what the run needs.",
        access: whole!(hardware.memory_mib),
        parent: None,
    },
    Setting {
        path: "hardware.capability",
        key: "cc",
        label: "Compute capability, where it is not the catalogue's",
        unit: "",
        value_type: ValueType::Version {
            low: (0, 0),
            high: (20, 9),
        },
        help: "The version of NVIDIA's instruction set, such as \"8.9\"; \"0.0\" takes the catalogue's. For a card of your own.",
        memory: "Decides which number formats and attention kernels run, and how much workspace cuBLAS takes.",
        access: Access::Version(
            |s| s.hardware.capability,
            |s, it| s.hardware.capability = it,
        ),
        parent: None,
    },
    Setting {
        path: "hardware.bandwidth",
        key: "bw",
        label: "Memory bandwidth, where it is not the catalogue's",
        unit: "GB/s",
        value_type: ValueType::Whole {
            low: 0,
            high: 100_000,
        },
        help: "How fast the card reads its memory; 0 takes the catalogue's. For a card of your own.",
        memory: "Changes the time of a step, not its memory.",
        access: whole!(hardware.bandwidth),
        parent: None,
    },
    Setting {
        path: "hardware.tflops",
        key: "tflops",
        label: "Dense 16-bit rate, where it is not the catalogue's",
        unit: "TFLOPS",
        value_type: ValueType::Whole {
            low: 0,
            high: 100_000,
        },
        help: "What the card's tensor cores do in bf16 or fp16 without sparsity; 0 takes the catalogue's. For a card of your own.",
        memory: "Changes the time of a step, not its memory.",
        access: whole!(hardware.tflops),
        parent: None,
    },
    Setting {
        path: "hardware.os",
        key: "os",
        label: "Operating system",
        unit: "",
        value_type: ValueType::Choice(&[SYSTEMS[0].1, SYSTEMS[1].1, SYSTEMS[2].1]),
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
        value_type: ValueType::Switch,
        help: "Whether the desktop runs on the same card.",
        memory: "The desktop takes some hundred MiB that training cannot have.",
        access: switch!(hardware.display),
        parent: None,
    },
];
