//! A recorded model: what the printed Python module writes.

use super::Imported;
use headroom_base::document::Document;
use headroom_core::graph;
use headroom_scenario::network::{FIELD, Network, Recording};
use headroom_scenario::{Draft, Problem, Scenario};

pub fn recognises(document: &Document) -> bool {
    graph::is_recorded(document)
}

/// A run of the model at a size that it was recorded at.
pub fn read(document: &Document) -> Imported {
    let mut scenario = Scenario::default();
    let (mut problems, mut notes) = (Vec::new(), Vec::new());
    match graph::from_document(document) {
        Ok(graph) => {
            let printable = |c: &char| !c.is_control();
            scenario.model.id = graph.name.chars().filter(printable).take(80).collect();
            if let Some((batch, length)) = graph.example() {
                scenario.data.micro_batch = batch;
                scenario.data.sequence = length;
                notes.push(format!(
                    "the batch is the recording's example: {batch} samples of length {length}; data.micro_batch and data.sequence \
                     set another"
                ));
            }
            let recording = Recording::new(document.clone());
            graph::keep(&recording, graph.into());
            scenario.model.network = Some(Network::recorded(recording));
        }
        Err(problem) => problems.push(Problem::new(FIELD, problem, "a recorded model")),
    }
    Imported {
        problems,
        notes,
        ..Imported::over(Draft::of_run(&scenario))
    }
}
