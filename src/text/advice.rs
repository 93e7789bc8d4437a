//! Texts of the advice section.

use headroom_base::units::{Bytes, UnitStyle};

pub const WHAT_TO_CHANGE: &str = "What to change";
pub const PLANS_ABOUT: &str = "Whole runs that fit, at the same effective batch: the fewest changes, the fastest, the most room.";
pub const FITS_AS_IT_IS: &str = "It fits: nothing needs to change.";
pub const WHOLE_RUNS: &str =
    "Each row is a whole run; its changes are in an order in which each helps.";
pub const FITS_PROBABLY: &str =
    "It probably fits. To make sure even the upper end of the range fits:";
pub const NOTHING_HELPS: &str = "No change is enough: use a larger GPU or a smaller model.";
pub const UNLOCK: &str = "It could fit if more may change: clear a box under “Keep as it is”.";
pub const SAME_RESULTS: &str = "same";
pub const CHANGES_RESULTS: &str = "results differ";
pub const LEAST_MEMORY: &str = "minimum memory to run";
pub const EVERY_CHANGE: &str = "Every change on its own";
pub const EVERY_CHANGE_ABOUT: &str = "Computed for this run; some changes save nothing or cost memory. \
     At the end: what people also try, and what it really does.";
pub const TIERS: &str = "Largest batch";
pub const TIERS_ABOUT: &str = "The largest micro-batch at each safety margin, with the same effective batch, and the changes it takes.";
pub const OTHER_CARDS: &str = "Other GPUs";
pub const OTHER_CARDS_ABOUT: &str = "GPUs that can run this, smallest first, with their memory and cloud instances (in brackets: GPUs in the smallest instance).";
pub const HOW_FAR: &str = "Limits";
pub const HOW_FAR_ABOUT: &str =
    "The largest value of each setting that fits, with everything else unchanged.";
pub const NONE_FITS: &str = "no value fits";

/// Settings of which no value fits.
pub fn none_enough(names: &str) -> String {
    format!("Not even the smallest value fits: {names}.")
}

pub const KEEP: &str = "Keep as it is";
pub const ANY_PROGRAM: &str = "Show changes for any program";
pub const SAME_AS_ABOVE: &str = "The same run as above.";
pub const NO_PROGRAM: &str = "no program here";
pub const FITS: &str = "fits";
pub const TIGHT: &str = "tight";
pub const SMALLER_BATCH: &str = "with a smaller micro-batch";
pub const NO_CARD_AS_IT_IS: &str =
    "No GPU in the catalogue fits this run as it is; these do with a smaller micro-batch.";
pub const HOURLY: &str = "Your price for a GPU hour";
pub const NO_PRICE: &str = "Expected a number, such as 1.50.";
pub const FEWER_ROWS: &str = "Show ten";

pub fn more_rows(hidden: usize) -> String {
    format!("Show {hidden} more")
}

pub fn only_expressible(program: &str) -> String {
    format!("Only changes that {program} can express.")
}

/// A tier and how full it makes the GPU.
pub fn tier(name: &str, full: f64) -> String {
    let mut letters = name.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    let name: String = first.into_iter().chain(letters).collect();
    format!("{name} ({:.0} % full)", full * 100.0)
}

pub fn batch(batch: &str) -> String {
    format!("batch {batch}")
}

pub fn all_of_these(changes: &str) -> String {
    format!("In every row: {changes}.")
}

pub fn tiers_that_do_not_fit(tiers: &str) -> String {
    format!("Does not fit: {tiers}.")
}

/// A relative change: `+12 %`, `−3 %`.
pub fn percent_more(part: f64) -> String {
    let percent = (part * 100.0).round();
    let sign = if percent < 0.0 { "−" } else { "+" };
    format!("{sign}{} %", percent.abs())
}

pub fn too_small(count: usize) -> String {
    format!("{count} GPUs are too small")
}

pub fn gpus_that_cannot_run(count: usize) -> String {
    format!("{count} GPUs cannot run this or have an unknown amount of memory")
}

/// The cost of a step and an epoch, in the currency of the price.
pub fn costs(step: f64, epoch: Option<f64>) -> String {
    let amount = |amount: f64| {
        if amount < 0.01 {
            format!("{amount:.6}")
        } else {
            format!("{amount:.2}")
        }
    };
    match epoch {
        Some(epoch) => format!("{} per step, {} per epoch", amount(step), amount(epoch)),
        None => format!(
            "{} per step; set “Samples in an epoch” for the price of an epoch",
            amount(step)
        ),
    }
}

/// The description of the fit map.
pub fn map_axis(units: UnitStyle, usable: Option<Bytes>) -> Option<String> {
    let usable = usable?;
    Some(format!(
        "{} on the device, of {} usable. Click a cell to use its values.",
        units.scale(usable).1,
        usable.show(units)
    ))
}
