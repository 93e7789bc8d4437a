//! How a file's sizes compare with those of a catalogue entry, and with those of its class.

use std::collections::BTreeMap;

use super::{Wanted, layers};
use headroom_catalog::{self as catalog, ModelEntry, ModelType};

/// A size of a row, or of the rows of its parts under their prefixes.
pub(super) fn usual(kind: &ModelType, name: &str) -> Option<u64> {
    let of = |row: &ModelType, name: &str| {
        let found = row.sizes.iter().find(|(known, _)| *known == name);
        found.map(|(_, size)| *size)
    };
    let within = kind.parts.iter().find_map(|(_, part, prefix)| {
        let row = catalog::model_types()
            .iter()
            .find(|row| row.name == *part)?;
        of(row, name.strip_prefix(prefix)?).or_else(|| of(row, name))
    });
    of(kind, name).or(within)
}

/// The sizes in which the entry differs.
pub(super) fn differences(entry: &ModelEntry, wanted: &Wanted) -> BTreeMap<String, u64> {
    let sizes = entry.sizes();
    let has = |name: &str| {
        let found = sizes.iter().find(|(known, _)| *known == name);
        found
            .and_then(|(_, values)| values.first().copied())
            .unwrap_or(0)
    };
    let listed = |name: &str| sizes.iter().find(|(known, _)| *known == name);
    let mut differences = BTreeMap::new();
    for (name, size) in wanted {
        // Layers that the entry lists, where the file's are bits.
        let same = match layers::bits_of(name, |list| listed(list).map(|(_, all)| all.as_slice())) {
            Some(bits) => bits == *size,
            None => has(name) == *size,
        };
        if !same {
            differences.insert(name.clone(), *size);
        }
    }
    differences
}
