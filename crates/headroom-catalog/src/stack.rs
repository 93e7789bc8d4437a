//! Software stacks: what each does by default that changes memory, by version.

use super::Confidence;

/// A library or framework that decides how a step runs.
#[derive(Clone, Copy, Debug)]
pub struct Stack {
    pub id: &'static str,
    pub name: &'static str,
    /// The versions the facts were gathered for, first and last, as major and minor.
    pub first: (u8, u8),
    pub last: (u8, u8),
    /// Stacks below it, whose defaults apply if it has none of its own.
    pub on: &'static [&'static str],
    pub facts: &'static [Fact],
}

/// One default over a range of versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact {
    /// A scenario setting's path, or a behaviour named at the head of `catalog/stacks.yaml`.
    pub key: &'static str,
    pub value: &'static str,
    /// The first version it holds for.
    pub from: (u8, u8),
    /// The first version it no longer holds for.
    pub below: (u8, u8),
    pub confidence: Confidence,
    set: u8,
    pub note: &'static str,
}

/// All stacks, sorted by id.
pub fn stacks() -> &'static [Stack] {
    table::STACKS
}

pub fn stack(id: &str) -> Option<&'static Stack> {
    stacks().iter().find(|stack| stack.id == id)
}

impl Stack {
    /// The facts of a version. A version outside the range gets the facts of its nearest end.
    pub fn facts(&self, version: (u8, u8)) -> impl Iterator<Item = &'static Fact> + use<> {
        let version = version.clamp(self.first, self.last);
        self.facts
            .iter()
            .filter(move |fact| fact.from <= version && version < fact.below)
    }

    /// Facts of any version.
    pub fn all_facts(&self) -> &'static [Fact] {
        self.facts
    }

    pub fn fact(&self, key: &str, version: (u8, u8)) -> Option<&'static Fact> {
        self.facts(version).find(|fact| fact.key == key)
    }
}

impl Fact {
    /// Where it was read.
    pub fn sources(&self) -> impl Iterator<Item = &'static str> + use<> {
        let set = table::SOURCE_SETS.get(usize::from(self.set)).copied();
        set.unwrap_or_default()
            .iter()
            .filter_map(|&source| table::SOURCES.get(usize::from(source)).copied())
    }
}

#[allow(clippy::pedantic)]
mod table {
    use super::{Confidence, Fact, Stack};
    include!(concat!(env!("OUT_DIR"), "/stacks.rs"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_sorted_and_their_facts_have_sources() {
        for pair in stacks().windows(2) {
            assert!(pair[0].id < pair[1].id);
        }
        for stack in stacks() {
            assert!(stack.first <= stack.last && !stack.name.is_empty());
            for below in stack.on {
                assert!(super::stack(below).is_some(), "{} on {below}", stack.id);
            }
            for fact in stack.facts {
                assert!(fact.sources().count() > 0, "{} {}", stack.id, fact.key);
                assert!(fact.from < fact.below, "{} {}", stack.id, fact.key);
                assert!(fact.from <= stack.last, "{} {}", stack.id, fact.key);
            }
        }
    }

    #[test]
    fn a_version_has_one_value_for_a_key() {
        for stack in stacks() {
            for (at, fact) in stack.facts.iter().enumerate() {
                for other in &stack.facts[..at] {
                    let apart = other.below <= fact.from || fact.below <= other.from;
                    assert!(other.key != fact.key || apart, "{} {}", stack.id, fact.key);
                }
            }
        }
    }

    #[test]
    fn beyond_its_range_the_nearest_version_holds() {
        let value = |version| {
            let torch = stack("torch").unwrap();
            torch.fact("training.zero_to_none", version).unwrap().value
        };
        assert_eq!([(1, 13), (9, 0)].map(value), ["false", "true"]);
        assert!(stack("vapourware").is_none());
    }
}
