//! Documents from every format that serde reads.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};

use super::{Document, Entry};

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue { lenient: false })
    }
}

/// A document as programs in Python read it: of equal keys the last counts, and tags are passed over.
pub(super) const LENIENT: AnyValue = AnyValue { lenient: true };

#[derive(Clone, Copy)]
pub(super) struct AnyValue {
    lenient: bool,
}

impl<'de> DeserializeSeed<'de> for AnyValue {
    type Value = Document;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Document, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AnyValue {
    type Value = Document;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value without a tag")
    }

    fn visit_unit<E>(self) -> Result<Document, E> {
        Ok(Document::Null)
    }

    fn visit_none<E>(self) -> Result<Document, E> {
        Ok(Document::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Document, E> {
        Ok(Document::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Document, E> {
        Ok(Document::Int(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Document, E> {
        Ok(Document::Int(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Document, E> {
        Ok(Document::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Document, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Document, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Document, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Document::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Document, A::Error> {
        let mut map = Vec::new();
        while let Some(key) = entries.next_key()? {
            let key = text(key)?;
            let value = entries.next_value_seed(self)?;
            map.push(Entry {
                key,
                value,
                comment: "",
            });
        }
        if self.lenient {
            keep_last(&mut map);
        }
        match duplicate(&map) {
            Some(key) => Err(A::Error::custom(format_args!("duplicate key `{key}`"))),
            None => Ok(Document::Map(map)),
        }
    }

    fn visit_enum<A: EnumAccess<'de>>(self, tagged: A) -> Result<Document, A::Error> {
        if !self.lenient {
            return Err(A::Error::custom("expected a value without a tag"));
        }
        let (_, value) = tagged.variant::<String>()?;
        value.newtype_variant_seed(self)
    }
}

/// A key as text: YAML has keys of other types, such as `1:` and `on:`.
fn text<E: Error>(key: Document) -> Result<String, E> {
    match key {
        Document::Text(key) => Ok(key),
        Document::Bool(key) => Ok(key.to_string()),
        Document::Int(key) => Ok(key.to_string()),
        Document::Number(key) => Ok(format!("{key:?}")),
        Document::Null | Document::List(_) | Document::Map(_) => {
            Err(E::custom("expected a key that is text"))
        }
    }
}

/// The last of equal keys counts.
fn keep_last(map: &mut Vec<Entry>) {
    let keys = map.iter().enumerate();
    let last: BTreeMap<String, usize> = keys.map(|(at, entry)| (entry.key.clone(), at)).collect();
    let mut at = 0;
    map.retain(|entry| {
        at += 1;
        last.get(&entry.key) == Some(&(at - 1))
    });
}

fn duplicate(map: &[Entry]) -> Option<&str> {
    let mut keys: Vec<&str> = map.iter().map(|entry| entry.key.as_str()).collect();
    keys.sort_unstable();
    let pair = keys.windows(2).find(|pair| pair[0] == pair[1])?;
    pair.first().copied()
}
