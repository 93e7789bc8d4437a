//! The state of recorded graphs of catalogue models.

use super::text;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_is_loading_until_it_fails() {
        let mut graphs = Graphs::default();
        let id = "densenet-121";
        assert_eq!(graphs.message(id), text::graph_loading(id));
        graphs.set(id, State::Failed);
        assert_eq!(graphs.message(id), text::graph_failed(id));
        graphs.set(id, State::Coming);
        assert_eq!(graphs.message(id), text::graph_loading(id));
    }
}
