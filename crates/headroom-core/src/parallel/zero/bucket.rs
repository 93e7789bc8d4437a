//! The bucket in which gradients wait to be reduced (`IPGBucket`).

use crate::tape::Tensor;

/// Gradients that are reduced together: copied behind each other, or one that is larger than the bucket as it is.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    /// One buffer, or two that take turns while one is reduced.
    pub buffers: Vec<Tensor>,
    pub elements: u64,
    /// The group and the place in it of each parameter.
    pub members: Vec<(usize, usize)>,
}

impl Bucket {
    /// Whether a gradient of this many elements still fits.
    pub(crate) fn has_room_for(&self, numel: u64, limit: u64) -> bool {
        self.elements.saturating_add(numel) <= limit
    }

    pub(crate) fn push(&mut self, member: (usize, usize), numel: u64) {
        self.members.push(member);
        self.elements = self.elements.saturating_add(numel);
    }

    /// What has been filled in, which leaves the buffers empty.
    pub(crate) fn drain(&mut self) -> Vec<(usize, usize)> {
        self.elements = 0;
        std::mem::take(&mut self.members)
    }
}
