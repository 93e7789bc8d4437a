//! Statements.

use std::rc::Rc;

use super::value::{Args, Decorator, FunctionKind, Name, V};
use super::{Closure, DEEPEST, Flow, Machine};
use crate::python::syntax::ast::{self, Case, Expr, Function, Op, Stmt, written};

/// Turns of a loop over known elements, where the first one calls nothing.
const MOST_TURNS: usize = 200;

impl Machine<'_> {
    pub(super) fn block(&mut self, body: &[Stmt]) -> Flow {
        if self.depth >= DEEPEST {
            return Flow::Next;
        }
        self.depth += 1;
        let mut flow = Flow::Next;
        for statement in body {
            flow = if self.spend(1) {
                self.statement(statement)
            } else {
                Flow::Stop
            };
            if !matches!(flow, Flow::Next) {
                break;
            }
        }
        self.depth -= 1;
        flow
    }

    pub(super) fn statement(&mut self, statement: &Stmt) -> Flow {
        match statement {
            Stmt::Expr(Expr::Call(callee, args)) => return self.call_statement(callee, args),
            Stmt::Expr(expr) => {
                self.eval(expr);
            }
            Stmt::Assign(targets, value) => {
                let value = self.eval(value);
                for target in targets {
                    self.assign(target, value.clone());
                }
            }
            Stmt::Annotated(target, _, value) => {
                if let Some(value) = value {
                    let value = self.eval(value);
                    self.assign(target, value);
                }
            }
            Stmt::Augmented(target, op, value) => self.augmented(target, *op, value),
            Stmt::Return(value) => {
                let value = value.as_ref().map_or(V::None, |value| self.eval(value));
                return Flow::Return(value);
            }
            Stmt::Raise => return Flow::Raise,
            Stmt::Break => return Flow::Break,
            Stmt::Continue => return Flow::Continue,
            Stmt::Pass => {}
            Stmt::Import(modules) => {
                for (module, alias) in modules {
                    self.import(module, alias.as_ref());
                }
            }
            Stmt::From(level, module, names) => self.import_from(*level, module, names),
            Stmt::Global(names) => {
                let scope = self.scope;
                if let Some(scope) = self.scopes.get_mut(scope) {
                    scope.outer.extend(names.iter().cloned());
                }
            }
            Stmt::If(branches, otherwise) => return self.conditional(branches, otherwise),
            Stmt::While(test, body) => return self.while_loop(test, body),
            Stmt::For(target, of, body) => return self.for_loop(target, of, body),
            Stmt::Try(body, handlers, after) => return self.attempt(body, handlers, after),
            Stmt::With(items, body) => return self.with(items, body),
            Stmt::Def(function) => self.define(function),
            Stmt::Class(class) => self.define_class(class),
            Stmt::Match(subject, cases) => return self.matching(subject, cases),
            Stmt::Magic(line) => self.magic(line),
        }
        Flow::Next
    }

    /// A call on its own line, which may end the program.
    pub(super) fn call_statement(&mut self, callee: &Expr, args: &[ast::Arg]) -> Flow {
        let ends = match callee {
            Expr::Name(name) => matches!(&**name, "exit" | "quit"),
            Expr::Attribute(of, name) => {
                matches!((&**of, &**name), (Expr::Name(of), "exit" | "_exit") if matches!(&**of, "sys" | "os"))
            }
            _ => false,
        };
        if ends && self.lookup_is_plain(callee) {
            return Flow::Raise;
        }
        self.eval_call(callee, args);
        Flow::Next
    }

    /// Whether a name such as `exit` is still Python's own.
    pub(super) fn lookup_is_plain(&self, callee: &Expr) -> bool {
        match callee {
            Expr::Name(name) => self.lookup(name).is_none(),
            _ => true,
        }
    }

    pub(super) fn assign(&mut self, target: &Expr, value: V) {
        match target {
            Expr::Name(name) => self.bind(name, value),
            Expr::Attribute(of, name) => {
                let on = self.eval(of);
                self.set_attribute(&on, name, value, &|| written(target));
            }
            Expr::Index(of, at) => {
                let on = self.eval(of);
                let at = self.eval(at);
                self.set_item(&on, at, value, &|| written(target));
            }
            Expr::Tuple(targets) | Expr::List(targets) => self.unpack(targets, value),
            Expr::Star(inside) => self.assign(inside, value),
            _ => {}
        }
    }

    pub(super) fn unpack(&mut self, targets: &[Expr], value: V) {
        let values = self.parts(&value, targets);
        for (target, value) in targets.iter().zip(values) {
            self.assign(target, value);
        }
    }

    /// As many values as there are targets.
    pub(super) fn parts(&mut self, value: &V, targets: &[Expr]) -> Vec<V> {
        if let Some(items) = self.elements(value) {
            let star = targets
                .iter()
                .position(|target| matches!(target, Expr::Star(_)));
            if let Some(star) = star
                && items.len() + 1 >= targets.len()
            {
                let taken = items.len() + 1 - targets.len();
                let mut parts = items.get(..star).unwrap_or(&[]).to_vec();
                let middle = items.get(star..star + taken).unwrap_or(&[]).to_vec();
                parts.push(self.list(middle));
                parts.extend_from_slice(items.get(star + taken..).unwrap_or(&[]));
                return parts;
            }
            if items.len() == targets.len() {
                return items;
            }
        }
        if let V::Object(index) = value {
            return self.parts_of_object(*index, targets.len());
        }
        (0..targets.len())
            .map(|at| self.item(value, &V::Int(at as i128)))
            .collect()
    }

    /// What `a, b = f(a, b)` gives: the arguments again where a library prepares them, else the object and its parts.
    pub(super) fn parts_of_object(&mut self, index: usize, number: usize) -> Vec<V> {
        let path = self.out.calls.get(index).map_or("", |call| &call.path);
        let prepares = [
            ".prepare",
            ".setup",
            ".setup_dataloaders",
            ".prepare_for_training",
        ];
        if let Some(args) = self.given.get(index)
            && args.plain.len() == number
            && prepares.iter().any(|end| path.ends_with(end))
        {
            return args.plain.clone();
        }
        let mut parts = vec![V::Object(index)];
        parts.extend((1..number).map(|at| V::Part(index, format!("[{at}]").into())));
        parts
    }

    pub(super) fn augmented(&mut self, target: &Expr, op: Op, value: &Expr) {
        let old = self.eval(target);
        let value = self.eval(value);
        if let (V::List(id), Op::Add, Some(items)) = (&old, op, self.elements(&value)) {
            self.extend(*id, items);
            return;
        }
        if let (V::Dict(id), Op::BitOr, V::Dict(other)) = (&old, op, &value) {
            self.update(*id, *other);
            return;
        }
        let value = self.arithmetic(op, &old, &value);
        self.assign(target, value);
    }

    pub(super) fn conditional(
        &mut self,
        branches: &[(Expr, Vec<Stmt>)],
        otherwise: &[Stmt],
    ) -> Flow {
        let mut branches = branches;
        while let Some(((test, body), rest)) = branches.split_first() {
            let is_main = is_main_guard(test) && self.module == 0;
            let value = self.eval(test);
            match self.truth(&value) {
                Some(true) => return branch(self.block(body)),
                _ if is_main => return branch(self.block(body)),
                Some(false) => branches = rest,
                None if self.depth >= DEEPEST => return Flow::Next,
                None => {
                    self.depth += 1;
                    let linear = usize::from(self.asks_for_linear(test));
                    let then = |machine: &mut Self| {
                        machine.linear += linear;
                        let flow = machine.block(body);
                        machine.linear -= linear;
                        flow
                    };
                    let other = |machine: &mut Self| machine.conditional(rest, otherwise);
                    let flow = self.either(&value, &|| written(test), then, other);
                    self.depth -= 1;
                    return flow;
                }
            }
        }
        branch(self.block(otherwise))
    }

    pub(super) fn while_loop(&mut self, test: &Expr, body: &[Stmt]) -> Flow {
        let value = self.eval(test);
        if self.truth(&value) == Some(false) {
            return Flow::Next;
        }
        after_loop(self.block(body))
    }

    pub(super) fn for_loop(&mut self, target: &Expr, of: &Expr, body: &[Stmt]) -> Flow {
        let of = self.eval(of);
        let items = self.elements(&of);
        let items = match items {
            Some(items) if items.is_empty() => return Flow::Next,
            Some(items) => items,
            None => vec![self.element_of(&of)],
        };
        let calls = self.out.calls.len();
        for item in items.into_iter().take(MOST_TURNS) {
            self.assign(target, item);
            match self.block(body) {
                Flow::Next | Flow::Continue => {}
                Flow::Break | Flow::Raise => break,
                flow => return flow,
            }
            if self.out.calls.len() > calls {
                break;
            }
        }
        Flow::Next
    }

    pub(super) fn attempt(
        &mut self,
        body: &[Stmt],
        handlers: &[Vec<Stmt>],
        after: &[Stmt],
    ) -> Flow {
        let flow = self.block(body);
        let flow = match flow {
            Flow::Raise => match handlers.first() {
                Some(handler) => branch(self.block(handler)),
                None => Flow::Next,
            },
            other => other,
        };
        match flow {
            Flow::Next => self.block(after),
            other => other,
        }
    }

    pub(super) fn with(&mut self, items: &[(Expr, Option<Expr>)], body: &[Stmt]) -> Flow {
        for (value, target) in items {
            let value = self.eval(value);
            if let Some(target) = target {
                self.assign(target, value);
            }
        }
        self.block(body)
    }

    pub(super) fn define(&mut self, function: &Rc<Function>) {
        let mut kind = FunctionKind::Plain;
        let mut decorators = Vec::new();
        let mut transforms = Vec::new();
        for decorator in &function.decorators {
            let (callee, args) = match decorator {
                Expr::Call(callee, args) => (&**callee, Some(args)),
                other => (other, None),
            };
            let path = written(callee);
            match &*path {
                "staticmethod" => kind = FunctionKind::Static,
                "classmethod" => kind = FunctionKind::Class,
                "property" | "cached_property" | "functools.cached_property" => {
                    kind = FunctionKind::Property;
                }
                _ => {}
            }
            let callee = self.eval(callee);
            let path = self.path_of(&callee).unwrap_or_else(|| path.into());
            let args = match args {
                Some(args) => self.arguments_of(args),
                None => Args::default(),
            };
            if matches!(callee, V::Object(_) | V::Part(..) | V::Name(_)) {
                transforms.push((callee, args.clone()));
            }
            decorators.push(Decorator { path, args });
        }
        let defaults = function
            .params
            .iter()
            .map(|param| param.default.as_ref().map(|default| self.eval(default)))
            .collect();
        let closure = Rc::new(Closure {
            function: function.clone(),
            scope: self.scope,
            kind,
            defaults,
            decorators,
        });
        for (callee, args) in transforms {
            self.decorate(&callee, args, &closure);
        }
        self.bind(&function.name, V::Function(closure));
    }

    /// The path of something of another module.
    pub(super) fn path_of(&self, value: &V) -> Option<Name> {
        match value {
            V::Name(path) => Some(path.clone()),
            V::Part(index, path) => {
                let of = &self.out.calls.get(*index)?.path;
                Some(format!("{of}{path}").into())
            }
            _ => None,
        }
    }

    pub(super) fn matching(&mut self, subject: &Expr, cases: &[Case]) -> Flow {
        let subject = self.eval(subject);
        self.cases(&subject, cases)
    }

    pub(super) fn cases(&mut self, subject: &V, cases: &[Case]) -> Flow {
        let mut cases = cases;
        while let Some((case, rest)) = cases.split_first() {
            let matches = self.pattern(subject, &case.pattern);
            let matches = match (&case.guard, matches) {
                (Some(guard), Some(true)) => {
                    let value = self.eval(guard);
                    self.truth(&value)
                }
                _ => matches,
            };
            match matches {
                Some(true) => return branch(self.block(&case.body)),
                Some(false) => cases = rest,
                None if self.depth >= DEEPEST => return Flow::Next,
                None => {
                    self.depth += 1;
                    let then = |machine: &mut Self| machine.block(&case.body);
                    let other = |machine: &mut Self| machine.cases(subject, rest);
                    let flow = self.either(subject, &|| "match".to_string(), then, other);
                    self.depth -= 1;
                    return flow;
                }
            }
        }
        Flow::Next
    }

    pub(super) fn pattern(&mut self, subject: &V, pattern: &Expr) -> Option<bool> {
        match pattern {
            Expr::Name(name) => {
                if &**name != "_" {
                    self.bind(name, subject.clone());
                }
                Some(true)
            }
            Expr::Arithmetic(first, rest) => {
                let mut unknown = false;
                let patterns = std::iter::once(&**first).chain(rest.iter().map(|(_, one)| one));
                for one in patterns {
                    match self.pattern(subject, one) {
                        Some(true) => return Some(true),
                        Some(false) => {}
                        None => unknown = true,
                    }
                }
                if unknown { None } else { Some(false) }
            }
            Expr::Call(..) | Expr::Dict(_) | Expr::List(_) | Expr::Tuple(_) => None,
            other => {
                let value = self.eval(other);
                self.equal(subject, &value)
            }
        }
    }
}

/// A branch that raises is left: what follows it is read all the same.
fn branch(flow: Flow) -> Flow {
    match flow {
        Flow::Raise => Flow::Next,
        other => other,
    }
}

fn after_loop(flow: Flow) -> Flow {
    match flow {
        Flow::Break | Flow::Continue | Flow::Raise => Flow::Next,
        other => other,
    }
}

/// `__name__ == "__main__"`.
fn is_main_guard(test: &Expr) -> bool {
    match test {
        Expr::Compare(first, _) => matches!(&**first, Expr::Name(name) if &**name == "__name__"),
        _ => false,
    }
}
