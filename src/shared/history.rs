//! Undo and redo of drafts.

use headroom_scenario::Draft;

/// Earlier and undone scenarios.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    past: Vec<Draft>,
    future: Vec<Draft>,
    /// The field of the latest change: typing on in one field is one change.
    latest: Option<&'static str>,
}

const LONGEST: usize = 50;

impl History {
    /// Records what the draft was before a change of the named field, or of many where there is no name.
    pub fn record(&mut self, before: &Draft, field: Option<&'static str>) {
        let going_on = field.is_some() && field == self.latest;
        self.latest = field;
        self.future.clear();
        if going_on || self.past.last() == Some(before) {
            return;
        }
        if self.past.len() == LONGEST {
            self.past.remove(0);
        }
        self.past.push(before.clone());
    }

    /// Ends a run of changes to one field.
    pub fn pause(&mut self) {
        self.latest = None;
    }

    pub fn undo(&mut self, now: &Draft) -> Option<Draft> {
        let before = self.past.pop()?;
        self.latest = None;
        self.future.push(now.clone());
        Some(before)
    }

    pub fn redo(&mut self, now: &Draft) -> Option<Draft> {
        let after = self.future.pop()?;
        self.latest = None;
        self.past.push(now.clone());
        Some(after)
    }

    pub fn can_undo(&self) -> bool {
        !self.past.is_empty()
    }

    pub fn can_redo(&self) -> bool {
        !self.future.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_scenario::Scenario;

    fn batch(size: u64) -> Draft {
        let mut scenario = Scenario::default();
        scenario.data.micro_batch = size;
        Draft::of(&scenario)
    }

    #[test]
    fn undo_and_redo_walk_the_same_path() {
        let mut history = History::default();
        history.record(&batch(1), Some("a"));
        history.record(&batch(2), Some("b"));
        assert_eq!(history.undo(&batch(3)), Some(batch(2)));
        assert_eq!(history.undo(&batch(2)), Some(batch(1)));
        assert_eq!(history.undo(&batch(1)), None);
        assert_eq!(history.redo(&batch(1)), Some(batch(2)));
        assert_eq!(history.redo(&batch(2)), Some(batch(3)));
        assert_eq!(history.redo(&batch(3)), None);
    }

    #[test]
    fn typing_in_one_field_is_one_change() {
        let mut history = History::default();
        history.record(&batch(1), Some("a"));
        history.record(&batch(10), Some("a"));
        assert_eq!(history.undo(&batch(100)), Some(batch(1)));
        history.record(&batch(1), Some("a"));
        history.pause();
        history.record(&batch(10), Some("a"));
        assert_eq!(history.undo(&batch(100)), Some(batch(10)));
    }

    #[test]
    fn history_is_bounded_and_a_change_clears_redo() {
        let mut history = History::default();
        for size in 1..200 {
            history.record(&batch(size), None);
        }
        assert_eq!(history.past.len(), LONGEST);
        assert!(history.undo(&batch(200)).is_some() && history.can_redo());
        history.record(&batch(7), None);
        assert!(!history.can_redo());
    }
}
