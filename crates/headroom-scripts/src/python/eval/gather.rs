//! Python's own functions that make and reduce collections.

use super::Machine;
use super::value::{Args, ListKind, V};
use crate::python::syntax::ast::Op;

/// Elements of a `range` that is made.
const LONGEST_RANGE: i128 = 1_000;

impl Machine<'_> {
    pub(super) fn make_dict(&mut self, args: Args) -> V {
        let dict = self.dict(Vec::new());
        let V::Dict(id) = dict else { return dict };
        match args.plain.first() {
            Some(V::Dict(other)) => self.update(id, *other),
            Some(pairs) => {
                let pairs = pairs.clone();
                let Some(pairs) = self.elements(&pairs) else {
                    return self.why(&pairs);
                };
                for pair in pairs {
                    let (key, value) = (self.item(&pair, &V::Int(0)), self.item(&pair, &V::Int(1)));
                    self.insert(id, key, value);
                }
            }
            None => {}
        }
        for (name, value) in args.named {
            self.insert(id, V::Text(name), value);
        }
        if let Some(unknown) = args.unknown {
            self.insert(id, V::text("**"), unknown);
        }
        dict
    }

    pub(super) fn make_list(&mut self, name: &str, first: Option<V>) -> V {
        let items = match &first {
            None => Vec::new(),
            Some(value) => match self.elements(value) {
                Some(items) => items,
                None => return self.why(value),
            },
        };
        let kind = match name {
            "tuple" => ListKind::Tuple,
            "list" => ListKind::List,
            _ => ListKind::Set,
        };
        if kind != ListKind::Set {
            return self.sequence(kind, items);
        }
        let mut unique: Vec<V> = Vec::new();
        for item in items {
            self.spend(1 + unique.len() / 16);
            if !unique
                .iter()
                .any(|own| self.equal(own, &item) == Some(true))
            {
                unique.push(item);
            }
        }
        self.sequence(kind, unique)
    }

    pub(super) fn extreme(&mut self, largest: bool, args: &Args) -> V {
        let items = match args.plain.as_slice() {
            [one] => match self.elements(one) {
                Some(items) => items,
                None => return self.why(one),
            },
            many => many.to_vec(),
        };
        let mut best: Option<V> = None;
        for item in items {
            let Some(number) = item.float() else {
                return self.why(&item);
            };
            let better = best.as_ref().and_then(V::float).is_none_or(|best| {
                if largest {
                    number > best
                } else {
                    number < best
                }
            });
            if better {
                best = Some(item);
            }
        }
        best.or_else(|| args.named("default").cloned())
            .unwrap_or(V::None)
    }

    pub(super) fn range(&mut self, args: &Args) -> V {
        let numbers: Option<Vec<i128>> = args.plain.iter().map(V::int).collect();
        let (start, end, step) = match numbers.as_deref() {
            Some([end]) => (0, *end, 1),
            Some([start, end]) => (*start, *end, 1),
            Some([start, end, step]) if *step != 0 => (*start, *end, *step),
            _ => {
                let unknown = args.plain.iter().find(|value| value.int().is_none());
                return unknown.map_or(V::None, |value| self.why(value));
            }
        };
        let mut items = Vec::new();
        let mut at = start;
        while (step > 0 && at < end) || (step < 0 && at > end) {
            if items.len() as i128 >= LONGEST_RANGE {
                break;
            }
            items.push(V::Int(at));
            at = at.saturating_add(step);
        }
        self.list(items)
    }

    pub(super) fn zip(&mut self, args: &Args) -> V {
        let mut columns = Vec::new();
        for value in &args.plain {
            match self.elements(value) {
                Some(items) => columns.push(items),
                None => return self.why(value),
            }
        }
        let length = columns.iter().map(Vec::len).min().unwrap_or(0);
        let mut rows = Vec::new();
        for at in 0..length {
            let row = columns
                .iter()
                .filter_map(|column| column.get(at).cloned())
                .collect();
            let row = self.tuple(row);
            rows.push(row);
        }
        self.list(rows)
    }

    pub(super) fn sum(&mut self, items: &V) -> V {
        let Some(items) = self.elements(items) else {
            return self.why(items);
        };
        let mut total = V::Int(0);
        for item in items {
            total = self.arithmetic(Op::Add, &total, &item);
        }
        total
    }

    pub(super) fn any_all(&mut self, any: bool, items: &V) -> V {
        let Some(items) = self.elements(items) else {
            return self.why(items);
        };
        let mut unknown = None;
        for item in items {
            match self.truth(&item) {
                Some(truth) if truth == any => return V::Bool(any),
                Some(_) => {}
                None => unknown = Some(item),
            }
        }
        match unknown {
            Some(value) => self.why(&value),
            None => V::Bool(!any),
        }
    }

    pub(super) fn map(&mut self, name: &str, function: &V, args: &Args) -> V {
        let Some(of) = args.plain.get(1).cloned() else {
            return V::None;
        };
        let Some(items) = self.elements(&of) else {
            return self.why(&of);
        };
        let mut made = Vec::new();
        for item in items {
            if !self.spend(1) {
                break;
            }
            let value = self.call(function, Args::of(vec![item.clone()]), &String::new);
            match name {
                "map" => made.push(value),
                _ if self.truth(&value) == Some(true) => made.push(item),
                _ => {}
            }
        }
        self.list(made)
    }

    pub(super) fn sorted(&mut self, value: &V) -> V {
        let Some(mut items) = self.elements(value) else {
            return self.why(value);
        };
        self.spend(items.len() * 8);
        if items.iter().all(|item| matches!(item, V::Text(_))) {
            items.sort_by(|a, b| match (a, b) {
                (V::Text(a), V::Text(b)) => a.cmp(b),
                _ => std::cmp::Ordering::Equal,
            });
        } else if items.iter().all(|item| item.float().is_some()) {
            items.sort_by(|a, b| {
                let (a, b) = (a.float().unwrap_or(0.0), b.float().unwrap_or(0.0));
                a.total_cmp(&b)
            });
        }
        self.list(items)
    }
}
