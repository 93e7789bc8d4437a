//! Saved plans: named scenarios in this browser's storage, and all of them as one file.

use crate::shared::browser;
use headroom_base::document::json;
use headroom_base::document::{Document, Entry};

/// Their key in the browser's storage.
const PLANS: &str = "headroom.plans";
/// Where plans go that cannot be read, such as those of a later version.
const UNREAD: &str = "headroom.plans.unread";
const KEY: &str = "headroom-plans";
/// The most plans, which bounds what a file can add.
pub const MOST: usize = 200;
const LONGEST_NAME: usize = 80;

/// Names and links, in the order of saving.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plans(Vec<(String, String)>);

impl Plans {
    /// The plans of a file; `None` if it has none.
    pub fn read(file: &str) -> Option<Self> {
        let document = json::read(file).ok()?;
        let Document::Map(entries) = document.get(KEY)? else {
            return None;
        };
        let plan = |entry: &Entry| match &entry.value {
            Document::Text(link) => Some((entry.key.clone(), link.clone())),
            _ => None,
        };
        let mut plans = Self::default();
        for (name, link) in entries.iter().filter_map(plan) {
            plans.save(&name, link);
        }
        Some(plans)
    }

    pub fn write(&self) -> String {
        let mut plans = Document::new();
        for (name, link) in &self.0 {
            plans = plans.with(name.clone(), link.clone());
        }
        json::write(&Document::new().with(KEY, plans))
    }

    /// Saves a plan under a name, replacing one of the same name; `false` where there are too many.
    pub fn save(&mut self, name: &str, link: String) -> bool {
        let name: String = name.trim().chars().take(LONGEST_NAME).collect();
        if let Some(same) = self.0.iter_mut().find(|plan| plan.0 == name) {
            same.1 = link;
        } else if self.0.len() >= MOST {
            return false;
        } else if !name.is_empty() {
            self.0.push((name, link));
        }
        true
    }

    /// Names and links, in order.
    pub fn all(&self) -> impl Iterator<Item = &(String, String)> {
        self.0.iter()
    }

    /// Adds the plans of another store; `false` where some were too many.
    pub fn merge(&mut self, other: Self) -> bool {
        let plans = other.0.into_iter();
        plans.fold(true, |all, (name, link)| self.save(&name, link) && all)
    }

    /// By its name: another tab may have removed those before it.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|plan| plan.0 != name);
    }
}

/// The plans in this browser.
pub fn kept() -> Plans {
    let file = browser::stored(PLANS).unwrap_or_default();
    Plans::read(&file).unwrap_or_default()
}

/// Stores them; `false` if the browser refuses. What was there and could not be read is not lost.
pub fn store(plans: &Plans) -> bool {
    let unread = browser::stored(PLANS).filter(|file| Plans::read(file).is_none());
    if let Some(file) = unread.filter(|file| !file.is_empty()) {
        browser::store(UNREAD, &file);
    }
    browser::store(PLANS, &plans.write())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plans(all: &[(&str, &str)]) -> Plans {
        let mut plans = Plans::default();
        for (name, link) in all {
            plans.save(name, (*link).into());
        }
        plans
    }

    #[test]
    fn plans_come_back_from_their_file() {
        let some = plans(&[("a \"b\" <c>", "v=1&mb=2"), ("ü", "v=1")]);
        assert_eq!(Plans::read(&some.write()), Some(some));
        for no_plans in ["", "{}", "[]", "{\"headroom-plans\": 3}", "nonsense"] {
            assert_eq!(Plans::read(no_plans), None, "{no_plans}");
        }
    }

    #[test]
    fn plan_names_are_unique_and_not_empty() {
        let mut some = plans(&[("a", "v=1"), (" a ", "v=2"), ("  ", "v=3")]);
        assert_eq!(some, plans(&[("a", "v=2")]));
        assert!(some.merge(plans(&[("b", "v=4")])));
        some.remove("a");
        some.remove("c");
        assert_eq!(some, plans(&[("b", "v=4")]));
        let many: Vec<_> = (0..500).map(|number| number.to_string()).collect();
        let saved = many.iter().filter(|name| some.save(name, "v=1".into()));
        assert_eq!(saved.count(), MOST - 1);
        assert_eq!(some.0.len(), MOST);
    }
}
