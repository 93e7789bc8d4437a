//! Attributes, items, and what changes them.

use super::operate::by_name;
use super::value::{Class, FunctionKind, Id, Name, V};
use super::{Cell, Machine};
use std::rc::Rc;

/// Keys of one dictionary, attributes of one instance.
const MOST_KEYS: usize = 5_000;

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
    fn external_attribute(&mut self, path: &Name, name: &Name) -> V {
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

    fn argv(&mut self) -> V {
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

    fn module_attribute(&mut self, at: usize, name: &Name) -> V {
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
    fn object_attribute(&mut self, index: usize, name: &Name) -> V {
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

    fn instance_attribute(&mut self, id: Id, name: &Name, written: &dyn Fn() -> String) -> V {
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
    fn bound(&mut self, on: &V, value: V, owner: Rc<Class>) -> V {
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

    fn class_attribute(&mut self, class: &Rc<Class>, name: &Name) -> V {
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

    fn dict_attribute(&mut self, id: Id, name: &Name) -> V {
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

    fn super_attribute(&mut self, on: &V, class: &Rc<Class>, name: &Name) -> V {
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

    /// The value under a text key.
    pub(super) fn entry(&mut self, id: Id, key: &str) -> Option<V> {
        self.spend(self.entries(id).len() / 16);
        let found = self
            .entries(id)
            .iter()
            .find(|(own, _)| matches!(own, V::Text(own) if **own == *key));
        found.map(|(_, value)| value.clone())
    }

    pub(super) fn item(&mut self, on: &V, at: &V) -> V {
        match (on, at) {
            (V::Dict(id), V::Text(key)) => {
                let (id, key) = (*id, key.clone());
                match self.entry(id, &key) {
                    Some(value) => self.resolved(value),
                    None if id == self.environment => environment(&key),
                    None => V::unknown(format!("no key {key}")),
                }
            }
            (V::Dict(id), key) => {
                self.spend(self.entries(*id).len() / 4);
                let entries = self.entries(*id).iter();
                let mut found = entries.filter(|(own, _)| self.equal(own, key) == Some(true));
                match found.next() {
                    Some((_, value)) => value.clone(),
                    None => self.why(key),
                }
            }
            (V::List(id), V::Int(at)) => {
                let items = self.items(*id);
                let length = items.len() as i128;
                let at = if *at < 0 { at + length } else { *at };
                let item = usize::try_from(at).ok().and_then(|at| items.get(at));
                match item {
                    Some(item) => item.clone(),
                    None if self.argv == Some(*id) => {
                        let argument = format!("argument {at}");
                        self.missing(&argument);
                        V::unknown(format!("{argument} was not given"))
                    }
                    None => V::unknown("no such element"),
                }
            }
            (V::Instance(id), V::Text(name)) => {
                let name = name.clone();
                self.instance_attribute(*id, &name, &|| name.to_string())
            }
            (V::Object(index), V::Int(0)) if self.unpacks(*index) => on.clone(),
            (V::Object(index), at) => {
                let shown = self.shown(at).unwrap_or_default();
                self.part(*index, &format!("[{shown}]"))
            }
            (V::Part(index, path), at) => {
                let shown = self.shown(at).unwrap_or_default();
                self.part(*index, &format!("{path}[{shown}]"))
            }
            (V::Text(text), V::Int(at)) => {
                let length = text.chars().count() as i128;
                self.spend(text.len() / 16);
                let at = if *at < 0 { at + length } else { *at };
                let letter = usize::try_from(at).ok().and_then(|at| text.chars().nth(at));
                match letter {
                    Some(letter) => V::text(letter.to_string()),
                    None => V::unknown("no such letter"),
                }
            }
            // `list[int]`, `Optional[str]`.
            (V::Name(_) | V::Builtin(_) | V::Class(_), _) => on.clone(),
            (V::Unknown(reason), _) | (_, V::Unknown(reason)) => V::Unknown(reason.clone()),
            (V::Absent(option), _) => V::unknown(format!("{option} was not given")),
            _ => V::unknown("an element"),
        }
    }

    /// Whether a call returns several things of which the first one is the object meant.
    fn unpacks(&self, index: usize) -> bool {
        let path = self.out.calls.get(index).map_or("", |call| &call.path);
        path.ends_with(".from_pretrained") || path.ends_with("initialize")
    }

    pub(super) fn slice(&mut self, on: &V, bounds: &[Option<V>; 3]) -> V {
        let number = |value: &Option<V>| match value {
            None | Some(V::None) => Ok(None),
            Some(value) => value.int().map(Some).ok_or(()),
        };
        let [start, end, step] = bounds;
        let (Ok(start), Ok(end), Ok(step)) = (number(start), number(end), number(step)) else {
            return V::unknown("a slice");
        };
        let items: Vec<V> = match on {
            V::List(id) => self.items(*id).to_vec(),
            V::Text(text) => text
                .chars()
                .map(|letter| V::text(letter.to_string()))
                .collect(),
            V::Object(index) => return V::Part(*index, "[:]".into()),
            V::Unknown(_) | V::Part(..) => return on.clone(),
            _ => return V::unknown("a slice"),
        };
        self.spend(items.len());
        let length = items.len() as i128;
        let place = |bound: Option<i128>, default: i128| match bound {
            None => default,
            Some(at) if at < 0 => at.saturating_add(length).clamp(0, length),
            Some(at) => at.min(length),
        };
        let step = step.unwrap_or(1);
        let picked: Vec<V> = if step == -1 && start.is_none() && end.is_none() {
            items.into_iter().rev().collect()
        } else if step < 1 {
            return V::unknown("a slice");
        } else {
            let (start, end) = (place(start, 0), place(end, length));
            let step = usize::try_from(step).unwrap_or(usize::MAX);
            let taken = usize::try_from((end - start).max(0)).unwrap_or(0);
            let start = usize::try_from(start).unwrap_or(0);
            items
                .into_iter()
                .skip(start)
                .take(taken)
                .step_by(step)
                .collect()
        };
        match on {
            V::List(id) => {
                let kind = self.list_kind(*id);
                self.sequence(kind, picked)
            }
            _ => {
                let letters = picked.iter().filter_map(|letter| match letter {
                    V::Text(letter) => Some(&**letter),
                    _ => None,
                });
                V::text(letters.collect::<String>())
            }
        }
    }

    /// The elements of what is known to the last one.
    pub(super) fn elements(&mut self, value: &V) -> Option<Vec<V>> {
        let items = match value {
            V::List(id) => self.items(*id).to_vec(),
            V::Dict(id) => self
                .entries(*id)
                .iter()
                .map(|(key, _)| key.clone())
                .collect(),
            V::Text(text) if text.len() <= 200 => text
                .chars()
                .map(|letter| V::text(letter.to_string()))
                .collect(),
            _ => return None,
        };
        self.spend(items.len());
        Some(items)
    }

    /// An element of what is not known.
    pub(super) fn element_of(&mut self, value: &V) -> V {
        match value {
            V::Object(index) => V::Part(*index, "[]".into()),
            V::Part(index, path) => self.part(*index, &format!("{path}[]")),
            V::Unknown(reason) => V::Unknown(reason.clone()),
            V::Name(path) => V::Unknown(path.clone()),
            _ => V::unknown("an element"),
        }
    }

    pub(super) fn extend(&mut self, id: Id, more: Vec<V>) {
        self.spend(more.len());
        if let Some(Cell::List(_, items)) = self.heap.get_mut(id)
            && items.len() + more.len() <= MOST_KEYS
        {
            items.extend(more);
        }
    }

    pub(super) fn update(&mut self, id: Id, other: Id) {
        let entries = self.entries(other).to_vec();
        for (key, value) in entries {
            self.insert(id, key, value);
        }
    }

    /// `d[key] = value`; under an unknown condition what was there before stays.
    pub(super) fn insert(&mut self, id: Id, key: V, value: V) {
        if !self.spend(1 + self.entries(id).len() / 8) {
            return;
        }
        let at = match &key {
            V::Text(key) => self
                .entries(id)
                .iter()
                .position(|(own, _)| matches!(own, V::Text(own) if own == key)),
            key => self
                .entries(id)
                .iter()
                .position(|(own, _)| self.equal(own, key) == Some(true)),
        };
        let kept = self.keeps(id);
        let Some(Cell::Dict(entries)) = self.heap.get_mut(id) else {
            return;
        };
        let Some(at) = at else {
            if entries.len() < MOST_KEYS {
                entries.push((key, value));
            }
            return;
        };
        if let Some((_, old)) = entries.get_mut(at)
            && (!kept || old.says_nothing())
        {
            *old = value;
        }
    }

    /// Whether something older than the unknown condition around it is changed.
    fn keeps(&self, id: Id) -> bool {
        self.conditions.first().is_some_and(|mark| id < *mark)
    }

    pub(super) fn set_item(&mut self, on: &V, at: V, value: V, written: &dyn Fn() -> String) {
        match on {
            V::Dict(id) => {
                if *id == self.environment {
                    self.record_assignment(written, &value);
                }
                self.insert(*id, at, value);
            }
            V::List(id) => {
                if let (Some(at), Some(Cell::List(_, items))) = (at.int(), self.heap.get_mut(*id)) {
                    let at = if at < 0 { at + items.len() as i128 } else { at };
                    let item = usize::try_from(at).ok().and_then(|at| items.get_mut(at));
                    if let Some(item) = item {
                        *item = value;
                    }
                }
            }
            V::Instance(id) => {
                if let V::Text(name) = at {
                    self.set_on_instance(*id, &name, value);
                }
            }
            V::Object(_) | V::Part(..) | V::Unknown(_) => {
                let shown = self.shown(&at).unwrap_or_default();
                if let V::Object(index) = on {
                    self.remember(*index, format!("[{shown}]"), value.clone());
                }
                self.record_assignment(written, &value);
            }
            _ => {}
        }
    }

    pub(super) fn set_attribute(
        &mut self,
        on: &V,
        name: &Name,
        value: V,
        written: &dyn Fn() -> String,
    ) {
        match on {
            V::Instance(id) => {
                let object = match self.heap.get(*id) {
                    Some(Cell::Instance(instance)) => instance.object,
                    _ => None,
                };
                if object.is_some() && !matches!(value, V::Function(_)) {
                    self.record_assignment(written, &value);
                }
                self.set_on_instance(*id, name, value);
            }
            V::Dict(id) => self.insert(*id, V::Text(name.clone()), value),
            V::Object(index) => {
                self.remember(*index, format!(".{name}"), value.clone());
                self.record_assignment(written, &value);
            }
            V::Part(index, path) => {
                self.remember(*index, format!("{path}.{name}"), value.clone());
                self.record_assignment(written, &value);
            }
            V::Module(at) => {
                if let Some(scope) = self.modules.get(*at).map(|module| module.scope) {
                    self.bind_in(scope, name, value);
                }
            }
            V::Unknown(_) | V::Name(_) => self.record_assignment(written, &value),
            _ => {}
        }
    }

    fn remember(&mut self, index: usize, path: String, value: V) {
        let key = (index, path.into());
        let known = self.set.get(&key).is_some_and(|old| !old.says_nothing());
        if self.conditions.is_empty() || !known {
            self.set.insert(key, value);
        }
    }

    pub(super) fn set_on_instance(&mut self, id: Id, name: &Name, value: V) {
        let kept = self.keeps(id);
        self.spend(1 + self.attributes(id).len() / 16);
        let Some(Cell::Instance(instance)) = self.heap.get_mut(id) else {
            return;
        };
        let length = instance.attributes.len();
        match instance.attributes.iter_mut().find(|(own, _)| own == name) {
            Some((_, old)) if kept && !old.says_nothing() => {}
            Some((_, old)) => *old = value,
            None if length < MOST_KEYS => instance.attributes.push((name.clone(), value)),
            None => {}
        }
    }

    fn record_assignment(&mut self, written: &dyn Fn() -> String, value: &V) {
        if self.out.assigned.len() < 2_000 {
            let value = self.value(value);
            self.out.assigned.push((written(), value));
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

/// A variable of the environment that is read without a default.
fn environment(key: &str) -> V {
    match key {
        "RANK" | "LOCAL_RANK" | "NODE_RANK" | "SLURM_PROCID" | "SLURM_LOCALID" => V::text("0"),
        _ => V::unknown(format!("${key} of the environment")),
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
