//! Calls of Python as keys: named arguments by name, and what an argument is of.

use headroom_base::document::{Document, Entry};
use headroom_scripts::python::{Call, Module, Value};

use crate::keys::Keys;

/// Depth of values inside each other.
const DEEPEST: usize = 16;

/// The named arguments of a call.
pub fn keys(call: &Call) -> Keys {
    let mut keys = Keys::default();
    for (name, value) in &call.kwargs {
        set(&mut keys, name, value);
    }
    keys
}

/// Gives a key the value of Python, or says why it cannot be known.
pub fn set(keys: &mut Keys, path: &str, value: &Value) {
    match value {
        Value::Unknown(why) => keys.set_unknown(path, why.clone()),
        value => match document(value, DEEPEST) {
            Some(value) => keys.set(path, value),
            None => keys.set_unknown(path, "it is made by a call"),
        },
    }
}

/// A value as a document; a name is its full path. `None` for objects and what cannot be known.
pub fn document(value: &Value, left: usize) -> Option<Document> {
    if left == 0 {
        return None;
    }
    Some(match value {
        Value::None => Document::Null,
        Value::Bool(value) => Document::Bool(*value),
        Value::Int(value) => Document::Int(*value),
        Value::Float(value) => Document::Number(*value),
        Value::Text(text) | Value::Name(text) => Document::Text(text.clone()),
        Value::List(items) => Document::List(
            items
                .iter()
                .map(|item| document(item, left - 1).unwrap_or(Document::Null))
                .collect(),
        ),
        Value::Dict(entries) => Document::Map(
            entries
                .iter()
                .filter_map(|(key, value)| {
                    let Value::Text(key) = key else { return None };
                    Some(Entry {
                        key: key.clone(),
                        value: document(value, left - 1)?,
                        comment: "",
                    })
                })
                .collect(),
        ),
        Value::Object(_) | Value::Unknown(_) => return None,
    })
}

/// Whether a path is of a file of Python.
pub fn is_python(path: &str) -> bool {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case("py"))
}

/// A named argument.
pub fn named<'a>(call: &'a Call, name: &str) -> Option<&'a Value> {
    let found = call.kwargs.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value)
}

/// The call that made the object that a method is called on.
pub fn maker<'a>(module: &'a Module, call: &Call) -> Option<&'a Call> {
    match call.on.as_ref()? {
        Value::Object(at) => module.calls.get(*at),
        _ => None,
    }
}

/// Whether a call is of this method of an object of one of these classes.
pub fn is_method(module: &Module, call: &Call, classes: &[&str], method: &str) -> bool {
    let mut parts = call.path.rsplit('.');
    if parts.next() != Some(method) {
        return false;
    }
    let of = |name: Option<&str>| name.is_some_and(|name| classes.contains(&name));
    of(parts.next()) || maker(module, call).is_some_and(|made| of(made.path.rsplit('.').next()))
}
