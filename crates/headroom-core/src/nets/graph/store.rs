//! Graphs that were read, each once: those of the catalogue's models, which are built into the command line and which the page
//! loads on request, and those of the files opened last.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::program::Graph;
use super::read::{from_document, read};
use headroom_catalog as catalog;
use headroom_scenario::network::Recording;

/// How many files' graphs are kept.
const FILES: usize = 4;

thread_local! {
    /// The graphs loaded so far, by the ids of their models.
    static GRAPHS: RefCell<BTreeMap<&'static str, Rc<Graph>>> = const { RefCell::new(BTreeMap::new()) };
    static OPENED: RefCell<Vec<(Recording, Rc<Graph>)>> = const { RefCell::new(Vec::new()) };
}

/// The graph of a file.
pub fn opened(recording: &Recording) -> Result<Rc<Graph>, String> {
    let known = OPENED.with_borrow(|opened| {
        let mut known = opened.iter().filter(|(file, _)| file == recording);
        known.next().map(|(_, graph)| graph.clone())
    });
    if let Some(graph) = known {
        return Ok(graph);
    }
    let graph = Rc::new(from_document(recording.document())?);
    keep(recording, graph.clone());
    Ok(graph)
}

/// Keeps the graph of a file that has been read, for those who ask for it next.
pub fn keep(recording: &Recording, graph: Rc<Graph>) {
    OPENED.with_borrow_mut(|opened| {
        opened.retain(|(file, _)| file != recording);
        if opened.len() == FILES {
            opened.remove(0);
        }
        opened.push((recording.clone(), graph));
    });
}

/// The shipped graph of a catalogue model; `None` until it is loaded.
pub fn shipped(id: &str) -> Option<Rc<Graph>> {
    let known = || GRAPHS.with_borrow(|all| all.get(id).cloned());
    known().or_else(|| {
        insert(id, &built_in::text(id)?).ok()?;
        known()
    })
}

/// Takes the text of a model's graph.
pub fn insert(id: &str, text: &str) -> Result<(), String> {
    let entry = catalog::model(id).filter(|entry| !entry.graph.is_empty());
    let entry = entry.ok_or_else(|| format!("`{id}` has no recorded graph"))?;
    let graph = read(text)?;
    GRAPHS.with_borrow_mut(|all| all.insert(entry.id, Rc::new(graph)));
    Ok(())
}

#[cfg(feature = "files")]
mod built_in {
    use std::io::Read;

    pub(crate) fn text(id: &str) -> Option<String> {
        let mut text = String::new();
        let mut unpacked = flate2::read::GzDecoder::new(headroom_catalog::graph(id)?);
        unpacked.read_to_string(&mut text).ok()?;
        Some(text)
    }
}

#[cfg(not(feature = "files"))]
mod built_in {
    pub(crate) fn text(_: &str) -> Option<String> {
        None
    }
}
