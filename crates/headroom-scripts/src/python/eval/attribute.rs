//! Attributes, items, and what changes them.

use super::operate::by_name;
use super::value::{Class, FunctionKind, Id, Name, V};
use super::{Cell, Machine};
use std::rc::Rc;

/// What scripts that ask for torch's version find.
const TORCH: &str = "2.6.0";

impl Machine<'_> {
    pub(super) fn attribute(&mut self, on: &V, name: &Name, written: &dyn Fn() -> String) -> V {
        match on {
            V::Name(path) => self.external_attribute(path, name),
            V::Module(at) => self.module_attribute(*at, name),
            V::Object(index) => self.object_attribute(*index, name),
            V::Part(index, path) => self.part(*index, &format!("{path}.{name}")),
            V::Instance(id) => self.instance_attribute(*id, name, written),
            V::Class(class) => self.class_attribute(class, name),
            V::Dict(id) => self.dict_attribute(*id, name),
            V::Super(of) => self.super_attribute(&of.0, &of.1, name),
            V::Function(closure) if &**name == "__name__" => V::Text(closure.function.name.clone()),
            V::Partial(partial) if &**name == "func" => partial.0.clone(),
            V::Unknown(reason) => V::Unknown(reason.clone()),
            V::Absent(option) => V::unknown(format!("{option} was not given")),
            V::None => V::unknown(format!("{} of None", written())),
            V::Text(text) => match &**name {
                "value" => on.clone(),
                "name" | "stem" | "suffix" | "parent" => super::method::path_part(text, name),
                _ => V::PlainMethod(Rc::new((on.clone(), name.clone()))),
            },
            V::Int(_) | V::Float(_) | V::Bool(_) if &**name == "value" => on.clone(),
            _ => V::PlainMethod(Rc::new((on.clone(), name.clone()))),
        }
    }

    /// An attribute of an external module.
    pub(super) fn external_attribute(&mut self, path: &Name, name: &Name) -> V {
        match (&**path, &**name) {
            ("os", "environ") => V::Dict(self.environment),
            ("sys", "argv") => self.argv(),
            ("sys", "platform") => V::text("linux"),
            ("os", "name") => V::text("posix"),
            ("torch", "__version__") => V::text(TORCH),
            ("wandb", "config") if self.wandb.is_some() => self.wandb.clone().unwrap_or(V::None),
            ("absl.flags", "FLAGS") => V::Dict(self.absl_flags()),
            _ => V::text_name(path, name),
        }
    }

    pub(super) fn argv(&mut self) -> V {
        if let Some(id) = self.argv {
            return V::List(id);
        }
        let mut words = vec![V::text("main.py")];
        words.extend(self.arguments.iter().map(|word| V::text(word.as_str())));
        let argv = self.list(words);
        if let V::List(id) = argv {
            self.argv = Some(id);
        }
        argv
    }

    pub(super) fn module_attribute(&mut self, at: usize, name: &Name) -> V {
        let Some(module) = self.modules.get(at) else {
            return V::unknown(name.clone());
        };
        let scope = self.scopes.get(module.scope);
        match scope.and_then(|scope| scope.names.get(name)) {
            Some(value) => value.clone(),
            None => {
                let stem = module.path.trim_end_matches(".py").replace('/', ".");
                let stem = stem.trim_end_matches(".__init__");
                V::Name(format!("{stem}.{name}").into())
            }
        }
    }

    /// An attribute of what an external call returned: what was set, what its constructor was given, or a part of it.
    pub(super) fn object_attribute(&mut self, index: usize, name: &Name) -> V {
        if let Some(value) = self.set.get(&(index, format!(".{name}").into())) {
            return value.clone();
        }
        if let Some(given) = self.given.get(index)
            && let Some(value) = given.named(name)
        {
            return value.clone();
        }
        let path = self.out.calls.get(index).map_or("", |call| &call.path);
        if let Some(default) = super::defaults::of_field(path, name) {
            return default;
        }
        if let Some(known) = by_name(name) {
            return known;
        }
        V::Part(index, format!(".{name}").into())
    }

    /// Something reached from an object, such as `.config.hidden_size`.
    pub(super) fn part(&mut self, index: usize, path: &str) -> V {
        if let Some(value) = self.set.get(&(index, path.into())) {
            return value.clone();
        }
        let last = path.rsplit('.').next().unwrap_or("");
        if let Some(known) = by_name(last) {
            return known;
        }
        if path.len() > 200 {
            return V::unknown("a long chain");
        }
        V::Part(index, path.into())
    }

    pub(super) fn instance_attribute(
        &mut self,
        id: Id,
        name: &Name,
        written: &dyn Fn() -> String,
    ) -> V {
        self.spend(self.attributes(id).len() / 16);
        let Some(Cell::Instance(instance)) = self.heap.get(id) else {
            return V::unknown(written());
        };
        if let Some((_, value)) = instance.attributes.iter().find(|(own, _)| own == name) {
            let value = value.clone();
            return self.resolved(value);
        }
        if &**name == "__dict__" {
            let entries = instance.attributes.iter();
            let entries = entries
                .map(|(name, value)| (V::Text(name.clone()), value.clone()))
                .collect();
            return self.dict(entries);
        }
        let (class, object) = (instance.class.clone(), instance.object);
        if let Some(class) = &class {
            if &**name == "__class__" {
                return V::Class(class.clone());
            }
            if let Some((value, owner)) = class.find(name) {
                return self.bound(&V::Instance(id), value, owner);
            }
        }
        match (object, class) {
            (Some(object), _) => self.object_attribute(object, name),
            (None, Some(class)) => V::unknown(format!("{}.{name}", class.name)),
            (None, None) => match &**name {
                "keys" | "items" | "values" | "get" | "update" | "pop" | "to_dict" => {
                    V::PlainMethod(Rc::new((V::Instance(id), name.clone())))
                }
                _ => V::unknown(written()),
            },
        }
    }

    /// What a class gives when it is asked for on an instance or on the class.
    pub(super) fn bound(&mut self, on: &V, value: V, owner: Rc<Class>) -> V {
        let V::Function(closure) = value else {
            return value;
        };
        match closure.kind {
            FunctionKind::Static => V::Function(closure),
            FunctionKind::Class => {
                let class = match on {
                    V::Instance(id) => match self.heap.get(*id) {
                        Some(Cell::Instance(instance)) => instance.class.clone(),
                        _ => None,
                    },
                    V::Class(class) => Some(class.clone()),
                    _ => None,
                };
                let class = class.unwrap_or_else(|| owner.clone());
                V::Method(Rc::new((V::Class(class), closure, owner)))
            }
            FunctionKind::Property => {
                self.call_method(on.clone(), &closure, owner, super::value::Args::default())
            }
            FunctionKind::Plain => match on {
                V::Class(_) => V::Function(closure),
                _ => V::Method(Rc::new((on.clone(), closure, owner))),
            },
        }
    }

    pub(super) fn class_attribute(&mut self, class: &Rc<Class>, name: &Name) -> V {
        if let Some((value, owner)) = class.find(name) {
            return match value {
                V::Function(closure) if closure.kind != FunctionKind::Property => {
                    self.bound(&V::Class(class.clone()), V::Function(closure), owner)
                }
                value => value,
            };
        }
        if &**name == "__name__" {
            return V::Text(class.name.clone());
        }
        match class.external_base() {
            Some(path) => V::text_name(&path, name),
            None => V::unknown(format!("{}.{name}", class.name)),
        }
    }

    pub(super) fn dict_attribute(&mut self, id: Id, name: &Name) -> V {
        const METHODS: [&str; 10] = [
            "keys",
            "items",
            "values",
            "get",
            "update",
            "pop",
            "setdefault",
            "copy",
            "to_dict",
            "merge_from_dict",
        ];
        if let Some(value) = self.entry(id, name) {
            return self.resolved(value);
        }
        if METHODS.contains(&&**name) || id == self.environment {
            return V::PlainMethod(Rc::new((V::Dict(id), name.clone())));
        }
        match self.entry(id, "**") {
            Some(spread) => self.why(&spread),
            None => V::PlainMethod(Rc::new((V::Dict(id), name.clone()))),
        }
    }

    pub(super) fn super_attribute(&mut self, on: &V, class: &Rc<Class>, name: &Name) -> V {
        for base in &class.bases {
            match base {
                V::Class(base) => {
                    if let Some((value, owner)) = base.find(name) {
                        return self.bound(on, value, owner);
                    }
                    if let Some(path) = base.external_base() {
                        return V::text_name(&path, name);
                    }
                }
                V::Name(path) => return V::text_name(path, name),
                _ => {}
            }
        }
        V::Builtin("object")
    }

    pub(super) fn attributes(&self, id: Id) -> &[(Name, V)] {
        match self.heap.get(id) {
            Some(Cell::Instance(instance)) => &instance.attributes,
            _ => &[],
        }
    }

    /// A module's names, as `from module import *` takes them.
    pub(super) fn public_names(&self, at: usize) -> Vec<(Name, V)> {
        let scope = self
            .modules
            .get(at)
            .and_then(|module| self.scopes.get(module.scope));
        let names = scope.into_iter().flat_map(|scope| &scope.names);
        let mut names: Vec<(Name, V)> = names
            .filter(|(name, _)| !name.starts_with('_') || &***name == "_base_")
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        names.sort_by(|a, b| a.0.cmp(&b.0));
        names
    }
}

impl V {
    /// A name inside an external module or class.
    pub(super) fn text_name(path: &str, name: &str) -> Self {
        if path.len() > 200 {
            return Self::unknown("a long name");
        }
        Self::Name(format!("{path}.{name}").into())
    }
}
