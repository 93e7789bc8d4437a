//! Where a program begins: the main guard, decorated functions, functions that are never called; notebooks' lines.

use std::rc::Rc;

use super::Machine;
use super::value::{Args, Closure, Name, ScopeId, V, annotated_class};
use crate::python::syntax::ast::Stmt;

/// Functions that a program begins with, where it calls none itself.
const MAIN: [&str; 10] = [
    "main",
    "train",
    "run",
    "fit",
    "finetune",
    "fine_tune",
    "train_model",
    "training",
    "run_training",
    "start_training",
];

impl Machine<'_> {
    /// A call of a function of the program's own: the libraries that decorate it give it its arguments.
    pub(super) fn enter_function(&mut self, closure: &Rc<Closure>, args: Args) -> V {
        if args.plain.is_empty() && args.named.is_empty() && args.unknown.is_none() {
            for decorator in &closure.decorators {
                let last = decorator.path.rsplit('.').next().unwrap_or("");
                let path = &*decorator.path;
                if path.starts_with("hydra.") && last == "main" {
                    let config = self.hydra(&decorator.args);
                    return self.run_function(closure, Args::of(vec![config]), None);
                }
                if path.contains("click") && matches!(last, "command" | "group") {
                    return self.with_click(closure);
                }
                let wraps = last == "wrap" || path.ends_with("parser.wrap");
                let commands = last == "command" && !path.contains("click");
                if wraps || commands || last == "entrypoint" {
                    return self.with_command_line(closure);
                }
            }
        }
        self.run_function(closure, args, None)
    }

    /// A decorator of another module: it is recorded, and `@app.command()` registers the function.
    pub(super) fn decorate(&mut self, callee: &V, args: Args, closure: &Rc<Closure>) {
        match callee {
            V::Part(index, path) => {
                let command = path.ends_with(".command") || path.ends_with(".local_entrypoint");
                if command && self.commands.len() < 100 {
                    self.commands.push((*index, closure.clone()));
                }
                self.record(path, Some(&V::Object(*index)), args, None);
            }
            V::Name(path) if path.starts_with("ray.") || path.starts_with("modal.") => {
                self.record(path, None, args, None);
            }
            _ => {}
        }
    }

    /// `app()`: the command that the first word names, or the only one.
    pub(super) fn run_app(&mut self, index: usize, args: &Args) -> Option<V> {
        if !args.plain.is_empty() {
            return None;
        }
        let own: Vec<Rc<Closure>> = self
            .commands
            .iter()
            .filter(|(object, _)| *object == index)
            .map(|(_, closure)| closure.clone())
            .collect();
        let word = self.arguments.first().map(|word| word.replace('-', "_"));
        let named = own
            .iter()
            .find(|closure| Some(&*closure.function.name) == word.as_deref());
        let closure = named.or(own.first())?.clone();
        Some(self.with_command_line(&closure))
    }

    /// `app.run()` and such of an object with commands.
    pub(super) fn entry_of_part(&mut self, index: usize, last: &str, args: &Args) -> Option<V> {
        matches!(last, "run" | "main" | "meta").then(|| self.run_app(index, args))?
    }

    /// Runs what nothing called, if no training was reached.
    pub(super) fn enter(&mut self, body: &[Stmt]) {
        if self.reached() {
            return;
        }
        let command = self.commands.first().map(|(_, closure)| closure.clone());
        if let Some(closure) = command.filter(|own| !self.ran.contains(&own.function.name)) {
            self.with_command_line(&closure);
            if self.reached() {
                return;
            }
        }
        let scope: ScopeId = self.global_scope();
        let defined: Vec<Name> = body
            .iter()
            .filter_map(|statement| match statement {
                Stmt::Def(function) => Some(function.name.clone()),
                _ => None,
            })
            .collect();
        let by_name = MAIN
            .iter()
            .filter_map(|name| defined.iter().find(|own| ***own == **name).cloned());
        let similar = defined.iter().filter(|name| {
            let name = name.to_lowercase();
            !MAIN.contains(&&*name)
                && (name.contains("train")
                    || name.contains("finetune")
                    || name.starts_with("run_")
                    || name.starts_with("main_"))
        });
        let candidates: Vec<Name> = by_name.chain(similar.cloned()).take(12).collect();
        for name in candidates {
            let value = self
                .scopes
                .get(scope)
                .and_then(|scope| scope.names.get(&name));
            let Some(V::Function(closure)) = value.cloned() else {
                continue;
            };
            if self.ran.contains(&name) {
                continue;
            }
            let entered = closure.decorators.iter().any(|decorator| {
                let last = decorator.path.rsplit('.').next().unwrap_or("");
                matches!(last, "main" | "command" | "wrap" | "entrypoint")
            });
            if entered {
                self.enter_function(&closure, Args::default())
            } else {
                self.with_defaults(&closure)
            };
            if self.reached() {
                return;
            }
        }
        self.enter_class(body);
    }

    /// A function with the defaults of its arguments, and of the dataclasses that they are.
    fn with_defaults(&mut self, closure: &Rc<Closure>) -> V {
        let mut args = Args::default();
        for (at, param) in closure.function.params.iter().enumerate() {
            let default = closure.defaults.get(at).is_some_and(Option::is_some);
            let class = param.annotation.as_ref().and_then(annotated_class);
            let Some(class) = class.filter(|_| !default) else {
                continue;
            };
            let before = std::mem::replace(&mut self.scope, closure.scope);
            let class = self.lookup(&class);
            self.scope = before;
            if let Some(V::Class(class)) = class
                && class.dataclass
            {
                let instance = self.instantiate(&class, Args::default());
                args.named.push((param.name.clone(), instance));
            }
        }
        self.run_function(closure, args, None)
    }

    /// A class of the program's own that trains, where nothing makes an instance of it.
    fn enter_class(&mut self, body: &[Stmt]) {
        const METHODS: [&str; 6] = [
            "train",
            "fit",
            "run",
            "main",
            "configure_optimizers",
            "train_dataloader",
        ];
        let scope = self.global_scope();
        for statement in body {
            let Stmt::Class(class) = statement else {
                continue;
            };
            let value = self
                .scopes
                .get(scope)
                .and_then(|scope| scope.names.get(&class.name));
            let Some(V::Class(class)) = value.cloned() else {
                continue;
            };
            let methods = METHODS.iter().filter_map(|name| match class.find(name) {
                Some((V::Function(closure), owner)) => Some((closure, owner)),
                _ => None,
            });
            let methods: Vec<_> = methods.collect();
            if methods.is_empty() {
                continue;
            }
            let instance = self.instantiate(&class, Args::default());
            for (closure, owner) in methods {
                self.call_method(instance.clone(), &closure, owner, Args::default());
            }
            if self.reached() {
                return;
            }
        }
    }

    /// Whether a call that trains was recorded.
    fn reached(&self) -> bool {
        self.out.calls.iter().any(|call| {
            let last = call.path.rsplit('.').next().unwrap_or("");
            matches!(
                last,
                "train" | "fit" | "backward" | "learn" | "train_model" | "finetune" | "fine_tune"
            ) && (call.on.is_some() || last != "train")
                || last.ends_with("Trainer")
                || call.path.starts_with("torch.optim.")
        })
    }

    /// A line of IPython.
    pub(super) fn magic(&mut self, line: &str) {
        let Some(command) = line.strip_prefix('!') else {
            let words = line.trim_start_matches('%');
            if let Some(install) = words.strip_prefix("pip ") {
                self.command(&format!("pip {install}"));
            }
            return;
        };
        let command = self.with_variables(command);
        self.command(&command);
    }

    /// IPython replaces `{name}` and `$name` of a command by the values of Python.
    fn with_variables(&mut self, line: &str) -> String {
        let mut made = String::new();
        let mut rest = line;
        while let Some(at) = rest.find(['{', '$']) {
            let (before, from) = rest.split_at(at);
            made.push_str(before);
            let inside = from.get(1..).unwrap_or("");
            let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
            let end = inside
                .find(|letter| !is_name(letter))
                .unwrap_or(inside.len());
            let name = inside.get(..end).unwrap_or("");
            let braced = from.starts_with('{');
            let closes = inside
                .get(end..)
                .is_some_and(|after| after.starts_with('}'));
            let value = match (braced, closes) {
                (true, false) => None,
                _ => self.lookup(name),
            };
            match value.and_then(|value| self.shown(&value)) {
                Some(shown) if made.len() + shown.len() < 10_000 => {
                    made.push_str(&shown);
                    rest = inside.get(end + usize::from(braced)..).unwrap_or("");
                }
                _ => {
                    made.push_str(from.get(..1).unwrap_or(""));
                    rest = inside;
                }
            }
        }
        made.push_str(rest);
        made
    }

    /// A cell in another language: `%%bash`, `%%writefile x.yaml`.
    pub(super) fn cell(&mut self, args: &Args) {
        let (Some(kind), Some(line), Some(body)) = (
            args.text(0, "magic"),
            args.text(1, "line"),
            args.text(2, "cell"),
        ) else {
            return;
        };
        let (kind, line, body) = (kind.clone(), line.to_string(), body.to_string());
        match &*kind {
            "bash" | "sh" | "script" | "shell" => self.command(&body),
            "writefile" | "file" => {
                let path = line.split_whitespace().find(|word| !word.starts_with('-'));
                if let Some(path) = path {
                    self.write(path, &body);
                }
            }
            _ => {}
        }
    }

    /// Versions that `pip install` commands and comments pin.
    pub(super) fn pins(&mut self) {
        let mut pins: Vec<(String, String)> = Vec::new();
        let installs = self
            .out
            .commands
            .iter()
            .filter(|line| line.contains("install"));
        for line in installs.chain(&self.out.comments) {
            for word in line.split([' ', '\n', '\t', ',', ';']) {
                let word = word.trim_matches(['"', '\'', '[', ']']);
                let Some((name, version)) = word.split_once("==") else {
                    continue;
                };
                let name = name.split('[').next().unwrap_or("");
                let named = !name.is_empty()
                    && name
                        .chars()
                        .all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter));
                let numbered = version.starts_with(|letter: char| letter.is_ascii_digit());
                if named && numbered && pins.len() < 200 {
                    let version = version.trim_end_matches(['"', '\'', ')', '`']);
                    let pin = (name.to_string(), version.to_string());
                    if !pins.contains(&pin) {
                        pins.push(pin);
                    }
                }
            }
        }
        self.out.pins = pins;
    }
}
