//! The machines.

use headroom_catalog::Os;
use std::num::NonZero;

#[derive(Clone, Debug, PartialEq)]
pub struct Hardware {
    /// A catalogue id, such as `a100-sxm4-80gb`.
    pub gpu: String,
    pub gpus: u32,
    /// Over how many machines the GPUs are spread.
    pub nodes: u32,
    /// What the driver reports, in MiB, in place of the catalogue's value.
    pub memory_mib: Option<NonZero<u64>>,
    /// NVIDIA's compute capability, in place of the catalogue's.
    pub capability: Option<(u8, u8)>,
    /// GB/s, in place of the catalogue's.
    pub bandwidth: Option<NonZero<u64>>,
    /// Dense 16-bit TFLOPS, in place of the catalogue's.
    pub tflops: Option<NonZero<u64>>,
    pub os: Os,
    /// Whether the card also drives a display.
    pub display: bool,
}

impl Hardware {
    /// GPUs per machine where `nodes` is not set: NVIDIA's DGX and HGX boards.
    pub const ON_A_MACHINE: u32 = 8;

    /// How many GPUs are on one machine.
    pub fn gpus_of_a_machine(&self) -> u32 {
        match self.nodes {
            0 | 1 => self.gpus.min(Self::ON_A_MACHINE),
            nodes => self.gpus.div_ceil(nodes),
        }
        .max(1)
    }
}

impl Default for Hardware {
    fn default() -> Self {
        Self {
            gpu: "rtx-4090".into(),
            gpus: 1,
            nodes: 1,
            memory_mib: None,
            capability: None,
            bandwidth: None,
            tflops: None,
            os: Os::default(),
            display: false,
        }
    }
}
