//! What a run takes beside the GPU: the host's memory and the disk.

use leptos::prelude::*;

use super::part::Part;
use super::session::Session;
use super::{markup, text};
use crate::estimate::Estimate;
use crate::units::{Bytes, UnitStyle};

/// Lines of words: each part of the host's memory with its reason, and what checkpoints take.
fn lines(estimate: &Estimate, units: UnitStyle) -> Vec<String> {
    let host = estimate.host.parts.iter().map(|part| {
        let (name, why, _) = part.what.words();
        format!("{name}: {} ({why})", part.bytes.expected.show(units))
    });
    let disk = &estimate.disk;
    let saved = (disk.checkpoint > Bytes::ZERO).then(|| {
        let all = disk.count.zip(disk.total);
        let all = all.map(|(count, total)| format!("; {count} take {}", total.show(units)));
        let one = disk.checkpoint.show(units);
        format!("disk: {one} for each checkpoint{}", all.unwrap_or_default())
    });
    host.chain(saved).collect()
}

pub fn view(session: Session) -> Part {
    let items = move || {
        let units = session.units.get();
        let all = session.estimate.get().map(|it| lines(&it, units));
        markup::items(&all.unwrap_or_default())
    };
    let title = text::BESIDE_GPU;
    Part::new(&format!(
        r#"<section class="panel" aria-label="{title}">
            <details class="more"><summary>{title}</summary><ul class="plain-list"></ul></details>
        </section>"#
    ))
    .html("ul", items)
}
