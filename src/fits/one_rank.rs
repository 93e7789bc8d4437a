//! A rank of a job for the page, and as a line of the worker's reply.

use crate::shared::bar::Bar;
use headroom_base::units::Bytes;
use headroom_core::estimate::{Fit, RankMemory};
use headroom_scenario::{Parallelism, Scenario};

/// A displayed rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct OneRank {
    pub stage: u32,
    pub shard: u32,
    pub allocated: Bytes,
    pub device: Bytes,
    pub fits: String,
    pub bar: Bar,
}

/// Whether one process has the model on the first GPU and copies on the others (`DataParallel`).
pub(crate) fn has_copies(scenario: &Scenario) -> bool {
    scenario.parallel.strategy == Parallelism::DataParallel
}

impl OneRank {
    pub fn of(rank: &RankMemory, usable: Option<Bytes>, longest: Bytes) -> Self {
        let bands = [rank.allocated, rank.reserved, rank.device];
        let fits = usable.map(|usable| Fit::of(rank.device, usable).label());
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
