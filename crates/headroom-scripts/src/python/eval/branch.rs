//! Conditions that cannot be known: both ways are evaluated.

use super::value::{Name, V};
use super::{Flow, Machine};
use crate::python::syntax::ast::Expr;

impl Machine<'_> {
    /// `isinstance(module, torch.nn.Linear)`.
    pub(super) fn asks_for_linear(&mut self, test: &Expr) -> bool {
        match test {
            Expr::And(items) => items.iter().take(8).any(|item| self.asks_for_linear(item)),
            Expr::Call(callee, args) => {
                let Some(class) = args.get(1) else {
                    return false;
                };
                if !matches!(&**callee, Expr::Name(name) if &**name == "isinstance") {
                    return false;
                }
                let class = self.eval(&class.value);
                let classes = self.elements(&class).unwrap_or_else(|| vec![class]);
                classes.iter().any(|class| {
                    let path = self.path_of(class);
                    path.is_some_and(|path| path.contains("Linear"))
                })
            }
            _ => false,
        }
    }

    /// Both ways of a condition that cannot be known.
    pub(super) fn either(
        &mut self,
        condition: &V,
        why: &dyn Fn() -> String,
        then: impl FnOnce(&mut Self) -> Flow,
        other: impl FnOnce(&mut Self) -> Flow,
    ) -> Flow {
        self.conditions.push(self.heap.len());
        let start = self.changes.len();
        let first = then(self);
        let changed = self.undo(start);
        let second = other(self);
        let also = self.undo(start);
        self.conditions.pop();
        if matches!(first, Flow::Stop) || matches!(second, Flow::Stop) {
            return Flow::Stop;
        }
        let goes = |flow: &Flow| matches!(flow, Flow::Next);
        match (goes(&first), goes(&second)) {
            (true, true) => self.merge(condition, why, changed, also),
            (true, false) => self.redo(changed),
            (false, _) => self.redo(also),
        }
        match (first, second) {
            (Flow::Return(value), Flow::Return(other)) => {
                let value = if value.says_nothing() { other } else { value };
                Flow::Return(value)
            }
            (Flow::Return(value), _) | (_, Flow::Return(value)) => {
                if let Some(frame) = self.frames.last_mut()
                    && frame.fallback.as_ref().is_none_or(V::says_nothing)
                {
                    frame.fallback = Some(value);
                }
                Flow::Next
            }
            _ => Flow::Next,
        }
    }

    /// Takes back assignments since a mark, and returns what they had made.
    pub(super) fn undo(&mut self, start: usize) -> Vec<(usize, Name, V, Option<V>)> {
        let mut made: Vec<(usize, Name, V, Option<V>)> = Vec::new();
        let changes = self.changes.split_off(start);
        self.spend(changes.len());
        for (scope, name, old) in changes.into_iter().rev() {
            let Some(found) = self.scopes.get_mut(scope) else {
                continue;
            };
            let now = match &old {
                Some(old) => found.names.insert(name.clone(), old.clone()),
                None => found.names.remove(&name),
            };
            if let Some(now) = now {
                made.push((scope, name, now, old));
            }
        }
        made.reverse();
        // Of several assignments to one name the last one made the value, and the first one has what was before.
        let mut last: Vec<(usize, Name, V, Option<V>)> = Vec::new();
        let mut places = std::collections::HashMap::new();
        for (scope, name, now, old) in made {
            match places.get(&(scope, name.clone())) {
                Some(&at) => {
                    if let Some(entry) = last.get_mut(at) {
                        let entry: &mut (usize, Name, V, Option<V>) = entry;
                        entry.2 = now;
                    }
                }
                None => {
                    places.insert((scope, name.clone()), last.len());
                    last.push((scope, name, now, old));
                }
            }
        }
        last
    }

    pub(super) fn redo(&mut self, changed: Vec<(usize, Name, V, Option<V>)>) {
        for (scope, name, value, _) in changed {
            self.bind_in(scope, &name, value);
        }
    }

    pub(super) fn merge(
        &mut self,
        condition: &V,
        why: &dyn Fn() -> String,
        first: Vec<(usize, Name, V, Option<V>)>,
        second: Vec<(usize, Name, V, Option<V>)>,
    ) {
        if first.is_empty() && second.is_empty() {
            return;
        }
        let mut others: std::collections::HashMap<(usize, Name), V> = second
            .iter()
            .map(|(scope, name, value, _)| ((*scope, name.clone()), value.clone()))
            .collect();
        let mut assumed = Vec::new();
        for (scope, name, value, old) in first {
            let other = others.remove(&(scope, name.clone()));
            let value = match (other, old) {
                (Some(other), _) if value.says_nothing() => other,
                (Some(_), _) => {
                    assumed.push(name.to_string());
                    value
                }
                (None, Some(old)) if !old.says_nothing() => {
                    assumed.push(name.to_string());
                    old
                }
                (None, _) => value,
            };
            self.bind_in(scope, &name, value);
        }
        for (scope, name, value, old) in second {
            if others.remove(&(scope, name.clone())).is_none() {
                continue;
            }
            let value = match old {
                Some(old) if !old.says_nothing() => {
                    assumed.push(name.to_string());
                    old
                }
                _ => value,
            };
            self.bind_in(scope, &name, value);
        }
        if !assumed.is_empty() {
            assumed.truncate(8);
            let reason = match condition {
                V::Unknown(reason) => format!(" ({reason})"),
                _ => String::new(),
            };
            self.assume(format!(
                "{} under the condition `{}`{reason}",
                assumed.join(", "),
                why()
            ));
        }
    }
}
