//! Methods of text, lists, dictionaries, files and parsers.

use super::text::joined;
use super::value::{Args, Id, Name, V};
use super::{Cell, LONGEST_TEXT, Machine};

/// What scripts gather that look for the layers LoRA can be put on.
pub const LINEAR: &str = "the names of all linear layers";

/// Parts that a text is split into.
const MOST_PARTS: usize = 2_000;

impl Machine<'_> {
    pub(super) fn plain_method(&mut self, on: &V, name: &Name, args: Args) -> V {
        match on {
            V::Text(text) => self.text_method(&text.clone(), name, &args),
            V::List(id) => self.list_method(*id, name, args),
            V::Dict(id) => self.dict_method(*id, name, args),
            V::File(path) => self.file_method(&path.clone(), name, &args),
            V::Parser(id) => self.parser_method(*id, name, args),
            V::Function(_) | V::Class(_) | V::Method(_) | V::Partial(_) => match &**name {
                "remote" | "spawn" | "local" | "call" | "delay" | "main" | "callback" | "map" => {
                    self.call(on, args, &String::new)
                }
                "options" | "with_options" => on.clone(),
                _ => V::unknown(name.clone()),
            },
            V::Instance(id) => {
                let entries = self.attributes(*id).iter();
                let entries = entries
                    .map(|(name, value)| (V::Text(name.clone()), value.clone()))
                    .collect();
                match self.dict(entries) {
                    V::Dict(copy) if &**name == "update" => {
                        if let Some(V::Dict(other)) = args.plain.first() {
                            self.set_all(*id, *other);
                        }
                        for (key, value) in &args.named {
                            self.set_on_instance(*id, key, value.clone());
                        }
                        V::Dict(copy)
                    }
                    V::Dict(copy) => self.dict_method(copy, name, args),
                    other => other,
                }
            }
            V::Builtin("dict") if &**name == "fromkeys" => V::unknown("dict.fromkeys()"),
            V::Int(_) | V::Float(_) => match &**name {
                "item" => on.clone(),
                _ => V::unknown(name.clone()),
            },
            other => self.why(other),
        }
    }

    fn set_all(&mut self, id: Id, other: Id) {
        for (key, value) in self.entries(other).to_vec() {
            if let V::Text(key) = key {
                self.set_on_instance(id, &key, value);
            }
        }
    }

    fn text_method(&mut self, text: &Name, name: &str, args: &Args) -> V {
        self.spend(1 + text.len() / 16);
        let first = args.text(0, "sep");
        let known = |truth: Option<bool>| truth.map_or_else(|| V::unknown("a condition"), V::Bool);
        match name {
            "lower" | "casefold" => V::text(text.to_lowercase()),
            "upper" => V::text(text.to_uppercase()),
            "strip" => V::text(stripped(text, first, true, true)),
            "lstrip" => V::text(stripped(text, first, true, false)),
            "rstrip" => V::text(stripped(text, first, false, true)),
            "startswith" | "endswith" => known(self.starts(text, name, args.plain.first())),
            "removeprefix" => match first {
                Some(prefix) => V::text(text.strip_prefix(&**prefix).unwrap_or(text)),
                None => V::Text(text.clone()),
            },
            "removesuffix" => match first {
                Some(suffix) => V::text(text.strip_suffix(&**suffix).unwrap_or(text)),
                None => V::Text(text.clone()),
            },
            "replace" => match (args.text(0, "old"), args.text(1, "new")) {
                (Some(old), Some(new)) if !old.is_empty() && new.len() < 1_000 => {
                    self.work = self.work.saturating_add(text.len() / 4);
                    let replaced = text.replace(&**old, new);
                    if replaced.len() <= LONGEST_TEXT {
                        V::text(replaced)
                    } else {
                        V::unknown("a long text")
                    }
                }
                _ => V::unknown("a text"),
            },
            "split" | "rsplit" => self.split(text, name, args),
            "splitlines" => {
                let lines = text.lines().take(MOST_PARTS).map(V::text).collect();
                self.list(lines)
            }
            "partition" | "rpartition" => match first {
                Some(separator) if !separator.is_empty() => {
                    let parts = match name {
                        "partition" => text.split_once(&**separator),
                        _ => text.rsplit_once(&**separator),
                    };
                    let (before, after) = parts.unwrap_or((text, ""));
                    let middle = if parts.is_some() { separator } else { "" };
                    self.tuple(vec![V::text(before), V::text(middle), V::text(after)])
                }
                _ => V::unknown("a text"),
            },
            "join" => match args.plain.first() {
                Some(V::Text(more)) => V::Text(joined(text, more)),
                Some(items) => self.join_text(text, &items.clone()),
                None => V::unknown("a text"),
            },
            "format" => self.format_text(text, args),
            "title" | "capitalize" | "swapcase" => V::unknown("a text"),
            "isdigit" | "isnumeric" | "isdecimal" => {
                V::Bool(!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
            }
            "count" => match first {
                Some(part) if !part.is_empty() => V::Int(text.matches(&**part).count() as i128),
                _ => V::unknown("a number"),
            },
            "find" => match first {
                Some(part) => V::Int(text.find(&**part).map_or(-1, |at| at as i128)),
                None => V::unknown("a number"),
            },
            "encode" | "decode" | "as_posix" | "absolute" | "resolve" | "expanduser"
            | "__str__" => V::Text(text.clone()),
            "joinpath" => {
                let mut parts = vec![V::Text(text.clone())];
                parts.extend(args.plain.iter().cloned());
                self.join(&parts)
            }
            "with_suffix" => match first {
                Some(suffix) => match path_part(text, "stem") {
                    V::Text(stem) => match path_part(text, "parent") {
                        V::Text(parent) => V::Text(joined(&parent, &format!("{stem}{suffix}"))),
                        _ => V::unknown("a path"),
                    },
                    _ => V::unknown("a path"),
                },
                None => V::unknown("a path"),
            },
            "exists" | "is_file" | "is_dir" => V::Bool(self.beside.text(text).is_some()),
            "read_text" | "open" => match name {
                "open" => V::File(text.clone()),
                _ => self.file_method(text, "read", args),
            },
            "write_text" => {
                if let Some(written) = args.text(0, "data") {
                    self.write(&text.clone(), &written.clone());
                }
                V::None
            }
            _ => V::unknown(format!("{name}()")),
        }
    }

    fn starts(&mut self, text: &str, name: &str, with: Option<&V>) -> Option<bool> {
        let one = |part: &str| match name {
            "startswith" => text.starts_with(part),
            _ => text.ends_with(part),
        };
        match with? {
            V::Text(part) => Some(one(part)),
            V::List(id) => {
                let mut any = false;
                for part in self.items(*id) {
                    match part {
                        V::Text(part) => any |= one(part),
                        _ => return None,
                    }
                }
                Some(any)
            }
            _ => None,
        }
    }

    fn split(&mut self, text: &str, name: &str, args: &Args) -> V {
        let most = args.get(1, "maxsplit").and_then(V::int);
        let most = most.and_then(|most| usize::try_from(most).ok());
        let most = most.map_or(MOST_PARTS, |most| (most + 1).min(MOST_PARTS));
        let parts: Vec<V> = match args.get(0, "sep") {
            None | Some(V::None) => text
                .split_whitespace()
                .take(MOST_PARTS)
                .map(V::text)
                .collect(),
            Some(V::Text(separator)) if !separator.is_empty() => match name {
                "split" => text.splitn(most, &**separator).map(V::text).collect(),
                _ => {
                    let mut parts: Vec<V> = text.rsplitn(most, &**separator).map(V::text).collect();
                    parts.reverse();
                    parts
                }
            },
            _ => return V::unknown("a text"),
        };
        self.list(parts)
    }

    fn join_text(&mut self, separator: &str, items: &V) -> V {
        let Some(items) = self.elements(items) else {
            return self.why(items);
        };
        let mut text = String::new();
        for (at, item) in items.iter().enumerate() {
            let V::Text(item) = item else {
                return self.why(item);
            };
            if at > 0 {
                text.push_str(separator);
            }
            text.push_str(item);
            if text.len() > LONGEST_TEXT {
                return V::unknown("a long text");
            }
        }
        self.spend(text.len() / 16);
        V::text(text)
    }

    /// `"{} of {name}".format(…)`.
    fn format_text(&mut self, format: &str, args: &Args) -> V {
        let mut text = String::new();
        let mut next = 0;
        let mut rest = format;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            text.push_str(before);
            if from.starts_with("{{") || from.starts_with("}}") {
                text.push_str(from.get(..1).unwrap_or(""));
                rest = from.get(2..).unwrap_or("");
                continue;
            }
            let inside = from.get(1..).unwrap_or("");
            let Some(end) = inside.find('}') else { break };
            let field = inside.get(..end).unwrap_or("");
            rest = inside.get(end + 1..).unwrap_or("");
            let (key, format) = field.split_once([':', '!']).unwrap_or((field, ""));
            let value = match key.parse::<usize>() {
                Ok(at) => args.plain.get(at),
                Err(_) if key.is_empty() => {
                    next += 1;
                    args.plain.get(next - 1)
                }
                Err(_) => args.named(key),
            };
            let shown = value.and_then(|value| Some((value, self.shown(value)?)));
            match shown {
                Some((value, shown)) if text.len() + shown.len() <= LONGEST_TEXT => {
                    text.push_str(&super::text::formatted(value, &shown, format));
                }
                _ => {
                    return value.map_or_else(|| V::unknown("a text"), |value| self.why(value));
                }
            }
        }
        text.push_str(rest);
        self.spend(text.len() / 16);
        V::text(text)
    }

    fn list_method(&mut self, id: Id, name: &str, args: Args) -> V {
        let first = args.plain.into_iter().next();
        match (name, first) {
            ("append" | "add", Some(value)) => {
                let value = match value {
                    V::Part(..) | V::Object(_) | V::Unknown(_) if self.linear > 0 => {
                        V::unknown(LINEAR)
                    }
                    value => value,
                };
                self.extend(id, vec![value]);
                V::None
            }
            ("extend" | "update", Some(more)) => {
                match self.elements(&more) {
                    Some(items) => self.extend(id, items),
                    None => self.extend(id, vec![more]),
                }
                V::None
            }
            ("pop", at) => {
                let Some(Cell::List(_, items)) = self.heap.get_mut(id) else {
                    return V::None;
                };
                let popped = match at.as_ref().and_then(V::int) {
                    Some(0) if !items.is_empty() => Some(items.remove(0)),
                    _ => items.pop(),
                };
                let length = items.len();
                self.spend(1 + length / 16);
                popped.unwrap_or_else(|| V::unknown("an element"))
            }
            ("remove" | "discard", Some(value)) => {
                self.spend(self.items(id).len());
                let at = self
                    .items(id)
                    .iter()
                    .position(|own| self.equal(own, &value) == Some(true));
                if let (Some(at), Some(Cell::List(_, items))) = (at, self.heap.get_mut(id)) {
                    items.remove(at);
                }
                V::None
            }
            ("copy", _) => {
                let items = self.items(id).to_vec();
                let kind = self.list_kind(id);
                self.sequence(kind, items)
            }
            ("index", Some(value)) => {
                self.spend(self.items(id).len());
                let at = self
                    .items(id)
                    .iter()
                    .position(|own| self.equal(own, &value) == Some(true));
                at.map_or_else(|| V::unknown("a place"), |at| V::Int(at as i128))
            }
            ("union", Some(more)) => {
                let mut items = self.items(id).to_vec();
                items.extend(self.elements(&more).unwrap_or_default());
                let kind = self.list_kind(id);
                self.sequence(kind, items)
            }
            ("sort" | "reverse" | "clear" | "insert", _) => V::None,
            _ => V::unknown(format!("{name}()")),
        }
    }

    fn dict_method(&mut self, id: Id, name: &str, args: Args) -> V {
        match name {
            "get" | "pop" | "setdefault" => self.get_key(id, name, &args),
            "keys" => {
                let keys = self
                    .entries(id)
                    .iter()
                    .map(|(key, _)| key.clone())
                    .collect();
                self.list(keys)
            }
            "values" => {
                let values = self
                    .entries(id)
                    .iter()
                    .map(|(_, value)| value.clone())
                    .collect();
                self.list(values)
            }
            "items" => {
                let mut pairs = Vec::new();
                for (key, value) in self.entries(id).to_vec() {
                    let value = self.resolved(value);
                    let pair = self.tuple(vec![key, value]);
                    pairs.push(pair);
                }
                self.list(pairs)
            }
            "update" | "merge_from_dict" => {
                match args.plain.first() {
                    Some(V::Dict(other)) => self.update(id, *other),
                    Some(V::Instance(other)) => {
                        for (name, value) in self.attributes(*other).to_vec() {
                            self.insert(id, V::Text(name), value);
                        }
                    }
                    Some(V::None) | None => {}
                    Some(other) => self.insert(id, V::text("**"), other.clone()),
                }
                for (name, value) in args.named {
                    self.insert(id, V::Text(name), value);
                }
                V::None
            }
            "copy" | "to_dict" => {
                let entries = self.entries(id).to_vec();
                self.dict(entries)
            }
            _ => V::unknown(format!("{name}()")),
        }
    }

    fn get_key(&mut self, id: Id, name: &str, args: &Args) -> V {
        let key = args.plain.first().cloned().unwrap_or(V::None);
        let default = args.get(1, "default").cloned();
        let V::Text(text) = &key else {
            return match self.item(&V::Dict(id), &key) {
                V::Unknown(reason) => default.unwrap_or(V::Unknown(reason)),
                value => value,
            };
        };
        if let Some(value) = self.entry(id, text) {
            if name == "pop"
                && self.conditions.is_empty()
                && let Some(Cell::Dict(entries)) = self.heap.get_mut(id)
            {
                entries.retain(|(own, _)| !matches!(own, V::Text(own) if own == text));
            }
            return self.resolved(value);
        }
        if let Some(spread) = self.entry(id, "**") {
            return self.why(&spread);
        }
        let value = default.unwrap_or(V::None);
        if name == "setdefault" {
            self.insert(id, key, value.clone());
        }
        value
    }

    fn file_method(&mut self, path: &Name, name: &str, args: &Args) -> V {
        match name {
            // `exec(open("configurator.py").read())`.
            "read" if path.ends_with(".py") => V::File(path.clone()),
            "read" | "readlines" | "read_text" => match self.file(path) {
                Some(text) if text.len() <= LONGEST_TEXT => {
                    self.spend(text.len() / 16);
                    V::text(text)
                }
                Some(_) => V::File(path.clone()),
                None => V::unknown(format!("{path} is not there")),
            },
            "write" => {
                if let Some(text) = args.text(0, "text") {
                    self.write(path, &text.clone());
                }
                V::None
            }
            _ => V::unknown(format!("{name}()")),
        }
    }

    /// Appends to a file that the program writes.
    pub(super) fn write(&mut self, path: &str, text: &str) {
        self.spend(1 + text.len() / 16);
        if let Some((_, own)) = self.out.files.iter_mut().find(|(name, _)| name == path) {
            if own.len() + text.len() <= super::MOST_TEXT / 4 {
                own.push_str(text);
            }
        } else if self.out.files.len() < 100 {
            self.out.files.push((path.to_string(), text.to_string()));
        }
    }
}

fn stripped(text: &str, letters: Option<&Name>, start: bool, end: bool) -> String {
    let matches = |letter: char| match letters {
        Some(letters) => letters.contains(letter),
        None => letter.is_whitespace(),
    };
    let text = if start {
        text.trim_start_matches(matches)
    } else {
        text
    };
    let text = if end {
        text.trim_end_matches(matches)
    } else {
        text
    };
    text.to_string()
}

/// `name`, `stem`, `suffix` and `parent` of a path.
pub fn path_part(path: &str, part: &str) -> V {
    let (parent, name) = path.rsplit_once('/').unwrap_or((".", path));
    let dot = name.rfind('.').filter(|at| *at > 0);
    let (stem, suffix) = name.split_at(dot.unwrap_or(name.len()));
    V::text(match part {
        "name" => name,
        "stem" => stem,
        "suffix" => suffix,
        _ => parent,
    })
}
