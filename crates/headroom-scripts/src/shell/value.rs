//! Values of variables: text, parts of which cannot be known.

use super::Word;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What is known of a part of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Yes,
    /// Nothing gives it: an argument or variable that the script expects from outside. A test sees it empty.
    NotGiven(Rc<str>),
    /// It is decided by a run: the output of a program, a condition.
    No(Rc<str>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub text: String,
    pub known: Known,
}

/// A text in parts; cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Value(Rc<Vec<Part>>);

impl Value {
    pub fn text(text: impl Into<String>) -> Self {
        Self::of(vec![Part {
            text: text.into(),
            known: Known::Yes,
        }])
    }

    /// What nothing gives, as it is written.
    pub fn not_given(written: &str) -> Self {
        Self::of(vec![Part {
            text: written.into(),
            known: Known::NotGiven(written.into()),
        }])
    }

    /// What only a run could tell, as it is written.
    pub fn unknown(written: &str, why: &str) -> Self {
        Self::of(vec![Part {
            text: written.into(),
            known: Known::No(why.into()),
        }])
    }

    pub fn of(parts: Vec<Part>) -> Self {
        let mut joined: Vec<Part> = Vec::with_capacity(parts.len());
        for part in parts {
            match joined.last_mut() {
                Some(last) if last.known == Known::Yes && part.known == Known::Yes => {
                    last.text.push_str(&part.text);
                }
                _ => joined.push(part),
            }
        }
        Self(Rc::new(joined))
    }

    pub fn parts(&self) -> &[Part] {
        &self.0
    }

    /// The whole text, unknown parts as they are written.
    pub fn written(&self) -> String {
        self.0.iter().map(|part| part.text.as_str()).collect()
    }

    pub fn len(&self) -> usize {
        self.0.iter().map(|part| part.text.len() + 16).sum()
    }

    /// The text of a run to which nothing is given; `None` if a run decides a part of it.
    pub fn given(&self) -> Option<String> {
        let part = |part: &Part| match &part.known {
            Known::Yes => Some(part.text.clone()),
            Known::NotGiven(_) => Some(String::new()),
            Known::No(_) => None,
        };
        self.0.iter().map(part).collect()
    }

    /// The text, if all of it is known.
    pub fn known(&self) -> Option<String> {
        let known = self.0.iter().all(|part| part.known == Known::Yes);
        known.then(|| self.written())
    }

    pub fn is_known(&self) -> bool {
        self.0.iter().all(|part| part.known == Known::Yes)
    }

    /// What it depends on that was not given.
    pub fn why(&self) -> Option<String> {
        let mut reasons: Vec<&str> = Vec::new();
        for part in self.0.iter() {
            if let Known::NotGiven(why) | Known::No(why) = &part.known
                && !reasons.contains(&&**why)
                && reasons.len() < 4
            {
                reasons.push(why);
            }
        }
        (!reasons.is_empty()).then(|| reasons.join(", "))
    }

    /// The same text, as one that depends on a condition.
    pub fn doubted(&self, why: &Rc<str>) -> Self {
        let part = |part: &Part| Part {
            text: part.text.clone(),
            known: match &part.known {
                Known::Yes => Known::No(why.clone()),
                other => other.clone(),
            },
        };
        if self.0.is_empty() {
            return Self::unknown("", why);
        }
        Self(Rc::new(self.0.iter().map(part).collect()))
    }

    pub fn word(&self) -> Word {
        Word {
            text: self.written(),
            unknown: self.why(),
        }
    }

    /// The bytes from `start` to `end` of the written text; a part that is cut stays as unknown as it was.
    pub fn slice(&self, start: usize, end: usize) -> Self {
        let mut at = 0;
        let mut parts = Vec::new();
        for part in self.0.iter() {
            let from = start.clamp(at, at + part.text.len()) - at;
            let to = end.clamp(at, at + part.text.len()) - at;
            if let Some(text) = part.text.get(from..to)
                && !text.is_empty()
            {
                parts.push(Part {
                    text: text.into(),
                    known: part.known.clone(),
                });
            }
            at += part.text.len();
        }
        Self::of(parts)
    }

    pub fn joined(values: &[Self], between: &str) -> Self {
        let mut parts = Vec::new();
        for (place, value) in values.iter().enumerate() {
            if place > 0 && !between.is_empty() {
                parts.push(Part {
                    text: between.into(),
                    known: Known::Yes,
                });
            }
            parts.extend(value.0.iter().cloned());
        }
        Self::of(parts)
    }
}

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Variable {
    Text(Value),
    List(Rc<Vec<Value>>),
    Map(Rc<BTreeMap<String, Value>>),
}

impl Variable {
    pub fn values(&self) -> Vec<Value> {
        match self {
            Self::Text(value) => vec![value.clone()],
            Self::List(values) => values.to_vec(),
            Self::Map(values) => values.values().cloned().collect(),
        }
    }

    pub fn doubted(&self, why: &Rc<str>) -> Self {
        match self {
            Self::Text(value) => Self::Text(value.doubted(why)),
            Self::List(values) => Self::List(Rc::new(
                values.iter().map(|value| value.doubted(why)).collect(),
            )),
            Self::Map(values) => {
                let entry = |(key, value): (&String, &Value)| (key.clone(), value.doubted(why));
                Self::Map(Rc::new(values.iter().map(entry).collect()))
            }
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Text(value) => value.len(),
            Self::List(values) => values.iter().map(Value::len).sum(),
            Self::Map(values) => values.values().map(Value::len).sum(),
        }
    }
}
