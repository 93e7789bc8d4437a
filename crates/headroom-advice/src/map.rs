//! The fit map: which micro-batch fits at which sample size, worked out one cell at a time.

use headroom_base::order::sorted;
use headroom_base::units::Bytes;
use headroom_core::estimate::{Band, estimate};
use headroom_scenario::{Case, Scenario};

/// What the columns of a map vary: how large a sample is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Tokens in a sample.
    Sequence,
    /// Pixels along an image's side.
    Image,
}

impl Size {
    /// What this scenario's model takes.
    pub fn of(scenario: &Scenario) -> Self {
        match image(scenario) {
            Some(_) => Self::Image,
            None => Self::Sequence,
        }
    }

    fn get(self, scenario: &Scenario) -> u64 {
        match self {
            Self::Sequence => scenario.data.sequence,
            Self::Image => image(scenario).unwrap_or(1),
        }
    }

    pub fn set(self, scenario: &mut Scenario, value: u64) {
        match self {
            Self::Sequence => scenario.data.sequence = value,
            Self::Image => {
                scenario.model.dims.insert(IMAGE.into(), value);
            }
        }
    }
}

/// The name of an image's side among a model's dimensions.
const IMAGE: &str = "img";

fn image(scenario: &Scenario) -> Option<u64> {
    let changed = scenario.model.dims.get(IMAGE).copied();
    let listed = || {
        let entry = Case::of(scenario).model?;
        let sizes = entry.sizes();
        let (_, values) = sizes.iter().find(|(name, _)| *name == IMAGE)?;
        values.first().copied()
    };
    changed.or_else(listed)
}

/// The grid: `cells` row by row, a row for each micro-batch. A cell that cannot be run is empty.
#[derive(Clone, Debug, PartialEq)]
pub struct FitMap {
    pub size: Size,
    pub sizes: Vec<u64>,
    pub batches: Vec<u64>,
    pub usable: Option<Bytes>,
    /// As many as are known so far.
    pub cells: Vec<Option<Band>>,
    scenario: Scenario,
}

impl FitMap {
    /// An empty grid around a scenario: halves and doubles of its sample size, and micro-batches from one upwards.
    pub fn around(scenario: &Scenario) -> Self {
        let size = Size::of(scenario);
        let now = size.get(scenario);
        // Image sides stay multiples of a patch only in coarser steps than a half.
        let sizes = match size {
            Size::Sequence => doubled(now, 3, 3, 1, SEQUENCES),
            Size::Image => doubled(now, 1, 2, 16, IMAGES),
        };
        let batch = scenario.data.micro_batch;
        let below = batch.max(1).ilog2().min(5);
        Self {
            size,
            sizes,
            batches: doubled(batch, below, 8 - below, 1, BATCHES),
            usable: None,
            cells: Vec::new(),
            scenario: scenario.clone(),
        }
    }

    pub fn is_done(&self) -> bool {
        self.cells.len() == self.sizes.len() * self.batches.len()
    }

    /// The scenario of a cell, where there is one.
    pub fn at(&self, row: usize, column: usize) -> Option<Scenario> {
        let mut scenario = self.scenario.clone();
        scenario.data.micro_batch = *self.batches.get(row)?;
        self.size.set(&mut scenario, *self.sizes.get(column)?);
        Some(scenario)
    }

    /// Works out the next cell.
    pub fn step(&mut self) {
        let next = self.cells.len();
        let columns = self.sizes.len().max(1);
        let Some(scenario) = self.at(next / columns, next % columns) else {
            return;
        };
        let runs = scenario.check().is_empty();
        let found = runs.then(|| estimate(&scenario).ok()).flatten();
        if let Some(found) = &found {
            self.usable = found.usable;
        }
        self.cells.push(found.map(|estimate| estimate.device));
    }

    /// The row and column of the scenario it was drawn around.
    pub fn here(&self) -> Option<(usize, usize)> {
        let place = |all: &[u64], value| all.iter().position(|size| *size == value);
        Some((
            place(&self.batches, self.scenario.data.micro_batch)?,
            place(&self.sizes, self.size.get(&self.scenario))?,
        ))
    }
}

/// The largest sizes a map shows; beyond them nobody trains, and a cell would only cost time.
const SEQUENCES: u64 = 1 << 20;
const IMAGES: u64 = 4096;
const BATCHES: u64 = 1 << 16;

/// A value halved and doubled so many times, as far as it stays a multiple of `unit` and within bounds.
fn doubled(now: u64, halves: u32, doubles: u32, unit: u64, most: u64) -> Vec<u64> {
    let down = (1..=halves).map_while(|by| {
        let value = now.checked_shr(by)?;
        (value >= unit && value % unit == 0 && value << by == now).then_some(value)
    });
    let up = (1..=doubles).map_while(|by| {
        let value = now.checked_mul(1 << by)?;
        (value <= most).then_some(value)
    });
    let mut all = sorted(down.chain([now]).chain(up), u64::cmp);
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(change: impl FnOnce(&mut Scenario)) -> FitMap {
        let mut scenario = Scenario::default();
        scenario.model.dims = [("layers".to_string(), 2)].into();
        change(&mut scenario);
        let mut map = FitMap::around(&scenario);
        while !map.is_done() {
            map.step();
        }
        map
    }

    #[test]
    fn sizes_are_halves_and_doubles_that_stay_whole() {
        let check = |now, halves, doubles, unit, expected: &[u64]| {
            assert_eq!(doubled(now, halves, doubles, unit, 1 << 20), expected);
        };
        check(1024, 2, 1, 1, &[256, 512, 1024, 2048]);
        check(6, 3, 1, 1, &[3, 6, 12]);
        check(224, 1, 1, 16, &[112, 224, 448]);
        check(1 << 20, 0, 3, 1, &[1 << 20]);
        check(u64::MAX, 0, 2, 1, &[u64::MAX]);
    }

    #[test]
    fn a_cell_is_what_its_scenario_needs_and_more_needs_more() {
        let map = whole(|_| {});
        let (row, column) = map.here().unwrap();
        let here = map.cells[row * map.sizes.len() + column].unwrap();
        assert_eq!(
            Some(here),
            estimate(&map.at(row, column).unwrap())
                .ok()
                .map(|estimate| estimate.device)
        );
        for line in map.cells.chunks(map.sizes.len()) {
            let known: Vec<_> = line.iter().flatten().map(|band| band.expected).collect();
            // What the allocator reserves goes up in segments, and may save one where more fits in another.
            let rises = |pair: &[Bytes]| pair[0] <= pair[1] + Bytes::mib(32);
            assert!(known.windows(2).all(rises), "{known:?}");
        }
    }

    #[test]
    fn a_model_of_images_varies_their_side() {
        let mut scenario = Scenario::default();
        scenario.model.id = "resnet-50".into();
        assert_eq!(Size::of(&scenario), Size::Image);
        assert_eq!(Size::of(&Scenario::default()), Size::Sequence);
    }

    #[test]
    fn lengths_the_model_has_no_positions_for_are_empty() {
        let map = whole(|scenario| scenario.data.sequence = 1024);
        assert!(map.sizes.contains(&8192));
        assert_eq!(map.cells.len(), map.sizes.len() * map.batches.len());
    }
}
