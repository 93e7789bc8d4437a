//! The card under the allocator: how much memory the driver can still give.

use std::fmt;

use serde::Serialize;

use super::freelist::SIZE_LIMIT;
use headroom_base::units::Bytes;

/// A GPU's memory as one process sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Card {
    /// What `mem_get_info` calls total; `None` is a card without end.
    pub total: Option<Bytes>,
    /// Taken outside the allocator by this process: the CUDA context, libraries, NCCL.
    pub context: Bytes,
    /// Taken by other processes.
    pub others: Bytes,
}

impl Card {
    /// A card that never refuses.
    pub const UNLIMITED: Self = Self {
        total: None,
        context: Bytes::ZERO,
        others: Bytes::ZERO,
    };

    /// A card on which the allocator alone may take this much.
    pub const fn usable(bytes: Bytes) -> Self {
        Self {
            total: Some(bytes),
            context: Bytes::ZERO,
            others: Bytes::ZERO,
        }
    }

    /// The most the allocator can ever hold.
    pub(super) fn room(&self) -> u64 {
        self.total.map_or(NO_END, |total| {
            (total - self.context - self.others).get().min(NO_END)
        })
    }

    pub(super) fn total_bytes(&self) -> u64 {
        self.total.map_or(NO_END, Bytes::get)
    }
}

/// A card without end has this much, so that its addresses still have numbers.
const NO_END: u64 = SIZE_LIMIT;

/// A request the card could not serve, with the numbers PyTorch prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Oom {
    /// The size requested from the driver.
    pub tried: Bytes,
    /// The request, rounded as blocks are.
    pub rounded: Bytes,
    /// The card that refused.
    pub card: Card,
    /// What the driver had left.
    pub free: Bytes,
    /// The limit of `set_per_process_memory_fraction`, where one is set.
    pub allowed: Option<Bytes>,
    /// Allocated by tensors at that moment: `memory_allocated`.
    pub allocated: Bytes,
    /// Held by the allocator at that moment: `memory_reserved`.
    pub reserved: Bytes,
}

impl fmt::Display for Oom {
    /// The text of `torch.cuda.OutOfMemoryError` since 2.1.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "CUDA out of memory. Tried to allocate {}. GPU 0 has a total capacity of {} of which {} is free. \
             Including non-PyTorch memory, this process has {} memory in use. ",
            torch_size(self.tried),
            torch_size(self.card.total.unwrap_or(Bytes::MAX)),
            torch_size(self.free),
            torch_size(self.reserved + self.card.context),
        )?;
        if let Some(allowed) = self.allowed {
            write!(f, "{} allowed; ", torch_size(allowed))?;
        }
        write!(
            f,
            "Of the allocated memory {} is allocated by PyTorch, and {} is reserved by PyTorch but unallocated.",
            torch_size(self.allocated),
            torch_size(self.reserved - self.allocated),
        )
    }
}

/// A size as PyTorch's own `format_size` writes it, so that texts can be compared.
fn torch_size(bytes: Bytes) -> String {
    let size = bytes.get();
    if size <= 1 << 10 {
        format!("{size} bytes")
    } else if size <= 1 << 20 {
        format!("{:.2} KiB", size as f64 / 1024.0)
    } else if size <= 1 << 30 {
        format!("{:.2} MiB", bytes.as_mib())
    } else {
        format!("{:.2} GiB", bytes.as_gib())
    }
}
