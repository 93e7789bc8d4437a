//! The evaluator: statements and expressions over values that are known, partly known or unknown.

mod arg_option;
mod argparse;
mod attribute;
mod branch;
mod builtin;
mod call;
mod class;
mod command_line;
mod compose;
mod config;
mod convert;
mod defaults;
mod entry;
mod expression;
mod external;
mod function_line;
mod gather;
mod import;
mod item;
mod method;
mod operate;
mod packages;
mod statement;
mod text;
mod value;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use super::Module;
use super::syntax::{self, ast};
use crate::Beside;
use value::{Args, Cell, Class, Closure, Id, ListKind, Name, ScopeId, V};

/// Steps that one module may take with all that it imports. A step is a node of the tree or an element that is copied.
pub(super) const MOST_WORK: usize = 100_000;

/// Code of one file, in bytes; what follows is left out.
const MOST_CODE: usize = 1 << 18;

/// Text of all files together, in bytes.
const MOST_TEXT: usize = 1 << 20;

/// Nested evaluations, so that the stack is bounded: expressions, blocks and functions together.
const DEEPEST: usize = 120;

/// Longest text that an expression may make.
const LONGEST_TEXT: usize = 1 << 16;

/// How a statement ends.
#[derive(Debug)]
enum Flow {
    Next,
    Break,
    Continue,
    Return(V),
    Raise,
    /// All work is spent.
    Stop,
}

#[derive(Debug, Default)]
struct Scope {
    names: HashMap<Name, V>,
    parent: Option<ScopeId>,
    /// Names of `global` and `nonlocal`.
    outer: Vec<Name>,
}

#[derive(Debug)]
struct LocalModule {
    /// Its path such as `utils/prompter.py`; empty for the main one.
    path: String,
    scope: ScopeId,
}

#[derive(Debug, Default)]
struct Frame {
    /// What a return under an unknown condition gives.
    fallback: Option<V>,
    yielded: bool,
    /// `self` and the class whose method runs.
    method: Option<(V, Rc<Class>)>,
    /// The function, to see recursion.
    function: Option<Rc<ast::Function>>,
}

/// A name that was assigned under an unknown condition, with its value before.
type Change = (ScopeId, Name, Option<V>);

struct Machine<'a> {
    beside: &'a dyn Beside,
    arguments: &'a [String],
    out: Module,
    work: usize,
    text: usize,
    depth: usize,
    heap: Vec<Cell>,
    scopes: Vec<Scope>,
    scope: ScopeId,
    /// The scope of the function or module, which comprehensions have not.
    local_scope: ScopeId,
    modules: Vec<LocalModule>,
    /// The module that is evaluated.
    module: usize,
    frames: Vec<Frame>,
    /// Unknown conditions around, with the heap's length where each began.
    conditions: Vec<usize>,
    changes: Vec<Change>,
    /// Attributes that were set on objects.
    set: BTreeMap<(usize, Name), V>,
    environment: Id,
    /// Names of the main module that an import made.
    bound_by_import: BTreeSet<Name>,
    /// The configuration that `${a.b}` refers to.
    root: Option<Id>,
    /// Functions that `@app.command()` gave to an object.
    commands: Vec<(usize, Rc<Closure>)>,
    /// Names of the functions that ran.
    ran: BTreeSet<Name>,
    /// Options that a dataclass of the program's own takes from the command line.
    taken: Vec<Name>,
    /// Conditions around that ask whether a layer is linear.
    linear: usize,
    /// `wandb.config`, once it was given.
    wandb: Option<V>,
    /// `sys.argv`, once it was read.
    argv: Option<Id>,
    /// Instances of classes that extend one of another module, by the call of that.
    instances: BTreeMap<usize, Id>,
    /// `FLAGS` of absl.
    flags: Option<Id>,
    /// Arguments as they were given, before they are converted for `calls`.
    given: Vec<Args>,
}

/// Evaluates a module.
pub fn evaluate(text: &str, arguments: &[String], beside: &dyn Beside) -> Module {
    let mut machine = Machine::new(arguments, beside);
    machine.run(text);
    machine.out
}

/// The steps that a module takes.
#[cfg(test)]
pub(super) fn evaluate_counting(text: &str, arguments: &[String], beside: &dyn Beside) -> usize {
    let mut machine = Machine::new(arguments, beside);
    machine.run(text);
    machine.work
}

impl<'a> Machine<'a> {
    fn new(arguments: &'a [String], beside: &'a dyn Beside) -> Self {
        Self {
            beside,
            arguments,
            out: Module::default(),
            work: 0,
            text: 0,
            depth: 0,
            heap: vec![Cell::Dict(Vec::new())],
            scopes: vec![Scope::default()],
            scope: 0,
            local_scope: 0,
            modules: vec![LocalModule {
                path: String::new(),
                scope: 0,
            }],
            module: 0,
            frames: vec![Frame::default()],
            conditions: Vec::new(),
            changes: Vec::new(),
            set: BTreeMap::new(),
            environment: 0,
            bound_by_import: BTreeSet::new(),
            root: None,
            commands: Vec::new(),
            ran: BTreeSet::new(),
            taken: Vec::new(),
            linear: 0,
            wandb: None,
            argv: None,
            instances: BTreeMap::new(),
            flags: None,
            given: Vec::new(),
        }
    }
}

impl Machine<'_> {
    fn run(&mut self, text: &str) {
        let text = truncated(text, MOST_CODE);
        self.text = text.len();
        let parsed = syntax::parse(text);
        self.out.comments = top_comments(&parsed);
        self.scopes[0]
            .names
            .insert("__name__".into(), V::text("__main__"));
        self.scopes[0]
            .names
            .insert("__file__".into(), V::text("main.py"));
        self.block(&parsed.body);
        self.enter(&parsed.body);
        self.merge_bases();
        self.finish();
    }

    /// Takes steps; false if none are left.
    fn spend(&mut self, steps: usize) -> bool {
        self.work = self.work.saturating_add(steps);
        self.work <= MOST_WORK
    }

    fn list(&mut self, items: Vec<V>) -> V {
        self.sequence(ListKind::List, items)
    }

    fn tuple(&mut self, items: Vec<V>) -> V {
        self.sequence(ListKind::Tuple, items)
    }

    fn sequence(&mut self, kind: ListKind, items: Vec<V>) -> V {
        self.spend(items.len());
        self.heap.push(Cell::List(kind, items));
        V::List(self.heap.len() - 1)
    }

    fn dict(&mut self, entries: Vec<(V, V)>) -> V {
        self.spend(entries.len());
        self.heap.push(Cell::Dict(entries));
        V::Dict(self.heap.len() - 1)
    }

    fn items(&self, id: Id) -> &[V] {
        match self.heap.get(id) {
            Some(Cell::List(_, items)) => items,
            _ => &[],
        }
    }

    fn list_kind(&self, id: Id) -> ListKind {
        match self.heap.get(id) {
            Some(Cell::List(kind, _)) => *kind,
            _ => ListKind::List,
        }
    }

    fn entries(&self, id: Id) -> &[(V, V)] {
        match self.heap.get(id) {
            Some(Cell::Dict(entries)) => entries,
            _ => &[],
        }
    }

    fn lookup(&self, name: &str) -> Option<V> {
        let mut scope = Some(self.scope);
        while let Some(id) = scope {
            let found = self.scopes.get(id)?;
            if let Some(value) = found.names.get(name) {
                return Some(value.clone());
            }
            scope = found.parent;
        }
        None
    }

    /// Gives a name its value in the scope that Python says.
    fn bind(&mut self, name: &Name, value: V) {
        let mut scope = self.scope;
        while let Some(found) = self.scopes.get(scope)
            && found.outer.contains(name)
            && let Some(parent) = found.parent
        {
            scope = parent;
            if self
                .scopes
                .get(scope)
                .is_some_and(|outer| outer.names.contains_key(name))
            {
                break;
            }
        }
        self.bind_in(scope, name, value);
    }

    fn bind_in(&mut self, scope: ScopeId, name: &Name, value: V) {
        let Some(found) = self.scopes.get_mut(scope) else {
            return;
        };
        let old = found.names.insert(name.clone(), value);
        if !self.conditions.is_empty() {
            self.changes.push((scope, name.clone(), old));
        }
    }

    fn new_scope(&mut self, parent: ScopeId) -> ScopeId {
        self.scopes.push(Scope {
            parent: Some(parent),
            ..Scope::default()
        });
        self.scopes.len() - 1
    }

    fn global_scope(&self) -> ScopeId {
        self.modules
            .get(self.module)
            .map_or(0, |module| module.scope)
    }

    fn assume(&mut self, what: String) {
        if self.out.assumed.len() < 100 && !self.out.assumed.contains(&what) {
            self.out.assumed.push(what);
        }
    }

    fn absent(&mut self, path: &str) {
        if self.out.absent.len() < 100 && !self.out.absent.iter().any(|own| own == path) {
            self.out.absent.push(path.to_string());
        }
    }

    fn missing(&mut self, option: &str) {
        if self.out.missing.len() < 1000 && !self.out.missing.iter().any(|own| own == option) {
            self.out.missing.push(option.to_string());
        }
    }

    /// The text of a file that the program wrote before, or that lies beside it.
    fn file(&mut self, path: &str) -> Option<String> {
        let own = self.out.files.iter().rev().find(|(name, _)| name == path);
        let text = match own {
            Some((_, text)) => text.clone(),
            None => match self.beside.text(path) {
                Some(text) => text,
                None => {
                    self.absent(path);
                    return None;
                }
            },
        };
        self.text = self.text.saturating_add(text.len());
        (self.text <= 2 * MOST_TEXT).then_some(text)
    }
}

/// The text up to so many bytes.
fn truncated(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or("")
}

/// What the author says at the top: the docstring's lines and the comments.
fn top_comments(parsed: &syntax::Parsed) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(ast::Stmt::Expr(ast::Expr::Text(text))) = parsed.body.first() {
        lines.extend(text.lines().take(100).map(|line| line.trim().to_string()));
    }
    let top = parsed.comments.iter().filter(|(line, _)| *line < 120);
    lines.extend(top.take(100).map(|(_, comment)| comment.clone()));
    lines.retain(|line| !line.is_empty());
    lines
}
