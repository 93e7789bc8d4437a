//! One option of an `argparse` parser, and how it is found by its flag.

use super::value::{Args, Hint, Name, V};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Store,
    True,
    False,
    /// `--x` and `--no-x`.
    Boolean,
    Constant,
    Append,
    Count,
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    One,
    Optional,
    Some,
    Any,
    Exactly(usize),
}

#[derive(Clone, Debug)]
pub struct ArgOption {
    /// `--model_path`, `-m`; a positional one has its name alone.
    pub flags: Vec<Name>,
    pub name: Name,
    pub default: Option<V>,
    /// The function that converts.
    pub convert: Option<V>,
    pub hint: Hint,
    pub action: Action,
    pub number: Number,
    pub required: bool,
    pub constant: Option<V>,
}

impl ArgOption {
    /// How it is written on a command line.
    pub fn written(&self) -> Name {
        let long = self.flags.iter().find(|flag| flag.starts_with("--"));
        long.or(self.flags.first()).unwrap_or(&self.name).clone()
    }

    pub(super) fn positional(&self) -> bool {
        self.flags.iter().all(|flag| !flag.starts_with('-'))
    }
}
/// The option that `add_argument` describes.
pub(super) fn option(args: &Args) -> Option<ArgOption> {
    let flags: Vec<Name> = args
        .plain
        .iter()
        .filter_map(|flag| match flag {
            V::Text(flag) => Some(flag.clone()),
            _ => None,
        })
        .collect();
    let long = flags.iter().find(|flag| flag.starts_with("--"));
    let first = long.or(flags.first());
    let name: Name = match args.named("dest") {
        Some(V::Text(name)) => name.clone(),
        _ => first?.trim_start_matches('-').replace('-', "_").into(),
    };
    let action = match args.named("action") {
        Some(V::Text(action)) => match &**action {
            "store_true" => Action::True,
            "store_false" => Action::False,
            "store_const" => Action::Constant,
            "append" | "extend" => Action::Append,
            "count" => Action::Count,
            "help" | "version" => Action::Nothing,
            _ => Action::Store,
        },
        Some(V::Name(path)) if path.ends_with("BooleanOptionalAction") => Action::Boolean,
        _ => Action::Store,
    };
    let number = match args.named("nargs") {
        Some(V::Text(text)) => match &**text {
            "?" => Number::Optional,
            "+" => Number::Some,
            "*" | "..." => Number::Any,
            _ => Number::One,
        },
        Some(V::Int(number)) => Number::Exactly(usize::try_from(*number).unwrap_or(1)),
        _ => Number::One,
    };
    Some(ArgOption {
        flags,
        name,
        default: args.named("default").cloned(),
        convert: args.named("type").cloned(),
        hint: Hint::Any,
        action,
        number,
        required: matches!(args.named("required"), Some(V::Bool(true))),
        constant: args.named("const").cloned(),
    })
}

/// Whether a word begins an option; `-1` is a number.
pub fn is_flag(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next() == Some('-')
        && letters
            .next()
            .is_some_and(|letter| letter == '-' || letter.is_alphabetic())
}

/// An option by its flag, where `-` and `_` are the same and a unique beginning is enough; whether it is `--no-…`.
pub(super) fn find_option(options: &[ArgOption], flag: &str) -> Option<(usize, bool)> {
    let plain = |flag: &str| flag.replace('_', "-");
    let wanted = plain(flag);
    let exact = |wanted: &str| {
        options
            .iter()
            .position(|option| option.flags.iter().any(|own| plain(own) == wanted))
    };
    if let Some(at) = exact(&wanted) {
        return Some((at, false));
    }
    let positive = wanted.strip_prefix("--no-").map(|rest| format!("--{rest}"));
    if let Some(at) = positive.and_then(|positive| exact(&positive)) {
        return Some((at, true));
    }
    let mut starting = options.iter().enumerate().filter(|(_, option)| {
        wanted.len() > 3
            && option
                .flags
                .iter()
                .any(|own| plain(own).starts_with(&wanted))
    });
    match (starting.next(), starting.next()) {
        (Some((at, _)), None) => Some((at, false)),
        _ => None,
    }
}
