//! What a run takes beside the GPU: the host's memory and the disk.

use leptos::prelude::*;

use super::session::Session;
use super::text;
use headroom_base::units::{Bytes, UnitStyle};
use headroom_core::estimate::Estimate;

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

#[component]
pub fn Beside() -> impl IntoView {
    let session = Session::current();
    let items = move || {
        let units = session.units.get();
        let estimate = session.estimate.get();
        let lines = estimate.map_or_else(Vec::new, |estimate| lines(&estimate, units));
        let item = |line: String| view! { <li>{line}</li> };
        lines.into_iter().map(item).collect_view()
    };
    view! {
        <section class="panel" aria-label=text::BESIDE_GPU>
            <details class="more">
                <summary>{text::BESIDE_GPU}</summary>
                <ul class="plain-list">{items}</ul>
            </details>
        </section>
    }
}
