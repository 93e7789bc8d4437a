//! Values as they are handed out.

use std::rc::Rc;

use super::Machine;
use super::value::V;
use crate::python::Value;

/// Nesting of a value that is handed out.
const DEEPEST_VALUE: usize = 12;

impl Machine<'_> {
    /// Unknown, because this is not known.
    pub(super) fn why(&self, value: &V) -> V {
        let path = |index: usize| self.out.calls.get(index).map_or("", |call| &call.path);
        match value {
            V::Unknown(reason) | V::Name(reason) => V::Unknown(reason.clone()),
            V::Absent(option) => V::unknown(format!("{option} was not given")),
            V::Object(index) => V::unknown(format!("{}(…)", path(*index))),
            V::Part(index, part) => V::unknown(format!("{}(…){part}", path(*index))),
            V::File(path) => V::unknown(format!("the file {path}")),
            _ => V::unknown("a calculation"),
        }
    }

    /// A value as a caller sees it.
    pub(super) fn value(&mut self, value: &V) -> Value {
        self.value_within(value, DEEPEST_VALUE)
    }

    fn value_within(&mut self, value: &V, depth: usize) -> Value {
        if !self.spend(1) || depth == 0 {
            return Value::Unknown("too much to evaluate".into());
        }
        let depth = depth - 1;
        match value {
            V::None | V::Absent(_) => Value::None,
            V::Bool(value) => Value::Bool(*value),
            V::Int(value) => Value::Int(*value),
            V::Float(value) => Value::Float(*value),
            V::Text(text) => self.text_value(text),
            V::List(id) => {
                let items = self.items(*id).to_vec();
                Value::List(
                    items
                        .iter()
                        .map(|item| self.value_within(item, depth))
                        .collect(),
                )
            }
            V::Dict(id) => {
                let entries = self.entries(*id).to_vec();
                let mut made = Vec::with_capacity(entries.len());
                for (key, value) in entries {
                    let value = self.resolved(value);
                    made.push((
                        self.value_within(&key, depth),
                        self.value_within(&value, depth),
                    ));
                }
                Value::Dict(made)
            }
            V::Instance(id) => self.instance_value(*id, depth),
            V::Function(closure) => Value::Name(closure.function.name.to_string()),
            V::Method(method) => Value::Name(method.1.function.name.to_string()),
            V::Class(class) => match class.external_base() {
                Some(path) => Value::Name(path.to_string()),
                None => Value::Name(class.name.to_string()),
            },
            V::Partial(partial) => {
                let partial: &Rc<_> = partial;
                self.value_within(&partial.0.clone(), depth)
            }
            V::Builtin(name) => Value::Name((*name).into()),
            V::Module(at) => {
                let path = self.modules.get(*at).map_or("", |module| &module.path);
                Value::Name(path.trim_end_matches(".py").replace('/', "."))
            }
            V::Object(index) => Value::Object(*index),
            V::Name(path) => Value::Name(path.to_string()),
            V::File(path) => Value::Unknown(format!("the file {path}")),
            V::Part(index, path) => {
                let of = self.out.calls.get(*index).map_or("", |call| &call.path);
                Value::Unknown(format!("{of}(…){path}"))
            }
            V::Parser(_) => Value::Unknown("a parser".into()),
            V::PlainMethod(method) => Value::Unknown(format!("the method {}", method.1)),
            V::Super(_) => Value::Unknown("super()".into()),
            V::Unknown(reason) => Value::Unknown(reason.to_string()),
        }
    }

    fn text_value(&mut self, text: &str) -> Value {
        self.spend(text.len() / 16);
        Value::Text(text.to_string())
    }

    fn instance_value(&mut self, id: usize, depth: usize) -> Value {
        if let (Some(_), Some(object)) = self.class_of(id) {
            return Value::Object(object);
        }
        let attributes = self.attributes(id).to_vec();
        let mut made = Vec::with_capacity(attributes.len());
        for (name, value) in attributes {
            if let V::Function(_) | V::Method(_) = value {
                continue;
            }
            made.push((
                Value::Text(name.to_string()),
                self.value_within(&value, depth),
            ));
        }
        Value::Dict(made)
    }

    /// Fills in what is known only at the end.
    pub(super) fn finish(&mut self) {
        let scope = self.modules.first().map_or(0, |module| module.scope);
        let names = self.scopes.get(scope).map(|scope| scope.names.clone());
        let mut names: Vec<_> = names.unwrap_or_default().into_iter().collect();
        names.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, value) in names {
            if name.starts_with("__") || matches!(value, V::Builtin(_)) {
                continue;
            }
            let plain = matches!(
                value,
                V::Name(_) | V::Function(_) | V::Class(_) | V::Module(_)
            );
            if plain && self.bound_by_import.contains(&name) {
                continue;
            }
            let value = self.value(&value);
            self.out.names.push((name.to_string(), value));
        }
        self.pins();
    }
}
