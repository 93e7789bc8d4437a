//! Expressions.

use std::rc::Rc;

use super::value::{Args, Closure, FunctionKind, ListKind, Name, V};
use super::{DEEPEST, LONGEST_TEXT, Machine};
use crate::python::syntax::ast::{
    Arg, ArgKind, Clause, Collection, Comparison, Comprehension, Expr, Function, Piece, written,
};

/// Elements that a comprehension makes at most.
const MOST_ELEMENTS: usize = 5_000;

impl Machine<'_> {
    pub(super) fn eval(&mut self, expr: &Expr) -> V {
        if self.depth >= DEEPEST || !self.spend(1) {
            return V::unknown("too much to evaluate");
        }
        self.depth += 1;
        let value = self.eval_inside(expr);
        self.depth -= 1;
        value
    }

    fn eval_inside(&mut self, expr: &Expr) -> V {
        match expr {
            Expr::None => V::None,
            Expr::Ellipsis => V::Name("...".into()),
            Expr::Bool(value) => V::Bool(*value),
            Expr::Int(value) => V::Int(*value),
            Expr::Float(value) => V::Float(*value),
            Expr::Text(text) => V::Text(text.clone()),
            Expr::Format(pieces) => self.format(pieces),
            Expr::Name(name) => self.name(name),
            Expr::Attribute(of, name) => {
                let on = self.eval(of);
                self.attribute(&on, name, &|| written(expr))
            }
            Expr::Index(of, at) => self.index(of, at),
            Expr::Slice(..) => V::unknown("a slice"),
            Expr::Call(callee, args) => self.eval_call(callee, args),
            Expr::Tuple(items) => self.collection(ListKind::Tuple, items),
            Expr::List(items) => self.collection(ListKind::List, items),
            Expr::Set(items) => self.collection(ListKind::Set, items),
            Expr::Dict(entries) => self.dictionary(entries),
            Expr::Not(inside) => {
                let value = self.eval(inside);
                match self.truth(&value) {
                    Some(truth) => V::Bool(!truth),
                    None => unknown_of(&value, expr),
                }
            }
            Expr::Negative(inside) => match self.eval(inside) {
                V::Int(value) => value
                    .checked_neg()
                    .map_or(V::Float(-(value as f64)), V::Int),
                V::Float(value) => V::Float(-value),
                other => unknown_of(&other, expr),
            },
            Expr::Star(inside) | Expr::Unary(inside) => self.eval(inside),
            Expr::Arithmetic(first, rest) => {
                let mut value = self.eval(first);
                for (op, right) in rest {
                    let right = self.eval(right);
                    value = self.arithmetic(*op, &value, &right);
                }
                value
            }
            Expr::Compare(first, rest) => self.comparison(expr, first, rest),
            Expr::And(items) => self.junction(expr, items, false),
            Expr::Or(items) => self.junction(expr, items, true),
            Expr::Choice(choice) => self.choice(choice),
            Expr::Lambda(function) => self.lambda(function),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Walrus(name, value) => {
                let value = self.eval(value);
                self.bind(name, value.clone());
                value
            }
            Expr::Yield(value) => {
                if let Some(value) = value {
                    self.eval(value);
                }
                if let Some(frame) = self.frames.last_mut() {
                    frame.yielded = true;
                }
                V::unknown("what is sent to a generator")
            }
        }
    }

    fn name(&mut self, name: &Name) -> V {
        if let Some(value) = self.lookup(name) {
            return value;
        }
        match super::builtin::named(name) {
            Some(builtin) => V::Builtin(builtin),
            // A notebook may have imported it in a cell that is not there.
            None if super::packages::is_known_package(name) => V::Name(name.clone()),
            None => V::unknown(format!("{name} is not defined")),
        }
    }

    fn index(&mut self, of: &Expr, at: &Expr) -> V {
        let on = self.eval(of);
        if let Expr::Slice(start, end, step) = at {
            let mut bounds = [None, None, None];
            for (bound, expr) in bounds.iter_mut().zip([start, end, step]) {
                *bound = expr.as_ref().map(|expr| self.eval(expr));
            }
            return self.slice(&on, &bounds);
        }
        let at = self.eval(at);
        self.item(&on, &at)
    }

    fn collection(&mut self, kind: ListKind, items: &[Expr]) -> V {
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            let value = self.eval(item);
            match (item, self.elements(&value)) {
                (Expr::Star(_), Some(elements)) => {
                    self.spend(elements.len());
                    values.extend(elements);
                }
                _ => values.push(value),
            }
        }
        self.sequence(kind, values)
    }

    fn dictionary(&mut self, entries: &[(Option<Expr>, Expr)]) -> V {
        let dict = self.dict(Vec::new());
        let V::Dict(id) = dict else { return dict };
        for (key, value) in entries {
            if !self.spend(1) {
                break;
            }
            match key {
                Some(key) => {
                    let key = self.eval(key);
                    let value = self.eval(value);
                    self.insert(id, key, value);
                }
                None => match self.eval(value) {
                    V::Dict(other) => self.update(id, other),
                    V::None => {}
                    other => self.insert(id, V::text("**"), other),
                },
            }
        }
        dict
    }

    fn comparison(&mut self, expr: &Expr, first: &Expr, rest: &[(Comparison, Expr)]) -> V {
        let mut left = self.eval(first);
        let mut unknown = None;
        for (comparison, right) in rest {
            let right = self.eval(right);
            self.spend(self.weight(&left) + self.weight(&right));
            match self.compare(*comparison, &left, &right) {
                Some(false) => return V::Bool(false),
                Some(true) => {}
                None => {
                    let reason = match (&left, &right) {
                        (_, V::Unknown(_)) => &right,
                        _ => &left,
                    };
                    unknown = Some(unknown_of(reason, expr));
                }
            }
            left = right;
        }
        unknown.unwrap_or(V::Bool(true))
    }

    /// `and`, or `or` where `stop` is true.
    fn junction(&mut self, expr: &Expr, items: &[Expr], stop: bool) -> V {
        let mut unknown = None;
        let mut last = V::None;
        for item in items {
            let value = self.eval(item);
            match self.truth(&value) {
                Some(truth) if truth == stop => {
                    return match unknown {
                        // `unknown and False` is false, whatever is unknown.
                        Some(_) if !stop || matches!(value, V::Bool(true)) => V::Bool(stop),
                        Some(unknown) => unknown,
                        None => value,
                    };
                }
                Some(_) => last = value,
                None => {
                    if unknown.is_none() {
                        unknown = Some(match &value {
                            V::Unknown(_) => unknown_of(&value, expr),
                            _ if items.len() == 1 => value.clone(),
                            _ => value.clone(),
                        });
                    }
                }
            }
        }
        unknown.unwrap_or(last)
    }

    fn choice(&mut self, choice: &[Expr; 3]) -> V {
        let [then, test, otherwise] = choice;
        let condition = self.eval(test);
        match self.truth(&condition) {
            Some(true) => self.eval(then),
            Some(false) => self.eval(otherwise),
            None => {
                self.conditions.push(self.heap.len());
                let first = self.eval(then);
                let second = self.eval(otherwise);
                self.conditions.pop();
                if first.says_nothing() {
                    return second;
                }
                if !second.says_nothing() && self.equal(&first, &second) != Some(true) {
                    self.assume(format!(
                        "{} under the condition `{}`",
                        written(then),
                        written(test)
                    ));
                }
                first
            }
        }
    }

    fn lambda(&mut self, function: &Rc<Function>) -> V {
        let defaults = function
            .params
            .iter()
            .map(|param| param.default.as_ref().map(|default| self.eval(default)))
            .collect();
        V::Function(Rc::new(Closure {
            function: function.clone(),
            scope: self.scope,
            kind: FunctionKind::Plain,
            defaults,
            decorators: Vec::new(),
        }))
    }

    fn comprehension(&mut self, all: &Rc<Comprehension>) -> V {
        let scope = self.new_scope(self.scope);
        let before = std::mem::replace(&mut self.scope, scope);
        let mut made = Vec::new();
        let known = self.clauses(all, &all.clauses, &mut made);
        self.scope = before;
        if let Err(reason) = known {
            return reason;
        }
        match all.kind {
            Collection::Dict => {
                let dict = self.dict(Vec::new());
                if let V::Dict(id) = dict {
                    for (key, value) in made {
                        self.insert(id, key, value.unwrap_or(V::None));
                    }
                }
                dict
            }
            kind => {
                let items = made.into_iter().map(|(item, _)| item).collect();
                let kind = match kind {
                    Collection::Set => ListKind::Set,
                    _ => ListKind::List,
                };
                self.sequence(kind, items)
            }
        }
    }

    /// All elements, or why they cannot be known.
    fn clauses(
        &mut self,
        all: &Comprehension,
        clauses: &[Clause],
        made: &mut Vec<(V, Option<V>)>,
    ) -> Result<(), V> {
        let Some((clause, rest)) = clauses.split_first() else {
            let item = self.eval(&all.element);
            let value = all.value.as_ref().map(|value| self.eval(value));
            made.push((item, value));
            return Ok(());
        };
        if self.depth >= DEEPEST {
            return Err(V::unknown("too much to evaluate"));
        }
        self.depth += 1;
        let result = self.clause(all, clause, rest, made);
        self.depth -= 1;
        result
    }

    fn clause(
        &mut self,
        all: &Comprehension,
        clause: &Clause,
        rest: &[Clause],
        made: &mut Vec<(V, Option<V>)>,
    ) -> Result<(), V> {
        let of = self.eval(&clause.of);
        let Some(items) = self.elements(&of) else {
            let linear = clause.tests.iter().any(|test| self.asks_for_linear(test));
            return Err(if linear {
                V::unknown(super::method::LINEAR)
            } else {
                unknown_of(&of, &clause.of)
            });
        };
        for item in items {
            if !self.spend(1) || made.len() >= MOST_ELEMENTS {
                return Err(V::unknown("too much to evaluate"));
            }
            self.assign(&clause.target, item);
            let mut keep = true;
            for test in &clause.tests {
                let value = self.eval(test);
                match self.truth(&value) {
                    Some(true) => {}
                    Some(false) => {
                        keep = false;
                        break;
                    }
                    None => return Err(unknown_of(&value, test)),
                }
            }
            if keep {
                self.clauses(all, rest, made)?;
            }
        }
        Ok(())
    }

    fn format(&mut self, pieces: &[Piece]) -> V {
        let mut text = String::new();
        let mut unknown = None;
        for piece in pieces {
            match piece {
                Piece::Text(part) => text.push_str(part),
                Piece::Value(expr, format) => {
                    let value = self.eval(expr);
                    if &**format == "=" {
                        text.push_str(&written(expr));
                        text.push('=');
                    }
                    match self.shown(&value) {
                        Some(shown) if text.len() + shown.len() <= LONGEST_TEXT => {
                            self.spend(shown.len() / 8);
                            text.push_str(&super::text::formatted(&value, &shown, format));
                        }
                        Some(_) => unknown = Some(V::unknown("a long text")),
                        None => unknown = unknown.or(Some(unknown_of(&value, expr))),
                    }
                }
            }
        }
        match unknown {
            Some(unknown) => unknown,
            None if text.len() > LONGEST_TEXT => V::unknown("a long text"),
            None => {
                self.spend(text.len() / 16);
                V::text(text)
            }
        }
    }

    pub(super) fn eval_call(&mut self, callee: &Expr, args: &[Arg]) -> V {
        if let Expr::Name(name) = callee
            && &**name == "super"
            && args.len() <= 2
        {
            return self.super_of();
        }
        let function = self.eval(callee);
        let args = self.arguments_of(args);
        self.call(&function, args, &|| written(callee))
    }

    pub(super) fn arguments_of(&mut self, args: &[Arg]) -> Args {
        let mut given = Args::default();
        for arg in args {
            let value = self.eval(&arg.value);
            match &arg.kind {
                ArgKind::Positional => given.plain.push(value),
                ArgKind::Named(name) => given.named.push((name.clone(), value)),
                ArgKind::Spread => match self.elements(&value) {
                    Some(items) => {
                        self.spend(items.len());
                        given.plain.extend(items);
                    }
                    None => given.plain.push(value),
                },
                ArgKind::SpreadNamed => self.spread(&mut given, value),
            }
        }
        given
    }

    /// `**value`.
    fn spread(&mut self, given: &mut Args, value: V) {
        let V::Dict(id) = value else {
            if !matches!(value, V::None) {
                given.unknown = Some(value);
            }
            return;
        };
        let entries = self.entries(id).to_vec();
        self.spend(entries.len());
        let first = given.named.is_empty();
        for (key, value) in entries {
            let value = self.resolved(value);
            match key {
                V::Text(key) if &*key == "**" => given.unknown = Some(value),
                // Keys of one dictionary differ.
                V::Text(key) if first => given.named.push((key, value)),
                V::Text(key) => {
                    self.spend(given.named.len() / 8);
                    given.set(&key, value);
                }
                _ => {}
            }
        }
    }
}

/// Unknown for the same reason as a part of it, or because of how it is written.
pub fn unknown_of(part: &V, expr: &Expr) -> V {
    match part {
        V::Unknown(reason) => V::Unknown(reason.clone()),
        V::Name(path) => V::Unknown(path.clone()),
        V::Absent(option) => V::unknown(format!("{option} was not given")),
        _ => V::unknown(written(expr)),
    }
}
