//! What a command does: a builtin, a function, another script, or a program that is noted.

use super::filter::{self, Printed};
use super::parse::parse;
use super::prepare::prepare;
use super::state::{Arguments, Input, Shell, Status};
use super::value::Value;
use super::wrap::{self, has_extension};
use super::{Command, Word};
use std::collections::BTreeMap;
use std::rc::Rc;

pub(super) type Prefix = [(String, Value)];

/// Commands that are noted at most.
const COMMANDS: usize = 2048;

impl Shell<'_> {
    /// Runs a command whose words are known; `prefix` are the variables in front of it.
    pub fn command(&mut self, prefix: &Prefix, words: &[Value]) -> Status {
        if !self
            .fuel
            .burn(words.iter().map(Value::len).sum::<usize>() + 100)
        {
            return Status::Unknown;
        }
        let Some((first, rest)) = words.split_first() else {
            return Status::Yes;
        };
        let Some(name) = first.known() else {
            self.external(prefix, words);
            return Status::Ran;
        };
        if let Some(body) = self.functions.get(&name).cloned() {
            self.last = None;
            return self.with_prefix(prefix, |shell| shell.call(&body, rest));
        }
        let before = std::mem::take(&mut self.last);
        if let Some(status) = self.builtin(&name, rest, prefix) {
            return status;
        }
        match filter::run(self, &name, rest) {
            Printed::No => {}
            Printed::Unknown => {
                self.print_unknown();
                return Status::Ran;
            }
            Printed::Text(value) => {
                self.print(&value);
                return Status::Ran;
            }
        }
        if name.len() > 1 && name.starts_with('-') {
            // No program is called so: its line continues the one before, without the backslash.
            if let Some(command) = before.and_then(|at| self.out.commands.get_mut(at)) {
                command.words.extend(words.iter().map(Value::word));
                self.last = before;
                return Status::Ran;
            }
        }
        self.external(prefix, words);
        Status::Ran
    }

    /// Runs something that sees more variables, without keeping them.
    fn with_prefix(&mut self, prefix: &Prefix, run: impl FnOnce(&mut Self) -> Status) -> Status {
        let mut before = Vec::new();
        for (name, value) in prefix {
            before.push((
                name,
                self.variables.get(name).cloned(),
                self.exported.contains(name),
            ));
            self.set_text(name, value.clone());
            self.exported.insert(name.clone());
        }
        let status = run(self);
        for (name, value, exported) in before.into_iter().rev() {
            self.store(name, value);
            if !exported {
                self.exported.remove(name);
            }
        }
        status
    }

    /// Text as part of the script that runs.
    pub fn follow(&mut self, text: &str) -> Status {
        if self.depth > 40 || !self.fuel.burn(text.len() * 8 + 400) {
            return Status::Unknown;
        }
        let list = parse(text, 0);
        self.list(&list)
    }

    /// Text as a script of its own.
    fn follow_script(&mut self, text: &str, arguments: &[Value], named: bool) -> Status {
        match prepare(text, &mut self.out.directives) {
            Some(text) => self.follow_prepared(&text, arguments, named),
            None => Status::Unknown,
        }
    }

    /// The same of what is prepared; a `named` script sees what is exported, and only that.
    fn follow_prepared(&mut self, text: &str, arguments: &[Value], named: bool) -> Status {
        let arguments = Arguments {
            values: arguments.to_vec(),
            given: named,
        };
        let outer = std::mem::replace(&mut self.arguments, arguments);
        let functions = self.functions.clone();
        let status = self.child(|shell| {
            if named {
                shell.fuel.burn(shell.variables.len() * 24);
                let exported = &shell.exported;
                Rc::make_mut(&mut shell.variables).retain(|name, _| exported.contains(name));
            }
            shell.follow(text)
        });
        self.functions = functions;
        self.arguments = outer;
        status
    }

    /// A program: if it is a shell, or a wrapper around one, what that runs; otherwise it is noted.
    fn external(&mut self, prefix: &Prefix, words: &[Value]) {
        self.print_unknown();
        let texts: Vec<String> = words.iter().map(Value::written).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let mut at = 0;
        let mut own: Vec<(String, Value)> = Vec::new();
        loop {
            let rest = texts.get(at..).unwrap_or_default();
            let length = wrap::skip(rest);
            if length == 0 || at + length >= texts.len() {
                break;
            }
            // `env A=1 B=2 program`.
            for place in at..at + length {
                if let (Some(text), Some(value)) = (texts.get(place), words.get(place))
                    && let Some((name, _)) = text.split_once('=')
                    && wrap::is_name(name)
                {
                    own.push((name.to_string(), value.slice(name.len() + 1, text.len())));
                }
            }
            at += length;
        }
        let (Some(name), Some(rest)) = (texts.get(at).copied(), words.get(at + 1..)) else {
            return;
        };
        let plain = name.rsplit('/').next().unwrap_or(name);
        let mut variables = prefix.to_vec();
        variables.extend(own);
        let before = words.get(..at).unwrap_or_default();
        if at > 0 && self.functions.contains_key(name) {
            let rest = words.get(at..).unwrap_or_default().to_vec();
            self.inside(before, &variables, |shell| shell.command(&[], &rest));
            return;
        }
        match plain {
            "bash" | "sh" | "zsh" | "dash" | "ksh"
                if self.shell(before, rest, &variables, &texts, at) =>
            {
                return;
            }
            "eval" if at > 0 => {
                let joined = Value::joined(rest, " ").written();
                self.inside(before, &variables, |shell| shell.follow(&joined));
                return;
            }
            "ssh" | "pdsh" | "tmux" | "screen" | "parallel-ssh" => {
                let last = rest.last().map(Value::written).unwrap_or_default();
                if last.contains(' ') {
                    self.inside(before, &variables, |shell| {
                        shell.child(|shell| shell.follow(&last))
                    });
                    return;
                }
            }
            "sbatch" | "qsub" | "bsub" if self.batch(before, rest, &variables) => return,
            _ if has_extension(name, &["sh", "bash"]) => {
                if let Some(script) = self.file(name) {
                    self.inside(before, &variables, |shell| {
                        shell.follow_script(&script, rest, true)
                    });
                    return;
                }
            }
            _ => {}
        }
        if let (Input::Text(value), "-" | "") =
            (&self.input, texts.get(at + 1).copied().unwrap_or_default())
            && plain.starts_with("python")
        {
            let text = value.written();
            self.write("-".into(), &text, false);
        }
        self.note(&variables, words);
    }

    /// Follows a shell's script; whether there was one to follow.
    fn shell(
        &mut self,
        before: &[Value],
        words: &[Value],
        variables: &Prefix,
        texts: &[&str],
        at: usize,
    ) -> bool {
        let mut place = 0;
        let mut text = false;
        while let Some(word) = texts.get(at + 1 + place) {
            if *word == "-o" || *word == "-O" {
                place += 2;
            } else if word.starts_with("--") {
                place += 1;
            } else if word.len() > 1 && word.starts_with('-') {
                text |= word.contains('c');
                place += 1;
            } else {
                break;
            }
        }
        let Some(script) = words.get(place) else {
            // `bash <<EOF`.
            if let Input::Text(value) = self.input.clone() {
                let value = value.written();
                self.inside(before, variables, |shell| {
                    shell.follow_script(&value, &[], true)
                });
                return true;
            }
            return false;
        };
        let given = words.get(place + 1..).unwrap_or_default();
        if text {
            let script = script.written();
            // `bash -c "…" name arguments`.
            let given = given.get(1..).unwrap_or_default();
            self.inside(before, variables, |shell| {
                // Variables that are not exported stand in the text already, expanded, unless it was quoted.
                shell.follow_script(&script, given, false)
            });
            return true;
        }
        let Some(script) = script.known().and_then(|path| self.file(&path)) else {
            return false;
        };
        self.inside(before, variables, |shell| {
            shell.follow_script(&script, given, true)
        });
        true
    }

    /// `sbatch` and its options; whether the script could be followed.
    fn batch(&mut self, before: &[Value], words: &[Value], variables: &Prefix) -> bool {
        let mut place = 0;
        let mut options = Vec::new();
        while let Some(word) = words.get(place).map(Value::written) {
            let Some(name) = word.strip_prefix('-') else {
                break;
            };
            place += 1;
            let name = name.trim_start_matches('-');
            if let Some(command) = name.strip_prefix("wrap") {
                let command = match command.strip_prefix('=') {
                    Some(command) => command.to_string(),
                    None => words.get(place).map(Value::written).unwrap_or_default(),
                };
                self.out.directives.append(&mut options);
                self.inside(before, variables, |shell| {
                    shell.follow_script(&command, &[], false)
                });
                return true;
            }
            match name.split_once('=') {
                Some((name, value)) => options.push((name.to_string(), value.to_string())),
                None if wrap::is_switch_of_slurm(&word) => {
                    options.push((name.to_string(), String::new()));
                }
                None => {
                    let value = words.get(place).map(Value::written).unwrap_or_default();
                    options.push((name.to_string(), value));
                    place += 1;
                }
            }
        }
        let script = match words.get(place) {
            Some(path) => path.known().and_then(|path| self.file(&path)),
            None => match &self.input {
                Input::Text(value) => Some(value.written()),
                _ => None,
            },
        };
        let Some(script) = script else { return false };
        let given = words.get(place + 1..).unwrap_or_default();
        let mut own = Vec::new();
        let Some(text) = prepare(&script, &mut own) else {
            return false;
        };
        // Options of the command win over directives of the script.
        self.out.directives.append(&mut own);
        self.out.directives.append(&mut options);
        self.inside(before, variables, |shell| {
            shell.follow_prepared(&text, given, true)
        });
        true
    }

    /// Runs what a wrapper runs.
    fn inside(
        &mut self,
        wrapper: &[Value],
        variables: &Prefix,
        run: impl FnOnce(&mut Self) -> Status,
    ) {
        let outer = self.within.clone();
        self.within.extend(wrapper.iter().map(Value::word));
        let input = std::mem::replace(&mut self.input, Input::Unknown);
        self.with_prefix(variables, run);
        self.input = input;
        self.within = outer;
        self.last = None;
    }

    fn note(&mut self, variables: &Prefix, words: &[Value]) {
        if self.out.commands.len() >= COMMANDS || !self.fuel.burn(300) {
            return;
        }
        if self.silent {
            let first = words.first().map(Value::written).unwrap_or_default();
            if !matches!(
                first.as_str(),
                "torchrun" | "accelerate" | "deepspeed" | "sbatch"
            ) {
                return;
            }
        }
        let mut environment: BTreeMap<String, Word> = BTreeMap::new();
        for name in &self.exported {
            if let Some(variable) = self.variables.get(name) {
                if !self.fuel.burn(variable.len() + 100) {
                    return;
                }
                let value = variable.values().into_iter().next().unwrap_or_default();
                environment.insert(name.clone(), value.word());
            }
        }
        for (name, value) in variables {
            environment.insert(name.clone(), value.word());
        }
        self.last = Some(self.out.commands.len());
        self.out.commands.push(Command {
            words: words.iter().map(Value::word).collect(),
            environment,
            within: self.within.clone(),
        });
    }
}
