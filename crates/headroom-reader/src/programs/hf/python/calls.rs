//! The calls of a module, found by what they construct.

use headroom_base::document::Document;
use headroom_scripts::python::{Call, Module, Value};

use crate::keys::Keys;

/// Levels of nested values that are looked at.
const DEEPEST: usize = 8;

#[derive(Debug)]
pub struct Calls<'a> {
    pub module: &'a Module,
}

impl<'a> Calls<'a> {
    pub fn new(module: &'a Module) -> Self {
        Self { module }
    }

    pub fn all(&self) -> impl DoubleEndedIterator<Item = &'a Call> {
        self.module.calls.iter()
    }

    /// The last call whose path ends so; what is constructed last is what is used.
    pub fn last(&self, ends: &[&str]) -> Option<&'a Call> {
        self.all()
            .rev()
            .find(|call| ends.iter().any(|end| ends_with(&call.path, end)))
    }

    pub fn any(&self, end: &str) -> bool {
        self.all().any(|call| ends_with(&call.path, end))
    }

    /// The call that made a value.
    pub fn of(&self, value: &Value) -> Option<&'a Call> {
        match value {
            Value::Object(at) => self.module.calls.get(*at),
            Value::List(items) => items.iter().find_map(|item| self.of(item)),
            _ => None,
        }
    }

    /// The named arguments of a call as keys; objects become maps of their own arguments, with `class`.
    pub fn keys(&self, call: &Call) -> Keys {
        let mut keys = Keys::default();
        for (name, value) in &call.kwargs {
            match value {
                Value::Unknown(why) => keys.set_unknown(name, why.clone()),
                value => {
                    if let Some(value) = self.document(value, DEEPEST) {
                        keys.set(name, value);
                    } else {
                        keys.set_unknown(name, "it is made elsewhere");
                    }
                }
            }
        }
        keys
    }

    pub fn document(&self, value: &Value, left: usize) -> Option<Document> {
        Some(match value {
            Value::None => Document::Null,
            Value::Bool(value) => Document::Bool(*value),
            Value::Int(value) => Document::Int(*value),
            Value::Float(value) => Document::Number(*value),
            Value::Text(text) => text.as_str().into(),
            Value::Name(name) => name.rsplit('.').next().unwrap_or(name).into(),
            Value::List(items) if left > 0 => {
                let items = items.iter().map(|item| self.document(item, left - 1));
                Document::List(items.collect::<Option<_>>()?)
            }
            Value::Dict(entries) if left > 0 => {
                let mut map = Document::new();
                for (key, value) in entries {
                    if let (Value::Text(key), Some(value)) = (key, self.document(value, left - 1)) {
                        map = map.with(key.clone(), value);
                    }
                }
                map
            }
            Value::Object(_) if left > 0 => {
                let call = self.of(value)?;
                let mut map = Document::new().with("class", last(&call.path));
                for (name, value) in &call.kwargs {
                    if let Some(value) = self.document(value, left - 1) {
                        map = map.with(name.clone(), value);
                    }
                }
                map
            }
            _ => return None,
        })
    }

    /// Whether a module or one below it is imported.
    pub fn imports(&self, name: &str) -> bool {
        self.module.imports.iter().any(|import| {
            import == name
                || import
                    .strip_prefix(name)
                    .is_some_and(|rest| rest.starts_with('.'))
        })
    }
}

/// The last part of a path: the class or method.
pub fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

pub fn ends_with(path: &str, end: &str) -> bool {
    path == end
        || path
            .strip_suffix(end)
            .is_some_and(|rest| rest.ends_with('.') || end.starts_with('.'))
}

/// A named argument, or a positional one.
pub fn argument<'a>(call: &'a Call, name: &str, at: usize) -> Option<&'a Value> {
    let named = call
        .kwargs
        .iter()
        .rev()
        .find(|(own, _)| own == name)
        .map(|(_, value)| value);
    named.or_else(|| call.args.get(at))
}
