//! Commands that the shell itself carries out.

use super::command::Prefix;
use super::filter::{self};
use super::run::line;
use super::state::{Arguments, Flow, Input, Shell, Status};
use super::value::{Value, Variable};
use std::rc::Rc;

impl Shell<'_> {
    pub(super) fn builtin(
        &mut self,
        name: &str,
        words: &[Value],
        prefix: &Prefix,
    ) -> Option<Status> {
        let text = |at: usize| words.get(at).map(Value::written).unwrap_or_default();
        Some(match name {
            ":" | "true" | "cd" | "pushd" | "popd" | "trap" | "ulimit" | "umask" | "wait"
            | "module" | "conda" | "deactivate" | "alias" | "hash" | "complete" | "mkdir"
            | "rm" | "cp" | "mv" | "ln" | "touch" | "sleep" | "chmod" | "clear"
                if name != "conda" || !matches!(text(0).as_str(), "run") =>
            {
                Status::Yes
            }
            "false" => Status::No,
            "exit" => {
                self.leave(Flow::Exit);
                Status::Yes
            }
            "return" => {
                self.leave(if self.locals.is_empty() {
                    Flow::Exit
                } else {
                    Flow::Return
                });
                Status::of(text(0).is_empty() || text(0) == "0")
            }
            "break" => {
                self.leave(Flow::Break);
                Status::Yes
            }
            "continue" => {
                self.leave(Flow::Continue);
                Status::Yes
            }
            "echo" => {
                let flags = words.iter().take_while(|word| {
                    matches!(word.written().as_str(), "-n" | "-e" | "-ne" | "-en")
                });
                let skip = flags.count();
                let joined = Value::joined(words.get(skip..).unwrap_or_default(), " ");
                self.print(&line(joined.parts().to_vec()));
                Status::Yes
            }
            "printf" => {
                match filter::printf(words) {
                    Some(value) => self.print(&value),
                    None => self.print_unknown(),
                }
                Status::Yes
            }
            "pwd" => {
                self.print(&Value::unknown("$PWD", "$PWD"));
                Status::Yes
            }
            "shift" => {
                let count = text(0).parse().unwrap_or(1);
                let count = self.arguments.values.len().min(count);
                self.arguments.values.drain(..count);
                Status::Yes
            }
            "set" => {
                self.set_options(words);
                Status::Yes
            }
            "shopt" => Status::Yes,
            "unset" => {
                for word in words {
                    self.store(&word.written(), None);
                    self.exported.remove(&word.written());
                }
                Status::Yes
            }
            "let" => {
                for word in words {
                    if let Some(text) = word.known() {
                        let _ = super::arithmetic::evaluate(&text, self);
                    }
                }
                Status::Yes
            }
            "read" | "mapfile" | "readarray" => {
                self.read(name, words, prefix);
                Status::Ran
            }
            "getopts" => self.getopts(words),
            "eval" => {
                let joined = Value::joined(words, " ");
                self.follow(&joined.written())
            }
            "source" | "." => {
                let (Some(path), given) = (words.first().and_then(Value::known), words.get(1..))
                else {
                    return Some(Status::Unknown);
                };
                let Some(script) = self.file(&path) else {
                    return Some(Status::Ran);
                };
                let given = given.unwrap_or_default();
                let before = (!given.is_empty()).then(|| {
                    let arguments = Arguments {
                        values: given.to_vec(),
                        given: true,
                    };
                    std::mem::replace(&mut self.arguments, arguments)
                });
                let status = self.follow(&script);
                if let Some(before) = before {
                    self.arguments = before;
                }
                if self.flow == Flow::Return {
                    self.flow = Flow::Next;
                }
                status
            }
            "cat" | "tee" => self.cat(name, words),
            _ => return None,
        })
    }

    fn set_options(&mut self, words: &[Value]) {
        let mut at = 0;
        while let Some(word) = words.get(at).map(Value::written) {
            at += 1;
            match word.as_str() {
                "--" => {
                    let values = words.get(at..).unwrap_or_default().to_vec();
                    self.arguments = Arguments {
                        values,
                        given: true,
                    };
                    return;
                }
                "-o" | "+o" => {
                    let option = words.get(at).map(Value::written);
                    if option.as_deref() == Some("allexport") {
                        self.export_all = word == "-o";
                    }
                    at += 1;
                }
                flags if flags.starts_with(['-', '+']) => {
                    if flags.contains('a') {
                        self.export_all = flags.starts_with('-');
                    }
                    // `set -euo pipefail`: the option's name is no argument.
                    at += usize::from(flags.contains('o'));
                }
                _ => {
                    let values = words.get(at - 1..).unwrap_or_default().to_vec();
                    self.arguments = Arguments {
                        values,
                        given: true,
                    };
                    return;
                }
            }
        }
    }

    fn cat(&mut self, name: &str, words: &[Value]) -> Status {
        let files: Vec<String> = words
            .iter()
            .map(Value::written)
            .filter(|word| !word.starts_with('-'))
            .collect();
        let input = self.input.clone();
        if name == "tee" || files.is_empty() {
            match &input {
                Input::Text(value) => self.print(value),
                _ => self.print_unknown(),
            }
            if let ("tee", Input::Text(value)) = (name, input) {
                let append = words.iter().any(|word| word.written() == "-a");
                for file in files {
                    self.write(file, &value.written(), append);
                }
            }
            return Status::Ran;
        }
        for file in files {
            match self.file(&file) {
                Some(text) => self.print(&Value::text(text)),
                None => self.print_unknown(),
            }
        }
        Status::Ran
    }

    fn read(&mut self, name: &str, words: &[Value], prefix: &Prefix) {
        let mut names = Vec::new();
        let mut array = name != "read";
        let mut whole = array;
        let mut at = 0;
        while let Some(word) = words.get(at).map(Value::written) {
            at += 1;
            if let Some(flags) = word.strip_prefix('-') {
                array |= flags.contains('a') && name == "read";
                // The last of the letters may want the next word.
                if flags.ends_with('d') {
                    whole |= words.get(at).is_some_and(|word| word.written().is_empty());
                    at += 1;
                } else if flags.ends_with(['p', 't', 'n', 'N', 'u', 'i']) && name == "read" {
                    at += 1;
                }
            } else {
                names.push(word);
            }
        }
        let separators: Vec<char> = prefix
            .iter()
            .find(|(name, _)| name == "IFS")
            .map_or_else(|| " \t\n".into(), |(_, value)| value.written())
            .chars()
            .collect();
        let Input::Text(value) = self.input.clone() else {
            for name in &names {
                let why = format!("read {name}");
                self.set_text(name, Value::unknown(&format!("${name}"), &why));
            }
            return;
        };
        let text = value.written();
        let end = if whole {
            text.len()
        } else {
            text.find('\n').unwrap_or(text.len())
        };
        let value = value.slice(0, end);
        let trimmed = trim(&value);
        if name != "read" {
            let lines = trimmed.written();
            let lines = lines.lines().map(Value::text).collect();
            let name = names.first().map_or("MAPFILE", String::as_str);
            self.set(name, Variable::List(Rc::new(lines)));
            return;
        }
        let parts = split(
            &trimmed,
            &separators,
            if array { usize::MAX } else { names.len() },
        );
        if array {
            if let Some(name) = names.first() {
                self.set(name, Variable::List(Rc::new(parts)));
            }
            return;
        }
        if names.is_empty() {
            names.push("REPLY".into());
        }
        for (at, name) in names.iter().enumerate() {
            let value = parts.get(at).cloned().unwrap_or_else(|| Value::text(""));
            self.set_text(name, value);
        }
    }

    fn getopts(&mut self, words: &[Value]) -> Status {
        let (Some(options), Some(name)) = (
            words.first().and_then(Value::known),
            words.get(1).and_then(Value::known),
        ) else {
            return Status::No;
        };
        let Some(word) = self
            .arguments
            .values
            .get(self.options_read)
            .and_then(Value::known)
        else {
            return Status::No;
        };
        let mut letters = word.chars();
        let (Some('-'), Some(letter)) = (letters.next(), letters.next()) else {
            return Status::No;
        };
        self.options_read += 1;
        let rest: String = letters.collect();
        let takes = options.contains(&format!("{letter}:"));
        self.set_text(&name, Value::text(letter.to_string()));
        if takes {
            let value = if rest.is_empty() {
                self.options_read += 1;
                self.arguments
                    .values
                    .get(self.options_read - 1)
                    .cloned()
                    .unwrap_or_default()
            } else {
                Value::text(rest)
            };
            self.set_text("OPTARG", value);
        }
        self.set_text("OPTIND", Value::text((self.options_read + 1).to_string()));
        Status::Yes
    }
}

/// Without blanks around it.
fn trim(value: &Value) -> Value {
    let text = value.written();
    let start = text.len() - text.trim_start().len();
    value.slice(start, start + text.trim().len())
}

/// A value's fields, at most so many; the last has the rest.
fn split(value: &Value, separators: &[char], most: usize) -> Vec<Value> {
    let text = value.written();
    let blank = separators.iter().all(|separator| separator.is_whitespace());
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, found) in text.match_indices(separators) {
        if parts.len() + 1 >= most {
            break;
        }
        if at > start || !blank {
            parts.push(value.slice(start, at));
        }
        start = at + found.len();
        if parts.len() > 4096 {
            break;
        }
    }
    if start < text.len() {
        parts.push(value.slice(start, text.len()));
    }
    parts
}
