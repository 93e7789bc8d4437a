//! Classes: their attributes, dataclasses, instances.

use std::collections::HashMap;
use std::rc::Rc;

use super::value::{Args, Class, Field, Hint, Id, Instance, Name, V, annotated_class, hint};
use super::{Cell, DEEPEST, Machine};
use crate::python::syntax::ast::{ClassDef, Expr, Stmt, written};

/// Classes above a class, at whatever distance.
const MOST_ANCESTORS: usize = 64;

/// Fields of a dataclass.
const MOST_FIELDS: usize = 2_000;

impl Machine<'_> {
    pub(super) fn define_class(&mut self, class: &Rc<ClassDef>) {
        let mut bases = Vec::new();
        for base in &class.bases {
            bases.push(self.eval(&base.value));
        }
        let mut dataclass = false;
        for decorator in &class.decorators {
            let callee = match decorator {
                Expr::Call(callee, _) => callee,
                other => other,
            };
            let path = written(callee);
            let last = path.rsplit('.').next().unwrap_or("").to_string();
            dataclass |=
                last.contains("dataclass") || matches!(&*last, "define" | "s" | "frozen" | "chz");
            self.eval(decorator);
        }
        let scope = self.new_scope(self.scope);
        let before = std::mem::replace(&mut self.scope, scope);
        let mut fields = Vec::new();
        if self.depth < DEEPEST {
            self.depth += 1;
            self.class_body(&class.body, scope, &mut fields);
            self.depth -= 1;
        }
        self.scope = before;
        let names = self.scopes.get(scope).map(|scope| scope.names.clone());
        let attributes: HashMap<Name, V> = names.unwrap_or_default();
        self.spend(attributes.len());
        let inherits = bases.iter().any(|base| match base {
            V::Class(base) => base.dataclass,
            V::Name(path) => {
                let last = path.rsplit('.').next().unwrap_or("");
                matches!(
                    last,
                    "BaseModel"
                        | "NamedTuple"
                        | "BaseSettings"
                        | "TypedDict"
                        | "FlexibleArgumentParser"
                        | "Tap"
                )
            }
            _ => false,
        });
        let ancestors = ancestors(&bases);
        self.spend(8 * ancestors.len());
        let value = V::Class(Rc::new(Class {
            name: class.name.clone(),
            bases,
            ancestors,
            attributes,
            dataclass: dataclass || inherits,
            fields,
        }));
        self.bind(&class.name, value);
    }

    fn class_body(&mut self, body: &[Stmt], scope: usize, fields: &mut Vec<Field>) {
        for statement in body {
            let Stmt::Annotated(Expr::Name(name), annotation, value) = statement else {
                self.block(std::slice::from_ref(statement));
                continue;
            };
            if matches!(annotation, Expr::Index(of, _) if written(of).ends_with("ClassVar")) {
                continue;
            }
            let value = value.as_ref().map(|value| self.eval(value));
            let mut field = Field {
                name: name.clone(),
                default: value.clone(),
                factory: None,
                hint: hint(annotation),
                scope,
                class: annotated_class(annotation),
            };
            if let Some(V::Dict(id)) = &value
                && let Some(V::Bool(true)) = self.entry(*id, "<field>")
            {
                field.default = self.entry(*id, "default");
                field.factory = self.entry(*id, "default_factory");
            }
            if field.hint == Hint::Any
                && let Some(default) = &field.default
            {
                field.hint = hint_of(default);
            }
            if let Some(default) = &field.default {
                self.bind(name, default.clone());
            }
            fields.push(field);
        }
    }

    /// The fields of a dataclass, those of its bases first.
    pub(super) fn fields(&mut self, class: &Rc<Class>) -> Vec<Field> {
        let mut all: Vec<Field> = Vec::new();
        for class in class.ancestors.iter().rev().chain([class]) {
            for field in &class.fields {
                let length = all.len();
                match all.iter_mut().find(|own| own.name == field.name) {
                    Some(own) => *own = field.clone(),
                    None if length < MOST_FIELDS => all.push(field.clone()),
                    None => {}
                }
            }
            self.spend(class.fields.len() * (1 + all.len() / 16));
        }
        all
    }

    pub(super) fn new_instance(
        &mut self,
        class: Option<Rc<Class>>,
        attributes: Vec<(Name, V)>,
    ) -> V {
        self.spend(1 + attributes.len());
        self.heap.push(Cell::Instance(Instance {
            class,
            attributes,
            object: None,
        }));
        V::Instance(self.heap.len() - 1)
    }

    pub(super) fn class_of(&self, id: Id) -> (Option<Rc<Class>>, Option<usize>) {
        match self.heap.get(id) {
            Some(Cell::Instance(instance)) => (instance.class.clone(), instance.object),
            _ => (None, None),
        }
    }

    pub(super) fn instantiate(&mut self, class: &Rc<Class>, args: Args) -> V {
        let base = class.external_base();
        if let Some((V::Function(init), owner)) = class.find("__init__") {
            let instance = self.new_instance(Some(class.clone()), Vec::new());
            let V::Instance(id) = instance else {
                return instance;
            };
            let outer = args.clone();
            self.call_method(instance.clone(), &init, owner, args);
            if let Some(path) = base
                && self.class_of(id).1.is_none()
            {
                self.attach(id, &path, outer);
            }
            return instance;
        }
        if let Some(path) = &base
            && (path.ends_with(".Enum") || path.ends_with("StrEnum") || path.ends_with("IntEnum"))
        {
            return args.plain.into_iter().next().unwrap_or(V::None);
        }
        if class.dataclass {
            return self.dataclass_instance(class, args);
        }
        let instance = self.new_instance(Some(class.clone()), Vec::new());
        if let (Some(path), V::Instance(id)) = (base, &instance) {
            self.attach(*id, &path, args);
        }
        instance
    }

    /// Records the construction of an external base class, and makes the instance that object.
    pub(super) fn attach(&mut self, id: Id, path: &str, args: Args) {
        let name = self.class_of(id).0.map(|class| class.name.clone());
        let object = self.record(path, None, args, name);
        if let (V::Object(index), Some(Cell::Instance(instance))) = (object, self.heap.get_mut(id))
        {
            instance.object = Some(index);
            self.instances.insert(index, id);
        }
    }

    pub(super) fn default_of(&mut self, field: &Field) -> Option<V> {
        match (&field.default, &field.factory) {
            (Some(value), _) => Some(value.clone()),
            (None, Some(factory)) => {
                let factory = factory.clone();
                Some(self.call(&factory, Args::default(), &|| "default_factory".into()))
            }
            (None, None) => None,
        }
    }

    fn dataclass_instance(&mut self, class: &Rc<Class>, args: Args) -> V {
        let fields = self.fields(class);
        self.spend(fields.len());
        let mut plain = args.plain.into_iter();
        let mut named = args.named;
        let mut attributes = Vec::new();
        for field in &fields {
            let by_name = named.iter().position(|(name, _)| *name == field.name);
            let given = match by_name {
                Some(at) => Some(named.remove(at).1),
                None => plain.next(),
            };
            let value = match given {
                Some(value) => value,
                None => self
                    .default_of(field)
                    .unwrap_or_else(|| match &args.unknown {
                        Some(V::Unknown(reason)) => V::Unknown(reason.clone()),
                        _ => V::unknown(format!("{}.{} was not given", class.name, field.name)),
                    }),
            };
            attributes.push((field.name.clone(), value));
        }
        self.finish_dataclass(class, attributes, named)
    }

    /// An instance of a dataclass with its values, `__post_init__` run; what it does not know goes to its external base.
    pub(super) fn finish_dataclass(
        &mut self,
        class: &Rc<Class>,
        attributes: Vec<(Name, V)>,
        more: Vec<(Name, V)>,
    ) -> V {
        let base = class.external_base();
        let base =
            base.filter(|path| !path.ends_with("BaseModel") && !path.ends_with("NamedTuple"));
        let mut attributes = attributes;
        attributes.extend(more);
        let kwargs = attributes.clone();
        let instance = self.new_instance(Some(class.clone()), attributes);
        let V::Instance(id) = instance else {
            return instance;
        };
        if let Some(path) = base {
            let args = Args {
                named: kwargs,
                ..Args::default()
            };
            self.attach(id, &path, args);
        }
        if let Some((V::Function(init), owner)) = class.find("__post_init__") {
            self.call_method(instance.clone(), &init, owner, Args::default());
        }
        instance
    }

    /// `super()` in a method.
    pub(super) fn super_of(&mut self) -> V {
        let frame = self
            .frames
            .iter()
            .rev()
            .find_map(|frame| frame.method.clone());
        match frame {
            Some(method) => V::Super(Rc::new(method)),
            None => V::unknown("super()"),
        }
    }

    /// `super().__init__(…)` of an external base: the instance is that object from here on.
    pub(super) fn initialize_base(&mut self, path: &str, args: Args) -> Option<V> {
        let class = path.strip_suffix(".__init__")?;
        let (on, _) = self
            .frames
            .iter()
            .rev()
            .find_map(|frame| frame.method.clone())?;
        let V::Instance(id) = on else { return None };
        if self.class_of(id).1.is_some() {
            return Some(V::None);
        }
        let mut args = args;
        if matches!(args.plain.first(), Some(V::Instance(own)) if *own == id) {
            args.plain.remove(0);
        }
        self.attach(id, class, args);
        Some(V::None)
    }
}

impl Class {
    /// An attribute of a class or of its bases, and the class that has it.
    pub(super) fn find(self: &Rc<Self>, name: &str) -> Option<(V, Rc<Self>)> {
        std::iter::once(self)
            .chain(&self.ancestors)
            .find_map(|class| Some((class.attributes.get(name)?.clone(), class.clone())))
    }

    /// The external class that a class extends, at whatever distance.
    pub(super) fn external_base(self: &Rc<Self>) -> Option<Name> {
        std::iter::once(self)
            .chain(&self.ancestors)
            .flat_map(|class| &class.bases)
            .find_map(|base| match base {
                V::Name(path) if !is_plain_base(path) => Some(path.clone()),
                _ => None,
            })
    }
}

/// The program's own classes above, nearest first.
fn ancestors(bases: &[V]) -> Vec<Rc<Class>> {
    let mut all: Vec<Rc<Class>> = Vec::new();
    for base in bases {
        let V::Class(base) = base else { continue };
        for class in std::iter::once(base).chain(&base.ancestors) {
            if all.len() < MOST_ANCESTORS && !all.iter().any(|own| Rc::ptr_eq(own, class)) {
                all.push(class.clone());
            }
        }
    }
    all
}

fn is_plain_base(path: &str) -> bool {
    matches!(
        path,
        "object" | "abc.ABC" | "typing.Generic" | "typing.Protocol"
    )
}

fn hint_of(value: &V) -> Hint {
    match value {
        V::Bool(_) => Hint::Bool,
        V::Int(_) => Hint::Int,
        V::Float(_) => Hint::Float,
        V::Text(_) => Hint::Text,
        V::List(_) => Hint::Many,
        _ => Hint::Any,
    }
}
