//! Commands in the order of a run.

use super::parse::literal;
use super::pattern;
use super::state::{Arguments, Flow, Input, Shell, Status, Variables};
use super::syntax::{Assigned, Joint, List, Node, Raw, Redirect, Simple};
use super::value::{Known, Part, Value};
use std::rc::Rc;

/// Turns of a loop that starts nothing.
const TURNS: usize = 256;
/// How deep commands may stand in commands, functions and scripts together.
const DEPTH: u32 = 60;

/// What may run or not.
enum Branch<'b> {
    Nothing,
    List(&'b List),
    Node(&'b Node),
}

impl Shell<'_> {
    pub fn list(&mut self, list: &List) -> Status {
        let mut status = Status::Yes;
        if self.depth > DEPTH {
            return Status::Unknown;
        }
        self.depth += 1;
        for (joint, node) in list.iter() {
            if self.flow != Flow::Next || !self.fuel.burn(20) {
                break;
            }
            status = match (joint, status) {
                (Joint::Then, _) => self.node(node),
                (Joint::And, Status::Yes | Status::Ran) | (Joint::Or, Status::No) => {
                    self.guarded(|shell| shell.node(node))
                }
                (Joint::And, Status::No) | (Joint::Or, Status::Yes | Status::Ran) => status,
                (Joint::And | Joint::Or, Status::Unknown) => {
                    let branches = [Branch::Node(node), Branch::Nothing];
                    self.alternatives("a condition", &branches);
                    Status::Unknown
                }
            };
        }
        self.depth -= 1;
        status
    }

    fn node(&mut self, node: &Node) -> Status {
        self.fuel.burn(60);
        match node {
            Node::Simple(simple) => self.simple(simple),
            Node::Pipe(parts) => self.pipe(parts),
            Node::Not(node) => self.node(node).not(),
            Node::If { arms, otherwise } => self.conditional(arms, otherwise.as_ref()),
            Node::While {
                until,
                condition,
                written,
                body,
            } => self.repeat(*until, condition, written, body),
            Node::For { name, words, body } => {
                let values = match words {
                    Some(words) => words.iter().flat_map(|word| self.fields(word)).collect(),
                    None => self.arguments.values.clone(),
                };
                self.each(name, &values, body)
            }
            Node::Counted {
                start,
                condition,
                step,
                body,
            } => {
                self.arithmetic(start, "");
                let turns = if starts(body, 0) { 1 } else { TURNS };
                for _ in 0..turns {
                    let holds = self.arithmetic(condition, "((…))");
                    if let Some(why) = holds.why() {
                        let branches = [Branch::List(body), Branch::Nothing];
                        self.alternatives(&why, &branches);
                        break;
                    }
                    if holds.written() == "0" || self.is_out_of_fuel() {
                        break;
                    }
                    if self.turn(body) {
                        break;
                    }
                    self.arithmetic(step, "");
                }
                Status::Yes
            }
            Node::Case { word, arms } => self.case(word, arms),
            Node::Group(list, redirects) => self.redirected(redirects, |shell| shell.list(list)),
            Node::Subshell(list, redirects) => {
                self.redirected(redirects, |shell| shell.child(|shell| shell.list(list)))
            }
            Node::Function { name, body } => {
                self.functions.insert(name.clone(), body.clone());
                Status::Yes
            }
            Node::Test(words) => self.test(words, true),
            Node::Arithmetic(inside) => {
                let value = self.arithmetic(inside, "((…))");
                match value.known() {
                    Some(text) => Status::of(text != "0"),
                    None => Status::Unknown,
                }
            }
        }
    }

    /// Runs what may change variables without keeping the changes.
    pub fn child(&mut self, run: impl FnOnce(&mut Self) -> Status) -> Status {
        self.fuel
            .burn(self.variables.len() * 8 + self.exported.len() * 8);
        let variables = self.variables.clone();
        let exported = self.exported.clone();
        let flow = self.flow;
        let status = run(self);
        self.variables = variables;
        self.exported = exported;
        self.flow = flow;
        status
    }

    /// Runs what stands under a condition that holds. A script that leaves there, before anything started, complains about
    /// what was not given: it goes on as if it had been.
    fn guarded(&mut self, run: impl FnOnce(&mut Self) -> Status) -> Status {
        let before = self.out.commands.len();
        let status = run(self);
        if self.flow == Flow::Exit && self.out.commands.len() == before {
            self.flow = Flow::Next;
        }
        status
    }

    /// Runs each of several branches from the same state, one of which a run would take.
    fn alternatives(&mut self, why: &str, branches: &[Branch]) {
        let before = self.variables.clone();
        let mut ends: Vec<Variables> = Vec::new();
        for branch in branches {
            if !self.fuel.burn(100) {
                break;
            }
            self.variables = before.clone();
            match branch {
                Branch::Nothing => {}
                Branch::List(list) => {
                    self.list(list);
                }
                Branch::Node(node) => {
                    self.node(node);
                }
            }
            if self.flow == Flow::Next {
                ends.push(std::mem::take(&mut self.variables));
            }
            self.flow = Flow::Next;
        }
        let mut ends = ends.into_iter();
        let Some(first) = ends.next() else {
            self.variables = before;
            return;
        };
        let ends: Vec<Variables> = ends.filter(|end| !Rc::ptr_eq(end, &first)).collect();
        if ends.is_empty() {
            self.variables = first;
            return;
        }
        let why: Rc<str> = why.into();
        self.fuel.burn(first.len() * 24);
        let mut merged = (*first).clone();
        for other in ends {
            self.fuel.burn(other.len() * 24);
            for (name, value) in other.iter() {
                if merged.get(name) == Some(value) {
                    continue;
                }
                let earlier = before.get(name);
                let chosen = match (merged.get(name), earlier) {
                    // It is set there or not: what was there before stays.
                    (_, Some(earlier)) if earlier == value || merged.get(name) == Some(earlier) => {
                        earlier.clone()
                    }
                    (Some(known), _) => known.doubted(&why),
                    (None, _) => value.doubted(&why),
                };
                merged.insert(name.clone(), chosen);
            }
            for (name, value) in first.iter() {
                if !other.contains_key(name) && merged.get(name) == Some(value) {
                    let kept = before.get(name).cloned();
                    merged.insert(name.clone(), kept.unwrap_or_else(|| value.doubted(&why)));
                }
            }
        }
        self.variables = Rc::new(merged);
    }

    fn conditional(&mut self, arms: &[(List, Rc<str>, List)], otherwise: Option<&List>) -> Status {
        let mut open: Vec<&List> = Vec::new();
        let mut why: Option<&str> = None;
        let mut ends = otherwise;
        for (condition, written, body) in arms {
            let status = self.list(condition);
            if self.flow != Flow::Next || self.is_out_of_fuel() {
                return Status::Unknown;
            }
            match status {
                Status::No => {}
                Status::Yes => {
                    ends = Some(body);
                    break;
                }
                Status::Ran | Status::Unknown => {
                    why.get_or_insert(written);
                    open.push(body);
                }
            }
        }
        let Some(why) = why else {
            return match ends {
                Some(body) => self.guarded(|shell| shell.list(body)),
                None => Status::Yes,
            };
        };
        let ends = ends.map_or(Branch::Nothing, Branch::List);
        let runs: Vec<Branch> = open.into_iter().map(Branch::List).chain([ends]).collect();
        self.alternatives(why, &runs);
        Status::Unknown
    }

    fn case(&mut self, word: &Raw, arms: &[(Vec<Raw>, List)]) -> Status {
        let value = self.single(word);
        let Some(text) = value.given() else {
            let why = value.why().unwrap_or_default();
            let runs = arms.iter().map(|(_, body)| Branch::List(body));
            let runs: Vec<Branch> = runs.chain([Branch::Nothing]).collect();
            self.alternatives(&why, &runs);
            return Status::Unknown;
        };
        for (patterns, body) in arms {
            for raw in patterns {
                let pattern = self.pattern(raw);
                let found = pattern
                    .is_some_and(|pattern| pattern::matches(&pattern, &text, &mut self.fuel));
                if found {
                    return self.guarded(|shell| shell.list(body));
                }
            }
        }
        Status::Yes
    }

    /// One turn of a loop; whether it was the last.
    fn turn(&mut self, body: &List) -> bool {
        self.guarded(|shell| shell.list(body));
        match self.flow {
            Flow::Continue => {
                self.flow = Flow::Next;
                false
            }
            Flow::Break => {
                self.flow = Flow::Next;
                true
            }
            Flow::Next => self.is_out_of_fuel(),
            Flow::Return | Flow::Exit => true,
        }
    }

    fn each(&mut self, name: &str, values: &[Value], body: &List) -> Status {
        let turns = if starts(body, 0) { 1 } else { TURNS };
        for value in values.iter().take(turns) {
            self.set_text(name, value.clone());
            if self.turn(body) {
                break;
            }
        }
        Status::Yes
    }

    fn repeat(&mut self, until: bool, condition: &List, written: &str, body: &List) -> Status {
        let turns = if starts(body, 0) { 1 } else { TURNS };
        for _ in 0..turns {
            let status = self.list(condition);
            let status = if until { status.not() } else { status };
            match status {
                Status::No => break,
                Status::Yes => {
                    if self.turn(body) {
                        break;
                    }
                }
                Status::Ran | Status::Unknown => {
                    let branches = [Branch::List(body), Branch::Nothing];
                    self.alternatives(written, &branches);
                    break;
                }
            }
        }
        Status::Yes
    }

    fn pipe(&mut self, parts: &[Node]) -> Status {
        let before = std::mem::replace(&mut self.input, Input::None);
        let mut status = Status::Yes;
        for (place, part) in parts.iter().enumerate() {
            if place + 1 == parts.len() {
                status = self.node(part);
                break;
            }
            let output = self.captured(|shell| {
                shell.node(part);
            });
            self.input = if output.unknown {
                Input::Unknown
            } else {
                Input::Text(Value::of(output.parts))
            };
        }
        self.input = before;
        status
    }

    /// Runs something with its input and output redirected.
    fn redirected(
        &mut self,
        redirects: &[Redirect],
        run: impl FnOnce(&mut Self) -> Status,
    ) -> Status {
        let before = self.input.clone();
        let mut target = None;
        for redirect in redirects {
            match redirect {
                Redirect::Text(raw) => {
                    let mut value = self.single(raw);
                    if !value.written().ends_with('\n') {
                        value = Value::joined(&[value, Value::text("\n")], "");
                    }
                    self.input = Input::Text(value);
                }
                Redirect::From(raw) => {
                    let path = self.single(raw);
                    let text = path.known().and_then(|path| self.file(&path));
                    self.input = text.map_or(Input::Unknown, |text| Input::Text(Value::text(text)));
                }
                Redirect::To { file, append } => target = Some((self.single(file), *append)),
            }
        }
        let status = match target {
            None => run(self),
            Some((path, append)) => {
                let mut status = Status::Yes;
                let output = self.captured(|shell| status = run(shell));
                let path = path.written();
                if !output.unknown
                    && !output.parts.is_empty()
                    && path != "/dev/null"
                    && !path.is_empty()
                {
                    let text = Value::of(output.parts).written();
                    self.write(path, &text, append);
                }
                status
            }
        };
        self.input = before;
        status
    }

    fn simple(&mut self, simple: &Simple) -> Status {
        if simple.words.is_empty() {
            for assignment in &simple.assignments {
                self.assign(assignment);
            }
            // `> file` alone, or a heredoc without a command.
            self.last = None;
            return Status::Yes;
        }
        let mut prefix = Vec::new();
        for assignment in &simple.assignments {
            if let Assigned::Text(raw) = &assignment.value {
                let value = self.single(raw);
                prefix.push((assignment.name.clone(), value));
            }
        }
        let mut fields: Vec<Value> = Vec::new();
        for word in &simple.words {
            if self.is_out_of_fuel() {
                return Status::Unknown;
            }
            fields.extend(self.fields(word));
        }
        // What an empty variable stands for is no command.
        let blank = fields
            .iter()
            .take_while(|field| field.parts().is_empty())
            .count();
        fields.drain(..blank);
        if !simple.declared.is_empty() || fields.first().is_some_and(is_declaration) {
            let names: Vec<String> = fields.iter().map(Value::written).collect();
            self.declare(&names, &fields, &simple.declared);
            self.last = None;
            return Status::Yes;
        }
        if fields.is_empty() {
            for (name, value) in prefix {
                self.set_text(&name, value);
            }
            return Status::Yes;
        }
        if matches!(simple.words.first().and_then(literal), Some("[" | "test")) {
            let words = simple.words.get(1..).unwrap_or_default();
            return self.test(words, false);
        }
        self.redirected(&simple.redirects, |shell| shell.command(&prefix, &fields))
    }

    /// Runs a function.
    pub fn call(&mut self, body: &List, arguments: &[Value]) -> Status {
        if self.locals.len() > 12 {
            return Status::Unknown;
        }
        let arguments = Arguments {
            values: arguments.to_vec(),
            given: true,
        };
        let outer = std::mem::replace(&mut self.arguments, arguments);
        self.locals.push(Vec::new());
        let status = self.list(body);
        if self.flow == Flow::Return {
            self.flow = Flow::Next;
        }
        for (name, value) in self.locals.pop().unwrap_or_default().into_iter().rev() {
            self.store(&name, value);
        }
        self.arguments = outer;
        status
    }
}

/// Whether a list may start a program.
fn starts(list: &List, depth: u32) -> bool {
    depth > 40 || list.iter().any(|(_, node)| node_starts(node, depth + 1))
}

fn node_starts(node: &Node, depth: u32) -> bool {
    let any = |list: &List| starts(list, depth);
    match node {
        Node::Simple(simple) => {
            let harmless = |word: &Raw| literal(word).is_some_and(|name| HARMLESS.contains(&name));
            simple.words.first().is_some_and(|word| !harmless(word))
        }
        Node::Pipe(parts) => parts.iter().any(|node| node_starts(node, depth + 1)),
        Node::Not(node) => node_starts(node, depth + 1),
        Node::If { arms, otherwise } => {
            arms.iter().any(|(_, _, body)| any(body)) || otherwise.as_ref().is_some_and(any)
        }
        Node::While { body, .. } | Node::For { body, .. } | Node::Counted { body, .. } => any(body),
        Node::Case { arms, .. } => arms.iter().any(|(_, body)| any(body)),
        Node::Group(list, _) | Node::Subshell(list, _) => any(list),
        Node::Function { .. } | Node::Test(_) | Node::Arithmetic(_) => false,
    }
}

fn is_declaration(field: &Value) -> bool {
    matches!(
        field.written().as_str(),
        "export" | "declare" | "local" | "readonly" | "typeset"
    )
}

/// A text that ends a line.
pub(super) fn line(mut parts: Vec<Part>) -> Value {
    parts.push(Part {
        text: "\n".into(),
        known: Known::Yes,
    });
    Value::of(parts)
}

/// Commands that start no program of interest: loops of nothing else are followed turn by turn.
const HARMLESS: &[&str] = &[
    "echo", "printf", "export", "local", "declare", "readonly", "let", "shift", "[", "test",
    "true", ":", "break", "continue", "mkdir", "cd", "set", "unset", "return", "exit", "eval",
    "usage", "rm", "cp", "mv", "ln", "sleep",
];
