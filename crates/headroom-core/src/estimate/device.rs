//! From what torch reserves to what the card must hold.

use super::Band;
use crate::tape::Machine;
use headroom_base::units::Bytes;
use headroom_catalog::{self as catalog, NamedOverhead, Overhead, Process};
use headroom_scenario::{Case, Scenario};

/// What the tape must know of the card; an A100's where none is named.
pub fn machine(case: &Case) -> Machine {
    let default = Machine::default();
    let multiprocessors = case.gpu.and_then(|gpu| gpu.sms.get());
    Machine {
        capability: case.capability().unwrap_or(default.capability),
        multiprocessors: multiprocessors.map_or(default.multiprocessors, |sms| sms as u64),
        tunes: true,
        ..default
    }
}

/// What `nvidia-smi` shows for the process: reserved, CUDA context, libraries, NCCL between several GPUs; and what was measured
/// on this machine.
pub fn band(case: &Case, reserved: Band) -> Band {
    overheads(case).iter().fold(reserved, |band, part| Band {
        low: band.low + part.overhead.low,
        expected: band.expected + part.overhead.expected,
        high: band.high + part.overhead.high,
    })
}

/// What comes on top of what torch is predicted to reserve, each by itself.
pub fn overheads(case: &Case) -> Vec<NamedOverhead> {
    let mut parts = outside(case);
    let kept = measured(case.scenario.runtime.kept_mib);
    parts.extend(kept.map(|overhead| NamedOverhead {
        what: "kept beyond the prediction, as measured",
        overhead,
    }));
    parts
}

/// A number of MiB that was measured; none where none was.
fn measured(mib: u64) -> Option<Overhead> {
    (mib > 0).then(|| Overhead::measured(Bytes::mib(mib)))
}

/// What is in use outside torch's allocator: as measured, else as the catalogue has it.
fn outside(case: &Case) -> Vec<NamedOverhead> {
    if let Some(overhead) = measured(case.scenario.runtime.outside_mib) {
        let what = "outside PyTorch, as measured";
        return vec![NamedOverhead { what, overhead }];
    }
    let process = Process {
        torch: case.scenario.stack.torch,
        os: case.scenario.hardware.os,
        communicators: communicators(case.scenario),
        // The desktop is not this process: it is taken off what is usable.
        display: false,
    };
    catalog::overheads(case.gpu, process)
}

/// NCCL's communicators in one process: one for each group of the mesh that it is in, which all have buffers of their own.
pub fn communicators(scenario: &Scenario) -> u32 {
    if scenario.hardware.gpus < 2 {
        return 0;
    }
    let groups = u32::try_from(scenario.mesh().groups().count());
    groups.unwrap_or(u32::MAX).max(1)
}

/// What `nvidia-smi` shows beyond what torch reserves.
pub fn overhead(case: &Case) -> Bytes {
    band(case, Band::default()).expected
}

/// What this process may take: what is left to programs, or less where `runtime.memory_fraction` limits what the allocator may
/// reserve.
pub fn usable(case: &Case) -> Option<Bytes> {
    let left = left(case)?;
    let fraction = case.scenario.runtime.memory_fraction;
    if fraction >= 1.0 {
        return Some(left);
    }
    let allowed = total(case)?.scale(fraction.max(0.0));
    let outside = outside(case)
        .into_iter()
        .fold(Bytes::ZERO, |sum, part| sum + part.overhead.expected);
    Some(left.min(allowed + outside))
}

/// What the driver and the desktop leave to programs.
pub fn left(case: &Case) -> Option<Bytes> {
    let hardware = &case.scenario.hardware;
    // What was measured outside PyTorch has the desktop in it.
    let desktop = if hardware.display && case.scenario.runtime.outside_mib == 0 {
        catalog::desktop(case.gpu, hardware.os).expected
    } else {
        Bytes::ZERO
    };
    Some(total(case)? - desktop)
}

/// The card's memory.
pub(super) fn total(case: &Case) -> Option<Bytes> {
    match case.scenario.hardware.memory_mib {
        0 => case.gpu?.usable_bytes(case.scenario.hardware.os),
        mib => Some(Bytes::mib(mib)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_scenario::{Scenario, settings};

    #[test]
    fn the_machine_decides_what_is_usable_and_what_is_taken_besides() {
        let with = |changes: &[(&str, &str)]| {
            let mut scenario = Scenario::default();
            for (name, value) in changes {
                settings::set(&mut scenario, name, value).unwrap();
            }
            let case = Case::of(&scenario);
            (usable(&case), overhead(&case))
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
        let measured = with(&[("outside", "700"), ("kept", "300"), ("display", "on")]);
        assert_eq!(measured, (plain.0, Bytes::mib(1000)));
        let half = [
            ("mem", "20000"),
            ("fraction", "0.5"),
            ("outside", "700"),
            ("kept", "300"),
        ];
        assert_eq!(with(&half).0, Some(Bytes::mib(10_700)));
        let one_group = with(&[("gpus", "8")]).1;
        assert!(one_group > plain.1);
        assert!(with(&[("gpus", "8"), ("tp", "2")]).1 > one_group);
    }
}
