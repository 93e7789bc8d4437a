//! The fit map: which micro-batch fits at which sample size, of videos how many frames at which resolution, computed one
//! cell at a time.

use headroom_base::order::sorted;
use headroom_base::units::Bytes;
use headroom_core::estimate::{Band, estimate};
use headroom_scenario::settings::{frames, resolution};
use headroom_scenario::{Case, Scenario};

/// What varies between the columns of a map: the sample size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Tokens in a sample.
    Sequence,
    /// Pixels along an image's side.
    Image,
    /// Pixels of a diffusion network's height; the width keeps its proportion to it.
    Resolution,
}

/// What varies between the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    Batch,
    /// Frames of a video, of which few fit more than one.
    Frames,
}

impl Rows {
    fn of(scenario: &Scenario) -> Self {
        match frames(scenario) {
            Some(_) => Self::Frames,
            None => Self::Batch,
        }
    }

    fn get(self, scenario: &Scenario) -> u64 {
        match self {
            Self::Batch => scenario.data.micro_batch,
            Self::Frames => frames(scenario).unwrap_or(1),
        }
    }

    fn set(self, scenario: &mut Scenario, value: u64) {
        match self {
            Self::Batch => scenario.data.micro_batch = value,
            Self::Frames => scenario.data.frames = value,
        }
    }

    fn around(self, scenario: &Scenario) -> Vec<u64> {
        let now = self.get(scenario);
        match self {
            Self::Batch => {
                let below = now.max(1).ilog2().min(5);
                doubled(now, below, 8 - below, 1, BATCHES)
            }
            // Video autoencoders keep the first frame and squeeze those after it.
            Self::Frames => {
                let after = doubled(now.saturating_sub(1), 3, 2, SQUEEZED, FRAMES);
                let mut all = vec![1];
                all.extend(after.into_iter().map(|frames| frames + 1));
                all.dedup();
                all
            }
        }
    }
}

impl Size {
    /// The axis for this scenario's model.
    pub fn of(scenario: &Scenario) -> Self {
        match (resolution(scenario), image(scenario)) {
            (Some(_), _) => Self::Resolution,
            (None, Some(_)) => Self::Image,
            (None, None) => Self::Sequence,
        }
    }

    fn get(self, scenario: &Scenario) -> u64 {
        match self {
            Self::Sequence => scenario.row_length(),
            Self::Image => image(scenario).unwrap_or(1),
            Self::Resolution => resolution(scenario).map_or(1, |(height, _)| height),
        }
    }

    pub fn set(self, scenario: &mut Scenario, value: u64) {
        match self {
            Self::Sequence => scenario.set_row_length(value),
            Self::Image => {
                scenario.model.dims.insert(IMAGE.into(), value);
            }
            Self::Resolution => {
                let width = width(scenario, value);
                (scenario.data.height, scenario.data.width) = (value, width);
            }
        }
    }

    fn around(self, scenario: &Scenario) -> Vec<u64> {
        let now = self.get(scenario);
        match self {
            Self::Sequence => doubled(now, 3, 3, 1, SEQUENCES),
            // Image sides stay multiples of a patch only in coarser steps than a half.
            Self::Image => doubled(now, 1, 2, 16, IMAGES),
            Self::Resolution => {
                let scaled = SCALES.map(|(times, over)| {
                    if times == over {
                        now
                    } else {
                        rounded(now * times, over)
                    }
                });
                let within = scaled.into_iter().filter(|side| *side <= IMAGES);
                let mut all = sorted(within, u64::cmp);
                all.dedup();
                all
            }
        }
    }
}

/// The resolutions of a map, as parts of the scenario's.
const SCALES: [(u64, u64); 5] = [(1, 2), (2, 3), (1, 1), (3, 2), (2, 1)];

/// A side that autoencoders and patches of all networks divide.
fn rounded(side: u64, over: u64) -> u64 {
    const UNIT: u64 = 32;
    ((side + over * UNIT / 2) / (over * UNIT)).max(1) * UNIT
}

/// The width that goes with a height.
fn width(scenario: &Scenario, height: u64) -> u64 {
    match resolution(scenario) {
        Some((own, width)) if own == height => width,
        Some((own, width)) => rounded(height * width, own),
        None => height,
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
    pub rows: Rows,
    /// Micro-batches or frames.
    pub batches: Vec<u64>,
    pub usable: Option<Bytes>,
    /// The cells computed so far.
    pub cells: Vec<Option<Band>>,
    scenario: Scenario,
}

impl FitMap {
    /// An empty grid around a scenario: its sample size halved and doubled, and micro-batches from one upwards.
    pub fn around(scenario: &Scenario) -> Self {
        let (size, rows) = (Size::of(scenario), Rows::of(scenario));
        Self {
            size,
            sizes: size.around(scenario),
            rows,
            batches: rows.around(scenario),
            usable: None,
            cells: Vec::new(),
            scenario: scenario.clone(),
        }
    }

    pub fn is_done(&self) -> bool {
        self.cells.len() == self.sizes.len() * self.batches.len()
    }

    /// The scenario of a cell, if it is valid.
    pub fn at(&self, row: usize, column: usize) -> Option<Scenario> {
        let mut scenario = self.scenario.clone();
        self.rows.set(&mut scenario, *self.batches.get(row)?);
        self.size.set(&mut scenario, *self.sizes.get(column)?);
        Some(scenario)
    }

    /// A column's size as text.
    pub fn title(&self, column: usize) -> String {
        let Some(size) = self.sizes.get(column) else {
            return String::new();
        };
        match self.size {
            Size::Resolution => format!("{size}×{}", width(&self.scenario, *size)),
            Size::Sequence | Size::Image => size.to_string(),
        }
    }

    /// Computes the next cell.
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
    pub fn current(&self) -> Option<(usize, usize)> {
        let place = |all: &[u64], value| all.iter().position(|size| *size == value);
        Some((
            place(&self.batches, self.rows.get(&self.scenario))?,
            place(&self.sizes, self.size.get(&self.scenario))?,
        ))
    }
}

/// The largest sizes of a map, beyond what is used in training.
const SEQUENCES: u64 = 1 << 20;
const IMAGES: u64 = 4096;
const BATCHES: u64 = 1 << 16;
const FRAMES: u64 = 1 << 10;
/// Frames that become one in most video autoencoders.
const SQUEEZED: u64 = 4;

/// A value halved and doubled repeatedly, as long as it stays a multiple of `unit` and within bounds.
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
    fn sizes_are_halved_and_doubled_to_integers() {
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
    fn cells_equal_estimates_and_grow() {
        let map = whole(|_| {});
        let (row, column) = map.current().unwrap();
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
    fn image_models_vary_the_image_side() {
        let mut scenario = Scenario::default();
        scenario.model.id = "resnet-50".into();
        assert_eq!(Size::of(&scenario), Size::Image);
        assert_eq!(Size::of(&Scenario::default()), Size::Sequence);
    }

    #[test]
    fn videos_vary_frames_and_resolution() {
        let mut scenario = Scenario::default();
        scenario.model.id = "wan2.1-t2v-14b".into();
        (
            scenario.data.height,
            scenario.data.width,
            scenario.data.frames,
        ) = (720, 1280, 81);
        let map = FitMap::around(&scenario);
        assert_eq!((map.rows, map.size), (Rows::Frames, Size::Resolution));
        assert_eq!(map.batches, [1, 21, 41, 81, 161, 321]);
        let titles: Vec<String> = (0..map.sizes.len()).map(|at| map.title(at)).collect();
        assert_eq!(
            titles,
            ["352×640", "480×864", "720×1280", "1088×1920", "1440×2560"]
        );
        let (row, column) = map.current().unwrap();
        assert_eq!(map.at(row, column), Some(scenario));
    }

    #[test]
    fn lengths_beyond_the_position_table_are_empty() {
        let map = whole(|scenario| scenario.data.sequence = 1024);
        assert!(map.sizes.contains(&8192));
        assert_eq!(map.cells.len(), map.sizes.len() * map.batches.len());
    }
}
