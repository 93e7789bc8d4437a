//! All names by their key.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::words::{LEVELS, joined, kept, readings};
use super::{Meant, table};
use crate::{ModelEntry, model, models};

/// The best meaning of a key; two different networks with equal claims leave none.
struct Claim {
    rank: u8,
    meant: Option<Meant>,
}

type Index = BTreeMap<String, Claim>;

fn names() -> &'static Index {
    static INDEX: OnceLock<Index> = OnceLock::new();
    INDEX.get_or_init(of_names)
}

/// The meaning of a key of files' names.
pub(super) fn written(key: &str) -> Option<Meant> {
    names().get(key)?.meant
}

/// Whether some key begins so.
pub(super) fn has_beginning(word: &str) -> bool {
    let begins = |index: &Index| {
        let mut from = index.range(word.to_string()..);
        from.next().is_some_and(|(key, _)| key.starts_with(word))
    };
    begins(names()) || begins(said())
}

/// The entry that people mean by a key where they leave its version or its part out.
pub(super) fn spoken(key: &str) -> Option<&'static ModelEntry> {
    match said().get(key)?.meant? {
        Meant::Same(entry) => Some(entry),
        Meant::Near(_) => None,
    }
}

fn said() -> &'static Index {
    static INDEX: OnceLock<Index> = OnceLock::new();
    INDEX.get_or_init(|| {
        let mut index = Index::new();
        for (id, names) in table::SPOKEN {
            for name in names.lines() {
                if let Some(entry) = model(id) {
                    add(&mut index, name, 0, 0, Meant::Same(entry));
                }
            }
        }
        index
    })
}

fn of_names() -> Index {
    let mut index = Index::new();
    for entry in models() {
        let same = Meant::Same(entry);
        add(&mut index, entry.id, 0, LEVELS, same);
        add(&mut index, entry.name, 1, LEVELS, same);
        // A part of a repository bears the repository's name if it is what is trained.
        let (repository, part) = entry.hf_id.split_once(" (").unwrap_or((entry.hf_id, ""));
        if matches!(part, "" | "transformer)" | "unet)") {
            let name = repository.rsplit('/').next().unwrap_or(repository);
            add(&mut index, name, 2, LEVELS, same);
        }
    }
    for (id, names) in table::SAME {
        for name in names.lines() {
            if let Some(entry) = model(id) {
                add(&mut index, name, 3, LEVELS, Meant::Same(entry));
            }
        }
    }
    for (id, names) in table::OTHER {
        for name in names.lines() {
            // Without its date it may be the entry's own name.
            if let Some(entry) = model(id) {
                add(&mut index, name, 3, 1, Meant::Near(entry));
            }
        }
    }
    index
}

/// Adds a name at each level of leaving words out: the fewer are left out, the better its claim.
fn add(index: &mut Index, name: &str, kind: u8, levels: u8, meant: Meant) {
    for words in readings(super::without_extension(name)) {
        for level in 0..=levels {
            let words: Vec<&str> = kept(&words, level)
                .into_iter()
                .map(|(_, word)| word)
                .collect();
            let key = joined(&words);
            let rank = level * 4 + kind;
            if key.is_empty() {
                continue;
            }
            match index.get_mut(&key) {
                Some(known) if known.rank < rank => {}
                Some(known) if known.rank == rank => {
                    // One repository may have several entries: the first of them is meant.
                    let repository = rank == 2 && matches!(meant, Meant::Same(_));
                    if !repository && known.meant.is_some_and(|known| !known.agrees(meant)) {
                        known.meant = None;
                    }
                }
                _ => {
                    let meant = Some(meant);
                    index.insert(key, Claim { rank, meant });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_full_name_is_claimed_by_two_networks() {
        let index = of_names();
        let full = |claim: &Claim| claim.rank < 8;
        let claimed: Vec<&String> = index
            .iter()
            .filter(|(_, claim)| claim.meant.is_none() && full(claim))
            .map(|(key, _)| key)
            .collect();
        assert_eq!(claimed, Vec::<&String>::new());
    }
}
