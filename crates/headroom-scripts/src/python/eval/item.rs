//! Items, elements, and what changes lists, dictionaries, instances and objects.

use super::value::{Id, Name, V};
use super::{Cell, Machine};

/// Keys of one dictionary, attributes of one instance.
const MOST_KEYS: usize = 5_000;

impl Machine<'_> {
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
    pub(super) fn unpacks(&self, index: usize) -> bool {
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
    pub(super) fn keeps(&self, id: Id) -> bool {
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

    pub(super) fn remember(&mut self, index: usize, path: String, value: V) {
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

    pub(super) fn record_assignment(&mut self, written: &dyn Fn() -> String, value: &V) {
        if self.out.assigned.len() < 2_000 {
            let value = self.value(value);
            self.out.assigned.push((written(), value));
        }
    }
}

/// A variable of the environment that is read without a default.
pub fn environment(key: &str) -> V {
    match key {
        "RANK" | "LOCAL_RANK" | "NODE_RANK" | "SLURM_PROCID" | "SLURM_LOCALID" => V::text("0"),
        _ => V::unknown(format!("${key} of the environment")),
    }
}
