//! CUDA streams.

/// A CUDA stream; the allocator has a pool for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stream(u8);

impl Stream {
    /// The stream that a program computes on.
    pub const COMPUTE: Self = Self(0);

    /// A side stream, by its number.
    pub const fn side(number: u8) -> Self {
        Self(number)
    }

    pub const fn number(self) -> u8 {
        self.0
    }
}
