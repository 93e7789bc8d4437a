//! The state of recorded graphs of catalogue models.

use crate::text;

/// The requested graphs by model, and their state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graphs(Vec<(&'static str, State)>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Coming,
    Here,
    Failed,
}

impl Graphs {
    pub fn state(&self, id: &str) -> Option<State> {
        let found = self.0.iter().find(|(known, _)| *known == id);
        found.map(|(_, state)| *state)
    }

    pub fn set(&mut self, id: &'static str, state: State) {
        self.0.retain(|(known, _)| *known != id);
        self.0.push((id, state));
    }

    /// The message for a model whose graph is not loaded.
    pub fn message(&self, id: &str) -> String {
        match self.state(id) {
            Some(State::Failed) => text::graph_failed(id),
            _ => text::graph_loading(id),
        }
    }
}
