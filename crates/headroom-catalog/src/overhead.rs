//! Device memory outside torch's allocator: contexts, libraries, communicators and the desktop.

use super::{Class, Confidence, Gpu, Os, Vendor};
use headroom_base::units::Bytes;

/// A band of bytes with its sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overhead {
    pub low: Bytes,
    pub expected: Bytes,
    pub high: Bytes,
    pub confidence: Confidence,
    set: u8,
}

impl Overhead {
    pub const NONE: Self = Self {
        low: Bytes::ZERO,
        expected: Bytes::ZERO,
        high: Bytes::ZERO,
        confidence: Confidence::A,
        set: u8::MAX,
    };

    /// A size that was measured.
    pub const fn measured(bytes: Bytes) -> Self {
        Self {
            low: bytes,
            expected: bytes,
            high: bytes,
            ..Self::NONE
        }
    }

    /// Where the band was read.
    pub fn sources(self) -> impl Iterator<Item = &'static str> {
        let set = table::SOURCE_SETS.get(usize::from(self.set)).copied();
        set.unwrap_or_default()
            .iter()
            .filter_map(|&source| table::SOURCES.get(usize::from(source)).copied())
    }
}

/// One kind of overhead, for a breakdown of the device number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedOverhead {
    pub what: &'static str,
    pub overhead: Overhead,
}

/// What the overheads of a process depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// The version of torch, major and minor.
    pub torch: (u8, u8),
    pub os: Os,
    /// NCCL communicators of the process; 0 on one GPU.
    pub communicators: u32,
    /// Whether the card drives a display.
    pub display: bool,
}

/// All overheads of a process on this GPU, each separately. An unknown GPU gets the widest bands.
pub fn overheads(gpu: Option<&Gpu>, process: Process) -> Vec<NamedOverhead> {
    let part = |what, overhead| NamedOverhead { what, overhead };
    let mut parts = vec![
        part("CUDA context", cuda_context(gpu, process.torch)),
        part("library kernels", libraries(gpu, process.torch)),
    ];
    if process.communicators > 0 {
        parts.push(part("NCCL", nccl(process.communicators)));
    }
    if process.display {
        parts.push(part("desktop", desktop(gpu, process.os)));
    }
    if let Some(gpu) = gpu.filter(|gpu| gpu.shares_all_memory()) {
        let system = first(table::SHARED_SYSTEM, Some(gpu), process.torch);
        parts.push(part("operating system", system));
    }
    parts
}

/// The driver's context with the kernels that have been loaded.
pub fn cuda_context(gpu: Option<&Gpu>, torch: (u8, u8)) -> Overhead {
    first(table::CUDA_CONTEXT, gpu, torch)
}

/// Kernels of cuBLAS and cuDNN that a step loads.
pub fn libraries(gpu: Option<&Gpu>, torch: (u8, u8)) -> Overhead {
    first(table::LIBRARIES, gpu, torch)
}

/// cuBLAS's workspace for one handle and stream; torch allocates it in its own pool.
pub fn cublas_workspace(gpu: Option<&Gpu>) -> Bytes {
    first(table::CUBLAS_WORKSPACE, gpu, (2, 0)).expected
}

/// The buffers of this many communicators.
pub fn nccl(communicators: u32) -> Overhead {
    let Some(further) = communicators.checked_sub(1).map(u64::from) else {
        return Overhead::NONE;
    };
    let world = first(table::NCCL_WORLD, None, (2, 0));
    let group = first(table::NCCL_GROUP, None, (2, 0));
    Overhead {
        low: world.low + group.low * further,
        expected: world.expected + group.expected * further,
        high: world.high + group.high * further,
        ..world
    }
}

/// The desktop's memory; none on GPUs that cannot drive a display or whose limit already accounts for it.
pub fn desktop(gpu: Option<&Gpu>, os: Os) -> Overhead {
    match gpu {
        Some(gpu) if matches!(gpu.class, Class::Datacenter | Class::Unified) => Overhead::NONE,
        _ => match os {
            Os::Linux => first(table::DESKTOP_LINUX, gpu, (2, 0)),
            Os::Windows | Os::Wsl => first(table::DESKTOP_WINDOWS, gpu, (2, 0)),
        },
    }
}

/// When an overhead applies. The first row that applies is used.
struct OverheadRow {
    capability: Option<((u8, u8), (u8, u8))>,
    /// Part of the card's architecture; empty for any.
    architecture: &'static str,
    torch: ((u8, u8), (u8, u8)),
    overhead: Overhead,
}

fn first(rows: &[OverheadRow], gpu: Option<&Gpu>, torch: (u8, u8)) -> Overhead {
    let has = gpu
        .filter(|gpu| gpu.vendor == Vendor::Nvidia)
        .and_then(|gpu| gpu.compute_capability);
    let row = rows.iter().find(|row| {
        let card = match row.capability {
            Some((first, last)) => has.is_some_and(|has| first <= has && has <= last),
            None => true,
        };
        let architecture = row.architecture.is_empty()
            || gpu.is_some_and(|gpu| gpu.architecture.contains(row.architecture));
        card && architecture && row.torch.0 <= torch && torch <= row.torch.1
    });
    row.map_or(Overhead::NONE, |row| row.overhead)
}

#[allow(clippy::pedantic)]
mod table {
    use super::{Bytes, Confidence, Overhead, OverheadRow};
    include!(concat!(env!("OUT_DIR"), "/overheads.rs"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{gpu, gpus};

    #[test]
    fn every_card_has_an_ordered_band_with_sources() {
        for gpu in gpus() {
            for torch in [(1, 10), (2, 1), (2, 15)] {
                for part in overheads(
                    Some(gpu),
                    Process {
                        torch,
                        os: Os::Windows,
                        communicators: 2,
                        display: true,
                    },
                ) {
                    let band = part.overhead;
                    assert!(band.low <= band.expected && band.expected <= band.high);
                    let system = part.what == "operating system";
                    let most = Bytes::mib(if system { 65_536 } else { 4096 });
                    assert!(band.high <= most, "{} {}", gpu.id, part.what);
                    assert!(band == Overhead::NONE || band.sources().count() > 0);
                }
            }
        }
    }

    #[track_caller]
    fn check(id: &str, torch: (u8, u8), mib: [u64; 3], workspace_kib: u64) {
        let gpu = gpu(id);
        let band = cuda_context(gpu, torch);
        assert_eq!([band.low, band.expected, band.high], mib.map(Bytes::mib));
        assert_eq!(cublas_workspace(gpu), Bytes::kib(workspace_kib));
    }

    #[test]
    fn the_context_follows_generation_and_torch() {
        check("a100-sxm4-80gb", (2, 15), [480, 560, 940], 8320);
        check("a100-sxm4-80gb", (1, 10), [900, 1500, 1900], 8320);
        check("t4-16gb", (2, 4), [250, 350, 650], 8320);
        check("h100-sxm5-80gb", (2, 15), [480, 540, 1000], 32_768);
        check("b200-180gb", (2, 15), [500, 650, 1300], 32_768);
        check("rtx-5090", (2, 15), [450, 700, 1400], 32_768);
        check("mi300x-192gb", (2, 15), [300, 500, 1200], 131_072);
        check("unknown", (2, 15), [300, 500, 1200], 8320);
    }

    #[test]
    fn a_card_without_a_display_loses_nothing_to_the_desktop() {
        assert_eq!(desktop(gpu("h100-sxm5-80gb"), Os::Windows), Overhead::NONE);
        assert!(
            desktop(gpu("rtx-4090"), Os::Windows).expected
                > desktop(gpu("rtx-4090"), Os::Linux).expected
        );
    }
}
