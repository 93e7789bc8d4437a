//! What a shell knows while a script is followed.

use super::pattern::Fuel;
use super::syntax::List;
use super::value::{Part, Value, Variable};
use super::{Script, Word};
use crate::Beside;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Yes,
    No,
    /// A program ran; it is taken to have succeeded, but nothing may be concluded from that.
    Ran,
    Unknown,
}

impl Status {
    pub fn of(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }

    pub fn not(self) -> Self {
        match self {
            Self::Yes => Self::No,
            Self::No => Self::Yes,
            Self::Ran | Self::Unknown => Self::Unknown,
        }
    }
}

/// Where a script goes on after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    Break,
    Continue,
    Return,
    Exit,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Output {
    pub parts: Vec<Part>,
    /// Something wrote to it that cannot be known.
    pub unknown: bool,
}

/// What a command may read.
#[derive(Clone, Debug)]
pub(super) enum Input {
    /// The terminal.
    None,
    Unknown,
    Text(Value),
}

/// Positional parameters.
#[derive(Clone, Debug, Default)]
pub(super) struct Arguments {
    pub values: Vec<Value>,
    /// Whether they were given; a script's own are not.
    pub given: bool,
}

/// Variables by name; copies are shared until one of them changes.
pub(super) type Variables = Rc<BTreeMap<String, Variable>>;

pub(super) struct Shell<'a> {
    pub beside: &'a dyn Beside,
    pub out: Script,
    pub variables: Variables,
    pub exported: BTreeSet<String>,
    pub functions: BTreeMap<String, List>,
    pub arguments: Arguments,
    /// Of each function that is running: variables to restore.
    pub locals: Vec<Vec<(String, Option<Variable>)>>,
    pub fuel: Fuel,
    pub depth: u32,
    pub flow: Flow,
    /// What runs the shell that is being followed, such as `srun --nodes 2`.
    pub within: Vec<Word>,
    pub capture: Option<Output>,
    pub input: Input,
    /// Whether commands are noted; those whose output is wanted are not.
    pub silent: bool,
    /// The command that words without one of their own belong to.
    pub last: Option<usize>,
    pub export_all: bool,
    pub options_read: usize,
}

impl<'a> Shell<'a> {
    pub fn new(beside: &'a dyn Beside, fuel: u64) -> Self {
        Self {
            beside,
            out: Script::default(),
            variables: Variables::default(),
            exported: BTreeSet::new(),
            functions: BTreeMap::new(),
            arguments: Arguments::default(),
            locals: Vec::new(),
            fuel: Fuel(fuel),
            depth: 0,
            flow: Flow::Next,
            within: Vec::new(),
            capture: None,
            input: Input::None,
            silent: false,
            last: None,
            export_all: false,
            options_read: 0,
        }
    }

    pub fn is_out_of_fuel(&self) -> bool {
        self.fuel.0 == 0
    }

    pub fn set(&mut self, name: &str, variable: Variable) {
        // A value that grows without end stops growing.
        if variable.len() > 1 << 18 || !self.fuel.burn(variable.len() + 16) {
            return;
        }
        if self.export_all {
            self.exported.insert(name.into());
        }
        self.store(name, Some(variable));
    }

    /// Sets a variable, or takes it away.
    pub fn store(&mut self, name: &str, variable: Option<Variable>) {
        if Rc::strong_count(&self.variables) > 1 && !self.fuel.burn(self.variables.len() * 24) {
            return;
        }
        let variables = Rc::make_mut(&mut self.variables);
        match variable {
            Some(variable) => variables.insert(name.into(), variable),
            None => variables.remove(name),
        };
    }

    pub fn set_text(&mut self, name: &str, value: Value) {
        self.set(name, Variable::Text(value));
    }

    /// Makes a variable local to the function that is running.
    pub fn localize(&mut self, name: &str) {
        if let Some(frame) = self.locals.last_mut() {
            frame.push((name.into(), self.variables.get(name).cloned()));
        }
    }

    pub fn print(&mut self, value: &Value) {
        let cost = value.len();
        if let Some(output) = &mut self.capture
            && self.fuel.burn(cost)
        {
            output.parts.extend(value.parts().iter().cloned());
        }
    }

    pub fn print_unknown(&mut self) {
        if let Some(output) = &mut self.capture {
            output.unknown = true;
        }
    }

    /// Runs something and keeps what it prints.
    pub fn captured(&mut self, run: impl FnOnce(&mut Self)) -> Output {
        let outer = self.capture.replace(Output::default());
        run(self);
        std::mem::replace(&mut self.capture, outer).unwrap_or_default()
    }

    /// A file's text: one that the script wrote, or one beside it.
    pub fn file(&mut self, path: &str) -> Option<String> {
        let plain = |path: &str| path.trim_start_matches("./").to_string();
        let wanted = plain(path);
        let own = self.out.files.iter().rev();
        let own = own
            .filter(|(name, _)| plain(name) == wanted)
            .map(|(_, text)| text.clone())
            .next();
        let text = own.or_else(|| self.beside.text(path))?;
        self.fuel.burn(text.len() + 100).then_some(text)
    }

    pub fn write(&mut self, path: String, text: &str, append: bool) {
        if !self.fuel.burn(text.len() + 100) {
            return;
        }
        if append
            && let Some((_, before)) = self
                .out
                .files
                .iter_mut()
                .rev()
                .find(|(name, _)| *name == path)
        {
            if before.len() < 1 << 20 {
                before.push_str(text);
            }
            return;
        }
        self.out.files.push((path, text.into()));
    }
}
