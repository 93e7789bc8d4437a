//! A rank of a job as the page shows it, and as a line that a worker says.

use super::bar::Bar;
use headroom_base::units::Bytes;
use headroom_core::estimate::{Fit, RankMemory};
use headroom_scenario::{Parallelism, Scenario};

/// A rank as it is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct OneRank {
    pub stage: u32,
    pub shard: u32,
    pub allocated: Bytes,
    pub device: Bytes,
    pub fits: String,
    pub bar: Bar,
}

/// Whether one process has the model on the first GPU, and copies of it on the others.
pub(super) fn has_copies(scenario: &Scenario) -> bool {
    scenario.parallel.strategy == Parallelism::DataParallel
}

impl OneRank {
    pub fn of(rank: &RankMemory, usable: Option<Bytes>, longest: Bytes) -> Self {
        let bands = [rank.allocated, rank.reserved, rank.device];
        let fits = usable.map(|usable| Fit::of(rank.device, usable).words());
        Self {
            stage: rank.stage,
            shard: rank.shard,
            allocated: rank.allocated.expected,
            device: rank.device.expected,
            fits: fits.unwrap_or_default().into(),
            bar: Bar::of(&rank.breakdown, bands, usable, longest),
        }
    }

    pub fn write(&self) -> String {
        let Self {
            stage,
            shard,
            allocated,
            device,
            fits,
            bar,
        } = self;
        let (allocated, device) = (allocated.get(), device.get());
        format!(
            "{stage}\t{shard}\t{allocated}\t{device}\t{fits}\t{}",
            bar.write()
        )
    }

    pub fn read(line: &str) -> Option<Self> {
        let mut fields = line.split('\t');
        Some(Self {
            stage: fields.next()?.parse().ok()?,
            shard: fields.next()?.parse().ok()?,
            allocated: Bytes::new(fields.next()?.parse().ok()?),
            device: Bytes::new(fields.next()?.parse().ok()?),
            fits: fields.next()?.into(),
            bar: Bar::read(fields.next()?),
        })
    }
}
