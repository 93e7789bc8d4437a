//! GPUs: their memory as the driver reports it, their speed and what they can run.

use super::{Confidence, Sourced};
use headroom_base::units::Bytes;

/// One card of `catalog/gpus.yaml`.
#[derive(Clone, Copy, Debug)]
pub struct Gpu {
    pub id: &'static str,
    pub name: &'static str,
    pub vendor: Vendor,
    pub class: Class,
    pub architecture: &'static str,
    /// NVIDIA's version of the instruction set; `None` for other vendors.
    pub compute_capability: Option<(u8, u8)>,
    pub sms: Sourced,
    pub memory: Memory,
    pub bf16: bool,
    pub fp8: bool,
    pub flash2: bool,
}

/// The rest of a card's entry: what predictions do not need. A table of its own, so that the page need not carry it.
#[derive(Clone, Copy, Debug)]
pub struct DataSheet {
    /// The memory's type, such as `HBM3`.
    pub memory: &'static str,
    /// `memory.total` of `nvidia-smi`, MiB.
    pub nvidia_smi: Sourced,
    /// The least and the greatest `torch_total` over drivers; zeros if only one value is known.
    observed: (f32, f32),
    /// GB/s.
    pub bandwidth: Sourced,
    pub tflops: Tflops,
    /// GB/s over all links of one GPU, both directions.
    pub nvlink: Sourced,
    /// How it reaches other GPUs: `NVLink`, `PCIe`, ...
    pub link: &'static str,
    pub pcie: &'static str,
    /// Watts.
    pub tdp: Sourced,
    pub note: &'static str,
}

/// Sizes in MiB unless noted.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    pub marketing_gb: u16,
    /// `total_memory` of the device's properties on Linux: what out-of-memory messages call the total capacity.
    pub torch_total: Sourced,
    /// The same on Windows and WSL, where it often equals `nvidia_smi`.
    pub windows: Sourced,
}

/// Dense rates in TFLOPS; fp16 and bf16 with fp32 accumulation.
#[derive(Clone, Copy, Debug)]
pub struct Tflops {
    pub fp32: Sourced,
    pub tf32: Sourced,
    pub fp16: Sourced,
    pub bf16: Sourced,
    pub fp8: Sourced,
    pub int8: Sourced,
    pub fp4: Sourced,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    Nvidia,
    Amd,
    Intel,
    Apple,
    Google,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Datacenter,
    Workstation,
    Consumer,
    Laptop,
    /// Memory shared with the processor.
    Unified,
}

/// The operating system, which decides what the driver holds back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Os {
    #[default]
    Linux,
    Windows,
    Wsl,
}

/// All cards, sorted by id.
pub fn gpus() -> &'static [Gpu] {
    &table::GPUS
}

/// The card with this id. The size at its end may be left out: `rtx-4090` is `rtx-4090-24gb`,
/// and of a card sold in several sizes the smallest is meant.
pub fn gpu(id: &str) -> Option<&'static Gpu> {
    let at = match gpus().binary_search_by(|gpu| gpu.id.cmp(id)) {
        Ok(at) => return gpus().get(at),
        Err(at) => at,
    };
    // Ids with this prefix are adjacent.
    let longer = gpus().get(at..).unwrap_or_default();
    longer
        .iter()
        .take_while(|gpu| gpu.id.starts_with(id))
        .filter(|gpu| gpu.short_id() == id)
        .min_by_key(|gpu| gpu.memory.marketing_gb)
}

impl Gpu {
    /// Memory that the driver lets programs see, before CUDA contexts and the desktop; `None` if unknown.
    pub fn usable_bytes(&self, os: Os) -> Option<Bytes> {
        let linux = self.memory.torch_total.get();
        let mib = match os {
            Os::Linux => linux,
            Os::Windows | Os::Wsl => self.memory.windows.get().or(linux),
        };
        mib.map(|mib| Bytes::new((mib * f64::from(1 << 20)) as u64))
    }

    /// Whether its total is all of the machine's memory, of which the system has a part: Apple's limit leaves that part out, and
    /// firmware gives Radeons a share of their own.
    pub fn shares_all_memory(&self) -> bool {
        self.class == Class::Unified && self.vendor == Vendor::Nvidia
    }

    /// Whether it is a part of a larger card (MIG).
    pub fn is_slice(&self) -> bool {
        self.id.contains("-mig-")
    }

    /// Whether the compute capability is at least this; false for other vendors.
    pub fn is_at_least(&self, major: u8, minor: u8) -> bool {
        self.compute_capability
            .is_some_and(|has| has >= (major, minor))
    }

    /// The id without the memory size.
    pub fn short_id(&self) -> &'static str {
        match self.id.rsplit_once('-') {
            Some((short, size)) if size.ends_with("gb") => short,
            _ => self.id,
        }
    }

    /// Where a number of this table was read.
    pub fn sources(number: Sourced) -> impl Iterator<Item = &'static str> {
        let origin = number.origin(table::ORIGINS);
        let set = origin.map_or(&[][..], |(_, set)| set);
        set.iter()
            .filter_map(|&source| table::SOURCES.get(usize::from(source)).copied())
    }

    /// How a number of this table is known.
    pub fn confidence(number: Sourced) -> Confidence {
        let origin = number.origin(table::ORIGINS);
        origin.map_or(Confidence::Unknown, |(confidence, _)| *confidence)
    }

    /// The rest of its entry.
    pub fn data_sheet(&self) -> Option<&'static DataSheet> {
        let at = gpus().binary_search_by(|gpu| gpu.id.cmp(self.id)).ok()?;
        table::DATA_SHEETS.get(at)
    }

    /// Every number with its name, for display and for tests of the data.
    pub fn numbers(&self) -> Vec<(&'static str, Sourced)> {
        let mut numbers = vec![
            ("streaming multiprocessors", self.sms),
            ("torch total, MiB", self.memory.torch_total),
            ("torch total on Windows, MiB", self.memory.windows),
        ];
        numbers.extend(
            self.data_sheet()
                .map(DataSheet::numbers)
                .into_iter()
                .flatten(),
        );
        numbers
    }
}

impl DataSheet {
    /// The least and the most that drivers have reported on Linux.
    pub fn observed_bytes(&self) -> Option<(Bytes, Bytes)> {
        let bytes = |mib: f32| Bytes::new((f64::from(mib) * f64::from(1 << 20)) as u64);
        let (least, most) = self.observed;
        (least > 0.0).then(|| (bytes(least), bytes(most)))
    }

    fn numbers(&self) -> [(&'static str, Sourced); 11] {
        let Tflops {
            fp32,
            tf32,
            fp16,
            bf16,
            fp8,
            int8,
            fp4,
        } = self.tflops;
        [
            ("nvidia-smi total, MiB", self.nvidia_smi),
            ("bandwidth, GB/s", self.bandwidth),
            ("fp32, TFLOPS", fp32),
            ("tf32, TFLOPS", tf32),
            ("fp16, TFLOPS", fp16),
            ("bf16, TFLOPS", bf16),
            ("fp8, TFLOPS", fp8),
            ("int8, TOPS", int8),
            ("fp4, TFLOPS", fp4),
            ("links, GB/s", self.nvlink),
            ("power, W", self.tdp),
        ]
    }
}

#[allow(clippy::pedantic)]
mod table {
    use super::super::sourced::Origin;
    use super::{Class, Confidence, DataSheet, Gpu, Memory, Sourced, Tflops, Vendor};
    include!(concat!(env!("OUT_DIR"), "/gpus.rs"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_sorted_and_unique() {
        assert!(gpus().len() >= 152);
        for pair in gpus().windows(2) {
            assert!(pair[0].id < pair[1].id, "{} {}", pair[0].id, pair[1].id);
        }
    }

    #[test]
    fn every_number_has_a_source_and_a_plausible_value() {
        let plausible = |name: &str| match name {
            "streaming multiprocessors" => 10.0..=200.0,
            "bandwidth, GB/s" => 60.0..=10_000.0,
            "links, GB/s" => 50.0..=4000.0,
            "power, W" => 30.0..=1500.0,
            _ if name.ends_with("MiB") => 3_000.0..=400_000.0,
            _ => 1.0..=20_000.0,
        };
        for gpu in gpus() {
            for (name, number) in gpu.numbers() {
                let Some(value) = number.get() else { continue };
                assert!(
                    plausible(name).contains(&value),
                    "{} {name} {value}",
                    gpu.id
                );
                assert!(Gpu::sources(number).count() > 0, "{} {name}", gpu.id);
            }
        }
    }

    #[test]
    fn memory_is_what_the_driver_reports_not_more_than_the_box() {
        for gpu in gpus() {
            let Some(usable) = gpu.usable_bytes(Os::Linux) else {
                continue;
            };
            let box_gib = f64::from(gpu.memory.marketing_gb);
            let share = usable.as_gib() / box_gib;
            assert!((0.65..=1.01).contains(&share), "{} {share}", gpu.id);
            let sheet = gpu.data_sheet().unwrap();
            if let Some(smi) = sheet.nvidia_smi.get() {
                assert!(usable.as_mib() <= smi * 1.001, "{}", gpu.id);
            }
            if let Some((least, most)) = sheet.observed_bytes() {
                assert!(least <= usable && usable <= most, "{}", gpu.id);
            }
            assert!(gpu.usable_bytes(Os::Windows) >= Some(usable), "{}", gpu.id);
        }
    }

    #[test]
    fn rates_keep_their_order() {
        for gpu in gpus() {
            let Tflops {
                fp32,
                tf32,
                bf16,
                fp8,
                ..
            } = gpu.data_sheet().unwrap().tflops;
            let at_most = |a: Sourced, b: Sourced| match (a.get(), b.get()) {
                (Some(a), Some(b)) => a <= b * 1.01,
                _ => true,
            };
            assert!(at_most(tf32, bf16) && at_most(bf16, fp8), "{}", gpu.id);
            assert!(
                gpu.class == Class::Unified || at_most(fp32, bf16),
                "{}",
                gpu.id
            );
            if gpu.vendor == Vendor::Nvidia {
                assert_eq!(gpu.bf16, gpu.is_at_least(8, 0), "{}", gpu.id);
                assert_eq!(gpu.fp8, gpu.is_at_least(8, 9), "{}", gpu.id);
                assert_eq!(gpu.flash2, gpu.is_at_least(8, 0), "{}", gpu.id);
            }
        }
    }

    #[track_caller]
    fn check(id: &str, found: Option<&str>, linux: u64, windows: u64) {
        let gpu = gpu(id);
        assert_eq!(gpu.map(|gpu| gpu.id), found);
        let usable = |os| {
            gpu.and_then(|gpu| gpu.usable_bytes(os))
                .map_or(0, Bytes::get)
        };
        assert_eq!(usable(Os::Linux), linux);
        assert_eq!(usable(Os::Windows), windows);
        assert_eq!(usable(Os::Wsl), windows);
    }

    #[test]
    fn look_ups_find_cards_with_and_without_their_size() {
        check(
            "h100-sxm5-80gb",
            Some("h100-sxm5-80gb"),
            85_027_979_264,
            85_027_979_264,
        );
        check(
            "rtx-4090",
            Some("rtx-4090-24gb"),
            25_282_215_936,
            24_564 << 20,
        );
        check(
            "rtx-4060-ti",
            Some("rtx-4060-ti-8gb"),
            8_185_184_256,
            8_188 << 20,
        );
        check("gh200-144gb", Some("gh200-144gb"), 0, 0);
        check(
            "apple-m4-16gb",
            Some("apple-m4-16gb"),
            10_922 << 20,
            10_922 << 20,
        );
        check(
            "apple-m4",
            Some("apple-m4-16gb"),
            10_922 << 20,
            10_922 << 20,
        );
        check("voodoo-2", None, 0, 0);
        check("", None, 0, 0);
    }
}
