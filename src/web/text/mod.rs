//! Words the page shows: kept together so that they can be read through, and translated one day.

mod parts;

pub use parts::*;

use crate::scenario::{Case, Checkpointing, Problem, Runtime, Scenario, settings};
use crate::share::DATA_VERSION;
use crate::strategy::Tally;
use crate::strategy::doctor::Cause;
use crate::units::{Bytes, UnitStyle};

pub const TAGLINE: &str = "Does this training run fit on that GPU?";
pub const START: &str = "Start";
pub const START_ABOUT: &str =
    "Name a model, paste a configuration or an error, or start from an example.";
pub const START_CLOSE: &str = "Close the start";
pub const ANY: &str = "Model, configuration, command or error";
pub const ANY_EXAMPLE: &str = "Llama-3.1-8B, a URL, or paste";
pub const GO: &str = "Go";
pub const PART_OF_A_RUN: &str = "The file names no model: it changed the run that was open.";
pub const NOT_FOUND: &str =
    "Nothing known by that name. Choose a run below, or paste its config.json.";
pub const START_AGAIN: &str = "Start from a model, a file or an example";
pub const RESET_ABOUT: &str = "Take back every change since the chosen example";
pub const RECORD: &str = "Record a model that you have in Python";
pub const RECORD_LABEL: &str = "the lines that record a model";
pub const RECORD_ABOUT: &str = "Three lines, the last of them in Python, run its step once without a GPU and write model.json. Open that file here.";
pub const RECORD_LINES: &str = "headroom record > headroom_record.py
python -i my_model.py
from headroom_record import record; record(model, example_batch, \"model.json\")";
/// Of a catalogue's model whose recorded graph is on its way.
pub fn graph_coming(id: &str) -> String {
    format!("{id} answers by a recorded graph, which is being loaded…")
}

pub fn graph_failed(id: &str) -> String {
    format!(
        "The recorded graph of {id} could not be loaded. It is asked for again when you change a setting or the network is back."
    )
}

pub const DECLARE: &str = "Declare your own network";
/// What is wrong with a value, by the names that the page has for settings.
pub fn problem(problem: &Problem) -> String {
    let Problem {
        field,
        value,
        expected,
    } = problem;
    let kind = match field.as_str() {
        "model.id" => Some("model"),
        "hardware.gpu" => Some("GPU"),
        _ => None,
    };
    let near = expected.split_once("did you mean ").map(|(_, near)| near);
    let unknown = near.is_some() || expected.contains("of `headroom catalog`");
    match (kind.filter(|_| unknown), near) {
        (Some(kind), Some(near)) => format!("No {kind} is called “{value}”. Did you mean {near}"),
        (Some(kind), None) => format!("No {kind} is called “{value}”."),
        (None, _) => {
            let label = settings::find(field).map_or(field.as_str(), |setting| setting.label);
            format!("{label} is “{value}”; expected {expected}.")
        }
    }
}

/// How many things the numbers leave out.
pub fn left_out(count: usize) -> String {
    match count {
        1 => "1 thing is not modelled".into(),
        _ => format!("{count} things are not modelled"),
    }
}

pub const RECORDED_RUNS: &str = "Recorded runs like this one";
pub const TRUST: &str = "How far to trust this";
pub const TRUST_SAME: &str = "Recorded runs of this model, those most like yours first: what each needed, and what is predicted from its settings alone.";
pub const TRUST_LIKE: &str = "No run of this model was recorded. These are the most similar: what each needed, and what is predicted from its settings alone.";
pub const TRUST_ALL: &str = "All recorded runs are in docs/accuracy.md of the source code.";
pub const SKIP: &str = "Skip to the answer";
pub const VERDICT: &str = "Verdict";
pub const RUNS_WHEN_REFUSED: &str = "The steps run on this card all the same: the allocator, refused, gives back what it does not use and asks again, which stops the card each time.";
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
pub const PASTE: &str = "Paste the error, an nvidia-smi table, torch.cuda.memory_summary() or a probe log, or open a memory snapshot. It stays in this tab.";
pub const NOT_UNDERSTOOD: &str =
    "No known PyTorch error, nvidia-smi table or probe log found in this text.";
pub const YOUR_RUN: &str = "Is this the run on the screen?";
pub const YES_COMPARE: &str = "Yes, compare with it";
pub const NO_COMPARE: &str = "No";
pub const OTHER_RUN: &str =
    "Not compared with the run on the screen. Enter your model and settings to compare them.";
pub const COMPARED_WITH_RUN: &str = "Compared with the run on the screen.";
pub const SNAPSHOT: &str = "This is the text of a memory snapshot. Open its file here (“Open a file”, or drop it on the page): it says which lines hold the memory.";
pub const SNAPSHOT_TITLE: &str = "Memory snapshot";
pub const SNAPSHOT_CLOSE: &str = "Close the snapshot";
pub const SNAPSHOT_TOO_LARGE: &str = "This file cannot be read here: snapshots of up to 64 MiB can. On the command line, `headroom snapshot FILE` reads larger ones.";
pub const HOLDERS: &str = "Lines that hold memory";
pub const NOT_IN_THE_RUN: &str = "Not in the run on the screen";
pub const NOT_IN_THE_SNAPSHOT: &str = "In the run, not in the snapshot";
pub const OF_ANOTHER_SIZE: &str = "Of another size than in the run";
pub const SAME_AS_THE_RUN: &str =
    "Every allocation is in the run, and every tensor of the run is in the snapshot.";
pub const NOT_RECORDED: &str = "a line that was not recorded";

pub fn no_snapshot(why: &str) -> String {
    format!("This is no memory snapshot of PyTorch: {why}.")
}

pub const NO_NUMBERS: &str = "This error holds no numbers, so its cause cannot be told from it alone. Paste nvidia-smi or torch.cuda.memory_summary() as well, or log a few steps with the probe.";
pub const OF_THE_HOST: &str =
    "This is the computer's own memory, not the GPU's: see “Host memory and disk”.";
pub const ON_THE_GPUS: &str = "GPUs in the table";
pub const ITS_PROCESSES: &str = "Processes on them";

/// What a message says of the card, as a button's name.
pub fn use_card(card: &str, memory: &str) -> String {
    format!("Use this GPU: {card} with {memory}")
}
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
        (None, Some(model)) if scenario.model.dims.is_empty() => model.name.into(),
        // A model in other sizes is another model.
        (None, Some(model)) => {
            let sizes = scenario.model.dims.iter();
            let sizes: Vec<String> = sizes.map(|(name, size)| format!("{name} {size}")).collect();
            format!("a model like {} ({})", model.name, sizes.join(", "))
        }
        // What stands in the catalogue is not the name of what was declared.
        (Some(_), Some(_)) => DECLARED.into(),
        (_, None) => scenario.model.id.clone(),
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
pub const NOTHING_HELPS: &str = "No change is enough: use a larger GPU or a smaller model.";
pub const UNLOCK: &str =
    "It can fit if something above may change: clear a box under “Keep as it is”.";
pub const SAME_RESULTS: &str = "same";
pub const CHANGES_RESULTS: &str = "results differ";
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
pub const TIERS: &str = "Largest batch";
pub const TIERS_ABOUT: &str = "The largest micro-batch at each safety margin, with the same effective batch, and the changes it takes.";
pub const OTHER_CARDS: &str = "Other GPUs";
pub const OTHER_CARDS_ABOUT: &str = "GPUs that can run this, the smallest first, with their memory and where to rent them (in brackets: GPUs in the smallest instance).";
pub const HOW_FAR: &str = "Limits";
pub const HOW_FAR_ABOUT: &str =
    "The largest value of each setting that fits, with everything else unchanged.";
pub const NONE_FITS: &str = "no value fits";

/// Limits that no value meets.
pub fn none_enough(names: &str) -> String {
    format!("No value is small enough for: {names}.")
}

pub const RUN: &str = "Files to run";
pub const DIAGNOSE: &str = "Ran out of memory?";
pub const KEEP: &str = "Keep as it is";
pub const ANY_PROGRAM: &str = "Show changes for any program";
pub const SAME_AS_ABOVE: &str = "The same run as above.";
pub const NO_PROGRAM: &str = "no program here";
pub const FITS: &str = "fits";
pub const TIGHT: &str = "tight";
pub const SMALLER_BATCH: &str = "with a smaller micro-batch";
pub const NO_CARD_AS_IT_IS: &str =
    "No GPU in the catalogue holds this run as it is; these do with a smaller micro-batch.";
pub const HOURLY: &str = "Your price for a GPU hour";
pub const NO_PRICE: &str = "Expected a number, such as 1.50.";
pub const FEWER_ROWS: &str = "Show ten";

pub fn more_rows(hidden: usize) -> String {
    format!("Show {hidden} more")
}

pub fn only_what(program: &str) -> String {
    format!("Only changes that {program} can express.")
}

/// A tier by its name and how full it makes the card.
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

pub fn no_way(tiers: &str) -> String {
    format!("Does not fit: {tiers}.")
}

pub fn instead(changes: &str) -> String {
    format!("Or instead: {changes}")
}

/// A share by which something is more or less: `+12 %`, `−3 %`.
pub fn percent_more(part: f64) -> String {
    let percent = (part * 100.0).round();
    let sign = if percent < 0.0 { "−" } else { "+" };
    format!("{sign}{} %", percent.abs())
}

pub fn too_small(count: usize) -> String {
    format!("{count} GPUs are too small")
}

pub fn not_there(count: usize) -> String {
    format!("{count} GPUs cannot run this or have an unknown amount of memory")
}

/// What a step and an epoch cost, in the currency of the price.
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

pub const STARTED_BY: &str = "started by";
pub const COPY_COMMAND: &str = "Copy command";
pub const SAVE_COMMAND: &str = "Download as a script";
pub const COMMAND_ABOUT: &str =
    "One command writes these files and starts the run; it needs nothing else but the program.";
pub const ALL_PROGRAMS: &str = "All programs (.zip)";
pub const CHANGE_ALL: &str = "Make all these changes";

pub fn cannot_run(program: &str) -> String {
    format!("{program} cannot run this as it is. It has no setting for:")
}

pub const PER_GPU: &str = "What each GPU holds";
pub const PER_GPU_ABOUT: &str = "The fullest decides whether the job fits.";
pub const PIPELINE: &str = "When each stage computes";

/// What the chart of a pipeline's passes shows.
pub fn pipeline_about(unit: &str, micro_batches: usize, of: u64, waits: f64) -> String {
    let waits = 100.0 * waits;
    let first = if micro_batches as u64 == of {
        String::new()
    } else {
        format!(" The first {micro_batches} of {of} micro-batches are drawn.")
    };
    format!(
        "A row for each stage, in {unit}; numbers are micro-batches. In a whole step each GPU waits {waits:.0} % of the time for the others.{first}"
    )
}

/// "Machine 3", "Machines 1–16".
pub fn machines(first: u32, last: u32) -> String {
    if first == last {
        format!("Machine {first}")
    } else {
        format!("Machines {first}–{last}")
    }
}

/// Machines for which there was no room.
pub fn more_machines(count: u32) -> String {
    format!("and {count} more machines")
}

/// GPUs of a process that copies its model to all but the first.
pub const fn of_copies(others: bool) -> &'static str {
    if others { "Other GPUs" } else { "First GPU" }
}

pub const EVERY_GPU: &str = "Every GPU";
pub const LAYOUTS: &str = "Layouts";
pub const LAYOUTS_ABOUT: &str = "How these GPUs can share the run: data, tensor, pipeline and context parallelism, with the batch kept. Those that no other beats in both time and memory.";
pub const NO_LAYOUT: &str = "No layout of these GPUs fits.";

pub fn layouts_tried(tried: u64) -> String {
    format!("{tried} layouts tried so far.")
}

pub fn layouts_found(tried: u64, too_large: u64, left_out: u64) -> String {
    format!(
        "{tried} layouts tried: {too_large} need too much memory. {left_out} more are not valid or not modelled."
    )
}

pub fn fewest_gpus(gpus: u32) -> String {
    match gpus {
        1 => "The fewest GPUs that train it: 1.".into(),
        _ => format!("The fewest GPUs that train it: {gpus}."),
    }
}

/// What a button does that mends what a program refuses.
pub fn change_to(label: &str, value: &str) -> String {
    format!("Change {label} to {value}")
}

pub fn program_needs(expected: &str) -> String {
    format!("It needs {expected}.")
}

pub fn lines_changed(count: usize) -> String {
    match count {
        1 => "1 line changed by your last edit".into(),
        _ => format!("{count} lines changed by your last edit"),
    }
}

pub const COMPARE_TITLE: &str = "Compare";
pub const KEEP_AS_A: &str = "Keep this as A";
pub const COMPARED: &str = "Compared with A";
pub const SWAP: &str = "Swap";
pub const STOP_COMPARING: &str = "Stop comparing";
pub const SEE_COMPARISON: &str = "See the comparison";
pub const NOW: &str = "Now";

pub fn compared(change: &str, differ: usize) -> String {
    let settings = match differ {
        1 => "1 setting differs".into(),
        _ => format!("{differ} settings differ"),
    };
    match change {
        "same" => format!("Compared with A: the same memory, {settings}."),
        _ => format!("Compared with A: {change}, {settings}."),
    }
}

pub const GUIDE_TABLE: &str = "Claims of the guide";
pub const SEE_GUIDE: &str = "See what it gets right and wrong";

pub fn guide_banner(claims: usize) -> String {
    format!("This system has a memory guide of its own: {claims} of its claims are checked here.")
}
pub const SMALLEST_CARD: &str = "smallest GPU";
pub const FEWEST_CARDS: &str = "fewest GPUs at this effective batch";
pub const FEWEST_CHECKPOINTS: &str = "least checkpointing";
pub const FASTEST_THAT_FITS: &str = "Search";
pub const SEARCH_ABOUT: &str = "Searches all combinations of changes and micro-batches for the fastest that fits. You can keep working.";
pub const SEARCH: &str = "Search again";
pub const STOP: &str = "Stop";
pub const NOTHING_FITS: &str = "No combination fits.";
pub const FASTEST: &str = "fastest";

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
    let most = points.iter().map(|point| point.0).max()?;
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
    let most = points.iter().map(|point| point.0).max()?;
    Some(format!("Memory ({}) by step time (s)", units.scale(most).1))
}

pub const ALIVE: &str = "Alive at this point";
pub const GUIDE: &str = "What this system’s guide says";
pub const SAID: &str = "The guide says";
pub const COMPUTED: &str = "Computed here";
pub const WHY: &str = "Why they differ";
pub const KNOBS: &str = "Its flags and what they do";
pub const BROUGHT: &str = "Defaults that were taken for you";
pub const OF_THE_METHOD: &str = "LoRA";
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

/// What was measured and is counted in, where anything is.
pub fn corrected(runtime: &Runtime, units: UnitStyle) -> Option<String> {
    let part =
        |mib: u64, what: &str| (mib > 0).then(|| format!("{} {what}", Bytes::mib(mib).show(units)));
    let parts = [
        part(runtime.outside_mib, "outside PyTorch"),
        part(runtime.kept_mib, "kept beyond the prediction"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let said = parts.join(", ");
    (!said.is_empty()).then(|| format!("Corrected by what was measured: {said}. "))
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

pub fn sure(confidence: f64) -> String {
    format!("({:.0} % sure)", confidence * 100.0)
}

pub fn likely(cause: &str, confidence: f64) -> String {
    format!("{cause} ({:.0} %)", confidence * 100.0)
}

pub const fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::Capacity => "The run needs more memory than the GPU has",
        Cause::Outlier => "One batch was larger than the ones before it",
        Cause::Leak => "Memory leak: something is kept from step to step",
        Cause::Fragmentation => "Fragmentation: enough memory, but not contiguous",
        Cause::Evaluation => "An evaluation or a generation needs more than training steps do",
        Cause::Checkpoint => "A checkpoint is written or read on the GPU",
        Cause::Schedule => "Something new started at this step",
        Cause::OptimizerStep => "The optimizer makes its states in its first step",
        Cause::Attention => "A tensor grows with the square of the length or of the pixels",
        Cause::HostMemory => "The host's memory is full, not the GPU's",
        Cause::SharedMemory => "The data loader's shared memory is full, not the GPU's",
        Cause::LibraryBug => "A driver or a library is at fault",
        Cause::NotOutOfMemory => "Not PyTorch out of memory",
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
