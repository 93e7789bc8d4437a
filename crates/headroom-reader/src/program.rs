//! `Program`: how one training program's files, commands and scripts are recognised and read.

use super::facts::Facts;
use super::keys::Keys;
use headroom_scripts::Beside;
use headroom_scripts::python::Module;
use headroom_scripts::shell::Launch;

/// What a program may find something in.
#[expect(missing_debug_implementations, reason = "it borrows a trait object")]
pub struct Source<'a> {
    /// The file's name, where it has one.
    pub name: &'a str,
    pub text: &'a str,
    pub form: Form,
    pub beside: &'a dyn Beside,
}

/// The form of an input.
#[derive(Debug)]
pub enum Form {
    /// A YAML, JSON or TOML document (OmegaConf's and OLMo's `${…}` resolved).
    Document(Keys),
    /// A command that starts a program, and its flags as keys: dashes removed, `-` as `_` only where the program wants it.
    Command { launch: Launch, flags: Keys },
    /// A Python file or notebook, with the command that starts it where one is known.
    Python {
        module: Module,
        launch: Option<Launch>,
    },
}

impl Source<'_> {
    pub fn document(&self) -> Option<&Keys> {
        match &self.form {
            Form::Document(keys) => Some(keys),
            _ => None,
        }
    }

    pub fn command(&self) -> Option<(&Launch, &Keys)> {
        match &self.form {
            Form::Command { launch, flags } => Some((launch, flags)),
            _ => None,
        }
    }

    pub fn python(&self) -> Option<&Module> {
        match &self.form {
            Form::Python { module, .. } => Some(module),
            _ => None,
        }
    }

    pub fn launch(&self) -> Option<&Launch> {
        match &self.form {
            Form::Command { launch, .. } => Some(launch),
            Form::Python { launch, .. } => launch.as_ref(),
            Form::Document(_) => None,
        }
    }
}

/// One program.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// In facts and messages: `axolotl`.
    pub id: &'static str,
    /// As people write it.
    pub name: &'static str,
    /// What it reads from a source; `None` where that is not its own.
    pub read: fn(&Source) -> Option<Facts>,
}

/// Whether a path ends in one of these kinds, such as `yaml`.
pub fn is_kind(path: &str, kinds: &[&str]) -> bool {
    let kind = path.rsplit_once('.').map(|(_, kind)| kind);
    kind.is_some_and(|kind| kinds.iter().any(|own| kind.eq_ignore_ascii_case(own)))
}
