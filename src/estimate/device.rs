//! From what torch reserves to what the card must hold.

use super::Band;
use crate::catalog::{self, Gpu, Os, Software};
use crate::tape::Machine;
use crate::units::Bytes;

const SOFTWARE: Software = Software {
    torch: (2, 15),
    os: Os::Linux,
    communicators: 0,
    display: false,
};

/// What the tape must know of the card; an A100's where none is named.
pub fn machine(gpu: Option<&Gpu>) -> Machine {
    let default = Machine::default();
    let Some(gpu) = gpu else { return default };
    let multiprocessors = gpu
        .sms
        .get()
        .map_or(default.multiprocessors, |sms| sms as u64);
    Machine {
        capability: gpu.compute_capability.unwrap_or(default.capability),
        multiprocessors,
        ..default
    }
}

/// What `nvidia-smi` shows for the process: reserved, CUDA context, libraries.
pub fn band(gpu: Option<&Gpu>, reserved: Band) -> Band {
    catalog::overheads(gpu, SOFTWARE)
        .iter()
        .fold(reserved, |band, part| Band {
            low: band.low + part.overhead.low,
            expected: band.expected + part.overhead.expected,
            high: band.high + part.overhead.high,
        })
}

/// What the driver leaves to programs.
pub fn usable(gpu: &Gpu) -> Option<Bytes> {
    gpu.usable_bytes(Os::Linux)
}
