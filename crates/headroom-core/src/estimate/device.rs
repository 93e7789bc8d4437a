//! From torch's reserved memory to the device memory that `nvidia-smi` shows.

use super::Band;
use crate::tape::Machine;
use headroom_base::units::Bytes;
use headroom_catalog::{self as catalog, NamedOverhead, Overhead, Process};
use headroom_scenario::{Case, Scenario};

/// The properties of the GPU that the tape needs; an A100's if no GPU is named.
pub(crate) fn machine(case: &Case) -> Machine {
    let default = Machine::default();
    let multiprocessors = case.gpu.and_then(|gpu| gpu.sms.get());
    Machine {
        capability: case.capability().unwrap_or(default.capability),
        multiprocessors: multiprocessors.map_or(default.multiprocessors, |sms| sms as u64),
        tunes: true,
        ..default
    }
}

/// The memory that `nvidia-smi` shows for the process: reserved, CUDA context, libraries, NCCL with several GPUs, and any
/// measured correction.
pub(crate) fn band(case: &Case, reserved: Band) -> Band {
    overheads(case).iter().fold(reserved, |band, part| Band {
        low: band.low + part.overhead.low,
        expected: band.expected + part.overhead.expected,
        high: band.high + part.overhead.high,
    })
}

/// Each overhead on top of the predicted reserved memory.
pub(crate) fn overheads(case: &Case) -> Vec<NamedOverhead> {
    let mut parts = outside(case);
    let kept = Some(case.scenario.runtime.kept_mib).filter(|mib| *mib > 0);
    let kept = kept.map(|mib| Overhead::measured(Bytes::mib(mib)));
    parts.extend(kept.map(|overhead| NamedOverhead {
        what: "measured beyond the prediction",
        overhead,
    }));
    parts
}

/// What is in use outside torch's allocator: as measured, else as the catalogue has it.
fn outside(case: &Case) -> Vec<NamedOverhead> {
    if let Some(mib) = case.scenario.runtime.outside_mib {
        let overhead = Overhead::measured(Bytes::mib(mib.get()));
        let what = "outside PyTorch, as measured";
        return vec![NamedOverhead { what, overhead }];
    }
    let process = Process {
        torch: case.scenario.stack.torch,
        os: case.scenario.hardware.os,
        communicators: communicators(case.scenario),
        // The desktop is another process: `left` subtracts it.
        display: false,
    };
    catalog::overheads(case.gpu, process)
}

/// NCCL communicators of one process: one for each mesh group it belongs to, each with its own buffers.
pub(crate) fn communicators(scenario: &Scenario) -> u32 {
    if scenario.hardware.gpus < 2 {
        return 0;
    }
    let groups = u32::try_from(scenario.mesh().groups().count());
    groups.unwrap_or(u32::MAX).max(1)
}

/// The memory that `nvidia-smi` shows beyond torch's reserved memory.
pub(crate) fn overhead(case: &Case) -> Bytes {
    band(case, Band::default()).expected
}

/// The memory this process can use: all that is left to programs, or less if `runtime.memory_fraction` limits the
/// allocator.
pub(crate) fn usable(case: &Case) -> Option<Bytes> {
    let left = left(case)?;
    let Some(fraction) = case.scenario.runtime.memory_fraction else {
        return Some(left);
    };
    let allowed = total(case)?.scale(fraction.max(0.0));
    let outside = outside(case)
        .into_iter()
        .fold(Bytes::ZERO, |sum, part| sum + part.overhead.expected);
    Some(left.min(allowed + outside))
}

/// The memory that the driver and the desktop leave to programs.
pub(crate) fn left(case: &Case) -> Option<Bytes> {
    let hardware = &case.scenario.hardware;
    // What was measured outside PyTorch has the desktop in it.
    let desktop = if hardware.display && case.scenario.runtime.outside_mib.is_none() {
        catalog::desktop(case.gpu, hardware.os).expected
    } else {
        Bytes::ZERO
    };
    Some(total(case)? - desktop)
}

/// The GPU's total memory.
pub(super) fn total(case: &Case) -> Option<Bytes> {
    match case.scenario.hardware.memory_mib {
        None => case.gpu?.usable_bytes(case.scenario.hardware.os),
        Some(mib) => Some(Bytes::mib(mib.get())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_scenario::{Scenario, settings};

    #[test]
    fn usable_memory_and_overhead_depend_on_the_machine() {
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
