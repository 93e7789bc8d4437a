//! Denoising networks: what each source's script trains, and how.

mod cogvideox;
mod klein;
mod simpletuner;

use super::Record;
use headroom_catalog as catalog;
use headroom_core::network::{self as nets, Libraries, Net, Sizes};
use headroom_scenario::{Data, Training};

/// A network of the catalogue.
type Built = Result<Box<dyn Net>, String>;

/// What a source's script sets.
struct Source {
    recognises: fn(&Record) -> bool,
    network: fn(&Record) -> Built,
    /// The size of the pictures or videos.
    size: fn(&Record, &mut Data),
    training: fn(&Record, &mut Training),
    libraries: fn(&mut Libraries),
    is_one_step: fn(&Record) -> bool,
}

const SOURCES: &[Source] = &[klein::SOURCE, cogvideox::SOURCE, simpletuner::SOURCE];

fn source(record: &Record) -> Option<&'static Source> {
    SOURCES.iter().find(|source| (source.recognises)(record))
}

pub(super) fn network(record: &Record) -> Option<Built> {
    Some((source(record)?.network)(record))
}

pub(super) fn resize(record: &Record, data: &mut Data) {
    if let Some(source) = source(record) {
        (source.size)(record, data);
    }
}

pub(super) fn amend(record: &Record, training: &mut Training) {
    if let Some(source) = source(record) {
        (source.training)(record, training);
    }
}

pub(super) fn amend_libraries(record: &Record, libraries: &mut Libraries) {
    if let Some(source) = source(record) {
        (source.libraries)(libraries);
    }
}

/// Whether what is printed was read after a single step.
pub(super) fn is_one_step(record: &Record) -> bool {
    source(record).is_some_and(|source| (source.is_one_step)(record))
}

/// The entry's network as it is.
fn listed(id: &str) -> Built {
    let entry = catalog::model(id).ok_or_else(|| format!("`{id}` is not in the catalogue"))?;
    let net = nets::build(entry.arch, &Sizes::from_entry(entry));
    net.map_err(|error| error.to_string())
}

/// The numbers of a text, in order: of "49 frames x 480 x 720" three.
fn numbers(text: &str) -> Vec<u64> {
    let digits = text.split(|c: char| !c.is_ascii_digit());
    digits.filter_map(|number| number.parse().ok()).collect()
}
