//! The GPU and the version of PyTorch.

use super::Torch;

/// What the tape and the step need to know of the GPU and of PyTorch to choose the same kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Compute capability, such as `(8, 0)`.
    pub capability: (u8, u8),
    /// Streaming multiprocessors of the GPU, which some kernels split their work over.
    pub multiprocessors: u64,
    /// Scratch memory a cuDNN convolution plan claims.
    pub cudnn_workspace: u64,
    /// Generated kernels are timed when they first run.
    pub tunes: bool,
    /// The rules of the version of PyTorch.
    pub torch: Torch,
}

impl Machine {
    /// Bytes of level-2 cache, from NVIDIA's white papers of the largest chip of each generation.
    pub const fn level2_cache(self) -> u64 {
        match self.capability {
            (8, 0) => 40 << 20,
            (8, 9) => 72 << 20,
            (9, _) => 50 << 20,
            (10, _) => 126 << 20,
            (12, _) => 96 << 20,
            _ => 6 << 20,
        }
    }
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            capability: (8, 0),
            multiprocessors: 108,
            cudnn_workspace: 0,
            tunes: false,
            torch: Torch::default(),
        }
    }
}
