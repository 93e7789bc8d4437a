//! Texts of plans and changes.

use headroom_base::units::{Bytes, UnitStyle};

pub const PLANS_TITLE: &str = "Plans";
pub const MORE_PLANS: &str = "All plans";
/// With a capital: what begins a line.
pub fn capital(name: &str) -> String {
    let mut rest = name.chars();
    rest.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(rest).collect()
    })
}

/// In the place of a third plan.
pub const NO_MORE_PLANS: &str =
    "No other run that fits needs fewer changes, less time or less memory.";
pub const PLANNING: &str = "Looking for runs that fit…";
pub const WHAT_TO_CHANGE: &str = "Plans: memory against time";
pub const COULD_BE_FASTER: &str = "It fits. To go faster or free more memory:";
pub const NOTHING_FASTER: &str = "It fits, and nothing at the same effective batch is faster.";
pub const WHOLE_RUNS: &str = "Each is a complete run that fits, at the same effective batch.";
pub const FITS_PROBABLY: &str = "It probably fits. To be sure:";
pub const NOTHING_HELPS: &str = "No change is enough: use a larger GPU or a smaller model.";
pub const UNLOCK: &str = "It fits if more may change:";
pub const AS_IT_IS: &str = "As it is";
pub const SAME_RESULTS: &str = "same";
pub const CHANGES_RESULTS: &str = "results differ";
pub const DOES_NOT_FIT: &str = "does not fit";
pub const EVERY_CHANGE: &str = "Every change on its own";
pub const EVERY_CHANGE_ABOUT: &str = "Computed for this run; some changes save nothing or cost memory. \
     At the end: what people also try, and what it really does.";
pub const HOW_FAR: &str = "How far it can go";
pub const HOW_FAR_ABOUT: &str =
    "The largest batch and the longest sequence over all plans, each with its plan.";
pub const WHICH_GPUS: &str = "Which GPUs";
pub const WHICH_GPUS_ABOUT: &str = "The smallest GPU on which some plan fits, for 1, 2, 4 and 8 of them, with its plan and cloud instances (in brackets: GPUs in the smallest instance).";
pub const NO_GPU: &str = "No plan fits on up to eight GPUs of the common sizes.";

pub const KEEP: &str = "Don't change";
pub const ANY_PROGRAM: &str = "Show changes for any program";
pub const NO_PROGRAM: &str = "no program here";
pub const HOURLY: &str = "Your price for a GPU hour";
pub const NO_PRICE: &str = "Expected a number, such as 1.50.";
pub const FEWER_ROWS: &str = "Show ten";

pub fn more_rows(hidden: usize) -> String {
    format!("Show {hidden} more")
}

pub fn only_expressible(program: &str) -> String {
    format!("Only changes that {program} can express.")
}

/// "micro-batch 12".
pub fn largest_is(what: &str, value: u64) -> String {
    format!("{what} {value}")
}

pub fn fits_at_no(what: &str) -> String {
    format!("Doesn't fit at any {what}.")
}

/// A plan's changes in the middle of a line.
pub fn with_changes(changes: &str) -> String {
    match changes {
        "" => "as it is".into(),
        _ => format!("with {changes}"),
    }
}

/// "8 × NVIDIA H100".
pub fn gpus_of(count: u32, name: &str) -> String {
    match count {
        1 => name.into(),
        _ => format!("{count} × {name}"),
    }
}

pub fn on_the_way(plan: &str) -> String {
    format!("on the way to {plan}")
}

pub fn apply_plan(plan: &str) -> String {
    format!("Apply {plan}")
}

/// "Now 14.4 GiB, 164 ms a step".
pub fn now_is(needs: &str, time: Option<&str>) -> String {
    match time {
        Some(time) => format!("Now {needs}, {}", per_step(time)),
        None => format!("Now {needs}"),
    }
}

pub fn per_step(time: &str) -> String {
    format!("{time} a step")
}

pub fn time_memory_axis(unit: &str) -> String {
    format!("Memory ({unit}) by step time (s). Press a point to apply it.")
}

pub fn usable(memory: &str) -> String {
    format!("{memory} usable")
}

pub fn batch(batch: &str) -> String {
    format!("batch {batch}")
}

/// A relative change: `+12 %`, `−3 %`.
pub fn percent_more(part: f64) -> String {
    let percent = (part * 100.0).round();
    let sign = if percent < 0.0 { "−" } else { "+" };
    format!("{sign}{} %", percent.abs())
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
        "In {}, of {} usable. Press a cell to use its values.",
        units.scale(usable).1,
        usable.show(units)
    ))
}

/// A line as a sentence before others.
pub fn sentence(line: &str) -> String {
    format!("{}. ", capital(line))
}
