//! A recorded model in a link: its file's JSON, squeezed, where that is short.

use std::cell::RefCell;

use super::squeeze;
use crate::network::{Network, Recording};
use headroom_base::document::json;

/// The longest JSON that is tried, and the longest text that it may come to: the rest of a link has to fit beside it.
const LONGEST_JSON: usize = 65_536;
const LONGEST: usize = 12_288;

/// JSON is full of what a link writes as three letters; each of them changes places with one that is rare and plain. Of `;`
/// squeezed text makes `@`, which is plain.
const SWAPS: [(char, char); 5] = [('"', '='), ('[', '/'), (']', '+'), ('{', ';'), ('}', 'Z')];

thread_local! {
    /// The last recording that was squeezed: a link is written at every edit, and the file stays the same.
    static LAST: RefCell<Option<(String, Option<String>)>> = const { RefCell::new(None) };
}

/// `None` where the file is too long for a link.
pub(super) fn write(recording: &Recording) -> Option<String> {
    let name = recording.name();
    let known = LAST.with_borrow(|last| last.clone().filter(|(known, _)| *known == name));
    if let Some((_, packed)) = known {
        return packed;
    }
    let packed = packed(&json::write(recording.document()));
    LAST.set(Some((name, packed.clone())));
    packed
}

fn packed(json: &str) -> Option<String> {
    if json.len() > LONGEST_JSON {
        return None;
    }
    let packed = squeeze::write(&swapped(json));
    (packed.len() <= LONGEST).then_some(packed)
}

/// What the text holds: whether a model can be built from it is found where networks are built.
pub(super) fn read(packed: &str) -> Option<Network> {
    let json = swapped(&squeeze::read(packed, LONGEST_JSON)?);
    let document = json::read(&json).ok()?;
    Some(Network::recorded(Recording::new(document)))
}

fn swapped(text: &str) -> String {
    let swap = |letter: char| {
        let pair = SWAPS.iter().find(|(a, b)| letter == *a || letter == *b);
        pair.map_or(letter, |&(a, b)| if letter == a { b } else { a })
    };
    text.chars().map(swap).collect()
}
