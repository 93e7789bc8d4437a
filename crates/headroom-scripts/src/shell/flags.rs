//! A launch's arguments as keys and values.

use super::options::{is_option, tail};
use super::{Launch, Word};

/// How an argument is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `--key value`, `--key=value`, `-k value`, `--switch`.
    Option,
    /// `key=value`, `+key=value`, `++key=value` of Hydra, OmegaConf and the like.
    Override,
    /// `~key`: taken out.
    Removed,
    /// A word on its own, such as a configuration's path; its key is empty.
    Positional,
}

/// An argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// Without dashes and pluses, otherwise as written.
    pub key: String,
    pub form: Form,
    /// None for a switch.
    pub values: Vec<Word>,
}

impl Launch {
    /// Arguments in their order.
    pub fn flags(&self) -> Vec<Flag> {
        flags(&self.arguments)
    }
}

/// The same of any words, such as a manifest's `args`.
pub fn flags(words: &[Word]) -> Vec<Flag> {
    let mut all: Vec<Flag> = Vec::new();
    // Whether words that follow are values of the last flag.
    let mut open = false;
    for word in words {
        let text = word.text.as_str();
        if text == "--" || (text.is_empty() && !open) {
            open = false;
            continue;
        }
        if text == "@" {
            // `@ file.toml` of prime-rl and pydantic's command lines.
            all.push(flag("@", Form::Option, Vec::new()));
            open = true;
            continue;
        }
        if is_option(text) && !text.starts_with("---") {
            let plain = text.trim_start_matches('-');
            let dashes = text.len() - plain.len();
            match key_of(plain) {
                Some(key) => {
                    let value = tail(word, dashes + key.len() + 1);
                    all.push(flag(key, Form::Option, vec![value]));
                    open = false;
                }
                None => {
                    all.push(flag(plain, Form::Option, Vec::new()));
                    open = true;
                }
            }
            continue;
        }
        // A variable that holds more arguments, none of which is known.
        if word.unknown.is_some() && is_bundle(text) {
            all.push(flag("", Form::Positional, vec![word.clone()]));
            open = false;
            continue;
        }
        let first = open && all.last().is_some_and(|flag| flag.values.is_empty());
        let takes_overrides = open
            && all
                .last()
                .is_some_and(|flag| OVERRIDES.contains(&flag.key.as_str()));
        if (!first || takes_overrides)
            && let Some(override_) = override_of(word)
        {
            all.push(override_);
            // After `--cfg-options a=1` more may follow; a plain word does not belong to any.
            open = false;
            continue;
        }
        match all.last_mut() {
            Some(last) if open => last.values.push(word.clone()),
            _ => all.push(flag("", Form::Positional, vec![word.clone()])),
        }
    }
    all
}

/// Options whose values are overrides themselves.
const OVERRIDES: &[&str] = &[
    "cfg-options",
    "cfg_options",
    "override",
    "overrides",
    "set",
    "opts",
    "options",
    "param",
];

fn flag(key: &str, form: Form, values: Vec<Word>) -> Flag {
    Flag {
        key: key.into(),
        form,
        values,
    }
}

/// The key before an equals sign.
fn key_of(text: &str) -> Option<&str> {
    let (key, _) = text.split_once('=')?;
    is_key(key).then_some(key)
}

fn is_key(key: &str) -> bool {
    let plain = |c: char| {
        c.is_alphanumeric()
            || matches!(
                c,
                '_' | '.' | '-' | '/' | '@' | '[' | ']' | ':' | '$' | '{' | '}'
            )
    };
    !key.is_empty() && key.chars().all(plain)
}

fn override_of(word: &Word) -> Option<Flag> {
    let text = word.text.as_str();
    if let Some(key) = text.strip_prefix('~')
        && is_key(key)
        && !key.contains('/')
    {
        return Some(flag(key, Form::Removed, Vec::new()));
    }
    let plain = text.trim_start_matches('+');
    let pluses = text.len() - plain.len();
    let key = key_of(plain)?;
    // `./dir/a=b` and `http://host?a=b` are no settings.
    if key.starts_with(['.', '/', '-'])
        || key.contains("//")
        || key.starts_with(|c: char| c.is_ascii_digit())
    {
        return None;
    }
    let value = tail(word, pluses + key.len() + 1);
    Some(flag(key, Form::Override, vec![value]))
}

/// Whether a whole word is a variable whose name says that it holds arguments.
fn is_bundle(text: &str) -> bool {
    let name = text.strip_prefix('$').unwrap_or_default();
    let name = name
        .trim_matches(['{', '}', '"', '@', '*', '[', ']'])
        .to_ascii_lowercase();
    let known = [
        "args",
        "arg",
        "opts",
        "options",
        "flags",
        "extra",
        "arguments",
        "overrides",
        "params",
        "flag",
    ];
    name.is_empty() && text.starts_with('$') || known.iter().any(|end| name.ends_with(end))
}
