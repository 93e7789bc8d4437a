//! Texts of the start panel, of opening files and links, and of privacy.

use headroom_catalog as catalog;
use headroom_reader::facts::Ask;
use headroom_scenario::share::DATA_VERSION;

pub const TAGLINE: &str = "Does this training run fit on that GPU?";
pub const START: &str = "What you want to run";
pub const START_FROM: &str = "Examples";
pub const ANY: &str = "Say it, or paste a command, config or error";
pub const ANY_EXAMPLE: &str = "LoRA on Llama-3.1-8B at 4k, RTX 4090";
pub const GO: &str = "Go";
pub const OPEN_FILE: &str = "Open a file";
pub const MENU: &str = "Menu";
pub const RESET: &str = "Reset";
pub const PRINT: &str = "Print";
pub const UNITS_BINARY: &str = "Units: GiB";
pub const UNITS_DECIMAL: &str = "Units: GB";
pub const PART_OF_A_RUN: &str =
    "No model is named: these settings were applied to the run on the screen.";
/// The same with the names of models for their ids, where some are listed.
fn with_names(why: &str) -> String {
    const LISTED: &str = ", such as ";
    let Some((said, ids)) = why.split_once(LISTED) else {
        return why.into();
    };
    let name = |id: &str| catalog::model(id).map_or(id.to_string(), |model| model.name.into());
    let names: Vec<String> = ids.split(", ").map(name).collect();
    format!("{said}{LISTED}{}", names.join(", "))
}

/// Words or files about a run whose model they leave open.
pub fn which_model(why: &str) -> String {
    let why = note(&with_names(why));
    format!("Which model? {why}. Until you say, the rest was applied to the run on the screen.")
}

pub const NOT_FOUND: &str = "Unknown name. Choose an example, or paste the model's config.json.";
pub const RECORD: &str = "Record a model that you have in Python";
pub const RECORD_LABEL: &str = "the lines that record a model";
pub const RECORD_ABOUT: &str = "These three lines, the last one in Python, run a step once without a GPU and write model.json. Open that file here.";
pub const RECORD_LINES: &str = "headroom record > headroom_record.py
python -i my_model.py
from headroom_record import record; record(model, example_batch, \"model.json\")";

/// For a model whose recorded graph is being loaded.
pub fn graph_loading(id: &str) -> String {
    format!("Loading this model's recorded graph ({id})…")
}

pub fn graph_failed(id: &str) -> String {
    format!(
        "The recorded graph of {id} could not be loaded. It will be retried when you change a setting or are online again."
    )
}

/// A reader's note with the catalogue's names for its ids: “H100” is read as NVIDIA H100 SXM5 80GB.
pub fn note(note: &str) -> String {
    let named = note.split_once(" is read as ").and_then(|(said, id)| {
        let model = || catalog::model(id).map(|model| model.name);
        let name = catalog::gpu(id).map(|gpu| gpu.name).or_else(model)?;
        Some(format!("{said} is read as {name}"))
    });
    let mut quoted = String::new();
    for (at, part) in named.as_deref().unwrap_or(note).split('`').enumerate() {
        match at {
            0 => {}
            odd if odd % 2 == 1 => quoted.push('“'),
            _ => quoted.push('”'),
        }
        quoted.push_str(part);
    }
    quoted
}

pub const OPEN_IN: &str = "Open in Headroom";
pub const BACK_TO_YOURS: &str = "Back to my scenario";
pub const SHARED: &str = "You opened a shared scenario. ";
pub const PRIVATE: &str = "Everything is computed in this tab and nothing you enter leaves it: no server, no analytics, no \
     cookies. Your settings are in the address, so a bookmark saves them.";

pub fn other_data(data: &str) -> String {
    format!(
        "This link was made with data version {data}; numbers here use version {DATA_VERSION} and may differ."
    )
}

pub const UNREADABLE: &str = "Could not read that file: expected text of at most 4 MiB.";

/// What is missing, and why.
/// What the page assumes because nothing says it, until somebody does.
pub fn asked(ask: Ask, why: &str) -> String {
    let what = match ask {
        Ask::Model => "Which model?",
        Ask::Batch => "Which batch size?",
        Ask::Sequence => "Which sequence length?",
        Ask::Resolution => "Which resolution?",
        Ask::Frames => "How many frames?",
        Ask::Gpus => "How many GPUs?",
        Ask::Strategy => "How do the GPUs share the work?",
        Ask::Trained => "Which parameters are trained?",
        Ask::Adapter => "Which adapters?",
        Ask::Vocabulary => "Which vocabulary size?",
        Ask::BaseConfig => "Which base configuration?",
    };
    let why = note(why);
    match (ask, why.as_str()) {
        (Ask::Model, why) => format!("{what} {why}"),
        (_, "not given") => {
            format!("{what} It is not given: an assumed value is used until you set it.")
        }
        (_, why) => format!("{what} {why}. An assumed value is used until you set it."),
    }
}

/// What is wrong in the run that a link compares with.
pub fn of_compared(problem: &str) -> String {
    format!("In the run it is compared with: {problem}")
}

/// A key of a file without a corresponding setting.
pub fn ignored(what: &str) -> String {
    format!("ignored: {what}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn notes_have_names_and_no_marks() {
        let check = |note: &str, expected: &str| assert_eq!(super::note(note), expected);
        check(
            "`H100` is read as h100-sxm5-80gb",
            "“H100” is read as NVIDIA H100 SXM5 80GB",
        );
        check("`a` and `b` contradict", "“a” and “b” contradict");
        check("nothing marked", "nothing marked");
    }
}
