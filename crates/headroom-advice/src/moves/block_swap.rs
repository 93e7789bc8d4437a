//! Blocks of a diffusion network that wait on the host: as few as let the run fit.

use super::{Cost, Group, Move, Results, with};
use headroom_catalog::model;
use headroom_core::estimate::{allocatable, quick_peak};
use headroom_scenario::{Scenario, settings};

pub const MOVE: Move = Move {
    id: "block-swap",
    title: "swap blocks with host memory",
    group: Group::Swapping,
    what: "The frozen weights of some blocks wait in host memory and change places with those of blocks that have run; the smallest \
           number of blocks with which the run fits.",
    needs: "Adapters on a diffusion transformer, and host memory for the blocks that wait.",
    cost: Cost::Time,
    results: Results::Identical,
    never_worse: false,
    speed: "Slower: each step copies the swapped blocks over PCIe, forward and backward, partly while other blocks run.",
    quality: "Identical.",
    source: "github.com/kohya-ss/musubi-tuner docs/wan.md (--blocks_to_swap); src/musubi_tuner/modules/custom_offloading_utils.py",
    caveat: "The host needs pinned memory for the blocks, and a batch too small hides none of the copies.",
    code: "--blocks_to_swap N",
    apply: |run| {
        let possible = run.training.block_swap == 0 && can_swap(run);
        let most = possible.then(|| most_swapped(run)).flatten()?;
        let blocks = smallest(run, most)?;
        Some(swapped(run, blocks))
    },
};

fn swapped(run: &Scenario, blocks: u64) -> Scenario {
    with(run, |changed| changed.training.block_swap = blocks)
}

/// Whether blocks of the run's network can wait on the host: frozen blocks of a diffusion transformer.
pub(crate) fn can_swap(run: &Scenario) -> bool {
    let setting = settings::find("training.block_swap");
    run.training.lora.is_some() && setting.is_some_and(|setting| setting.applies(run))
}

/// All blocks but one; of double and single blocks, as trainers count them.
pub(crate) fn most_swapped(run: &Scenario) -> Option<u64> {
    let entry = model(&run.model.id)?;
    let size = |name: &str| run.model.dim(name).or_else(|| entry.size(name));
    let single = size("single_layers").unwrap_or(0);
    let most = size("layers")?.saturating_sub(1) + single / 2;
    Some(most).filter(|most| *most > 0)
}

/// The smallest number of blocks with which the run fits, or the most; `None` if it fits as it is.
fn smallest(run: &Scenario, most: u64) -> Option<u64> {
    let room = allocatable(run)?;
    let fits = |blocks| quick_peak(&swapped(run, blocks)).map(|peak| peak <= room);
    if fits(0).ok()? {
        return None;
    }
    let (mut low, mut high) = (1, most);
    while low < high {
        let middle = low.midpoint(high);
        if fits(middle).ok()? {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(high)
}
