//! A training script in Python as far as it can be read without running it: calls, and what is said to them in plain values.

mod call;
mod reader;
#[cfg(test)]
mod tests;
mod tokens;
mod trainer;
mod unsloth;

use super::{Imported, tools, unsloth as unsloth_file};
use call::Call;
use headroom_base::document::Document;
use headroom_scenario::{Objective, Scenario};
use reader::calls;

/// The longest script that is read.
const LONGEST: usize = 1 << 20;

/// What a script trains: with Unsloth, or with transformers' or TRL's trainer.
pub fn script(text: &str, run: &Scenario) -> Option<Imported> {
    if text.len() > LONGEST || !text.contains(".from_pretrained(") {
        return None;
    }
    let calls = calls(text);
    // Later ones load what was trained.
    let first = |name: &str| calls.iter().find(|call| call.is(name));
    let arguments = calls
        .iter()
        .rev()
        .find(|call| call.ends_with("Config") || call.ends_with("Arguments"));
    let config = calls
        .iter()
        .rev()
        .find(|call| call.get("per_device_train_batch_size").is_some())
        .or(arguments);
    let trainer = calls.iter().rev().find(|call| call.ends_with("Trainer"));
    let fast = |name: &str| first(&format!("{name}.from_pretrained"));
    let model = fast("FastLanguageModel")
        .or_else(|| fast("FastModel"))
        .or_else(|| fast("FastVisionModel"));
    let mut imported = match model {
        Some(model) => {
            let adapters = calls
                .iter()
                .rev()
                .find(|call| call.ends_with("get_peft_model"));
            unsloth_file::read(&unsloth::document(model, adapters, config, trainer))
        }
        None => {
            let model = calls.iter().find(|call| call.makes_model())?;
            let trains = config.is_some_and(|config| config.get("output_dir").is_some());
            if !trains && trainer.is_none() {
                return None;
            }
            tools::read(&trainer::document(&calls, model, config, trainer), run)
        }
    };
    let task = trainer.map(Call::last_name);
    let taken = imported.scenario.training.task.objective != Objective::Pretraining;
    if let Some(task) = task.filter(|task| *task != "SFTTrainer" && *task != "Trainer")
        && model.is_some()
        && !taken
    {
        imported.not_taken.push(task.into());
    }
    Some(imported)
}

/// The code of a notebook, one cell after the other.
pub fn notebook(document: &Document) -> Option<String> {
    let Document::List(cells) = document.get("cells")? else {
        return None;
    };
    let mut code = String::new();
    for cell in cells {
        if cell.get("cell_type") != Some(&"code".into()) {
            continue;
        }
        match cell.get("source") {
            Some(Document::List(lines)) => {
                for line in lines {
                    if let Document::Text(line) = line {
                        code.push_str(line);
                    }
                }
            }
            Some(Document::Text(text)) => code.push_str(text),
            _ => {}
        }
        code.push('\n');
    }
    Some(code)
}
