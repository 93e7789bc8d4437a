//! Variables that commands set: assignments and declarations.

use super::state::Shell;
use super::syntax::{Assigned, Assignment, Raw};
use super::value::{Value, Variable};
use std::collections::BTreeMap;
use std::rc::Rc;

impl Shell<'_> {
    pub fn assign(&mut self, assignment: &Assignment) {
        let Assignment {
            name,
            index,
            append,
            value,
        } = assignment;
        match value {
            Assigned::Text(raw) => {
                let mut value = self.single(raw);
                if let Some(index) = index {
                    self.set_element(name, index, value);
                    return;
                }
                if *append {
                    match self.variables.get(name) {
                        Some(Variable::Text(before)) => {
                            value = Value::joined(&[before.clone(), value], "");
                        }
                        Some(Variable::List(before)) => {
                            let mut values = before.to_vec();
                            match values.first_mut() {
                                Some(first) => *first = Value::joined(&[first.clone(), value], ""),
                                None => values.push(value),
                            }
                            self.set(name, Variable::List(Rc::new(values)));
                            return;
                        }
                        _ => {}
                    }
                }
                match self.variables.get(name) {
                    // `A=x` of an array is its first item.
                    Some(Variable::Map(_)) => {}
                    _ => self.set_text(name, value),
                }
            }
            Assigned::List(items) => {
                let keyed = items.iter().any(|(key, _)| key.is_some());
                let is_map = matches!(self.variables.get(name), Some(Variable::Map(_)));
                if is_map || keyed {
                    let mut map = match self.variables.get(name) {
                        Some(Variable::Map(before)) if *append => (**before).clone(),
                        _ => BTreeMap::new(),
                    };
                    for (place, (key, value)) in items.iter().enumerate() {
                        let key = match key {
                            Some(key) => self.single(key).written(),
                            None => place.to_string(),
                        };
                        let value = self.single(value);
                        map.insert(key, value);
                    }
                    self.set(name, Variable::Map(Rc::new(map)));
                    return;
                }
                let mut values = match self.variables.get(name) {
                    Some(variable) if *append => variable.values(),
                    _ => Vec::new(),
                };
                for (_, raw) in items {
                    if self.is_out_of_fuel() {
                        return;
                    }
                    values.extend(self.fields(raw));
                }
                self.set(name, Variable::List(Rc::new(values)));
            }
        }
    }

    fn set_element(&mut self, name: &str, index: &Raw, value: Value) {
        match self.variables.get(name).cloned() {
            Some(Variable::Map(map)) => {
                let key = self.single(index).written();
                let mut map = (*map).clone();
                map.insert(key, value);
                self.set(name, Variable::Map(Rc::new(map)));
            }
            variable => {
                let at = self.arithmetic(index, "index").known();
                let Some(at) = at.and_then(|at| at.parse::<usize>().ok()) else {
                    return;
                };
                let mut values = variable.map_or_else(Vec::new, |variable| variable.values());
                if at > 4096 {
                    return;
                }
                while values.len() <= at {
                    values.push(Value::text(""));
                }
                if let Some(place) = values.get_mut(at) {
                    *place = value;
                }
                self.set(name, Variable::List(Rc::new(values)));
            }
        }
    }

    /// `export`, `declare`, `local`, `readonly`.
    pub(super) fn declare(&mut self, words: &[String], fields: &[Value], declared: &[Assignment]) {
        let command = words.first().map_or("", String::as_str);
        let options: String = words
            .iter()
            .skip(1)
            .filter(|word| word.starts_with('-'))
            .cloned()
            .collect();
        let exports = command == "export" || options.contains('x');
        let local = command == "local"
            || (command != "export" && !self.locals.is_empty() && !options.contains('g'));
        let functions = options.contains('f') || options.contains('p');
        if functions {
            return;
        }
        for (word, field) in words.iter().zip(fields).skip(1) {
            if word.starts_with('-') {
                continue;
            }
            let (name, value) = match word.find('=') {
                Some(at) => (
                    word.get(..at).unwrap_or_default(),
                    Some(field.slice(at + 1, word.len())),
                ),
                None => (word.as_str(), None),
            };
            if local {
                self.localize(name);
            }
            match value {
                Some(value) => self.set_text(name, value),
                None if options.contains('A') => {
                    self.set(name, Variable::Map(Rc::new(BTreeMap::new())));
                }
                None if options.contains('a') => {
                    self.set(name, Variable::List(Rc::new(Vec::new())));
                }
                None if local => self.store(name, None),
                None => {}
            }
            if exports {
                self.exported.insert(name.into());
            }
        }
        for assignment in declared {
            if local {
                self.localize(&assignment.name);
            }
            if options.contains('A')
                && !matches!(self.variables.get(&assignment.name), Some(Variable::Map(_)))
            {
                self.set(&assignment.name, Variable::Map(Rc::new(BTreeMap::new())));
            }
            self.assign(assignment);
            if exports {
                self.exported.insert(assignment.name.clone());
            }
        }
    }
}
