//! A document: what YAML and JSON files have in common, with its order and its comments.

pub mod json;
pub mod pickle;
pub mod toml;
pub mod yaml;

/// One value of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Document {
    Null,
    Bool(bool),
    Int(i128),
    Number(f64),
    Text(String),
    List(Vec<Document>),
    Map(Vec<Entry>),
}

/// A key, its value, and a comment that writers without comments leave out.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub key: String,
    pub value: Document,
    pub comment: &'static str,
}

impl Document {
    /// A map from its keys and values, in this order.
    pub fn map<K: Into<String>, const N: usize>(entries: [(K, Self); N]) -> Self {
        entries.into_iter().collect()
    }

    /// A map with nothing in it yet.
    pub fn new() -> Self {
        Self::Map(Vec::new())
    }

    /// The map with one more entry; a value that is no map becomes one.
    #[must_use]
    pub fn with(self, key: impl Into<String>, value: impl Into<Self>) -> Self {
        self.with_note(key, value, "")
    }

    /// The map with one more entry and a comment behind it.
    #[must_use]
    pub fn with_note(
        self,
        key: impl Into<String>,
        value: impl Into<Self>,
        comment: &'static str,
    ) -> Self {
        let mut entries = match self {
            Self::Map(entries) => entries,
            _ => Vec::new(),
        };
        entries.push(Entry {
            key: key.into(),
            value: value.into(),
            comment,
        });
        Self::Map(entries)
    }

    /// The map with the entries of another behind its own.
    #[must_use]
    pub fn and(self, more: Self) -> Self {
        match (self, more) {
            (Self::Map(mut entries), Self::Map(more)) => {
                entries.extend(more);
                Self::Map(entries)
            }
            (value, _) => value,
        }
    }

    /// The value under a key, where this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Map(entries) => entries
                .iter()
                .find(|entry| entry.key == key)
                .map(|entry| &entry.value),
            _ => None,
        }
    }

    /// The map at the end of a path of keys, made where it is missing.
    pub(crate) fn at<'a>(&mut self, path: impl Iterator<Item = &'a str>) -> &mut Self {
        let mut node = self;
        for key in path {
            if !matches!(node, Self::Map(_)) {
                *node = Self::new();
            }
            let Self::Map(entries) = node else {
                return node;
            };
            let at = entries.iter().position(|entry| entry.key == key);
            let at = at.unwrap_or_else(|| {
                entries.push(Entry {
                    key: key.into(),
                    value: Self::new(),
                    comment: "",
                });
                entries.len() - 1
            });
            node = &mut entries[at].value;
        }
        node
    }
}

impl Default for Document {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Into<String>> FromIterator<(K, Document)> for Document {
    fn from_iter<I: IntoIterator<Item = (K, Document)>>(entries: I) -> Self {
        let entry = |(key, value): (K, Document)| Entry {
            key: key.into(),
            value,
            comment: "",
        };
        Self::Map(entries.into_iter().map(entry).collect())
    }
}

impl From<bool> for Document {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}
impl From<u64> for Document {
    fn from(value: u64) -> Self {
        Self::Int(value.into())
    }
}
impl From<u32> for Document {
    fn from(value: u32) -> Self {
        Self::Int(value.into())
    }
}
impl From<f64> for Document {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}
impl From<&str> for Document {
    fn from(value: &str) -> Self {
        Self::Text(value.into())
    }
}
impl From<String> for Document {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}
impl From<Vec<String>> for Document {
    fn from(value: Vec<String>) -> Self {
        Self::List(value.into_iter().map(Self::Text).collect())
    }
}
impl From<crate::units::Bytes> for Document {
    fn from(value: crate::units::Bytes) -> Self {
        Self::Int(value.get().into())
    }
}
impl<T: Into<Document>> From<Option<T>> for Document {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
