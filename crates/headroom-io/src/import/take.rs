//! Reads a file's keys one by one into a scenario and keeps track of those that were not used.

use super::{Imported, pattern};
use headroom_base::document::Document;
use headroom_scenario::{Draft, NameKind, Problem, Scenario, Trainer};

/// A document's leaves by dotted path, which of them were used, and the scenario so far.
#[derive(Debug)]
pub struct KeyReader<'a> {
    leaves: Vec<Leaf<'a>>,
    /// The program whose file it is, and the key that was read last.
    tool: &'static str,
    key: String,
    pub imported: Imported,
}

#[derive(Debug)]
struct Leaf<'a> {
    path: String,
    value: &'a Document,
    used: bool,
}

/// The deepest group whose keys are read one by one.
const DEEPEST: usize = 6;

impl<'a> KeyReader<'a> {
    pub fn new(document: &'a Document) -> Self {
        let mut leaves = Vec::new();
        collect("", document, 0, &mut leaves);
        Self {
            leaves,
            tool: "the file",
            key: String::new(),
            imported: Imported::default(),
        }
    }

    /// Begins from the run that a file without a model is read for.
    pub(super) fn part_of(&mut self, run: &Scenario) {
        self.imported = Imported::over(Draft::of_run(run));
        self.imported.part = true;
    }

    /// The value at a path, without marking it as used.
    pub fn peek(&self, path: &str) -> Option<&'a Document> {
        let leaf = self.leaves.iter().find(|leaf| leaf.path == path)?;
        Some(leaf.value)
    }

    /// The value at a path, marked as used.
    pub fn value(&mut self, path: &str) -> Option<&'a Document> {
        let leaf = self.leaves.iter_mut().find(|leaf| leaf.path == path)?;
        leaf.used = true;
        self.key = path.into();
        Some(leaf.value)
    }

    /// The same, if it is text.
    pub fn text(&mut self, path: &str) -> Option<&'a str> {
        match self.value(path)? {
            Document::Text(value) => Some(value),
            _ => None,
        }
    }

    /// The same, if it is a boolean.
    pub fn switch(&mut self, path: &str) -> Option<bool> {
        match self.value(path)? {
            Document::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Copies a number, a word or a list of words; any other value stays unused.
    pub fn copy(&mut self, from: &str, to: &str) {
        let Some(at) = self.leaves.iter().position(|leaf| leaf.path == from) else {
            return;
        };
        let value = self.leaves[at].value;
        self.leaves[at].used = *value == Document::Null;
        if let Some(text) = plain(value) {
            self.leaves[at].used = true;
            self.key = from.into();
            self.set(to, &text);
        }
    }

    /// Sets a field; a value that it does not accept is a problem.
    pub fn set(&mut self, field: &str, text: &str) {
        self.imported.set(field, text, self.tool, &self.key);
    }

    /// Gives a dimension of the model a size, where it has another.
    pub fn size(&mut self, name: &str, size: u64) {
        self.imported.size(name, size, self.tool, &self.key);
    }

    /// Marks a key as unused: no setting expresses it.
    pub fn mark_unused(&mut self, path: &str) {
        for leaf in self.leaves.iter_mut().filter(|leaf| leaf.path == path) {
            leaf.used = false;
        }
    }

    /// Sets the catalogue's model, or asks which one is meant.
    pub fn model(&mut self, key: &str, name: &str, found: Option<&'static str>) {
        if let Some(id) = found {
            return self.set("model.id", id);
        }
        let question = Problem::unknown_name(NameKind::ImportedModel, key, name, []);
        self.imported.question = Some(question);
    }

    /// The trainer, whose defaults then hold until the file says otherwise.
    pub(super) fn trainer(&mut self, id: &str) {
        self.tool = Trainer::from_id(id).map_or(self.tool, Trainer::label);
        self.set("stack.trainer", id);
    }

    /// Names of layers, from a list or a regular expression.
    pub fn targets(&mut self, from: &str, to: &str) {
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
            _ => return self.mark_unused(from),
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
                None => return self.mark_unused(from),
            }
        }
        self.set(to, &names.join(","));
    }

    /// Gradient clipping, on if the limit is above zero.
    pub fn clip(&mut self, path: &str) {
        let limit = match self.value(path) {
            None => return,
            Some(Document::Int(value)) => *value as f64,
            Some(Document::Number(value)) => *value,
            Some(Document::Null) => 0.0,
            Some(_) => return self.mark_unused(path),
        };
        self.set("training.clip", if limit > 0.0 { "on" } else { "off" });
    }

    /// Checkpointing of every layer, or of none.
    pub fn checkpointing(&mut self, path: &str) {
        if let Some(on) = self.switch(path) {
            self.set("training.checkpointing", if on { "layers" } else { "none" });
        }
    }

    /// An optimizer's class and its options.
    pub fn optimizer(&mut self, class: &str, options: &str) {
        let Some(name) = self.text(class) else {
            return;
        };
        let option = |reader: &mut Self, name: &str| reader.switch(&format!("{options}{name}"));
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
            _ => return self.mark_unused(class),
        };
        self.set("training.optimizer", known);
    }

    /// Turns adapters on.
    pub(super) fn lora(&mut self) {
        self.set("training.lora", "on");
    }

    /// The import, with the paths of unused keys but for those without an effect on memory.
    pub fn finish(self, without_effect: &[&str]) -> Imported {
        let mut imported = self.imported;
        let is_unused = |leaf: &&Leaf| {
            let covers = |key: &&str| {
                let below = leaf.path.strip_prefix(*key);
                below.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            !leaf.used && *leaf.value != Document::Null && !without_effect.iter().any(covers)
        };
        let left = self.leaves.iter().filter(is_unused);
        imported
            .unused_keys
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
        // The tool fills it in from another file.
        Document::Text(value) if value == "auto" => None,
        Document::Text(value) => Some(value.clone()),
        Document::Null | Document::Map(_) => None,
    }
}
