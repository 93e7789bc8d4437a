//! From what torch reserves to what the card must hold.

use super::Band;
use crate::catalog::{self, Gpu, Software};
use crate::scenario::{Hardware, Scenario};
use crate::tape::Machine;
use crate::units::Bytes;

/// What the tape must know of the card; an A100's where none is named.
pub fn machine(hardware: &Hardware, gpu: Option<&Gpu>) -> Machine {
    let default = Machine::default();
    let given = Some(hardware.capability).filter(|it| *it != (0, 0));
    let multiprocessors = gpu
        .and_then(|gpu| gpu.sms.get())
        .map_or(default.multiprocessors, |sms| sms as u64);
    Machine {
        capability: given
            .or_else(|| gpu?.compute_capability)
            .unwrap_or(default.capability),
        multiprocessors,
        ..default
    }
}

/// What `nvidia-smi` shows for the process: reserved, CUDA context, libraries, NCCL between several GPUs.
pub fn band(scenario: &Scenario, gpu: Option<&Gpu>, reserved: Band) -> Band {
    let software = Software {
        torch: scenario.stack.torch,
        os: scenario.hardware.os,
        communicators: u32::from(scenario.hardware.gpus > 1),
        // The desktop is not this process: it is taken off what is usable.
        display: false,
    };
    catalog::overheads(gpu, software)
        .iter()
        .fold(reserved, |band, part| Band {
            low: band.low + part.overhead.low,
            expected: band.expected + part.overhead.expected,
            high: band.high + part.overhead.high,
        })
}

/// What this process may take: what is left to programs, or less where `runtime.memory_fraction` limits what the allocator may
/// reserve.
pub fn usable(scenario: &Scenario, gpu: Option<&Gpu>) -> Option<Bytes> {
    let left = left(&scenario.hardware, gpu)?;
    let fraction = scenario.runtime.memory_fraction;
    if fraction >= 1.0 {
        return Some(left);
    }
    let allowed = total(&scenario.hardware, gpu)?.scale(fraction.max(0.0));
    Some(left.min(allowed + band(scenario, gpu, Band::default()).expected))
}

/// What the driver and the desktop leave to programs.
pub fn left(hardware: &Hardware, gpu: Option<&Gpu>) -> Option<Bytes> {
    let total = total(hardware, gpu)?;
    let desktop = if hardware.display {
        catalog::desktop(gpu, hardware.os).expected
    } else {
        Bytes::ZERO
    };
    Some(total - desktop)
}

fn total(hardware: &Hardware, gpu: Option<&Gpu>) -> Option<Bytes> {
    match hardware.memory_mib {
        0 => gpu?.usable_bytes(hardware.os),
        mib => Some(Bytes::mib(mib)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::settings;

    #[test]
    fn the_machine_decides_what_is_usable_and_what_is_taken_besides() {
        let with = |changes: &[(&str, &str)]| {
            let mut scenario = Scenario::default();
            for (name, value) in changes {
                settings::set(&mut scenario, name, value).unwrap();
            }
            let gpu = catalog::gpu(&scenario.hardware.gpu);
            let usable = usable(&scenario, gpu);
            (usable, band(&scenario, gpu, Band::default()).expected)
        };
        let plain = with(&[]);
        assert_eq!(with(&[("mem", "20000")]).0, Some(Bytes::mib(20_000)));
        assert_eq!(
            with(&[("gpu", "mine"), ("mem", "20000")]).0,
            Some(Bytes::mib(20_000))
        );
        assert_eq!(with(&[("gpu", "mine")]).0, None);
        assert!(with(&[("display", "on")]).0 < plain.0);
        let half = [("mem", "20000"), ("fraction", "0.5")];
        assert_eq!(with(&half).0, Some(Bytes::mib(10_000) + plain.1));
        assert!(with(&[("os", "wsl")]).0 >= plain.0);
        assert!(with(&[("gpus", "2")]).1 > plain.1);
    }
}
