//! Saved plans: named scenarios in this browser's storage, and all of them as one file.

use crate::shared::browser;
use headroom_base::document::json;
use headroom_base::document::{Document, Entry};

/// Their key in the browser's storage.
const PLANS: &str = "headroom.plans";
const KEY: &str = "headroom-plans";
/// The most plans, which bounds what a file can add.
const MOST: usize = 200;
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

    /// Saves a plan under a name, replacing one of the same name.
    pub fn save(&mut self, name: &str, link: String) {
        let name: String = name.trim().chars().take(LONGEST_NAME).collect();
        if let Some(same) = self.0.iter_mut().find(|plan| plan.0 == name) {
            same.1 = link;
        } else if !name.is_empty() && self.0.len() < MOST {
            self.0.push((name, link));
        }
    }

    /// Names and links, in order.
    pub fn all(&self) -> impl Iterator<Item = &(String, String)> {
        self.0.iter()
    }

    /// Adds the plans of another store.
    pub fn merge(&mut self, other: Self) {
        for (name, link) in other.0 {
            self.save(&name, link);
        }
    }

    pub fn remove(&mut self, at: &str) {
        if let Some(at) = at.parse().ok().filter(|at| *at < self.0.len()) {
            self.0.remove(at);
        }
    }
}

/// The plans in this browser.
pub fn kept() -> Plans {
    let file = browser::stored(PLANS).unwrap_or_default();
    Plans::read(&file).unwrap_or_default()
}

/// Stores them; `false` if the browser refuses.
pub fn store(plans: &Plans) -> bool {
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
        some.merge(plans(&[("b", "v=4")]));
        some.remove("0");
        some.remove("7");
        assert_eq!(some, plans(&[("b", "v=4")]));
        let many: Vec<_> = (0..500).map(|number| number.to_string()).collect();
        for name in &many {
            some.save(name, "v=1".into());
        }
        assert_eq!(some.0.len(), MOST);
    }
}
