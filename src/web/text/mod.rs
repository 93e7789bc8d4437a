//! Words the page shows: kept together so that they can be read through, and translated one day.

mod parts;

pub use parts::*;

use crate::scenario::{Case, Checkpointing, Scenario};
use crate::share::DATA_VERSION;
use crate::strategy::Tally;
use crate::strategy::doctor::{Calibration, Cause};
use crate::units::{Bytes, UnitStyle};

pub const TAGLINE: &str = "Does this training run fit on that GPU?";
pub const START: &str = "Start";
pub const START_ABOUT: &str =
    "Does this training run fit on that GPU? An exact answer, computed in your browser.";
pub const START_CLOSE: &str = "Close the start";
pub const ANY: &str = "A model, a config.json or an error message";
pub const ANY_EXAMPLE: &str = "meta-llama/Llama-3.1-8B, a Hugging Face URL, or paste a file";
pub const GO: &str = "Go";
pub const NOT_FOUND: &str =
    "Nothing known by that name. Choose a run below, or paste its config.json.";
pub const START_AGAIN: &str = "Start from a model, a file or an example";
pub const RESET_ABOUT: &str = "Take back every change since the chosen example";
pub const DECLARE: &str = "Declare your own network";
/// How many things the numbers leave out.
pub fn left_out(count: usize) -> String {
    match count {
        1 => "1 thing is not modelled".into(),
        _ => format!("{count} things are not modelled"),
    }
}

pub const TRUST: &str = "How far to trust this";
pub const TRUST_SAME: &str = "Recorded runs of this model, those most like yours first: what each needed, and what is predicted from its settings alone.";
pub const TRUST_LIKE: &str = "No run of this model was recorded. These are the most similar: what each needed, and what is predicted from its settings alone.";
pub const TRUST_ALL: &str = "All recorded runs are in docs/accuracy.md of the source code.";
pub const SKIP: &str = "Skip to the answer";
pub const VERDICT: &str = "Verdict";
pub const STALE: &str = "(from the last valid input)";
pub const ALLOCATED: &str = "allocated";
pub const RESERVED: &str = "reserved";
pub const DEVICE: &str = "on the device";
pub const PARAMETERS: &str = "parameters";
pub const TRAINED: &str = "trained";
pub const OPEN_IN: &str = "Open in Headroom";
pub const BACK_TO_YOURS: &str = "Back to my scenario";
pub const SHARED: &str = "You opened a shared scenario. ";
pub const WHOLE: &str = "On the device";
pub const COMPARE: &str =
    "Pin this scenario, change any setting, and compare the two side by side.";
pub const NO_DIFFERENCE: &str = "No difference yet: change a setting.";
pub const FORWARD_END: &str = "After the forward pass";
pub const BETWEEN: &str = "Between steps";
pub const PASTE: &str = "Paste the error, an nvidia-smi table, torch.cuda.memory_summary() or a probe log. It stays in this tab.";
pub const NOT_UNDERSTOOD: &str =
    "No known PyTorch error, nvidia-smi table or probe log found in this text.";
pub const EVIDENCE: &str = "Evidence";
pub const ADVICE: &str = "What to change";
pub const CHECKS: &str = "How to be sure";
pub const OR_ELSE: &str = "Other possible causes";
pub const MEASURED: &str = "measured peak";
pub const PREDICTED: &str = "predicted";
pub const OFFSET: &str = "difference";
pub const BESIDE: &str = "on the GPU outside PyTorch";
pub const PREDICTED_AND_MEASURED: &str = "Predicted and measured";
pub const CALIBRATE: &str = "Apply this correction";
pub const REMOVE: &str = "Remove";
pub const SAVE_PROBE: &str = "Download the probe";
pub const PROBE_ABOUT: &str =
    "A Python file for your training loop that logs one line per step. Open its log here.";
pub const WHOLE_MODEL: &str = "Everything";
pub const MODULE_PATH: &str = "Path of the module";
pub const TABLE: &str = "Table";
pub const BY_MODULE: &str = "By module";
pub const TENSORS: &str = "Tensors alive at the peak";
pub const INSIDE: &str = "Tensors of";
pub const OUTSIDE: &str = "outside the model";
pub const BESIDE_GPU: &str = "Host memory and disk";
pub const SMALLER: &str = "smaller items";
pub const PRIVATE: &str = "Everything is computed in this tab and nothing you enter leaves it: no server, no analytics, no \
     cookies. Your settings are in the address, so a bookmark saves them.";

pub fn other_data(data: &str) -> String {
    format!(
        "This link was made with data version {data}; numbers here use version {DATA_VERSION} and may differ."
    )
}

/// What the verdict is about, in the order people say it.
pub fn about(scenario: &Scenario) -> String {
    let (training, case) = (&scenario.training, Case::of(scenario));
    let card = case.gpu.map_or(&*scenario.hardware.gpu, |gpu| gpu.name);
    let cards = match scenario.hardware.gpus {
        1 => card.to_string(),
        many => format!("{many} × {card}"),
    };
    let model = match (&scenario.model.network, case.model) {
        (None, Some(model)) => model.name,
        // The catalogue's name is not that of a declared network.
        (Some(_), Some(_)) => DECLARED,
        (_, None) => &scenario.model.id,
    };
    let method = match &training.lora {
        Some(lora) => format!("LoRA rank {}", lora.rank),
        None => "full training".into(),
    };
    let checkpointing = match training.checkpointing {
        Checkpointing::None => String::new(),
        mode => format!(", checkpointing: {}", mode.label().to_lowercase()),
    };
    let (batch, length) = (scenario.data.micro_batch, scenario.data.sequence);
    let batch = match length {
        1 => format!("batch of {batch}"),
        _ => format!("{batch} × {length} tokens"),
    };
    let batch = match training.accumulation {
        1 => batch,
        times => format!("{times} × ({batch})"),
    };
    let (precision, optimizer) = (training.precision.label(), training.optimizer.label());
    format!("{model}, {method}, {precision}, {optimizer}{checkpointing}, {batch} on {cards}")
}

/// What an axis of bytes shows, for a chart whose largest value this is.
pub fn axis(units: UnitStyle, largest: Bytes) -> String {
    format!(
        "{} over the step, in order of allocation",
        units.scale(largest).1
    )
}

pub const WHAT_TO_CHANGE: &str = "What to change";
pub const LADDER_ABOUT: &str =
    "The fewest changes that make it fit, cheapest first, at the same effective batch.";
pub const FITS_AS_IT_IS: &str = "It fits: nothing needs to change.";
pub const FITS_PROBABLY: &str =
    "It probably fits. To make sure even the upper end of the range fits:";
pub const FITS_PROBABLY_AT_BEST: &str =
    "It probably fits; even all of these together do not make sure.";
pub const LADDER: &str = "Apply in order; each step is computed for this run.";
pub const LADDER_FAILS: &str =
    "All of these together are not enough: use a larger GPU or a smaller model.";
pub const OR: &str = "or";
pub const COSTS_NOTHING: &str = "nothing";
pub const COSTS_TIME: &str = "time";
pub const CHANGES_RESULTS: &str = "results differ";
pub const NOT_OFFERED: &str = "not offered";
pub const WORKING: &str = "Working…";
pub const MANY_STEPS: &str = "Fragmentation over many steps";
pub const MANY_STEPS_ABOUT: &str = "Replays batches with the sizes of your data through the allocator: memory it holds beyond what is allocated \
     is fragmentation.";
pub const LEAST_MEMORY: &str = "minimum memory to run";
pub const OWN_NETWORK: &str = "Your own network";
pub const APPLY: &str = "Apply";
pub const COPY: &str = "Copy";
pub const COPIED: &str = "Copied";
pub const COPY_YOURSELF: &str = "Select the text and press Ctrl+C";
pub const EVERY_CHANGE: &str = "Every change on its own";
pub const EVERY_CHANGE_ABOUT: &str = "Computed for this run; some changes save nothing or cost memory. \
     At the end: what people also try, and what it really does.";
pub const TIERS: &str = "Safety margin";
pub const TIERS_ABOUT: &str =
    "The largest micro-batch that leaves this much free memory, at the same effective batch.";
pub const NO_WAY: &str = "does not fit";
pub const OTHER_CARDS: &str = "Other GPUs";
pub const OTHER_CARDS_ABOUT: &str =
    "This run on every GPU in the catalogue, fastest first, each with its largest micro-batch.";
pub const HOW_FAR: &str = "Limits";
pub const HOW_FAR_ABOUT: &str =
    "The largest value of each setting that fits, with everything else unchanged.";
pub const NONE_FITS: &str = "no value fits";
pub const SMALLEST_CARD: &str = "smallest GPU";
pub const FEWEST_CARDS: &str = "fewest GPUs at this effective batch";
pub const FEWEST_CHECKPOINTS: &str = "least checkpointing";
pub const FASTEST_THAT_FITS: &str = "Search";
pub const SEARCH_ABOUT: &str = "Searches all combinations of changes and micro-batches for the fastest that fits. You can keep working.";
pub const SEARCH: &str = "Search again";
pub const STOP: &str = "Stop";
pub const NOTHING_FITS: &str = "No combination fits.";
pub const FASTEST: &str = "fastest";
pub const TOO_LARGE: &str = "too large";

pub fn many_steps(count: usize, allocated: Bytes, held: Bytes) -> String {
    let ratio = held.get() as f64 / allocated.get().max(1) as f64;
    format!("Over {count} steps the allocator reserves {ratio:.2} times what is allocated.")
}

pub fn step_fails(step: usize, retries: u64) -> String {
    let step = format!("On this GPU step {step} runs out of memory");
    match retries {
        0 => format!("{step}."),
        _ => format!(
            "{step}, after the allocator freed its cache {}.",
            times(retries)
        ),
    }
}

fn times(count: u64) -> String {
    match count {
        1 => "once".into(),
        2 => "twice".into(),
        _ => format!("{count} times"),
    }
}

pub fn steps_run(retries: u64) -> String {
    match retries {
        0 => "On this GPU all of them run.".into(),
        _ => format!(
            "On this GPU all of them run; the allocator frees its cache {}.",
            times(retries)
        ),
    }
}

pub fn steps_axis(points: &[(Bytes, f64, bool)], units: UnitStyle) -> Option<String> {
    let most = points.iter().map(|it| it.0).max()?;
    let (_, unit) = units.scale(most);
    Some(format!(
        "{unit} reserved (dark) and allocated (light), by step"
    ))
}

/// Why a tensor lives until backward.
pub fn kept_for(operations: &str) -> String {
    format!("backward of {operations}")
}

pub fn largest_of(name: &str) -> String {
    format!("largest {name}")
}

pub fn batch_of(wanted: u64) -> String {
    format!("effective batch of {wanted}")
}

/// Which layers a run checkpoints.
pub fn checkpointed(scenario: &Scenario) -> String {
    match (
        scenario.training.checkpointing,
        scenario.training.checkpoint_every,
    ) {
        (Checkpointing::None, _) => "none".into(),
        (_, 1) => "every layer".into(),
        (_, every) => format!("one layer of {every}"),
    }
}

/// How far a search is, and what it did not have to look at.
pub fn searched(tally: &Tally) -> String {
    format!(
        "Checked {} of {} combinations in {} estimates: {} cannot be combined, {} too large, {} no better than one already found.",
        tally.settled,
        tally.space,
        tally.estimates,
        tally.impossible,
        tally.too_large,
        tally.dominated + tally.outdone
    )
}

/// What the axes of a search's drawing show.
pub fn front_axis(points: &[(Bytes, f64, bool)], units: UnitStyle) -> Option<String> {
    let most = points.iter().map(|it| it.0).max()?;
    Some(format!("Memory ({}) by step time (s)", units.scale(most).1))
}

pub const ALIVE: &str = "Alive at this point";
pub const GUIDE: &str = "What this system’s guide says";
pub const SAID: &str = "The guide says";
pub const COMPUTED: &str = "Computed here";
pub const WHY: &str = "Why they differ";
pub const KNOBS: &str = "Its flags and what they do";
pub const BROUGHT: &str = "Defaults from your software";
pub const HOLDS: &str = "default";
pub const CHANGED: &str = "changed";
pub const EFFECTIVE: &str = "effective batch";
pub const PLANS: &str = "Saved plans";
pub const PLAN_NAME: &str = "Name of this plan";
pub const PLANS_ARE_LOCAL: &str =
    "Stored in this browser only, which may clear them: a bookmark or a file is safer.";
pub const NOT_KEPT: &str =
    "This browser does not allow storage: save plans as a file or a bookmark.";
pub const FORGET: &str = "Delete";
pub const UNREADABLE: &str = "Could not read that file: expected text of at most 4 MiB.";

/// A key of a file for which a scenario has no word.
pub fn not_taken(what: &str) -> String {
    format!("ignored: {what}")
}

pub const NOT_MODELLED: &str = "Not modelled";
pub const SHARE: &str = "Share as";
pub const NETWORK: &str = "Your own network";
pub const NETWORK_ABOUT: &str = "Describe a model the catalogue does not have: named sizes, blocks of layers that may repeat or share weights, \
     and extra tensors. A size is a number, a name, or an expression such as 4*width.";
pub const EXAMPLES: &str = "Start from";
pub const BACK_TO_CATALOGUE: &str = "Back to the catalogue";
pub const AS_TEXT: &str = "As text";
pub const MOVE_UP: &str = "Move up";
pub const MOVE_DOWN: &str = "Move down";
pub const SIZE_NAME: &str = "name";
pub const SIZE_VALUE: &str = "value";
pub const ADD_SIZE: &str = "+ size";
pub const DECLARED: &str = "a custom network";

pub const SAMPLES: &str = "samples";
pub const TOKENS: &str = "tokens";
pub const PIXELS: &str = "pixels";

/// What the cells of a fit map show.
pub fn map_axis(units: UnitStyle, usable: Option<Bytes>) -> Option<String> {
    let usable = usable?;
    Some(format!(
        "{} on the device, of {} usable. Click a cell to use its values.",
        units.scale(usable).1,
        usable.show(units)
    ))
}

/// The answer with a machine's own difference.
pub fn calibrated(found: &Calibration, device: Bytes, units: UnitStyle) -> String {
    let here = if found.offset < 0 {
        device - Bytes::new(found.offset.unsigned_abs())
    } else {
        device + Bytes::new(found.offset.unsigned_abs())
    };
    format!(
        "Corrected by what your machine measured: {} on the device. ",
        here.show(units)
    )
}

/// What the axes of a measured run show.
pub fn measured_axis(units: UnitStyle, largest: Bytes) -> String {
    format!(
        "Peak allocated {} per step; the grey line is the prediction",
        units.scale(largest).1
    )
}

pub fn more(section: &str) -> String {
    format!("More: {}", section.to_ascii_lowercase())
}

pub const CHANGED_SETTING: &str = "changed";

/// What a click on "changed" does.
pub fn reset_setting(label: &str, before: &str) -> String {
    match before {
        "" => format!("{label}: changed. Clear it again"),
        _ => format!("{label}: changed. Back to {before}"),
    }
}

pub fn changed(count: usize) -> String {
    match count {
        0 => String::new(),
        _ => format!("{count} changed"),
    }
}

pub const NO_MATCH: &str = "No match. The nearest are:";

pub fn choices(label: &str) -> String {
    format!("Options: {label}")
}

/// A count of parameters with three figures: `124 M`.
pub fn count(number: u64) -> String {
    let (size, unit) = match number {
        0..1_000 => return number.to_string(),
        1_000..1_000_000 => (1e3, "k"),
        1_000_000..1_000_000_000 => (1e6, "M"),
        1_000_000_000..1_000_000_000_000 => (1e9, "B"),
        _ => (1e12, "T"),
    };
    let value = number as f64 / size;
    let digits = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

pub const fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::Capacity => "The run needs more memory than the GPU has",
        Cause::Outlier => "One batch was larger than the ones before it",
        Cause::Leak => "Memory leak: something is kept from step to step",
        Cause::Fragmentation => "Fragmentation: enough memory, but not contiguous",
        Cause::Schedule => "Something new started at this step",
        Cause::OtherProcess => "Another process is using the memory",
        Cause::WrongDevice => "The run is on the wrong GPU",
        Cause::Unknown => "The cause cannot be determined from this",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_three_figures() {
        let check = |number, expected: &str| assert_eq!(count(number), expected);
        check(7, "7");
        check(124_439_808, "124 M");
        check(8_030_261_248, "8.03 B");
        check(70_553_706_496, "70.6 B");
    }
}
