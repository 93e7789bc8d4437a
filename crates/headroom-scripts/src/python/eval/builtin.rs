//! Python's own functions and types.

use super::value::{Args, ListKind, Name, V};
use super::{LONGEST_TEXT, Machine};
use crate::python::syntax::ast::Op;

const NAMES: [&str; 58] = [
    "print",
    "len",
    "str",
    "int",
    "float",
    "bool",
    "max",
    "min",
    "round",
    "abs",
    "sum",
    "sorted",
    "list",
    "tuple",
    "set",
    "frozenset",
    "dict",
    "range",
    "zip",
    "enumerate",
    "map",
    "filter",
    "isinstance",
    "issubclass",
    "getattr",
    "setattr",
    "hasattr",
    "open",
    "type",
    "any",
    "all",
    "vars",
    "locals",
    "globals",
    "repr",
    "iter",
    "next",
    "reversed",
    "divmod",
    "pow",
    "exec",
    "eval",
    "exit",
    "quit",
    "callable",
    "id",
    "input",
    "format",
    "chr",
    "ord",
    "hash",
    "object",
    "property",
    "bytes",
    "display",
    "get_ipython",
    "delattr",
    "complex",
];

/// Python's own name, where it is one.
pub fn named(name: &str) -> Option<&'static str> {
    NAMES.iter().find(|own| **own == name).copied()
}

impl Machine<'_> {
    pub(super) fn builtin(&mut self, name: &str, args: Args) -> V {
        let first = args.plain.first().cloned();
        match (name, first) {
            ("print" | "display" | "delattr" | "exit" | "quit" | "object", _) => V::None,
            ("dict", _) => self.make_dict(args),
            ("list" | "tuple" | "set" | "frozenset", first) => self.make_list(name, first),
            ("max" | "min", _) => self.extreme(name == "max", &args),
            ("range", _) => self.range(&args),
            ("zip", _) => self.zip(&args),
            ("vars" | "locals" | "globals", first) => self.names_of(name, first),
            ("get_ipython", _) => V::Name("IPython.get_ipython".into()),
            ("open", Some(V::Text(path))) => V::File(path),
            ("getattr", Some(on)) => self.get_attribute(&on, &args),
            ("setattr", Some(on)) => {
                if let (Some(V::Text(name)), Some(value)) = (args.plain.get(1), args.plain.get(2)) {
                    let (name, value) = (name.clone(), value.clone());
                    let written = || format!(".{name}");
                    self.set_attribute(&on, &name, value, &written);
                }
                V::None
            }
            ("hasattr", Some(on)) => self.has_attribute(&on, &args),
            ("isinstance", Some(on)) => match args.plain.get(1) {
                Some(class) => self
                    .is_instance(&on, class)
                    .map_or_else(|| self.why(&on), V::Bool),
                None => V::None,
            },
            ("exec", Some(V::File(path) | V::Text(path))) => self.execute(&path),
            ("sum", Some(items)) => self.sum(&items),
            ("any" | "all", Some(items)) => self.any_all(name == "any", &items),
            ("map" | "filter", Some(function)) => self.map(name, &function, &args),
            (name, Some(value)) => self.one(name, value, &args),
            ("str", None) => V::text(""),
            ("int", None) => V::Int(0),
            ("float", None) => V::Float(0.0),
            ("bool", None) => V::Bool(false),
            _ => V::unknown(format!("{name}()")),
        }
    }

    /// Functions of one value.
    pub(super) fn one(&mut self, name: &str, value: V, args: &Args) -> V {
        if let V::Unknown(_) | V::Name(_) | V::Part(..) = value
            && name != "type"
            && name != "callable"
        {
            return self.why(&value);
        }
        match name {
            "len" => self.length(&value),
            "str" | "repr" | "format" => match self.shown(&value) {
                Some(text) if text.len() <= LONGEST_TEXT => V::text(text),
                _ => V::unknown("a text"),
            },
            "int" => self.to_int(&value),
            "float" => self.to_float(&value),
            "bool" => match self.truth(&value) {
                Some(truth) => V::Bool(truth),
                None => V::unknown("a condition"),
            },
            "abs" => match value {
                V::Int(number) => V::Int(number.saturating_abs()),
                V::Float(number) => V::Float(number.abs()),
                other => other,
            },
            "round" => self.round(&value, args),
            "pow" => match args.plain.get(1) {
                Some(power) => self.arithmetic(Op::Pow, &value, power),
                None => V::None,
            },
            "divmod" => match args.plain.get(1) {
                Some(by) => {
                    let by = by.clone();
                    let quotient = self.arithmetic(Op::FloorDiv, &value, &by);
                    let rest = self.arithmetic(Op::Mod, &value, &by);
                    self.tuple(vec![quotient, rest])
                }
                None => V::None,
            },
            "sorted" => self.sorted(&value),
            "reversed" => match self.elements(&value) {
                Some(mut items) => {
                    items.reverse();
                    self.list(items)
                }
                None => self.why(&value),
            },
            "enumerate" => match self.elements(&value) {
                Some(items) => {
                    let mut pairs = Vec::new();
                    for (at, item) in items.into_iter().enumerate() {
                        let pair = self.tuple(vec![V::Int(at as i128), item]);
                        pairs.push(pair);
                    }
                    self.list(pairs)
                }
                None => value,
            },
            "next" => match self.elements(&value) {
                Some(items) => items.into_iter().next().unwrap_or(V::None),
                None => self.element_of(&value),
            },
            "type" => match &value {
                V::Instance(id) => match self.class_of(*id).0 {
                    Some(class) => V::Class(class),
                    None => V::unknown("a type"),
                },
                V::Int(_) => V::Builtin("int"),
                V::Float(_) => V::Builtin("float"),
                V::Text(_) => V::Builtin("str"),
                V::Bool(_) => V::Builtin("bool"),
                V::List(_) => V::Builtin("list"),
                V::Dict(_) => V::Builtin("dict"),
                _ => V::unknown("a type"),
            },
            "callable" => match value {
                V::Function(_) | V::Class(_) | V::Method(_) | V::Builtin(_) => V::Bool(true),
                V::Text(_) | V::Int(_) | V::None => V::Bool(false),
                _ => V::unknown("whether something can be called"),
            },
            "eval" => match value {
                V::Text(text) => self.literal(&text),
                other => other,
            },
            "iter" | "property" => value,
            _ => V::unknown(format!("{name}()")),
        }
    }

    /// `vars(args)`, `locals()`, `globals()` as dictionaries.
    pub(super) fn names_of(&mut self, name: &str, first: Option<V>) -> V {
        match first {
            Some(V::Instance(id)) => {
                let mut entries: Vec<(V, V)> = self
                    .attributes(id)
                    .iter()
                    .map(|(name, value)| (V::Text(name.clone()), value.clone()))
                    .collect();
                if let Some(object) = self.class_of(id).1 {
                    entries.push((V::text("**"), V::Object(object)));
                }
                self.dict(entries)
            }
            Some(V::Object(index)) => {
                let given = self.given.get(index).map(|args| args.named.clone());
                let given = given.unwrap_or_default().into_iter();
                let mut entries: Vec<(V, V)> =
                    given.map(|(name, value)| (V::Text(name), value)).collect();
                entries.push((V::text("**"), V::Object(index)));
                self.dict(entries)
            }
            Some(V::Dict(id)) => V::Dict(id),
            Some(other) => self.why(&other),
            None => {
                let scope = match name {
                    "globals" => self.global_scope(),
                    _ => self.local_scope,
                };
                let names = self
                    .scopes
                    .get(scope)
                    .into_iter()
                    .flat_map(|scope| &scope.names);
                let mut entries: Vec<(V, V)> = names
                    .map(|(name, value)| (V::Text(name.clone()), value.clone()))
                    .collect();
                entries.sort_by(|a, b| match (&a.0, &b.0) {
                    (V::Text(a), V::Text(b)) => a.cmp(b),
                    _ => std::cmp::Ordering::Equal,
                });
                self.dict(entries)
            }
        }
    }

    pub(super) fn get_attribute(&mut self, on: &V, args: &Args) -> V {
        let Some(V::Text(name)) = args.plain.get(1) else {
            return V::unknown("an attribute");
        };
        let name = name.clone();
        let value = self.attribute(on, &name, &|| format!(".{name}"));
        let default = args.plain.get(2);
        match (&value, default) {
            (V::Unknown(_) | V::PlainMethod(_), Some(default))
                if matches!(on, V::Instance(_) | V::Dict(_)) =>
            {
                default.clone()
            }
            _ => value,
        }
    }

    pub(super) fn has_attribute(&mut self, on: &V, args: &Args) -> V {
        let Some(V::Text(name)) = args.plain.get(1) else {
            return V::unknown("whether something has an attribute");
        };
        match on {
            V::Object(_) | V::Part(..) | V::Name(_) => V::Bool(true),
            V::Instance(id) => {
                let name = name.clone();
                let own = self.attributes(*id).iter().any(|(own, _)| *own == name);
                let (class, object) = self.class_of(*id);
                let inherited = class.is_some_and(|class| class.find(&name).is_some());
                match own || inherited {
                    true => V::Bool(true),
                    false if object.is_some() => V::unknown(format!("whether it has {name}")),
                    false => V::Bool(false),
                }
            }
            V::Dict(id) => V::Bool(self.entry(*id, &name.clone()).is_some()),
            V::None | V::Int(_) | V::Text(_) | V::List(_) => V::Bool(false),
            _ => V::unknown(format!("whether it has {name}")),
        }
    }

    pub(super) fn is_instance(&mut self, value: &V, class: &V) -> Option<bool> {
        if let V::List(id) = class {
            let mut unknown = false;
            for class in self.items(*id).to_vec().into_iter().take(20) {
                match self.is_instance(value, &class) {
                    Some(true) => return Some(true),
                    Some(false) => {}
                    None => unknown = true,
                }
            }
            return if unknown { None } else { Some(false) };
        }
        match (value, class) {
            (V::Unknown(_) | V::Part(..), _) => None,
            (V::Name(path), _) if !super::packages::is_known_package(path) => None,
            (V::Object(index), V::Builtin(_)) if !self.is_constructed(*index) => None,
            (value, V::Builtin(name)) => Some(match *name {
                "str" => matches!(value, V::Text(_)),
                "bool" => matches!(value, V::Bool(_)),
                "int" => matches!(value, V::Int(_) | V::Bool(_)),
                "float" => matches!(value, V::Float(_)),
                "dict" => matches!(value, V::Dict(_)),
                "list" | "tuple" | "set" => match value {
                    V::List(id) => match self.list_kind(*id) {
                        ListKind::List => *name == "list",
                        ListKind::Tuple => *name == "tuple",
                        ListKind::Set => *name == "set",
                    },
                    _ => false,
                },
                _ => return None,
            }),
            (V::Instance(id), V::Class(class)) => {
                let own = self.class_of(*id).0?;
                let is = std::iter::once(&own)
                    .chain(&own.ancestors)
                    .any(|own| std::rc::Rc::ptr_eq(own, class));
                Some(is)
            }
            (V::Text(_), V::Name(path)) => Some(&**path == "pathlib.Path"),
            (V::Dict(_), V::Name(path)) => Some(path.contains("Dict") || path.contains("Mapping")),
            (V::List(_), V::Name(path)) => Some(path.contains("List") || path.contains("Sequence")),
            (V::Object(index), V::Name(path)) => {
                let own = &self.out.calls.get(*index)?.path;
                (own == &**path).then_some(true)
            }
            (V::Int(_) | V::Float(_) | V::Bool(_) | V::None, _) => Some(false),
            _ => None,
        }
    }

    pub(super) fn length(&mut self, value: &V) -> V {
        let length = match value {
            V::List(id) => self.items(*id).len(),
            V::Dict(id) => self.entries(*id).len(),
            V::Text(text) => {
                self.spend(text.len() / 16);
                text.chars().count()
            }
            V::None => return V::Int(0),
            other => return self.why(other),
        };
        V::Int(length as i128)
    }

    pub(super) fn to_int(&self, value: &V) -> V {
        match value {
            V::Float(number) if number.is_finite() && number.abs() < 1e30 => {
                V::Int(number.trunc() as i128)
            }
            V::Text(text) => match text.trim().replace('_', "").parse() {
                Ok(number) => V::Int(number),
                Err(_) => V::unknown(format!("int(\"{}\")", shortened(text))),
            },
            other => match other.int() {
                Some(number) => V::Int(number),
                None => self.why(other),
            },
        }
    }

    pub(super) fn to_float(&self, value: &V) -> V {
        match value {
            V::Text(text) => match text.trim().replace('_', "").parse() {
                Ok(number) => V::Float(number),
                Err(_) => V::unknown(format!("float(\"{}\")", shortened(text))),
            },
            other => match other.float() {
                Some(number) => V::Float(number),
                None => self.why(other),
            },
        }
    }

    /// Python rounds half to even.
    pub(super) fn round(&self, value: &V, args: &Args) -> V {
        let Some(number) = value.float() else {
            return self.why(value);
        };
        match args.plain.get(1).and_then(V::int) {
            None if number.is_finite() && number.abs() < 1e30 => {
                V::Int(number.round_ties_even() as i128)
            }
            None => value.clone(),
            Some(digits) => {
                let scale = 10_f64.powi(digits.clamp(-30, 30) as i32);
                V::Float((number * scale).round_ties_even() / scale)
            }
        }
    }

    /// A literal such as a configuration's text gives.
    pub(super) fn literal(&mut self, text: &str) -> V {
        self.text = self.text.saturating_add(text.len());
        if text.len() > 10_000 || !self.spend(text.len()) {
            return V::unknown("a long text");
        }
        match crate::python::syntax::expression(text) {
            Some(expr) => match self.eval(&expr) {
                V::Unknown(_) => V::text(text),
                value => value,
            },
            None => V::text(text),
        }
    }
}

fn shortened(text: &Name) -> String {
    text.chars().take(40).collect()
}
