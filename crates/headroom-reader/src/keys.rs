//! `Keys`: a program's settings by name, wherever they were written: a document, flags, the arguments of a call.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use headroom_base::document::{Document, Entry};

use super::fact::Fact;

/// A tree of values, some of which cannot be known; it notes which were read.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    tree: Document,
    /// Paths whose value depends on what was not given, and on what.
    unknown: BTreeMap<String, String>,
    /// Values of keys that are not given, and whose documented default they are.
    defaults: BTreeMap<&'static str, (Document, &'static str)>,
    /// Shared by copies, so that a program may read a copy with its defaults.
    used: Rc<RefCell<BTreeSet<String>>>,
}

impl Keys {
    pub fn new(tree: Document) -> Self {
        Self {
            tree,
            ..Self::default()
        }
    }

    /// Says that a key is given and its value cannot be known.
    pub fn set_unknown(&mut self, path: &str, why: impl Into<String>) {
        self.unknown.insert(path.into(), why.into());
    }

    /// Gives a key a value; a later value replaces an earlier one.
    pub fn set(&mut self, path: &str, value: Document) {
        self.unknown.remove(path);
        *self.tree.at(path.split('.')) = value;
    }

    /// The same with a program's defaults for the keys that are not given.
    #[must_use]
    pub fn with_defaults(
        mut self,
        defaults: &[(&'static str, &'static str)],
        program: &'static str,
    ) -> Self {
        for (path, text) in defaults {
            self.defaults.insert(path, (Document::from(*text), program));
        }
        self
    }

    /// Takes what another place says, such as flags over a file: what it leaves unknown is unknown here.
    pub fn overlay(&mut self, over: &Self) {
        if let Document::Map(entries) = &over.tree {
            for entry in entries {
                self.set(&entry.key, entry.value.clone());
            }
        }
        for (path, why) in &over.unknown {
            self.set_unknown(path, why.clone());
        }
    }

    pub fn tree(&self) -> &Document {
        &self.tree
    }

    /// Whether the key has a value, known or not; null counts as none.
    pub fn has(&self, path: &str) -> bool {
        let value = self.peek(path);
        value.is_some_and(|value| *value != Document::Null) || self.unknown.contains_key(path)
    }

    /// The value, without noting that it was read.
    pub fn peek(&self, path: &str) -> Option<&Document> {
        // A key may contain dots itself, as Megatron's and OmegaConf's flags do.
        if let Some(value) = self.tree.get(path) {
            return Some(value);
        }
        path.split('.')
            .try_fold(&self.tree, |node, key| node.get(key))
    }

    /// The value; null counts as absent.
    pub fn get(&self, path: &str) -> Option<&Document> {
        let value = self.peek(path)?;
        self.used.borrow_mut().insert(path.into());
        (*value != Document::Null).then_some(value)
    }

    fn fact<T>(&self, path: &str, read: impl FnOnce(&Document) -> Option<T>) -> Fact<T> {
        if let Some(why) = self.unknown.get(path) {
            self.used.borrow_mut().insert(path.into());
            return Fact::Unknown(format!("{path}: {why}"));
        }
        match self.get(path) {
            None => {
                let default = self.defaults.get(path);
                let read = default.and_then(|(value, program)| Some((read(value)?, *program)));
                read.map_or(Fact::Unsaid, |(value, program)| {
                    Fact::default_of(value, program)
                })
            }
            Some(value) => match read(value) {
                Some(value) => Fact::read(value, path),
                None => Fact::Unknown(format!("{path} is not understood")),
            },
        }
    }

    /// A whole number, also one that is written as text or as `1e3`.
    pub fn whole(&self, path: &str) -> Fact<u64> {
        self.fact(path, whole)
    }

    pub fn number(&self, path: &str) -> Fact<f64> {
        self.fact(path, number)
    }

    pub fn text(&self, path: &str) -> Fact<String> {
        if matches!(self.peek(path), Some(Document::Text(text)) if text.trim().is_empty()) {
            self.ignore(path);
            return Fact::Unsaid;
        }
        self.fact(path, |value| match value {
            Document::Text(text) => Some(text.trim().to_string()),
            Document::Int(value) => Some(value.to_string()),
            Document::Bool(value) => Some(value.to_string()),
            _ => None,
        })
    }

    /// A text that names something: a flag whose value was forgotten says nothing.
    pub fn name(&self, path: &str) -> Fact<String> {
        match self.peek(path) {
            Some(Document::Bool(_)) => {
                self.ignore(path);
                Fact::Unsaid
            }
            _ => self.text(path),
        }
    }

    /// `true`, `True`, `yes`, `on`, `1` and their opposites.
    pub fn switch(&self, path: &str) -> Fact<bool> {
        self.fact(path, switch)
    }

    /// A list of texts; one text counts as a list of its parts between commas or spaces.
    pub fn list(&self, path: &str) -> Fact<Vec<String>> {
        self.fact(path, list)
    }

    /// The keys below a path; those of the whole tree for an empty one.
    pub fn below(&self, path: &str) -> Vec<String> {
        let node = if path.is_empty() {
            Some(&self.tree)
        } else {
            self.peek(path)
        };
        match node {
            Some(Document::Map(entries)) => entries.iter().map(|entry| entry.key.clone()).collect(),
            _ => Vec::new(),
        }
    }

    /// The maps of a list, each as keys of its own; one map counts as a list of one. What they hold counts as read here.
    pub fn items(&self, path: &str) -> Vec<Self> {
        match self.get(path) {
            Some(Document::List(items)) => items
                .iter()
                .filter(|item| matches!(item, Document::Map(_)))
                .map(|item| Self::new(item.clone()))
                .collect(),
            Some(map @ Document::Map(_)) => vec![Self::new(map.clone())],
            _ => Vec::new(),
        }
    }

    /// The largest whole number of a list, also of lists in it; one number counts as a list of one.
    pub fn largest(&self, path: &str) -> Fact<u64> {
        self.fact(path, largest)
    }

    /// Marks a key as understood without a use of its value.
    pub fn ignore(&self, path: &str) {
        self.used.borrow_mut().insert(path.into());
    }

    /// Leaves that nobody read, by path.
    pub fn unused(&self) -> Vec<String> {
        let mut all = Vec::new();
        leaves(&self.tree, "", &mut all);
        let used = self.used.borrow();
        let covered = |path: &String| {
            used.iter().any(|known| {
                path == known
                    || path
                        .strip_prefix(known.as_str())
                        .is_some_and(|rest| rest.starts_with('.'))
            })
        };
        all.retain(|path| !covered(path));
        all
    }
}

fn leaves(node: &Document, path: &str, into: &mut Vec<String>) {
    match node {
        Document::Map(entries) if !entries.is_empty() => {
            for entry in entries {
                let path = if path.is_empty() {
                    entry.key.clone()
                } else {
                    format!("{path}.{}", entry.key)
                };
                leaves(&entry.value, &path, into);
            }
        }
        _ if !path.is_empty() => into.push(path.into()),
        _ => {}
    }
}

pub fn whole(value: &Document) -> Option<u64> {
    match value {
        Document::Int(value) => u64::try_from(*value).ok(),
        Document::Number(value) if value.fract() == 0.0 && (0.0..=1e15).contains(value) => {
            Some(*value as u64)
        }
        Document::Text(text) => {
            let plain = text.trim().replace('_', "");
            plain.parse().ok().or_else(|| {
                let number: f64 = plain.parse().ok()?;
                whole(&Document::Number(number))
            })
        }
        _ => None,
    }
}

pub fn largest(value: &Document) -> Option<u64> {
    match value {
        Document::List(items) => items.iter().map(largest).max().flatten(),
        Document::Text(text) => {
            let inner = text.trim().trim_matches(['[', ']', '(', ')']);
            let parts = inner.split([',', ' ', 'x']).filter(|part| !part.is_empty());
            parts
                .map(|part| whole(&Document::Text(part.into())))
                .max()
                .flatten()
        }
        value => whole(value),
    }
}

pub fn number(value: &Document) -> Option<f64> {
    match value {
        Document::Int(value) => Some(*value as f64),
        Document::Number(value) => value.is_finite().then_some(*value),
        Document::Text(text) => text
            .trim()
            .parse()
            .ok()
            .filter(|value: &f64| value.is_finite()),
        _ => None,
    }
}

pub fn switch(value: &Document) -> Option<bool> {
    match value {
        Document::Bool(value) => Some(*value),
        Document::Int(0) => Some(false),
        Document::Int(1) => Some(true),
        Document::Text(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" | "enable" | "enabled" => Some(true),
            "false" | "no" | "off" | "0" | "none" | "disable" | "disabled" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// A tree whose texts that are written as numbers or switches are these.
pub fn typed(tree: &Document) -> Document {
    match tree {
        Document::Map(entries) => {
            let entry = |entry: &Entry| (entry.key.clone(), typed(&entry.value));
            entries.iter().map(entry).collect()
        }
        Document::List(items) => Document::List(items.iter().map(typed).collect()),
        Document::Text(text) => match text.as_str() {
            "True" | "true" => Document::Bool(true),
            "False" | "false" => Document::Bool(false),
            "None" | "null" => Document::Null,
            plain => plain
                .parse()
                .map(Document::Int)
                .or_else(|_| plain.parse().map(Document::Number))
                .unwrap_or_else(|_| tree.clone()),
        },
        other => other.clone(),
    }
}

pub fn list(value: &Document) -> Option<Vec<String>> {
    let plain = |text: &str| text.trim_matches(['\'', '"', ' ']).to_string();
    match value {
        Document::List(items) => {
            let item = |item: &Document| match item {
                Document::Text(text) => Some(plain(text)),
                Document::Int(value) => Some(value.to_string()),
                _ => None,
            };
            items.iter().map(item).collect()
        }
        Document::Text(text) => {
            let inner = text.trim().trim_start_matches('[').trim_end_matches(']');
            let parts = inner.split([',', ' ', '\n']).map(plain);
            Some(parts.filter(|part| !part.is_empty()).collect())
        }
        _ => None,
    }
}
