//! Who or what set a value.

use std::fmt;

use headroom_catalog::Fact;

/// The source of a value, the weakest first.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// The default of this version of the link and file format.
    Format(u32),
    /// The model's entry in the catalogue.
    Catalogue {
        model: &'static str,
    },
    /// What a training method is usually run with.
    Method {
        why: &'static str,
        source: &'static str,
    },
    /// A default of the trainer or of a library below it.
    Trainer {
        library: Library,
        fact: &'static Fact,
    },
    Preset(&'static str),
    Link,
    /// A file, by the program whose file it is, and the key in it.
    File {
        tool: &'static str,
        key: String,
    },
    /// What a file's program does by default, or what follows from other keys: an assumption, and why.
    Assumed(String),
    /// A form or a flag.
    User,
}

impl Origin {
    /// The strength of the source: a value of a higher rank replaces one of a lower.
    pub(crate) fn rank(&self) -> u8 {
        match self {
            Self::Format(_) => 0,
            Self::Catalogue { .. } => 1,
            Self::Method { .. } => 2,
            Self::Trainer { .. } => 3,
            Self::Preset(_) => 4,
            Self::Link => 5,
            Self::Assumed(_) => 6,
            Self::File { .. } => 7,
            Self::User => 8,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format(_) => f.write_str("default"),
            Self::Catalogue { model } => write!(f, "catalogue entry of {model}"),
            Self::Method { why, .. } => f.write_str(why),
            Self::Trainer { library, .. } => write!(f, "default of {library}"),
            Self::Preset(id) => write!(f, "preset {id}"),
            Self::Link => f.write_str("link"),
            Self::File { tool, key } => write!(f, "{key} in {tool}"),
            Self::Assumed(why) => f.write_str(why),
            Self::User => f.write_str("given"),
        }
    }
}

/// A library and its version, such as `TRL SFTTrainer 1.6`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Library {
    pub name: &'static str,
    pub version: (u8, u8),
}

impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.version;
        write!(f, "{} {major}.{minor}", self.name)
    }
}
