//! The recorded graphs of models, gzipped, as they were recorded.

include!(concat!(env!("OUT_DIR"), "/graphs.rs"));

/// The graph of a catalogue's model.
pub fn graph(id: &str) -> Option<&'static [u8]> {
    let (_, packed) = GRAPHS.iter().find(|(known, _)| *known == id)?;
    Some(packed)
}
