//! Taking a file's values one by one into a scenario, and keeping account of what was left.

use super::{Imported, pattern};
use headroom_base::document::Document;
use headroom_catalog as catalog;
use headroom_scenario::{Lora, Problem, Scenario, one_of, settings, stack};

/// A document as its leaves by dotted path, the scenario so far, and which leaves it came from.
pub(super) struct Take<'a> {
    leaves: Vec<Leaf<'a>>,
    pub imported: Imported,
}

struct Leaf<'a> {
    path: String,
    value: &'a Document,
    used: bool,
}

/// The deepest group whose keys are looked at one by one.
const DEEPEST: usize = 6;

impl<'a> Take<'a> {
    pub(super) fn new(document: &'a Document) -> Self {
        let mut leaves = Vec::new();
        collect("", document, 0, &mut leaves);
        Self {
            leaves,
            imported: Imported::default(),
        }
    }

    /// Begins from the run that a file without a model is read for.
    pub(super) fn part_of(&mut self, run: &Scenario) {
        self.imported.scenario = run.clone();
        self.imported.part = true;
    }

    /// The value at a path, which does not yet count as used.
    pub(super) fn seen(&self, path: &str) -> Option<&'a Document> {
        let leaf = self.leaves.iter().find(|leaf| leaf.path == path)?;
        Some(leaf.value)
    }

    /// The value at a path, which counts as used.
    pub(super) fn value(&mut self, path: &str) -> Option<&'a Document> {
        let leaf = self.leaves.iter_mut().find(|leaf| leaf.path == path)?;
        leaf.used = true;
        Some(leaf.value)
    }

    /// The same where it is text.
    pub(super) fn text(&mut self, path: &str) -> Option<&'a str> {
        match self.value(path)? {
            Document::Text(value) => Some(value),
            _ => None,
        }
    }

    /// The same where it is a switch.
    pub(super) fn switch(&mut self, path: &str) -> Option<bool> {
        match self.value(path)? {
            Document::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Copies a number, a word or a list of words; what cannot be copied is left.
    pub(super) fn copy(&mut self, from: &str, to: &str) {
        let Some(at) = self.leaves.iter().position(|leaf| leaf.path == from) else {
            return;
        };
        let value = self.leaves[at].value;
        self.leaves[at].used = *value == Document::Null;
        if let Some(text) = plain(value) {
            self.leaves[at].used = true;
            self.set(to, &text);
        }
    }

    /// Sets a field; a value that it does not accept is a problem.
    pub(super) fn set(&mut self, field: &str, text: &str) {
        let result = settings::set(&mut self.imported.scenario, field, text);
        self.imported.problems.extend(result.err());
    }

    /// Puts a value back: it says something for which there is no word.
    pub(super) fn leave(&mut self, path: &str) {
        for leaf in self.leaves.iter_mut().filter(|leaf| leaf.path == path) {
            leaf.used = false;
        }
    }

    /// The catalogue's model of that name, or the question which one is meant.
    pub(super) fn model(&mut self, key: &str, name: &str, found: Option<&'static str>) {
        if let Some(id) = found {
            return self.set("model.id", id);
        }
        let expected = match one_of(&catalog::models_near(name)) {
            Some(near) => format!("a model of the catalogue: which one is meant, {near}?"),
            None => {
                "a model of the catalogue (`headroom catalog models`): which one is meant?".into()
            }
        };
        self.imported.question = Some(Problem::new(key, name, expected));
    }

    /// The trainer, whose defaults then hold until the file says otherwise.
    pub(super) fn trainer(&mut self, id: &str) {
        if let Some(setting) = settings::find("stack.trainer") {
            let result = stack::choose(setting, &mut self.imported.scenario, id);
            self.imported.problems.extend(result.err());
        }
    }

    /// Names of layers, where a list or an expression says them.
    pub(super) fn targets(&mut self, from: &str, to: &str) {
        let Some(value) = self.value(from) else {
            return;
        };
        let given: Vec<&str> = match value {
            Document::Text(text) => text.split(',').map(str::trim).collect(),
            Document::List(items) => items
                .iter()
                .filter_map(|item| match item {
                    Document::Text(text) => Some(text.as_str()),
                    _ => None,
                })
                .collect(),
            _ => return self.leave(from),
        };
        let whole = match value {
            Document::Text(text) if pattern::is_pattern(text) => vec![text.as_str()],
            _ => given,
        };
        let mut names: Vec<String> = Vec::new();
        for target in whole {
            let found = if pattern::is_pattern(target) {
                pattern::last_names(target)
            } else {
                Some(vec![target.to_string()])
            };
            match found {
                Some(found) => names.extend(found),
                None => return self.leave(from),
            }
        }
        self.set(to, &names.join(","));
    }

    /// Clipping, where the limit is above zero.
    pub(super) fn clip(&mut self, path: &str) {
        let limit = match self.value(path) {
            None => return,
            Some(Document::Int(value)) => *value as f64,
            Some(Document::Number(value)) => *value,
            Some(Document::Null) => 0.0,
            Some(_) => return self.leave(path),
        };
        self.set("training.clip", if limit > 0.0 { "on" } else { "off" });
    }

    /// Checkpointing of every layer, or none.
    pub(super) fn checkpointing(&mut self, path: &str) {
        if let Some(on) = self.switch(path) {
            self.set("training.checkpointing", if on { "layers" } else { "none" });
        }
    }

    /// An optimizer's class and its options.
    pub(super) fn optimizer(&mut self, class: &str, options: &str) {
        let Some(name) = self.text(class) else {
            return;
        };
        let option = |take: &mut Self, name: &str| take.switch(&format!("{options}{name}"));
        let (fused, foreach) = (option(self, "fused"), option(self, "foreach"));
        let momentum = self.value(&format!("{options}momentum"));
        let known = match name.rsplit('.').next().unwrap_or(name) {
            "AdamW" if fused == Some(true) => "adamw-fused",
            "AdamW" if foreach == Some(false) => "adamw-loop",
            "AdamW" | "Adam" => "adamw",
            "SGD" if momentum.is_some() => "sgd-momentum",
            "SGD" => "sgd",
            "Adafactor" => "adafactor",
            "Adagrad" => "adagrad",
            "RMSprop" => "rmsprop",
            "AdamW8bit" => "adamw-8bit",
            "PagedAdamW" | "PagedAdamW32bit" => "adamw-paged",
            "PagedAdamW8bit" => "adamw-paged-8bit",
            _ => return self.leave(class),
        };
        self.set("training.optimizer", known);
    }

    /// The adapters, made if there were none.
    pub(super) fn lora(&mut self) -> &mut Lora {
        let training = &mut self.imported.scenario.training;
        training.lora.get_or_insert_with(Lora::default)
    }

    /// What was taken, with the paths of what was not; those that say nothing of memory are passed over.
    pub(super) fn finish(self, without_effect: &[&str]) -> Imported {
        let mut imported = self.imported;
        let said = |leaf: &&Leaf| {
            let covers = |key: &&str| {
                let below = leaf.path.strip_prefix(*key);
                below.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            !leaf.used && *leaf.value != Document::Null && !without_effect.iter().any(covers)
        };
        let left = self.leaves.iter().filter(said);
        imported
            .not_taken
            .extend(left.map(|leaf| leaf.path.clone()));
        imported
    }
}

fn collect<'a>(path: &str, document: &'a Document, depth: usize, leaves: &mut Vec<Leaf<'a>>) {
    match document {
        Document::Map(entries) if !entries.is_empty() && depth < DEEPEST => {
            for entry in entries {
                let below = match path {
                    "" => entry.key.clone(),
                    _ => format!("{path}.{}", entry.key),
                };
                collect(&below, &entry.value, depth + 1, leaves);
            }
        }
        value => leaves.push(Leaf {
            path: path.into(),
            value,
            used: false,
        }),
    }
}

/// A value as the text that a setting reads.
pub(super) fn plain(value: &Document) -> Option<String> {
    match value {
        Document::List(items) => {
            let items: Option<Vec<String>> = items.iter().map(plain).collect();
            items.map(|items| items.join(","))
        }
        Document::Bool(value) => Some(if *value { "on" } else { "off" }.into()),
        Document::Int(value) => Some(value.to_string()),
        Document::Number(value) => Some(value.to_string()),
        // The value stands in another file, which the tool fills in from.
        Document::Text(value) if value == "auto" => None,
        Document::Text(value) => Some(value.clone()),
        Document::Null | Document::Map(_) => None,
    }
}
