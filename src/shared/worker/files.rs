//! Files sent to the worker once, before the jobs whose links name them.

use std::cell::RefCell;

use headroom_base::document::json;
use headroom_core::graph;
use headroom_scenario::Scenario;
use headroom_scenario::network::Recording;

const GRAPH: &str = "graph";
const RECORDING: &str = "recording";

thread_local! {
    /// The recordings sent so far, by name.
    static SENT: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// The message with the recorded graph of a catalogue's model.
pub fn graph(id: &str, text: &str) -> String {
    format!("{GRAPH}\n{id}\n{text}")
}

/// The message with a scenario's recorded model, if it was not sent yet.
pub fn unknown_recording(scenario: &Scenario) -> Option<String> {
    let recording = scenario.model.network.as_ref()?.recording()?;
    let name = recording.name();
    let is_new = SENT.with_borrow_mut(|sent| {
        let is_new = !sent.contains(&name);
        if is_new {
            sent.push(name);
        }
        is_new
    });
    is_new.then(|| format!("{RECORDING}\n\n{}", json::write(recording.document())))
}

/// In the worker: stores a sent file; `false` for other messages.
pub fn receive_file(request: &str) -> bool {
    let mut parts = request.splitn(3, '\n');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(GRAPH), Some(id), Some(text)) => {
            // The page has already validated it.
            let _ = graph::insert(id, text);
            true
        }
        (Some(RECORDING), _, Some(text)) => {
            if let Ok(document) = json::read(text) {
                Recording::new(document);
            }
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_base::document::Document;
    use headroom_scenario::network::Network;
    use headroom_scenario::share;

    #[test]
    fn a_file_is_sent_once_and_named_by_later_links() {
        // Too long for a link.
        let document = Document::new().with("name", "x".repeat(70_000));
        let mut scenario = Scenario::default();
        scenario.model.network = Some(Network::recorded(Recording::new(document)));
        let link = share::write(&scenario);
        let file = unknown_recording(&scenario).unwrap();
        assert_eq!(unknown_recording(&scenario), None);
        std::thread::spawn(move || {
            // Another thread, which knows of no file.
            assert!(!share::read(&link).problems.is_empty());
            assert!(receive_file(&file));
            assert_eq!(share::read(&link).problems, []);
            assert!(share::read(&link).scenario.model.network.is_some());
            assert!(receive_file(&graph("densenet-121", "no graph")));
            assert!(!receive_file("count\n1\n\n#v=1"));
        })
        .join()
        .unwrap();
    }
}
