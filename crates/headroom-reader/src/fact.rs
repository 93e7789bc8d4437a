//! `Fact`: one thing that a reader finds out about a run, and where it says so.

use std::fmt;

/// What is known of a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Fact<T> {
    /// Nothing mentions it, and no documented default decides it.
    #[default]
    Unsaid,
    /// It is mentioned, and cannot be known from what was given: why.
    Unknown(String),
    Known {
        value: T,
        origin: Origin,
    },
}

/// What says so.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// The words of the file, command or sentence: a key, a flag, a call.
    Read(String),
    /// A documented default of this program.
    Default(&'static str),
    /// It follows from something else that was read.
    Follows(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(key) => f.write_str(key),
            Self::Default(of) => write!(f, "default of {of}"),
            Self::Follows(why) => f.write_str(why),
        }
    }
}

impl<T> Fact<T> {
    pub fn read(value: T, key: impl Into<String>) -> Self {
        Self::Known {
            value,
            origin: Origin::Read(key.into()),
        }
    }

    pub fn default_of(value: T, program: &'static str) -> Self {
        Self::Known {
            value,
            origin: Origin::Default(program),
        }
    }

    pub fn follows(value: T, why: impl Into<String>) -> Self {
        Self::Known {
            value,
            origin: Origin::Follows(why.into()),
        }
    }

    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Known { value, .. } => Some(value),
            _ => None,
        }
    }

    pub fn origin(&self) -> Option<&Origin> {
        match self {
            Self::Known { origin, .. } => Some(origin),
            _ => None,
        }
    }

    pub const fn is_known(&self) -> bool {
        matches!(self, Self::Known { .. })
    }

    pub const fn is_unsaid(&self) -> bool {
        matches!(self, Self::Unsaid)
    }

    /// This, or what another place says where this one is silent.
    pub fn or(self, other: Self) -> Self {
        if self.is_unsaid() { other } else { self }
    }

    /// This, or the program's documented default where nothing is said.
    pub fn or_default(self, value: T, program: &'static str) -> Self {
        self.or(Self::default_of(value, program))
    }

    /// This, or what follows from something else where nothing is said.
    pub fn or_follows(self, value: T, why: impl Into<String>) -> Self {
        self.or(Self::follows(value, why))
    }

    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Self::Unsaid => Fact::Unsaid,
            Self::Unknown(why) => Fact::Unknown(why),
            Self::Known { value, origin } => Fact::Known {
                value: change(value),
                origin,
            },
        }
    }

    /// The same where the change may not understand the value: it is then unknown.
    pub fn and_then<U>(self, change: impl FnOnce(&T) -> Option<U>) -> Fact<U>
    where
        T: fmt::Debug,
    {
        match self {
            Self::Unsaid => Fact::Unsaid,
            Self::Unknown(why) => Fact::Unknown(why),
            Self::Known { value, origin } => match change(&value) {
                Some(value) => Fact::Known { value, origin },
                None => Fact::Unknown(format!("{origin}: {value:?} is not understood")),
            },
        }
    }
}
