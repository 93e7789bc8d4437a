//! Values while a module is evaluated. Lists, dictionaries and instances live on a heap, since Python shares and changes them.

use std::collections::HashMap;
use std::rc::Rc;

use super::argparse::ArgParser;
use crate::python::syntax::ast::{Expr, Function};

pub type Name = Rc<str>;

/// A place on the heap.
pub type Id = usize;

/// A place among the scopes.
pub type ScopeId = usize;

#[derive(Clone, Debug)]
pub enum V {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(Name),
    List(Id),
    Dict(Id),
    Instance(Id),
    Parser(Id),
    Function(Rc<Closure>),
    Class(Rc<Class>),
    /// A function of a class with what it is called on, and the class that defines it.
    Method(Rc<(V, Rc<Closure>, Rc<Class>)>),
    /// `functools.partial`.
    Partial(Rc<(V, Args)>),
    Builtin(&'static str),
    /// A method of text, list or dictionary.
    PlainMethod(Rc<(V, Name)>),
    /// A module of the program's own files, by its place.
    Module(usize),
    /// What an external call returned.
    Object(usize),
    /// Something reached from what an external call returned, such as `.config.hidden_size`.
    Part(usize, Name),
    /// Something of an external module.
    Name(Name),
    File(Name),
    /// `super()`: what it is called on, and the class whose bases are meant.
    Super(Rc<(V, Rc<Class>)>),
    /// An option that was not given and has no default: `None`, unless something needs it.
    Absent(Name),
    Unknown(Name),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind {
    List,
    Tuple,
    Set,
}

#[derive(Debug)]
pub enum Cell {
    List(ListKind, Vec<V>),
    Dict(Vec<(V, V)>),
    Instance(Instance),
    Parser(Box<ArgParser>),
}

#[derive(Debug)]
pub struct Instance {
    /// `None` for a namespace.
    pub class: Option<Rc<Class>>,
    pub attributes: Vec<(Name, V)>,
    /// The call of its external base class, if it has one.
    pub object: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionKind {
    Plain,
    Static,
    Class,
    Property,
}

/// A decorator, as far as it decides how a function is entered.
#[derive(Debug)]
pub struct Decorator {
    pub path: Name,
    pub args: Args,
}

#[derive(Debug)]
pub struct Closure {
    pub function: Rc<Function>,
    pub scope: ScopeId,
    pub kind: FunctionKind,
    /// Values of the parameters' defaults, in their order.
    pub defaults: Vec<Option<V>>,
    pub decorators: Vec<Decorator>,
}

/// A field of a dataclass.
#[derive(Clone, Debug)]
pub struct Field {
    pub name: Name,
    pub default: Option<V>,
    /// What makes the default.
    pub factory: Option<V>,
    pub hint: Hint,
    /// The scope that its annotation is written in.
    pub scope: ScopeId,
    /// The class that its annotation names.
    pub class: Option<Name>,
}

/// What an annotation says of a command line's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    Bool,
    Int,
    Float,
    Text,
    Many,
    Any,
}

#[derive(Debug)]
pub struct Class {
    pub name: Name,
    pub bases: Vec<V>,
    /// The program's own classes above, nearest first.
    pub ancestors: Vec<Rc<Class>>,
    pub attributes: HashMap<Name, V>,
    /// Annotated names, in their order.
    pub fields: Vec<Field>,
    /// Its instances take the fields as arguments.
    pub dataclass: bool,
}

/// Arguments of a call.
#[derive(Clone, Debug, Default)]
pub struct Args {
    pub plain: Vec<V>,
    pub named: Vec<(Name, V)>,
    /// `**` of what cannot be known.
    pub unknown: Option<V>,
}

impl Args {
    pub fn of(plain: Vec<V>) -> Self {
        Self {
            plain,
            ..Self::default()
        }
    }

    pub fn named(&self, name: &str) -> Option<&V> {
        self.named
            .iter()
            .find(|(own, _)| **own == *name)
            .map(|(_, value)| value)
    }

    /// An argument by place or by name.
    pub fn get(&self, at: usize, name: &str) -> Option<&V> {
        self.named(name).or_else(|| self.plain.get(at))
    }

    pub fn text(&self, at: usize, name: &str) -> Option<&Name> {
        match self.get(at, name)? {
            V::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn set(&mut self, name: &Name, value: V) {
        match self.named.iter_mut().find(|(own, _)| own == name) {
            Some((_, old)) => *old = value,
            None => self.named.push((name.clone(), value)),
        }
    }
}

impl V {
    pub fn text(text: impl Into<Name>) -> Self {
        Self::Text(text.into())
    }

    pub fn unknown(reason: impl Into<Name>) -> Self {
        Self::Unknown(reason.into())
    }

    /// Whether it may be anything, so that another value tells more.
    pub fn says_nothing(&self) -> bool {
        matches!(self, Self::None | Self::Absent(_) | Self::Unknown(_))
    }

    /// A number as Python's arithmetic takes it.
    pub fn int(&self) -> Option<i128> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Bool(value) => Some((*value).into()),
            _ => None,
        }
    }

    pub fn float(&self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(*value),
            other => other.int().map(|value| value as f64),
        }
    }
}

/// What an annotation says.
pub fn hint(annotation: &Expr) -> Hint {
    match annotation {
        Expr::Name(name) | Expr::Attribute(_, name) => named_hint(name),
        Expr::Text(name) => named_hint(name.trim_start_matches("Optional[").trim_end_matches(']')),
        Expr::Index(of, inside) => match &**of {
            Expr::Name(name) | Expr::Attribute(_, name) => match &**name {
                "Optional" => hint(inside),
                "Annotated" | "Union" | "Final" => match &**inside {
                    Expr::Tuple(items) => items.first().map_or(Hint::Any, hint),
                    other => hint(other),
                },
                "List" | "list" | "Tuple" | "tuple" | "Sequence" | "Set" | "set" => Hint::Many,
                _ => Hint::Any,
            },
            _ => Hint::Any,
        },
        Expr::Arithmetic(first, rest) => match hint(first) {
            Hint::Any => rest.first().map_or(Hint::Any, |(_, second)| hint(second)),
            known => known,
        },
        _ => Hint::Any,
    }
}

fn named_hint(name: &str) -> Hint {
    match name {
        "bool" => Hint::Bool,
        "int" => Hint::Int,
        "float" => Hint::Float,
        "str" | "Path" => Hint::Text,
        "list" | "List" | "tuple" => Hint::Many,
        _ => Hint::Any,
    }
}

/// The class that an annotation names: `Config` of `Config`, `Optional[Config]`, `"Config"`.
pub fn annotated_class(annotation: &Expr) -> Option<Name> {
    match annotation {
        Expr::Name(name) | Expr::Text(name) => Some(name.clone()),
        Expr::Index(_, inside) => match &**inside {
            Expr::Tuple(items) => items.first().and_then(annotated_class),
            other => annotated_class(other),
        },
        Expr::Arithmetic(first, _) => annotated_class(first),
        _ => None,
    }
}
