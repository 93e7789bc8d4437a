//! Configurations that a program reads: YAML and JSON files, OmegaConf, Hydra, dictionaries with attributes.

use headroom_base::document::{Document, json, toml, yaml};

use super::Machine;
use super::value::{Args, Id, Name, V};

/// Longest document, in bytes.
const LONGEST_DOCUMENT: usize = 1 << 16;

/// Nesting of documents and of merges.
pub const DEEPEST: usize = 24;

/// What a document is written in.
#[derive(Clone, Copy, Debug)]
pub enum Format {
    Json,
    Yaml,
    Toml,
}

impl Machine<'_> {
    pub(super) fn configuration(&mut self, path: &str, args: &Args) -> Option<V> {
        let (module, name) = path.rsplit_once('.')?;
        let first = args.plain.first();
        let loads = match name {
            "load" => matches!(
                module,
                "yaml" | "ruamel.yaml" | "json" | "toml" | "tomllib" | "omegaconf.OmegaConf"
            ),
            "safe_load" | "full_load" | "unsafe_load" => module.ends_with("yaml"),
            "fromfile" => module.starts_with("mm"),
            _ => false,
        };
        if loads {
            return Some(self.load(first?));
        }
        match name {
            _ if module == "omegaconf.OmegaConf" => self.omega(name, args),
            "DictConfig" => first.cloned(),
            "ConfigDict" | "EasyDict" | "AttrDict" | "Munch" | "AttributeDict" | "Box"
            | "CfgNode" | "CN" | "DotMap" | "Dict" => Some(self.builtin("dict", args.clone())),
            _ => None,
        }
    }

    pub(super) fn omega(&mut self, name: &str, args: &Args) -> Option<V> {
        let first = args.plain.first().cloned();
        Some(match name {
            "create" | "structured" | "to_container" | "to_object" => match first {
                Some(V::Class(class)) => self.instantiate(&class, Args::default()),
                Some(value) => {
                    self.set_root(&value);
                    value
                }
                None => self.dict(Vec::new()),
            },
            "from_cli" | "from_dotlist" => {
                let words = match first {
                    Some(V::List(id)) => {
                        let items = self.items(id).to_vec();
                        items.iter().filter_map(|item| self.shown(item)).collect()
                    }
                    _ => self.arguments.to_vec(),
                };
                let dict = self.dict(Vec::new());
                self.overrides(&dict, &words);
                dict
            }
            "merge" | "unsafe_merge" => {
                let mut merged = self.dict(Vec::new());
                for (at, part) in args.plain.iter().enumerate() {
                    merged = match (part, at) {
                        (V::Instance(_), 0) => part.clone(),
                        (V::Unknown(_) | V::Name(_), _) => {
                            return Some(self.why(part));
                        }
                        (part, _) => self.merged(&merged, part, DEEPEST),
                    };
                }
                self.set_root(&merged);
                merged
            }
            "update" => {
                if let (Some(config), Some(V::Text(key)), Some(value)) =
                    (&first, args.plain.get(1), args.plain.get(2))
                {
                    let (key, value) = (key.to_string(), value.clone());
                    self.set_path(config, &key, value);
                }
                V::None
            }
            "select" => match (first, args.plain.get(1)) {
                (Some(V::Dict(id)), Some(V::Text(key))) => {
                    let key = key.to_string();
                    self.at_path(id, &key).unwrap_or(V::None)
                }
                _ => V::unknown("OmegaConf.select()"),
            },
            "set_struct" | "resolve" | "set_readonly" | "save" | "register_new_resolver" => V::None,
            "is_missing" => V::Bool(false),
            "to_yaml" => V::unknown("OmegaConf.to_yaml()"),
            _ => return None,
        })
    }

    pub(super) fn set_root(&mut self, value: &V) {
        if let V::Dict(id) = value {
            self.root = Some(*id);
        }
    }

    /// A file's document.
    pub(super) fn load(&mut self, from: &V) -> V {
        match from {
            V::File(path) | V::Text(path) => {
                let path = path.to_string();
                let extension = std::path::Path::new(&path).extension();
                if extension.is_some_and(|end| end == "py") {
                    let module = self.module_file(&path);
                    return module
                        .map_or_else(|| V::unknown(format!("{path} is not there")), V::Module);
                }
                if path.contains('\n') || path.contains(": ") {
                    return self.document(&path, Format::Yaml);
                }
                self.config_of(&path)
            }
            other => self.why(other),
        }
    }

    pub(super) fn config_of(&mut self, path: &str) -> V {
        let Some(text) = self.file(path) else {
            return V::unknown(format!("{path} is not there"));
        };
        let extension = std::path::Path::new(path).extension();
        let format = match extension.and_then(std::ffi::OsStr::to_str) {
            Some("json") => Format::Json,
            Some("toml") => Format::Toml,
            _ => Format::Yaml,
        };
        let value = self.document(&text, format);
        self.set_root(&value);
        value
    }

    pub(super) fn document(&mut self, text: &str, format: Format) -> V {
        let steps = match format {
            Format::Json => text.len() / 4,
            Format::Yaml | Format::Toml => text.len(),
        };
        if text.len() > LONGEST_DOCUMENT || !self.spend(steps) {
            return V::unknown("a long document");
        }
        let read = match format {
            Format::Json => json::read(text),
            Format::Yaml => yaml::read(text),
            Format::Toml => toml::read(text),
        };
        match read {
            Ok(document) => self.of_document(&document, DEEPEST),
            Err(error) => V::unknown(format!("a document that cannot be read: {error}")),
        }
    }

    pub(super) fn of_document(&mut self, document: &Document, depth: usize) -> V {
        if depth == 0 || !self.spend(1) {
            return V::unknown("too much to evaluate");
        }
        match document {
            Document::Null => V::None,
            Document::Bool(value) => V::Bool(*value),
            Document::Int(value) => V::Int(*value),
            Document::Number(value) => V::Float(*value),
            Document::Text(text) => V::text(text.as_str()),
            Document::List(items) => {
                let items = items
                    .iter()
                    .map(|item| self.of_document(item, depth - 1))
                    .collect();
                self.list(items)
            }
            Document::Map(entries) => {
                let mut made = Vec::with_capacity(entries.len());
                for entry in entries {
                    let value = self.of_document(&entry.value, depth - 1);
                    made.push((V::text(entry.key.as_str()), value));
                }
                self.dict(made)
            }
        }
    }

    /// One configuration over another; dictionaries are merged key by key.
    pub(super) fn merged(&mut self, base: &V, over: &V, depth: usize) -> V {
        if depth == 0 || !self.spend(1) {
            return over.clone();
        }
        match (base, over) {
            (V::Dict(base), V::Dict(over)) => {
                if matches!(self.entry(*over, "_delete_"), Some(V::Bool(true))) {
                    let mut entries = self.entries(*over).to_vec();
                    entries.retain(|(key, _)| !matches!(key, V::Text(key) if &**key == "_delete_"));
                    return self.dict(entries);
                }
                let copy = self.entries(*base).to_vec();
                let copy = self.dict(copy);
                let V::Dict(id) = copy else { return copy };
                for (key, value) in self.entries(*over).to_vec() {
                    let old = match &key {
                        V::Text(key) => self.entry(id, key),
                        _ => None,
                    };
                    let value = match old {
                        Some(old) => self.merged(&old, &value, depth - 1),
                        None => value,
                    };
                    self.insert(id, key, value);
                }
                copy
            }
            (V::Instance(id), V::Dict(over)) => {
                for (key, value) in self.entries(*over).to_vec() {
                    let V::Text(key) = key else { continue };
                    let old = self.attributes(*id).iter().find(|(own, _)| *own == key);
                    let old = old.map(|(_, value)| value.clone());
                    let value = match old {
                        Some(old @ (V::Dict(_) | V::Instance(_))) => {
                            self.merged(&old, &value, depth - 1)
                        }
                        _ => value,
                    };
                    self.set_on_instance(*id, &key, value);
                }
                base.clone()
            }
            (_, over) => over.clone(),
        }
    }

    /// `a.b=c` words.
    pub(super) fn overrides(&mut self, config: &V, words: &[String]) {
        for word in words {
            let Some((key, value)) = word.split_once('=') else {
                continue;
            };
            let key = key.trim_start_matches(['-', '+']).to_string();
            let value = self.override_value(value);
            self.set_path(config, &key, value);
        }
    }

    pub(super) fn override_value(&mut self, word: &str) -> V {
        if super::argparse::stands_for_something(word) && !word.contains("${") {
            return V::unknown(word);
        }
        match word {
            "true" | "True" => V::Bool(true),
            "false" | "False" => V::Bool(false),
            "null" | "None" => V::None,
            word if word.starts_with(['[', '{', '-'])
                || word.starts_with(|c: char| c.is_ascii_digit()) =>
            {
                match self.document(word, Format::Yaml) {
                    V::Unknown(_) => V::text(word),
                    V::Text(text) => match text.parse::<f64>() {
                        Ok(number) => V::Float(number),
                        Err(_) => V::Text(text),
                    },
                    value => value,
                }
            }
            word => V::text(word.trim_matches(['"', '\''])),
        }
    }

    pub(super) fn set_path(&mut self, config: &V, path: &str, value: V) {
        let mut at = config.clone();
        let mut parts = path.split('.').take(DEEPEST).peekable();
        while let Some(part) = parts.next() {
            let name: Name = part.into();
            if parts.peek().is_none() {
                match at {
                    V::Dict(id) => self.insert(id, V::Text(name), value),
                    V::Instance(id) => self.set_on_instance(id, &name, value),
                    _ => {}
                }
                return;
            }
            let next = match at {
                V::Dict(id) => self.entry(id, part),
                V::Instance(id) => {
                    let found = self.attributes(id).iter().find(|(own, _)| *own == name);
                    found.map(|(_, value)| value.clone())
                }
                _ => return,
            };
            at = match (next, &at) {
                (Some(next @ (V::Dict(_) | V::Instance(_))), _) => next,
                (_, V::Dict(id)) => {
                    let id = *id;
                    let next = self.dict(Vec::new());
                    self.insert(id, V::Text(name), next.clone());
                    next
                }
                _ => return,
            };
        }
    }

    pub(super) fn at_path(&mut self, id: Id, path: &str) -> Option<V> {
        let mut at = V::Dict(id);
        for part in path.split('.').take(DEEPEST) {
            at = match at {
                V::Dict(id) => self.entry(id, part)?,
                V::List(id) => self.items(id).get(part.parse::<usize>().ok()?)?.clone(),
                _ => return None,
            };
        }
        Some(at)
    }

    /// A text of a configuration with `${a.b}` replaced.
    pub(super) fn resolved(&mut self, value: V) -> V {
        let (V::Text(text), Some(root)) = (&value, self.root) else {
            return value;
        };
        if &**text == "???" {
            return V::unknown("a value that must be given (???)");
        }
        if !text.contains("${") || self.depth >= super::DEEPEST || !self.spend(1) {
            return value;
        }
        self.depth += 1;
        let resolved = self.interpolated(&text.clone(), root);
        self.depth -= 1;
        resolved
    }

    pub(super) fn interpolated(&mut self, text: &str, root: Id) -> V {
        let mut made = String::new();
        let mut rest = text;
        while let Some((before, from)) = rest.split_once("${") {
            let Some((key, after)) = from.split_once('}') else {
                break;
            };
            made.push_str(before);
            let value = self.interpolation(key, root);
            if before.is_empty() && after.is_empty() && made.is_empty() {
                return value;
            }
            match self.shown(&value) {
                Some(shown) if made.len() + shown.len() < 10_000 => made.push_str(&shown),
                _ => return self.why(&value),
            }
            rest = after;
        }
        made.push_str(rest);
        V::text(made)
    }

    pub(super) fn interpolation(&mut self, key: &str, root: Id) -> V {
        if let Some(variable) = key.strip_prefix("oc.env:").or(key.strip_prefix("env:")) {
            return match variable.split_once(',') {
                Some((_, default)) => V::text(default.trim()),
                None => V::unknown(format!("${variable} of the environment")),
            };
        }
        match self.at_path(root, key) {
            Some(value) => self.resolved(value),
            None => V::unknown(format!("${{{key}}}")),
        }
    }

    /// `yaml.dump(config, file)`: the file is one that later commands may read.
    pub(super) fn dump(&mut self, path: &str, args: &Args) -> Option<V> {
        let value = args.plain.first()?.clone();
        let Some(V::File(file)) = args.plain.get(1) else {
            return Some(V::unknown(format!("{path}()")));
        };
        let file = file.to_string();
        let document = self.to_document(&value, DEEPEST)?;
        let text = match path {
            "json.dump" => json::write(&document),
            _ => yaml::write(&document),
        };
        self.write(&file, &text);
        Some(V::None)
    }

    pub(super) fn to_document(&mut self, value: &V, depth: usize) -> Option<Document> {
        if depth == 0 || !self.spend(1) {
            return None;
        }
        Some(match value {
            V::None | V::Absent(_) => Document::Null,
            V::Bool(value) => Document::Bool(*value),
            V::Int(value) => Document::Int(*value),
            V::Float(value) => Document::Number(*value),
            V::Text(text) => Document::Text(text.to_string()),
            V::List(id) => {
                let items = self.items(*id).to_vec();
                let items: Option<Vec<Document>> = items
                    .iter()
                    .map(|item| self.to_document(item, depth - 1))
                    .collect();
                Document::List(items?)
            }
            V::Dict(id) => {
                let mut document = Document::new();
                for (key, value) in self.entries(*id).to_vec() {
                    let V::Text(key) = key else { continue };
                    document = document.with(key.to_string(), self.to_document(&value, depth - 1)?);
                }
                document
            }
            V::Unknown(reason) => Document::Text(format!("<{reason}>")),
            _ => return None,
        })
    }
}
