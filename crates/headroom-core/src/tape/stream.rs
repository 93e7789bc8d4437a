//! CUDA streams.

use crate::allocator::OUTSIDE;

/// A CUDA stream; the allocator has a pool for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stream(u8);

impl Stream {
    /// The stream that a program computes on.
    pub const COMPUTE: Self = Self(0);

    /// Memory that is not from the caching allocator but from the driver itself, which has it back as soon as it is freed: a vLLM
    /// that sleeps (`CuMemAllocator` of vllm/device_allocator/cumem.py).
    pub const OUTSIDE: Self = Self(OUTSIDE as u8);

    /// A side stream, by its number.
    pub const fn side(number: u8) -> Self {
        Self(number)
    }

    pub const fn number(self) -> u8 {
        self.0
    }
}
