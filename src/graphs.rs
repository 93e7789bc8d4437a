//! What became of the recorded graphs of catalogue models that runs on the page asked for.

use super::text;

/// The graphs that were asked for, by their models, and what became of that.
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

    /// What is said of a model whose graph is not here.
    pub fn said(&self, id: &str) -> String {
        match self.state(id) {
            Some(State::Failed) => text::graph_failed(id),
            _ => text::graph_coming(id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_is_said_to_come_until_it_fails() {
        let mut graphs = Graphs::default();
        let id = "densenet-121";
        assert_eq!(graphs.said(id), text::graph_coming(id));
        graphs.set(id, State::Failed);
        assert_eq!(graphs.said(id), text::graph_failed(id));
        graphs.set(id, State::Coming);
        assert_eq!(graphs.said(id), text::graph_coming(id));
    }
}
